"""Canaries of several sets that are the same text: each is counted once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from remnant.canaries.canary_set import CanarySet
from remnant.canaries.template import Canary, Template

Pairs = list[tuple[Canary, int]]


@dataclass(frozen=True, slots=True)
class DistinctCanaries:
    """Sets without the canaries that an earlier set has too.

    Attributes:
        sets: By number; a set of which nothing is left is not among them.
        canaries: How many canaries were left out.
        controls: How many controls were left out.
    """

    sets: dict[int, CanarySet]
    canaries: int
    controls: int

    @property
    def sentence(self) -> str:
        """How many were left out; empty where none were."""
        parts = [
            f"{many} {one if many == 1 else several}"
            for many, one, several in (
                (self.canaries, "canary", "canaries"),
                (self.controls, "control", "controls"),
            )
            if many
        ]
        if not parts:
            return ""
        several = self.canaries + self.controls > 1
        were = "were equal to others and were" if several else "was equal to another and was"
        return f"{' and '.join(parts)} {were} left out, so that each is counted once."


def distinct_canaries(sets: Mapping[int, CanarySet]) -> DistinctCanaries:
    """Leave out canaries and controls that are equal to others, across sets.

    Two are equal where a model that learnt one has learnt the other. Of one template, these have
    the same secret. Of different templates, they have the same text, or the same secret and one
    text is part of the other; upper and lower case and white space make no difference.

    Args:
        sets: By number.

    Guarantees:
        * Sets that have nothing in common are returned as they are.
        * Of equal canaries the first stays, with the smallest of their repeats: a limit for those
          planted at most so often then judges it. A control that is planted in another set is
          left out.
    """
    seen = _Seen()
    planted: dict[int, Pairs] = {number: [] for number in sets}
    left_canaries = left_controls = 0
    for number, canary_set in sets.items():
        for canary, repeats in zip(canary_set.canaries, canary_set.repeats, strict=True):
            place = seen.place(canary_set.template, canary)
            if place is None:
                seen.add(canary_set.template, canary, (number, len(planted[number])))
                planted[number].append((canary, repeats))
            else:
                left_canaries += 1
                first, at = place
                kept, fewest = planted[first][at]
                planted[first][at] = kept, min(fewest, repeats)
    distinct: dict[int, CanarySet] = {}
    for number, canary_set in sets.items():
        controls = []
        for control in canary_set.controls:
            if seen.place(canary_set.template, control) is None:
                seen.add(canary_set.template, control, (number, -1))
                controls.append(control)
        left_controls += len(canary_set.controls) - len(controls)
        if planted[number] or controls:
            distinct[number] = replace(
                canary_set,
                canaries=tuple(canary for canary, _ in planted[number]),
                repeats=tuple(repeats for _, repeats in planted[number]),
                controls=tuple(controls),
            )
    return DistinctCanaries(distinct, left_canaries, left_controls)


class _Seen:
    """Where each text is; the same text may be reached by its template or by its words."""

    def __init__(self) -> None:
        self._exact: dict[tuple[object, str], tuple[int, int]] = {}
        self._texts: dict[str, list[tuple[object, str, tuple[int, int]]]] = {}
        self._whole: dict[str, list[tuple[object, tuple[int, int]]]] = {}

    def place(self, template: Template, canary: Canary) -> tuple[int, int] | None:
        key, text = _key(template), _plain(canary.text)
        exact = self._exact.get((key, canary.secret))
        if exact is not None:
            return exact
        for other, place in self._whole.get(text, ()):
            if other != key:
                return place
        for other, words, place in self._texts.get(_plain(canary.secret), ()):
            if other != key and (words in text or text in words):
                return place
        return None

    def add(self, template: Template, canary: Canary, place: tuple[int, int]) -> None:
        key, text = _key(template), _plain(canary.text)
        self._exact[key, canary.secret] = place
        self._whole.setdefault(text, []).append((key, place))
        self._texts.setdefault(_plain(canary.secret), []).append((key, text, place))


def _key(template: Template) -> object:
    return template.pattern, template.words, template.tokens


def _plain(text: str) -> str:
    """A text without case and without differences of white space."""
    return " ".join(text.split()).casefold()
