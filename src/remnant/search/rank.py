"""Exact rank by pruned enumeration: a secret's rank among all secrets of its template."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.canaries.template import Template
from remnant.errors import InvalidInput
from remnant.models.protocols import SequenceModel
from remnant.probes.counted_model import Asked, TimeLimit, check_tokens
from remnant.progress import Progress
from remnant.search.automaton import check_template, compile_template, secret_path
from remnant.search.close_calls import Arithmetic, Referee, appoint, worst_error
from remnant.search.walk import Budget, Walk

Floats = NDArray[np.float64]
_KEPT_CLOSE_CALLS = 100_000
_KEPT_COARSE = 20_000  # of a model in low precision, whose weights are cast for each pass
_FEW = 8


@dataclass(frozen=True, slots=True)
class ExactExposure:
    """The rank of one secret in the whole space, and its exposure.

    Attributes:
        rank: 1 + the number of other secrets at or under its cost; ``rank_high`` where the two ends
            differ.
        rank_low, rank_high: Proven bounds of the rank. They differ if a budget ended the walk, or
            if costs are too close to be distinguished.
        bits: Exposure, ``log2(space) - log2(rank)``.
        low, high: Exposure at ``rank_high`` and ``rank_low``.
        cost: ``-log2 p`` of the secret, from the first hole to the end of the template.
        space: Number of secrets.
        nodes: Rows passed to the model, which all secrets of one call share; those passed to its
            float64 twin, to settle close calls, come on top.
        finished: False when a budget ended the walk.
        exact: Whether the rank is one number: the walk was finished, and no costs were too close to
            be distinguished.
        tolerance: Bits within which two costs count as equal.
        method: ``"exact"``.
    """

    rank: int
    rank_low: int
    rank_high: int
    bits: float
    low: float
    high: float
    cost: float
    space: int
    nodes: int
    finished: bool
    tolerance: float
    method: str = "exact"

    @property
    def exact(self) -> bool:
        """Whether the rank is one number."""
        return self.finished and self.rank_low == self.rank_high


class ExactExposures(Sequence[ExactExposure]):
    """One ``ExactExposure`` per secret, in the order given; as arrays, too.

    Attributes:
        arithmetic: How low precision was dealt with; None for a model of float32 or float64.
    """

    def __init__(self, each: Sequence[ExactExposure], arithmetic: Arithmetic | None = None) -> None:
        self._each = tuple(each)
        self.arithmetic = arithmetic

    @overload
    def __getitem__(self, index: int) -> ExactExposure: ...
    @overload
    def __getitem__(self, index: slice) -> ExactExposures: ...
    def __getitem__(self, index: int | slice) -> ExactExposure | ExactExposures:
        chosen = self._each[index]
        return ExactExposures(chosen, self.arithmetic) if isinstance(chosen, tuple) else chosen

    def __len__(self) -> int:
        return len(self._each)

    def __repr__(self) -> str:
        return f"ExactExposures({list(self._each)})"

    @property
    def bits(self) -> Floats:
        """Exposure of each secret."""
        return np.array([exposure.bits for exposure in self._each])

    @property
    def rank(self) -> NDArray[Any]:
        """Rank of each secret; Python integers, since a space may be larger than 2**63."""
        return np.array([exposure.rank for exposure in self._each], dtype=object)

    @property
    def rank_low(self) -> NDArray[Any]:
        """The lowest that each rank can be."""
        return np.array([exposure.rank_low for exposure in self._each], dtype=object)

    @property
    def rank_high(self) -> NDArray[Any]:
        """The highest that each rank can be."""
        return np.array([exposure.rank_high for exposure in self._each], dtype=object)

    @property
    def nodes(self) -> int:
        """Rows passed to the model, in all."""
        return self._each[0].nodes

    @property
    def finished(self) -> bool:
        """Whether no budget ended the walk."""
        return all(exposure.finished for exposure in self._each)

    @property
    def exact(self) -> bool:
        """Whether each rank is one number."""
        return all(exposure.exact for exposure in self._each)


def exact_exposure(
    model: SequenceModel,
    template: Template,
    *,
    secrets: Sequence[str],
    max_nodes: int | None = None,
    max_seconds: float | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> ExactExposures:
    r"""Rank secrets among all that the template can produce, without scoring all of them.

    The cost of a prefix, ``-log2 p`` in bits, never falls as the prefix grows. So a prefix that
    costs more than the secret is dropped with all its continuations. All secrets of a call share
    one walk.

    Args:
        model: Anything with ``encode``, ``start``, ``step`` and ``take``.
        template: From which the secrets come.
        secrets: To be ranked.
        max_nodes: Rows passed to ``step`` after which the walk is ended. The secrets themselves are
            always scored.
        max_seconds: After which it is ended; it also binds while the prefix is encoded and read.
        memory: Bytes that the walk may hold; half of what is free, on a CPU at most 1 GiB.
        progress: Called with ``"search"``, thousandths of the space settled, and 1000.

    Guarantees:
        * ``rank_low <= true rank <= rank_high``, also where a budget ended the walk.
        * Ties count against the canary: ``rank`` is ``rank_high``.
        * A float32 model that offers ``in_float64()`` is ranked by its float64 costs: whatever
          lies within ``tolerance`` of a secret is scored again. So is a model in bfloat16 or
          float16, up to 20 000 close calls; with more of them the rank is an interval.

    Raises:
        InvalidInput: A secret outside the space, a template the model cannot encode, a tokenizer
            that joins characters across a hole, a budget smaller than the template's depth.
        OutOfTime: ``max_seconds`` were over before the prefix was read.
        UnsupportedModel: NaN or log-probabilities that are not normalised.

    Example:
        >>> import torch
        >>> class Coin:  # heads twice as likely as tails
        ...     def encode(self, text):
        ...         return ["ht".index(c) for c in text]
        ...     def start(self, prefix):
        ...         return self.step(None, torch.zeros(1))
        ...     def step(self, state, tokens):
        ...         odds = torch.tensor([2 / 3, 1 / 3], dtype=torch.float64)
        ...         return odds.log().repeat(len(tokens), 1), None
        ...     def take(self, state, rows):
        ...         return None
        >>> template = Template("{choice:h|t}{choice:h|t}")
        >>> exposure = exact_exposure(Coin(), template, secrets=["ht"])[0]
        >>> exposure.rank, exposure.bits  # "hh" is likelier, "th" ties
        (3, 0.4150374992788439)
    """
    wanted = _listed(secrets)
    check_template(template)
    limit = TimeLimit(max_seconds)
    encode = limit.encode(model.encode)
    automaton = compile_template(encode, template)
    paths = [secret_path(encode, automaton, template, secret) for secret in wanted]
    budget = Budget(max_nodes=max_nodes, max_seconds=max_seconds, memory=memory)
    budget.check(automaton)
    scorer = Asked(model, automaton.prefix, limit=limit)
    check_tokens(np.append(automaton.tokens, automaton.prefix), scorer.vocabulary)
    rng = np.random.default_rng(0)
    referee, costs = appoint(
        scorer, automaton, paths, rng=rng, max_nodes=max_nodes, memory=memory, limit=limit
    )
    # A secret of probability 0 ties with all others of probability 0: its rank is the whole space.
    possible = np.flatnonzero(np.isfinite(costs))
    ranks, finished, settled = _walk_ranks(
        [paths[i] for i in possible],
        costs[possible],
        Walk(scorer, automaton, budget=budget),
        referee,
        since=limit.since,
        progress=progress,
    )
    exposures = [
        _exposure(math.inf, template.space, template.space, True, template, referee)
    ] * len(paths)
    for i, (cost, low, high) in zip(possible, ranks, strict=True):
        exposures[i] = _exposure(cost, low, high, finished, template, referee)
    return ExactExposures(exposures, referee.arithmetic(settled=settled))


def _listed(secrets: object) -> list[str]:
    if isinstance(secrets, Iterable) and not isinstance(secrets, str) and (wanted := list(secrets)):
        return wanted
    raise InvalidInput("secrets is not a list of at least one secret.")


def _walk_ranks(
    paths: Sequence[Sequence[int]],
    costs: Floats,
    walk: Walk,
    referee: Referee,
    *,
    since: float,
    progress: Progress | None,
) -> tuple[list[tuple[float, int, int]], bool, bool]:
    """Return cost, lowest and highest rank of each path, whether no budget ended the walk, and
    whether all close calls were scored again.
    """
    if len(paths) == 0:
        return [], True, True
    space = walk.automaton.counts[0]
    while True:
        kept = _KEPT_COARSE if referee.scorer.coarse else _KEPT_CLOSE_CALLS
        count = _Count(costs, referee.tolerance, referee.scorer.device, kept=kept)
        finished = walk.run(count, since=since, progress=progress)
        unsettled = 0 if finished else walk.unsettled(count.bound())
        ranks = count.ranks(paths, referee)
        if not finished or (referee.confirmed and not count.missed):
            break
        referee.widen(missed=count.missed)  # the walk was less exact than was thought: once more
    # A secret is at or under its own cost, whether the walk met it there or not.
    ends = [(cost, max(low, 1), high + unsettled) for cost, low, high in ranks]
    ends = [(cost, low, min(max(low, high), space)) for cost, low, high in ends]
    return ends, finished, not count.overflow


def _exposure(
    cost: float, low: int, high: int, finished: bool, template: Template, referee: Referee
) -> ExactExposure:
    ceiling = math.log2(template.space)
    return ExactExposure(
        rank=high,
        rank_low=low,
        rank_high=high,
        bits=ceiling - math.log2(high),
        low=ceiling - math.log2(high),
        high=ceiling - math.log2(low),
        cost=cost,
        space=template.space,
        nodes=referee.scorer.nodes,
        finished=finished,
        tolerance=referee.settled_to,
    )


class _Count:
    """Counts the leaves that are clearly cheaper than each secret, and keeps the close calls.

    Attributes:
        missed: Whether a secret's own leaf was not among the close calls: the walk's arithmetic is
            off by more than the tolerance.
        overflow: Whether there were more close calls than are kept.
    """

    def __init__(self, costs: Floats, tolerance: float, device: torch.device, *, kept: int) -> None:
        self._costs, self._tolerance = costs, tolerance
        self._order = np.argsort(costs, kind="stable")
        self._bound = float(costs.max()) + tolerance
        self._lows = torch.from_numpy(costs[self._order] - tolerance).to(device)
        self._highs = torch.from_numpy(costs[self._order] + tolerance).to(device)
        self._under = torch.zeros(len(costs), dtype=torch.int64, device=device)
        self._upto = torch.zeros(len(costs), dtype=torch.int64, device=device)
        self._close: list[tuple[Tensor, Tensor]] = []
        self._most, self._kept, self.overflow, self.missed = kept, 0, False, False

    def bound(self) -> float:
        """Return the cost above which no leaf affects a rank."""
        return self._bound

    def leaves(self, costs: Tensor, paths: Callable[[Tensor], Tensor]) -> None:
        """Count leaves, and keep those that are within the tolerance of a secret's cost."""
        secrets = len(self._lows)
        if secrets <= _FEW:
            under = torch.stack([(costs < low).sum() for low in self._lows])
            upto = torch.stack([(costs <= high).sum() for high in self._highs])
            if torch.equal(under, upto):
                self._under += under
                self._upto += upto
                return
        over_low = torch.searchsorted(self._lows, costs, right=True)
        over_high = torch.searchsorted(self._highs, costs)
        if secrets > _FEW:
            under = torch.bincount(over_low, minlength=secrets + 1)[:secrets].cumsum(0)
            upto = torch.bincount(over_high, minlength=secrets + 1)[:secrets].cumsum(0)
        self._under += under
        self._upto += upto
        close = (over_low > over_high).nonzero()[:, 0]
        self._kept += len(close)
        self.overflow |= self._kept > self._most
        if len(close) and not self.overflow:
            self._close.append((costs[close].cpu(), paths(close).cpu()))

    def ranks(
        self, paths: Sequence[Sequence[int]], referee: Referee
    ) -> list[tuple[float, int, int]]:
        """Return each secret's cost, and the least and greatest number of leaves at or under it."""
        under, upto = np.empty(len(paths), dtype=np.int64), np.empty(len(paths), dtype=np.int64)
        under[self._order] = self._under.cpu().numpy()
        upto[self._order] = self._upto.cpu().numpy()
        if self.overflow:
            ends = zip(self._costs.tolist(), under.tolist(), upto.tolist(), strict=True)
            return [(cost, low + 1, high) for cost, low, high in ends]
        walked = np.concatenate([np.zeros(0), *(costs.numpy() for costs, _ in self._close)])
        close = [tuple(path) for _, some in self._close for path in some.tolist()]
        rows = {path: row for row, path in enumerate(close)}
        ranks = []
        own = [rows.get(tuple(path)) for path in paths]
        self.missed = None in own
        # A secret's own cost is read off the walk, if the walk got there.
        costs = np.array([self._costs[j] if r is None else walked[r] for j, r in enumerate(own)])
        if referee.twin is None:
            referee.worst = max(referee.worst, worst_error(self._costs, costs))
        exact = referee.rescore([*close, *paths], np.concatenate([walked, costs]))
        theirs, mine = exact[: len(close)], exact[len(close) :].tolist()
        for j, c in enumerate(self._costs):
            band = (walked >= c - self._tolerance) & (walked <= c + self._tolerance)
            low, high = _ends(theirs[band], mine[j], referee)
            ranks.append((mine[j], int(under[j]) + low, int(under[j]) + high))
        return ranks


def _ends(theirs: Floats, mine: float, referee: Referee) -> tuple[int, int]:
    """Count the close calls that are surely, and those that are possibly, at or under ``mine``."""
    doubt = referee.settled_to
    high = int((theirs <= mine + doubt).sum())
    if referee.in_doubt:
        return 1, high
    same = theirs == mine
    return int(((theirs < mine - doubt) | same).sum()), high
