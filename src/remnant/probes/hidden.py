"""Hidden states: what a layer of any module makes of its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput, UnsupportedModel

POOLINGS = ("last", "mean")
Inputs = Tensor | Mapping[str, Tensor]


def hidden_states(
    model: nn.Module,
    inputs: Inputs,
    *,
    layer: str | None = None,
    pool: str = "last",
    batch: int = 256,
) -> Tensor:
    """Return one hidden state per example, in evaluation mode and without gradients.

    Without ``layer`` it is what enters the last dense layer that runs: the representation that a
    classifier, or a language model's head, decides upon. With it, what the named layer returns
    (the first tensor, where it returns several). States of sequences ``(n, tokens, d)`` are pooled
    over tokens, those of images ``(n, channels, height, width)`` are averaged over places.

    Args:
        model: Any module; its training mode, weights and buffers are left as they were.
        inputs: A tensor, or named tensors that the model takes as keywords.
        layer: A name from ``model.named_modules()``.
        pool: ``last``: the last token that ``attention_mask`` allows (the very last without one);
            ``mean``: the mean over those it allows.
        batch: Examples a pass; it changes nothing but memory, up to rounding.

    Returns:
        float32 or the model's own type, ``(n, d)``, on the CPU.

    Raises:
        UnsupportedModel: There is no such layer, it does not run, or gives no tensor of states.
        InvalidInput: No examples, named tensors of different lengths, an unknown pooling.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> hidden_states(model, torch.randn(5, 4)).shape
        torch.Size([5, 8])
        >>> hidden_states(model, torch.randn(5, 4), layer="0").shape
        torch.Size([5, 8])
    """
    if pool not in POOLINGS:
        raise InvalidInput(f"pool={pool!r} is not one of {', '.join(POOLINGS)}.")
    check_batch(batch)
    count = length_of(inputs)
    made = []
    with evaluating(model), watching(model, [layer]) as seen:
        for first in range(0, count, batch):
            part = part_of(inputs, first, first + batch)
            seen.clear()
            _call(model, part)
            name, states = states_of(seen, layer)
            made.append(pooled(states, part, pool, name).cpu())
    return torch.cat(made)


def check_batch(batch: object) -> None:
    """Refuse a batch that is not a whole number of at least 1."""
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise InvalidInput(f"batch={batch!r} is not a whole number of at least 1.")


def length_of(inputs: Inputs) -> int:
    """Return how many examples there are; all named tensors have as many."""
    tensors = list(inputs.values()) if isinstance(inputs, Mapping) else [inputs]
    lengths = {len(tensor) for tensor in tensors}
    if len(lengths) != 1 or 0 in lengths:
        raise InvalidInput(f"inputs have {sorted(lengths)} examples; give one or more, all alike.")
    return lengths.pop()


def part_of(inputs: Inputs, first: int, stop: int) -> Inputs:
    """Return some of the examples."""
    if isinstance(inputs, Mapping):
        return {name: tensor[first:stop] for name, tensor in inputs.items()}
    return inputs[first:stop]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Ask in evaluation mode and without gradients; put every module's own mode back."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def _call(model: nn.Module, part: Inputs) -> None:
    where = next((tensor.device for tensor in model.parameters()), torch.device("cpu"))
    if isinstance(part, Mapping):
        model(**{name: tensor.to(where) for name, tensor in part.items()})
    else:
        model(part.to(where))


@contextmanager
def watching(
    model: nn.Module, layers: Sequence[str | None]
) -> Iterator[dict[str | None, tuple[str, Any]]]:
    """Keep what layers give during a pass; None stands for what enters the last dense layer.

    Yields:
        For each layer that ran, the name to show and what it gave; see ``states_of``.

    Raises:
        UnsupportedModel: There is no such layer.
    """
    known = {name: module for name, module in model.named_modules() if name}
    unknown = [layer for layer in layers if layer is not None and layer not in known]
    if unknown:
        raise UnsupportedModel(
            f"the model has no layer {unknown[0]!r}.",
            hint=f"It has, among others: {', '.join(list(known)[:8])}.",
        )
    seen: dict[str | None, tuple[str, Any]] = {}

    def after(_: nn.Module, given: Any, made: Any, *, name: str) -> None:
        # A copy: a later layer may overwrite it in place.
        seen[name] = (name, first_tensor(made, name).clone())

    def before(_: nn.Module, given: Any, *, name: str) -> None:
        seen[None] = (f"entering {name or 'the model'}", given)

    hooks = [
        known[layer].register_forward_hook(partial(after, name=layer))
        for layer in layers
        if layer is not None
    ]
    if None in layers:
        hooks += [
            module.register_forward_pre_hook(partial(before, name=name))
            for name, module in model.named_modules()
            if isinstance(module, nn.Linear)
        ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def states_of(seen: Mapping[str | None, tuple[str, Any]], layer: str | None) -> tuple[str, Tensor]:
    """Return the name of a layer that was watched, and its first tensor.

    Raises:
        UnsupportedModel: It did not run, or gave no tensor.
    """
    if layer in seen:
        name, given = seen[layer]
        return name, first_tensor(given, name)
    if layer is None:
        raise UnsupportedModel(
            "no nn.Linear runs in this model, so that its last hidden state is not known.",
            hint="Name a layer from model.named_modules().",
        )
    raise UnsupportedModel(f"the layer {layer!r} does not run.", hint="Name another one.")


def first_tensor(output: Any, name: str) -> Tensor:
    """Return a layer's output, or the first tensor of it."""
    if isinstance(output, Tensor):
        return output
    values = output.values() if isinstance(output, Mapping) else output
    for value in values if hasattr(values, "__iter__") else ():
        if isinstance(value, Tensor):
            return value
    raise UnsupportedModel(f"the layer {name!r} gives no tensor.", hint="Name another one.")


