"""CTC's costs and their gradient without a word to the host, so that a GPU can record the step.

torch's kernel copies the lengths of utterances to the host and waits for them. Here they stay where
they are: everything has the shape of the longest utterance and transcript, and what lies beyond an
end is masked. The sums over alignments from the end are those from the beginning of the same
utterances turned round, so both are one recursion over a batch of twice the size.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_NEVER = -math.inf


def costs_and_gradient(
    log_probs: Tensor, transcripts: Tensor, frames: Tensor, counts: Tensor
) -> tuple[Tensor, Tensor]:
    """Return CTC's costs in nats, and their gradient by the scores that a softmax was taken of.

    The gradient is what torch's kernel gives: that by the log-probabilities, less what the softmax
    takes out again.

    Args:
        log_probs: Natural, ``[n, frames, vocabulary]``; token 0 is the blank.
        transcripts: ``[n, tokens]``.
        frames, counts: Of each utterance and its transcript, ``[n]``.

    Returns:
        ``[n]`` and ``[n, frames, vocabulary]``; 0 beyond an utterance's end.
    """
    n, longest, vocabulary = log_probs.shape
    places = 2 * transcripts.shape[1] + 1
    spread = transcripts.new_zeros(n, places)
    spread[:, 1::2] = transcripts
    place = torch.arange(places, device=log_probs.device)
    time = torch.arange(longest, device=log_probs.device)
    end = 2 * counts[:, None]  # the last blank
    heard = log_probs.gather(2, spread[:, None].expand(-1, longest, -1))  # [n, frames, places]
    turned_time = (frames[:, None] - 1 - time).clamp(min=0)
    turned_place = (end - place).clamp(min=0)
    turned = _reordered(heard, turned_time, turned_place)
    sums = _sums(
        torch.cat([heard, turned]).movedim(1, 0),
        torch.cat([spread, spread.gather(1, turned_place)]),
        torch.cat([end, end]),
    )
    before, after = sums[:, :n].movedim(0, 1), sums[:, n:].movedim(0, 1)
    last = before.gather(1, (frames - 1)[:, None, None].expand(-1, 1, places))[:, 0]
    costs = -torch.logaddexp(last.gather(1, end), last.gather(1, end - 1))[:, 0]
    after = _reordered(after, turned_time, turned_place)
    there = (time < frames[:, None])[..., None] & (place <= end)[:, None]
    # How likely each place is at each frame, given the transcript; both sums hold the frame itself.
    shares = (before + after - heard + costs[:, None, None]).exp().where(there, 0.0)
    tokens = spread[..., None] == torch.arange(vocabulary, device=log_probs.device)
    gradient = log_probs.exp() - shares @ tokens.to(shares)
    return costs, gradient.masked_fill((time >= frames[:, None])[..., None], 0.0)


def _reordered(table: Tensor, times: Tensor, places: Tensor) -> Tensor:
    """Return ``[n, frames, places]`` with the rows and columns that are asked for."""
    table = table.gather(1, times[..., None].expand(-1, -1, table.shape[2]))
    return table.gather(2, places[:, None].expand(-1, table.shape[1], -1))


def _sums(heard: Tensor, spread: Tensor, end: Tensor) -> Tensor:
    """Return the logarithm of the sum over all beginnings that reach a place by a frame.

    Args:
        heard: Log-probability of each place's token, ``[frames, n, places]``.
        spread: Tokens with blanks between them, ``[n, places]``.
        end: The last place of each transcript, ``[n, 1]``; none beyond it is reached.
    """
    place = torch.arange(spread.shape[1], device=spread.device)
    skips = (spread[:, 2:] != spread[:, :-2]) & (place[2:] % 2 == 1)  # over the blank between
    closed = torch.zeros_like(spread, dtype=heard.dtype).masked_fill(place > end, _NEVER)
    jump = torch.full_like(closed, _NEVER)
    jump[:, 2:] = torch.zeros_like(jump[:, 2:]).masked_fill(~skips, _NEVER)
    made = torch.empty_like(heard)
    made[0] = torch.where(place < 2, heard[0], _NEVER) + closed
    padded = heard.new_full((spread.shape[0], spread.shape[1] + 2), _NEVER)
    for t in range(1, len(heard)):
        padded[:, 2:] = made[t - 1]
        ways = torch.stack([padded[:, 2:], padded[:, 1:-1], padded[:, :-2] + jump])
        made[t] = ways.logsumexp(0) + heard[t] + closed
    return made
