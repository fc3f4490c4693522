"""Everything that makes members what they are, as tensors whose first axis is the member."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

Named = dict[str, Tensor]


class State:
    """Groups of named tensors, one row per member.

    Groups: ``params`` (trained), ``frozen`` (parameters without gradient), ``buffers``,
    ``clocks`` (updates taken in this fit and in all), ``seeds``, ``rates`` (dropout), ``hyper``
    (learning rate and the like) and one group per moment of the optimizer, ``moment.NAME``.
    """

    def __init__(self, groups: dict[str, Named]) -> None:
        self.groups = groups

    def __getitem__(self, group: str) -> Named:
        return self.groups.setdefault(group, {})

    def __len__(self) -> int:
        return len(next(t for _, t in self.items()))

    def items(self) -> Iterator[tuple[tuple[str, str], Tensor]]:
        """Walk over ``((group, name), tensor)``."""
        for group, named in self.groups.items():
            for name, tensor in named.items():
                yield (group, name), tensor

    def take(self, rows: Tensor) -> State:
        """Return a copy of these rows."""
        return self._map(lambda t: t[rows.to(t.device)])

    def view(self, start: int, stop: int) -> State:
        """Return rows ``start`` to ``stop - 1`` without a copy: writing to it writes here."""
        return self._map(lambda t: t[start:stop])

    def clone(self) -> State:
        """Return a copy that shares nothing."""
        return self._map(torch.clone)

    def put(self, rows: Tensor, other: State) -> None:
        """Overwrite these rows with the rows of ``other``."""
        for (group, name), tensor in other.items():
            self.groups[group][name][rows.to(tensor.device)] = tensor

    def copy_(self, other: State) -> None:
        """Overwrite all rows in place, keeping the storage (a captured graph points at it)."""
        for (group, name), tensor in other.items():
            self.groups[group][name].copy_(tensor)

    def lay_out_like(self, gradients: Named) -> None:
        """Store parameters and moments in the order in which their gradients come.

        A gradient of a dense layer comes transposed; an update that walks through all three in the
        same order touches memory once.
        """
        for name, gradient in gradients.items():
            inner = gradient[0].stride()
            order = sorted(range(len(inner)), key=lambda axis: -inner[axis])
            there = (0, *(axis + 1 for axis in order))
            back = tuple(there.index(axis) for axis in range(len(there)))
            for group in self.groups:
                if group == "params" or group.startswith("moment."):
                    tensor = self.groups[group][name]
                    self.groups[group][name] = tensor.permute(there).contiguous().permute(back)

    def _map(self, change: Callable[[Tensor], Tensor]) -> State:
        return State(
            {
                group: {name: change(tensor) for name, tensor in named.items()}
                for group, named in self.groups.items()
            }
        )
