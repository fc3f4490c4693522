"""Per-example gradients of one member or of all, by ``torch.func`` or one example at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from remnant.population.blueprint import Blueprint, Loss
from remnant.population.precision import training_cast
from remnant.population.randomness import keys
from remnant.population.state import Named, State

_GLOBAL = -1  # stands for a layer in the key of torch's global generator, as in ``backends``
_CALL = 0x632BE59BD9B4E019
_BYTES = {"cpu": 2**28, "cuda": 2**32}  # of per-example gradients held at once
_SLOW = "There is a performance drop because we have not yet implemented the batching rule"
VMAP_FAULTS = (RuntimeError, TypeError, ValueError, NotImplementedError)


class PerExample:
    """Computes the gradient of every example by itself.

    Args:
        blueprint: The module; it must not write into its buffers while training.
        loss: From outputs and targets to one value per example.
        precision: Of the population.
        vmapped: Whether ``vmap`` can run the model; otherwise examples are run one by one.
        draws: Whether the model draws from torch's global generator. Its draws then depend on the
            member, its updates and the example's place. Not with ``vmapped``.
    """

    def __init__(
        self, blueprint: Blueprint, loss: Loss, precision: str | None, *, vmapped: bool, draws: bool
    ) -> None:
        self._blueprint, self._loss, self._precision = blueprint, loss, precision
        self._vmapped, self._draws = vmapped and not draws, draws

    def pieces(
        self, state: State, batch: int, names: Sequence[str]
    ) -> Iterator[tuple[slice, slice]]:
        """Yield members and examples whose gradients of these parameters are held at once.

        How a member's examples are cut depends on the model alone, not on other members.
        """
        examples = self.piece(state, batch, names)
        members = max(1, _room(state, names) // examples) if self._vmapped else 1
        for first in range(0, len(state), members):
            for begin in range(0, batch, examples):
                yield (
                    slice(first, min(first + members, len(state))),
                    slice(begin, min(begin + examples, batch)),
                )

    def piece(self, state: State, batch: int, names: Sequence[str]) -> int:
        """Return how many of a member's examples are held at once."""
        return min(batch, _room(state, names)) if self._vmapped else 1

    def gradients(
        self,
        state: State,
        inputs: Tensor,
        targets: Tensor,
        *,
        names: Sequence[str],
        members: slice,
        examples: slice,
    ) -> Named:
        """Return gradients ``(members, examples, ...)`` of these parameters, for a piece."""
        part = state.view(members.start, members.stop)
        extra = self._blueprint.dropout_tensors(part)
        own = {name: part["params"][name].detach() for name in names}
        others = {n: p for n, p in part["params"].items() if n not in own}
        fixed = {**part["frozen"], **part["buffers"], **extra, **others}
        x, y = inputs[members, examples], targets[members, examples]
        places = torch.arange(examples.start, examples.stop, dtype=torch.int32, device=x.device)
        with _one_example(self._blueprint), training_cast(self._precision, x.device):
            if self._vmapped:
                alone = vmap(grad(self._example_loss), in_dims=(None, None, 0, 0, 0))
                together = vmap(alone, in_dims=(0, 0, 0, 0, None))
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", message=_SLOW)
                    made: Named = together(own, fixed, x, y, places)
                return made
            return self._one_by_one(part, own, fixed, x, y, places)

    def _one_by_one(
        self, part: State, chosen: Named, fixed: Named, x: Tensor, y: Tensor, places: Tensor
    ) -> Named:
        made: dict[str, list[Tensor]] = {name: [] for name in chosen}
        for row in range(len(part)):
            own = {n: p[row].detach().requires_grad_() for n, p in chosen.items()}
            kept = {n: t[row] for n, t in fixed.items()}
            for place, one_x, one_y in zip(places, x[row], y[row], strict=True):
                if self._draws:
                    self._seed(part, row, int(place))
                loss = self._example_loss(own, kept, one_x, one_y, place)
                grads = torch.autograd.grad(loss, list(own.values()), allow_unused=True)
                for (name, param), came in zip(own.items(), grads, strict=True):
                    made[name].append(torch.zeros_like(param) if came is None else came)
        shape = len(part), len(places)
        return {n: torch.stack(grads).unflatten(0, shape) for n, grads in made.items()}

    def _example_loss(
        self, own: Named, fixed: Named, x: Tensor, y: Tensor, place: Tensor
    ) -> Tensor:
        module = self._blueprint.begin_pass(training=True)
        placed = {f"{name}.place": place for name in self._blueprint.dropouts}
        outputs = functional_call(module, {**own, **fixed, **placed}, (x[None],))
        return self._blueprint.mean_loss(self._loss, outputs, y[None])

    def _seed(self, part: State, row: int, place: int) -> None:
        here = part.view(row, row + 1)
        key = keys(here["seeds"]["dropout"], here["clocks"]["lifetime"], _GLOBAL)
        torch.manual_seed((int(key.item()) + place * _CALL) & 0x7FFFFFFFFFFFFFFF)


def _room(state: State, names: Sequence[str]) -> int:
    """How many gradients of these parameters fit."""
    own = [state["params"][name] for name in names]
    size = sum(stacked[0].nbytes for stacked in own)
    return max(1, _BYTES[own[0].device.type] // max(1, size))


@contextmanager
def _one_example(blueprint: Blueprint) -> Iterator[None]:
    """Let dropout layers take the place of a single example from the engine."""
    for layer in blueprint.dropouts.values():
        layer.one_example = True
    try:
        yield
    finally:
        for layer in blueprint.dropouts.values():
            layer.one_example = False
