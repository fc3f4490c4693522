"""Saves and loads language models: one folder each, written atomically, read without pickle."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of
from torch import Tensor

from remnant.errors import InvalidInput, PlanError, RecordError, require
from remnant.models.catalogue import SEQUENCE_MODELS, TRANSLATORS, Architecture, checked_maker
from remnant.models.encoder_decoder import EncoderDecoder
from remnant.models.language_model import LanguageModel
from remnant.models.sequence_module import SequenceModule
from remnant.models.vocabulary import Vocabulary

FORMAT = 1
ABOUT_FILE = "remnant.json"
WEIGHTS_FILE = "model.safetensors"
_AGAIN = "Restore the folder from a copy, or save the model again."
_FIELDS = {"architecture": str, "options": dict, "vocabulary": dict, "sha256": str}


def save_language_model(
    folder: str | Path,
    *,
    architecture: str,
    options: Mapping[str, Any],
    state: Mapping[str, Tensor],
    vocabulary: Vocabulary,
) -> None:
    """Write a trained network with its vocabulary into ``folder``.

    Args:
        folder: Created if needed. A Remnant model that it holds is replaced.
        architecture: A name of ``SEQUENCE_MODELS`` or ``TRANSLATORS``.
        options: The options that the network was made with; plain data.
        state: The network's ``state_dict``, or that of one member of a population.
        vocabulary: The network's vocabulary.

    Guarantees:
        * The folder is complete or absent; a model that could not be loaded is not written.
        * Only a Remnant model is ever overwritten.

    Raises:
        PlanError: An unknown architecture or option.
        InvalidInput: The state is not one of that network.
        RecordError: The folder holds something else, or cannot be written.
    """
    path = Path(folder)
    check_model_folder(path)
    module = _made(architecture, dict(options), vocabulary)
    _check_state(module, state)
    weights = bytes_of({n: t.detach().cpu().contiguous().clone() for n, t in state.items()})
    about = {
        "format": FORMAT,
        "architecture": architecture,
        "options": dict(options),
        "vocabulary": vocabulary.to_dict(),
        "sha256": hashlib.sha256(weights).hexdigest(),
    }
    try:
        text = json.dumps(about, indent=1, allow_nan=False)
    except (TypeError, ValueError) as fault:
        raise InvalidInput(f"options={dict(options)} are not plain data.") from fault
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as near:
            made = Path(near) / "new"
            made.mkdir()
            _write(made / WEIGHTS_FILE, weights)
            _write(made / ABOUT_FILE, text.encode())
            _move_in(made, path, aside=Path(near) / "old")
    except OSError as fault:
        raise RecordError(f"{path} cannot be written: {fault.strerror}.") from fault


def check_model_folder(folder: str | Path) -> None:
    """Refuse a folder that holds anything but a Remnant model.

    ``save_language_model`` checks this too; call it before a long training.

    Raises:
        RecordError: The folder holds something else, or cannot be used.
    """
    path = Path(folder)
    try:
        there = sorted(entry.name for entry in path.iterdir()) if path.exists() else []
    except NotADirectoryError as fault:
        raise RecordError(f"{path} is a file, not a folder.", hint="Choose another.") from fault
    except OSError as fault:
        raise RecordError(f"{path} cannot be used: {fault.strerror}.") from fault
    others = [name for name in there if name not in (ABOUT_FILE, WEIGHTS_FILE)]
    if others or (there and ABOUT_FILE not in there):
        raise RecordError(
            f"{path} holds more than a model of ours: there is {(others or there)[0]}.",
            hint="Choose another folder.",
        )
    if there:
        _read_about(path)


def load_language_model(
    folder: str | Path, *, device: str | torch.device = "cpu", source: str | None = None
) -> LanguageModel:
    """Load a language model that ``save_language_model`` wrote.

    Args:
        folder: The folder of the model.
        device: Where the model computes.
        source: The source text of an encoder-decoder; None for other models.

    Raises:
        RecordError: There is no such folder, it is damaged, or it is of another version.
        InvalidInput: The device does not exist; the source is missing, not allowed, or too long.
    """
    path = Path(folder)
    about = _read_about(path)
    try:
        vocabulary = Vocabulary.from_dict(about["vocabulary"])
        module = _made(about["architecture"], about["options"], vocabulary)
        weights = (path / WEIGHTS_FILE).read_bytes()
        if hashlib.sha256(weights).hexdigest() != about["sha256"]:
            raise RecordError(
                f"{path / WEIGHTS_FILE} is damaged: its SHA-256 is another.", hint=_AGAIN
            )
        state = tensors_of(weights)
        _check_state(module, state)
    except FileNotFoundError as fault:
        raise RecordError(f"{path / WEIGHTS_FILE} is missing.", hint=_AGAIN) from fault
    except (InvalidInput, PlanError) as fault:
        raise RecordError(f"{path} is damaged: {str(fault).rstrip('.')}.", hint=_AGAIN) from fault
    except SafetensorError as fault:
        raise RecordError(f"{path / WEIGHTS_FILE} is damaged.", hint=_AGAIN) from fault
    except OSError as fault:
        if isinstance(fault, RecordError):
            raise
        raise RecordError(f"{path} cannot be read: {fault.strerror}.") from fault
    module.load_state_dict(state, assign=True)
    return LanguageModel(_with_source(module, vocabulary, source, path), vocabulary, device=device)


def load_vocabulary(folder: str | Path) -> Vocabulary:
    """Read only the vocabulary of a saved language model.

    Raises:
        RecordError: There is no such folder, it is damaged, or it is of another version.
    """
    path = Path(folder)
    try:
        return Vocabulary.from_dict(_read_about(path)["vocabulary"])
    except InvalidInput as fault:
        raise RecordError(f"{path} is damaged: {str(fault).rstrip('.')}.", hint=_AGAIN) from fault


def _with_source(
    module: SequenceModule, vocabulary: Vocabulary, source: str | None, path: Path
) -> SequenceModule:
    check_source(path, source, translates=isinstance(module, EncoderDecoder))
    if isinstance(module, EncoderDecoder) and source is not None:
        return module.given(vocabulary.encode(source))
    return module


def check_source(path: Path, source: str | None, *, translates: bool) -> None:
    """Refuse a missing source text of an encoder-decoder, and a source for any other model.

    Raises:
        InvalidInput: The source is missing, or the model reads none.
    """
    if translates and source is None:
        raise InvalidInput(
            f"folder={str(path)!r} holds an encoder-decoder, and source= is missing.",
            hint="Pass the source text whose translation is scored.",
        )
    if not translates and source is not None:
        raise InvalidInput(
            f"source= was given, and the model in folder={str(path)!r} reads none.",
            hint="Only encoder-decoders have a source; leave it out.",
        )


def _made(name: str, options: Mapping[str, Any], vocabulary: Vocabulary) -> SequenceModule:
    """Return the network on the meta device: only its shapes are needed."""
    catalogue: dict[str, Architecture[Any]] = {**SEQUENCE_MODELS, **TRANSLATORS}
    with torch.device("meta"):
        module: SequenceModule = checked_maker(catalogue, name, options, vocabulary.size)()
    return module


def _check_state(module: SequenceModule, state: Mapping[str, Tensor]) -> None:
    own = module.state_dict()
    faults = [f"{name} is missing" for name in own if name not in state]
    faults += [f"{name} is not one of its tensors" for name in state if name not in own]
    faults += [
        f"{name} has shape {tuple(state[name].shape)} instead of {tuple(own[name].shape)}"
        for name in own
        if name in state and state[name].shape != own[name].shape
    ]
    if len({tensor.dtype for tensor in state.values()}) > 1:
        faults.append("its tensors are of several types")
    if any(not tensor.is_floating_point() for tensor in state.values()):
        faults.append("its tensors are no weights")
    require(faults[:3])


def _read_about(path: Path) -> dict[str, Any]:
    try:
        about = json.loads((path / ABOUT_FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as fault:
        raise RecordError(
            f"{path} holds no model: {ABOUT_FILE} is missing.",
            hint="Pass a folder that save_language_model wrote.",
        ) from fault
    except OSError as fault:
        raise RecordError(f"{path} cannot be read: {fault.strerror}.") from fault
    except ValueError as fault:
        raise RecordError(f"{path / ABOUT_FILE} is damaged: it is no JSON.", hint=_AGAIN) from fault
    if not isinstance(about, dict) or "format" not in about:
        raise RecordError(f"{path / ABOUT_FILE} does not describe a model.", hint=_AGAIN)
    if about["format"] != FORMAT:
        raise RecordError(
            f"{path} is of format {about['format']!r}; this version reads format {FORMAT}.",
            hint="Read it with the version that wrote it.",
        )
    faults = [name for name, kind in _FIELDS.items() if not isinstance(about.get(name), kind)]
    if faults:
        raise RecordError(
            f"{path / ABOUT_FILE} is damaged: it has no {', '.join(faults)}.", hint=_AGAIN
        )
    return about


def _move_in(made: Path, path: Path, *, aside: Path) -> None:
    """Move a folder to ``path``; if that fails, put the old folder back."""
    if not path.exists():
        os.replace(made, path)
        return
    os.replace(path, aside)
    try:
        os.replace(made, path)
    except OSError:
        os.replace(aside, path)
        raise


def _write(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
