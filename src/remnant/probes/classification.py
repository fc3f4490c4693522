"""What classifiers say about labelled examples, as arrays."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from remnant.errors import InvalidInput
from remnant.models.protocols import LogitModels


def label_signals(models: LogitModels, inputs: Any, labels: Any) -> Tensor:
    """Return the loss, the log-odds and the correctness of each label, for every member.

    The loss is the cross-entropy in nats. The log-odds are ``log p / (1 - p)`` of the label,
    computed as its logit less the log-sum-exp of the others, so that they stay finite where the
    softmax saturates. Correct is 1 where the label has the highest logit.

    Returns:
        float64 ``(members, 3, n)``: losses, log-odds, correctness, in this order (``SIGNALS``).

    Raises:
        InvalidInput: Labels that are not one per input, for all members or for each.
    """
    logits, wanted = _read(models, inputs, labels)
    losses, odds = _loss_and_odds(logits, wanted)
    correct = (logits.argmax(-1) == wanted[..., 0]).double()
    return torch.stack([losses, odds, correct], dim=1)


def margin_signals(models: LogitModels, inputs: Any, labels: Any) -> Tensor:
    """Return the loss, the log-odds and the logit gap of each label, for every member.

    The logit gap is the label's logit less the best other one. The rest as in ``label_signals``.

    Returns:
        float64 ``(members, 3, n)``: losses, log-odds, logit gaps, in this order (``MARGINS``).

    Raises:
        InvalidInput: Labels that are not one per input, for all members or for each.
    """
    logits, wanted = _read(models, inputs, labels)
    losses, odds = _loss_and_odds(logits, wanted)
    best = logits.scatter(-1, wanted, -torch.inf).amax(-1)
    return torch.stack([losses, odds, logits.gather(-1, wanted)[..., 0] - best], dim=1)


def _read(models: LogitModels, inputs: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """The logits ``(members, n, classes)`` and the places of the labels among them."""
    logits = torch.as_tensor(models.logits(inputs)).double()
    wanted = torch.as_tensor(labels, device=logits.device).long()
    if logits.ndim != 3 or wanted.shape not in (logits.shape[1:2], logits.shape[:2]):
        raise InvalidInput(
            f"labels of shape {tuple(wanted.shape)} do not belong to "
            f"logits of shape {tuple(logits.shape)}.",
            hint="Give one label per input, and logits (members, n, classes).",
        )
    return logits, wanted.expand(len(logits), -1)[..., None]


def _loss_and_odds(logits: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    own = logits.gather(-1, wanted)[..., 0]
    others = logits.scatter(-1, wanted, -torch.inf).logsumexp(-1)
    return logits.logsumexp(-1) - own, own - others


SIGNALS = ("loss", "log_odds", "correct")
MARGINS = ("loss", "log_odds", "logit_gap")
