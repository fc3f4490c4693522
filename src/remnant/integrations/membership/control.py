"""The positive control of an audit: does the attack find records that were trained on for certain?

A copy of the model is trained on some held-out records, a few passes at most. After 1, 2, 4, 8 and
16 passes the gate is held against that copy: the attack has to distinguish these records from other
held-out ones beyond the limit. Where it never does, a gate that says nothing against the model
itself proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import InvalidInput
from remnant.integrations.trained_copy import copy_optimizer
from remnant.measures import Success
from remnant.measures.forgetting.verdict import rounded_down
from remnant.measures.statistics.checks import NAMES, unseen_needed
from remnant.measures.statistics.evidence_faults import alike_fault, tied_pairs
from remnant.measures.statistics.resampling import NO_GROUPS, GroupPair
from remnant.records.typed import Absent
from remnant.studies.membership.measure import success_lower_bound
from remnant.studies.membership.result import Control
from remnant.studies.shared.wording import counted

Floats = NDArray[np.float64]
TRAINED, COMPARED = 32, 96  # held-out records that are trained on, and others
LOOKS = (1, 2, 4, 8, 16)  # passes after which the attack looks
_CONFIDENCE = 0.95  # over all looks
_AT_ONCE = 8


class Trainable(Protocol):
    """A model whose copy can be trained on records."""

    @property
    def module(self) -> torch.nn.Module:
        """The network."""
        ...


Model = TypeVar("Model", bound=Trainable)
Record = TypeVar("Record")


def trained_control(
    model: Model,
    held_out: Sequence[Record],
    *,
    copied: Callable[[Model], Model],
    loss: Callable[[Model, Sequence[Record]], Tensor],
    attack: Callable[[Model, Sequence[Record]], Floats],
    needed: float,
    rng: np.random.Generator,
    success: Success = "auc",
    fpr: float = 0.1,
    looks: Sequence[int] = LOOKS,
) -> Control | Absent:
    """Train a copy of the model on held-out records until the attack finds them.

    Args:
        model: Under audit; it is left as it was.
        held_out: Records that it never saw, in random order.
        copied: Makes a copy whose weights can be trained.
        loss: The mean loss of a few records, with gradients.
        attack: The scores of records.
        needed: What the lower bound of the success has to exceed.
        rng: Draws the resamples behind the bounds.
        success, fpr: The rate that is held against ``needed``.
        looks: Passes after which the attack looks, increasing.

    Returns:
        The control; Absent where there are too few records, or too little memory for a copy.
    """
    size = min(TRAINED, len(held_out) // 3)
    trained, others = held_out[:size], held_out[size : size + COMPARED]
    if size < 5:
        return Absent(f"{counted(len(held_out), 'held-out record')} are too few to train on some")
    if success in ("tpr", "precision") and len(others) < unseen_needed(fpr):
        return Absent(
            f"{counted(len(others), 'held-out record')} beside the trained ones cannot place a "
            f"threshold at FPR {fpr:g}; name memorised records as the control"
        )
    confidence = 1.0 - (1.0 - _CONFIDENCE) / len(looks)
    best = 0.0
    try:
        copy = copied(model)
        optimizer = copy_optimizer(copy.module)
        if optimizer is None:
            return Absent("the model has no weight that could be trained")
        done = 0
        for look in looks:
            for _ in range(look - done):
                _train(copy, trained, loss, optimizer)
            done = look
            low = success_lower_bound(
                attack(copy, trained),
                attack(copy, others),
                confidence=confidence,
                rng=rng,
                success=success,
                fpr=fpr,
            )
            best = max(best, low)
            if low > needed:
                return _control(size, done, low, needed, success)
    except (MemoryError, RuntimeError, InvalidInput) as fault:
        if isinstance(fault, InvalidInput) or "memory" in str(fault) or not best:
            return Absent(f"a copy of the model could not be trained ({_reason(fault)})")
        raise
    return _control(size, looks[-1], best, needed, success)


def _reason(fault: BaseException) -> str:
    if isinstance(fault, MemoryError) or "memory" in str(fault):
        return "too little memory"
    return "its training diverged" if isinstance(fault, InvalidInput) else type(fault).__name__


def _train(copy: Any, records: Sequence[Any], loss: Any, optimizer: torch.optim.Optimizer) -> None:
    copy.module.eval()  # no dropout: a pass is a pass
    with torch.enable_grad():
        for first in range(0, len(records), _AT_ONCE):
            optimizer.zero_grad(set_to_none=True)
            loss(copy, records[first : first + _AT_ONCE]).backward()
            optimizer.step()


def _control(records: int, passes: int, low: float, needed: float, success: Success) -> Control:
    found = low > needed
    rate = NAMES[success]
    done = f"after {counted(passes, 'pass', 'passes')}"
    sentence = (
        f"Positive control: in a copy of the model that was trained on {records} held-out records, "
        f"the attack finds them {done} ({rate} at least {rounded_down(low)})."
        if found
        else f"the positive control failed: in a copy of the model that was trained on {records} "
        f"held-out records, the attack does not find them even {done} ({rate} at least "
        f"{rounded_down(low)}; {needed:g} is needed). An attack that cannot fail a model that "
        "remembers proves nothing."
    )
    return Control(
        kind="trained",
        records=records,
        passes=passes,
        low=low,
        needed=needed,
        found=found,
        sentence=sentence,
    )


def given_control(
    scores: Floats,
    unseen: Floats,
    *,
    needed: float,
    rng: np.random.Generator,
    success: Success = "auc",
    fpr: float = 0.1,
    groups: GroupPair = NO_GROUPS,
) -> Control:
    """The control by records that the user knows to be memorised.

    Args:
        scores: Of these records, by the named attack.
        unseen: Of the unseen records.
        needed: What the lower bound of the success has to exceed.
        rng: Draws the resamples behind the bound.
        success, fpr: The rate that is held against ``needed``.
        groups: The clusters of these records and of the unseen ones.
    """
    low = success_lower_bound(
        scores, unseen, confidence=_CONFIDENCE, rng=rng, success=success, fpr=fpr, groups=groups
    )
    alike = alike_fault(tied_pairs(scores, unseen))
    found = low > needed and not alike
    at_least = f"{NAMES[success]} at least {rounded_down(low)}"
    if found:
        sentence = (
            f"Positive control: the attack finds the {len(scores)} records given for it "
            f"({at_least})."
        )
    elif alike:
        sentence = f"the positive control failed: with the records given for it, {alike}."
    else:
        sentence = (
            f"the positive control failed: the attack does not find the {len(scores)} records "
            f"given for it ({at_least}; {needed:g} is needed). An attack that cannot fail a model "
            "that remembers proves nothing."
        )
    return Control(
        kind="given",
        records=len(scores),
        passes=None,
        low=low,
        needed=needed,
        found=found,
        sentence=sentence,
    )
