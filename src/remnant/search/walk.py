"""Walks the tree level by level, in depth-first batches that fit a memory budget.

An expanded batch keeps its model state and the costs of the children within the bound. The deepest
batch is expanded first, so that at most one batch per level is held, whatever the space.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import torch
from torch import Tensor

from remnant.errors import InvalidInput, require
from remnant.probes.counted_model import BITS, Asked, memory_budget, nan_answer
from remnant.progress import Progress
from remnant.search.automaton import Automaton

CPU_ROWS = 4096
CUDA_ROWS = 1 << 20


class Visitor(Protocol):
    """Receives the leaves of a walk and sets its bound."""

    def bound(self) -> float:
        """Return the cost in bits above which nothing is of interest."""
        ...

    def leaves(self, costs: Tensor, paths: Callable[[Tensor], Tensor]) -> None:
        """Take the costs of secrets; ``paths(rows)`` gives the tokens of some of them."""
        ...


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a walk may use.

    Attributes:
        max_nodes: Rows passed to ``step``; ``None`` for no end.
        max_seconds: ``None`` for no end.
        memory: Bytes; ``None`` means half of what is free, and on a CPU at most 1 GiB.
    """

    max_nodes: int | None = None
    max_seconds: float | None = None
    memory: int | None = None

    def check(self, automaton: Automaton) -> None:
        """Refuse a budget that cannot reach a single secret."""
        faults = []
        for name, kinds in (("max_nodes", Integral), ("max_seconds", Real), ("memory", Integral)):
            given = getattr(self, name)
            if given is not None and (isinstance(given, bool) or not isinstance(given, kinds)):
                what = "whole number" if kinds is Integral else "number"
                faults.append(f"{name}={given!r} is not a {what}")
        require(faults)
        if self.max_nodes is not None and self.max_nodes < automaton.depth:
            faults.append(
                f"max_nodes={self.max_nodes} is less than the template's depth of "
                f"{automaton.depth} tokens"
            )
        if self.max_seconds is not None and not self.max_seconds > 0:
            faults.append(f"max_seconds={self.max_seconds} is not above 0")
        if self.memory is not None and self.memory < 1:
            faults.append(f"memory={self.memory} is less than one byte")
        require(faults, hint="Give it a larger budget.")


@dataclass(slots=True, eq=False)
class _Batch:
    """Expanded rows, and their children that are not expanded yet."""

    state: Any
    paths: Tensor
    parents: Tensor
    edges: Tensor
    costs: Tensor
    at: int = 0

    def next(self, rows: int, bound: float) -> tuple[Tensor, Tensor, Tensor] | None:
        """Hand out up to ``rows`` waiting children that are within the bound."""
        while self.at < len(self.costs):
            chunk = slice(self.at, self.at + rows)
            self.at += rows
            parents, edges, costs = self.parents[chunk], self.edges[chunk], self.costs[chunk]
            within = costs <= bound
            if not bool(within.all()):
                parents, edges, costs = parents[within], edges[within], costs[within]
            if len(costs):
                return parents, edges, costs
        return None


