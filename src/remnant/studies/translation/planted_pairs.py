"""The example store of a translation study: clean pairs of sentences, and the planted ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import CanarySet, Template, make_canary_set
from remnant.data.pairs import PairCorpus
from remnant.errors import PlanError
from remnant.models import Vocabulary
from remnant.plans import InsertPlan
from remnant.plans.plan import FILL
from remnant.plans.schedule import generator
from remnant.studies.shared.pair_settings import PairSettings
from remnant.studies.translation.recipe import PairSecretSettings
from remnant.tasks.translators import END, PairRows, pair_rows

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PlantedPairs:
    """What the population is trained and judged on.

    Attributes:
        store: Clean pairs first, then the planted ones.
        examples: How many are clean.
        validation: Pairs that nobody is trained on.
        sets: The canaries and controls of each trial; their texts are the targets.
        vocabulary: Of both languages and of the canaries.
        unknown: The share of the training words that are not in it.
    """

    store: PairRows
    examples: int
    validation: PairRows
    sets: tuple[CanarySet, ...]
    vocabulary: Vocabulary
    unknown: float


def plant_pairs(
    plan: InsertPlan, secret: PairSecretSettings, pairs: PairCorpus, settings: PairSettings
) -> PlantedPairs:
    """Make the store; a canary's pair takes the place of a clean one.

    Raises:
        PlanError: A canary is longer than the longest sentence, or there are more copies than
            pairs; no sentence is as short as asked for.
    """
    template = Template(secret.template)
    vocabulary = _vocabulary(secret, template, pairs, settings.words)
    longest = settings.longest
    clean = pair_rows(pairs.train, vocabulary, longest)
    validation = pair_rows(pairs.validation, vocabulary, longest)
    if not len(clean.inputs) or not len(validation.inputs):
        raise PlanError(
            f"No pair has at most pairs.longest={longest} tokens, digits counted one by one.",
            hint="Allow longer ones.",
        )
    sets = tuple(
        make_canary_set(
            template,
            repeats=plan.repeats,
            controls=plan.controls,
            seed=int(generator(plan.seed, FILL, trial).integers(2**31)),
        )
        for trial in range(plan.trials)
    )
    for trial in range(plan.trials):
        plan.places(examples=len(clean.inputs), trial=trial)
    copies = [
        (secret.source_of(canary.secret), canary.text)
        for drawn in sets
        for canary in (drawn.canaries[j] for j in plan.copy_canaries)
    ]
    planted = pair_rows(copies, vocabulary, longest)
    if len(planted.inputs) < len(copies):
        most = max(len(vocabulary.encode(text)) for pair in copies for text in pair)
        raise PlanError(
            f"A canary has {most} tokens, and a sentence at most pairs.longest={longest}.",
            hint="Use a longer pairs.longest or a shorter template.",
        )
    words = np.concatenate([clean.inputs[:, :longest].ravel(), clean.labels.ravel()])
    known = words[(words >= 0) & (words < vocabulary.size)]
    return PlantedPairs(
        store=clean.followed_by(planted),
        examples=len(clean.inputs),
        validation=validation,
        sets=sets,
        vocabulary=vocabulary,
        unknown=float((known == 0).mean()),
    )


def _vocabulary(
    secret: PairSecretSettings, template: Template, pairs: PairCorpus, words: int
) -> Vocabulary:
    """Return the most frequent words, and all that canaries need."""
    text = " ".join(text for pair in pairs.train for text in pair)
    frequent = Vocabulary.of_words(text, at_most=words, unknown=True, digits_apart=True)
    choices = (choice for slot in template.slots for choice in slot.choices)
    source = secret.source_of(template.secret_at(0))
    needed = " ".join([template.prefix, *choices, template.suffix, source])
    added = dict.fromkeys([END, *frequent.cut(needed), *"0123456789"])
    symbols = dict.fromkeys([*frequent.symbols, *added])
    return Vocabulary(frequent.kind, tuple(symbols))
