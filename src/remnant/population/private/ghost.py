"""Norms and clipped sums of per-example gradients without the gradients ("ghost" clipping).

One forward pass of all members notes what enters each layer. Zeros are added to each layer's
output; the gradient with respect to them is that of the output, example by example, from one
backward pass that computes no weight's gradient. Closed forms give each example's norm, and, once
the clipping factors are known, the sum of clipped gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.gradients.closed_forms import Seen
from remnant.gradients.layers import FORMS, Layer, known_layers
from remnant.gradients.recurrent import KINDS, OWNS, Recurrence, recurrent_norms, recurrent_sums
from remnant.population.blueprint import Blueprint, Loss
from remnant.population.precision import training_cast
from remnant.population.state import Named, State


@dataclass(frozen=True, slots=True, eq=False)
class _Tap:
    """Where zeros are added: a layer's output, or the gates of a recurrent one."""

    layer: Layer
    recurrent: bool
    axis: int  # of the examples
    shape: torch.Size  # for one example, that axis left out
    dtype: torch.dtype

    def zeros(self, members: int, batch: int, device: torch.device) -> Tensor:
        shape = [*self.shape[: self.axis], batch, *self.shape[self.axis :]]
        zero = torch.zeros((), dtype=self.dtype, device=device)
        return zero.expand(members, *shape).detach().requires_grad_()

    def examples_first(self, tensor: Tensor) -> Tensor:
        """Members first, then examples."""
        return tensor.movedim(1 + self.axis, 1)


@dataclass(eq=False)
class Notes:
    """One pass of some members: all that closed forms need.

    Attributes:
        squared: Squared norms of each example over the covered parameters, ``(members, batch)``.
        by_name: The same for each of them.
    """

    squared: Tensor
    by_name: Named
    _calls: list[tuple[_Tap, Any]] = field(default_factory=list)

    def sums(self, weights: Tensor) -> Named:
        """Return sums of per-example gradients with weights ``(members, batch)``."""
        made: Named = {}
        for tap, call in self._calls:
            owns = tap.layer.owns
            if isinstance(call, Recurrence):
                sums = recurrent_sums(call, weights.to(call.g.dtype))
            else:
                shape = (*weights.shape, *(1 for _ in call.g.shape[2:]))
                weighted = call.g * weights.to(call.g.dtype).view(shape)
                seen = Seen(call.module, call.x, weighted, owns.keys())
                sums = FORMS[type(call.module)].sums(seen)
            made |= {owns[own]: total for own, total in sums.items()}
        return made


