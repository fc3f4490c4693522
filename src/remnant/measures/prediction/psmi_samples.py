"""Samples as PSMI walks over them: tensors, on the GPU that holds them or on the CPU.

NumPy arrays are read by NumPy, tensors on a GPU stay there, and all other tensors are read as the
arrays that they share their memory with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.measures.prediction.hidden_states import LARGEST, HiddenStates

Floats = NDArray[np.float64]

# Where tensors are worked on as they are; others have no float64, or no kernels worth having.
STAYING = ("cuda",)
# Bytes of a piece of samples that is gathered at once.
GATHERED = 1 << 26


def settle(given: Tensor) -> Tensor | NDArray[Any]:
    """The numbers of a tensor: itself on a GPU, else an array.

    Raises:
        TypeError, RuntimeError: It holds no numbers that can be read.
    """
    given = given.detach()
    if given.is_complex() or given.layout != torch.strided:
        raise TypeError(f"{given.dtype}, {given.layout}")
    if given.device.type in STAYING:
        return given
    given = given.cpu()
    if given.is_floating_point() and given.element_size() < 4:
        given = given.to(torch.float32)
    return given.numpy()


def read_tensor(given: Tensor, faults: list[str]) -> Tensor | None:
    """Check hidden states on a GPU as those in an array are checked."""
    if given.dim() != 2 or given.numel() == 0:
        shape = tuple(given.shape)
        faults.append(f"hidden has shape {shape}, not (n, d) with at least one of each")
        return None
    least, most = _range(given)
    if not (math.isfinite(least) and math.isfinite(most)):
        bad = given.numel() - int(torch.isfinite(given).sum())
        faults.append(f"hidden holds {bad} value(s) that are NaN or inf")
        return None
    if max(most, -least) > LARGEST:
        faults.append(f"hidden holds values beyond {LARGEST:g}, which cannot be added up")
        return None
    return given


def read_tensor_directions(given: Tensor, faults: list[str]) -> tuple[Tensor, int] | None:
    """Check directions on a GPU as those in an array are checked.

    Returns:
        The directions with their largest entries scaled to 1, and how many are zero.
    """
    shape = tuple(given.shape)
    if given.dim() != 2:
        faults.append(f"directions has shape {shape}, not 2 dimension(s)")
        return None
    if given.numel() == 0:
        faults.append(f"directions is empty, with shape {shape}")
        return None
    along = given.to(torch.float64)
    longest = torch.linalg.vector_norm(along, ord=torch.inf, dim=1, keepdim=True)
    least, most = _range(longest)
    if not math.isfinite(most):
        bad = along.numel() - int(torch.isfinite(along).sum())
        faults.append(f"directions holds {bad} value(s) that are NaN or infinite")
        return None
    zero = 0 if least > 0.0 else int((longest == 0.0).sum())
    return along / longest, zero


def _range(given: Tensor) -> tuple[float, float]:
    least, most = torch.stack(torch.aminmax(given)).tolist()  # one question to the device
    return float(least), float(most)


@dataclass(frozen=True, slots=True, eq=False)
class ArraySamples:
    """Samples in an array, worked on by the CPU."""

    given: HiddenStates

    @property
    def device(self) -> torch.device:
        """Where the samples are."""
        return torch.device("cpu")

    @property
    def narrow(self) -> bool:
        """Whether they have no more than the digits of float32."""
        return bool(self.given.hidden.dtype == np.float32)

    def centres(self) -> Tensor:
        """The mean of each class, in float64."""
        return torch.from_numpy(self.given.centres())

    def residuals(self, centres: Tensor, work: torch.dtype) -> Tensor:
        """The samples less the centre of their class in the type ``work``, sorted by class."""
        kind = np.dtype(np.float32 if work == torch.float32 else np.float64)
        return torch.from_numpy(self.given.residuals(centres.numpy(), kind))

    def largest(self) -> Tensor:
        """The largest magnitude of each feature."""
        return torch.from_numpy(np.abs(self.given.hidden).max(axis=0).astype(np.float64))


@dataclass(frozen=True, slots=True, eq=False)
class TensorSamples:
    """Samples in a tensor, worked on where it is; see ``ArraySamples``."""

    hidden: Tensor
    order: Tensor
    edges: list[int]

    @property
    def device(self) -> torch.device:
        """Where the samples are."""
        return self.hidden.device

    @property
    def narrow(self) -> bool:
        """Whether they have no more than the digits of float32."""
        return self.hidden.is_floating_point() and self.hidden.element_size() <= 4

    def centres(self) -> Tensor:
        """The mean of each class, in float64."""
        shape = (len(self.edges) - 1, self.hidden.shape[1])
        sums = torch.zeros(shape, dtype=torch.float64, device=self.device)
        for own, rows in self._pieces():
            sums[own].add_(self._taken(rows).sum(dim=0, dtype=torch.float64))
        counts = torch.tensor(np.diff(self.edges), dtype=torch.float64)
        return sums / counts.to(self.device)[:, None]

    def residuals(self, centres: Tensor, work: torch.dtype) -> Tensor:
        """The samples less the centre of their class in the type ``work``, sorted by class."""
        out = torch.empty(self.hidden.shape, dtype=work, device=self.device)
        near = centres.to(work)
        for own, rows in self._pieces():
            torch.sub(self._taken(rows).to(work), near[own], out=out[rows])
        return out

    def largest(self) -> Tensor:
        """The largest magnitude of each feature."""
        lows, highs = (end.to(torch.float64) for end in torch.aminmax(self.hidden, dim=0))
        return torch.maximum(-lows, highs)

    def _taken(self, rows: slice) -> Tensor:
        return torch.index_select(self.hidden, 0, self.order[rows])

    def _pieces(self) -> list[tuple[int, slice]]:
        most = max(1, GATHERED // (8 * self.hidden.shape[1]))
        return [
            (own, slice(first, min(first + most, stop)))
            for own, (start, stop) in enumerate(pairwise(self.edges))
            for first in range(start, stop, most)
        ]


Samples = ArraySamples | TensorSamples


def samples_of(given: HiddenStates) -> Samples:
    """The samples that were read, as a walk asks for them."""
    if isinstance(given.hidden, Tensor):
        order = torch.from_numpy(given.order).to(given.hidden.device)
        return TensorSamples(given.hidden, order, given.edges.tolist())
    return ArraySamples(given)
