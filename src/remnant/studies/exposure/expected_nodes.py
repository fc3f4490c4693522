"""Estimates how many nodes an exact walk takes, from the costs of a few sampled secrets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import Template
from remnant.models.protocols import SequenceModel
from remnant.probes import Asked, token_costs
from remnant.probes.time_limit import TimeLimit
from remnant.search.automaton import Automaton, compile_template, secret_path

Floats = NDArray[np.float64]


def nodes_expected(
    model: SequenceModel,
    template: Template,
    secrets: Sequence[str],
    drawn: Sequence[str],
    *,
    limit: TimeLimit,
    memory: int | None = None,
) -> float:
    """Read the costs of secrets and of a few sampled ones, and estimate as ``nodes_under`` does.

    Args:
        model: The model under audit.
        template: From which the secrets come.
        secrets: To be ranked.
        drawn: Others of the template.
        limit: On the time of reading the prefix.
        memory: Bytes that may be held; None for the device's default.

    Raises:
        OutOfTime: The limit ended before the prefix was read.
    """
    encode = limit.encode(model.encode)
    automaton = compile_template(encode, template)
    if len(drawn) == 0:
        return nodes_under(automaton, np.zeros((len(secrets), 0)), np.zeros((0, 0)))
    paths = [secret_path(encode, automaton, template, each) for each in [*secrets, *drawn]]
    costs = token_costs(Asked(model, automaton.prefix, limit=limit), paths, memory=memory)
    return nodes_under(automaton, costs[: len(secrets)], costs[len(secrets) :])


def total_costs(costs: Floats) -> Floats:
    """Add up each row from left to right, whatever the number of rows: ties stay ties."""
    return np.asarray(np.cumsum(costs, axis=1)[:, -1])


def nodes_under(automaton: Automaton, costs: Floats, drawn_costs: Floats) -> float:
    """Estimate how many nodes a walk under the costliest secret takes.

    A prefix is visited if it costs no more than the costliest secret. At each depth the share of
    sampled prefixes that do stands for the share of all; without samples the whole tree is
    expected. No depth has more than ``2 ** cost`` such prefixes, since their probabilities add up
    to no more than 1: a secret that is cheap enough can be ranked in a space of any size.

    Args:
        automaton: Of the template's tokens.
        costs, drawn_costs: Of the tokens of secrets and of sampled ones, ``(secrets, depth)``, in
            bits; 0 beyond the end of a shorter one.
    """
    inner = np.array([min(w, 10**300) for w in automaton.widths[:-1]], dtype=np.float64)
    if len(drawn_costs) == 0:
        return float(inner.sum())
    bound = total_costs(costs).max()
    under = (np.cumsum(drawn_costs, axis=1) <= bound).sum(0)
    share = (under + 1) / (len(drawn_costs) + 1)
    most = 2.0 ** min(float(bound), 1000.0)
    least = math.fsum(np.minimum(inner * share[: len(inner)], most))
    return min(least, float(inner.sum()))
