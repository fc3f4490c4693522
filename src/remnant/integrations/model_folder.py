"""A folder with a language model in it, ours or Hugging Face's: finds out which, and reads it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch

from remnant.errors import InvalidInput
from remnant.models.protocols import SequenceModel

_OURS = "remnant.json"
_HUGGING_FACE = "config.json"


class Tokenizer(Protocol):
    """What can be had of a model's folder without its weights."""

    def encode(self, text: str) -> list[int]:
        """Return the tokens of ``text``; no special token is added."""
        ...

    @property
    def tokens(self) -> Sequence[str]:
        """The texts that are one token."""
        ...


def load_sequence_model(
    folder: str | Path, *, device: str | torch.device = "cpu", source: str | None = None
) -> SequenceModel:
    """Read the language model of a folder, in float32.

    Args:
        folder: A checkpoint of this package (it holds ``remnant.json``) or a Hugging Face model
            (it holds ``config.json``).
        device: Where the model computes.
        source: The source text, for an encoder-decoder and for nothing else.

    Raises:
        InvalidInput: The folder is neither, cannot be read, or ``source`` is missing or out of
            place.
        MissingExtra: It is a Hugging Face model, and transformers is not installed.
    """
    path = Path(folder)
    if _is_ours(path):
        from remnant.models.model_folder import load_language_model

        return load_language_model(path, device=device, source=source)
    from remnant.integrations.hugging_face import load_causal_lm
    from remnant.integrations.pretrained import read_config
    from remnant.integrations.seq2seq import load_seq2seq

    if not read_config(path).is_encoder_decoder:
        _refuse_source(path, source)
        return load_causal_lm(path, device=device)
    if source is None:
        raise InvalidInput(
            f"folder={str(path)!r} holds an encoder-decoder, and source= is missing.",
            hint="Pass the source text whose translation is scored.",
        )
    return load_seq2seq(path, source=source, device=device)


def load_tokenizer(folder: str | Path, *, target: bool = False) -> Tokenizer:
    """Read what encodes texts for the model of a folder; a large model's weights are left alone.

    Args:
        folder: As for ``load_sequence_model``.
        target: Encode texts as targets of a translation, where the tokenizer knows a difference.

    Raises:
        InvalidInput: The folder is neither kind, or cannot be read.
        MissingExtra: It is a Hugging Face model, and transformers is not installed.
    """
    path = Path(folder)
    if _is_ours(path):
        from remnant.models.model_folder import load_vocabulary

        return load_vocabulary(path)
    from remnant.integrations.tokenizer import load_hugging_face_tokenizer

    return load_hugging_face_tokenizer(path, target=target)


def _is_ours(path: Path) -> bool:
    if not path.is_dir():
        raise InvalidInput(
            f"folder={str(path)!r} is not a folder.",
            hint="Models are read from local folders only; nothing is downloaded.",
        )
    if (path / _OURS).is_file():
        return True
    if not (path / _HUGGING_FACE).is_file():
        raise InvalidInput(
            f"folder={str(path)!r} holds neither {_OURS} nor {_HUGGING_FACE}.",
            hint="Pass the folder of a checkpoint, or one that save_pretrained wrote.",
        )
    return False


def _refuse_source(path: Path, source: str | None) -> None:
    if source is not None:
        raise InvalidInput(
            f"source= was given, and the model in folder={str(path)!r} reads none.",
            hint="Only encoder-decoders have a source; leave it out.",
        )
