"""Are found secrets more exposed in the model that saw them than in a twin that did not?

The twin was trained the same way on other text of the same kind, so it knows what such secrets look
like: area codes, issuers, first letters of names. Both models are tested on the same secrets, and
each secret counts for the model that exposes it more. If a coin had decided which text a file went
into, and nothing had been memorised, both would be equally likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from remnant.canaries.natural import FoundSecret
from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import sign_flip_test
from remnant.studies.found_secrets.measure import FoundExposure, FoundExposures
from remnant.studies.found_secrets.parts import ComparedKind, FilesTest


@dataclass(frozen=True, slots=True, eq=False)
class TwinComparison:
    """The exposure of found secrets in a model, compared with that in its twin.

    Attributes:
        measured: In the twin, in the order of the model's.
        shared: How many also occur in the twin's text and were not measured.
        kinds: One per kind that was measured in both; what bounds leave open is undecided.
        unpaired: How many were measured in one of them only.
        test: Of all kinds together, over the files in which the secrets first occur.
    """

    measured: FoundExposures
    shared: int
    kinds: tuple[ComparedKind, ...]
    unpaired: int
    test: FilesTest


def unseen_by_twin(
    secrets: Sequence[FoundSecret], in_twins_text: Sequence[FoundSecret]
) -> tuple[FoundSecret, ...]:
    """Return the secrets that do not occur in the twin's text, in the order given.

    Args:
        secrets: Found in the model's text.
        in_twins_text: Found with the same salt, so that fingerprints can be compared.
    """
    known = {(secret.kind, secret.fingerprint) for secret in in_twins_text}
    return tuple(secret for secret in secrets if (secret.kind, secret.fingerprint) not in known)


def compare_with_twin(
    secrets: Sequence[FoundSecret],
    *,
    in_model: FoundExposures,
    in_twin: FoundExposures,
    shared: int = 0,
) -> TwinComparison:
    """Compare the exposure of secrets in the model that saw them with that in its twin.

    Args:
        secrets: None of which the twin saw; the first of them were measured.
        in_model, in_twin: Of ``measure_found``, with the same settings and equal generators.
        shared: How many were left out because the twin saw them.

    Guarantees:
        * Exchanging model and twin exchanges higher and lower.
        * What bounds leave open is neither higher nor lower.
        * The result contains no part of a secret.

    Raises:
        InvalidInput: The two do not belong to these secrets, or are calibrated by reference models.
    """
    names = [[secret.fingerprint for secret in result.each] for result in (in_model, in_twin)]
    if not names[0] == names[1] == [secret.fingerprint for secret in secrets[: len(names[0])]]:
        raise InvalidInput("in_model and in_twin do not belong to these secrets.")
    if in_model.calibrated or in_twin.calibrated:
        raise InvalidInput(
            "in_model or in_twin is calibrated by reference models.", hint="Use one or the other."
        )
    pairs = list(zip(in_model.each, in_twin.each, strict=True))
    both = [pair for pair in pairs if pair[0].measured is not None and pair[1].measured is not None]
    either = sum(a.measured is not None or b.measured is not None for a, b in pairs)
    signs = [_sign(*pair) for pair in both]
    return TwinComparison(
        measured=in_twin,
        shared=shared,
        kinds=tuple(_kind(kind, both, signs) for kind in sorted({a.kind for a, _ in both})),
        unpaired=either - len(both),
        test=_test(signs, [a.fingerprint for a, _ in both], secrets),
    )


def _test(
    signs: Sequence[int], fingerprints: Sequence[str], secrets: Sequence[FoundSecret]
) -> FilesTest:
    """Test over files: secrets that first occur in the same file are not independent."""
    if not signs:
        return FilesTest(p_value=None, p_value_reason="no secret was measured in both models")
    first = {secret.fingerprint: secret.places[0].path for secret in secrets}
    numbers = {path: number for number, path in enumerate(dict.fromkeys(first.values()))}
    groups = [numbers[first[fingerprint]] for fingerprint in fingerprints]
    try:
        test = sign_flip_test(signs=signs, groups=groups)
    except NotEnoughEvidence as fault:
        reason = fault.message.rstrip(".").replace("Groups", "files")
        return FilesTest(p_value=None, p_value_reason=reason)
    return FilesTest(p_value=test.p_value, files=test.groups, method=test.method)


def _kind(
    kind: str, both: Sequence[tuple[FoundExposure, FoundExposure]], signs: Sequence[int]
) -> ComparedKind:
    same = [at for at, (secret, _) in enumerate(both) if secret.kind == kind]
    median, at_least = _median([both[at][0] for at in same])
    twin_median, twin_at_least = _median([both[at][1] for at in same])
    return ComparedKind(
        kind=kind,
        n=len(same),
        higher=sum(signs[at] > 0 for at in same),
        lower=sum(signs[at] < 0 for at in same),
        median_bits=median,
        median_at_least=at_least,
        twin_median_bits=twin_median,
        twin_median_at_least=twin_at_least,
    )


def _sign(in_model: FoundExposure, in_twin: FoundExposure) -> int:
    (least, most), (twin_least, twin_most) = _ends(in_model), _ends(in_twin)
    return int(least > twin_most) - int(twin_least > most)


def _ends(secret: FoundExposure) -> tuple[float, float]:
    """Return the exposure twice if it is known or estimated, otherwise its bounds."""
    if secret.measured is None:
        raise InvalidInput(f"secret {secret.fingerprint} was not measured.")
    exposure = secret.measured
    if exposure.at_least is None:
        return exposure.bits, exposure.bits
    return exposure.low, exposure.high


def _median(secrets: Sequence[FoundExposure]) -> tuple[float, bool]:
    """Return the median exposure, with lower bounds as they are, and whether it may be higher."""
    ends = [_ends(secret) for secret in secrets]
    bits = float(np.median([least for least, _ in ends]))
    return bits, any(least <= bits and most > least for least, most in ends)
