"""Numerics: how far two costs must lie apart to be told apart, and who settles the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.probes.asking import Asked
from remnant.probes.sequences import token_costs
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
    def nodes(self) -> int:
        """Rows passed to ``step``, by either model."""
        return self.asked.nodes + (0 if self.twin is None else self.twin.nodes)

    @property
    def settled_to(self) -> float:
        """Bits within which costs remain in doubt after re-scoring."""
        exact = self.twin is not None or self.asked.dtype == torch.float64
        return FLOAT64 if exact else self.tolerance

    @property
    def confirmed(self) -> bool:
        """Whether the walk was seen to be at least twice as exact as the tolerance asks for."""
        return self.worst <= self.tolerance / 2

    def widen(self) -> None:
        """Take the errors that were seen into the tolerance."""
        self.tolerance = _MARGIN * self.worst

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

    Returns:
        The referee, and the cost of each path in the walk's own arithmetic.
    """
    if asked.dtype == torch.float64:
        return Referee(asked, None, FLOAT64), token_costs(asked, paths).sum(1)
    tolerance = FLOAT32_A_TOKEN * max(automaton.depth, 5)
    twin = asked.twin()
    if twin is None:
        return Referee(asked, None, tolerance), token_costs(asked, paths).sum(1)
    both = [*paths, *(draw_path(automaton, rng) for _ in range(_TRIED))]
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
