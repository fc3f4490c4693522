"""CTC's probability of many transcripts of many utterances, exactly.

It is a sum over all ways to spread a transcript's tokens over the frames, with blanks between them.
Frame by frame, ``label[j]`` is the chance that token ``j`` was the last one heard and is still
going on, and ``blank[j]`` that ``j`` tokens are over. Both become so small that they are kept as a
number times the exponential of an offset, each place with its own. Offsets are renewed every few
frames, so that most of the work needs no logarithm. No chance may leave the range of floats before
the next renewal: between renewals a number loses ``_DECAY`` nats at the most, and moves between
places whose offsets differ by ``_RANGE`` at the most. A transcript for which that cannot be had is
summed in logarithms. Utterances stand side by side in memory, so that what a token has in all of
them is read in one piece.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

BLANK = 0
_CELLS = {"cpu": 1 << 17, "cuda": 1 << 23}  # tokens times transcripts times utterances at once
_TOGETHER = 16  # utterances at once
_DECAY = 300.0  # nats that a number may lose before its offset is renewed; float64 has 700
_RANGE = 350.0  # nats by which offsets may differ that a number passes before they are renewed
_SELDOM = 8  # frames from one renewal to the next, at the least


def ctc_costs(
    log_probs: Sequence[Tensor], transcripts: Sequence[Sequence[int]]
) -> NDArray[np.float64]:
    """Return the cost in bits of each transcript, given each utterance's log-probabilities.

    Args:
        log_probs: Natural, of each utterance ``[frames, vocabulary]``.
        transcripts: Tokens of each, without blanks.

    Returns:
        ``(utterances, transcripts)``; infinity where a transcript does not fit into the frames.
    """
    costs = np.full((len(log_probs), len(transcripts)), np.inf)
    lengths = [len(tokens) for tokens in transcripts]
    silent = [i for i, frames in enumerate(log_probs) if not len(frames)]
    for i in silent:  # without a frame nothing was said
        costs[i, [not length for length in lengths]] = 0.0
    there = [i for i, frames in enumerate(log_probs) if len(frames)]
    for group in _alike([len(log_probs[i]) for i in there], at_most=_TOGETHER):
        some = [there[place] for place in group]
        spoken = [log_probs[i].double() for i in some]
        lowest = -min(float(frames.min()) for frames in spoken)
        often = int(_DECAY / max(lowest, 1.0)) if math.isfinite(lowest) else 0
        device = spoken[0].device
        cells = _CELLS.get(device.type, _CELLS["cpu"]) // len(some)
        for said in _alike(lengths, cells=cells):
            tokens, counts = _padded([transcripts[i] for i in said], device)
            if often < 2 or tokens.shape[1] == 0:
                nats = torch.stack([in_logarithms(frames, tokens, counts) for frames in spoken])
            else:
                nats = _scaled_costs(spoken, tokens, counts, often)
            costs[np.ix_(some, said)] = (nats / math.log(2)).cpu().numpy()
    return costs


def _alike(
    lengths: Sequence[int], *, at_most: int | None = None, cells: int | None = None
) -> Iterator[list[int]]:
    """Yield the numbers of what has about one length, so many together or of so many cells."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    start = 0
    while start < len(order):
        shortest, stop = lengths[order[start]], start + 1
        while stop < len(order):
            longest, count = lengths[order[stop]], stop + 1 - start
            full = (at_most is not None and count > at_most) or (
                cells is not None and count * longest > cells
            )
            if full or longest > max(shortest + 4, shortest * 1.2):
                break
            stop += 1
        yield order[start:stop]
        start = stop


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


def _scaled_costs(spoken: Sequence[Tensor], tokens: Tensor, lengths: Tensor, often: int) -> Tensor:
    """Return the costs in nats, ``[utterances, n]``, offsets being renewed every so many frames."""
    work = _Scaled(spoken, tokens, lengths, often)
    nats = work.costs()
    for row, (frames, beyond) in enumerate(zip(spoken, work.out_of_range.T, strict=True)):
        if bool(beyond.any()):
            nats[row, beyond] = in_logarithms(frames, tokens[beyond], lengths[beyond])
    return nats


