"""How likely a model is to say given tokens under the decoding that is really in use."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from remnant.errors import InvalidInput, require
from remnant.models.protocols import SequenceModel
from remnant.probes.counted_model import Asked, TimeLimit, check_tokens


def decoding_log_probability(
    model: SequenceModel,
    *,
    prefix: str,
    continuation: str,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    max_seconds: float | None = None,
) -> float:
    """Return the natural log of the chance that one query continues ``prefix`` in this way.

    At each token the distribution is sharpened by the temperature, cut to the ``top_k`` likeliest
    tokens, then to the fewest that hold ``top_p`` together, and made to add up to 1 again.

    Returns:
        ``-inf`` where a token is cut away: no number of queries gives it.

    Raises:
        InvalidInput: A setting out of range, or a tokenizer that joins the two texts.
        OutOfTime: ``max_seconds`` were over before the prefix was read.
    """
    faults = []
    if not temperature > 0:
        faults.append(f"temperature={temperature} is not above 0")
    if top_k is not None and top_k < 1:
        faults.append(f"top_k={top_k} is less than 1")
    if top_p is not None and not 0 < top_p <= 1:
        faults.append(f"top_p={top_p} is not in (0, 1]")
    require(faults)
    before = list(model.encode(prefix))
    ids = list(model.encode(prefix + continuation))
    if ids[: len(before)] != before or len(ids) == len(before):
        raise InvalidInput(
            "The tokenizer joins the end of the prefix with the continuation, or adds no token.",
            hint="Cut the prefix where a token ends.",
        )
    asked = Asked(model, before, limit=TimeLimit(max_seconds))
    path = torch.tensor(ids[len(before) :], device=asked.device)
    check_tokens(path, asked.vocabulary)
    log_probs, state = asked.first, asked.first_state
    total = 0.0
    for at, token in enumerate(path.tolist()):
        kept = _kept(log_probs[0].double() / temperature, top_k, top_p)
        total += float(kept[token])
        if math.isinf(total):
            return -math.inf
        if at + 1 < len(path):
            log_probs, state = asked.step(state, path[at : at + 1])
    return total


def _kept(scores: Tensor, top_k: int | None, top_p: float | None) -> Tensor:
    """Return the log-probabilities of the tokens that the decoding keeps, -inf for the others."""
    values, order = scores.log_softmax(0).sort(descending=True, stable=True)
    if top_k is not None:
        values[top_k:] = -math.inf
    if top_p is not None:
        shares = values.softmax(0)
        values[shares.cumsum(0) - shares >= top_p] = -math.inf
    kept = torch.full_like(scores, -math.inf)
    kept[order] = values.log_softmax(0)
    return kept
