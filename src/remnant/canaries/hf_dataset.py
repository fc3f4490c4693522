"""Putting canaries into a dataset of Hugging Face's library ``datasets``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from remnant.canaries.already_present import refuse_standing
from remnant.canaries.canary_set import CanarySet
from remnant.canaries.insertion import Where, new_order, place_canaries
from remnant.errors import InvalidInput, import_failure, require

_TEXTS = ("string", "large_string")
# What the library and Arrow raise for a value of another type; Arrow's own are children of these.
_MISFITS = (AttributeError, KeyError, NotImplementedError, OverflowError, TypeError, ValueError)


def insert_into_dataset(
    dataset: Any,
    canary_set: CanarySet,
    *,
    column: str,
    others: Mapping[str, Any] | None = None,
    rng: np.random.Generator | None = None,
    positions: ArrayLike | None = None,
) -> tuple[Any, Where]:
    """Insert canaries into a ``datasets.Dataset``, each copy as a row of its own.

    Args:
        dataset: The examples; it is left as it is.
        canary_set: What is planted.
        column: The column of strings that takes the canaries' texts.
        others: What the canaries have in each other column.
        rng: Places the copies at random; see ``place_canaries``.
        positions: Or, where each copy goes.

    Guarantees:
        * The rows that are not at ``where`` are those of ``dataset``, in order; columns, their
          types and the dataset's format stay.
        * Each canary stands there as often as its ``repeats``; no control does.

    Returns:
        The new dataset, and ``where``.

    Raises:
        InvalidInput: ``dataset`` is not a ``datasets.Dataset``; ``column`` is not one of its
            columns of strings; ``others`` leaves a column out, names one that is not there, or
            does not fit its type; ``column`` holds a canary or a control already; or see
            ``place_canaries``.
        MissingExtra: The library ``datasets`` is not installed.
    """
    try:
        library = import_module("datasets")
    except ImportError as fault:
        raise import_failure(
            fault,
            library="datasets",
            message="insert_into_dataset needs the library datasets.",
            extra="hf",
        ) from fault
    if not isinstance(dataset, library.Dataset):
        raise InvalidInput(
            f"dataset is a {type(dataset).__name__}, not a datasets.Dataset.",
            hint="Pass one split of a DatasetDict; a stream has to be loaded first.",
        )
    fillers = dict(others or {})
    _check_columns(library, dataset.features, column, fillers)
    plain = dataset.with_format(None)
    refuse_standing(plain[column], canary_set, where=f"column={column!r}")
    where = place_canaries(canary_set, among=len(dataset), rng=rng, positions=positions)
    texts = [canary.text for canary in canary_set.canaries]
    filled = {name: [value] * len(texts) for name, value in fillers.items()}
    planted = library.Dataset.from_dict({**filled, column: texts}, features=dataset.features)
    joined = library.concatenate_datasets([plain, planted], info=dataset.info, split=dataset.split)
    shape = dataset.format
    chosen = joined.select(new_order(where, among=len(dataset)))
    return chosen.with_format(
        shape["type"],
        columns=shape["columns"],
        output_all_columns=shape["output_all_columns"],
        **shape["format_kwargs"],
    ), where


def _check_columns(library: Any, features: Any, column: str, fillers: dict[str, Any]) -> None:
    if column not in features:
        raise InvalidInput(f"column={column!r} is not one of {', '.join(map(repr, features))}.")
    kind = getattr(features[column], "dtype", None)
    if kind not in _TEXTS:
        raise InvalidInput(f"column={column!r} does not hold strings but {kind or 'a structure'}.")
    rest = set(features) - {column}
    faults = [f"others has no value for column {name!r}" for name in sorted(rest - set(fillers))]
    faults += [
        f"others has a value for {name!r}, which "
        + ("takes the canaries' texts" if name == column else "is no column")
        for name in sorted(set(fillers) - rest, key=str)
    ]
    faults += [
        f"others[{name!r}] does not fit the column's type"
        for name in sorted(rest & set(fillers))
        if not _fits(library, features[name], fillers[name])
    ]
    require(faults, hint="Every column but that of the texts needs one value for the canaries.")


def _fits(library: Any, feature: Any, value: Any) -> bool:
    try:
        dataset = library.Dataset.from_dict({"it": [value]}, library.Features({"it": feature}))
        stored = dataset[0]["it"]
    except _MISFITS:
        return False
    # The library stores 1.5 as 1 in a column of whole numbers, without a word.
    is_whole = isinstance(feature, library.Value) and feature.dtype.lstrip("u").startswith("int")
    return not is_whole or bool(stored == value)
