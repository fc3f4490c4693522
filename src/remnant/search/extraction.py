"""Extraction with a certificate: the likeliest secrets, and a proof that none is likelier."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from remnant.canaries.template import Template
from remnant.errors import InvalidInput
from remnant.models.protocols import SequenceModel
from remnant.probes.counted_model import Asked, TimeLimit, check_tokens
from remnant.progress import Progress
from remnant.search.automaton import (
    Automaton,
    check_template,
    compile_template,
    secret_of,
    secret_path,
)
from remnant.search.close_calls import Arithmetic, Referee, appoint
from remnant.search.tokens import Encode, MergedTokens
from remnant.search.walk import Budget, Walk

Floats = NDArray[np.float64]
_BEAM = 64
_ROWS = (1024, 16_384)  # small enough for the bound to shrink soon: on a CPU, on a GPU
_POOL = 4096
_COMPARED = 8


@dataclass(frozen=True, slots=True, eq=False)
class Extraction:
    """The likeliest secrets of a template.

    Attributes:
        candidates: ``(secret, bits)``, cheapest first; bits are ``-log2 p`` from the first hole to
            the end of the template. Not shown by ``repr``. Empty where a time limit ended the
            search before a secret was scored.
        certified: No secret outside the list is cheaper than one in it, by more than
            ``tolerance``. False when a budget ended the search.
        nodes: Rows passed to the model; those passed to its float64 twin, to settle close calls,
            come on top.
        bound: Lower bound on the cost of secrets that were not scored; 0 without a certificate.
        tolerance: Bits within which two costs count as equal.
        space: Number of secrets.
        method: ``"branch and bound"``.
        arithmetic: How low precision was dealt with; None for a model of float32 or float64, and
            for methods that prove nothing.
    """

    candidates: list[tuple[str, float]] = field(repr=False)
    certified: bool
    nodes: int
    bound: float
    tolerance: float
    space: int
    method: str = "branch and bound"
    arithmetic: Arithmetic | None = None


def extract(
    model: SequenceModel,
    template: Template,
    *,
    top: int = 1,
    max_nodes: int | None = None,
    max_seconds: float | None = None,
    memory: int | None = None,
    beam: int = _BEAM,
    progress: Progress | None = None,
) -> Extraction:
    """Find the secrets to which the model gives the highest probability.

    A beam gives a first bound: the cost of the worst of the ``top`` best secrets so far. Then every
    prefix under the bound is visited, cheapest first, and the bound shrinks as better secrets are
    found. When nothing is left under it, nothing likelier exists.

    Args:
        model: Anything with ``encode``, ``start``, ``step`` and ``take``.
        template: Whose space is searched.
        top: How many secrets.
        max_nodes: Rows passed to ``step`` after which the search is ended.
        max_seconds: After which it is ended; it also binds while the prefix is encoded and read.
        memory: Bytes that the search may hold; half of what is free, on a CPU at most 1 GiB.
        beam: Width of the beam.
        progress: Called with ``"search"``, thousandths of the space settled, and 1000.

    Guarantees:
        * With ``certified`` the candidates are the cheapest secrets of the whole space; which of
          several equal ones is not said.
        * Without it they are the best that were seen.

    Raises:
        InvalidInput: ``top`` or ``beam`` under 1, a template the model cannot encode, a tokenizer
            that joins characters across a hole (checked on a sample before the search, and again
            for each candidate), a budget smaller than the template's depth.
        OutOfTime: ``max_seconds`` were over before the prefix was read.
        UnsupportedModel: NaN or log-probabilities that are not normalised.

    Example:
        >>> import torch
        >>> from remnant.models import LanguageModel, Vocabulary, lstm
        >>> template = Template("the random number is {digits:4}")
        >>> vocabulary = Vocabulary.of_characters(template.prefix + "0123456789")
        >>> _ = torch.manual_seed(0)
        >>> model = LanguageModel(lstm(vocabulary.size, units=8), vocabulary)  # nothing learnt
        >>> best = extract(model, template, top=3)
        >>> best.certified, len(best.candidates)
        (True, 3)
    """
    for name, given in (("top", top), ("beam", beam)):
        if isinstance(given, bool) or not isinstance(given, Integral) or given < 1:
            raise InvalidInput(f"{name}={given!r} is not a whole number of at least 1.")
    check_template(template)
    limit = TimeLimit(max_seconds)
    encode = limit.encode(model.encode)
    automaton = compile_template(encode, template)
    budget = Budget(max_nodes=max_nodes, max_seconds=max_seconds, memory=memory)
    budget.check(automaton)
    scorer = Asked(model, automaton.prefix, limit=limit)
    check_tokens(np.append(automaton.tokens, automaton.prefix), scorer.vocabulary)
    best = Best(min(top, template.space))
    width = beam if max_nodes is None else max(1, min(beam, max_nodes // automaton.depth))
    timed = Budget(max_seconds=max_seconds, memory=memory)
    Walk(scorer, automaton, budget=timed, beam=width).run(best, since=limit.since)
    rng = np.random.default_rng(0)
    referee, _ = appoint(
        scorer, automaton, [], rng=rng, max_nodes=max_nodes, memory=memory, limit=limit
    )
    while True:
        best.tolerance = referee.tolerance
        rows = _ROWS[scorer.device.type == "cuda"]
        walk = Walk(scorer, automaton, budget=budget, rows=rows, cheapest_first=True)
        finished = walk.run(best, since=limit.since, progress=progress)
        candidates = _candidates(model.encode, best, referee, automaton, template)
        left = math.inf if max_nodes is None else max_nodes - scorer.nodes
        if finished and referee.twin is None and left >= _COMPARED * automaton.depth:
            referee.compare(*best.cheapest(_COMPARED))
        if not finished or referee.confirmed:
            break
        referee.widen()
    if finished and len(candidates) < best.top:
        candidates += _impossible(template, candidates, best.top - len(candidates))
    settled = referee.tolerance if best.overflow else referee.settled_to
    return Extraction(
        candidates=candidates,
        certified=finished,
        nodes=scorer.nodes,
        bound=candidates[-1][1] if finished else 0.0,
        tolerance=settled,
        space=template.space,
        arithmetic=referee.arithmetic(settled=not best.overflow),
    )


def _candidates(
    encode: Encode, best: Best, referee: Referee, automaton: Automaton, template: Template
) -> list[tuple[str, float]]:
    paths, costs = best.lists()
    exact = referee.rescore(paths, np.array(costs))
    order = np.argsort(exact, kind="stable")[: best.top]
    candidates = []
    for i in order:
        secret = secret_of(automaton, template, paths[i])
        # A candidate counts only if the tokenizer would cut it into these tokens.
        if secret_path(encode, automaton, template, secret) != paths[i]:
            raise MergedTokens(
                "The tokenizer cuts one of the likeliest secrets otherwise than its choices.",
                hint="Search with sample_secrets, or use holes that the tokenizer keeps apart.",
            )
        candidates.append((secret, float(exact[i])))
    return candidates


def _impossible(
    template: Template, candidates: list[tuple[str, float]], count: int
) -> list[tuple[str, float]]:
    """Return ``count`` secrets of probability 0, which are all that is left."""
    known = {secret for secret, _ in candidates}
    others = (secret for secret in template.secrets() if secret not in known)
    return [(secret, float("inf")) for secret in islice(others, count)]


class Best:
    """The cheapest leaves so far, and all leaves within the tolerance of the last of them.

    Attributes:
        top: How many are wanted.
        tolerance: Bits within which costs are a close call.
    """

    def __init__(self, top: int, tolerance: float = 0.0) -> None:
        self.top, self.tolerance = top, tolerance
        self._most = top + _POOL
        self._kept: dict[tuple[int, ...], float] = {}
        self._bound = self._dropped = float("inf")

    @property
    def overflow(self) -> bool:
        """Whether there were more close calls than are kept."""
        return self._dropped <= self.bound() and self._dropped < float("inf")

    def bound(self) -> float:
        """Return the cost above which a leaf cannot be among the best; always finite."""
        return min(self._bound + self.tolerance, sys.float_info.max)

    def leaves(self, costs: Tensor, paths: Callable[[Tensor], Tensor]) -> None:
        """Keep the leaves that are within the bound, and shrink the bound."""
        near = (costs <= self.bound()).nonzero()[:, 0]
        if len(near) > self._most:
            cheapest, order = costs[near].topk(self._most + 1, largest=False)
            self._dropped = min(self._dropped, float(cheapest[-1]))
            near = near[order[:-1]]
        if len(near):
            tokens = paths(near).tolist()
            for path, cost in zip(tokens, costs[near].tolist(), strict=True):
                self._kept[tuple(path)] = cost
            self._shrink()

    def lists(self) -> tuple[list[tuple[int, ...]], list[float]]:
        """Return the paths and costs that are kept, cheapest first."""
        ordered = sorted(self._kept.items(), key=lambda pair: (pair[1], pair[0]))
        return [path for path, _ in ordered], [cost for _, cost in ordered]

    def cheapest(self, count: int) -> tuple[list[tuple[int, ...]], Floats]:
        """Return the paths and costs of the best few, cheapest first."""
        paths, costs = self.lists()
        return paths[:count], np.array(costs[:count])

    def _shrink(self) -> None:
        if len(self._kept) < self.top:
            return
        paths, costs = self.lists()
        self._bound = min(self._bound, costs[self.top - 1])
        within = sum(cost <= self.bound() for cost in costs)
        if within > self._most:
            self._dropped = min(self._dropped, costs[self._most])
        keep = min(within, self._most)
        self._kept = dict(zip(paths[:keep], costs[:keep], strict=True))
