"""Reads images and other arrays to test a classifier on, from a file or a named data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.data.catalogue import training_images
from remnant.data.labelled import normalised, read_array, read_labelled
from remnant.errors import InvalidInput

__all__ = ["ArraySamples", "array_samples", "read_array"]


@dataclass(frozen=True, slots=True, eq=False)
class ArraySamples:
    """Samples as a model takes them.

    Attributes:
        inputs: ``(n, ...)``.
        labels: int64 ``(n,)``.
    """

    inputs: Tensor
    labels: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample."""
        return tuple(self.inputs.shape[1:])

    @property
    def classes(self) -> int:
        """One more than the largest label."""
        return int(self.labels.max()) + 1


def array_samples(
    data: Path | None,
    *,
    data_set: str | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> ArraySamples:
    """Read labelled samples.

    Args:
        data: An npz file, see ``read_labelled``; with ``data_set`` the folder that holds it.
        data_set: A data set that recipes can name: its training part, in the order of its files.
        mean, std: Of images, for all channels or for each, as in training; both or neither.

    Raises:
        InvalidInput: The file cannot be read or does not follow the rules; ``mean`` without
            ``std``, or for ``inputs`` that are no images.
        PlanError: An unknown data set, or one that is read from files, without a folder.
    """
    if (mean is None) != (std is None):
        raise InvalidInput("mean and std belong together.", hint="Give both or neither.")
    if data_set is not None:
        loaded = training_images(data_set, folder=data)
        inputs, labels = loaded.images, loaded.labels
    elif data is not None:
        read = read_labelled(data)
        inputs, labels = read.inputs, read.labels
    else:
        raise InvalidInput("it takes data= or data_set=.")
    if mean is not None and std is not None:
        if inputs.ndim != 4:
            raise InvalidInput("mean and std are for images, and these are inputs of other kinds.")
        inputs = normalised(inputs, mean, std)
    return ArraySamples(torch.from_numpy(inputs), labels)
