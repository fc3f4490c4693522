"""The module that all members share, and the traits that decide how members are trained."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.population.randomness import CounterDropout, install_counters, keys
from remnant.population.state import Named, State

Loss = Callable[[Any, Tensor], Tensor]
_RECURRENT = (nn.RNNBase, nn.RNNCellBase)
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of each label: the default loss. Classes are the last axis."""
    if logits.ndim > 2 and labels.shape == logits.shape[:-1]:
        logits = logits.movedim(-1, 1)
    return nn.functional.cross_entropy(logits, labels, reduction="none")


class Blueprint:
    """A module with its dropout layers made countable, run with any member's tensors."""

    def __init__(self, module: nn.Module) -> None:
        if not any(p.requires_grad for p in module.parameters()):
            raise UnsupportedModel(
                "The model has no parameter that can be trained.", hint="Unfreeze one."
            )
        self.module = module
        self.dropouts = install_counters(module)
        self.owners = _buffer_owners(module)

    def begin_pass(self, *, training: bool) -> nn.Module:
        """Return the module, ready for a forward pass of its own."""
        for layer in self.dropouts.values():
            layer.calls = 0
        return self.module.train(training)

    def tensors(self) -> State:
        """Return this module's own tensors, without a member axis."""
        derived = {f"{name}.{part}" for name in self.dropouts for part in ("key", "rate", "place")}
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

    def place_examples(self, inputs: Tensor | None) -> None:
        """Let an example's dropout masks depend on its place in the batch, not on the batch's size.

        In a layer that has the time first, an ordinary mask depends on both. The axis of examples
        is the one that grows with the batch.

        Args:
            inputs: Some examples; ``None`` restores ordinary masks.
        """
        for layer in self.dropouts.values():
            layer.axes = {}
        if inputs is None or not self.dropouts:
            return
        calls: list[list[tuple[CounterDropout, torch.Size]]] = []
        rows = torch.zeros(3, dtype=torch.int64, device=inputs.device)
        for count in (2, 3):
            calls.append([])
            hooks = [
                layer.register_forward_hook(
                    lambda layer, given, _: calls[-1].append((layer, given[0].shape))
                )
                for layer in self.dropouts.values()
            ]
            try:
                with torch.no_grad():
                    self.begin_pass(training=False)(inputs[rows[:count]])
            finally:
                for hook in hooks:
                    hook.remove()
        number: Counter[CounterDropout] = Counter()
        for (layer, two), (_, three) in zip(*calls, strict=False):
            grown = [axis for axis, size in enumerate(two) if size != three[axis]]
            if len(grown) == 1:
                layer.axes[number[layer]] = grown[0]
            number[layer] += 1

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
    """What the module is made of, and what a training pass of the module was seen to do.

    Attributes:
        recurrent: It has a layer of ``nn.LSTM``'s family, which does not vmap.
        convolutional: It has a convolution, which vmaps into a slower grouped one.
        padded: It has an embedding with a padding row, whose gradient vmap gets wrong.
        draws: It drew from torch's global generator (other than through a dropout layer).
        reassigns: It replaced a buffer instead of writing into it.
        outputs: Shape of what it returned for one example.
    """

    recurrent: bool
    convolutional: bool
    padded: bool
    draws: bool
    reassigns: bool
    outputs: torch.Size


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
        others = _foreign_states()
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
    if others != _foreign_states():
        raise UnsupportedModel(
            "The model draws from Python's or NumPy's global generator while training.",
            hint="Draw from torch instead: its generator is seeded for each member.",
        )
    if not isinstance(outputs, Tensor) or outputs.ndim < 2:
        raise UnsupportedModel(
            "The model does not return one tensor of shape (batch, ..., classes).",
            hint="Wrap it in a module whose forward returns the logits.",
        )
    return Traits(
        recurrent=any(isinstance(m, _RECURRENT) for m in module.modules()),
        convolutional=any(isinstance(m, _CONVOLUTIONS) for m in module.modules()),
        padded=any(
            isinstance(m, nn.Embedding) and m.padding_idx is not None for m in module.modules()
        ),
        draws=drew,
        reassigns=any(b is not buffers.get(n) for n, b in module.named_buffers()),
        outputs=outputs.shape[1:],
    )


def _buffer_owners(module: nn.Module) -> dict[str, list[tuple[nn.Module, str]]]:
    """Return every place at which each buffer is registered, under its first name."""
    first: dict[int, str] = {}
    places: dict[str, list[tuple[nn.Module, str]]] = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for name, buffer in owner._buffers.items():
            if buffer is not None:
                key = first.setdefault(id(buffer), f"{path}.{name}" if path else name)
                places.setdefault(key, []).append((owner, name))
    return places


def _generator_states(device: torch.device) -> list[Tensor]:
    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state(device)] if device.type == "cuda" else states


def _foreign_states() -> tuple[Any, ...]:
    """Return the states of the global generators that torch knows nothing of."""
    state: Any = np.random.get_state()  # noqa: NPY002 (to see whether a model uses it)
    return random.getstate(), state[1].tobytes(), state[2]
