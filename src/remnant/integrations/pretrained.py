"""Reads Hugging Face folders: local files and safetensors only, none of their code, silently."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from remnant.errors import InvalidInput, import_failure

_LOCAL = {"local_files_only": True, "trust_remote_code": False}
# Whatever the library raises on a damaged or foreign folder, tensors of the wrong shape included.
_FAULTS = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError)

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
            hint="pip install 'remnant[hf]'",
        ) from None
    return transformers


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the library's progress bars and advice off the terminal; put both back on leaving."""
    logging = library().utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def checked_folder(folder: str | Path) -> Path:
    """Return the folder if it is a Hugging Face one.

    Raises:
        InvalidInput: It does not exist, or holds no ``config.json``.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InvalidInput(
            f"folder={str(path)!r} is not a folder.",
            hint="Models are read from local folders only; nothing is downloaded.",
        )
    if not (path / "config.json").is_file():
        raise InvalidInput(
            f"folder={str(path)!r} is not a Hugging Face model: it holds no config.json.",
            hint="Write one with model.save_pretrained(folder).",
        )
    return path


def read_config(folder: str | Path) -> Any:
    """Read a model's configuration."""
    path = checked_folder(folder)
    with quiet(), _told(path, "configuration"):
        return library().AutoConfig.from_pretrained(str(path), **_LOCAL)


def read_tokenizer(folder: str | Path) -> Any:
    """Read a model's tokenizer."""
    path = checked_folder(folder)
    with quiet(), _told(path, "tokenizer"):
        return library().AutoTokenizer.from_pretrained(str(path), **_LOCAL)


def read_model(
    folder: str | Path, *, kind: str, device: str | torch.device, dtype: torch.dtype
) -> Any:
    """Read a model; ``kind`` is the name of the library's class that knows the architectures.

    Raises:
        InvalidInput: The folder or its weights cannot be read, weights are missing, or the device
            is not there.
        MissingExtra: transformers is not installed.
    """
    path = checked_folder(folder)
    _check_weights(path)
    with quiet(), _told(path, "model"):
        model, info = getattr(library(), kind).from_pretrained(
            str(path), dtype=dtype, use_safetensors=True, output_loading_info=True, **_LOCAL
        )
    if missing := info["missing_keys"]:
        raise InvalidInput(
            f"folder={str(path)!r} lacks {len(missing)} of the model's tensors, which would be "
            "random numbers.",
            hint="Save the whole model, head included, with model.save_pretrained(folder).",
        )
    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as fault:  # torch built without it asserts
        raise InvalidInput(
            f"device={str(device)!r} cannot be used.", hint="Pass device='cpu' or device='cuda'."
        ) from fault


def _check_weights(path: Path) -> None:
    if any(path.glob("*.safetensors")):
        return
    others = sorted(p.name for ending in ("bin", "pt", "gguf") for p in path.glob(f"*.{ending}"))
    found = f", only {others[0]}" if others else ""
    raise InvalidInput(
        f"folder={str(path)!r} holds no weights as safetensors{found}.",
        hint="Pickled weights are never read; save the model again with "
        "model.save_pretrained(folder)."
        if others
        else "Write them with model.save_pretrained(folder).",
    )


@contextmanager
def _told(path: Path, what: str) -> Iterator[None]:
    from safetensors import SafetensorError

    try:
        yield
    except (*_FAULTS, SafetensorError) as fault:
        # What the library says may run over many lines; it is kept as the cause.
        raise InvalidInput(
            f"folder={str(path)!r}: the {what} cannot be read.", hint=_ADVICE[what]
        ) from fault
