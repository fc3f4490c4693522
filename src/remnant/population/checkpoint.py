"""Checkpoints of a training in progress: one file, replaced in one move, read without pickle."""

from __future__ import annotations

import hashlib
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
from remnant.plans import Schedule
from remnant.population.state import State
from remnant.population.store import ExampleStore


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where and how often a fit saves itself.

    Attributes:
        path: The file. A fit that finds it goes on from it.
        seconds: Least time between two saves, longer where saving itself takes long: it takes no
            more than a tenth of all time. 0 saves after every step.
        key: What the training is of (a plan's and data's fingerprint). A file with another key is
            refused.
    """

    path: Path
    seconds: float = 30.0
    key: str = ""


def settings_digest(
    *, state: State, store: ExampleStore, schedule: Schedule, steps: int, plain: list[Any]
) -> str:
    """Digest what a training follows from, so that no other one is gone on with.

    It covers every tensor at the start (also the seeds and dropout rates), the data, the optimizer,
    what is probed and when, and the first and last batches of the schedule; a loss is code and is
    not covered.
    """
    digest = hashlib.sha256(json.dumps([*plain, steps], sort_keys=True).encode())
    for (group, name), tensor in sorted(state.items(), key=lambda item: item[0]):
        digest.update(f"{group}/{name}{tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().numpy().tobytes())
    for tensor in (store.inputs, store.labels):
        digest.update(tensor.cpu().numpy().tobytes())
    for step in sorted({0, steps // 2, steps - 1}) if steps else ():
        for part in schedule.batch(step):
            digest.update(part.tobytes())
    return digest.hexdigest()[:16]


def save(path: Path, tensors: dict[str, Tensor], notes: dict[str, Any]) -> None:
    """Write a checkpoint beside its final name, then move it there."""
    unshared = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    written = _beside(path)
    try:
        save_file(unshared, written, metadata={"notes": json.dumps(notes)})
        with open(written, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(written, path)
    except (OSError, SafetensorError) as fault:
        written.unlink(missing_ok=True)
        raise RecordError(
            f"The checkpoint {path} cannot be written: {str(fault).splitlines()[0]}.",
            hint="Free some room or choose another folder.",
        ) from fault


def peek(path: Path) -> dict[str, Any] | None:
    """Return the notes of a checkpoint, or ``None`` where there is none.

    What a kill left of one that was being written is removed.
    """
    _beside(path).unlink(missing_ok=True)
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


def _beside(path: Path) -> Path:
    """Where a checkpoint is written before it is moved to its place."""
    return path.with_name(path.name + ".tmp")
