"""Baseline searches of the same tree, for comparison; only brute force proves its result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.canaries.template import Template
from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.models.protocols import SequenceModel
from remnant.probes.counted_model import BITS, Asked, check_tokens, computes_coarsely
from remnant.probes.sequences import token_costs
from remnant.search.automaton import Automaton, compile_template, secret_of
from remnant.search.close_calls import FLOAT32_A_TOKEN, FLOAT64
from remnant.search.extraction import Best, Extraction
from remnant.search.walk import Budget, Walk, rows_that_fit

LARGEST = 1_000_000


def brute_force(
    model: SequenceModel, template: Template, *, top: int = 1, largest: int = LARGEST
) -> Extraction:
    """Score every secret of a small space.

    Raises:
        NotEnoughEvidence: The space has more than ``largest`` secrets.
    """
    if template.space > largest:
        raise NotEnoughEvidence(
            f"The space has {template.space} secrets, and brute force stops at {largest}.",
            hint="Use extract, which need not score them all.",
        )
    if computes_coarsely(model) and hasattr(model, "in_float64"):
        model = model.in_float64()  # a proof needs costs that low precision does not blur
    scorer, automaton = begin(model, template)
    secrets = list(template.secrets())
    paths = [model.encode(template.text(s))[len(automaton.prefix) :] for s in secrets]
    costs = token_costs(scorer, paths).sum(1)
    order = np.argsort(costs, kind="stable")[:top]
    candidates = [(secrets[i], float(costs[i])) for i in order]
    return result(candidates, scorer, template, "brute force", certified=True)


def beam_search(
    model: SequenceModel, template: Template, *, width: int, top: int = 1
) -> Extraction:
    """Follow the ``width`` cheapest prefixes of each length; a width of 1 is greedy."""
    scorer, automaton = begin(model, template)
    best = Best(min(top, template.space))
    Walk(scorer, automaton, budget=Budget(), beam=width).run(best)
    candidates = spelled(zip(*best.lists(), strict=True), automaton, template)[:top]
    return result(candidates, scorer, template, "greedy" if width == 1 else f"beam of {width}")


def sample_secrets(
    model: SequenceModel,
    template: Template,
    *,
    queries: int,
    rng: np.random.Generator,
    temperature: float = 1.0,
    top: int = 1,
    memory: int | None = None,
) -> Extraction:
    """Sample secrets from the model, restricted to the template's tokens; keep the cheapest.

    Where a secret may end or continue, both are equally likely.

    Args:
        model, template: What is searched.
        queries: How many secrets are sampled.
        rng: Each query draws from a stream of its own.
        temperature: Of the sampling.
        top: How many to keep.
        memory: Bytes that the search may hold; half of what is free, on a CPU at most 1 GiB. It
            changes no result.

    Raises:
        InvalidInput: A setting out of range, or the memory does not hold one query.
    """
    if queries < 1 or not temperature > 0:
        raise InvalidInput(f"queries={queries} and temperature={temperature} must be above 0.")
    scorer, automaton = begin(model, template)
    rows = rows_that_fit(scorer, automaton, memory)
    cheapest: list[tuple[tuple[int, ...], float]] = []
    for first in range(0, queries, rows):
        streams = rng.spawn(min(rows, queries - first))
        drawn = _sampled(scorer, automaton, streams, temperature)
        cheapest = sorted({**drawn, **dict(cheapest)}.items(), key=by_cost)[:top]
    candidates = spelled(cheapest, automaton, template)
    return result(candidates, scorer, template, f"{queries} samples")


def _sampled(
    scorer: Asked,
    automaton: Automaton,
    streams: Sequence[np.random.Generator],
    temperature: float,
) -> dict[tuple[int, ...], float]:
    """Draw one secret from each stream; return the different ones with their costs."""
    queries = len(streams)
    paths: list[list[int]] = [[] for _ in range(queries)]
    costs = np.zeros(queries)
    active, places = np.arange(queries), np.zeros(queries, dtype=np.int64)
    log_probs, state = scorer.first, scorer.first_state
    rows = np.zeros(queries, dtype=np.int64)  # of each active query, where its answer stands
    while True:
        answers = log_probs.double().cpu().numpy()
        drawing = [streams[int(query)] for query in active]
        edges = _drawn(automaton, places, answers / temperature, rows, drawing)
        going = edges >= 0
        active, rows, edges = active[going], rows[going], edges[going]
        if len(active) == 0:
            break
        tokens = automaton.tokens[edges]
        costs[active] -= answers[rows, tokens] * BITS
        for query, token in zip(active, tokens, strict=True):
            paths[query].append(int(token))
        places = automaton.targets[edges]
        parents = scorer.take(state, torch.from_numpy(rows).to(scorer.device))
        log_probs, state = scorer.step(parents, torch.from_numpy(tokens).to(scorer.device))
        rows = np.arange(len(active))
    return {tuple(path): float(cost) for path, cost in zip(paths, costs, strict=True)}


def _drawn(
    automaton: Automaton,
    places: NDArray[np.int64],
    odds: NDArray[np.float64],
    rows: NDArray[np.int64],
    streams: Sequence[np.random.Generator],
) -> NDArray[np.int64]:
    """Draw an edge for each query, or -1 where its secret ends."""
    edges = np.full(len(places), -1, dtype=np.int64)
    for query, (place, row, rng) in enumerate(zip(places, rows, streams, strict=True)):
        first, end = int(automaton.offsets[place]), int(automaton.offsets[place + 1])
        if first == end or (automaton.final[place] and rng.random() >= 0.5):
            continue
        allowed = odds[row, automaton.tokens[first:end]]
        edges[query] = first + int((allowed + rng.gumbel(size=allowed.size)).argmax())
    return edges


def begin(model: SequenceModel, template: Template) -> tuple[Asked, Automaton]:
    """Compile the template and let the model read its prefix."""
    automaton = compile_template(model.encode, template)
    scorer = Asked(model, automaton.prefix)
    check_tokens(automaton.tokens, scorer.vocabulary)
    return scorer, automaton


def spelled(
    pairs: Iterable[tuple[tuple[int, ...], float]], automaton: Automaton, template: Template
) -> list[tuple[str, float]]:
    """Turn paths into secrets."""
    return [(secret_of(automaton, template, path), cost) for path, cost in pairs]


def by_cost(pair: tuple[tuple[int, ...], float]) -> tuple[float, tuple[int, ...]]:
    """Return the key that sorts paths by cost, equal ones by their tokens."""
    return pair[1], pair[0]


def result(
    candidates: list[tuple[str, float]],
    scorer: Asked,
    template: Template,
    method: str,
    *,
    certified: bool = False,
) -> Extraction:
    """Return the candidates as the result that all searches share."""
    depth = len(template.slots) + len(template.suffix)
    return Extraction(
        candidates=candidates,
        certified=certified,
        nodes=scorer.nodes,
        bound=candidates[-1][1] if certified and candidates else 0.0,
        tolerance=FLOAT64 if scorer.dtype == torch.float64 else FLOAT32_A_TOKEN * depth,
        space=template.space,
        method=method,
    )
