"""How many members fit through one pass, so that a population is split and never runs out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from remnant.errors import InvalidInput
from remnant.population.blueprint import Blueprint, Loss

_SHARE = 0.7  # of what is free; the rest is the allocator's and the operating system's
_OVERHEAD = 2.0  # a backward pass holds gradients of activations beside the activations

_most: ContextVar[int | None] = ContextVar("most", default=None)  # members in one pass


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes that one member needs.

    Attributes:
        resident: Parameters, buffers and moments: held for every member throughout.
        gradient: Held for the members of the current pass.
        activations: Held for the members that are in flight: a whole pass when stacked.
    """

    resident: int
    gradient: int
    activations: int

    def total(self, *, members: int, split: int, in_flight: int) -> int:
        """Return what a population needs at its peak."""
        return self.resident * members + self.gradient * split + self.activations * in_flight


def footprint(
    blueprint: Blueprint, loss: Loss, inputs: Tensor, targets: Tensor, *, moments: int
) -> Footprint:
    """Measure one member: run a pass and count what autograd keeps for its backward."""
    own = blueprint.tensors()
    weights = sum(p.nbytes for p in own["params"].values())
    module = blueprint.module.train()
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    saved = kept_bytes(lambda: blueprint.mean_loss(loss, module(inputs), targets))
    for name, buffer in module.named_buffers():
        buffer.copy_(before[name])
    others = sum(t.nbytes for g in ("frozen", "buffers") for t in own[g].values())
    activations = int(_OVERHEAD * saved) + inputs.nbytes
    return Footprint(
        resident=weights * (1 + moments) + others, gradient=weights, activations=activations
    )


def kept_bytes(run: Callable[[], Any]) -> int:
    """Return the bytes that autograd keeps for a backward pass while ``run`` is called."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run()
    return sum(kept.values())


def free_bytes(device: torch.device) -> int:
    """Return what is free on the device now."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 4 * 2**30  # no way to ask on this system: assume a small laptop
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


@contextmanager
def at_most(members: int | None) -> Iterator[None]:
    """Let at most so many members through one pass of the fits inside; None: as many as fit.

    How many members go through a pass does not change what any of them computes.
    """
    before = _most.set(members)
    try:
        yield
    finally:
        _most.reset(before)


def fitting_split(need: Footprint, *, members: int, in_flight: int | None, free: int) -> int:
    """Return how many members go through one pass: all of them where they fit, at least one.

    Args:
        need: Bytes a member needs.
        members: How many there are.
        in_flight: Members whose activations are held at once; ``None`` means the whole pass.
        free: Bytes to be had.

    Raises:
        InvalidInput: Not even the members' weights and moments fit.
    """
    if need.resident * members > free:
        raise InvalidInput(
            f"{members} members need {need.resident * members / 2**30:.1f} GiB for their weights "
            f"and moments, and {free / 2**30:.1f} GiB are free.",
            hint=f"At most {int(_SHARE * free // max(need.resident, 1))} members fit.",
        )
    room = _SHARE * free - need.resident * members
    if in_flight is None:
        each = need.gradient + need.activations
    else:
        each = need.gradient
        room -= need.activations * in_flight
    most = _most.get()
    return max(1, min(members, int(room // max(each, 1)), members if most is None else most))
