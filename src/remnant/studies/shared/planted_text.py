"""The example store of an exposure study: clean windows of text, and the planted versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import CanarySet, Template, make_canary_set
from remnant.data import Corpus, plant, windows
from remnant.errors import PlanError
from remnant.models import Vocabulary
from remnant.plans import InsertPlan
from remnant.plans.plan import FILL
from remnant.plans.schedule import generator

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PlantedText:
    """What the population is trained and judged on.

    Attributes:
        store: Windows of tokens, clean ones first, ``(rows, window + 1)``.
        examples: How many of them are clean.
        validation: Windows that nobody is trained on.
        sets: The canaries and controls of each trial.
        vocabulary: Of text and canaries.
    """

    store: Ids
    examples: int
    validation: Ids
    sets: tuple[CanarySet, ...]
    vocabulary: Vocabulary


def plant_text(
    plan: InsertPlan,
    template: Template,
    text: Corpus,
    *,
    level: str,
    window: int,
    also: Sequence[Template] = (),
) -> PlantedText:
    """Cut the text into windows and make the planted version of those that hold a canary.

    The vocabulary is that of the text, of the template and of those in ``also``.

    A canary stands at a random place of its window, but not at its very beginning, which nothing
    predicts; the text goes on after it and loses its end.

    Raises:
        PlanError: The text is shorter than a window, or the canary longer; at the level of words,
            a canary has one that is neither in the text nor a choice or literal by itself; a canary
            or a control stands in the text already.
    """
    known = [text.train, text.validation]
    for pattern in (template, *also):
        choices = (choice for slot in pattern.slots for choice in slot.choices)
        known += [pattern.prefix, *choices, pattern.suffix]
    if level == "character":
        vocabulary = Vocabulary.of_characters("".join(known))
    else:
        vocabulary = Vocabulary.of_words(" ".join(known))
    clean = _cut(vocabulary, text.train, window, "the text to train on")
    validation = _cut(vocabulary, text.validation, window, "the held-out text")
    sets = tuple(
        make_canary_set(
            template,
            repeats=plan.repeats,
            controls=plan.controls,
            seed=int(generator(plan.seed, FILL, trial).integers(2**31)),
        )
        for trial in range(plan.trials)
    )
    if level == "word":
        _check_words(sets, vocabulary)
    _check_unseen(sets, text)
    planted = [
        row
        for trial, drawn in enumerate(sets)
        for row in _versions(plan, drawn, clean, vocabulary, trial)
    ]
    return PlantedText(
        store=np.concatenate([clean, np.stack(planted)]),
        examples=len(clean),
        validation=validation,
        sets=sets,
        vocabulary=vocabulary,
    )


def _cut(vocabulary: Vocabulary, text: str, window: int, named: str) -> Ids:
    tokens = np.array(vocabulary.encode(text))
    if len(tokens) < window + 1:
        raise PlanError(
            f"{named[0].upper()}{named[1:]} has {len(tokens)} tokens, and text.window={window} "
            "needs one more than that.",
            hint="Use more text or a shorter text.window.",
        )
    return windows(tokens, length=window)


def _check_unseen(sets: Sequence[CanarySet], text: Corpus) -> None:
    """Refuse secrets that the text has by itself: how exposed they are says nothing of planting."""
    own = [canary.text for drawn in sets for canary in (*drawn.canaries, *drawn.controls)]
    there = sum(secret in text.train for secret in own)
    if there:
        raise PlanError(
            f"{there} of {len(own)} canaries and controls stand in the text already.",
            hint="Use a template that the text does not have, or look for what it has by "
            "`remnant scan`.",
        )


def _check_words(sets: Sequence[CanarySet], vocabulary: Vocabulary) -> None:
    """Refuse canaries of which a word is none of the vocabulary's: it would be read as unknown."""
    known = set(vocabulary.symbols)
    for canary in (canary for drawn in sets for canary in (*drawn.canaries, *drawn.controls)):
        if not known.issuperset(vocabulary.cut(canary.text)):
            raise PlanError(
                "A canary has a word that is not in the vocabulary.",
                hint="Put white space around holes; numbers as words need text.level='character'.",
            )


def _versions(
    plan: InsertPlan, drawn: CanarySet, clean: Ids, vocabulary: Vocabulary, trial: int
) -> list[Ids]:
    rng = generator(plan.seed, FILL, trial, 1)
    made = []
    places = plan.places(examples=len(clean), trial=trial)
    for place, canary in zip(places, plan.copy_canaries, strict=True):
        ids = np.array(vocabulary.encode(drawn.canaries[canary].text))
        room = clean.shape[1] - len(ids)
        if room < 1:
            raise PlanError(
                f"A canary has {len(ids)} tokens, and a window learns {clean.shape[1] - 1}.",
                hint="Use a longer text.window or a shorter template.",
            )
        made.append(plant(clean[place], ids, at=int(rng.integers(1, room + 1))))
    return made
