"""What a ranking or a search will cost: nodes, from a few sampled secrets; time and memory.

Time and memory are those of this machine, from a few real steps of the model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.canaries import Template
from remnant.models.protocols import SequenceModel
from remnant.probes import Asked, token_costs
from remnant.probes.counted_model import TimeLimit
from remnant.search.automaton import Automaton, compile_template, secret_path
from remnant.search.walk import bytes_held, rows_that_fit

Floats = NDArray[np.float64]
_FEW_ROWS, _MANY_ROWS = 32, 1024
_SHORT = 0.05  # seconds; a step that takes less is timed again with more rows


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCost:
    """What is expected of one template in one model.

    Attributes:
        nodes: The most rows that the exact walk passes to the model.
        reference_nodes: Rows for the sampled references.
        row_seconds: Of one row, timed.
        memory: Bytes of the walk, and of a float64 copy of the weights where it needs one.
    """

    nodes: int
    reference_nodes: int
    row_seconds: float
    memory: int

    @property
    def exact_seconds(self) -> float:
        """At most this long by the exact method, which reads the references too."""
        return (self.nodes + self.reference_nodes) * self.row_seconds

    @property
    def sampled_seconds(self) -> float:
        """By sampling alone."""
        return self.reference_nodes * self.row_seconds


def estimate_search(
    model: SequenceModel,
    template: Template,
    *,
    max_nodes: int,
    references: int = 0,
    memory: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> SearchCost:
    """Time a few steps of the model, and bound what a walk of the template's tree takes.

    No state of the model changes, and nothing is drawn at random.

    Args:
        model: The model that will be asked.
        template: Whose tree is walked.
        max_nodes: Node budget of the walk.
        references: Secrets that are sampled.
        memory: Memory budget in bytes; None for the device's default.
        clock: Returns the time in seconds.

    Raises:
        RemnantError: As the measurement itself, such as a template that the model cannot encode.
    """
    automaton = compile_template(model.encode, template)
    asked = Asked(model, automaton.prefix)
    fitting = rows_that_fit(asked, automaton, memory)
    inner = automaton.widths[:-1]  # leaves are answered for, not asked
    return SearchCost(
        nodes=min(sum(inner), max_nodes),
        reference_nodes=sum(min(width, references) for width in inner),
        row_seconds=_row_seconds(asked, automaton, fitting, clock),
        memory=bytes_held(asked, automaton, fitting) + _twin_bytes(model, asked),
    )


def _row_seconds(
    asked: Asked, automaton: Automaton, fitting: int, clock: Callable[[], float]
) -> float:
    token = int(automaton.tokens[0]) if len(automaton.tokens) else 0
    seconds = rows = 1.0
    for many in (_FEW_ROWS, _FEW_ROWS, _MANY_ROWS):  # the first step warms the model up
        rows = min(many, fitting)
        start = clock()
        taken = asked.take(asked.first_state, torch.zeros(rows, dtype=torch.int64).to(asked.device))
        asked.step(taken, torch.full((rows,), token, device=asked.device))
        if asked.device.type == "cuda":
            torch.cuda.synchronize(asked.device)
        seconds = clock() - start
        if seconds > _SHORT and many == _FEW_ROWS:
            break
    return seconds / rows


def _twin_bytes(model: SequenceModel, asked: Asked) -> int:
    """Bytes of the float64 copy in which close calls are decided; 0 where there is none.

    Weights of low precision are not copied: the largest of them is cast at a time.
    """
    if asked.dtype == torch.float64 or not hasattr(model, "in_float64"):
        return 0
    module = getattr(model, "_model", None)
    if not isinstance(module, torch.nn.Module):
        return 0
    sizes = [parameter.numel() for parameter in module.parameters()]
    return 8 * (max(sizes, default=0) if asked.coarse else sum(sizes))


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
