"""What a recogniser of speech hears: the likeliest token of each frame, or a beam search."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from remnant.errors import InvalidInput
from remnant.probes.ctc import BLANK

_Prefix = tuple[int, ...]


def greedy_tokens(log_probs: Tensor) -> list[int]:
    """Return the tokens of the likeliest alignment: repeats joined, blanks left out.

    Args:
        log_probs: Of one utterance, ``[frames, vocabulary]``.

    Example:
        >>> greedy_tokens(torch.eye(3)[[0, 1, 1, 0, 1, 2]])
        [1, 1, 2]
    """
    path = torch.unique_consecutive(log_probs.argmax(-1))
    return [token for token in path.tolist() if token != BLANK]


def beam_tokens(log_probs: Tensor, *, width: int = 16) -> tuple[list[int], float]:
    """Search for the likeliest transcript, summing over its alignments.

    Args:
        log_probs: Natural, of one utterance, ``[frames, vocabulary]``.
        width: Beginnings that are kept at each frame.

    Returns:
        The tokens, and the natural logarithm of the chance of those alignments that were kept:
        at most that of the transcript itself.
    """
    if width < 1:
        raise InvalidInput(f"width={width} is not a number from 1 on.")
    never = -math.inf
    # Of each beginning: log-chances that it ends with a blank, and with its last token.
    beam: dict[_Prefix, tuple[float, float]] = {(): (0.0, never)}
    for frame in log_probs.double():
        chances = frame.tolist()
        likely = torch.topk(frame, min(len(chances), width + 1)).indices.tolist()
        grown: dict[_Prefix, tuple[float, float]] = {}

        def add(
            prefix: _Prefix, blank: float, label: float, into: dict[_Prefix, tuple[float, float]]
        ) -> None:
            old = into.get(prefix, (never, never))
            into[prefix] = _sum(old[0], blank), _sum(old[1], label)

        for prefix, (blank, label) in beam.items():
            either = _sum(blank, label)
            add(prefix, either + chances[BLANK], never, grown)
            if prefix:
                add(prefix, never, label + chances[prefix[-1]], grown)
            for token in likely:
                if token != BLANK:
                    before = blank if prefix and token == prefix[-1] else either
                    add((*prefix, token), never, before + chances[token], grown)
        best = sorted(grown.items(), key=lambda item: -_sum(*item[1]))
        beam = dict(best[:width])
    tokens, ends = next(iter(beam.items()))
    return list(tokens), _sum(*ends)


def _sum(first: float, second: float) -> float:
    """The logarithm of the sum of two chances."""
    high, low = max(first, second), min(first, second)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))
