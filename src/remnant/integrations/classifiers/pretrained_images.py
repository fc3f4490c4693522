"""Image classifiers in Hugging Face folders, with what their folder says about images."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from remnant.errors import InvalidInput
from remnant.integrations.folder_checks import read_object
from remnant.integrations.pretrained import read_config, read_model

_KIND = "AutoModelForImageClassification"
_ABOUT = "preprocessor_config.json"
_AGAIN = "Write it again with processor.save_pretrained(folder)."
_LARGEST_SIDE = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class ImageModel:
    """A classifier, and images as it takes them.

    Attributes:
        model: It returns logits in a field of this name.
        shape: ``(channels, height, width)``; None where the folder does not say.
        mean, std: By which images are normalised; None where the folder does not say.
    """

    model: nn.Module
    shape: tuple[int, int, int] | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None


def load_image_model(folder: str | Path, *, device: str | torch.device = "cpu") -> ImageModel:
    """Read an image classifier of a Hugging Face folder, in float32.

    Raises:
        InvalidInput: The folder, its weights or its ``preprocessor_config.json`` cannot be read, or
            it holds a model of another kind.
        MissingExtra: transformers is not installed.
    """
    config = read_config(folder)
    model: nn.Module = read_model(folder, kind=_KIND, device=device, dtype=torch.float32)
    about = _about(Path(folder) / _ABOUT)
    _check_about(Path(folder) / _ABOUT, about)
    wanted = about.get("crop_size") or about.get("size") or getattr(config, "image_size", None)
    size = _size(wanted) or _size(getattr(config, "image_size", None))
    channels = getattr(config, "num_channels", 3)
    normal = about.get("do_normalize", True)
    mean, std = (
        _numbers(about.get(f"image_{name}")) if normal else None for name in ("mean", "std")
    )
    return ImageModel(
        model,
        (int(channels), *size) if size is not None and isinstance(channels, int) else None,
        *((mean, std) if mean is not None and std is not None else (None, None)),
    )


def _about(path: Path) -> Mapping[str, Any]:
    return read_object(path, hint=_AGAIN) if path.exists() else {}


def _check_about(path: Path, about: Mapping[str, Any]) -> None:
    """Refuse sizes and colours that no image has; what is not there is not asked for."""
    for name in ("size", "crop_size"):
        size = _size(about.get(name))
        if size is not None and not all(1 <= side <= _LARGEST_SIDE for side in size):
            raise InvalidInput(
                f"{path}: {name} is not between 1 and {_LARGEST_SIDE} pixels a side.", hint=_AGAIN
            )
    for name, least in (("image_mean", -math.inf), ("image_std", 0.0)):
        values = _numbers(about.get(name))
        if values is not None and not all(math.isfinite(v) and v > least for v in values):
            raise InvalidInput(f"{path}: {name} holds a number that is not usable.", hint=_AGAIN)


def _size(given: Any) -> tuple[int, int] | None:
    if type(given) is int:
        return given, given
    if isinstance(given, Mapping):
        given = [given.get("height"), given.get("width")]
    if isinstance(given, list | tuple) and len(given) == 2:
        high, wide = given
        if type(high) is int and type(wide) is int:
            return high, wide
    return None


def _numbers(given: Any) -> tuple[float, ...] | None:
    if isinstance(given, list) and given and all(type(number) in (int, float) for number in given):
        return tuple(float(number) for number in given)
    return None
