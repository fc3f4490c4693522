"""Reads a language model from a folder, in Remnant's, Hugging Face's or PEFT's format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch

from remnant.errors import InvalidInput
from remnant.integrations.placement import Placement
from remnant.integrations.pretrained import local_folder, read_config
from remnant.models.protocols import SequenceModel

_OURS = "remnant.json"
_HUGGING_FACE = "config.json"
_ADAPTER = "adapter_config.json"
_LEAVE_OUT = "Leave them out."


class Tokenizer(Protocol):
    """The tokenizer of a model's folder, read without the weights."""

    def encode(self, text: str) -> list[int]:
        """Return the tokens of ``text``; no special token is added."""
        ...

    @property
    def tokens(self) -> Sequence[str]:
        """The texts that are one token."""
        ...


def load_sequence_model(
    folder: str | Path,
    *,
    device: str | torch.device = "cpu",
    source: str | None = None,
    base: str | Path | None = None,
    placement: Placement | None = None,
) -> SequenceModel:
    """Read the language model of a folder, in float32 unless ``placement`` says otherwise.

    Args:
        folder: A checkpoint of this package (it holds ``remnant.json``), a Hugging Face model (it
            holds ``config.json``) or a PEFT adapter (it holds ``adapter_config.json``), which is
            merged into its base in memory.
        device: Where the model computes.
        source: The source text, for an encoder-decoder and for nothing else.
        base: The folder of an adapter's base model. By default the local folder that the adapter's
            configuration names.
        placement: Several devices by Accelerate, or weights in their own precision, for a whole
            causal model of Hugging Face; ``device`` is then not used.

    Raises:
        InvalidInput: The folder is none of these, cannot be read, does not fit its base, or
            ``source`` or ``base`` is missing or out of place.
        UnsupportedModel: The adapter cannot be merged, or the model cannot be placed so.
        MissingExtra: It is a Hugging Face model and transformers is not installed, or an adapter
            and peft is not.
    """
    from remnant.models.model_folder import check_source, load_language_model

    path = local_folder(folder)
    if _is_ours(path, base):
        if placement is not None:
            placement.refuse(f"folder={str(path)!r} holds a Remnant checkpoint, which", _LEAVE_OUT)
        return load_language_model(path, device=device, source=source)
    from remnant.integrations.adapter_folder import model_parts
    from remnant.integrations.hugging_face import load_causal_lm
    from remnant.integrations.seq2seq import load_seq2seq

    config = read_config(model_parts(path, base=base).model)
    check_source(path, source, translates=bool(config.is_encoder_decoder))
    if source is None:
        return load_causal_lm(path, device=device, base=base, placement=placement)
    if placement is not None:
        placement.refuse(f"folder={str(path)!r} holds an encoder-decoder, which", _LEAVE_OUT)
    return load_seq2seq(path, source=source, device=device, base=base)


def load_tokenizer(
    folder: str | Path, *, target: bool = False, base: str | Path | None = None
) -> Tokenizer:
    """Read the tokenizer of a model's folder, without the weights.

    Args:
        folder: As for ``load_sequence_model``.
        target: Encode texts as targets of a translation, where the tokenizer knows a difference.
        base: As for ``load_sequence_model``; needed where the adapter has no tokenizer.

    Raises:
        InvalidInput: The folder is of no kind that is known, or cannot be read.
        MissingExtra: It is a Hugging Face model, and transformers is not installed.
    """
    path = local_folder(folder)
    if _is_ours(path, base):
        from remnant.models.model_folder import load_vocabulary

        return load_vocabulary(path)
    from remnant.integrations.adapter_folder import tokenizer_folder
    from remnant.integrations.tokenizer import load_hugging_face_tokenizer

    return load_hugging_face_tokenizer(tokenizer_folder(path, base=base), target=target)


def _is_ours(path: Path, base: str | Path | None) -> bool:
    if (path / _OURS).is_file():
        if base is not None:
            raise InvalidInput(
                f"base={str(base)!r} is given, and folder={str(path)!r} is no adapter.",
                hint="Leave it out.",
            )
        return True
    if not any((path / name).is_file() for name in (_HUGGING_FACE, _ADAPTER)):
        raise InvalidInput(
            f"folder={str(path)!r} holds neither {_OURS} nor {_HUGGING_FACE} nor {_ADAPTER}.",
            hint="Pass the folder of a checkpoint, or one that save_pretrained wrote for a model "
            "or an adapter.",
        )
    return False
