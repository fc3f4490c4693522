"""Plain JSON and nothing else: what may stand in a plan, an execution or a result.

NumPy's scalars and arrays become Python's; NaN and infinities are refused, because a reader cannot
tell "not measured" from "infinite" and JSON has neither.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from remnant.errors import InvalidInput, require


def plain(value: Any, *, what: str) -> Any:
    """A copy of the value made of dict, list, str, int, float, bool and None.

    Args:
        value: Mappings with string keys, sequences, NumPy arrays and scalars, plain values.
        what: What the value is called in the error.

    Raises:
        InvalidInput: Lists every place that holds NaN, an infinity, or something JSON has no
            word for.

    Example:
        >>> plain({"lags": np.arange(3), "fpr": np.float64(0.1)}, what="the curve")
        {'lags': [0, 1, 2], 'fpr': 0.1}
    """
    faults: list[str] = []
    copy = _plain(value, what, faults)
    require(
        faults,
        hint="Leave out what was not measured, or record the reason with put_absent.",
    )
    return copy


def to_json(value: Mapping[str, Any], *, what: str) -> str:
    """The value as strict JSON text, in the order given."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} is a {type(value).__name__}, not a dict.")
    return json.dumps(plain(value, what=what), allow_nan=False, ensure_ascii=False)


def _plain(value: Any, where: str, faults: list[str]) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {
            _text(key, f"a key of {where}", faults): _plain(item, f"{where}.{key}", faults)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{i}]", faults) for i, item in enumerate(value)]
    if isinstance(value, str):
        return _text(value, where, faults)
    if isinstance(value, float):
        if not math.isfinite(value):
            faults.append(f"{where} is {value}")
        return float(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    faults.append(f"{where} is a {type(value).__name__}, which JSON has no word for")
    return None


def _text(value: Any, where: str, faults: list[str]) -> str:
    if not isinstance(value, str):
        faults.append(f"{where} is {value!r}, no text")
        return ""
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        faults.append(f"{where} is not valid Unicode text")
    return str(value)
