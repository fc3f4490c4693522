"""What private training refuses: models that mix the examples of a batch."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from remnant.errors import UnsupportedModel
from remnant.population.blueprint import Blueprint
from remnant.population.randomness import CounterDropout

_BATCH_NORMS = (nn.modules.batchnorm._BatchNorm,)
_HINT = "Use GroupNorm or LayerNorm, which normalise each example by itself."
_APART = {torch.float64: 1e-9, torch.float32: 1e-4}


def check_examples_apart(blueprint: Blueprint, inputs: Tensor) -> None:
    """Refuse a model in which one example's output depends on the others of its batch.

    Batch norms are known by name. Any other model is run on batches that differ in one example; the
    other outputs and the buffers must not change.

    Args:
        blueprint: The model.
        inputs: Some examples, at least one.

    Raises:
        UnsupportedModel: It mixes examples, or stores statistics of them.
    """
    for name, layer in blueprint.module.named_modules():
        if isinstance(layer, _BATCH_NORMS):
            raise UnsupportedModel(
                f"Layer {name!r} is a {type(layer).__name__}: it mixes the examples of a batch, so "
                "that clipping one example's gradient does not bound its influence.",
                hint=_HINT,
            )
    module = copy.deepcopy(blueprint.module).train()
    before = {n: b.clone() for n, b in module.named_buffers()}
    first = inputs[:1]
    outputs = [_outputs(module, torch.cat([first, other])) for other in _others(inputs)]
    if any(not torch.equal(before[n], b) for n, b in module.named_buffers()):
        raise UnsupportedModel(
            "The model stores statistics of its examples in a buffer, which no noise protects.",
            hint=_HINT,
        )
    share = _APART.get(outputs[0].dtype, 1e-2)
    for made in outputs[1:]:
        scale = outputs[0].abs().amax().clamp(min=1e-30)
        if bool(((made - outputs[0]).abs().amax() > share * scale).item()):
            raise UnsupportedModel(
                "The model mixes the examples of a batch, so that clipping one example's gradient "
                "does not bound its influence.",
                hint=_HINT,
            )


def _others(inputs: Tensor) -> list[Tensor]:
    """The second example of each trial batch."""
    return [inputs[row : row + 1] for row in sorted({0, len(inputs) // 2, len(inputs) - 1})]


def _outputs(module: nn.Module, inputs: Tensor) -> Tensor:
    """The first example's output; dropout and the model's own draws are the same each time."""
    for layer in module.modules():
        if isinstance(layer, CounterDropout):
            layer.calls = 0
    devices = [inputs.device.index or 0] if inputs.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), torch.no_grad():
        torch.manual_seed(0)
        made: Tensor = module(inputs)
    return made[0]
