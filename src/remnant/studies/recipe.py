"""Reads a recipe: a TOML file that is a study, every field checked."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from remnant.errors import InvalidInput, PlanError, RemnantError, require
from remnant.studies.questions import QUESTIONS, Question, Study
from remnant.studies.settings import TrainingSettings
from remnant.studies.variant_grid import Cell, grid_cells, with_cell
from remnant.studies.variants import Variant, with_changes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Made = TypeVar("Made")
_ASSUMED = "forgetting"
_MOST, _MOST_SEED = 10**12, 2**63 - 1


def read_recipe(path: Path, *, scale: str | None = None) -> Study:
    """Read a recipe file.

    Args:
        path: The file.
        scale: The name of a ``[scale.NAME]`` table in it, whose fields replace those of the recipe.

    Raises:
        InvalidInput: The file is missing or is not TOML.
        PlanError: A section, field, value or the scale is unknown; all faults are listed at once. A
            fault of a scale names it, asked for or not.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as fault:
        raise InvalidInput(f"The recipe {path} is not there.", hint="Check its path.") from fault
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput(f"The recipe {path} cannot be read: {fault}.") from fault
    except tomllib.TOMLDecodeError as fault:
        raise InvalidInput(f"The recipe {path} is not TOML: {fault}.") from fault
    scales = table.pop("scale", {})
    if not isinstance(scales, dict) or not all(isinstance(one, dict) for one in scales.values()):
        raise PlanError("[scale] is not a section of sections.", hint="Write [scale.NAME.plan].")
    if scale is not None and scale not in scales:
        known = f"It has: {', '.join(scales)}." if scales else "It has none."
        raise PlanError(f"The recipe {path} has no scale {scale!r}.", hint=known)
    made: dict[str | None, Study] = {None: study_from(table)}
    for name, changes in scales.items():
        # A scale with a fault is refused whether it is asked for or not.
        with _named(f"scale.{name}"):
            made[name] = study_from(with_changes(table, changes))
    return made[scale]


def study_from(table: dict[str, Any]) -> Study:
    """Build a study from plain data, such as a recipe or a record's plan.

    Raises:
        PlanError: See ``read_recipe``. A fault of a variant names it, where the study without its
            variants has none.
    """
    require(_odd_values(table, ()), error=PlanError, hint="Correct the recipe.")
    name = table.get("question", _ASSUMED)
    if not isinstance(name, str) or name not in QUESTIONS:
        raise PlanError(f"question={name!r} is not one of {', '.join(QUESTIONS)}.")
    question = QUESTIONS[name]
    cells = _cells(table) if question.grids else []
    if cells:
        table = with_cell(table, cells[0])
    faults = [f"unknown section or field {one!r}" for one in table if one not in question.top]
    unknown = bool(faults)
    plan = table.get("plan")
    plan = dict(plan) if isinstance(plan, dict) else {}
    kind = str(plan.pop("kind", None))
    faults += [
        f"{name}={table[name]!r} is not a text"
        for name in ("label", "title")
        if name in table and not isinstance(table[name], str)
    ]
    compare = table.get("compare") or []
    if not isinstance(compare, list) or not all(
        isinstance(one, dict) and isinstance(one.get("label"), str) for one in compare
    ):
        faults.append("compare is not a list of tables, each with a label")
    varied = table.get("variants") or {}
    if not isinstance(varied, dict) or not all(isinstance(one, dict) for one in varied.values()):
        faults.append("variants is neither false nor a section of sections")
    hints = [f"A recipe has: {', '.join(question.top)}."] if unknown else []
    sections = dict(question.sections)
    if kind not in question.plans:
        faults.append(f"plan.kind={kind!r} is not one of {', '.join(question.plans)}")
    else:
        sections["plan"] = question.plans[kind]
    for section, made in sections.items():
        # A section that is false is left out, as if it were not there.
        found = {} if table.get(section, False) is False else table[section]
        wrong = _unknown(section, plan if section == "plan" else found, made)
        faults += wrong
        if wrong:
            hints.append(f"[{section}] has: {', '.join(f.name for f in dataclasses.fields(made))}.")
    if "question" not in table:
        hints.append(
            f'No question is named, so "{_ASSUMED}" was assumed; name another at the top, such as '
            f'question = "exposure"; there are: {", ".join(QUESTIONS)}.'
        )
    require(faults, error=PlanError, hint=" ".join(hints) or None)
    # A section that is not there is the study's own default.
    given: dict[str, Any] = {
        section: _build(section, made, table[section])
        for section, made in question.sections.items()
        if isinstance(table.get(section), dict)
    }
    given["plan"] = _build("plan", question.plans[kind], plan)
    for section in given.values():
        if isinstance(section, TrainingSettings):
            section.check_options()
    absent = [name for name in _needed(question.study) if name not in given]
    if absent:
        raise PlanError(f"The recipe lacks [{'], ['.join(absent)}].", hint="Add it to the recipe.")
    if cells or compare or varied:
        question.study(**given)  # its own faults come before those of its variants
    if question.compares:
        given |= {name: table[name] for name in ("label", "title") if name in table}
        others = [
            _variant(question, with_cell(table, cell), {"label": cell.label}) for cell in cells[1:]
        ]
        given["compare"] = (*others, *(_variant(question, table, one) for one in compare))
    if cells:
        given |= {"grid": table["grid"], "label": cells[0].label}
    if question.varies:
        given["variants"] = tuple(
            _variant(question, table, {**changes, "label": label}, "variant")
            for label, changes in varied.items()
        )
    return question.study(**given)


