"""Makes the members: one module per seed, their tensors stacked, one blueprint for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput, RecordError, UnsupportedModel
from remnant.population.blueprint import Blueprint
from remnant.population.state import State


def make_members(
    make_model: Callable[[], nn.Module],
    seeds: Sequence[int],
    *,
    start: Any,
    device: torch.device,
    dtype: torch.dtype | None,
) -> tuple[Blueprint, State]:
    """Return the module through which all members compute, and their stacked tensors."""
    rows = []
    for seed, given in zip(seeds, _starts(start, len(seeds)), strict=True):
        blueprint = Blueprint(_member(make_model, seed, given))
        rows.append(blueprint.tensors())
    blueprint.module.to(device, dtype)
    groups: dict[str, dict[str, Tensor]] = {}
    for (group, name), first in rows[0].items():
        kind = dtype if first.is_floating_point() and group != "rates" else first.dtype
        stacked = torch.stack([row[group][name] for row in rows])
        groups.setdefault(group, {})[name] = stacked.to(device, kind)
    return blueprint, State(groups)


def find_device(device: str | torch.device) -> torch.device:
    """Return the device, or say that there is none."""
    try:
        chosen = torch.device(device)
        if chosen.type not in ("cpu", "cuda"):
            raise InvalidInput(f"device={device!s} is not supported.", hint="Pass 'cpu' or 'cuda'.")
        if chosen.type == "cuda" and not torch.cuda.is_available():
            raise InvalidInput(f"device={device!s} is not there.", hint="Pass device='cpu'.")
    except RuntimeError as fault:
        raise InvalidInput(
            f"device={device!r} is not a device.", hint="Pass 'cpu' or 'cuda'."
        ) from fault
    return chosen


def _starts(start: Any, members: int) -> list[Mapping[str, Tensor] | None]:
    if start is None or isinstance(start, Mapping):
        return [start] * members
    starts = list(start)
    if len(starts) != members:
        raise InvalidInput(f"start has {len(starts)} checkpoints for {members} members.")
    return starts


def _member(
    make_model: Callable[[], nn.Module], seed: int, start: Mapping[str, Tensor] | None
) -> nn.Module:
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.manual_seed(seed)
        module = make_model()
    if not isinstance(module, nn.Module):
        raise UnsupportedModel(f"make_model() returned {type(module).__name__}, not an nn.Module.")
    if start is not None:
        try:
            module.load_state_dict(dict(start))
        except RuntimeError as fault:
            raise RecordError(
                "start does not fit the model that make_model() returns.",
                hint="Pass a state_dict of that model.",
            ) from fault
    return module
