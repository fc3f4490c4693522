"""A canary set: which secrets are planted, how often each, and which are held out as controls.

Canaries of several sets that are the same text are counted once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from secrets import randbits
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from remnant.canaries.sampling import draw_distinct
from remnant.canaries.template import Canary, Template
from remnant.errors import InvalidInput, require

_SEED_BITS = 63  # too many to be tried, and a whole number of TOML and SQLite

KIND = "remnant canaries"
VERSION = 1


class PlantedTexts(Protocol):
    """Texts to plant and texts to hold out: a ``CanarySet``, or texts of one's own."""

    @property
    def canaries(self) -> tuple[Canary, ...]:
        """What is planted."""
        ...

    @property
    def repeats(self) -> tuple[int, ...]:
        """How often each canary is planted."""
        ...

    @property
    def controls(self) -> tuple[Canary, ...]:
        """Never planted."""
        ...

    @property
    def seed(self) -> int:
        """What they were drawn with."""
        ...

    @property
    def copies(self) -> NDArray[np.int64]:
        """The canary of each copy to be planted."""
        ...


@dataclass(frozen=True, kw_only=True, repr=False)
class CanarySet:
    """Canaries of one template, and the controls that they are compared with.

    Whoever knows the template and the seed can draw the same secrets, and a fingerprint of few
    canaries can be tried out: keep both where the secrets are kept.

    Attributes:
        template: What all of them are drawn from.
        canaries: What is planted.
        repeats: How often each canary is planted, in the same order.
        controls: Drawn alike, and never planted.
        seed: What they were drawn with.
        trial: Where several models have canaries of their own: which of these has these, counted
            from 1. None where any model may have them.

    Guarantees:
        * All secrets, of canaries and of controls, are different and in the template's space.
        * ``repr`` shows no secret.

    Raises:
        InvalidInput: A canary does not belong to the template or comes twice; ``repeats`` does not
            name a whole number of at least 1 for each canary.
    """

    template: Template
    canaries: tuple[Canary, ...]
    repeats: tuple[int, ...]
    controls: tuple[Canary, ...]
    seed: int
    trial: int | None = None

    def __post_init__(self) -> None:
        for name in ("canaries", "repeats", "controls"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.repeats) != len(self.canaries):
            raise InvalidInput(
                f"repeats has {len(self.repeats)} entries for {len(self.canaries)} canaries."
            )
        faults = _repeats_faults(self.repeats)
        faults += whole_fault("seed", self.seed, least=0)
        if self.trial is not None:
            faults += whole_fault("trial", self.trial, least=1)
        taken: set[str] = set()
        for name in ("canaries", "controls"):
            for at, canary in enumerate(getattr(self, name)):
                if canary.secret not in self.template:
                    faults.append(f"the secret of {name}[{at}] is not in the template's space")
                elif canary.text != self.template.text(canary.secret):
                    faults.append(f"the text of {name}[{at}] is not the template with its secret")
                elif canary.secret in taken:
                    faults.append(f"the secret of {name}[{at}] comes a second time")
                taken.add(canary.secret)
        require(faults)
        object.__setattr__(self, "repeats", tuple(map(int, self.repeats)))
        object.__setattr__(self, "seed", int(self.seed))

    def __repr__(self) -> str:
        return (
            f"CanarySet({self.template!r}, canaries=<{len(self.canaries)} redacted>, "
            f"controls=<{len(self.controls)} redacted>)"
        )

    @property
    def copies(self) -> NDArray[np.int64]:
        """The canary of each copy to be planted: 0 as often as it is planted, then 1, and so on."""
        return np.repeat(np.arange(len(self.canaries), dtype=np.int64), self.repeats)

    @property
    def fingerprint(self) -> str:
        """A digest (SHA-256) of template, seed, canaries, repeats, controls and trial."""
        digest = hashlib.sha256()
        for line in (header(self), *rows(self)):
            plain = json.dumps(line, sort_keys=True, separators=(",", ":"), allow_nan=False)
            digest.update(plain.encode() + b"\n")
        return digest.hexdigest()


def random_seed() -> int:
    """Return a seed that nobody can guess: secrets that are drawn with it stay secret."""
    return randbits(_SEED_BITS)


