"""Checkpoints of a training in progress: one file, replaced in one move, read without pickle."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from remnant.errors import RecordError


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where and how often a fit saves itself.

    Attributes:
        path: The file. A fit that finds it goes on from it.
        seconds: Least time between two saves; 0 saves after every step.
        key: What the training is of (a plan's and data's fingerprint). A file with another key is
            refused.
    """

    path: Path
    seconds: float = 30.0
    key: str = ""


def save(path: Path, tensors: dict[str, Tensor], notes: dict[str, Any]) -> None:
    """Write a checkpoint beside its final name, then move it there."""
    unshared = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    written = path.with_name(path.name + ".tmp")
    try:
        save_file(unshared, written, metadata={"notes": json.dumps(notes)})
        with open(written, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(written, path)
    except OSError as fault:
        raise RecordError(
            f"The checkpoint {path} cannot be written: {fault.strerror}.",
            hint="Free some room or choose another folder.",
        ) from fault


def peek(path: Path) -> dict[str, Any] | None:
    """Return the notes of a checkpoint, or ``None`` where there is none."""
    return load(path, torch.device("cpu"))[1] if path.exists() else None


def load(path: Path, device: torch.device) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a checkpoint.

    Raises:
        RecordError: The file is damaged.
    """
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            notes = json.loads(file.metadata()["notes"])
            return {name: file.get_tensor(name) for name in file.keys()}, notes  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as fault:
        raise RecordError(
            f"The checkpoint {path} is damaged.", hint="Delete it to start this run again."
        ) from fault