def logits_of(outputs: Any) -> Tensor:
    """Return a model's logits: its field ``logits``, or its first tensor."""
    given = getattr(outputs, "logits", None)
    if given is None and isinstance(outputs, Mapping):
        given = outputs.get("logits")
    return given if isinstance(given, Tensor) else first_tensor(outputs, "output")


def flattened(states: Tensor, examples: int, name: str) -> Tensor:
    """Return all that a layer gives for each example, ``(n, d)``.

    Raises:
        UnsupportedModel: These are not floating-point numbers with the examples as first axis.
    """
    if states.ndim < 2 or len(states) != examples or not states.is_floating_point():
        kind = str(states.dtype).removeprefix("torch.")
        raise UnsupportedModel(
            f"the layer {name!r} gives {kind} of shape {tuple(states.shape)} for {examples} "
            "examples, not a state for each.",
            hint="Name one whose output has the examples as its first axis.",
        )
    return states.flatten(1)


def pooled(states: Tensor, part: Inputs, pool: str, name: str) -> Tensor:
    """Return one state per example, ``(n, d)``."""
    if states.ndim == 2:
        return states
    if states.ndim == 4:
        return states.mean(dim=(2, 3))
    if states.ndim != 3:
        raise UnsupportedModel(
            f"the layer {name!r} gives states of shape {tuple(states.shape)}; they are (n, d), "
            "(n, tokens, d) or (n, channels, height, width).",
            hint="Name another one.",
        )
    mask = part.get("attention_mask") if isinstance(part, Mapping) else None
    if mask is None:
        return states[:, -1] if pool == "last" else states.mean(dim=1)
    allowed = mask.to(states.device).bool()
    if not bool(allowed.any(dim=1).all()):
        raise InvalidInput("attention_mask allows no token of some example.")
    if pool == "mean":
        weights = allowed[..., None].to(states.dtype)
        return (states * weights).sum(dim=1) / weights.sum(dim=1)
    places = torch.arange(states.shape[1], device=states.device)
    last = torch.where(allowed, places, -1).amax(dim=1)
    return states[torch.arange(len(states), device=states.device), last]
