"""Where a model's weights are put, and in which precision: one device, or what Accelerate plans."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

from remnant.errors import InvalidInput, MissingExtra, UnsupportedModel, install_hint

Precision = Literal["float32", "own"]
DeviceMap = str | Mapping[str, Any]
MAPS = ("auto", "balanced", "balanced_low_0", "sequential")


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a Hugging Face model computes.

    Attributes:
        device: One device for the whole model.
        device_map: Instead of it, how Accelerate places layers: ``"auto"`` and its other plans fill
            GPUs, then memory, then disk; a mapping names a device for each part.
        precision: ``"float32"`` converts the weights; ``"own"`` computes with them as they are
            stored, and close calls are decided in float64.

    Raises:
        InvalidInput: A plan or a precision that does not exist.
        MissingExtra: There is a device map, and Accelerate is not installed.

    Example:
        >>> Placement(precision="own").plain, Placement().plain
        (False, True)
    """

    device: str | torch.device = "cpu"
    device_map: DeviceMap | None = None
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        if self.precision not in get_args(Precision):
            raise InvalidInput(
                f"precision={self.precision!r} is not one of {', '.join(get_args(Precision))}."
            )
        if isinstance(self.device_map, str) and self.device_map not in MAPS:
            raise InvalidInput(
                f"device_map={self.device_map!r} is not one of {', '.join(MAPS)}.",
                hint="Pass device_map='auto'.",
            )
        if self.device_map is not None and importlib.util.find_spec("accelerate") is None:
            raise MissingExtra(
                "Placing a model on several devices needs accelerate, which is not installed.",
                hint=install_hint("hf"),
            )

    @property
    def plain(self) -> bool:
        """Whether the model is on one device, in float32."""
        return self.device_map is None and self.precision == "float32"

    def refuse(self, what: str, hint: str) -> None:
        """Refuse a model that can be on one device and in float32 only.

        Raises:
            UnsupportedModel: The placement is another.
        """
        if not self.plain:
            raise UnsupportedModel(
                f"{what} is read on one device and in float32: device_map and "
                "precision='own' are for whole causal language models of Hugging Face.",
                hint=hint,
            )
