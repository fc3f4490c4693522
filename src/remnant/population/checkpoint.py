"""Checkpoints of a training in progress: written atomically, checked, read without pickle.

The last two checkpoints are kept; a checksum detects damaged files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from remnant.errors import RecordError, RemnantWarning, is_disk_full, write_error
from remnant.plans import Schedule
from remnant.population.state import State
from remnant.population.store import ExampleStore

_CHECKSUM = "crc32"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where and how often a fit is saved.

    Attributes:
        path: The file. A fit resumes from it if it exists. The previous checkpoint is beside it,
            with the ending ``.previous``.
        seconds: Least time between two saves; longer if saving is slow, so that it takes at most a
            tenth of all time. 0 saves after every step.
        key: What the training is of (a plan's and data's fingerprint). A file with another key is
            refused.
    """

    path: Path
    seconds: float = 30.0
    key: str = ""


def settings_digest(
    *, state: State, store: ExampleStore, schedule: Schedule, steps: int, plain: list[Any]
) -> str:
    """Return a digest of a training's settings and data, so that no other training is resumed.

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
    """Write a checkpoint, with a checksum, and keep the one before it.

    Guarantees:
        * Until the new file is whole and on disk, the old ones stay. A kill or a failed write
          leaves the last good checkpoint.
        * Afterwards the one before it is beside it, under the name ``.previous``.

    Raises:
        RecordError: The file cannot be written. The hint says what to do about a full disk.
    """
    unshared = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    written, previous = _beside(path), _previous(path)
    try:
        try:
            _write(written, unshared, notes)
        except OSError as fault:
            # Where there is no room for three, the oldest goes, if the one after it is sound.
            if not is_disk_full(fault) or not previous.exists() or not _is_sound(path):
                raise
            written.unlink(missing_ok=True)
            previous.unlink()
            _write(written, unshared, notes)
        if path.exists():
            os.replace(path, previous)
        os.replace(written, path)
        _sync(path.parent)
    except OSError as fault:
        with suppress(OSError):
            written.unlink(missing_ok=True)
        raise write_error(path, fault, hint="Choose another folder.") from fault


def peek(path: Path) -> dict[str, Any] | None:
    """Return the notes of the last good checkpoint, or ``None`` where there is none.

    After this the checkpoint is at ``path``: where that file is damaged, or a kill came before it
    had its name, the previous one takes its place, with a warning in the first case. What a kill
    left of one that was being written is removed.

    Raises:
        RecordError: The file is damaged, and there is no sound one before it.
    """
    _beside(path).unlink(missing_ok=True)
    previous = _previous(path)
    if not path.exists():
        if not previous.exists():
            return None
        os.replace(previous, path)
    try:
        return load(path, torch.device("cpu"))[1]
    except DamagedCheckpoint:
        if not _is_sound(previous):
            raise
    os.replace(previous, path)
    warnings.warn(
        f"The checkpoint {path} was damaged; the training continues from the one before it.",
        RemnantWarning,
        stacklevel=2,
    )
    return load(path, torch.device("cpu"))[1]


def load(path: Path, device: torch.device) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a checkpoint and compare its checksum; files of older versions have none.

    Guarantees:
        * A flipped bit is an error, or is in a byte that changes neither a tensor nor a note.

    Raises:
        DamagedCheckpoint: It is not what was written.
        RecordError: It cannot be read.
    """
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            written = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        sound = written.get(_CHECKSUM) in (None, _checksum(tensors, written["notes"]))
        notes = json.loads(written["notes"]) if sound else None
    except OSError as fault:
        raise RecordError(f"The checkpoint {path} cannot be read: {fault.strerror}.") from fault
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as fault:
        raise DamagedCheckpoint(path) from fault
    if not isinstance(notes, dict):
        raise DamagedCheckpoint(path)
    return {name: tensor.to(device) for name, tensor in tensors.items()}, notes


def remove_checkpoint(path: Path) -> None:
    """Remove a training's checkpoint and the one before it, once its results are stored."""
    for file in (_previous(path), _beside(path), path):
        file.unlink(missing_ok=True)


class DamagedCheckpoint(RecordError):
    """A checkpoint is not what was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"The checkpoint {path} is damaged.",
            hint="Delete it and run the same command again; this training then starts anew.",
        )


def _write(path: Path, tensors: dict[str, Tensor], notes: dict[str, Any]) -> None:
    """Write a file and flush it to disk.

    Raises:
        OSError: Also for what safetensors could not write.
    """
    text = json.dumps(notes)
    try:
        save_file(tensors, path, metadata={"notes": text, _CHECKSUM: _checksum(tensors, text)})
    except SafetensorError as fault:
        said = str(fault).splitlines()[0]
        number = re.search(r"os error (\d+)", said)
        if number is None:
            raise OSError(said) from fault
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from fault
    os.chmod(path, 0o600)  # secrets may be extracted from weights
    with open(path, "rb") as handle:
        os.fsync(handle.fileno())


def _checksum(tensors: dict[str, Tensor], notes: str) -> str:
    """Digest names, types, shapes, bytes and notes; tensors are contiguous and on the CPU."""
    value = zlib.crc32(notes.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        value = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), value)
        # A tensor of one entry is contiguous whatever its stride, and bytes need a stride of 1.
        entries = tensor.as_strided((tensor.numel(),), (1,))
        value = zlib.crc32(entries.view(torch.uint8).numpy().data, value)
    return f"{value:08x}"


def _is_sound(path: Path) -> bool:
    try:
        load(path, torch.device("cpu"))
    except RecordError:
        return False
    return True


def _beside(path: Path) -> Path:
    """Where a checkpoint is written before it is moved to its place."""
    return path.with_name(path.name + ".tmp")


def _previous(path: Path) -> Path:
    """Where the checkpoint before the last one is."""
    return path.with_name(path.name + ".previous")


def _sync(folder: Path) -> None:
    """Make renames in the folder survive a loss of power, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            with suppress(OSError):  # some network file systems cannot sync a folder
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
