"""Are found secrets more exposed in the model that saw them than in a twin that did not?

The twin was trained alike on other text of the same kind, so that it knows what such secrets look
like: area codes, issuers, what names begin with. Both are asked the same, and what counts is which
of them exposes a secret more. Had a coin decided which of two texts a file went into, and had
nothing of it been kept, either would be as likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from remnant.canaries.natural import FoundSecret
from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import SignFlipTest, sign_flip_test
from remnant.studies.found_exposure import FoundExposure, FoundExposures


@dataclass(frozen=True, slots=True)
class MedianExposure:
    """The median exposure of some secrets in one model.

    Attributes:
        bits: Bounds enter as what is proved.
        at_least: It may be higher, by what is not proved.
    """

    bits: float
    at_least: bool


@dataclass(frozen=True, slots=True)
class KindComparison:
    """Secrets of one kind in the model and in its twin.

    Attributes:
        kind: Of all of them.
        n: How many were measured in both.
        higher, lower: More and less exposed in the model; what bounds leave open is neither.
        model, twin: Their median exposure in either.
    """

    kind: str
    n: int
    higher: int
    lower: int
    model: MedianExposure
    twin: MedianExposure


@dataclass(frozen=True, slots=True, eq=False)
class TwinComparison:
    """The exposure of found secrets in a model, beside that in its twin.

    Attributes:
        measured: In the twin, in the order of the model's.
        shared: How many stand in the twin's text too and were not asked about.
        kinds: One a kind that was measured in both.
        unpaired: How many were measured in one of them only.
        test: Of all kinds together, over the files in which they first stand; None where it cannot
            be done.
        untested: Then, why; else empty.
    """

    measured: FoundExposures
    shared: int
    kinds: tuple[KindComparison, ...]
    unpaired: int
    test: SignFlipTest | None
    untested: str


def unseen_by_twin(
    found: Sequence[FoundSecret], in_twins_text: Sequence[FoundSecret]
) -> tuple[FoundSecret, ...]:
    """Return the secrets that do not stand in the twin's text, in the order given.

    Args:
        found: In the model's text.
        in_twins_text: Found with the same salt, so that fingerprints can be compared.
    """
    known = {(one.kind, one.fingerprint) for one in in_twins_text}
    return tuple(one for one in found if (one.kind, one.fingerprint) not in known)


def compare_with_twin(
    found: Sequence[FoundSecret],
    *,
    in_model: FoundExposures,
    in_twin: FoundExposures,
    shared: int = 0,
) -> TwinComparison:
    """Compare the exposure of secrets in the model that saw them with that in its twin.

    Args:
        found: The secrets, none of which the twin saw; the first of them were measured.
        in_model, in_twin: Of ``measure_found``, with the same settings and generators alike.
        shared: How many were left out because the twin saw them.

    Guarantees:
        * Exchanging model and twin exchanges higher and lower.
        * What bounds leave open is neither higher nor lower.
        * Nothing of a secret is in the result.

    Raises:
        InvalidInput: The two are not of these secrets, or are calibrated by reference models.
    """
    names = [[one.fingerprint for one in result.each] for result in (in_model, in_twin)]
    if not names[0] == names[1] == [one.fingerprint for one in found[: len(names[0])]]:
        raise InvalidInput("in_model and in_twin are not of the secrets in found.")
    if in_model.calibrated or in_twin.calibrated:
        raise InvalidInput(
            "in_model or in_twin is calibrated by reference models.", hint="Use one or the other."
        )
    pairs = list(zip(in_model.each, in_twin.each, strict=True))
    both = [pair for pair in pairs if pair[0].measured is not None and pair[1].measured is not None]
    either = sum(a.measured is not None or b.measured is not None for a, b in pairs)
    signs = [_sign(*pair) for pair in both]
    test, untested = None, "no secret was measured in both models"
    if both:
        test, untested = _tested(signs, [a.fingerprint for a, _ in both], found)
    return TwinComparison(
        measured=in_twin,
        shared=shared,
        kinds=tuple(_kind(kind, both, signs) for kind in sorted({a.kind for a, _ in both})),
        unpaired=either - len(both),
        test=test,
        untested=untested,
    )


def _tested(
    signs: Sequence[int], fingerprints: Sequence[str], found: Sequence[FoundSecret]
) -> tuple[SignFlipTest | None, str]:
    """Test over files: secrets that first stand in one file share its luck."""
    first = {one.fingerprint: one.places[0].path for one in found}
    numbers = {path: number for number, path in enumerate(dict.fromkeys(first.values()))}
    groups = [numbers[first[one]] for one in fingerprints]
    try:
        return sign_flip_test(signs=signs, groups=groups), ""
    except NotEnoughEvidence as fault:
        return None, fault.message.rstrip(".").replace("Groups", "files")


def _kind(
    kind: str, both: Sequence[tuple[FoundExposure, FoundExposure]], signs: Sequence[int]
) -> KindComparison:
    alike = [at for at, (one, _) in enumerate(both) if one.kind == kind]
    return KindComparison(
        kind=kind,
        n=len(alike),
        higher=sum(signs[at] > 0 for at in alike),
        lower=sum(signs[at] < 0 for at in alike),
        model=_median([both[at][0] for at in alike]),
        twin=_median([both[at][1] for at in alike]),
    )


def _sign(one: FoundExposure, other: FoundExposure) -> int:
    (least, most), (others_least, others_most) = _ends(one), _ends(other)
    return int(least > others_most) - int(others_least > most)


def _ends(one: FoundExposure) -> tuple[float, float]:
    """Return the exposure twice where it is known or estimated, else what it is between."""
    if one.measured is None:
        raise InvalidInput(f"secret {one.fingerprint} was not measured.")
    found = one.measured.found
    if one.measured.at_least is None:
        return found.bits, found.bits
    return found.low, found.high


def _median(alike: Sequence[FoundExposure]) -> MedianExposure:
    ends = [_ends(one) for one in alike]
    bits = float(np.median([least for least, _ in ends]))
    return MedianExposure(bits, any(least <= bits and most > least for least, most in ends))
