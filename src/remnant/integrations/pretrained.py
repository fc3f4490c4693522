"""Reads Hugging Face folders: local files and safetensors only, none of their code, silently."""

from __future__ import annotations

import logging as python_logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from remnant.errors import InvalidInput, RemnantError, import_failure
from remnant.integrations.folder_checks import (
    Weights,
    check_config,
    check_tokenizer,
    check_weights,
)

Model = TypeVar("Model", bound=nn.Module)
_LOCAL = {"local_files_only": True, "trust_remote_code": False}
# Whatever the library raises on a damaged or foreign folder, tensors of the wrong shape included.
_FAULTS = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, MemoryError),
    *(NameError, OSError, RuntimeError, TypeError, ValueError),
)
# The libraries whose own kinds of error derive from Exception alone, or are panics of their Rust.
_THEIRS = {"huggingface_hub", "peft", "pyo3_runtime", "safetensors", "tokenizers", "transformers"}
_BUFFERS = 1 << 26  # numbers that a model may hold besides its weights

_ADVICE = {
    "configuration": "config.json is damaged, or of an architecture that this version of "
    "transformers does not know; save the model again with model.save_pretrained(folder).",
    "tokenizer": "Its files are missing or damaged, or need sentencepiece or tiktoken; write them "
    "with tokenizer.save_pretrained(folder).",
    "model": "Its weights are damaged or do not fit config.json; save it again with "
    "model.save_pretrained(folder).",
}


def library() -> Any:
    """Return the transformers library.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        import transformers
    except ImportError as fault:
        raise import_failure(
            fault,
            library="transformers",
            message="Hugging Face models need transformers, which is not installed.",
            extra="hf",
        ) from None
    return transformers


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the library's progress bars, logs and warnings; restore them on leaving."""
    logging = library().utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    placing = python_logging.getLogger("accelerate")
    level = placing.level
    placing.setLevel(python_logging.ERROR)  # it warns of offloaded weights, which were asked for
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        placing.setLevel(level)
        if bars:
            logging.enable_progress_bar()


def local_folder(folder: str | Path) -> Path:
    """Return the path of a folder.

    Raises:
        InvalidInput: It does not exist, or is a file.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InvalidInput(
            f"folder={str(path)!r} is not a folder.",
            hint="Models are read from local folders only; nothing is downloaded.",
        )
    return path


def checked_folder(folder: str | Path) -> Path:
    """Return the path of a Hugging Face folder.

    Raises:
        InvalidInput: It does not exist, or holds no ``config.json``.
    """
    path = local_folder(folder)
    if not (path / "config.json").is_file():
        if (path / "adapter_config.json").is_file():
            raise InvalidInput(
                f"folder={str(path)!r} holds an adapter, and a whole model is needed here.",
                hint="Merge it with model.merge_and_unload(), and save the model.",
            )
        raise InvalidInput(
            f"folder={str(path)!r} is not a Hugging Face model: it holds no config.json.",
            hint="Write one with model.save_pretrained(folder).",
        )
    return path


def read_config(folder: str | Path) -> Any:
    """Read a model's configuration."""
    path = checked_folder(folder)
    check_config(path)
    with quiet(), readable(path, "configuration"):
        return library().AutoConfig.from_pretrained(str(path), **_LOCAL)


def read_tokenizer(folder: str | Path) -> Any:
    """Read the tokenizer of a model or of an adapter."""
    path = Path(folder)
    if not (path / "adapter_config.json").is_file():
        checked_folder(path)
    check_tokenizer(path)
    with quiet(), readable(path, "tokenizer"):
        return library().AutoTokenizer.from_pretrained(str(path), **_LOCAL)


