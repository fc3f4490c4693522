"""Numerics: how far two costs must lie apart to be told apart, and who settles the rest."""

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
    """Knows how exact the walk's costs are, and re-scores close calls in float64.

    Attributes:
        asked: The model that walks.
        twin: The same model in float64; ``None`` if there is none or the walk is in float64.
        tolerance: Bits within which two costs of the walk are a close call.
        worst: The largest error of the walk's costs that was seen.
        known: Costs in float64 of paths that were scored before.
    """

    asked: Asked
    twin: Asked | None
    tolerance: float
    worst: float = 0.0
    known: dict[tuple[int, ...], float] = field(default_factory=dict)

    @property
    def in_doubt(self) -> bool:
        """Whether close calls stay close: nobody settles them, and the walk is not exact."""
        return self.twin is None and self.tolerance > FLOAT64

    @property
    def settled_to(self) -> float:
        """Bits within which costs remain in doubt after re-scoring."""
        return self.tolerance if self.in_doubt else FLOAT64

    @property
    def confirmed(self) -> bool:
        """Whether the walk was seen to be at least twice as exact as the tolerance asks for."""
        return self.worst <= self.tolerance / 2

    def widen(self, *, missed: bool = False) -> None:
        """Take the errors that were seen into the tolerance.

        Args:
            missed: Whether an error was too large to be seen: then it is that of float32 at least.
        """
        unseen = max(_MARGIN * self.tolerance, FLOAT32_A_TOKEN) if missed else 0.0
        self.tolerance = max(_MARGIN * self.worst, unseen)

    def compare(self, paths: Sequence[Sequence[int]], costs: Floats) -> None:
        """Note how far the walk's costs of these paths are from those of asking for them alone.

        Answers of any type may come from coarser arithmetic, and then depend on who else is asked.
        """
        self.worst = max(self.worst, worst_error(token_costs(self.asked, paths).sum(1), costs))

    def rescore(self, paths: Sequence[Sequence[int]], costs: Floats) -> Floats:
        """Return the costs of these paths as exactly as they can be had; note how far off."""
        if self.twin is None:
            return costs
        if all(tuple(path) in self.known for path in paths):
            return np.array([self.known[tuple(path)] for path in paths])
        exact: Floats = token_costs(self.twin, paths).sum(1)
        self.worst = max(self.worst, worst_error(exact, costs))
        return exact


def appoint(
    asked: Asked,
    automaton: Automaton,
    paths: Sequence[Sequence[int]],
    *,
    rng: np.random.Generator,
    max_nodes: int | None = None,
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
        limit: Where it ends before the float64 twin has read the prefix, there is no twin.

    Returns:
        The referee, and the cost of each path in the walk's own arithmetic.
    """
    tolerance = FLOAT64
    if asked.dtype != torch.float64:
        tolerance = FLOAT32_A_TOKEN * max(automaton.depth, 5)
    try:
        twin = asked.twin(limit=limit)
    except OutOfTime:
        twin = None
    if twin is None:
        return Referee(asked, None, tolerance), token_costs(asked, paths).sum(1)
    tried = _TRIED if max_nodes is None else min(_TRIED, max_nodes // (4 * automaton.depth))
    both = [*paths, *(draw_path(automaton, rng) for _ in range(tried))]
    costs, exact = token_costs(asked, both).sum(1), token_costs(twin, both).sum(1)
    worst = worst_error(exact, costs)
    referee = Referee(asked, twin, max(tolerance, _MARGIN * worst), worst=worst)
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