class Walk:
    """One walk of a template's tree.

    Args:
        asked: The model, which has read the prefix.
        automaton: The template's token sequences.
        budget: When to stop.
        rows: Most rows per pass; by default as many as fit the memory.
        cheapest_first: Whether a batch's children are taken in the order of their cost.
        beam: Keep only this many prefixes of each length, the cheapest: a beam search.
    """

    def __init__(
        self,
        scorer: Asked,
        automaton: Automaton,
        *,
        budget: Budget,
        rows: int | None = None,
        cheapest_first: bool = False,
        beam: int | None = None,
    ) -> None:
        fit = rows_that_fit(scorer, automaton, budget.memory)
        self.scorer, self.automaton, self.budget = scorer, automaton, budget
        self.rows = fit if rows is None else min(fit, rows)
        self._beam = None if beam is None else min(beam, self.rows)
        self._cheapest_first = cheapest_first or beam is not None
        self._stack: list[_Batch] = []
        device = scorer.device
        self._offsets = torch.from_numpy(automaton.offsets).to(device)
        self._tokens = torch.from_numpy(automaton.tokens).to(device)
        self._targets = torch.from_numpy(automaton.targets).to(device)
        self._final = torch.from_numpy(automaton.final).to(device)
        self._inner = self._offsets[1:] > self._offsets[:-1]

    def run(
        self, visitor: Visitor, *, since: float | None = None, progress: Progress | None = None
    ) -> bool:
        """Visit every secret within the visitor's bound; return whether the walk came to its end.

        Args:
            visitor: Takes the leaves and sets the bound.
            since: When the time budget began, by ``time.monotonic``.
            progress: Called with ``"search"`` and how many thousandths of the space are settled.
        """
        since = time.monotonic() if since is None else since
        start = torch.zeros(1, dtype=torch.float64, device=self.scorer.device)
        if bool(self.automaton.final[0]):
            visitor.leaves(start, lambda rows: rows.new_zeros((len(rows), 0), dtype=torch.int32))
        nowhere = torch.zeros((1, 0), dtype=torch.int32, device=self.scorer.device)
        place = torch.zeros(1, dtype=torch.int64, device=self.scorer.device)
        self._expand(self.scorer.first, self.scorer.first_state, nowhere, place, start, visitor)
        while self._stack:
            rows = self._rows_left(since)
            if rows < 1:
                return False
            batch = self._stack[-1]
            at = batch.at
            chunk = batch.next(rows, visitor.bound())
            answer = None if chunk is None else self._ask(batch, chunk)
            if chunk is not None and answer is None:  # out of memory: again, with fewer rows
                batch.at = at
                continue
            if batch.at >= len(batch.costs):
                self._stack.pop()
            del batch
            if chunk is None or answer is None:
                continue
            log_probs, state, paths = answer
            _, edges, costs = chunk
            self._expand(log_probs, state, paths, self._targets[edges], costs, visitor)
            if progress is not None:
                settled = 1 - self.unsettled(visitor.bound()) / self.automaton.counts[0]
                progress("search", int(1000 * settled), 1000)
        if progress is not None:
            progress("search", 1000, 1000)
        return True

    def _ask(
        self, batch: _Batch, chunk: tuple[Tensor, Tensor, Tensor]
    ) -> tuple[Tensor, Any, Tensor] | None:
        """Let the model read the last token of some children; return its answer and their paths.

        Where memory runs out, the walk goes on with half as many rows, and there is no answer.

        Raises:
            InvalidInput: There is too little memory for one row.
        """
        parents, edges, _ = chunk
        tokens = self._tokens[edges]
        counted = self.scorer.nodes
        try:
            state = self.scorer.take(batch.state, parents)
            log_probs, state = self.scorer.step(state, tokens)
        except torch.OutOfMemoryError as fault:
            if len(tokens) == 1:
                raise InvalidInput(
                    "The memory of the device does not hold one more row.",
                    hint="Free some of it, or place the model on more devices.",
                ) from fault
            self.scorer.nodes = counted
            self.rows = max(1, len(tokens) // 2)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            return None
        return log_probs, state, torch.cat([batch.paths[parents], tokens[:, None].int()], 1)

    def unsettled(self, bound: float) -> int:
        """Return how many secrets a walk that was ended had not looked at."""
        total = 0
        for batch in self._stack:
            waiting = slice(batch.at, None)
            targets = self._targets[batch.edges[waiting][batch.costs[waiting] <= bound]]
            places, counts = targets.unique(return_counts=True)
            for place, times in zip(places.tolist(), counts.tolist(), strict=True):
                ahead = self.automaton.counts[place] - int(self.automaton.final[place])
                total += times * ahead
        return total

    def _rows_left(self, since: float) -> int:
        seconds, nodes = self.budget.max_seconds, self.budget.max_nodes
        if seconds is not None and time.monotonic() - since >= seconds:
            return 0
        return self.rows if nodes is None else min(self.rows, nodes - self.scorer.nodes)

    def _expand(
        self,
        log_probs: Tensor,
        state: Any,
        paths: Tensor,
        places: Tensor,
        before: Tensor,
        visitor: Visitor,
    ) -> None:
        """Score all children of these rows; visit the leaves and keep those that go on."""
        parents, edges, costs = (
            self._children_of_one_place(log_probs, before, paths.shape[1])
            if self.automaton.chain
            else self._children(log_probs, before, places)
        )
        if bool(costs.sum().isnan()):
            raise nan_answer()
        bound = visitor.bound()
        if self.automaton.chain:
            if paths.shape[1] + 1 == self.automaton.depth:
                self._visit(visitor, costs, parents, edges, paths)
                return
            keep = (costs <= bound).nonzero()[:, 0]
        else:
            targets = self._targets[edges]
            ends = (self._final[targets] & (costs <= bound)).nonzero()[:, 0]
            if len(ends):
                self._visit(visitor, costs[ends], parents[ends], edges[ends], paths)
            keep = (self._inner[targets] & (costs <= visitor.bound())).nonzero()[:, 0]
        if len(keep) == 0:
            return
        costs = costs[keep]
        if self._cheapest_first:
            costs, order = costs.sort(stable=True)
            costs, keep = costs[: self._beam], keep[order[: self._beam]]
        self._stack.append(_Batch(state, paths, parents[keep], edges[keep], costs))

    def _children_of_one_place(
        self, log_probs: Tensor, before: Tensor, place: int
    ) -> tuple[Any, Any, Tensor]:
        first, end = int(self.automaton.offsets[place]), int(self.automaton.offsets[place + 1])
        allowed = log_probs.index_select(1, self._tokens[first:end])
        costs = (before[:, None] - in_bits(allowed)).flatten()
        wide = end - first
        return _Computed(lambda i: i // wide), _Computed(lambda i: first + i % wide), costs

    def _children(
        self, log_probs: Tensor, before: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        firsts = self._offsets[places]
        counts = self._offsets[places + 1] - firsts
        parents = torch.repeat_interleave(counts)
        within = (
            torch.arange(len(parents), device=counts.device) - (counts.cumsum(0) - counts)[parents]
        )
        edges = firsts[parents] + within
        allowed = log_probs[parents, self._tokens[edges]]
        return parents, edges, before[parents] - in_bits(allowed)

    def _visit(
        self, visitor: Visitor, costs: Tensor, parents: Any, edges: Any, paths: Tensor
    ) -> None:
        def path_of(rows: Tensor) -> Tensor:
            last = self._tokens[edges[rows]][:, None].int()
            return torch.cat([paths[parents[rows]], last], 1)

        visitor.leaves(costs, path_of)


def in_bits(log_probs: Tensor) -> Tensor:
    """Return the logarithms to base 2; rounding may leave a certain token at 1 + 1e-7."""
    return log_probs.double().clamp(max=0.0) * BITS


class _Computed:
    """Indices that are computed on access, so that a chain's ten million need no memory."""

    def __init__(self, rule: Callable[[Tensor], Tensor]) -> None:
        self._rule = rule

    def __getitem__(self, rows: Tensor) -> Tensor:
        return self._rule(rows)


def rows_that_fit(scorer: Asked, automaton: Automaton, memory: int | None) -> int:
    """Return how many rows may be asked at a time within ``memory`` bytes."""
    memory = memory_budget(scorer.devices, memory)
    if bytes_held(scorer, automaton, 1) > memory:
        raise InvalidInput(
            f"memory={memory} bytes do not hold one row; it takes "
            f"{bytes_held(scorer, automaton, 1)}.",
            hint="Give the walk more memory.",
        )
    low, high = 1, CUDA_ROWS if scorer.device.type == "cuda" else CPU_ROWS
    while low < high:
        middle = (low + high + 1) // 2
        fits = bytes_held(scorer, automaton, middle) <= memory
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def bytes_held(scorer: Asked, automaton: Automaton, rows: int) -> int:
    """Return the bytes that a walk holds with this many rows a pass.

    Each level of the tree holds at most one batch: its state, its tokens and three numbers for each
    child. The current answer and temporary copies of its state come on top.
    """
    held = scorer.row_bytes + 24 * automaton.widest + 4 * automaton.depth
    answer = scorer.vocabulary * scorer.dtype.itemsize
    asking = 3 * answer + 8 * scorer.row_bytes + 40 * automaton.widest
    return rows * asking + sum(min(rows, width) for width in automaton.widths) * held