def make_canary_set(
    template: Template,
    *,
    repeats: Sequence[int],
    per_repeat: int = 1,
    controls: int,
    seed: int,
) -> CanarySet:
    """Draw the canaries to plant and the controls to keep back.

    Args:
        template: What they are drawn from.
        repeats: How often to plant. Each entry has canaries of its own, equal entries too.
        per_repeat: Canaries for each entry of ``repeats``.
        controls: Secrets drawn the same way and never planted.
        seed: Fixes the draw.

    Guarantees:
        * All secrets are different: one uniform draw without replacement.
        * The same arguments give the same set; with one seed, another pattern draws apart.
        * Another number of controls, or a further entry of ``repeats``, leaves the canaries and
          controls that were there before as they are.

    Raises:
        InvalidInput: The space is too small, or a number is not a whole one in its range.

    Example:
        >>> pins = Template("my pin is {digits:4}")
        >>> made = make_canary_set(pins, repeats=[1, 1, 8], per_repeat=2, controls=50, seed=0)
        >>> made.repeats, len(made.controls)
        ((1, 1, 1, 1, 8, 8), 50)
        >>> made
        CanarySet(Template('my pin is {digits:4}'), canaries=<6 redacted>, controls=<50 redacted>)
    """
    if isinstance(repeats, int | str):
        raise InvalidInput(f"repeats={repeats!r} is not a list of whole numbers.")
    faults = _repeats_faults(repeats) if len(repeats) else ["repeats is empty: nothing is planted"]
    faults += whole_fault("per_repeat", per_repeat, least=1)
    faults += whole_fault("controls", controls, least=0)
    faults += whole_fault("seed", seed, least=0)
    require(faults)
    planted = len(repeats) * int(per_repeat)
    kept = int(controls)
    if planted + kept > template.space:
        raise InvalidInput(
            f"{planted} canaries and {kept} controls are more than the {template.space} secrets "
            "of the template.",
            hint="Ask for fewer, or give the template a larger space.",
        )
    drawn = _deal(planted, kept, space=template.space, rng=_stream(template.pattern, int(seed)))
    secrets = [template.secret_at(index) for index in drawn]
    made = [Canary(template.text(secret), secret) for secret in secrets]
    return CanarySet(
        template=template,
        canaries=tuple(made[:planted]),
        repeats=tuple(int(often) for often in repeats for _ in range(int(per_repeat))),
        controls=tuple(made[planted:]),
        seed=int(seed),
    )


def _stream(pattern: str, seed: int) -> np.random.Generator:
    # Keyed by the pattern too: two templates must not hide the same digits under the same seed.
    return np.random.default_rng([seed, *hashlib.sha256(pattern.encode()).digest()])


def _deal(planted: int, controls: int, *, space: int, rng: np.random.Generator) -> list[int]:
    """Draw numbers for canaries, then for controls, from fixed positions of one stream.

    Canaries take the even positions and controls the odd ones, so that neither shifts the other.
    Where a small space ends before one of them has enough, it goes on with the other's positions,
    from the last one down: those are reached last.
    """
    stream = draw_distinct(min(2 * max(planted, controls), space), space=space, rng=rng)
    even, odd = stream[::2], stream[1::2]
    return (even + odd[::-1])[:planted] + (odd + even[::-1])[:controls]


def header(canaries: CanarySet) -> dict[str, Any]:
    """What a set's header says, but for the fingerprint."""
    template = canaries.template
    given = {"words": template.words, "tokens": template.tokens}
    vocabularies = {name: list(many) for name, many in given.items() if many is not None}
    return {
        "kind": KIND,
        "version": VERSION,
        "pattern": template.pattern,
        **vocabularies,
        "seed": canaries.seed,
        "canaries": len(canaries.canaries),
        "controls": len(canaries.controls),
        **({} if canaries.trial is None else {"trial": canaries.trial}),
    }


def rows(canaries: CanarySet) -> Iterator[dict[str, Any]]:
    """One line a canary, then one a control, which is planted 0 times."""
    for canary, often in zip(canaries.canaries, canaries.repeats, strict=True):
        yield {"secret": canary.secret, "text": canary.text, "repeats": often}
    for control in canaries.controls:
        yield {"secret": control.secret, "text": control.text, "repeats": 0}


def whole_fault(name: str, given: object, *, least: int) -> list[str]:
    """Say where ``given`` is not a whole number of at least ``least``."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
        return [f"{name}={given!r} is not a whole number of at least {least}"]
    return []


def _repeats_faults(repeats: Sequence[int]) -> list[str]:
    return [
        fault
        for at, often in enumerate(repeats)
        for fault in whole_fault(f"repeats[{at}]", often, least=1)
    ]


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
