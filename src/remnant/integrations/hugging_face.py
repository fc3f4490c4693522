"""Causal language models of the transformers library, as sequence models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from remnant.errors import UnsupportedModel
from remnant.integrations.adapter_folder import model_parts, read_parts
from remnant.integrations.decoder import HuggingFaceDecoder
from remnant.integrations.placement import Placement
from remnant.integrations.pretrained import read_config, readable
from remnant.integrations.tokenizer import HuggingFaceTokenizer

if TYPE_CHECKING:
    from typing_extensions import Self


class HuggingFaceCausalLM(HuggingFaceDecoder):
    """A causal language model (GPT-2, Llama, Mistral, Gemma, …) as a sequence model.

    **What comes before the prefix.** The special tokens that the tokenizer itself puts before a
    text (the BOS token of Llama) come before every prefix, since the model was trained so. Where it
    puts none, a prefix is read as it is, and the empty prefix is read as the start of a document:
    the first of the tokenizer's BOS and EOS and the configuration's BOS and EOS that there is.
    ``begin_id`` overrides both: it comes before every prefix.

    Args:
        model: An instance of the library's ``…ForCausalLM``, in float32 or float64. It is asked in
            evaluation mode and otherwise left as it is. Accelerate may have placed its layers on
            several devices.
        tokenizer: Its tokenizer.
        begin_id: The token to put before every prefix.
        rows_at_once: Rows that go through the model together; by default as many as fit a quarter
            of the free memory.
        own_precision: Accept weights in bfloat16 or float16, and compute with them as they are. A
            search then compares answers with ``in_float64`` on a sample, and decides close calls by
            it.
        widen: Compute in float64 throughout, casting each weight when it is used.

    Guarantees:
        * No call changes a state; cached and uncached answers agree, or there is no cache.
        * ``rows_at_once`` changes no answer beyond rounding.
        * ``in_float64`` computes in float64 throughout, whatever the type of the weights.

    Raises:
        UnsupportedModel: The weights are coarser than float32 and ``own_precision`` is not set, or
            the prefix is empty and no token starts a document.
        InvalidInput: ``rows_at_once`` is not positive; in use, a text is too long.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        begin_id: int | None = None,
        rows_at_once: int | None = None,
        own_precision: bool = False,
        widen: bool = False,
    ) -> None:
        super().__init__(
            model,
            HuggingFaceTokenizer(tokenizer),
            rows_at_once=rows_at_once,
            own_precision=own_precision,
            widen=widen,
        )
        self._library_tokenizer = tokenizer
        self._begin_id = begin_id
        self._begin = self._tokenizer.leading if begin_id is None else (begin_id,)
        self._settle()

    def _with(self, model: Any, *, widen: bool) -> Self:
        return type(self)(
            model,
            self._library_tokenizer,
            begin_id=self._begin_id,
            rows_at_once=self._rows_at_once,
            own_precision=widen,
            widen=widen,
        )

    def _begun(self, prefix_ids: Sequence[int]) -> list[int]:
        return [*self._begin, *prefix_ids] or [self._document_start()]

    def _document_start(self) -> int:
        for owner in (self._library_tokenizer, self._model.config.get_text_config()):
            for name in ("bos_token_id", "eos_token_id"):
                token = getattr(owner, name, None)
                if isinstance(token, list):
                    token = token[0] if token else None
                if token is not None:
                    return int(token)
        raise UnsupportedModel(
            "The prefix is empty, and neither the tokenizer nor the model has a BOS or EOS token "
            "that starts a document.",
            hint="Pass begin_id, or use a template that begins with a literal.",
        )

    def _ask(self, ids: Tensor, *, cache: Any, length: int, keep: bool) -> Any:
        rows, time = ids.shape
        given = {
            "attention_mask": ids.new_ones(rows, length + time),
            "past_key_values": cache,
            "use_cache": keep,
            "logits_to_keep": 1,
        }
        known = {name: value for name, value in given.items() if name in self._knows}
        return self._model(input_ids=ids, **known)


def load_causal_lm(
    folder: str | Path,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    begin_id: int | None = None,
    rows_at_once: int | None = None,
    base: str | Path | None = None,
    placement: Placement | None = None,
) -> HuggingFaceCausalLM:
    """Read a causal language model from a local Hugging Face folder.

    Nothing is downloaded, no code of the folder is run, and only safetensors are read.

    Args:
        folder: What ``save_pretrained`` wrote, model and tokenizer; or a PEFT adapter.
        device: Where the model computes.
        dtype: float32 or float64.
        begin_id, rows_at_once: See ``HuggingFaceCausalLM``.
        base: The folder of an adapter's base, where its configuration names none.
        placement: Several devices by Accelerate, or weights in their own precision, instead of
            ``device`` and ``dtype``.

    Raises:
        InvalidInput: The folder, its weights or its tokenizer cannot be read, or the device is not
            there.
        UnsupportedModel: It holds an encoder-decoder, or ``dtype`` is coarser than float32.
        MissingExtra: transformers is not installed, or peft for an adapter.
    """
    parts = model_parts(folder, base=base)
    if read_config(parts.model).is_encoder_decoder:
        raise UnsupportedModel(
            f"folder={str(folder)!r} holds an encoder-decoder, whose costs depend on a source.",
            hint="Use load_seq2seq with a source text.",
        )
    model, tokenizer = read_parts(
        parts, kind="AutoModelForCausalLM", device=device, dtype=dtype, placement=placement
    )
    with readable(folder, "model"):
        return HuggingFaceCausalLM(
            model,
            tokenizer,
            begin_id=begin_id,
            rows_at_once=rows_at_once,
            own_precision=placement is not None and placement.precision == "own",
        )
