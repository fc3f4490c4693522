"""Putting canaries among the examples of a map-style dataset, as PyTorch's loaders take it."""

from __future__ import annotations

import operator
import sys
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from remnant.canaries.canary_set import PlantedTexts
from remnant.canaries.insertion import Where, place_canaries
from remnant.errors import InvalidInput


class PlantedDataset:
    """A map-style dataset with canaries among its examples.

    Any object with ``len`` and ``[]`` is a dataset to PyTorch's ``DataLoader``: so is this one.

    Args:
        dataset: The examples, asked for one at a time when they are needed.
        canary_set: What is planted.
        make_example: Turns a canary's text into an example, each time it is asked for.
        rng: Places the copies at random; see ``place_canaries``.
        positions: Or, where each copy goes.

    Attributes:
        where: ``(position, canary)`` per copy, sorted by position.

    Guarantees:
        * The examples that are not at ``where`` are those of ``dataset``, in order.
        * Each canary is added as often as its ``repeats``; no control is. What the examples hold
          already is not looked at.

    Raises:
        InvalidInput: ``dataset`` is not map-style, ``make_example`` cannot be called; or see
            ``place_canaries``.

    Example:
        >>> from remnant.canaries import Template, make_canary_set
        >>> planted = make_canary_set(Template("{hex:8}"), repeats=[2], controls=0, seed=0)
        >>> data = PlantedDataset([5, 6, 7], planted, make_example=len, positions=[0, 3])
        >>> list(data)
        [8, 5, 6, 7, 8]
    """

    def __init__(
        self,
        dataset: Any,
        canary_set: PlantedTexts,
        *,
        make_example: Callable[[str], Any],
        rng: np.random.Generator | None = None,
        positions: ArrayLike | None = None,
    ) -> None:
        if not _is_map_style(dataset):
            raise InvalidInput(
                f"dataset is a {type(dataset).__name__}, which is not map-style.",
                hint="It needs a length and indexing; a stream has neither.",
            )
        if not callable(make_example):
            raise InvalidInput(f"make_example is a {type(make_example).__name__}, not a function.")
        self.where: Where = place_canaries(
            canary_set, among=len(dataset), rng=rng, positions=positions
        )
        self._dataset = dataset
        self._make_example = make_example
        self._texts = [canary.text for canary in canary_set.canaries]
        self._positions = self.where[:, 0].tolist()

    def __repr__(self) -> str:
        return f"PlantedDataset(<{len(self._dataset)} examples, {len(self.where)} copies>)"

    def __len__(self) -> int:
        return len(self._dataset) + len(self.where)

    def __getitem__(self, index: int) -> Any:
        position = operator.index(index)
        if position < 0:
            position += len(self)
        if not 0 <= position < len(self):
            raise IndexError(f"index {index} is outside a dataset of {len(self)} examples")
        before = bisect_left(self._positions, position)
        if before < len(self._positions) and self._positions[before] == position:
            return self._make_example(self._texts[self.where[before, 1]])
        return self._dataset[position - before]


def _is_map_style(dataset: Any) -> bool:
    # PyTorch's streams inherit an indexing that only raises, and some have a length. None can be
    # here unless PyTorch was imported, so this file need not import it.
    torch_data = sys.modules.get("torch.utils.data")
    if torch_data is not None and isinstance(dataset, torch_data.IterableDataset):
        return False
    return hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