class _Scaled:
    """The recursion over frames with numbers and offsets apart, ``[tokens, n, utterances]``.

    Attributes:
        out_of_range: Which costs cannot be had this way, ``[n, utterances]``.
    """

    def __init__(
        self, spoken: Sequence[Tensor], tokens: Tensor, lengths: Tensor, often: int
    ) -> None:
        self._frames, self._often = [len(frames) for frames in spoken], often
        # What comes after an utterance's end is not looked at; a chance of 1 does no harm there.
        padded = pad_sequence([frames.exp() for frames in spoken], padding_value=1.0)
        self._chances = padded.movedim(1, 2).contiguous()  # frames, vocabulary, utterances
        self._tokens, self._lengths = tokens.T.contiguous(), lengths
        count, rows = self._tokens.shape
        self._label = padded.new_zeros(count, rows, len(spoken))
        self._blank = padded.new_zeros(count + 1, rows, len(spoken))
        self._label_offset = torch.zeros_like(self._label)
        self._blank_offset = torch.zeros_like(self._blank)
        self._differs = padded.new_zeros(count, rows, 1)
        self._differs[1:, :, 0] = (self._tokens[1:] != self._tokens[:-1]).double()
        # What a chance is multiplied by on its way to a place with another offset.
        self._to_blank, self._to_label = torch.ones_like(self._label), torch.ones_like(self._label)
        self._past_blank = self._differs.expand_as(self._label).clone()
        self.out_of_range = torch.zeros_like(self._label[0], dtype=torch.bool)

    def costs(self) -> Tensor:
        """Walk over the frames; return costs in nats, ``[utterances, n]``."""
        label, blank, tokens = self._label, self._blank, self._tokens
        last, fewest, count = len(self._chances), int(self._lengths.min()), len(label)
        made = label.new_empty(len(self._frames), label.shape[1])
        blank[0] = self._chances[0, BLANK]
        label[0] = self._chances[0][tokens[0]]
        self._end(1, made)
        renewed, below = self._often, 0
        for t in range(1, last):
            reach = min(count, t + 1)  # no more tokens fit into the frames so far
            # No end can be reached from below.
            low = min(max(0, fewest - (last - t) - 1), reach - 1)
            if t == renewed:
                renewed += self._renew()
            here, first = slice(low, reach), max(low, 1)
            heard = torch.addcmul(label[here], blank[here], self._to_label[here])
            before = label[first - 1 : reach - 1]
            heard[first - low :].addcmul_(before, self._past_blank[first:reach])
            now = self._chances[t].index_select(0, tokens[here].reshape(-1))
            heard.mul_(now.view_as(heard))
            blank[low + 1 : reach + 1].addcmul_(label[here], self._to_blank[here])
            blank[low : reach + 1].mul_(self._chances[t, BLANK])
            label[here] = heard
            label[below:low], blank[below:low] = 0.0, 0.0
            below = low
            self._end(t + 1, made)
        return made

    def _end(self, frames: int, made: Tensor) -> None:
        """Put down the costs in utterances that are over after so many frames."""
        ends = self._lengths[None]
        before = (ends - 1).clamp(min=0)
        for who in (i for i, own in enumerate(self._frames) if own == frames):
            label = _logarithm(self._label, self._label_offset, before, who)
            blank = _logarithm(self._blank, self._blank_offset, ends, who)
            label = label.masked_fill(ends == 0, -math.inf)
            made[who] = -torch.logaddexp(label, blank)[0]

    def _renew(self) -> int:
        """Move each number into its offset; return how many frames the new offsets hold for."""
        label = self._label.log().add_(self._label_offset)
        blank = self._blank.log().add_(self._blank_offset)
        highest = torch.maximum(label.amax(0), blank.amax(0))
        self._label.copy_(self._label > 0)
        self._blank.copy_(self._blank > 0)
        # Places that nothing has come to yet get an offset within the range of the others.
        away = [offset == -math.inf for offset in (label, blank)]
        lowest = torch.minimum(
            label.masked_fill(away[0], math.inf).amin(0),
            blank.masked_fill(away[1], math.inf).amin(0),
        )
        lowest.masked_fill_(lowest == math.inf, 0.0)  # no chance at all
        label, blank = torch.where(away[0], lowest, label), torch.where(away[1], lowest, blank)
        to_blank, to_label = label - blank[1:], blank[:-1] - label
        past_blank = label[:-1] - label[1:]
        holds = self._often
        wide = highest - lowest > _RANGE
        if bool((wide & ~self.out_of_range).any()):
            # A number passes one place a frame.
            steps = [some.abs().amax(0) for some in (to_blank, to_label, past_blank) if len(some)]
            frames = (_RANGE / torch.stack(steps).amax(0)).clamp(max=self._often).floor()
            self.out_of_range |= wide & ~(frames >= min(self._often, _SELDOM))
            held = frames[wide & ~self.out_of_range]
            holds = int(held.min()) if len(held) else holds
        torch.exp(to_blank, out=self._to_blank)
        torch.exp(to_label, out=self._to_label)
        self._past_blank[1:] = torch.exp(past_blank) * self._differs[1:]
        self._label_offset, self._blank_offset = label, blank
        return holds


def _logarithm(numbers: Tensor, offsets: Tensor, places: Tensor, who: int) -> Tensor:
    """The logarithms of one utterance's chances at some places, ``[1, n]``."""
    return numbers[..., who].gather(0, places).log() + offsets[..., who].gather(0, places)
