"""Squared gradient norms of a batch: closed forms where they hold, each example alone elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput, RemnantError
from remnant.probes.hidden import Inputs, length_of
from remnant.probes.influence.alone import by_vmap, one_by_one
from remnant.probes.influence.capture import closed, known_layers, watching
from remnant.probes.influence.closed_forms import Norms
from remnant.probes.influence.weights import standing_in
from remnant.probes.one_pass import in_one_sentence, placed

Loss = Callable[[Any, Tensor], Tensor]
# By how much a closed form may be off and still be the same number, by what is computed in.
_OFF_BY = {torch.float64: 1e-6, torch.float32: 1e-3}
_COARSE = 5e-2
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
            found = self._closed(weights, part, labels)[0]
            turned = self._closed(weights, _turned(part), labels.flip(0))[0]

        def agrees(name: str, norms: Tensor) -> bool:
            share = _OFF_BY.get(tensors[name].dtype, _COARSE)
            apart = (norms - exact[name]).abs()
            return bool((apart <= share * exact[name] + share**2 * total).all())

        good = {
            name
            for name, norms in found.items()
            if name in turned and agrees(name, norms) and agrees(name, turned[name].flip(0))
        }
        self._layers = [one for one in self._layers if good.issuperset(one.owns.values())]
        kept = {name for one in self._layers for name in one.owns.values()}
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
        for one in norms.values():
            total += one
        return total

    def _closed(
        self, weights: Mapping[str, Tensor], part: Inputs, labels: Tensor
    ) -> tuple[Norms, set[str]]:
        with in_one_sentence(part), watching(self._layers) as calls:
            return closed(self._losses(part, labels), calls, weights)

    def _alone(
        self, tensors: Mapping[str, Tensor], names: Sequence[str], part: Inputs, labels: Tensor
    ) -> Norms:
        found = self._try_vmap(tensors, names, part, labels) if self._vmap else None
        if found is None:
            self._vmap = False
            weights = {name: tensors[name] for name in names}
            with in_one_sentence(part):
                found, used = one_by_one(self._losses, weights, part, labels)
            self.reached |= bool(used)
        return found

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
            found = self._loss(outputs, labels)
        except RemnantError:
            raise
        except (RuntimeError, TypeError, ValueError, LookupError, AttributeError) as fault:
            said = str(fault).strip().partition("\n")[0].rstrip(".")
            raise InvalidInput(
                f"the loss cannot take the outputs of {count} examples and labels of shape "
                f"{tuple(labels.shape)}: {said or type(fault).__name__}.",
                hint="It is called as loss(outputs, labels).",
            ) from fault
        if not isinstance(found, Tensor) or found.shape != (count,):
            shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise InvalidInput(
                f"the loss gives {shape} for {count} examples; it takes one value an example, "
                f"{(count,)}.",
                hint='Write it with reduction="none", and without a mean over examples.',
            )
        return found


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
    matmul, convolution = torch.backends.cuda.matmul, torch.backends.cudnn
    recurrent = [module for module in model.modules() if isinstance(module, nn.RNNBase)]
    before = (matmul.allow_tf32, convolution.allow_tf32, convolution.enabled)
    matmul.allow_tf32, convolution.allow_tf32 = False, False
    convolution.enabled = before[2] and not recurrent
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        matmul.allow_tf32, convolution.allow_tf32, convolution.enabled = before
        for module in recurrent:
            for name, parameter in module.named_parameters(recurse=False):
                setattr(module, name, parameter)
