"""How exposed are the canaries of a set, and is that more than chance would have it?"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from remnant.canaries import CanarySet
from remnant.errors import NotEnoughEvidence
from remnant.measures import ExtrapolatedExposure, pooled_exposure_test
from remnant.models.protocols import SequenceModel
from remnant.studies.exposure_audit import (
    MAX_NODES,
    REFERENCES,
    ExposureAudit,
    Method,
    Progress,
    SecretExposure,
    measure_exposure,
)

_PILOT = 256
_CLOSE = 1e-3  # bits; many times what float32 loses on a text


@dataclass(frozen=True, slots=True)
class CanaryExposure:
    """The exposure of one canary or control.

    Attributes:
        name: ``"canary 1"``, ``"control 1"`` and so on, in the order of the set.
        repeats: How often it was planted; 0 for a control.
        method: ``"exact"`` or ``"sampled"``.
        found: What was measured.
        ended: A budget ended the walk before the rank was settled: it is known between bounds.
    """

    name: str
    repeats: int
    method: str
    found: SecretExposure
    ended: bool = False

    @property
    def exact(self) -> bool:
        """Whether the rank is known, but for costs that cannot be told apart."""
        return self.found.rank is not None and not self.ended

    @property
    def at_least(self) -> float | None:
        """What the exposure is at least, where ``bits`` is no estimate of it; else None.

        The lower end of the interval where no reference was as cheap, and the lower bound where a
        budget ended the walk.
        """
        return self.found.low if self.ended or self.found.saturated else None


@dataclass(frozen=True, slots=True)
class RepeatsExposure:
    """All canaries that were planted equally often.

    Attributes:
        repeats: How often; 0 stands for the controls.
        n: How many there are.
        mean_bits: Their mean exposure.
        at_least: Some of them are saturated, or bounds of a walk that a budget ended.
        mean_low: Then, what the mean is at least: these enter with ``CanaryExposure.at_least``.
            Elsewhere, ``mean_bits``.
        p_value: Of the pooled test that none of them was memorised; ``None`` if it cannot be done.
        untested: Then, why not.
    """

    repeats: int
    n: int
    mean_bits: float
    at_least: bool
    mean_low: float
    p_value: float | None
    untested: str | None


@dataclass(frozen=True, slots=True, eq=False)
class SetExposure:
    """The exposure of a canary set in one model.

    Attributes:
        each: Canaries in the order of the set, then controls.
        groups: By repeats, fewest first; the controls come last.
        method: By which all were measured, but for those in ``walked``. Sampling that drew all
            secrets is exact.
        reason: Why by this one.
        walked: Names of those that were ranked exactly because the references were saturated.
        walked_reason: Why that could be done; empty where it was not.
        extrapolated: The skew-normal fit to the references, where it was asked for and there are
            enough of them.
        calibrated: Whether the costs are differences to reference models'.
        n_references: How many secrets were sampled.
        nodes: Rows passed to the model.
    """

    each: tuple[CanaryExposure, ...]
    groups: tuple[RepeatsExposure, ...]
    method: str
    reason: str
    walked: tuple[str, ...]
    walked_reason: str
    extrapolated: ExtrapolatedExposure | None
    calibrated: bool
    n_references: int
    nodes: int


def measure_canaries(
    model: SequenceModel,
    canary_set: CanarySet,
    *,
    rng: np.random.Generator,
    method: Method = "auto",
    references: int = REFERENCES,
    reference_models: Sequence[SequenceModel] = (),
    fit: bool = False,
    max_nodes: int = MAX_NODES,
    max_seconds: float | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> SetExposure:
    """Measure the exposure of all canaries and controls, and test each number of repeats.

    With ``"auto"``, canaries that no reference is as cheap as are ranked exactly in a walk of their
    own where that can be afforded: they are cheap, so that little of the tree lies under them,
    whereas a walk that the controls take part in visits most of it.

    Args:
        model: The model under audit.
        canary_set: What was planted, and its controls.
        rng: Draws the references.
        method, references, reference_models: See ``measure_exposure``.
        fit: Fit a skew-normal law to the references; all of them are then scored, also where
            exact ranks need none. Without it nothing is fitted.
        max_nodes, max_seconds, memory: Budgets of each walk.
        progress: See ``measure_exposure``.

    Guarantees:
        * The same generator gives the same references, whichever way the method was found.

    Raises:
        InvalidInput: See ``measure_exposure``.
        NotEnoughEvidence: No references where sampling needs them.
    """
    secrets = [one.secret for one in (*canary_set.canaries, *canary_set.controls)]
    times = [*canary_set.repeats, *[0] * len(canary_set.controls)]

    def measure(some: Sequence[str], how: Method, many: int) -> ExposureAudit:
        return measure_exposure(
            model,
            canary_set.template,
            secrets=some,
            # A pilot decides which method is tried, and no number of it is kept.
            rng=rng if many == references else np.random.default_rng(0),
            method=how,
            references=many,
            reference_models=reference_models,
            max_nodes=max_nodes,
            max_seconds=max_seconds,
            memory=memory,
            fit=fit,
            progress=progress,
        )

    pilot = first = min(references, _PILOT)
    if method == "sampled" or reference_models or fit:
        first = references
    elif method == "exact":
        first = 0
    audit = measure(secrets, method, first)
    nodes, reason = audit.nodes, audit.reason
    if audit.method == "sampled" and first < references:
        audit = measure(secrets, "sampled", references)
        nodes += audit.nodes
    if audit.method == "sampled" and len(secrets) + len(audit.reference_costs) == audit.space:
        audit = dataclasses.replace(audit, method="exact", each=_ranked(audit), complete=True)
        whole = f"{audit.space:,}".replace(",", " ")
        reason = f"exact: all {whole} secrets were scored"
    found, methods = list(audit.each), [audit.method] * len(secrets)
    # Where a budget ends a walk that was not asked for, the audit itself falls back on sampling.
    cut = audit.method == "exact" and not audit.complete
    ended = [cut and one.rank != one.rank_low for one in found]
    walked, walked_reason = [], ""
    saturated = [at for at, one in enumerate(found) if one.saturated]
    if method == "auto" and saturated and not reference_models:
        again = measure([secrets[at] for at in saturated], method, pilot)
        nodes += again.nodes
        if again.method == "exact":
            walked, walked_reason = saturated, again.reason
            for at, exact in zip(saturated, again.each, strict=True):
                guess = found[at].skew_normal_bits
                found[at] = dataclasses.replace(exact, skew_normal_bits=guess)
                methods[at] = "exact"
    names = _names(canary_set)
    each = tuple(map(CanaryExposure, names, times, methods, found, ended))
    return SetExposure(
        each=each,
        groups=_groups(each, len(audit.reference_costs)),
        method=audit.method,
        reason=reason,
        walked=tuple(names[at] for at in walked),
        walked_reason=walked_reason,
        extrapolated=audit.extrapolated,
        calibrated=audit.calibrated,
        n_references=len(audit.reference_costs),
        nodes=nodes,
    )


def _ranked(audit: ExposureAudit) -> tuple[SecretExposure, ...]:
    """Rank secrets among all of the space, whose costs are known.

    Costs that rounding could swap count against the canary, and not for its lowest rank.
    """
    costs = np.concatenate([[one.cost for one in audit.each], audit.reference_costs])
    found = []
    for one in audit.each:
        high = int((costs <= one.cost + _CLOSE).sum())
        low = int((costs < one.cost - _CLOSE).sum()) + int((costs == one.cost).sum())
        most, least = (math.log2(audit.space) - math.log2(rank) for rank in (low, high))
        found.append(
            dataclasses.replace(
                one, bits=least, low=least, high=most, rank=high, rank_low=low, saturated=False
            )
        )
    return tuple(found)


def _names(canary_set: CanarySet) -> list[str]:
    return [
        f"{kind} {number + 1}"
        for kind, many in (("canary", canary_set.canaries), ("control", canary_set.controls))
        for number in range(len(many))
    ]


def _groups(each: Sequence[CanaryExposure], references: int) -> tuple[RepeatsExposure, ...]:
    planted = sorted({one.repeats for one in each if one.repeats})
    controls = [0] if any(one.repeats == 0 for one in each) else []
    return tuple(
        _group([one for one in each if one.repeats == times], references)
        for times in [*planted, *controls]
    )


def _group(alike: Sequence[CanaryExposure], references: int) -> RepeatsExposure:
    bits = [one.found.bits for one in alike]
    lows = [one.found.bits if one.at_least is None else one.at_least for one in alike]
    # Exact bits in the place of saturated ones leave the test valid: given that no reference was
    # as cheap, chance makes the exact exposure smaller than the tail that the test allows for.
    sampled = any(one.method == "sampled" for one in alike)
    p_value, untested = None, None
    if any(one.ended for one in alike):
        untested = "a budget ended the walk, and bounds are not tested"
    else:
        try:
            p_value = pooled_exposure_test(
                bits, shared_references=references if sampled else None
            ).p_value
        except NotEnoughEvidence as fault:
            untested = fault.message
    return RepeatsExposure(
        repeats=alike[0].repeats,
        n=len(alike),
        mean_bits=float(np.mean(bits)),
        at_least=any(one.at_least is not None for one in alike),
        mean_low=float(np.mean(lows)),
        p_value=p_value,
        untested=untested,
    )
