"""The search of the Secret Sharer paper: Dijkstra's algorithm, many nodes at a time."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from remnant.canaries.template import Template
from remnant.models.protocols import SequenceModel
from remnant.probes.counted_model import BITS
from remnant.search.automaton import Automaton
from remnant.search.baselines import begin, by_cost, result, spelled
from remnant.search.extraction import Extraction


@dataclass(order=True, slots=True)
class _Node:
    """A prefix in the queue, with the answer of its parent to start from."""

    cost: float
    path: tuple[int, ...]
    place: int = field(compare=False)
    state: Any = field(compare=False)
    row: int = field(compare=False)


def batched_dijkstra(
    model: SequenceModel, template: Template, *, at_once: int = 1000, top: int = 1
) -> Extraction:
    """Expand the cheapest ``at_once`` prefixes until a secret is found, then as long again.

    For comparison with ``extract``: the queue grows with the search, and stopping after twice the
    time to the first secret proves nothing.
    """
    scorer, automaton = begin(model, template)
    queue = _children(automaton, scorer.first, scorer.first_state, [_Node(0.0, (), 0, None, 0)])
    heapq.heapify(queue)
    leaves: dict[tuple[int, ...], float] = {(): 0.0} if automaton.final[0] else {}
    iterations, until = 0, None
    while queue and (until is None or iterations < until):
        iterations += 1
        pulled = [heapq.heappop(queue) for _ in range(min(at_once, len(queue)))]
        leaves |= {node.path: node.cost for node in pulled if automaton.final[node.place]}
        if leaves and until is None:
            until = 2 * iterations
        inner = sorted((node for node in pulled if _goes_on(automaton, node.place)), key=_parent)
        for _, group in itertools.groupby(inner, key=_parent):
            some = list(group)
            rows = torch.tensor([node.row for node in some], device=scorer.device)
            tokens = torch.tensor([node.path[-1] for node in some], device=scorer.device)
            answers, state = scorer.step(scorer.take(some[0].state, rows), tokens)
            for child in _children(automaton, answers, state, some):
                heapq.heappush(queue, child)
    candidates = spelled(sorted(leaves.items(), key=by_cost)[:top], automaton, template)
    return result(candidates, scorer, template, f"batched Dijkstra, {at_once} at once")


def _children(
    automaton: Automaton, answers: Tensor, state: Any, parents: list[_Node]
) -> list[_Node]:
    made = []
    costs = (-answers.double() * BITS).cpu().numpy()
    for row, parent in enumerate(parents):
        edges = slice(automaton.offsets[parent.place], automaton.offsets[parent.place + 1])
        for token, target in zip(automaton.tokens[edges], automaton.targets[edges], strict=True):
            cost = parent.cost + float(costs[row, token])
            made.append(_Node(cost, (*parent.path, int(token)), int(target), state, row))
    return made


def _goes_on(automaton: Automaton, place: int) -> bool:
    return bool(automaton.offsets[place] < automaton.offsets[place + 1])


def _parent(node: _Node) -> int:
    return id(node.state)
