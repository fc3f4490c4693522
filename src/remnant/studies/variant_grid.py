"""A grid of variants: every combination of some fields' values.

In a recipe it is one table of fields, each with the list of its values:

    [grid]
    plan.batch = [16, 32, 64]
    model.options.units = [50, 100]

The first combination is the study itself.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from remnant.errors import PlanError, require


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination.

    Attributes:
        label: Its fields with their values, in words.
        values: The value of each field, by the field's short name.
        fields: The same by the field's place in the recipe.
    """

    label: str
    values: dict[str, Any]
    fields: dict[tuple[str, ...], Any]


def grid_cells(grid: Mapping[str, Any]) -> list[Cell]:
    """Return all combinations, the last field moving fastest.

    Raises:
        PlanError: No field, one without a list of different values, or one that is a whole
            section.

    Example:
        >>> cells = grid_cells({"plan": {"batch": [16, 32]}, "model": {"options": {"units": [50]}}})
        >>> [cell.label for cell in cells]
        ['batch 16, units 50', 'batch 32, units 50']
    """
    axes = list(_axes(grid, ()))
    faults = []
    for place, values in axes:
        name = ".".join(place)
        if not isinstance(values, list) or not values:
            faults.append(f"grid.{name}={values!r} is not a list of values")
        elif any(values.count(value) > 1 for value in values):
            faults.append(f"grid.{name}={values!r} has a value twice")
        if len(place) < 2:
            faults.append(f"grid.{name} is a section, and a grid has fields")
    if not axes:
        faults.append("the grid is empty")
    require(faults, error=PlanError, hint="Write [grid] with plan.batch = [16, 32], for instance.")
    short = _short_names([place for place, _ in axes])
    made = []
    for chosen in itertools.product(*(values for _, values in axes)):
        fields = {place: value for (place, _), value in zip(axes, chosen, strict=True)}
        values = {short[place]: value for place, value in fields.items()}
        label = ", ".join(f"{name} {_told(value)}" for name, value in values.items())
        made.append(Cell(label, values, fields))
    return made


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


def _short_names(places: list[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """The last part of each place, or all of it where two end alike."""
    ends = [place[-1] for place in places]
    return {place: place[-1] if ends.count(place[-1]) == 1 else ".".join(place) for place in places}


def _told(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(map(_told, value))
    if isinstance(value, dict):
        return " ".join(f"{name} {_told(one)}" for name, one in value.items())
    return "yes" if value is True else "no" if value is False else str(value)
