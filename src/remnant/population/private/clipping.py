"""The private gradient: clip each example, sum, add noise, divide by the expected batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from remnant.population.memory import Footprint
from remnant.population.private.ghost import Ghost
from remnant.population.private.noise import add_noise
from remnant.population.private.per_example import PerExample
from remnant.population.state import Named, State


class PrivateGradients:
    """Computes each member's private gradient.

    For each example of a member's batch the gradient over all trained parameters together is
    multiplied by min(1, clip / norm). The sum of these gets noise * clip * N(0, 1) in every entry
    and is divided by the expected batch.

    Args:
        ghost: Norms and sums by closed forms, for the parameters that it covers; ``None`` for none.
        examples: Computes per-example gradients of all other parameters.
        names: The trained parameters in the order of the model: noise belongs to an entry's place
            in it, and a resumed state has an order of its own.
        expected_batch: Expected number of examples in a batch.
        noisy: Whether any member adds noise.

    Guarantees:
        * An empty place adds nothing; a batch with empty places only is noise alone.
        * A member's gradient depends on its own examples, seeds and update count.
    """

    def __init__(
        self,
        ghost: Ghost | None,
        examples: PerExample,
        names: Sequence[str],
        *,
        expected_batch: int,
        noisy: bool,
    ) -> None:
        self._ghost, self._examples, self._names = ghost, examples, list(names)
        covered = set() if ghost is None else ghost.names
        self.uncovered = [name for name in names if name not in covered]
        self._expected, self._noisy = expected_batch, noisy

    def gradients(self, state: State, inputs: Tensor, targets: Tensor, present: Tensor) -> Named:
        """Return each member's private gradient.

        Args:
            state: The members; ``hyper`` holds their ``clip`` and ``noise``.
            inputs, targets: ``(members, batch, ...)``; any valid example in empty places.
            present: bool ``(members, batch)``, False in empty places.
        """
        clip = state["hyper"]["clip"]
        with torch.no_grad():
            sums = self._all_sums(state, inputs, targets, present)
            if self._noisy:
                add_noise(
                    sums,
                    seeds=state["seeds"]["noise"],
                    taken=state["clocks"]["lifetime"],
                    deviation=state["hyper"]["noise"] * clip / self._expected,
                )
        return sums

    def footprint(self, need: Footprint, state: State, batch: int) -> Footprint:
        """Return what a member needs, from what it needs without privacy.

        Closed forms hold the gradients of layers' outputs beside their inputs, and a sum for each
        parameter until noise is added. Per-example gradients are held in pieces.
        """
        own = state["params"]
        size = sum(own[name][0].nbytes for name in self.uncovered)
        piece = self._examples.piece(state, batch, self.uncovered) if self.uncovered else 0
        return Footprint(
            resident=need.resident,
            gradient=2 * need.gradient,
            activations=3 * need.activations // 2 + size * piece,
        )

    def _all_sums(self, state: State, inputs: Tensor, targets: Tensor, present: Tensor) -> Named:
        if self._ghost is None or self._ghost.stacked or len(state) == 1:
            sums = self._clipped_sums(state, inputs, targets, present)
        else:
            parts = [
                self._clipped_sums(state.view(row, row + 1), *(t[row : row + 1] for t in batch))
                for row, batch in ((row, (inputs, targets, present)) for row in range(len(state)))
            ]
            sums = {name: torch.cat([part[name] for part in parts]) for name in self._names}
        filled = present.any(1)
        if filled.is_cuda or not bool(filled.all()):  # asking a GPU would stall it
            for name, total in sums.items():
                shape = (-1, *(1 for _ in total.shape[1:]))
                sums[name] = torch.where(filled.view(shape), total, torch.zeros_like(total))
        return sums

    def _clipped_sums(
        self, state: State, inputs: Tensor, targets: Tensor, present: Tensor
    ) -> Named:
        """Return sums of clipped gradients over the expected batch.

        Weights are divided by it, not the sums, which are read and written once less.
        """
        clip, batch = state["hyper"]["clip"], inputs.shape[1]
        notes = None if self._ghost is None else self._ghost.notes(state, inputs, targets)
        squared = torch.zeros(present.shape, dtype=torch.float64, device=present.device)
        squared = squared if notes is None else notes.squared
        scale = factors(squared, present, clip)
        made: Named = {}
        if self.uncovered:
            own = state["params"]
            made = {name: own[name].new_zeros(own[name].shape) for name in self.uncovered}
            for members, examples in self._examples.pieces(state, batch, self.uncovered):
                with torch.enable_grad():
                    grads = self._examples.gradients(
                        state,
                        inputs,
                        targets,
                        names=self.uncovered,
                        members=members,
                        examples=examples,
                    )
                all_squared = squared[members, examples] + squared_norms(grads)
                scale[members, examples] = factors(
                    all_squared, present[members, examples], clip[members]
                )
                for name, grad in grads.items():
                    weights = (scale[members, examples] / self._expected).to(grad.dtype)
                    made[name][members] += torch.einsum("mb,mb...->m...", weights, grad)
        if notes is not None:
            made |= notes.sums(scale / self._expected)
        return {name: made[name].contiguous() for name in self._names}


def squared_norms(grads: Named) -> Tensor:
    """Return the squared norm of each example's gradient over all parameters, in float64.

    Args:
        grads: ``(members, examples, ...)`` of every parameter.
    """
    rows = (grad.flatten(2) for grad in grads.values())
    norms = [torch.linalg.vector_norm(row, dim=2, dtype=torch.float64) for row in rows]
    return torch.stack(norms).square().sum(0)


def factors(squared: Tensor, present: Tensor, clip: Tensor) -> Tensor:
    """Return min(1, clip / norm) of each example, 0 in empty places; ``(members, examples)``."""
    scale = (clip[:, None] / squared.sqrt()).clamp(max=1.0)
    return torch.where(present, scale, torch.zeros_like(scale))
