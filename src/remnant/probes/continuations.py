"""What models in training pay for continuations of a text, many at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import InvalidInput
from remnant.models.protocols import LogitModels

_NUMBERS = 2**24  # that one pass may hold of one member's logits


def continuation_rows(
    prefix: Sequence[int], continuations: Sequence[Sequence[int]], *, begin: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Lay a prefix and its continuations out as rows of one length.

    Args:
        prefix: Tokens that all begin with; ``begin`` stands for none.
        continuations: Tokens after it, of any lengths from 1 on.
        begin: The token that is read before an empty prefix.

    Returns:
        Tokens ``(n, length)``, filled up on the right, and which of them belong to a continuation.

    Raises:
        InvalidInput: No continuation, or an empty one.

    Example:
        >>> rows, counted = continuation_rows([7], [[1, 2], [3]], begin=9)
        >>> rows.tolist(), counted.tolist()
        ([[7, 1, 2], [7, 3, 0]], [[False, True, True], [False, True, False]])
    """
    if len(continuations) == 0 or min(map(len, continuations)) == 0:
        raise InvalidInput("continuations needs at least one, and none that is empty.")
    before = list(prefix) or [begin]
    rows = np.zeros((len(continuations), len(before) + max(map(len, continuations))), np.int64)
    counted = np.zeros(rows.shape, dtype=bool)
    rows[:, : len(before)] = before
    for row, mask, own in zip(rows, counted, continuations, strict=True):
        row[len(before) : len(before) + len(own)] = own
        mask[len(before) : len(before) + len(own)] = True
    return rows, counted


def continuation_bits(
    models: LogitModels, rows: Any, counted: Any, *, vocabulary_size: int
) -> Tensor:
    """Return what each model pays for the counted tokens of each row.

    The cost is the sum of -log2 p over them, each given all before it. What fills a row up stands
    to the right, where a causal model does not see it. Rows are read a few at a time: how many
    follows from their size alone, so that the numbers do not depend on the machine.

    Args:
        models: Language models that answer together, ``(members, n, time, vocabulary)``.
        rows: Tokens, int64 ``(n, length)``; the first one of a row is read and never counted.
        counted: Truth values of the same shape.
        vocabulary_size: From which the memory follows.

    Returns:
        float64 ``(members, n)``, in bits.
    """
    ids, mask = torch.as_tensor(rows), torch.as_tensor(counted)
    most = max(1, min(1024, _NUMBERS // (ids.shape[1] * vocabulary_size)))
    first = int(np.flatnonzero(np.asarray(counted).any(0))[0])  # nothing before it costs anything
    made = []
    for some, wanted in zip(ids.split(most), mask.split(most), strict=True):
        logits = torch.as_tensor(models.logits(some[:, :-1]))[:, :, first - 1 :].double()
        labels = some[:, first:].to(logits.device).expand(len(logits), -1, -1)
        own = logits.gather(-1, labels[..., None])[..., 0]
        nats = (logits.logsumexp(-1) - own) * wanted[:, first:].to(logits.device)
        made.append(nats.sum(-1) / math.log(2.0))
    return torch.cat(made, dim=-1)
