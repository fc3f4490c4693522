"""Squared gradient norms of a batch: closed forms where they hold, each example alone elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import grad, vmap

from remnant.errors import InvalidInput, RemnantError
from remnant.gradients.closed_forms import Norms, pieces, squares
from remnant.gradients.layers import known_layers
from remnant.probes.counted_model import without_tf32
from remnant.probes.hidden import Inputs, length_of, part_of
from remnant.probes.influence.capture import closed, watching
from remnant.probes.influence.weights import standing_in
from remnant.probes.one_pass import in_one_sentence, placed

Loss = Callable[[Any, Tensor], Tensor]
# Losses of examples, given the examples and their labels; and given all tensors of the model too.
Ask = Callable[[Inputs, Tensor], Tensor]
AskWith = Callable[[Mapping[str, Tensor], Inputs, Tensor], Tensor]
# By how much a closed form may be off and still be the same number, by what is computed in.
_OFF_BY = {torch.float64: 1e-6, torch.float32: 1e-3}
_COARSE = 5e-2
_SLOW = "There is a performance drop because we have not yet implemented the batching rule"
_VMAP_FAULTS = (RemnantError, RuntimeError, TypeError, ValueError, NotImplementedError)


class Reader:
    """Reads squared gradient norms off one model; ``learn`` must have been called before.

    Args:
        model: In evaluation mode.
        names: The parameters asked for.
        loss: Outputs and labels to one value an example.
    """

    def __init__(self, model: nn.Module, names: Sequence[str], loss: Loss) -> None:
        self._model, self._names, self._loss = model, list(names), loss
        self._layers = known_layers(model, names)
        self._vmap = True
        self.reached = False

    def learn(self, tensors: Mapping[str, Tensor], part: Inputs, labels: Tensor) -> Tensor:
        """Hold every closed form, and vmap, against plain autograd on a few examples.

        A layer keeps its closed form only if it gave the same numbers, in both orders of the
        examples. So whatever breaks one (a layer that sees tokens first and examples second, a
        model that sorts or mixes the examples of a batch) costs time and nothing else.

        Returns:
            Their squared gradient norms, by plain autograd.
        """
        part = placed(self._model, part)
        weights = {name: tensors[name] for name in self._names}
        with standing_in(self._model, tensors), in_one_sentence(part):
            exact, used = one_by_one(self._losses, weights, part, labels)
            self.reached = bool(used)
            total = sum(exact.values(), torch.zeros(len(labels), device=labels.device))
            if not bool(total.isfinite().all()):
                return total
            forward = self._closed(weights, part, labels)[0]
            turned = self._closed(weights, _turned(part), labels.flip(0))[0]

        def agrees(name: str, norms: Tensor) -> bool:
            share = _OFF_BY.get(tensors[name].dtype, _COARSE)
            apart = (norms - exact[name]).abs()
            return bool((apart <= share * exact[name] + share**2 * total).all())

        good = {
            name
            for name, norms in forward.items()
            if name in turned and agrees(name, norms) and agrees(name, turned[name].flip(0))
        }
        self._layers = [layer for layer in self._layers if good.issuperset(layer.owns.values())]
        kept = {name for layer in self._layers for name in layer.owns.values()}
        rest = [name for name in self._names if name in used and name not in kept]
        if rest:
            vmapped = self._try_vmap(tensors, rest, part, labels)
            self._vmap = vmapped is not None and all(agrees(n, vmapped[n]) for n in rest)
        return total

    def squared(self, tensors: Mapping[str, Tensor], part: Inputs, labels: Tensor) -> Tensor:
        """Return the squared gradient norm of each example over all parameters asked for."""
        part = placed(self._model, part)
        weights = {name: tensors[name] for name in self._names}
        with standing_in(self._model, tensors):
            norms: Norms = {}
            rest = self._names
            if self._layers:
                norms, used = self._closed(weights, part, labels)
                rest = [name for name in self._names if name in used and name not in norms]
                self.reached |= bool(used)
            if rest:
                norms |= self._alone(tensors, rest, part, labels)
        total = torch.zeros(len(labels), dtype=torch.float64, device=labels.device)
        for norm in norms.values():
            total += norm
        return total

    def _closed(
        self, weights: Mapping[str, Tensor], part: Inputs, labels: Tensor
    ) -> tuple[Norms, set[str]]:
        with in_one_sentence(part), watching(self._layers) as calls:
            return closed(self._losses(part, labels), calls, weights)

    def _alone(
        self, tensors: Mapping[str, Tensor], names: Sequence[str], part: Inputs, labels: Tensor
    ) -> Norms:
        norms = self._try_vmap(tensors, names, part, labels) if self._vmap else None
        if norms is None:
            self._vmap = False
            weights = {name: tensors[name] for name in names}
            with in_one_sentence(part):
                norms, used = one_by_one(self._losses, weights, part, labels)
            self.reached |= bool(used)
        return norms

    def _try_vmap(
        self, tensors: Mapping[str, Tensor], names: Sequence[str], part: Inputs, labels: Tensor
    ) -> Norms | None:
        def ask(others: Mapping[str, Tensor], some: Inputs, wanted: Tensor) -> Tensor:
            with standing_in(self._model, others):
                return self._losses(some, wanted)

        try:
            return by_vmap(ask, tensors, names, part, labels)
        except _VMAP_FAULTS:
            return None

    def _losses(self, part: Inputs, labels: Tensor) -> Tensor:
        """Ask the model, as it stands, for one loss an example."""
        count = length_of(part)
        with in_one_sentence(part):
            outputs = self._model(**part) if isinstance(part, Mapping) else self._model(part)
        try:
            losses = self._loss(outputs, labels)
        except RemnantError:
            raise
        except (RuntimeError, TypeError, ValueError, LookupError, AttributeError) as fault:
            said = str(fault).strip().partition("\n")[0].rstrip(".")
            raise InvalidInput(
                f"the loss cannot take the outputs of {count} examples and labels of shape "
                f"{tuple(labels.shape)}: {said or type(fault).__name__}.",
                hint="It is called as loss(outputs, labels).",
            ) from fault
        if not isinstance(losses, Tensor) or losses.shape != (count,):
            shape = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
            raise InvalidInput(
                f"the loss gives {shape} for {count} examples; it takes one value an example, "
                f"{(count,)}.",
                hint='Write it with reduction="none", and without a mean over examples.',
            )
        return losses


def one_by_one(
    ask: Ask, weights: Mapping[str, Tensor], part: Inputs, labels: Tensor
) -> tuple[Norms, set[str]]:
    """Return the norms of each of the weights, and which of them some loss depends on."""
    rows = range(length_of(part))
    squared = {name: torch.zeros(len(rows), dtype=torch.float64) for name in weights}
    used: set[str] = set()
    for row in rows:
        loss = ask(part_of(part, row, row + 1), labels[row : row + 1]).sum()
        if not loss.requires_grad:
            continue
        gradients = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
        for name, came in zip(weights, gradients, strict=True):
            if came is not None:
                used.add(name)
                whole = came.coalesce().values() if came.is_sparse else came
                squared[name][row] = squares(whole.reshape(1, -1))[0]
    return {name: norms.to(labels.device) for name, norms in squared.items()}, used


def by_vmap(
    ask: AskWith, tensors: Mapping[str, Tensor], names: Sequence[str], part: Inputs, labels: Tensor
) -> Norms:
    """Return the norms of each named one of the tensors; raises whatever vmap raises."""
    others = {name: tensor.detach() for name, tensor in tensors.items() if name not in set(names)}
    chosen = {name: tensors[name].detach() for name in names}

    def loss(own: dict[str, Tensor], row: Any, label: Tensor) -> Tensor:
        single = (
            {name: tensor[None] for name, tensor in row.items()}
            if isinstance(row, Mapping)
            else row[None]
        )
        return ask({**others, **own}, single, label[None]).sum()

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))
    squared: dict[str, list[Tensor]] = {name: [] for name in names}
    size = sum(tensor.numel() for tensor in chosen.values())
    like = next(iter(chosen.values())).new_empty(length_of(part), 0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_SLOW)
        for some in pieces(like, size, times=16):
            rows = part_of(part, some.start, some.stop)
            for name, came in gradients(chosen, rows, labels[some]).items():
                squared[name].append(squares(came))
    return {name: torch.cat(norms) for name, norms in squared.items()}


def _turned(part: Inputs) -> Inputs:
    if isinstance(part, Mapping):
        return {name: tensor.flip(0) for name, tensor in part.items()}
    return part.flip(0)


@contextmanager
def exactly(model: nn.Module) -> Iterator[None]:
    """Gradients on, TF32 off, and no cuDNN where recurrent layers run on a GPU.

    cuDNN's recurrent layers have no backward pass in evaluation mode. All switches are put back on
    leaving, and recurrent layers look at their own weights again.
    """
    cudnn = torch.backends.cudnn
    recurrent = [module for module in model.modules() if isinstance(module, nn.RNNBase)]
    before = cudnn.enabled
    cudnn.enabled = before and not recurrent
    try:
        with without_tf32(), torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        cudnn.enabled = before
        for module in recurrent:
            for name, parameter in module.named_parameters(recurse=False):
                setattr(module, name, parameter)
