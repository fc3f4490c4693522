"""CTC's probability of many transcripts of one utterance, exactly.

It is a sum over all ways to spread a transcript's tokens over the frames, with blanks between them.
Frame by frame, ``label[j]`` is the chance that token ``j`` was the last one heard and is still
going on, and ``blank[j]`` that ``j`` tokens are over. Both become so small that they are kept as a
number times the exponential of an offset, each place with its own. Offsets are renewed every few
frames, so that most of the work needs no logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BLANK = 0
_CELLS = 1 << 16  # of one piece of work: transcripts times their tokens
_DECAY = 300.0  # nats that a number may lose before its offset is renewed; float64 has 700


def ctc_costs(log_probs: Tensor, transcripts: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Return the cost in bits of each transcript, given one utterance's log-probabilities.

    Args:
        log_probs: Natural, ``[frames, vocabulary]``.
        transcripts: Tokens of each, without blanks.

    Returns:
        Infinity where a transcript does not fit into the frames.
    """
    frames = log_probs.double()
    lowest = -float(frames.min())
    often = int(_DECAY / max(lowest, 1.0)) if math.isfinite(lowest) else 0
    costs = np.full(len(transcripts), np.inf)
    order = sorted(range(len(transcripts)), key=lambda i: len(transcripts[i]))
    start = 0
    while start < len(order):
        shortest, stop = len(transcripts[order[start]]), start + 1
        while stop < len(order):  # transcripts of about one length go together
            longest = len(transcripts[order[stop]])
            if (stop + 1 - start) * longest > _CELLS or longest > max(shortest + 4, shortest * 1.2):
                break
            stop += 1
        some = order[start:stop]
        tokens, lengths = _padded([transcripts[i] for i in some], frames.device)
        if often < 2 or tokens.shape[1] == 0:
            nats = in_logarithms(frames, tokens, lengths)
        else:
            nats = _Scaled(frames, tokens, lengths).costs(often)
        costs[some] = (nats / math.log(2)).cpu().numpy()
        start = stop
    return costs


def _padded(transcripts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    lengths = [len(tokens) for tokens in transcripts]
    tokens = np.zeros((len(transcripts), max(lengths)), dtype=np.int64)
    for row, own in zip(tokens, transcripts, strict=True):
        row[: len(own)] = own
    return torch.from_numpy(tokens).to(device), torch.tensor(lengths, device=device)


def in_logarithms(frames: Tensor, tokens: Tensor, lengths: Tensor) -> Tensor:
    """Return the costs in nats, by the definition: blanks between tokens, sums of logarithms.

    Args:
        frames: Natural log-probabilities ``[frames, vocabulary]``.
        tokens: Of each transcript, ``[n, tokens]``; what is beyond its length means nothing.
        lengths: Of the transcripts.
    """
    places = 2 * tokens.shape[1] + 1
    spread = tokens.new_full((len(tokens), places), BLANK)
    spread[:, 1::2] = tokens
    skipped = torch.zeros_like(spread, dtype=torch.bool)
    skipped[:, 3::2] = spread[:, 3::2] != spread[:, 1:-2:2]  # a blank may be left out there
    never = -math.inf
    # Two places in front, which nothing reaches, so that every place has two before it.
    reached = frames.new_full((len(tokens), places + 2), never)
    reached[:, 2:4] = frames[0][spread[:, :2]]
    for now in frames[1:]:
        stay, step = reached[:, 2:], reached[:, 1:-1]
        skip = reached[:, :-2].masked_fill(~skipped, never)
        total = torch.stack([stay, step, skip]).logsumexp(0)
        reached[:, 2:] = total + now[spread]
    last = 2 * lengths[:, None] + 2
    ends = reached.gather(1, torch.cat([last, last - 1], 1))
    return -ends.logsumexp(1)


class _Scaled:
    """The recursion over frames with numbers and offsets apart."""

    def __init__(self, frames: Tensor, tokens: Tensor, lengths: Tensor) -> None:
        self._chances, self._tokens, self._lengths = frames.exp(), tokens, lengths
        rows, count = tokens.shape
        self._label, self._blank = frames.new_zeros(rows, count), frames.new_zeros(rows, count + 1)
        self._label_offset = torch.zeros_like(self._label)
        self._blank_offset = torch.zeros_like(self._blank)
        self._differs = torch.zeros_like(self._label)
        self._differs[:, 1:] = (tokens[:, 1:] != tokens[:, :-1]).double()
        # What a chance is multiplied by on its way to a place with another offset.
        self._to_blank, self._to_label = torch.ones_like(self._label), torch.ones_like(self._label)
        self._past_blank = self._differs.clone()

    def costs(self, often: int) -> Tensor:
        """Walk over the frames, renewing offsets every so many of them; return costs in nats."""
        label, blank, tokens = self._label, self._blank, self._tokens
        last, fewest, count = len(self._chances), int(self._lengths.min()), label.shape[1]
        blank[:, 0] = self._chances[0, BLANK]
        label[:, 0] = self._chances[0][tokens[:, 0]]
        silence = self._chances[:, BLANK].tolist()
        for t in range(1, last):
            reach = min(count, t + 1)  # no more tokens fit into the frames so far
            low = min(
                max(0, fewest - (last - t) - 1), reach - 1
            )  # no end can be reached from below
            if t % often == 0:
                self._renew(min(count, t))
            here, first = slice(low, reach), max(low, 1)
            heard = torch.addcmul(label[:, here], blank[:, here], self._to_label[:, here])
            heard[:, first - low :].addcmul_(
                label[:, first - 1 : reach - 1], self._past_blank[:, first:reach]
            )
            heard.mul_(self._chances[t][tokens[:, here]])
            blank[:, low + 1 : reach + 1].addcmul_(label[:, here], self._to_blank[:, here])
            blank[:, low : reach + 1].mul_(silence[t])
            label[:, here] = heard
        ends = self._lengths[:, None]
        labels, blanks = label.log() + self._label_offset, blank.log() + self._blank_offset
        before = labels.gather(1, (ends - 1).clamp(min=0)).masked_fill(ends == 0, -math.inf)
        return -torch.logaddexp(before, blanks.gather(1, ends))[:, 0]

    def _renew(self, reached: int) -> None:
        """Move each number into its offset; ``reached`` tokens have been heard at the most."""
        label = self._label.log().add_(self._label_offset)
        blank = self._blank.log().add_(self._blank_offset)
        frontier = label[:, reached - 1 : reached].clone()
        label[:, reached:], blank[:, reached + 1 :] = frontier, frontier
        self._label.copy_(self._label > 0)
        self._blank.copy_(self._blank > 0)
        # Where nothing came, any offset will do.
        for offset in (label, blank):
            offset.masked_fill_(offset == -math.inf, 0.0)
        torch.exp(label - blank[:, 1:], out=self._to_blank)
        torch.exp(blank[:, :-1] - label, out=self._to_label)
        self._past_blank[:, 1:] = torch.exp(label[:, :-1] - label[:, 1:]) * self._differs[:, 1:]
        self._label_offset, self._blank_offset = label, blank
