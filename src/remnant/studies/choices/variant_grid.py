"""A grid of variants: every combination of some fields' values.

In a recipe it is one table of fields, each with the list of its values:

    [grid]
    plan.batch = [16, 32, 64]
    model.options.units = [50, 100]

    [grid.along.batch]
    training.options.lr = [0.001, 0.0014, 0.002]

The first combination is the study itself. A field along another has as many values as the other
and changes with it. Give names to values that are hard to read or occur twice:

    [grid.named]
    options = ["Adam", "SGD"]
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from remnant.errors import PlanError, require

_ALONG, _NAMED = "along", "named"


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination.

    Attributes:
        label: Its fields with their values, in words.
        values: The value of each field, or its name, by the field's short name.
        fields: The same by the field's place in the recipe, with fields that change along.
    """

    label: str
    values: dict[str, Any]
    fields: dict[tuple[str, ...], Any]


def grid_cells(grid: Mapping[str, Any]) -> list[Cell]:
    """Return all combinations; the last field changes fastest.

    Raises:
        PlanError: There is no field, or a field is a whole section or has no list of different
            values. A field along another, or a list of names, belongs to no field of the grid or
            has another number of values.

    Example:
        >>> cells = grid_cells({"plan": {"batch": [16, 32]}, "model": {"options": {"units": [50]}}})
        >>> [cell.label for cell in cells]
        ['batch 16, units 50', 'batch 32, units 50']
    """
    own = {name: table for name, table in grid.items() if name not in (_ALONG, _NAMED)}
    axes = list(_axes(own, ()))
    short = _short_names([place for place, _ in axes])
    named = grid.get(_NAMED, {})
    if not isinstance(named, Mapping):
        raise PlanError("grid.named is not a table of lists of names.")
    faults = []
    for place, values in axes:
        name = ".".join(place)
        if not isinstance(values, list) or not values:
            faults.append(f"grid.{name}={values!r} is not a list of values")
        elif short[place] not in named and any(values.count(value) > 1 for value in values):
            faults.append(f"grid.{name}={values!r} has a value twice")
        if len(place) < 2:
            faults.append(f"grid.{name} is a section, and a grid has fields")
    if not axes:
        faults.append("the grid is empty")
    require(faults, error=PlanError, hint="Write [grid] with plan.batch = [16, 32], for instance.")
    lists = {short[place]: values for place, values in axes}
    along = _along(grid.get(_ALONG, {}), lists)
    shown = lists | _named(named, lists)
    made = []
    for chosen in itertools.product(*(range(len(values)) for _, values in axes)):
        fields = {place: values[at] for (place, values), at in zip(axes, chosen, strict=True)}
        where = {short[place]: at for (place, _), at in zip(axes, chosen, strict=True)}
        values = {name: shown[name][at] for name, at in where.items()}
        label = ", ".join(
            str(value) if shown[name] is not lists[name] else f"{name} {value_text(value)}"
            for name, value in values.items()
        )
        moved = {place: moving[where[name]] for name, place, moving in along}
        made.append(Cell(label, values, fields | moved))
    return made


def fields_along(grid: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the fields that change along each field of a grid, by its short name.

    Example:
        >>> fields_along({"along": {"batch": {"training": {"options": {"lr": [0.1, 0.2]}}}}})
        {'batch': ['training.options.lr']}
    """
    return {
        name: [".".join(place) for place, _ in _axes(table, ())]
        for name, table in grid.get(_ALONG, {}).items()
    }


def with_cell(table: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    """Return a recipe with a combination's values in their places.

    Raises:
        PlanError: A field is inside something that is no table.

    Example:
        >>> cell = grid_cells({"model": {"options": {"units": [50]}}})[0]
        >>> with_cell({"model": {"options": {"layers": 2}}}, cell)
        {'model': {'options': {'layers': 2, 'units': 50}}}
    """
    made = copy.deepcopy(dict(table))
    for place, value in cell.fields.items():
        inside = made
        for name in place[:-1]:
            inside = inside.setdefault(name, {})
            if not isinstance(inside, dict):
                raise PlanError(f"grid.{'.'.join(place)}: {name} is not a table.")
        inside[place[-1]] = value
    return made


def _axes(
    table: Mapping[str, Any], before: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _axes(value, (*before, name))
        else:
            yield (*before, name), value


def _along(
    given: Any, axes: Mapping[str, list[Any]]
) -> list[tuple[str, tuple[str, ...], list[Any]]]:
    """Fields that change along an axis: its name, their places and their values."""
    if not isinstance(given, Mapping) or not all(
        isinstance(table, Mapping) for table in given.values()
    ):
        raise PlanError("grid.along is not a table of tables, one for each field moved along.")
    faults, made = [], []
    for name, table in given.items():
        if name not in axes:
            faults.append(f"grid.along.{name}: the grid has no {name}, only {', '.join(axes)}")
            continue
        for place, values in _axes(table, ()):
            field = f"grid.along.{name}.{'.'.join(place)}={values!r}"
            if not isinstance(values, list) or len(values) != len(axes[name]):
                faults.append(f"{field} is not a list of {len(axes[name])} values, as {name} has")
            else:
                made.append((name, place, values))
    require(faults, error=PlanError, hint="Give each value of the one a value of the other.")
    return made


def _named(given: Mapping[str, Any], axes: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Names of the values of some fields."""
    faults = []
    for name, names in given.items():
        if name not in axes:
            faults.append(f"grid.named.{name}: the grid has no {name}, only {', '.join(axes)}")
        elif (
            not isinstance(names, list)
            or len(names) != len(axes[name])
            or not all(isinstance(word, str) and word for word in names)
            or len(set(names)) < len(names)
        ):
            faults.append(
                f"grid.named.{name}={names!r} is not a list of {len(axes[name])} different names, "
                f"one for each value"
            )
    require(faults, error=PlanError, hint="Give each value a name, or leave the table out.")
    return dict(given)


def _short_names(places: list[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """The last part of each place, or all of it if two have the same last part."""
    ends = [place[-1] for place in places]
    return {place: place[-1] if ends.count(place[-1]) == 1 else ".".join(place) for place in places}


def value_text(value: Any) -> str:
    """Return a value of a recipe as labels show it."""
    if isinstance(value, list):
        return "+".join(map(value_text, value))
    if isinstance(value, dict):
        return " ".join(f"{name} {value_text(inner)}" for name, inner in value.items())
    return "yes" if value is True else "no" if value is False else str(value)
