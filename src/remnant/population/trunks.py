"""Shared rows: until members differ, one row is trained for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from remnant.plans import Trunk
from remnant.population.state import State


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """One stretch of a schedule, on which the same members stay together.

    Attributes:
        start: The first step of it.
        parents: Whose randomness each member has, ``(members,)``.
        rows: The members that have a row of their own.
        row_of: Which of these rows is each member's, ``(members,)``.
    """

    start: int
    parents: Tensor
    rows: Tensor
    row_of: Tensor


def stretches(trunks: tuple[Trunk, ...], home: State, *, together: bool) -> list[Stretch]:
    """Cut a schedule into stretches; on the last every member is by itself.

    Args:
        trunks: In order of their ends.
        home: The members at the start. Those that differ from their parent (in weights or settings)
            share its randomness, but not its row.
        together: Whether members may share rows at all.
    """
    device = home["clocks"]["fit"].device
    own = torch.arange(len(home), device=device)
    made, start = [], 0
    for trunk in trunks:
        if trunk.steps > start:
            parents = torch.from_numpy(trunk.parents).to(device)
            if together and _alike(home, parents):
                rows = torch.from_numpy(np.unique(trunk.parents)).to(device)
                made.append(Stretch(start, parents, rows, torch.searchsorted(rows, parents)))
            else:
                made.append(Stretch(start, parents, own, own))
            start = trunk.steps
    return [*made, Stretch(start, own, own, own)]


def _alike(home: State, parents: Tensor) -> bool:
    return all(
        group == "seeds" or torch.equal(tensor, tensor[parents])
        for (group, _), tensor in home.items()
    )
