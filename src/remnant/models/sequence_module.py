"""What every sequence model of ours is: a network that can also read one token at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from remnant.errors import require

State = tuple[Tensor, ...]


class SequenceModule(nn.Module):
    """Predicts the next token: all places of a text at once, or one token after another.

    ``forward(ids [batch, time])`` returns logits ``[batch, time, vocabulary]``; those of place *t*
    follow from the tokens up to *t* and predict the one after it. One more token can be read than
    predicted: ``begin``, whose number is the size of the vocabulary. It stands for "no text yet"
    and is what an empty prefix is scored after; to train it, put it first in some windows. A text
    that does not begin with it is read as it stands, as windows cut from a corpus are; a network
    that ``begins`` has read it before every text.

    ``initial`` and ``advance`` do the same one token at a time, in evaluation mode. The state is a
    tuple of tensors whose first axis is the row, and is never written into. ``prepare`` does the
    part of ``advance`` that does not depend on the token: what all children of a row share.

    Guarantees:
        * Reading tokens one by one gives the logits of ``forward``.
        * ``advance(ids, state)`` is ``read(ids, prepare(state))``, and changes neither.
    """

    begins = False

    def __init__(self, vocabulary_size: int) -> None:
        super().__init__()
        self.vocabulary_size = vocabulary_size

    @property
    def begin(self) -> int:
        """The token that stands for "no text yet": it is read, never predicted."""
        return self.vocabulary_size

    def initial(self, rows: int) -> State:
        """Return the state of ``rows`` texts of which nothing has been read."""
        raise NotImplementedError

    def prepare(self, state: State) -> State:
        """Return what reading any token after ``state`` needs."""
        return state

    def read(self, ids: Tensor, prepared: State) -> tuple[Tensor, State]:
        """Read one token a row; return ``(logits[rows, vocabulary], state)``."""
        raise NotImplementedError

    def advance(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one token a row; return ``(logits[rows, vocabulary], state)``."""
        return self.read(ids, self.prepare(state))

    def fold(self) -> None:
        """Work out once what follows from the weights alone; they must not change afterwards."""

    def _zeros(self, *shape: int) -> Tensor:
        weight = next(self.parameters())
        return torch.zeros(shape, dtype=weight.dtype, device=weight.device)


def take(state: State, rows: Tensor) -> State:
    """Return the state of these rows, in this order; a row may be taken many times."""
    return tuple(tensor.index_select(0, rows) for tensor in state)


def dropout_layer(rate: float) -> nn.Module:
    """Return a dropout layer, or nothing at all where the rate is zero."""
    return nn.Dropout(rate) if rate else nn.Identity()


def check_sizes(*, dropout: float, **sizes: Any) -> None:
    """Refuse sizes that are not whole numbers from 1 on, and rates outside [0, 1)."""
    faults = [
        f"{name}={size!r} is not a whole number from 1 on"
        for name, size in sizes.items()
        if isinstance(size, bool) or not isinstance(size, int) or size < 1
    ]
    if not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        faults.append(f"dropout={dropout!r} is not a rate from 0 to below 1")
    require(faults)
