"""Numerics: the tolerance for comparing two costs, and float64 for costs closer than that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.errors import UnsupportedModel
from remnant.probes.counted_model import Asked, OutOfTime, TimeLimit
from remnant.probes.sequences import token_costs
from remnant.search.automaton import Automaton

Floats = NDArray[np.float64]
FLOAT64 = 1e-9
FLOAT32_A_TOKEN = 2e-5
_MARGIN = 8.0
_TRIED = 32


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How a model of low precision was held to float64.

    Attributes:
        precision: In which it computes, such as ``"bfloat16"``.
        compared: Secrets whose cost was computed in both.
        worst: The largest difference of costs that was seen, in bits.
        tolerance: Bits within which two costs of the model were a close call: eight times the
            largest difference on the sample, or more.
        rescored: Secrets whose cost was computed again in float64, as close calls.
        settled: Whether all close calls were. Otherwise there were too many, and ranks are
            intervals that hold the float64 rank.
    """

    precision: str
    compared: int
    worst: float
    tolerance: float
    rescored: int
    settled: bool

    @property
    def sentence(self) -> str:
        """What was done, in words."""
        sample = f"Computed in {self.precision}. A sample of {self.compared} secrets"
        apart = f"scored again in float64: costs differ by up to {self.worst:.2g} bits"
        near = f"within {self.tolerance:.2g} bits of a decision"
        if self.settled:
            close = f"{self.rescored:,}".replace(",", " ")
            return (
                f"{sample} and {close} close calls ({near}) were {apart}, and the order is that of "
                "float64."
            )
        return (
            f"{sample} was {apart}. Too many secrets are {near} to be scored again, so ranks are "
            "intervals that hold the float64 rank."
        )


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
        compared: Paths whose costs were compared with those of the twin.
        rescored: Paths of the last ``rescore``.
    """

    scorer: Asked
    twin: Asked | None
    tolerance: float
    worst: float = 0.0
    known: dict[tuple[int, ...], float] = field(default_factory=dict)
    memory: int | None = None
    compared: int = 0
    rescored: int = 0

    def arithmetic(self, *, settled: bool) -> Arithmetic | None:
        """Return how low precision was dealt with; None for a model of float32 or float64."""
        if not self.scorer.coarse:
            return None
        return Arithmetic(
            precision=str(self.scorer.precision).removeprefix("torch."),
            compared=self.compared,
            worst=self.worst,
            tolerance=self.tolerance,
            rescored=self.rescored if settled else 0,
            settled=settled,
        )

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
        self.rescored = len({tuple(path) for path in paths})
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
    for. A model that computes in less than float32 must have a twin, and the draw is made whatever
    the budget.

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

    Raises:
        UnsupportedModel: A model that computes in less than float32 has no float64 twin.
        OutOfTime: The limit ended before such a model was compared with its twin.
    """
    tolerance = FLOAT64
    if scorer.dtype != torch.float64:
        tolerance = FLOAT32_A_TOKEN * max(automaton.depth, 5)
    try:
        twin = scorer.twin(limit=limit)
    except OutOfTime:
        if scorer.coarse:
            raise
        twin = None
    if twin is None and scorer.coarse:
        raise UnsupportedModel(
            f"The model computes in {scorer.precision} and offers no float64 twin, so its costs "
            "cannot be held to a tolerance.",
            hint="Load it in float32.",
        )
    if twin is None:
        referee = Referee(scorer, None, tolerance, memory=memory)
        return referee, token_costs(scorer, paths, memory=memory).sum(1)
    tried = _TRIED
    if max_nodes is not None and not scorer.coarse:
        tried = min(_TRIED, max_nodes // (4 * automaton.depth))
    both = [*paths, *(draw_path(automaton, rng) for _ in range(tried))]
    costs, exact = (token_costs(each, both, memory=memory).sum(1) for each in (scorer, twin))
    worst = worst_error(exact, costs)
    tolerance = max(tolerance, _MARGIN * worst)
    referee = Referee(
        scorer, twin, tolerance, worst=worst, memory=memory, compared=len(set(map(tuple, both)))
    )
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
