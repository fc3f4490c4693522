"""The base class of our sequence models: networks that also read one token at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from remnant.errors import require
from remnant.models.shared_prefix import SharedPrefix

State = tuple[Tensor, ...]


class SequenceModule(nn.Module):
    """Predicts the next token, at all positions of a text at once or token by token.

    ``forward(ids [batch, time])`` returns logits ``[batch, time, vocabulary]``; those at
    position *t* depend on the tokens up to *t* and predict the next one. The token ``begin``, whose
    number is the size of the vocabulary, is read but never predicted. It marks the start of a text:
    an empty prefix is scored after it; to train it, put it first in some windows. Other texts, such
    as windows cut from a corpus, are read without it, unless the network ``begins``: then it comes
    before every text.

    ``initial`` and ``advance`` do the same one token at a time, in evaluation mode. The state is a
    tuple of tensors whose first axis is the row, and is never written into. ``prepare`` does the
    part of ``advance`` that does not depend on the token, so that all children of a row share it.
    ``shared`` turns the state of one text into one whose rows share what was read, where the
    network can ``read`` on from such a state.

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
        """The token that marks the start of a text; it is read, never predicted."""
        return self.vocabulary_size

    def initial(self, rows: int) -> State:
        """Return the state of ``rows`` empty texts."""
        raise NotImplementedError

    def prepare(self, state: State) -> State:
        """Return what reading any token after ``state`` needs."""
        return state

    def shared(self, state: State) -> State | SharedPrefix:
        """Return a state of one text for continuations that all begin with it."""
        return state

    def read(self, ids: Tensor, prepared: Any) -> tuple[Tensor, Any]:
        """Read one token a row; return ``(logits[rows, vocabulary], state)``."""
        raise NotImplementedError

    def advance(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one token a row; return ``(logits[rows, vocabulary], state)``."""
        return self.read(ids, self.prepare(state))

    def fold(self) -> None:
        """Precompute what depends only on the weights, which must not change afterwards."""

    def _zeros(self, *shape: int) -> Tensor:
        weight = next(self.parameters())
        return torch.zeros(shape, dtype=weight.dtype, device=weight.device)


def take(state: State, rows: Tensor) -> State:
    """Return the state of these rows, in this order; a row may be taken many times."""
    return tuple(tensor.index_select(0, rows) for tensor in state)


def watched(module: nn.Module) -> bool:
    """Return whether a hook looks at a layer's calls.

    Shortcuts past a layer, and axes merged before it, are then left out, so that the hook sees all
    that its parameters are used for. The result is the same to rounding.
    """
    return bool(module._forward_hooks)


def dropout_layer(rate: float) -> nn.Module:
    """Return a dropout layer, or the identity if the rate is 0."""
    return nn.Dropout(rate) if rate else nn.Identity()


def check_sizes(*, dropout: float, **sizes: Any) -> None:
    """Refuse sizes that are not positive whole numbers, and rates outside [0, 1).

    ``heads``, where there are any, must divide ``units``.
    """
    faults = [
        f"{name}={size!r} is not a whole number from 1 on"
        for name, size in sizes.items()
        if isinstance(size, bool) or not isinstance(size, int) or size < 1
    ]
    if not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        faults.append(f"dropout={dropout!r} is not a rate from 0 to below 1")
    if not faults and sizes.get("units", 0) % sizes.get("heads", 1):
        faults.append(
            f"units={sizes['units']} cannot be cut into heads={sizes['heads']} equal parts"
        )
    require(faults)
