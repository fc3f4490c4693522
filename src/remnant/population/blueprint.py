"""The one module through which all members compute, and what it does that members must know."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.population.randomness import install_counters, keys
from remnant.population.state import Named, State

Loss = Callable[[Any, Tensor], Tensor]
_RECURRENT = (nn.RNNBase, nn.RNNCellBase)
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of each example: the default loss."""
    return nn.functional.cross_entropy(logits, labels, reduction="none")


class Blueprint:
    """A module with its dropout layers made countable, run with any member's tensors."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.dropouts = install_counters(module)

    def tensors(self) -> State:
        """Return this module's own tensors, without a member axis."""
        derived = {f"{name}.{part}" for name in self.dropouts for part in ("key", "rate")}
        params = dict(self.module.named_parameters())
        return State(
            {
                "params": {n: p.detach() for n, p in params.items() if p.requires_grad},
                "frozen": {n: p.detach() for n, p in params.items() if not p.requires_grad},
                "buffers": {n: b for n, b in self.module.named_buffers() if n not in derived},
                "rates": {n: layer.rate for n, layer in self.dropouts.items()},
            }
        )

    def dropout_tensors(self, state: State) -> Named:
        """Return the keys and rates of every dropout layer at the members' own counts."""
        seeds, taken = state["seeds"].get("dropout"), state["clocks"].get("lifetime")
        if not self.dropouts or seeds is None or taken is None:
            return {}
        made: Named = {}
        for layer, name in enumerate(self.dropouts):
            made[f"{name}.key"] = keys(seeds, taken, layer)
            made[f"{name}.rate"] = state["rates"][name]
        return made

    def mean_loss(self, loss: Loss, outputs: Any, targets: Tensor) -> Tensor:
        """Return the mean over the batch of one loss value per example."""
        values = loss(outputs, targets)
        if values.ndim == 0 or values.shape[0] != targets.shape[0]:
            raise InvalidInput(
                f"loss returned shape {tuple(values.shape)} for {targets.shape[0]} examples.",
                hint="Return one value per example; the engine takes the mean.",
            )
        return values.mean()


@dataclass(frozen=True, slots=True)
class Traits:
    """What a training pass of the module was seen to do.

    Attributes:
        recurrent: It has a layer of ``nn.LSTM``'s family, which does not vmap.
        convolutional: It has a convolution, which vmaps into a slower grouped one.
        draws: It drew from torch's global generator (other than through a dropout layer).
        reassigns: It replaced a buffer instead of writing into it.
        outputs: Size of the last axis of what it returned.
    """

    recurrent: bool
    convolutional: bool
    draws: bool
    reassigns: bool
    outputs: int


def observe(blueprint: Blueprint, inputs: Tensor) -> Traits:
    """Run one training pass on a copy of the module and note what it does.

    Raises:
        UnsupportedModel: The module cannot take these inputs, or returns no tensor.
    """
    module = copy.deepcopy(blueprint.module).train()
    buffers = dict(module.named_buffers())
    devices = [inputs.device.index or 0] if inputs.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), torch.no_grad():
        before = _generator_states(inputs.device)
        try:
            outputs = module(inputs)
        except (RuntimeError, TypeError, ValueError, IndexError) as fault:
            raise UnsupportedModel(
                f"The model cannot take inputs of shape {tuple(inputs.shape)}: "
                f"{str(fault).splitlines()[0]}.",
                hint="Check the shape and type of inputs against make_model().",
            ) from fault
        drew = any(
            not torch.equal(a, b)
            for a, b in zip(before, _generator_states(inputs.device), strict=True)
        )
    if not isinstance(outputs, Tensor) or outputs.ndim < 2:
        raise UnsupportedModel(
            "The model does not return one tensor of shape (batch, ..., classes).",
            hint="Wrap it in a module whose forward returns the logits.",
        )
    return Traits(
        recurrent=any(isinstance(m, _RECURRENT) for m in module.modules()),
        convolutional=any(isinstance(m, _CONVOLUTIONS) for m in module.modules()),
        draws=drew,
        reassigns=any(b is not buffers.get(n) for n, b in module.named_buffers()),
        outputs=outputs.shape[-1],
    )


def _generator_states(device: torch.device) -> list[Tensor]:
    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state(device)] if device.type == "cuda" else states
