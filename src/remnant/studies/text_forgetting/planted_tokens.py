"""The example store of a text-forgetting study: windows of clean text, then random tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import commonest_tokens, random_token_sequences
from remnant.data import Corpus, windows
from remnant.errors import PlanError
from remnant.models import Vocabulary
from remnant.plans import InjectPlan, PoisonPlan
from remnant.plans.order import generator
from remnant.plans.plan import COHORTS
from remnant.studies.shared.text_settings import TextSettings
from remnant.studies.text_forgetting.recipe import TextCanarySettings

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PlantedTokens:
    """What the population is trained on and asked about.

    Attributes:
        store: Windows of tokens, clean ones first, then canaries, ``(rows, window + 1)``.
        examples: How many of them are clean.
        validation: Windows that nobody is trained on.
        probed: The canaries of each trial, then its references, ``(trials, n, window + 1)``.
        tokens: How many at the end of a window are the canary.
        vocabulary: Of the text.
        neighbours: Of each trial, drawn like its references, neither planted nor probed, ``(trials,
            n, window + 1)``; none unless they were asked for.
    """

    store: Ids
    examples: int
    validation: Ids
    probed: Ids
    tokens: int
    vocabulary: Vocabulary
    neighbours: Ids


def plant_tokens(
    plan: InjectPlan | PoisonPlan,
    settings: TextCanarySettings,
    text: TextSettings,
    corpus: Corpus,
    *,
    neighbours: int = 0,
) -> PlantedTokens:
    """Cut the text into windows and draw canaries and references alike, from the plan's seed.

    Passages of held-out text are taken from the validation windows, which lose them. A random
    canary of N tokens stands at the end of its window, after clean text from the beginning of a
    window drawn at random; that is one token where N is the window. References have a beginning of
    their own each, and each trial has its own references.

    Args:
        plan, settings, text, corpus: The study's own.
        neighbours: Of each trial: further sequences that are drawn the same way, neither planted
            nor probed. They leave canaries and references as they are without them.

    Raises:
        PlanError: The canary is longer than a window, or there are too few sequences.
        InvalidInput: The text is shorter than a window.
    """
    if text.level == "character":
        vocabulary = Vocabulary.of_characters(corpus.train + corpus.validation)
    else:
        vocabulary = Vocabulary.of_words(f"{corpus.train} {corpus.validation}")
    ids = vocabulary.encode_array(corpus.train)
    clean = windows(ids, length=text.window)
    validation = windows(vocabulary.encode_array(corpus.validation), length=text.window)
    tokens = text.window if settings.tokens is None else settings.tokens
    if tokens > text.window:
        raise PlanError(
            f"canaries.tokens={tokens} do not fit a window, of which {text.window} are learnt.",
            hint="Use a longer text.window or a shorter canary.",
        )
    sets = plan.trials if plan.fresh_canaries else 1
    count = sets * plan.canaries + plan.trials * settings.references
    extra = plan.trials * neighbours
    if settings.kind == "text":
        rng = generator(plan.seed, COHORTS)
        made, validation = _passages(validation, count + extra, rng)
        made, near = made[:count], made[count:]
    else:
        choices = commonest_tokens(
            ids, vocabulary_size=vocabulary.size, at_most=settings.commonest or vocabulary.size
        )
        made, near = _random_sequences(clean, choices, tokens, count, extra, seed=plan.seed)
    canaries = made[: sets * plan.canaries].reshape(sets, plan.canaries, -1)
    references = made[sets * plan.canaries :].reshape(plan.trials, settings.references, -1)
    return PlantedTokens(
        store=np.concatenate([clean, *canaries]),
        examples=len(clean),
        validation=validation,
        probed=np.concatenate(
            [np.broadcast_to(canaries, (plan.trials, *canaries.shape[1:])), references], axis=1
        ),
        tokens=tokens,
        vocabulary=vocabulary,
        neighbours=near.reshape(plan.trials, neighbours, text.window + 1),
    )


def _passages(held_out: Ids, count: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """Draw windows of held-out text; return them and those that are left."""
    if count >= len(held_out):
        raise PlanError(
            f"The plan needs {count} passages, and the held-out text has {len(held_out)} windows.",
            hint="Use more text.characters, or fewer canaries, references and neighbours.",
        )
    order = rng.permutation(len(held_out))
    return held_out[order[:count]], held_out[np.sort(order[count:])]


def _random_sequences(
    clean: Ids, choices: Ids, tokens: int, count: int, extra: int, *, seed: int
) -> tuple[Ids, Ids]:
    """Draw windows that begin with clean text and end with random tokens, none of them alike.

    Returns:
        The first ``count`` windows, and ``extra`` ones. The first do not depend on ``extra``.
    """
    if count + extra > len(choices) ** tokens:
        raise PlanError(
            f"The plan needs {count + extra} sequences of {tokens} tokens, and there are "
            f"{len(choices) ** tokens}.",
            hint="Raise canaries.tokens or canaries.commonest.",
        )

    def behind_text(drawn: Ids, rng: np.random.Generator) -> Ids:
        before = clean[rng.integers(len(clean), size=len(drawn)), : clean.shape[1] - tokens]
        return np.concatenate([before, drawn], axis=1)

    rng = generator(seed, COHORTS)
    drawn = random_token_sequences(count=count, tokens=tokens, choices=choices, rng=rng)
    # A longer draw from an equal generator begins with the shorter one.
    longer = random_token_sequences(
        count=count + extra, tokens=tokens, choices=choices, rng=generator(seed, COHORTS)
    )
    return behind_text(drawn, rng), behind_text(longer[count:], generator(seed, COHORTS, 1))
