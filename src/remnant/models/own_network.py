"""A network of the user's own: made by a function, and tried on a few examples before use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from remnant.errors import UnsupportedModel

Loss = Callable[[Any, Tensor], Tensor]


def own_network(
    make: Callable[[], Any], *, named: str, shape: Sequence[int], whole: bool = False
) -> Callable[[], nn.Module]:
    """Return what makes the network; lazy parameters take their sizes from inputs of this shape.

    Args:
        make: The user's function with its options.
        named: What errors call it.
        shape: Of one input.
        whole: Whether inputs are whole numbers, such as tokens.

    Raises:
        UnsupportedModel: On calling it, if ``make`` returns no module.
    """

    def made() -> nn.Module:
        module = make()
        if not isinstance(module, nn.Module):
            raise UnsupportedModel(
                f"{named} returns {type(module).__name__}, not a torch.nn.Module.",
                hint="Let the function return the network, untrained.",
            )
        if any(is_lazy(tensor) for tensor in (*module.parameters(), *module.buffers())):
            was = module.training
            zeros = torch.zeros((2, *shape), dtype=torch.int64 if whole else None)
            with torch.no_grad():
                module.eval()(zeros)
            module.train(was)
        return module

    return made


def check_network(
    make: Callable[[], nn.Module],
    inputs: Tensor,
    labels: Tensor,
    *,
    named: str,
    classes: int,
    loss: Loss,
) -> None:
    """Refuse a network that cannot be a member of a population, before anything is trained.

    A population has one module, through which all members are computed: what a member is must be
    in its parameters and buffers, and follow from its seed.

    Args:
        make: See ``own_network``.
        inputs, labels: A few examples.
        named: What errors call it.
        classes: Of the data.
        loss: Of outputs and labels, one value per example.

    Raises:
        UnsupportedModel: What the network does that a member may not do.
    """
    module, again = _seeded(make), _seeded(make)
    if module is again:
        raise UnsupportedModel(
            f"{named} returns the same network every time.",
            hint="Make the network inside the function, so that each member has its own.",
        )
    if not _same(module.state_dict(), again.state_dict()):
        raise UnsupportedModel(
            f"{named} gives other weights for the same seed.",
            hint="Draw them from torch's generator, which is seeded for each member.",
        )
    kind = next((p.dtype for p in module.parameters() if p.is_floating_point()), None)
    if inputs.is_floating_point() and kind is not None:
        inputs = inputs.to(kind)
    names = set(dict(module.named_parameters()))
    outputs = _pass(module.train(), inputs)
    numbers = _numbers(module)
    _check_outputs(outputs, len(inputs), classes, named)
    if new := sorted(set(dict(module.named_parameters())) - names):
        raise UnsupportedModel(
            f"{named} makes the parameter {new[0]} in its first pass.",
            hint="Make all parameters in __init__, or use torch's lazy layers.",
        )
    _check_gradient(module, loss, outputs, labels, named)
    if not torch.equal(outputs.detach(), _pass(_restored(module, again), inputs).detach()):
        raise UnsupportedModel(
            f"{named}: a second pass over the same inputs gives other outputs.",
            hint="Keep what changes in buffers (register_buffer): each member has its own.",
        )
    for place, number in _numbers(module).items():
        if numbers.get(place, number) != number:
            raise UnsupportedModel(
                f"{named}: {place} changes from {numbers[place]} to {number} from pass to pass.",
                hint="Keep what changes in buffers (register_buffer): each member has its own.",
            )
    with torch.no_grad():
        scored = _pass(module.eval(), inputs)
        _check_outputs(scored, len(inputs), classes, named)
        _check_scoring(module, inputs, scored, named)


def _seeded(make: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make()


def _pass(module: nn.Module, inputs: Tensor, *, seed: int = 1) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return module(inputs)


def _restored(module: nn.Module, untouched: nn.Module) -> nn.Module:
    """Return the module with the buffers that it began with."""
    began = dict(untouched.named_buffers())
    with torch.no_grad():
        for name, buffer in module.named_buffers():
            if name in began:
                buffer.copy_(began[name])
    return module


def _same(state: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    tensors = [name for name, value in state.items() if isinstance(value, Tensor)]
    return state.keys() == other.keys() and all(
        state[name].shape == other[name].shape
        and torch.equal(torch.nan_to_num(state[name]), torch.nan_to_num(other[name]))
        for name in tensors
    )


def _numbers(module: nn.Module) -> dict[str, Any]:
    """Numbers that modules keep as plain attributes, which all members would share."""
    return {
        f"{name}.{attribute}".lstrip("."): value
        for name, inner in module.named_modules()
        for attribute, value in vars(inner).items()
        if isinstance(value, int | float) and attribute != "training"
    }


def _check_outputs(outputs: Any, examples: int, classes: int, named: str) -> None:
    if not isinstance(outputs, Tensor):
        raise UnsupportedModel(
            f"{named} gives {type(outputs).__name__}, not one tensor of logits.",
            hint="Let forward return a tensor of shape (batch, classes).",
        )
    if outputs.ndim != 2 or len(outputs) != examples or outputs.shape[1] < classes:
        raise UnsupportedModel(
            f"{named} gives outputs of shape {tuple(outputs.shape)} for {examples} examples of "
            f"{classes} classes.",
            hint=f"Let forward return one logit per class: ({examples}, {classes}).",
        )
    if not outputs.is_floating_point():
        raise UnsupportedModel(
            f"{named} gives outputs of type {outputs.dtype}, not logits.",
            hint="Let forward return logits, not classes.",
        )
    if bad := int((~torch.isfinite(outputs)).any(1).sum()):
        raise UnsupportedModel(
            f"{named} gives outputs that are not finite for {bad} of {examples} examples, before "
            "any training.",
            hint="Check its initialisation, and how its inputs are scaled.",
        )


def _check_scoring(module: nn.Module, inputs: Tensor, scored: Tensor, named: str) -> None:
    """Refuse a network whose scores hold noise, or depend on what is scored with an example."""
    if not torch.equal(scored, _pass(module, inputs, seed=2)):
        raise UnsupportedModel(
            f"{named}: in evaluation mode a second pass over the same inputs gives other outputs.",
            hint="Let forward draw and change nothing where self.training is False: noise hides "
            "what a model remembers.",
        )
    half = len(inputs) // 2
    alone = _pass(module, inputs[:half]) if half else scored[:half]
    scale = max(1.0, float(scored.abs().max()))
    close = math.sqrt(torch.finfo(scored.dtype).eps) * scale
    if not torch.allclose(alone, scored[:half], rtol=0.0, atol=close):
        raise UnsupportedModel(
            f"{named}: in evaluation mode the outputs of an example depend on the others in its "
            "batch.",
            hint="Normalise by running statistics where self.training is False, as "
            "torch.nn.BatchNorm2d does.",
        )


def _check_gradient(
    module: nn.Module, loss: Loss, outputs: Tensor, labels: Tensor, named: str
) -> None:
    trained = [p for p in module.parameters() if p.requires_grad]
    if not trained:
        raise UnsupportedModel(
            f"{named}: the network has no parameter that can be trained.", hint="Unfreeze one."
        )
    values = loss(outputs, labels)
    if values.requires_grad:
        gradients = torch.autograd.grad(values.mean(), trained, allow_unused=True)
        if any(gradient is not None for gradient in gradients):
            return
    raise UnsupportedModel(
        f"{named}: no gradient of the loss reaches a parameter.",
        hint="Do not detach the outputs, nor compute them without gradients.",
    )
