"""Encoder-decoders of the transformers library: the cost of a target, given its source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.integrations.adapter_folder import model_parts, read_parts
from remnant.integrations.arithmetic import full_precision
from remnant.integrations.decoder import HuggingFaceDecoder
from remnant.integrations.key_values import KeyValues, put_in, taken_out, windows_of
from remnant.integrations.pretrained import library, read_config, readable
from remnant.integrations.tokenizer import HuggingFaceTokenizer

if TYPE_CHECKING:
    from typing_extensions import Self


class HuggingFaceSeq2Seq(HuggingFaceDecoder):
    """An encoder-decoder (T5, BART, Marian, …) with one source, as a model of its targets.

    The encoder reads the source once, special tokens included. The decoder is fed the true previous
    target token. Before every prefix come the decoder's start token and whatever special tokens the
    tokenizer itself puts before a target (BART's BOS, the language code of others); ``begin_id``
    overrides these. Keys and values of the source are kept once and shared by all rows.

    Args:
        model: An instance of the library's ``…ForConditionalGeneration`` or ``…MTModel``, in
            float32 or float64. It is asked in evaluation mode and otherwise left as it is.
        tokenizer: Its tokenizer.
        source: The source text.
        source_ids: The source's tokens, special ones included, instead of a text.
        begin_id: The token to put before every prefix of the target.
        rows_at_once: Rows that go through the model together; by default as many as fit a quarter
            of the free memory.

    Guarantees:
        * The cost of a target is the model's own loss with that target as labels, times its tokens.
        * No call changes a state; cached and uncached answers agree, or there is no cache.

    Raises:
        InvalidInput: No source or two are given, or it has no token or too many.
        UnsupportedModel: The weights are coarser than float32, or no token starts the decoder.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        source: str | None = None,
        source_ids: Sequence[int] | None = None,
        begin_id: int | None = None,
        rows_at_once: int | None = None,
    ) -> None:
        target = HuggingFaceTokenizer(tokenizer, target=True)
        super().__init__(model, target, rows_at_once=rows_at_once)
        self._library_tokenizer = tokenizer
        self._source_ids = _source_tokens(tokenizer, source, source_ids)
        self._check_length(len(self._source_ids))
        self._begin_id = begin_id
        if begin_id is None:
            self._begin = (_decoder_start(model), *target.leading)
        else:
            self._begin = (begin_id,)
        ids = torch.tensor([self._source_ids], device=self._device)
        with full_precision(model):
            encoder = model.get_encoder()
            encoded = encoder(input_ids=ids, attention_mask=torch.ones_like(ids))
        self._encoded: Tensor = encoded.last_hidden_state
        self._source_cache = KeyValues((), 0)
        self._settle()

    def _with(self, model: Any, *, widen: bool) -> Self:
        return type(self)(
            model,
            self._library_tokenizer,
            source_ids=self._source_ids,
            begin_id=self._begin_id,
            rows_at_once=self._rows_at_once,
        )

    def _begun(self, prefix_ids: Sequence[int]) -> list[int]:
        return [*self._begin, *prefix_ids]

    def _ask(self, ids: Tensor, *, cache: Any, length: int, keep: bool) -> Any:
        rows = len(ids)
        output = library().modeling_outputs.BaseModelOutput
        return self._model(
            encoder_outputs=output(last_hidden_state=self._encoded.expand(rows, -1, -1)),
            attention_mask=ids.new_ones(rows, self._encoded.shape[1]),
            decoder_input_ids=ids,
            decoder_attention_mask=ids.new_ones(rows, length + ids.shape[1]),
            past_key_values=cache,
            use_cache=keep,
        )

    def _remembered(self, cache: Any) -> Any:
        crossed = cache.cross_attention_cache
        if not self._source_cache.tensors and windows_of(crossed) is not None:
            read = taken_out(crossed, length=self._encoded.shape[1])
            # One row is kept of the many that the check asked for: all are alike.
            self._source_cache = KeyValues(tuple(t[:1].clone() for t in read.tensors), read.length)
        return cache.self_attention_cache

    def _cache(self, state: KeyValues) -> Any:
        rows = len(state.tensors[0])
        shared = KeyValues(
            tuple(tensor.expand(rows, -1, -1, -1) for tensor in self._source_cache.tensors),
            self._source_cache.length,
        )
        keep_all = [None] * (len(shared.tensors) // 2)
        return library().EncoderDecoderCache(super()._cache(state), put_in(shared, keep_all))


def _source_tokens(
    tokenizer: Any, source: str | None, source_ids: Sequence[int] | None
) -> list[int]:
    if (source is None) == (source_ids is None):
        raise InvalidInput(
            "An encoder-decoder needs one source: "
            + ("none was given." if source is None else "both source and source_ids were given."),
            hint="Pass source, the text whose translation is scored.",
        )
    if source is not None:
        source_ids = tokenizer(source, verbose=False)["input_ids"]
    tokens = [int(token) for token in source_ids or ()]
    if not tokens:
        raise InvalidInput("The source has no token.", hint="Pass a source that is not empty.")
    return tokens


def _decoder_start(model: Any) -> int:
    config, generation = model.config, getattr(model, "generation_config", None)
    for owner in (config, config.get_text_config(decoder=True), generation):
        token = getattr(owner, "decoder_start_token_id", None)
        if token is not None:
            return int(token)
    raise UnsupportedModel(
        "Neither the model's configuration nor its generation settings name the decoder's start "
        "token.",
        hint="Set model.config.decoder_start_token_id, or pass begin_id.",
    )


def load_seq2seq(
    folder: str | Path,
    *,
    source: str,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    begin_id: int | None = None,
    rows_at_once: int | None = None,
    base: str | Path | None = None,
) -> HuggingFaceSeq2Seq:
    """Read an encoder-decoder from a local Hugging Face folder, for one source.

    Nothing is downloaded, no code of the folder is run, and only safetensors are read.

    Args:
        folder: What ``save_pretrained`` wrote, model and tokenizer; or a PEFT adapter.
        source: The source text.
        device: Where the model computes.
        dtype: float32 or float64.
        begin_id, rows_at_once: See ``HuggingFaceSeq2Seq``.
        base: The folder of an adapter's base, where its configuration names none.

    Raises:
        InvalidInput: The folder, its weights or its tokenizer cannot be read, the source is empty,
            or the device is not there.
        UnsupportedModel: It holds no encoder-decoder, or ``dtype`` is coarser than float32.
        MissingExtra: transformers is not installed, or peft for an adapter.
    """
    parts = model_parts(folder, base=base)
    if not read_config(parts.model).is_encoder_decoder:
        raise UnsupportedModel(
            f"folder={str(folder)!r} holds no encoder-decoder, so a source has no place in it.",
            hint="Use load_causal_lm.",
        )
    model, tokenizer = read_parts(parts, kind="AutoModelForSeq2SeqLM", device=device, dtype=dtype)
    with readable(folder, "model"):
        return HuggingFaceSeq2Seq(
            model, tokenizer, source=source, begin_id=begin_id, rows_at_once=rows_at_once
        )
