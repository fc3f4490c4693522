"""Causal language models as an audit of texts needs them: whole texts in, token scores out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput, RemnantError, UnsupportedModel
from remnant.integrations.adapter_folder import model_parts, read_parts
from remnant.integrations.arithmetic import computing_device, full_precision
from remnant.integrations.placement import Placement
from remnant.integrations.pretrained import (
    local_folder,
    quiet,
    read_config,
    usable,
)
from remnant.integrations.tokenizer import HuggingFaceTokenizer
from remnant.models.model_folder import ABOUT_FILE, load_language_model
from remnant.probes.token_scores import TokenScores, token_scores

_TRIED = 32  # texts that two tokenizers are compared on
_LEAVE_OUT = "Leave them out."


@dataclass(frozen=True, slots=True, eq=False)
class TextModel:
    """A causal language model that scores whole texts.

    Attributes:
        module: The network, in float32 unless it was placed otherwise.
        encode: Turns texts into tokens; no special token is added.
        leading: Tokens before every text.
        longest: Tokens that the model reads at most; None for any number.
        vocabulary: Tokens that it predicts.
        vocabulary_key: Equal for models with the same tokens.
        embedded: Tokens that it can read.
        placed: Whether it is on several devices or in its own precision; it is then not copied.
    """

    module: nn.Module
    encode: Callable[[Sequence[str]], list[list[int]]]
    leading: tuple[int, ...]
    longest: int | None
    vocabulary: int
    vocabulary_key: Any
    embedded: int
    placed: bool = False

    @property
    def room(self) -> int | None:
        """Tokens that a text may have; None for any number."""
        return None if self.longest is None else self.longest - len(self.leading)

    @property
    def unpredicted(self) -> int:
        """Tokens at the beginning of a text that nothing comes before."""
        return 0 if self.leading else 1

    def logits(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The logits of a batch; gradients flow where they are switched on."""
        return _logits(self.module, ids, mask)

    @property
    def precision(self) -> torch.dtype:
        """The coarsest type of its weights."""
        found = {p.dtype for p in self.module.parameters() if p.is_floating_point()}
        return max(found, key=lambda dtype: torch.finfo(dtype).eps)

    def scores(
        self,
        texts: Sequence[Sequence[int]],
        *,
        standardise: bool = True,
        widen: bool = False,
    ) -> TokenScores:
        """Score the tokens of texts, in evaluation mode; ``widen`` computes in float64.

        Raises:
            InvalidInput: The model has no embedding for a token.
        """
        highest = max((max(text, default=0) for text in texts), default=0)
        if highest >= self.embedded:
            raise InvalidInput(
                f"The tokenizer gives token {highest}, and the model has embeddings for "
                f"{self.embedded}.",
                hint="Save the model with the tokenizer that it was trained with.",
            )
        with _quiet(self.module), full_precision(self.module, widen=widen):
            return token_scores(
                self.logits,
                texts,
                leading=self.leading,
                vocabulary=self.vocabulary,
                device=self.device,
                standardise=standardise,
            )

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return computing_device(self.module)

    def copied(self) -> TextModel:
        """A copy whose weights can be trained."""
        module = deepcopy(self.module)
        for parameter in module.parameters():
            parameter.requires_grad_(parameter.is_floating_point())
        return replace(self, module=module)


