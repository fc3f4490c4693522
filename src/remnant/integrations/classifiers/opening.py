"""Reads a classifier from a file of any supported kind, without opening a pickle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from remnant.errors import InvalidInput
from remnant.integrations.classifiers.exported import load_exported
from remnant.integrations.classifiers.weights import (
    model_of_architecture,
    model_of_maker,
    read_weights,
)
from remnant.integrations.pretrained import on_device

WEIGHTS, EXPORTED = ".safetensors", ".pt2"
_PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")


def load_classifier(
    path: str | Path,
    *,
    shape: Sequence[int],
    classes: int,
    architecture: str | None = None,
    options: Mapping[str, Any] | None = None,
    maker: str | None = None,
    device: str | torch.device = "cpu",
) -> nn.Module:
    """Read a third-party classifier.

    Args:
        path: Weights (``.safetensors``), for which ``architecture`` or ``maker`` makes the network;
            or an exported program (``.pt2``), which is whole.
        shape: Of one sample, for ``architecture``.
        classes: Of the data, for ``architecture``; the weights have the last word.
        architecture: A name of the recipes' catalogue.
        options: Of the architecture.
        maker: ``package.module:function``. It runs the code of that function.
        device: Where the model computes.

    Guarantees:
        * No pickle is opened, and no code is run but the maker's.

    Raises:
        InvalidInput: The file is not there, of another kind, damaged, or does not fit; the device
            cannot be used; ``architecture`` and ``maker`` are missing, both there or out of place.
        PlanError: An unknown architecture or option.
        UnsupportedModel: The maker returns no network, or the exported program does something that
            is not supported.
    """
    where = Path(path)
    _check_kind(where)
    if where.suffix == EXPORTED:
        if architecture is not None or maker is not None:
            raise InvalidInput(
                f"{path} is a whole program; it takes neither architecture= nor maker=.",
                hint="Leave it out.",
            )
        model: nn.Module = load_exported(where)
    else:
        if (architecture is None) == (maker is None):
            raise InvalidInput(
                f"{path} holds weights only; it takes architecture= or maker=, and not both.",
                hint="Say which network they belong to.",
            )
        if maker is not None and options:
            raise InvalidInput("options are for architecture=; a maker takes none.")
        state = read_weights(where)
        if maker is not None:
            model = model_of_maker(maker, state)
        else:
            model = model_of_architecture(
                str(architecture), state, shape=shape, classes=classes, options=options
            )
    return on_device(model, device)


def _check_kind(path: Path) -> None:
    if path.suffix in _PICKLES:
        raise InvalidInput(
            f"{path} is a pickle, which may run anything when it is opened.",
            hint="Where you trust it, convert it: safetensors.torch.save_file("
            f"torch.load({path.name!r}, weights_only=True), {path.stem + WEIGHTS!r}).",
        )
    if path.is_dir():
        raise InvalidInput(
            f"{path} is a folder; for images and arrays it takes a file.",
            hint=f"Pass a {WEIGHTS} or {EXPORTED} file. Folders are for texts (JSON lines).",
        )
    if path.suffix not in (WEIGHTS, EXPORTED):
        raise InvalidInput(f"{path} is neither a {WEIGHTS} nor a {EXPORTED} file.")
