"""Numerics: how far two costs must lie apart to be told apart, and who settles the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """

    asked: Asked
    twin: Asked | None
    tolerance: float
    worst: float = 0.0

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
        exact: Floats = token_costs(self.twin, paths).sum(1)
        self.worst = max(self.worst, worst_error(exact, costs))
        return exact


def appoint(
    asked: Asked,
    automaton: Automaton,
    paths: Sequence[Sequence[int]],
    costs: Floats,
    *,
    rng: np.random.Generator,
) -> Referee:
    """Choose the tolerance: by type, and eight times the largest error seen where that can be seen.

    Args:
        asked: The model that will walk.
        automaton: From which a few more paths are drawn at random.
        paths, costs: Of the secrets that were scored by the walk's model already.
        rng: For the draw.
    """
    if asked.dtype == torch.float64:
        return Referee(asked, None, FLOAT64)
    tolerance = FLOAT32_A_TOKEN * max(automaton.depth, 5)
    twin = asked.twin()
    if twin is None:
        return Referee(asked, None, tolerance)
    drawn = [draw_path(automaton, rng) for _ in range(_TRIED)]
    drawn_costs = token_costs(asked, drawn).sum(1)
    both = [*paths, *drawn]
    seen = worst_error(token_costs(twin, both).sum(1), np.concatenate([costs, drawn_costs]))
    return Referee(asked, twin, max(tolerance, _MARGIN * seen), worst=seen)


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