def load_text_lm(
    folder: str | Path,
    *,
    device: str | torch.device = "cpu",
    base: str | Path | None = None,
    placement: Placement | None = None,
) -> TextModel:
    """Read a causal language model: Hugging Face's, a PEFT adapter merged, or one of ours.

    Args:
        folder: Of the model.
        device: Where it computes.
        base: Of an adapter's base model.
        placement: Several devices, or weights in their own precision, for a whole model of Hugging
            Face.

    Raises:
        InvalidInput: The folder cannot be read.
        UnsupportedModel: It is no causal language model.
        MissingExtra: transformers or peft is not installed.
    """
    path = local_folder(folder)
    if (path / ABOUT_FILE).is_file():
        if placement is not None:
            placement.refuse(f"folder={str(path)!r} holds a Remnant checkpoint, which", _LEAVE_OUT)
        return _own(path, device)
    parts = model_parts(path, base=base)
    config = read_config(parts.model)
    if config.is_encoder_decoder:
        raise UnsupportedModel(
            f"folder={str(path)!r} holds an encoder-decoder, whose costs depend on a source text.",
            hint="Pass a causal language model.",
        )
    model, tokenizer = read_parts(
        parts,
        kind="AutoModelForCausalLM",
        device=device,
        dtype=torch.float32,
        placement=placement,
    )
    text_config = model.config.get_text_config(decoder=True)
    longest = getattr(text_config, "max_position_embeddings", None)

    def encode(texts: Sequence[str]) -> list[list[int]]:
        with usable():
            ids = tokenizer(
                list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False
            )["input_ids"]
        return [list(row) for row in ids]

    _check_causal(model.eval(), path)
    return TextModel(
        module=model,
        encode=encode,
        leading=HuggingFaceTokenizer(tokenizer).leading,
        longest=longest if type(longest) is int and longest > 0 else None,
        vocabulary=int(text_config.vocab_size),
        vocabulary_key=tokenizer.get_vocab(),
        embedded=len(model.get_input_embeddings().weight),
        placed=placement is not None and not placement.plain,
    )


def _own(path: Path, device: str | torch.device) -> TextModel:
    model = load_language_model(path, device=device)
    module = model.module

    def encode(texts: Sequence[str]) -> list[list[int]]:
        return [model.encode(text) for text in texts]

    return TextModel(
        module=module,
        encode=encode,
        leading=(module.begin,) if module.begins else (),
        longest=getattr(module, "context", None),
        vocabulary=module.vocabulary_size,
        vocabulary_key=model.tokens,
        embedded=module.vocabulary_size + 1,  # the token that begins a text is read too
    )


@contextmanager
def as_reference() -> Iterator[None]:
    """Let errors about a model say that it is the reference model."""
    try:
        yield
    except RemnantError as fault:
        fault.message = fault.message.replace("folder=", "reference_model=").replace(
            "The model ", "The reference model "
        )
        raise


def _check_causal(model: Any, path: Path) -> None:
    """Refuse a model that reads the token it is asked to predict, such as BERT.

    Raises:
        UnsupportedModel: Another last token changes the logits before it.
    """
    vocabulary = len(model.get_input_embeddings().weight)
    ids = (torch.arange(12, device=computing_device(model)) * 7919 + 3) % vocabulary
    ids = ids.reshape(2, 6)
    ids[1] = ids[0]
    ids[1, -1] = (ids[0, -1] + 1) % vocabulary
    with quiet(), full_precision(model, widen=True):
        logits = _logits(model, ids, torch.ones_like(ids))
    before = logits[:, :-1].float()
    spread = float(before.std()) + 1e-6
    if float((before[0] - before[1]).abs().max()) > 1e-3 * spread:
        raise UnsupportedModel(
            f"folder={str(path)!r} holds a model that reads the tokens after the one that it "
            "predicts, so it is no causal language model.",
            hint="Pass a causal language model, such as GPT-2 or Llama.",
        )


def check_same_tokens(model: TextModel, reference: TextModel, texts: Sequence[str]) -> None:
    """Refuse a reference model that reads other tokens.

    Raises:
        InvalidInput: The tokenizers differ.
    """
    tried = list(texts[:_TRIED])
    same = model.vocabulary_key == reference.vocabulary_key
    if not same or model.encode(tried) != reference.encode(tried):
        raise InvalidInput(
            "The reference model has another tokenizer than the model, so their costs cannot be "
            "compared token by token.",
            hint="Pass a reference model with the same tokenizer, such as the model that the "
            "fine-tuning started from, or leave it out.",
        )


def _logits(module: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
    if not hasattr(module, "config"):
        of_ours: Tensor = module(ids)
        return of_ours
    known = inspect.signature(module.forward).parameters
    options = {"use_cache": False} if "use_cache" in known else {}
    made = module(input_ids=ids, attention_mask=mask, **options)
    logits = getattr(made, "logits", None)
    if not isinstance(logits, Tensor):
        raise UnsupportedModel("The model returns no logits for each token of a batch.")
    return logits


def _quiet(module: nn.Module) -> AbstractContextManager[None]:
    """Silence the transformers library where the network is one of its own."""
    return quiet() if hasattr(module, "config") else nullcontext()
