"""Which layers have a closed form of their per-example gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import nn

from remnant.gradients.closed_forms import Form, dense, embedding, per_channel, per_feature
from remnant.gradients.convolution import convolution
from remnant.gradients.weighted_sums import (
    Summed,
    channel_sums,
    convolution_sums,
    dense_sums,
    embedding_sums,
    feature_sums,
)


class ClosedForm(NamedTuple):
    """What is known of a kind of layer.

    Attributes:
        fits: Whether the form holds, from the layer and the number of axes of its input.
        norms: Squared norms of per-example gradients.
        sums: Weighted sums of per-example gradients.
    """

    fits: Callable[[Any, int], bool]
    norms: Form
    sums: Summed


# By a layer's class, exactly.
FORMS: Mapping[type[nn.Module], ClosedForm] = {
    nn.Linear: ClosedForm(lambda _, axes: axes >= 2, dense, dense_sums),
    nn.Conv1d: ClosedForm(lambda _, axes: axes == 3, convolution, convolution_sums),
    nn.Conv2d: ClosedForm(lambda _, axes: axes == 4, convolution, convolution_sums),
    nn.Embedding: ClosedForm(lambda _, axes: axes >= 1, embedding, embedding_sums),
    nn.BatchNorm1d: ClosedForm(lambda _, axes: axes in (2, 3), per_channel, channel_sums),
    nn.BatchNorm2d: ClosedForm(lambda _, axes: axes == 4, per_channel, channel_sums),
    nn.BatchNorm3d: ClosedForm(lambda _, axes: axes == 5, per_channel, channel_sums),
    nn.InstanceNorm1d: ClosedForm(lambda _, axes: axes == 3, per_channel, channel_sums),
    nn.InstanceNorm2d: ClosedForm(lambda _, axes: axes == 4, per_channel, channel_sums),
    nn.InstanceNorm3d: ClosedForm(lambda _, axes: axes == 5, per_channel, channel_sums),
    nn.GroupNorm: ClosedForm(lambda _, axes: axes >= 2, per_channel, channel_sums),
    nn.LayerNorm: ClosedForm(
        lambda layer, axes: axes > len(layer.normalized_shape), per_feature, feature_sums
    ),
    nn.RMSNorm: ClosedForm(
        lambda layer, axes: axes > len(layer.normalized_shape), per_feature, feature_sums
    ),
}
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A layer with a closed form.

    Attributes:
        module: The layer.
        owns: Its parameters that are asked for: ``weight`` or ``bias``, and the model's names.
    """

    module: nn.Module
    owns: Mapping[str, str]


def known_layers(model: nn.Module, names: Sequence[str]) -> list[Layer]:
    """Return the layers that have a closed form for some of the named parameters.

    Parameters that have several names in the model are left out, as are layers whose forward pass
    was replaced, embeddings that rescale their gradients and batch norms that mix examples.
    """
    often = Counter(id(tensor) for _, tensor in model.named_parameters(remove_duplicate=False))
    chosen = set(names)
    layers = []
    for path, module in model.named_modules():
        if type(module) not in FORMS or "forward" in vars(module) or _odd(module):
            continue
        owns = {
            own: f"{path}.{own}" if path else own
            for own, parameter in module.named_parameters(recurse=False)
            if own in ("weight", "bias") and often[id(parameter)] == 1
        }
        owns = {own: name for own, name in owns.items() if name in chosen}
        if owns:
            layers.append(Layer(module, owns))
    return layers


def _odd(module: nn.Module) -> bool:
    if isinstance(module, nn.Embedding):
        return module.scale_grad_by_freq
    # Without running statistics a batch norm mixes the examples of a batch.
    return isinstance(module, _BATCH_NORMS) and module.running_mean is None
