"""Exposure of many secrets, with exact ranks for those that the references cannot rank."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from remnant.canaries import Template
from remnant.models.protocols import SequenceModel
from remnant.studies.exposure.audit import (
    PILOT,
    ExposureAudit,
    Method,
    ReadCosts,
    measure_costs,
    measure_exposure,
)


def measure_each(
    model: SequenceModel,
    template: Template,
    *,
    secrets: Sequence[str],
    rng: np.random.Generator,
    method: Method = "auto",
    **options: Any,
) -> ExposureAudit:
    """Measure exposure, and rank saturated secrets exactly.

    A walk that includes unexposed secrets visits most of the tree. Where ``"auto"`` therefore
    samples, secrets that no reference is as cheap as are ranked in walks of their own, the
    likeliest first, until a walk exceeds its budget. Such walks are short, because little of the
    tree costs less than these secrets.

    Args:
        model, template, secrets, rng, method: See ``measure_exposure``.
        options: Likewise.

    Returns:
        The audit. Secrets with a walk of their own have a rank; ``method`` is that of the others.

    Raises:
        InvalidInput: See ``measure_exposure``.
        NotEnoughEvidence: No references where sampling needs them.
    """
    audit = measure_exposure(model, template, secrets=secrets, rng=rng, method=method, **options)
    few = options | {"references": min(PILOT, len(audit.reference_costs))}
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
    """Do as ``measure_each`` where the costs of secrets and references are known.

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
    """Rank saturated secrets one by one, the likeliest first, until a walk exceeds its budget."""
    saturated = [at for at, secret in enumerate(audit.each) if secret.saturated]
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