def read_model(
    folder: str | Path,
    *,
    kind: str,
    device: str | torch.device,
    dtype: torch.dtype | None,
    device_map: Any = None,
) -> Any:
    """Read a model; ``kind`` is the name of the library's class that knows the architectures.

    Args:
        folder: Of the model.
        kind: See above.
        device: Where it computes, unless there is a device map.
        dtype: Of its weights; None keeps the type in which they are stored.
        device_map: How Accelerate places the layers; see ``Placement``.

    Raises:
        InvalidInput: The folder or its weights cannot be read, it holds a model of another kind,
            weights are missing, or the device is not there.
        MissingExtra: transformers is not installed.
    """
    path = checked_folder(folder)
    weights = check_weights(path)
    config = read_config(path)
    with quiet(), readable(path, "model"):
        _check_size(path, kind, config, weights)
        model, info = getattr(library(), kind).from_pretrained(
            str(path),
            dtype="auto" if dtype is None else dtype,
            device_map=device_map
            if device_map is None or isinstance(device_map, str)
            else dict(device_map),
            use_safetensors=True,
            output_loading_info=True,
            **_LOCAL,
        )
    if missing := info["missing_keys"]:
        raise InvalidInput(
            f"folder={str(path)!r} lacks {len(missing)} of the model's tensors, which would be "
            "random numbers.",
            hint="Save the whole model, head included, with model.save_pretrained(folder).",
        )
    return on_device(model, device) if device_map is None else model


def on_device(model: Model, device: str | torch.device) -> Model:
    """Move a model to a device.

    Raises:
        InvalidInput: The device cannot be used.
    """
    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as fault:  # torch built without it asserts
        raise InvalidInput(
            f"device={str(device)!r} cannot be used.", hint="Pass device='cpu' or device='cuda'."
        ) from fault


def _check_size(path: Path, kind: str, config: Any, weights: Weights) -> None:
    """Refuse a model of another kind or one much larger than its weights, before it takes memory.

    Tied weights are in the file once, so that a model may count up to twice as many numbers.
    """
    try:
        with torch.device("meta"):
            planned = getattr(library(), kind).from_config(config, trust_remote_code=False)
    except ValueError as fault:
        if "Unrecognized configuration class" not in str(fault):
            raise
        raise InvalidInput(
            f"folder={str(path)!r} holds a model of another kind: {config.model_type}, which "
            f"{kind} does not know.",
            hint="Pass the folder of a model of that kind.",
        ) from fault
    needed = sum(tensor.numel() for tensor in planned.parameters())
    beside = sum(tensor.numel() for tensor in planned.buffers())
    if needed > 2 * weights.elements or beside > 2 * weights.elements + _BUFFERS:
        raise InvalidInput(
            f"folder={str(path)!r}: config.json describes a model of {needed + beside} numbers, "
            f"and the weights hold {weights.elements}.",
            hint="The configuration belongs to another model; save both again with "
            "model.save_pretrained(folder).",
        )


@contextmanager
def usable() -> Iterator[None]:
    """Replace a tokenizer's errors by one sentence that does not quote the text.

    Raises:
        InvalidInput: In place of the library's error, which may quote the text and is dropped.
    """
    try:
        yield
    except BaseException as fault:
        if is_library_fault(fault):
            raise InvalidInput(
                f"The tokenizer fails on a text ({type(fault).__name__}).",
                hint=_ADVICE["tokenizer"],
            ) from None
        raise


@contextmanager
def readable(path: str | Path, what: str) -> Iterator[None]:
    """Replace the library's errors on a damaged folder by one sentence.

    Args:
        path: The folder.
        what: ``"configuration"``, ``"tokenizer"`` or ``"model"``.

    Raises:
        InvalidInput: In place of the library's error, which is kept as the cause.
    """
    try:
        yield
    except BaseException as fault:
        if not is_library_fault(fault):
            raise
        # What the library says may run over many lines; it is kept as the cause.
        raise InvalidInput(
            f"folder={str(path)!r}: the {what} cannot be read.", hint=_ADVICE[what]
        ) from fault


def is_library_fault(fault: BaseException) -> bool:
    """Whether an error is one of the libraries': not of this package, and no interrupt."""
    if isinstance(fault, RemnantError):
        return False
    package = type(fault).__module__.partition(".")[0]
    return isinstance(fault, _FAULTS) or type(fault) is Exception or package in _THEIRS
