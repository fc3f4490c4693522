"""The example store: clean examples, canaries and controls side by side, on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import InvalidInput, require


def as_tensor(values: Any, *, device: torch.device, dtype: torch.dtype | None) -> Tensor:
    """Bring an array to the device; floating-point values take ``dtype``."""
    if isinstance(values, Tensor):
        tensor = values
    else:
        try:
            tensor = torch.from_numpy(np.ascontiguousarray(values))
        except (TypeError, ValueError) as fault:
            raise InvalidInput(
                f"A {type(values).__name__} cannot be read as an array of numbers.",
                hint="Pass a NumPy array or a tensor.",
            ) from fault
    tensor = tensor.detach().to(device)
    return tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor


def as_array(values: Any) -> NDArray[Any]:
    """Return a tensor, or anything array-like, as a NumPy array."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


class ExampleStore:
    """Inputs and labels, checked once.

    Raises:
        InvalidInput: Lengths differ, there is nothing, or a value is not finite.
    """

    def __init__(
        self, inputs: Any, labels: Any, *, device: torch.device, dtype: torch.dtype | None
    ) -> None:
        self.inputs = as_tensor(inputs, device=device, dtype=dtype)
        self.labels = as_tensor(labels, device=device, dtype=dtype)
        if not self.labels.is_floating_point():
            self.labels = self.labels.long()
        faults = []
        if self.inputs.ndim < 1 or self.labels.ndim < 1 or len(self.inputs) != len(self.labels):
            faults.append(
                f"inputs of shape {tuple(self.inputs.shape)} and labels of shape "
                f"{tuple(self.labels.shape)} differ in length"
            )
        elif len(self.inputs) == 0:
            faults.append("inputs is empty")
        for name, tensor in (("inputs", self.inputs), ("labels", self.labels)):
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                bad = int((~torch.isfinite(tensor.reshape(len(tensor), -1))).any(1).sum())
                faults.append(f"{name} has NaN or infinity in {bad} of {len(tensor)} examples")
        require(faults, hint="Fix the data before training on them.")

    def __len__(self) -> int:
        return len(self.inputs)

    def check_labels(self, outputs: torch.Size) -> None:
        """Refuse labels that cross-entropy cannot hold against outputs of this shape an example."""
        inner = self.labels.shape[1:]
        if self.labels.is_floating_point():
            raise InvalidInput(
                f"labels have type {self.labels.dtype}; cross-entropy needs whole numbers.",
                hint="Pass int64 labels, or a loss of your own.",
            )
        if inner == outputs[:-1]:
            classes = outputs[-1]
        elif len(outputs) > 1 and inner == outputs[1:]:
            classes = outputs[0]
        else:
            raise InvalidInput(
                f"labels of shape {tuple(inner)} an example do not fit outputs {tuple(outputs)}.",
                hint="Give one label per output position, or a loss of your own.",
            )
        low, high = int(self.labels.min()), int(self.labels.max())
        if low < 0 or high >= classes:
            raise InvalidInput(
                f"labels run from {low} to {high}, but the model has {classes} classes.",
                hint=f"Labels must be 0 to {classes - 1}.",
            )

    def check_rows(self, low: int, high: int, *, padded: bool = False) -> None:
        """Refuse rows that the store does not hold.

        Args:
            low, high: The smallest and the largest row.
            padded: Whether -1, an empty place, is allowed.
        """
        if low == -1 and not padded:
            raise InvalidInput(
                "the schedule has empty places (-1), on which only private optimizers can train.",
                hint="Choose dp-sgd, dp-rmsprop or dp-adam, or a schedule without empty places.",
            )
        low = max(low, 0) if low == -1 else low
        if low < 0 or high >= len(self):
            raise InvalidInput(
                f"the schedule asks for rows {low} to {high}, but the store holds {len(self)}.",
                hint="Put clean examples first, then the canaries, into inputs and labels.",
            )
