"""Exposure where some secrets are exposed and others are not: each in the way that it allows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from remnant.canaries import Template
from remnant.models.protocols import SequenceModel
from remnant.studies.exposure_audit import (
    ExposureAudit,
    Method,
    ReadCosts,
    measure_costs,
    measure_exposure,
)

_PILOT = 256


def measure_each(
    model: SequenceModel,
    template: Template,
    *,
    secrets: Sequence[str],
    rng: np.random.Generator,
    method: Method = "auto",
    **options: Any,
) -> ExposureAudit:
    """Measure exposure, and rank exactly what no reference is as cheap as.

    A walk of the tree that unexposed secrets take part in visits most of it. Where ``"auto"``
    therefore samples, those that no reference reached are ranked in walks of their own, the
    likeliest first, as long as that can be afforded: they are cheap, so that little lies under
    them.

    Args:
        model, template, secrets, rng, method: See ``measure_exposure``.
        options: Likewise.

    Returns:
        The audit; what had a walk of its own has a rank, and ``method`` is still that of the
        others.

    Raises:
        InvalidInput: See ``measure_exposure``.
        NotEnoughEvidence: No references where sampling needs them.
    """
    audit = measure_exposure(model, template, secrets=secrets, rng=rng, method=method, **options)
    few = options | {"references": min(_PILOT, len(audit.reference_costs))}
    return _each_in_turn(
        audit,
        method,
        lambda at: measure_exposure(model, template, secrets=[secrets[at]], rng=rng, **few),
    )


def measure_each_cost(
    model: SequenceModel,
    template: Template,
    costs: ReadCosts,
    *,
    secrets: Sequence[str],
    method: Method = "auto",
    **options: Any,
) -> ExposureAudit:
    """Do the same where secrets and references were read before.

    Args:
        model, template, costs, secrets, method: See ``measure_costs``.
        options: Likewise.

    Raises:
        NotEnoughEvidence: No references where sampling needs them.
    """
    audit = measure_costs(model, template, costs, secrets=secrets, method=method, **options)
    few = options | {"fit": False}

    def alone(at: int) -> ExposureAudit:
        own = dataclasses.replace(costs, secrets=costs.secrets[at : at + 1], nodes=0)
        return measure_costs(model, template, own, secrets=[secrets[at]], **few)

    return _each_in_turn(audit, method, alone)


def _each_in_turn(
    audit: ExposureAudit, method: Method, alone: Callable[[int], ExposureAudit]
) -> ExposureAudit:
    """Rank what is saturated by itself, the likeliest first, as long as walks can be afforded."""
    saturated = [at for at, one in enumerate(audit.each) if one.saturated]
    if method != "auto" or audit.method != "sampled" or not saturated or audit.calibrated:
        return audit
    if len(audit.each) == 1:
        return audit  # its own walk was refused before
    each, nodes = list(audit.each), audit.nodes
    for at in sorted(saturated, key=lambda at: each[at].cost):
        again = alone(at)
        nodes += again.nodes
        if again.method != "exact":
            break  # what costs more has more under it
        guess = each[at].skew_normal_bits
        each[at] = dataclasses.replace(again.each[0], skew_normal_bits=guess)
    return dataclasses.replace(audit, each=tuple(each), nodes=nodes)