class Ghost:
    """Computes norms and sums by closed forms, for the parameters of layers that have one.

    Args:
        blueprint: The module.
        loss: From outputs and targets to one value per example.
        precision: Of the population.
        stacked: Whether ``vmap`` runs all members at once; otherwise one at a time is given.
        inputs: Some examples, from which the layers' shapes are read.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        loss: Loss,
        precision: str | None,
        *,
        stacked: bool,
        inputs: Tensor,
    ) -> None:
        self._blueprint, self._loss, self._precision = blueprint, loss, precision
        self.stacked = stacked
        names = list(blueprint.tensors()["params"])
        layers = [(layer, False) for layer in known_layers(blueprint.module, names)]
        layers += [(layer, True) for layer in _recurrent_layers(blueprint.module, names)]
        self._taps = self._find_taps(layers, inputs)

    @property
    def names(self) -> set[str]:
        """The parameters that are covered."""
        return {name for tap in self._taps for name in tap.layer.owns.values()}

    def keep(self, names: set[str]) -> None:
        """Keep only the layers of which every parameter is among ``names``."""
        self._taps = [tap for tap in self._taps if names.issuperset(tap.layer.owns.values())]

    def notes(self, state: State, inputs: Tensor, targets: Tensor) -> Notes:
        """Run members on their batches ``(members, batch, ...)``; one member if not stacked."""
        members, batch = inputs.shape[:2]
        zeros = [tap.zeros(members, batch, inputs.device) for tap in self._taps]
        extra = self._blueprint.dropout_tensors(state)
        fixed = {**state["frozen"], **state["buffers"], **extra}
        own = {n: p.detach() for n, p in state["params"].items()}
        with torch.enable_grad(), training_cast(self._precision, inputs.device):
            if self.stacked:
                losses, seen = vmap(self._member)(own, fixed, zeros, inputs, targets)
            else:
                losses, seen = self._member(
                    {n: t[0] for n, t in own.items()},
                    {n: t[0] for n, t in fixed.items()},
                    [zero[0] for zero in zeros],
                    inputs[0],
                    targets[0],
                )
                losses, seen = losses[None], [tuple(t[None] for t in call) for call in seen]
            total = losses.sum()
        grads = torch.autograd.grad(total, zeros, allow_unused=True)
        with torch.no_grad():
            return self._closed(state, seen, grads, losses.shape)

    def _closed(
        self, state: State, seen: Sequence[tuple[Tensor, ...]], grads: Any, shape: torch.Size
    ) -> Notes:
        device = next(iter(state["params"].values())).device
        total = torch.zeros(shape, dtype=torch.float64, device=device)
        notes = Notes(total, {})
        for tap, call, came in zip(self._taps, seen, grads, strict=True):
            owns, kind = tap.layer.owns, state["params"][next(iter(tap.layer.owns.values()))].dtype
            if came is None:
                for name in owns.values():
                    notes.by_name[name] = torch.zeros_like(total)
                continue
            g = tap.examples_first(came).to(kind)
            first, *rest = (tap.examples_first(t.detach()) for t in call)
            first = first.to(kind) if first.is_floating_point() else first
            if tap.recurrent:
                made: Any = _recurrence(tap, state, first, rest, g)
                norms = recurrent_norms(made)
            else:
                made = Seen(tap.layer.module, first, g, owns.keys())
                flat = Seen(tap.layer.module, first.flatten(0, 1), g.flatten(0, 1), owns.keys())
                norms = FORMS[type(tap.layer.module)].norms(flat)
            notes._calls.append((tap, made))
            for own, norm in norms.items():
                notes.by_name[owns[own]] = norm.view(shape)
                total += norm.view(shape)
        return notes

    def _member(
        self, own: Named, fixed: Named, zeros: list[Tensor], x: Tensor, y: Tensor
    ) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
        module = self._blueprint.begin_pass(training=True)
        seen: list[list[tuple[Tensor, ...]]] = [[] for _ in self._taps]
        with _watching([(tap.layer, tap.recurrent) for tap in self._taps], seen, zeros):
            outputs = functional_call(module, {**own, **fixed}, (x,))
        if any(len(calls) != 1 for calls in seen):
            raise UnsupportedModel("A layer runs at some steps and not at others.")
        losses = self._loss(outputs, y)
        if losses.ndim == 0 or losses.shape[0] != y.shape[0]:
            raise InvalidInput(
                f"loss returned shape {tuple(losses.shape)} for {y.shape[0]} examples.",
                hint="Return one value per example; the engine takes the mean.",
            )
        return losses.reshape(len(losses), -1).mean(1), [calls[0] for calls in seen]

    def _find_taps(self, layers: Sequence[tuple[Layer, bool]], inputs: Tensor) -> list[_Tap]:
        """Run batches of two and of three examples; layers that ran once have a tap."""
        runs: list[list[list[tuple[Tensor, ...]]]] = []
        rows = torch.zeros(3, dtype=torch.int64, device=inputs.device)
        for count in (2, 3):
            runs.append([[] for _ in layers])
            module = self._blueprint.begin_pass(training=True)
            cast = training_cast(self._precision, inputs.device)
            with torch.no_grad(), cast, _watching(layers, runs[-1], None):
                module(inputs[rows[:count]])
        taps = []
        for (layer, recurrent), two, three in zip(layers, *runs, strict=True):
            if len(two) != 1 or len(three) != 1:
                continue
            (*given, made), (*_, larger) = two[0], three[0]
            grown = [axis for axis, size in enumerate(made.shape) if size != larger.shape[axis]]
            fits = recurrent or FORMS[type(layer.module)].fits(layer.module, given[0].ndim)
            if len(grown) != 1 or made.shape[grown[0]] != 2 or not fits:
                continue
            if any(tensor.ndim <= grown[0] or tensor.shape[grown[0]] != 2 for tensor in given):
                continue
            shape = torch.Size([s for a, s in enumerate(made.shape) if a != grown[0]])
            taps.append(_Tap(layer, recurrent, grown[0], shape, made.dtype))
        return taps


def _recurrent_layers(model: nn.Module, names: Sequence[str]) -> list[Layer]:
    """Layers that say which recurrence they are, and own its four parameters."""
    layers = []
    for path, module in model.named_modules():
        owns = {own: f"{path}.{own}" for own, _ in module.named_parameters(recurse=False)}
        if getattr(module, "recurrence", None) in KINDS and sorted(owns) == sorted(OWNS):
            owns = {own: name for own, name in owns.items() if name in set(names)}
            if owns:
                layers.append(Layer(module, owns))
    return layers


def _recurrence(
    tap: _Tap, state: State, given: Tensor, rest: Sequence[Tensor], g: Tensor
) -> Recurrence:
    module: Any = tap.layer.module
    gates, hidden = (tensor.to(g.dtype) for tensor in rest)
    own = {**state["params"], **state["frozen"]}
    path = next(iter(tap.layer.owns.values())).rpartition(".")[0]
    return Recurrence(
        kind=module.recurrence,
        given=given,
        gates=gates,
        hidden=hidden,
        g=g,
        weight=own[f"{path}.weight_hh"],
        bias=own[f"{path}.bias_hh"],
        vocabulary=module.weight_ih.shape[1],
        wanted=tap.layer.owns.keys(),
    )


@contextmanager
def _watching(
    layers: Sequence[tuple[Layer, bool]],
    seen: Sequence[list[tuple[Tensor, ...]]],
    zeros: Sequence[Tensor] | None,
) -> Iterator[None]:
    """Note what layers are given, and add zeros to their outputs or gates.

    Without ``zeros`` the last tensor of each note is the one to which they would be added.
    """
    hooks = []

    def ordinary(number: int) -> Any:
        def after(_: nn.Module, given: tuple[Any, ...], made: Tensor) -> Tensor:
            if len(given) != 1 or not isinstance(made, Tensor):
                return made
            if zeros is None:
                seen[number].append((given[0], made))
                return made
            seen[number].append((given[0],))
            return made + zeros[number]

        return after

    def recurrent(number: int) -> tuple[Any, Any]:
        def before(_: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
            gates, read = given
            return (gates if zeros is None else gates + zeros[number]), read

        def after(_: nn.Module, given: tuple[Any, ...], hidden: Tensor) -> None:
            gates, read = given
            noted = (read, hidden, gates) if zeros is None else (read, gates, hidden)
            seen[number].append(noted)

        return before, after

    for number, (layer, recurs) in enumerate(layers):
        if recurs:
            before, after = recurrent(number)
            hooks.append(layer.module.register_forward_pre_hook(before))
            hooks.append(layer.module.register_forward_hook(after))
        else:
            hooks.append(layer.module.register_forward_hook(ordinary(number)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
