"""Gaussian noise that belongs to one member: from a counter, not from a global stream.

The noise of an entry depends on (the member's noise seed, updates the member has taken, the entry's
place among all trained parameters) and on nothing else. So a member has the same noise alone, among
others, on either backend, in any split and after a resume.

The generator has the statistical quality that measurements need. It is not cryptographic: whoever
knows the seed can subtract the noise. Do not rely on it to protect real data.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

import torch
from torch import Tensor

from remnant.population.randomness import keys
from remnant.population.state import Named

_RADIUS, _ANGLE = -3, -4  # in the key: no layer of a model, nor the augmentation's
_AT_ONCE = {"cpu": 2**16, "cuda": 2**22}  # pairs of a block: what a CPU's caches hold
_GRID = 2.0**-32
# Shifts, masks and multipliers of ``randomness``' finaliser. As tensors: torch converts a number at
# every call.
_ROUNDS = [
    [torch.tensor(number, dtype=torch.int32) for number in numbers]
    for numbers in ((16, 0xFFFF, 0x7FEB352D), (15, 0x1FFFF, -2073254261), (16, 0xFFFF, 1))
]


def normal(seeds: Tensor, taken: Tensor, size: int, *, dtype: torch.dtype) -> Tensor:
    """Return independent standard normal numbers, ``(members, size)``.

    Rows of one seed and count are equal; a shorter row is not the beginning of a longer one.

    Args:
        seeds: The noise seed of each member, int64.
        taken: Updates that each member has taken, int64.
        size: Numbers for each member.
        dtype: float32 or float64.
    """
    made = torch.empty(len(seeds), size, dtype=dtype, device=seeds.device)
    for rows, first, numbers in _blocks(seeds, taken, size, torch.ones_like(seeds), dtype):
        made[rows, first : first + numbers.shape[1]] = numbers
    return made


def add_noise(sums: Named, *, seeds: Tensor, taken: Tensor, deviation: Tensor) -> None:
    """Add independent normal noise to every entry, in place.

    Args:
        sums: By parameter, members first, contiguous. Their order and shapes determine an entry's
            place.
        seeds, taken: Of each member.
        deviation: Standard deviation of each member's noise, ``(members,)``.
    """
    totals = [total.view(len(seeds), -1) for total in sums.values()]
    ends = list(accumulate(total.shape[1] for total in totals))
    for rows, first, numbers in _blocks(seeds, taken, ends[-1], deviation, totals[0].dtype):
        last, used = first + numbers.shape[1], 0
        for number in range(bisect_right(ends, first), len(ends)):
            begin = ends[number] - totals[number].shape[1]
            start, stop = max(first, begin), min(last, ends[number])
            if start >= stop:
                break
            part = totals[number][rows, start - begin : stop - begin]
            part += numbers[:, used : used + stop - start]
            used += stop - start


def _blocks(
    seeds: Tensor, taken: Tensor, size: int, deviation: Tensor, dtype: torch.dtype
) -> Iterator[tuple[slice, int, Tensor]]:
    """Yield members, a first place and normal numbers from there on, until all have theirs.

    By Box and Muller's transform: each pair of numbers takes two words of 32 bits. None is beyond
    6.8 standard deviations. The radius' logarithm is taken in float64 in any case.
    """
    half = (size + 1) // 2
    both = torch.stack([keys(seeds, taken, use) for use in (_RADIUS, _ANGLE)])
    at_once = _AT_ONCE[seeds.device.type]
    members, pairs = max(1, at_once // half), min(half, at_once)
    room = _Room(min(members, len(seeds)) * pairs, dtype, seeds.device)
    for top in range(0, len(seeds), members):
        rows = slice(top, min(top + members, len(seeds)))
        key, scales = both[:, rows, None], deviation[rows, None].to(dtype)
        for first in range(0, half, pairs):
            last = min(first + pairs, half)
            place = torch.arange(first, last, dtype=torch.int32, device=seeds.device)
            words, spare, wide, radius, angle, made = room.cut(rows.stop - top, last - first)
            _write_words(key, place, words, spare)
            # A signed word w is 2**32 (u - 1/2) of a uniform u; the half keeps u off 0 and 1.
            wide.copy_(words[0]).mul_(_GRID).add_(0.5 + 0.5 * _GRID).log_().mul_(-2.0)
            radius.copy_(wide).sqrt_().mul_(scales)
            angle.copy_(words[1]).mul_(2 * math.pi * _GRID)
            yield rows, first, torch.cos(angle, out=made).mul_(radius)
            rest = min(half + last, size) - half - first
            if rest:
                yield rows, half + first, angle.sin_().mul_(radius)[:, :rest]


class _Room:
    """Working memory of a block, made once: asking for it anew takes longer than the arithmetic."""

    def __init__(self, numbers: int, dtype: torch.dtype, device: torch.device) -> None:
        self._words = torch.empty(2, 2 * numbers, dtype=torch.int32, device=device)
        kinds = (torch.float64, dtype, dtype, dtype)
        self._parts = [torch.empty(numbers, dtype=kind, device=device) for kind in kinds]

    def cut(self, rows: int, columns: int) -> list[Tensor]:
        """Return two parts for two words a pair, one in float64 and three in the numbers' type."""
        size = rows * columns
        words = [part[: 2 * size].view(2, rows, columns) for part in self._words]
        return [*words, *(part[:size].view(rows, columns) for part in self._parts)]


def _write_words(key: Tensor, place: Tensor, word: Tensor, room: Tensor) -> None:
    """Write ``randomness.words`` of every key and place into ``word``; ``room`` is overwritten."""
    low = (key & 0x7FFFFFFF).to(torch.int32)
    high = ((key >> 31) & 0x7FFFFFFF).to(torch.int32)
    torch.bitwise_xor(place, low, out=word)
    _finalise(_finalise(word, room).add_(high), room)


def _finalise(word: Tensor, room: Tensor) -> Tensor:
    for shift, mask, factor in _ROUNDS:
        torch.bitwise_right_shift(word, shift, out=room).bitwise_and_(mask)
        word.bitwise_xor_(room)
        if factor is not _ROUNDS[-1][2]:
            word.mul_(factor)
    return word
