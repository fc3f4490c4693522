"""How exposed are the canaries of a set, and is that more than chance would have it?"""

from __future__ import annotations

import dataclasses
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


@dataclass(frozen=True, slots=True)
class CanaryExposure:
    """The exposure of one canary or control.

    Attributes:
        name: ``"canary 1"``, ``"control 1"`` and so on, in the order of the set.
        repeats: How often it was planted; 0 for a control.
        method: ``"exact"`` or ``"sampled"``.
        found: What was measured.
    """

    name: str
    repeats: int
    method: str
    found: SecretExposure


@dataclass(frozen=True, slots=True)
class RepeatsExposure:
    """All canaries that were planted equally often.

    Attributes:
        repeats: How often; 0 stands for the controls.
        n: How many there are.
        mean_bits: Their mean exposure.
        at_least: Some of them are saturated, so that the mean is at least this.
        p_value: Of the pooled test that none of them was memorised; ``None`` if it cannot be done.
        untested: Then, why not.
    """

    repeats: int
    n: int
    mean_bits: float
    at_least: bool
    p_value: float | None
    untested: str | None


@dataclass(frozen=True, slots=True, eq=False)
class SetExposure:
    """The exposure of a canary set in one model.

    Attributes:
        each: Canaries in the order of the set, then controls.
        groups: By repeats, fewest first; the controls come last.
        method: By which all were measured, but for those in ``walked``.
        reason: Why by this one.
        walked: Names of those that were ranked exactly because the references were saturated.
        walked_reason: Why that could be done; empty where it was not.
        extrapolated: The skew-normal fit to the references, where there are enough of them.
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
        fit: Score all references for a skew-normal fit, also where exact ranks need none.
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
    found, methods = list(audit.each), [audit.method] * len(secrets)
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
    each = tuple(map(CanaryExposure, names, times, methods, found))
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
    # Exact bits in the place of saturated ones leave the test valid: given that no reference was
    # as cheap, chance makes the exact exposure smaller than the tail that the test allows for.
    sampled = any(one.method == "sampled" for one in alike)
    p_value, untested = None, None
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
        at_least=any(one.found.saturated for one in alike),
        p_value=p_value,
        untested=untested,
    )
