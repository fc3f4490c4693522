"""Log-probabilities of the tokens of whole texts, in one pass of a causal language model.

Beside the log-probability of a token, the pass gives what the attacks on texts need: how the token
compares with the rest of the vocabulary, and whether it is the likeliest. Logits are reduced block
by block while they are in the processor's cache, so that this adds little to the pass itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import InvalidInput, UnsupportedModel

Ids = Sequence[int]
Ask = Callable[[Tensor, Tensor], Tensor]
_CACHE = {"cpu": 1 << 20, "cuda": 1 << 28}  # bytes of logits that are reduced together
_LOGITS = 1 << 28  # bytes of the logits of one batch
_TOKENS = 1 << 13  # tokens of one batch
_LOWEST = -1e4  # log-probability of a token that the model rules out
_LEAST_DEVIATION = 1e-3  # nats


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """What a model says about the tokens of several texts, padded at the right with zeros.

    Attributes:
        log_probs: Natural log-probability of each token given those before it, ``(texts, tokens)``.
        standard: The log-probability less its mean, in standard deviations of at least 0.001
            nats; mean and deviation are those of a token that the model draws.
        correct: Whether the token is the likeliest.
        lengths: Predicted tokens of each text.
    """

    log_probs: NDArray[np.float64]
    standard: NDArray[np.float64]
    correct: NDArray[np.bool_]
    lengths: NDArray[np.int64]


def token_scores(
    ask: Ask,
    texts: Sequence[Ids],
    *,
    leading: Ids,
    vocabulary: int,
    device: torch.device,
    padding: int = 0,
    standardise: bool = True,
) -> TokenScores:
    """Score the tokens of texts, each text once, similar lengths together.

    Args:
        ask: Returns logits ``(texts, tokens, vocabulary)`` for token ids and a mask that is 1 at
            real tokens.
        texts: Tokens of each text. With ``leading`` every token is predicted, else all but the
            first.
        leading: Tokens that come before every text, such as BOS.
        vocabulary: How many logits there are, by which batches are sized.
        device: Where the model is.
        padding: The token that fills shorter rows.
        standardise: Whether to compute ``standard``, which costs about as much as the rest of what
            is read off the logits; else it is 0.

    Guarantees:
        * Equal to reading each text alone, token by token, up to rounding.

    Raises:
        InvalidInput: A text has no token to predict, or the model returns NaN.
        UnsupportedModel: The model returns no logits for each token.
    """
    skipped = 0 if leading else 1
    lengths = np.array([len(text) - skipped for text in texts], dtype=np.int64)
    if len(texts) and int(lengths.min()) < 1:
        raise InvalidInput("A text has no token that could be predicted.")
    width = int(lengths.max(initial=0))
    log_probs = np.zeros((len(texts), width))
    standard = np.zeros((len(texts), width))
    correct = np.zeros((len(texts), width), dtype=bool)
    reduce: _Reducer | None = None
    for numbers in _batches(lengths + skipped + len(leading), vocabulary):
        ids, mask = _padded([[*leading, *texts[i]] for i in numbers], padding, device)
        logits = ask(ids, mask)
        if logits.ndim != 3 or logits.shape[:2] != ids.shape or logits.shape[2] <= int(ids.max()):
            raise UnsupportedModel("The model returns no logits for each token of a batch.")
        first = len(leading) + skipped  # the first token that is predicted
        if reduce is None:
            reduce = _Reducer(logits.shape[2], logits.device, standardise=standardise)
        for row, number in enumerate(numbers.tolist()):
            wanted = ids[row, first : first + int(lengths[number])]
            scored = reduce(logits[row, first - 1 :][: len(wanted)], wanted)
            for kept, part in zip((log_probs, standard, correct), scored, strict=True):
                kept[number, : len(wanted)] = part
    if not np.isfinite(log_probs).all():
        raise InvalidInput(
            "The model gives tokens log-probabilities that are NaN or infinite.",
            hint="Its weights may be damaged.",
        )
    return TokenScores(log_probs, standard, correct, lengths)


def _batches(lengths: NDArray[np.int64], vocabulary: int) -> Iterator[NDArray[np.int64]]:
    """Yield numbers of rows, longest last, so many that their logits fit."""
    order = np.argsort(lengths, kind="stable")
    most = max(1, min(_TOKENS, _LOGITS // (4 * max(vocabulary, 1))))
    first = 0
    while first < len(order):
        last = first + 1
        while last < len(order) and (last + 1 - first) * lengths[order[last]] <= most:
            last += 1
        yield order[first:last]
        first = last


def _padded(rows: Sequence[Ids], padding: int, device: torch.device) -> tuple[Tensor, Tensor]:
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), padding, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
        mask[number, : len(row)] = 1
    return ids.to(device), mask.to(device)


class _Reducer:
    """Reads numbers off logits, block by block, in memory that is used again.

    Args:
        vocabulary: Logits of a token.
        device: Where they are.
        standardise: Whether to compute standardised log-probabilities.
    """

    def __init__(self, vocabulary: int, device: torch.device, *, standardise: bool) -> None:
        self._rows = max(1, _CACHE.get(device.type, _CACHE["cuda"]) // (4 * vocabulary))
        self._weights = torch.empty(self._rows, vocabulary, device=device)
        self._standardise = standardise

    def __call__(self, logits: Tensor, tokens: Tensor) -> NDArray[np.float64]:
        """Log-probability, standardised log-probability and correctness of a text's tokens.

        ``logits`` is changed.
        """
        parts = [
            self._block(block.float(), wanted)
            for block, wanted in zip(
                logits.split(self._rows), tokens.split(self._rows), strict=True
            )
        ]
        scored: NDArray[np.float64] = torch.cat(parts, 1).cpu().numpy()
        return scored

    def _block(self, logits: Tensor, tokens: Tensor) -> Tensor:
        below = logits.sub_(logits.amax(-1, keepdim=True))
        own = below.gather(-1, tokens[:, None])[:, 0].double()
        correct = own == 0.0
        if bool(correct.any()):  # of equal logits, decoding takes the first
            rows = correct.nonzero()[:, 0]
            correct[rows] = below[rows].argmax(-1) == tokens[rows]
        own = own.clamp_min(_LOWEST)
        weights = torch.exp(below, out=self._weights[: len(below)])
        total = weights.sum(-1).double()
        standard = torch.zeros_like(own)
        if self._standardise:
            mean, square = (weights.mul_(below).sum(-1).double() / total for _ in range(2))
            if bool(square.isnan().any()):  # a token that is ruled out: 0 times infinity
                below.clamp_min_(_LOWEST)
                torch.exp(below, out=weights)
                mean, square = (weights.mul_(below).sum(-1).double() / total for _ in range(2))
            deviation = (square - mean.square()).clamp_min(0.0).sqrt()
            # Where the model is nearly certain, its own token has 0 and others are far below it.
            standard = (own - mean) / deviation.clamp_min(_LEAST_DEVIATION)
        return torch.stack([own - total.log(), standard, correct.double()])
