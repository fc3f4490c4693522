"""Randomness that belongs to one member: dropout masks from a counter, not from a global stream.

A mask depends on (member's dropout seed, updates the member has taken, layer, place of the
activation) and on nothing else, so that a member has the same masks alone, among a thousand
others, on either backend and after a resume.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

_REPLACED = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
_GOLDEN = -7046029254386353131  # 2**64 / golden ratio, odd, as a signed word
_CALL = 0x632BE59BD9B4E019  # odd, so that calls of one layer never meet
_MIX_A, _MIX_B = -4658895280553007687, -7723592293110705685  # multipliers of a 64-bit finaliser


def _finalise64(word: Tensor) -> Tensor:
    word = (word ^ ((word >> 30) & 0x3FFFFFFFF)) * _MIX_A
    word = (word ^ ((word >> 27) & 0x1FFFFFFFFF)) * _MIX_B
    return word ^ ((word >> 31) & 0x1FFFFFFFF)


def _finalise32(word: Tensor) -> Tensor:
    word = (word ^ ((word >> 16) & 0xFFFF)) * 0x7FEB352D
    word = (word ^ ((word >> 15) & 0x1FFFF)) * -2073254261  # 0x846CA68B as a signed word
    return word ^ ((word >> 16) & 0xFFFF)


def keys(seeds: Tensor, counters: Tensor, layer: int) -> Tensor:
    """Return one 64-bit key per member for this layer at each member's own update count."""
    offset = _signed((layer + 2) * _GOLDEN)
    return _finalise64(_finalise64(seeds * _GOLDEN + counters) + offset)


def _signed(number: int) -> int:
    """Return the signed 64-bit word of a whole number, which torch takes and Python has not."""
    return (number + 2**63) % 2**64 - 2**63


def words(key: Tensor, place: Tensor) -> Tensor:
    """Return a random 32-bit word for each place under a key."""
    low = (key & 0x7FFFFFFF).to(torch.int32)
    high = ((key >> 31) & 0x7FFFFFFF).to(torch.int32)
    return _finalise32(_finalise32(place ^ low) + high)


def keep_scale(
    key: Tensor,
    rate: Tensor,
    shape: torch.Size,
    dtype: torch.dtype,
    *,
    place: Tensor | None = None,
) -> Tensor:
    """Return the dropout factors: 0 with probability ``rate``, else ``1 / (1 - rate)``.

    Args:
        key: Of the layer, the member and the update.
        rate: Of the layer.
        shape: Of the activations, examples first.
        dtype: Of the factors.
        place: Of the first example in its batch; 0, if not given.
    """
    index = torch.arange(shape.numel(), dtype=torch.int32, device=key.device)
    if place is not None:
        index = index + place * shape[1:].numel()
    word = words(key, index)
    uniform = ((word >> 8) & 0xFFFFFF).to(torch.float32) * 2.0**-24
    scale = torch.where(rate < 1, 1 / (1 - rate), torch.zeros_like(rate))
    return ((uniform >= rate.to(torch.float32)) * scale).to(dtype).reshape(shape)


class CounterDropout(nn.Module):
    """Stands in for a dropout layer; the engine hands it the member's key before each step.

    Attributes:
        key, rate: Of the member, at its update.
        place: Of the first example in its batch, where ``one_example`` is set.
        one_example: Whether a pass runs a single example of a batch.
        axes: The axis of examples in each call of a pass; 0 for calls that are not listed.
    """

    key: Tensor
    rate: Tensor
    place: Tensor

    def __init__(self, p: float, *, whole_channels: bool) -> None:
        super().__init__()
        self.p = p
        self.calls = 0  # in this pass: a layer that is used twice has two masks
        self.whole_channels = whole_channels
        self.one_example = False
        self.axes: dict[int, int] = {}
        self.register_buffer("key", torch.zeros((), dtype=torch.int64), persistent=False)
        self.register_buffer("rate", torch.tensor(float(p), dtype=torch.float64), persistent=False)
        self.register_buffer("place", torch.zeros((), dtype=torch.int32), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Drop activations while training, pass them through otherwise."""
        if not self.training:
            return inputs
        axis = self.axes.get(self.calls, 0)
        shape = inputs.movedim(axis, 0).shape
        if self.whole_channels:
            shape = torch.Size([*shape[:2], *(1 for _ in shape[2:])])
        key = self.key + _signed(self.calls * _CALL)
        self.calls += 1
        place = self.place if self.one_example else None
        scale = keep_scale(key, self.rate, shape, inputs.dtype, place=place)
        return inputs * scale.movedim(0, axis)


def install_counters(model: nn.Module) -> dict[str, CounterDropout]:
    """Replace every dropout layer of ``model`` in place; return them by name, in order."""
    done: dict[int, CounterDropout] = {}
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) in _REPLACED:
                if id(child) not in done:
                    whole = not isinstance(child, nn.Dropout)
                    done[id(child)] = CounterDropout(cast(float, child.p), whole_channels=whole)
                setattr(parent, name, done[id(child)])
    return {n: m for n, m in model.named_modules() if isinstance(m, CounterDropout)}
