"""Numerics: the tolerance for comparing two costs, and float64 for costs closer than that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.probes.asking import Asked
from remnant.probes.sequences import token_costs
from remnant.probes.time_limit import OutOfTime, TimeLimit
from remnant.search.automaton import Automaton

Floats = NDArray[np.float64]
FLOAT64 = 1e-9
FLOAT32_A_TOKEN = 2e-5
_MARGIN = 8.0
_TRIED = 32


@dataclass(slots=True, eq=False)
class Referee:
    """Holds the tolerance of the walk's costs, and re-scores close calls in float64.

    Attributes:
        asked: The model that walks.
        twin: The same model in float64; ``None`` if there is none or the walk is in float64.
        tolerance: Bits within which two costs of the walk are a close call.
        worst: The largest error of the walk's costs that was seen.
        known: Costs in float64 of paths that were scored before.
        memory: Bytes that may be held while paths are scored; None for the device's default.
    """

    scorer: Asked
    twin: Asked | None
    tolerance: float
    worst: float = 0.0
    known: dict[tuple[int, ...], float] = field(default_factory=dict)
    memory: int | None = None

    @property
    def in_doubt(self) -> bool:
        """Whether close calls stay undecided: there is no twin, and the walk is not exact."""
        return self.twin is None and self.tolerance > FLOAT64

    @property
    def settled_to(self) -> float:
        """Bits within which costs remain in doubt after re-scoring."""
        return self.tolerance if self.in_doubt else FLOAT64

    @property
    def confirmed(self) -> bool:
        """Whether the largest error seen is at most half the tolerance."""
        return self.worst <= self.tolerance / 2

    def widen(self, *, missed: bool = False) -> None:
        """Raise the tolerance to cover the errors that were seen.

        Args:
            missed: Whether an error was too large to be seen; the tolerance is then at least that
                of float32.
        """
        unseen = max(_MARGIN * self.tolerance, FLOAT32_A_TOKEN) if missed else 0.0
        self.tolerance = max(_MARGIN * self.worst, unseen)

    def compare(self, paths: Sequence[Sequence[int]], costs: Floats) -> None:
        """Update the largest error with the difference to scoring these paths on their own.

        A model may compute more coarsely than its type, so that answers depend on the batch.
        """
        self.worst = max(self.worst, worst_error(self._scored(self.scorer, paths), costs))

    def rescore(self, paths: Sequence[Sequence[int]], costs: Floats) -> Floats:
        """Return these paths' costs in float64 where there is a twin; update the largest error."""
        if self.twin is None:
            return costs
        if all(tuple(path) in self.known for path in paths):
            return np.array([self.known[tuple(path)] for path in paths])
        exact = self._scored(self.twin, paths)
        self.worst = max(self.worst, worst_error(exact, costs))
        return exact

    def _scored(self, scorer: Asked, paths: Sequence[Sequence[int]]) -> Floats:
        costs: Floats = token_costs(scorer, paths, memory=self.memory).sum(1)
        return costs


def appoint(
    scorer: Asked,
    automaton: Automaton,
    paths: Sequence[Sequence[int]],
    *,
    rng: np.random.Generator,
    max_nodes: int | None = None,
    memory: int | None = None,
    limit: TimeLimit | None = None,
) -> tuple[Referee, Floats]:
    """Score the given secrets, and choose the tolerance.

    It follows from the type of the model's answers. Where there is a float64 twin, both score the
    secrets and 32 more that are drawn at random, and eight times the largest error seen is allowed
    for.

    Args:
        asked: The model that will walk.
        automaton: Of the template.
        paths: Of the given secrets; there may be none.
        rng: For the draw.
        max_nodes: The walk's budget, of which the draw may take a quarter.
        memory: The walk's budget in bytes.
        limit: Where it ends before the float64 twin has read the prefix, there is no twin.

    Returns:
        The referee, and the cost of each path in the walk's own arithmetic.
    """
    tolerance = FLOAT64
    if scorer.dtype != torch.float64:
        tolerance = FLOAT32_A_TOKEN * max(automaton.depth, 5)
    try:
        twin = scorer.twin(limit=limit)
    except OutOfTime:
        twin = None
    if twin is None:
        referee = Referee(scorer, None, tolerance, memory=memory)
        return referee, token_costs(scorer, paths, memory=memory).sum(1)
    tried = _TRIED if max_nodes is None else min(_TRIED, max_nodes // (4 * automaton.depth))
    both = [*paths, *(draw_path(automaton, rng) for _ in range(tried))]
    costs, exact = (token_costs(each, both, memory=memory).sum(1) for each in (scorer, twin))
    worst = worst_error(exact, costs)
    tolerance = max(tolerance, _MARGIN * worst)
    referee = Referee(scorer, twin, tolerance, worst=worst, memory=memory)
    referee.known = {tuple(p): float(c) for p, c in zip(paths, exact, strict=False)}
    return referee, costs[: len(paths)]


def worst_error(exact: Floats, costs: Floats) -> float:
    """Return the largest distance between two sets of costs; equal infinities are none."""
    apart = np.zeros(len(exact))
    differ = exact != costs
    apart[differ] = np.abs(exact[differ] - costs[differ])
    return float(apart.max(initial=0.0))


def draw_path(automaton: Automaton, rng: np.random.Generator) -> list[int]:
    """Return the tokens of a secret, every edge of a place being equally likely."""
    place = 0
    path: list[int] = []
    while True:
        first, end = int(automaton.offsets[place]), int(automaton.offsets[place + 1])
        if first == end or (automaton.final[place] and path and rng.random() < 0.5):
            return path
        edge = int(rng.integers(first, end))
        path.append(int(automaton.tokens[edge]))
        place = int(automaton.targets[edge])
