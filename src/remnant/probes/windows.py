"""What language models pay for the last tokens of windows of text."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from remnant.errors import InvalidInput
from remnant.models.protocols import LogitModels

WINDOW_SIGNALS = ("bits", "right")
_NUMBERS = 2**24  # that one pass may hold of one member's logits


def window_signals(
    models: LogitModels, windows: Any, *, tokens: int, vocabulary_size: int
) -> Tensor:
    """Return the cost of each window's last tokens, and how many of them were guessed right.

    The cost is the sum of -log2 p over the last ``tokens`` tokens, each given all before it in its
    window. Right is the share of them that had the highest logit. Windows are read a few at a
    time: how many follows from their size alone, so that the numbers do not depend on the machine.

    Args:
        models: Language models that answer together, ``(members, n, time, vocabulary)``.
        windows: Tokens, int64 ``(n, length)``; the first one of a window cannot be scored.
        tokens: How many at the end are scored.
        vocabulary_size: From which the memory follows.

    Returns:
        float64 ``(members, 2, n)``: bits and right, in this order (``WINDOW_SIGNALS``).

    Raises:
        InvalidInput: ``tokens`` is not between 1 and one less than the length.
    """
    ids = torch.as_tensor(windows)
    length = ids.shape[1]
    if not 1 <= tokens < length:
        raise InvalidInput(f"tokens={tokens} of windows of {length} cannot be scored.")
    rows = max(1, min(256, _NUMBERS // (length * vocabulary_size)))
    made = []
    for some in ids.split(rows):
        logits = torch.as_tensor(models.logits(some[:, :-1]))[:, :, -tokens:].double()
        wanted = some[:, -tokens:].to(logits.device).expand(len(logits), -1, -1)
        own = logits.gather(-1, wanted[..., None])[..., 0]
        nats = (logits.logsumexp(-1) - own).sum(-1)
        right = (logits.argmax(-1) == wanted).double().mean(-1)
        made.append(torch.stack([nats / math.log(2.0), right], dim=1))
    return torch.cat(made, dim=-1)
