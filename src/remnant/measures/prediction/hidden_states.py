"""Hidden states and their labels, checked and sorted by class."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.statistics.checks import real_numbers

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Work = NDArray[Any]  # float32 or float64

# Samples are copied in pieces, so that no second copy of all is ever held.
PIECE = 1024
# Sums of numbers up to this are in range.
LARGEST = 1e290


@dataclass(frozen=True, slots=True, eq=False)
class HiddenStates:
    """Samples and the classes they belong to.

    Attributes:
        hidden: Shape ``(n, d)``, float32 where that is what was given (or less), else float64; or
            a tensor on a GPU, as it was given.
        classes: The labels there are, sorted.
        order: The samples' places, sorted by class.
        edges: Where each class begins in ``order``, and the end.
    """

    hidden: Any
    classes: NDArray[Any]
    order: Ints
    edges: Ints

    @property
    def counts(self) -> Ints:
        """Samples of each class."""
        return np.diff(self.edges)

    def centres(self) -> Floats:
        """The mean of each class, in float64; no class may be empty."""
        sums = np.zeros((self.classes.size, self.hidden.shape[1]))
        for own, places in self._pieces():
            sums[own] += np.add.reduce(self.hidden[places], axis=0, dtype=np.float64)
        return np.asarray(sums / self.counts[:, None])

    def residuals(self, centres: Floats, work: np.dtype[Any]) -> Work:
        """The samples less the centre of their class, sorted by class: the one copy of all."""
        out = np.empty(self.hidden.shape, dtype=work)
        near = centres.astype(work)
        first = 0
        for own, places in self._pieces():
            piece = out[first : first + places.size]
            if self.hidden.dtype == work:
                np.take(self.hidden, places, axis=0, out=piece, mode="clip")
            else:
                piece[...] = self.hidden[places]
            piece -= near[own]
            first += places.size
        return out

    def _pieces(self) -> list[tuple[int, Ints]]:
        """The class and the samples of each piece."""
        return [
            (own, self.order[first : min(first + PIECE, stop)])
            for own, (start, stop) in enumerate(pairwise(self.edges.tolist()))
            for first in range(start, stop, PIECE)
        ]


def read_hidden(
    hidden: ArrayLike,
    labels: ArrayLike | None,
    *,
    faults: list[str],
    known: NDArray[Any] | None = None,
    width: int | None = None,
    on_gpu: bool = False,
) -> HiddenStates:
    """Read samples and labels, or raise all faults, those that the caller found included.

    Args:
        hidden: Shape ``(n, d)``, finite.
        labels: Shape ``(n,)``: whole numbers, strings or booleans; None makes one class of all.
        faults: What is wrong already.
        known: The classes that labels may name; by default those that they do name.
        width: How many features there must be, where that is known.
        on_gpu: Whether a tensor on a GPU may stay there.

    Raises:
        InvalidInput: Not such arrays, or faults were given.
    """
    samples = _samples(hidden, faults, on_gpu)
    if labels is None and samples is not None:
        named: NDArray[Any] | None = np.zeros(samples.shape[0], dtype=np.int64)
    else:
        named = None if labels is None else _labels(labels, faults)
    if samples is not None and named is not None and named.size != samples.shape[0]:
        faults.append(f"labels has {named.size} entries for {samples.shape[0]} rows of hidden")
    if samples is not None and width is not None and samples.shape[1] != width:
        faults.append(f"hidden has {samples.shape[1]} features, not {width}")
    if named is not None and known is not None:
        fitted = set(known.tolist())
        strange = [label for label in np.unique(named).tolist() if label not in fitted]
        if strange:
            faults.append(f"labels names class(es) that were not fitted: {_listed(strange)}")
    require(faults)
    if samples is None or named is None:
        raise InvalidInput("hidden and labels must be arrays.")
    classes = np.unique(named) if known is None else known
    place = np.searchsorted(classes, named)
    # Short numbers are sorted by their digits, in a pass or two.
    order = np.argsort(place.astype(np.uint16) if classes.size < 1 << 16 else place, kind="stable")
    edges = np.append(0, np.cumsum(np.bincount(place, minlength=classes.size)))
    return HiddenStates(samples, classes, order.astype(np.int64), edges.astype(np.int64))


def classes_under(given: HiddenStates, least: int) -> str:
    """The classes with fewer samples than ``least``, for a message; empty where there is none."""
    few = [
        f"{name!r} ({count})"
        for name, count in zip(given.classes.tolist(), given.counts.tolist(), strict=True)
        if count < least
    ]
    return _listed(few)


def _listed(names: list[Any]) -> str:
    shown = ", ".join(str(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def tensor_of(given: object) -> Tensor | None:
    """What was given, where that is a tensor; torch is not loaded to find out."""
    torch = sys.modules.get("torch")
    return given if torch is not None and isinstance(given, torch.Tensor) else None


def _samples(hidden: Any, faults: list[str], on_gpu: bool) -> Any:
    """An array, or a tensor on a GPU; None with a fault more where it is neither."""
    try:
        if on_gpu and (tensor := tensor_of(hidden)) is not None:
            from remnant.measures.prediction.psmi_samples import read_tensor, settle

            hidden = settle(tensor)
            if tensor_of(hidden) is not None:
                return read_tensor(hidden, faults)
        array = real_numbers(hidden)
        narrow = array.dtype in (np.float16, np.float32)
        array = array.astype(np.float32 if narrow else np.float64, copy=False)
    except (TypeError, ValueError, RuntimeError):  # the last: a tensor with a gradient
        faults.append("hidden is not an array of numbers")
        return None
    if array.ndim != 2 or array.size == 0:
        faults.append(f"hidden has shape {array.shape}, not (n, d) with at least one of each")
        return None
    finite = np.isfinite(array)
    if not finite.all():
        faults.append(f"hidden holds {array.size - int(finite.sum())} value(s) that are NaN or inf")
        return None
    if array.dtype == np.float64 and max(float(array.max()), -float(array.min())) > LARGEST:
        faults.append(f"hidden holds values beyond {LARGEST:g}, which cannot be added up")
        return None
    return array


def _labels(labels: ArrayLike, faults: list[str]) -> NDArray[Any] | None:
    try:
        tensor = tensor_of(labels)
        array = np.asarray(labels if tensor is None else tensor.detach().cpu())
    except (TypeError, ValueError, RuntimeError):
        faults.append("labels is not an array")
        return None
    if array.ndim != 1 or array.size == 0:
        faults.append(f"labels has shape {array.shape}, not (n,) with at least one")
        return None
    if array.dtype.kind not in "biuUS" and (
        array.dtype.kind != "f" or np.any(array != np.floor(array)) or not np.isfinite(array).all()
    ):
        faults.append("labels are neither whole numbers nor strings nor booleans")
        return None
    return array
