"""Rows of a result as a data frame of pandas.

A table of a result is a tuple of rows, such as its canaries, or a part that holds columns, such as
a curve. It is named by its path through the parts: ``"exposure.canaries"``.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from remnant.errors import InvalidInput, NotEnoughEvidence, import_failure
from remnant.records.typed import Absent, Result, stored_fields

if TYPE_CHECKING:
    from pandas import DataFrame

_ENDS = ("value", "low", "high")


def frame_of(result: Result, rows: str | None = None) -> DataFrame:
    """Return a table of a result as a data frame.

    Args:
        result: Of any class.
        rows: Path of the table; None for the main rows of the class, ``ROWS``.

    Raises:
        InvalidInput: The result has no such table.
        NotEnoughEvidence: The table was not measured.
        MissingExtra: pandas is not installed.
    """
    try:
        import pandas
    except ImportError as fault:
        raise import_failure(
            fault, library="pandas", message="A data frame needs pandas.", extra="notebook"
        ) from fault
    return pandas.DataFrame(_main_rows(result) if rows is None else _named_rows(result, rows))


def _main_rows(result: Result) -> list[dict[str, Any]]:
    """The rows of every table in ``ROWS`` that was measured."""
    found, reasons = [], []
    for path in result.ROWS:
        try:
            found.append(_rows(result, path.split("."), path))
        except NotEnoughEvidence as fault:
            reasons.append(fault)
    if reasons and not found:
        raise reasons[0]
    return [row for rows in found for row in rows]


def _named_rows(result: Result, path: str) -> list[dict[str, Any]]:
    known = list(dict.fromkeys([*result.ROWS, *_tables(result)]))
    if path not in known:
        raise InvalidInput(
            f"rows={path!r} is no table of this {type(result).__name__}.",
            hint=f"Its tables are {', '.join(known)}." if known else "It has none.",
        )
    return _rows(result, path.split("."), path)


def _rows(part: Any, names: Sequence[str], path: str) -> list[dict[str, Any]]:
    """The rows at the end of a path; those of several parents begin with the parent's name."""
    if isinstance(part, Absent):
        raise NotEnoughEvidence(f"{path} was not measured: {part.reason}.")
    if names and isinstance(part, tuple):
        return [
            dict([_first(parent)]) | row for parent in part for row in _rows(parent, names, path)
        ]
    if names and part is not None:
        return _rows(getattr(part, names[0]), names[1:], path)
    if isinstance(part, Result):
        return _main_rows(part)
    if isinstance(part, tuple):
        return [dict(_cells(row)) for row in part]
    return [] if part is None else _of_columns(part)


def _first(parent: Any) -> tuple[str, Any]:
    """The field that names a row of an outer table: its first."""
    name = dataclasses.fields(parent)[0].name
    return name, getattr(parent, name)


def _of_columns(part: Any) -> list[dict[str, Any]]:
    """The rows of a part with columns: the entries as long as its first column."""
    columns = _columns(part)
    length = len(next(iter(columns.values())))
    alike = {name: column for name, column in columns.items() if len(column) == length}
    return [dict(zip(alike, row, strict=True)) for row in zip(*alike.values(), strict=True)]


def _columns(part: Any) -> dict[str, tuple[Any, ...]]:
    """The columns of a part, then those of its parts."""
    columns: dict[str, tuple[Any, ...]] = {}
    for name, value in _fields(part):
        if _is_column(value):
            columns[name] = value
        elif _is_part(value):
            inner = ((n, v) for n, v in _fields(value) if _is_column(v))
            columns |= {f"{name}_{inner_name}": column for inner_name, column in inner}
    return columns


def _cells(row: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers and texts of a row, those of its parts too; tables within it are left out.

    The ends of an interval stand after the number: ``auc``, ``auc_low``, ``auc_high``.
    """
    made: Any = type(row)  # a class is hashable, whatever the type checker says
    intervals = _intervals(made)
    for name, value in _fields(row):
        if isinstance(value, tuple) and (hasattr(value, "_fields") or name in intervals):
            others = getattr(value, "_fields", _ENDS)[1:]
            yield before + name, value[0]
            yield from zip((f"{before}{name}_{other}" for other in others), value[1:], strict=True)
        elif _is_part(value) or isinstance(value, Mapping):
            yield from _cells(value, f"{before}{name}_")
        elif _is_scalar(value) or _is_column(value):
            yield before + name, value


@cache
def _intervals(made: Any) -> frozenset[str]:
    """The fields of a row that hold a number and the ends of its interval, without their names."""
    if not dataclasses.is_dataclass(made):
        return frozenset()
    hints = typing.get_type_hints(made)
    kinds = {name: {hint, *typing.get_args(hint)} for name, hint in hints.items()}
    return frozenset(
        name for name, inner in kinds.items() if any(len(_fixed(kind)) == 3 for kind in inner)
    )


def _fixed(hint: Any) -> tuple[Any, ...]:
    """The types in a tuple whose length is fixed."""
    inner = typing.get_args(hint) if typing.get_origin(hint) is tuple else ()
    return () if Ellipsis in inner else inner


def _fields(row: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a row that are stored."""
    if isinstance(row, Mapping):
        yield from ((str(name), value) for name, value in row.items())
    elif hasattr(row, "_fields"):
        yield from zip(row._fields, row, strict=True)
    else:
        yield from stored_fields(row)


def _is_part(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type | Absent)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int | float)


def _is_column(value: Any) -> bool:
    plain = type(value) is tuple and len(value) > 0
    return plain and all(map(_is_scalar, value))


def _tables(part: Any, before: str = "") -> Iterator[str]:
    """The paths of the tables within a part; of several alike the first is looked at."""
    for name, value in _fields(part):
        path = before + name
        rows = type(value) is tuple and len(value) > 0 and not _is_column(value)
        if rows and (_is_part(value[0]) or hasattr(value[0], "_fields")):
            yield path
            yield from _tables(value[0], f"{path}.")
        elif _is_part(value):
            if _is_table(value):
                yield path
            yield from _tables(value, f"{path}.")


def _is_table(part: Any) -> bool:
    """Whether a part holds columns, two or more with a number in them, and no other table."""
    first, *others = _columns(part).values() or ((),)
    alike = [column for column in others if len(column) == len(first)]
    numbers = any(isinstance(value, int | float) for value in first)
    inner = any(type(v) is tuple and v and _is_part(v[0]) for _, v in _fields(part))
    return bool(alike) and numbers and not inner and not isinstance(part, Result)