def _cells(table: dict[str, Any]) -> list[Cell]:
    """Return the combinations of a recipe's grid, where it has one."""
    if "grid" not in table:
        return []
    if not isinstance(table["grid"], dict):
        raise PlanError("[grid] is not a section.")
    return grid_cells(table["grid"])


def _variant(
    question: Question, table: dict[str, Any], changes: dict[str, Any], named: str = "compare"
) -> Variant[Any]:
    """Build a study to compare with: the recipe's own, with some fields replaced."""
    alone = {
        name: table[name] for name in ("question", "plan", *question.sections) if name in table
    }
    changes = dict(changes)
    label = changes.pop("label")
    plan = changes.get("plan")
    if isinstance(plan, dict) and plan.get("kind") in question.plans:
        known = {f.name for f in dataclasses.fields(question.plans[plan["kind"]])} | {"kind"}
        alone["plan"] = {name: alone["plan"][name] for name in alone["plan"] if name in known}
    with _named(f"{named} {label!r}"):
        return Variant(label, study_from(with_changes(alone, changes)))


@contextmanager
def _named(part: str) -> Iterator[None]:
    """Let faults say in which part of a recipe they are."""
    try:
        yield
    except RemnantError as fault:
        raise PlanError(f"{part}: {fault.message}", hint=fault.hint) from fault


def _unknown(name: str, given: Any, made: type) -> list[str]:
    if not isinstance(given, dict):
        return [f"[{name}] is not a section"]
    known = {f.name for f in dataclasses.fields(made)}
    return [f"unknown field {name}.{field}" for field in given if field not in known]


def _needed(made: Any) -> list[str]:
    return [
        f.name
        for f in dataclasses.fields(made)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]


def _odd_values(value: Any, path: tuple[str, ...]) -> list[str]:
    """Return a fault for each value that no field of a recipe takes."""
    if isinstance(value, dict):
        return [fault for key in value for fault in _odd_values(value[key], (*path, str(key)))]
    if isinstance(value, list | tuple):
        return [
            fault
            for place, item in enumerate(value)
            for fault in _odd_values(item, (*path[:-1], f"{path[-1]}[{place}]"))
        ]
    name = ".".join(path)
    if isinstance(value, float) and not math.isfinite(value):
        return [f"{name}={value} is not a finite number"]
    if isinstance(value, int) and not isinstance(value, bool):
        most = _MOST_SEED if path[-1].endswith("seed") else _MOST
        return [] if abs(value) <= most else [f"{name}={value} is more than {most}"]
    plain = value is None or isinstance(value, str | float | bool)
    return [] if plain else [f"{name}={value} is a {type(value).__name__}, which no field takes"]


def _build(name: str, made: type[Made], given: dict[str, Any]) -> Made:
    missing = [field for field in _needed(made) if field not in given]
    if missing:
        raise PlanError(f"[{name}] lacks {', '.join(missing)}.", hint="Add it to the recipe.")
    try:
        return made(**given)
    except (TypeError, ValueError) as fault:
        if isinstance(fault, PlanError):
            raise
        raise PlanError(f"[{name}] has a value of the wrong kind: {fault}.") from fault
