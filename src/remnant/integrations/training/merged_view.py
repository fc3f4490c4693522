"""A model with a PEFT adapter, run for a while as if the adapter were merged.

A live adapter adds several small operations to every layer. Merging it into the weights and taking
it out again would change their last bits, so the merged weights are copies: while they are used,
each adapted layer is replaced by a layer that holds the copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import torch
from torch import nn

from remnant.integrations.training.trained_model import is_adapted

_MOST_BYTES = 1 << 30  # of merged weights; in larger models an adapter's share of the work is small


@contextmanager
def merged_view(model: nn.Module) -> Iterator[None]:
    """Run the model with merged copies of its adapted weights.

    The model is left alone where merging would lose precision (weights in 16 bits or quantised),
    take much memory, or where the adapter is of a kind that has no layers to merge.

    Args:
        model: Any model; one without an adapter is run as it is.

    Guarantees:
        * No weight, gradient or module of the model is changed, whatever happens within.
    """
    replaced: list[tuple[nn.Module, str, nn.Module]] = []
    try:
        for parent, name, layer in _mergeable(model):
            merged = _merged(layer)
            replaced.append((parent, name, layer))
            parent._modules[name] = merged
        yield
    finally:
        for parent, name, layer in replaced:
            parent._modules[name] = layer


def _mergeable(model: nn.Module) -> list[tuple[nn.Module, str, Any]]:
    """Adapted layers with their parents and names; none if not all of them can be merged."""
    if not is_adapted(model):
        return []
    from peft.tuners.lora.layer import Linear
    from peft.tuners.tuners_utils import BaseTunerLayer
    from transformers.pytorch_utils import Conv1D

    layers = []
    size = 0
    for parent in model.modules():
        if isinstance(parent, BaseTunerLayer):
            continue  # a layer's own base layer is no adapted layer
        for name, layer in parent.named_children():
            if not isinstance(layer, BaseTunerLayer):
                continue
            weight: Any = getattr(layer.get_base_layer(), "weight", None)
            plain = (
                type(layer) is Linear
                and type(layer.get_base_layer()) in (nn.Linear, Conv1D)
                and weight.dtype == torch.float32
                and not layer.merged
                and not layer.disable_adapters
            )
            if not plain:
                return []
            size += weight.numel() * weight.element_size()
            layers.append((parent, name, layer))
    return layers if size <= _MOST_BYTES else []


def _merged(layer: Any) -> nn.Module:
    """The layer's base layer with the adapter in its weights, all of them copies."""
    base: nn.Module = _shallow(layer.get_base_layer())
    for name, parameter in base._parameters.items():
        if parameter is not None:
            base._parameters[name] = nn.Parameter(parameter.detach().clone(), requires_grad=False)
    twin = _shallow(layer)
    twin._modules["base_layer"] = base
    twin.__dict__["merged_adapters"] = []
    twin.__dict__["_caches"] = {}
    twin.merge()
    return base


def _shallow(module: Any) -> Any:
    """A module with the same parameters and children in dictionaries of its own."""
    twin = copy(module)
    for name in ("_parameters", "_buffers", "_modules"):
        twin.__dict__[name] = dict(module.__dict__[name])
    return twin
