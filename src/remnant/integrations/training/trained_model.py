"""A trained model as the exposure measures ask for it: in float32, adapters merged, in context."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.tensor import DTensor

from remnant.integrations.hugging_face import HuggingFaceCausalLM

if TYPE_CHECKING:
    from typing_extensions import Self

_WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module")


class ModelInContext(HuggingFaceCausalLM):
    """A causal language model that reads the tokens of a training row before every text.

    Args:
        model, tokenizer, rows_at_once, widen: See ``HuggingFaceCausalLM``.
        context: Tokens that come before a canary in its training row.
        first: The first token of every canary text where ``context`` holds it already, else None.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        context: Sequence[int],
        first: int | None,
        rows_at_once: int | None = None,
        widen: bool = False,
    ) -> None:
        self._context = tuple(context)
        self._known_first = first
        super().__init__(model, tokenizer, rows_at_once=rows_at_once, widen=widen)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of ``text`` without the one that the context holds already."""
        ids = super().encode(text)
        return ids[1:] if self._known_first is not None and ids[:1] == [self._known_first] else ids

    def _with(self, model: Any, *, widen: bool) -> Self:
        return type(self)(
            model,
            self._library_tokenizer,
            context=self._context,
            first=self._known_first,
            rows_at_once=self._rows_at_once,
            widen=widen,
        )

    def _begun(self, prefix_ids: Sequence[int]) -> list[int]:
        return [*self._context, *prefix_ids] or [self._document_start()]


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model inside the wrappers of DDP, ``torch.compile``, Opacus and the like."""
    inner = model
    while True:
        wrappers = (*_WRAPPERS, "_module") if _is_of_opacus(inner) else _WRAPPERS
        name = next((name for name in wrappers if isinstance(_child(inner, name), nn.Module)), None)
        if name is None:
            return inner
        inner = _child(inner, name)


def _is_of_opacus(model: nn.Module) -> bool:
    return any(kind.__module__.partition(".")[0] == "opacus" for kind in type(model).__mro__)


def _child(model: nn.Module, name: str) -> Any:
    return model._modules.get(name) or model.__dict__.get(name)


def is_sharded(model: nn.Module) -> bool:
    """Whether the weights are spread over several processes, by FSDP or DeepSpeed."""
    if any(isinstance(module, FullyShardedDataParallel) for module in model.modules()):
        return True
    return any(
        isinstance(parameter, DTensor) or hasattr(parameter, "ds_id")
        for parameter in model.parameters()
    )


def is_adapted(model: nn.Module) -> bool:
    """Whether the model has a PEFT adapter that can be merged or switched off."""
    return hasattr(model, "disable_adapter") and hasattr(model, "merge_and_unload")


def plain_model(model: nn.Module) -> nn.Module:
    """Return the model in float32 without wrappers and adapters; the model itself stays as it is.

    A float32 model without adapter is returned as it is, everything else as a merged copy.
    """
    inner = unwrapped(model)
    in_float32 = all(
        weight.dtype == torch.float32 for weight in inner.parameters() if weight.is_floating_point()
    )
    if in_float32 and not is_adapted(inner) and not any(map(_is_patched, inner.modules())):
        return inner
    copied = _copied(inner)
    merged = copied.merge_and_unload() if is_adapted(copied) else copied
    return _as_float32(merged)


def model_in_words(model: nn.Module) -> str:
    """The class of a model, where its weights are from, and how many it has in this process.

    Example:
        >>> model_in_words(nn.Linear(3, 2))
        'Linear, 8 parameters'
    """
    inner = unwrapped(model)
    source = getattr(getattr(inner, "config", None), "name_or_path", None)
    many = sum(weights.numel() for weights in inner.parameters())
    words = [type(inner).__name__, *([str(source)] if source else []), f"{many} parameters"]
    return ", ".join(words)


def base_model(model: nn.Module) -> nn.Module | None:
    """Return the model without its adapter, which saw no canary; None where it has none."""
    inner = unwrapped(model)
    return _as_float32(_copied(inner).unload()) if is_adapted(inner) else None


def _copied(model: nn.Module) -> Any:
    """A copy whose modules run their own code.

    Trainers put a ``forward`` of their own over that of a module. It is bound to the module that it
    was made for, so that in a copy it would go on with the weights of the original.
    """
    copied = deepcopy(model)
    for module in copied.modules():
        if _is_patched(module):
            del module.__dict__["forward"]
    return copied


def _is_patched(module: nn.Module) -> bool:
    return "forward" in module.__dict__ and not hasattr(module, "_hf_hook")


def _as_float32(model: Any) -> nn.Module:
    plain: nn.Module = model.float().eval()
    return plain
