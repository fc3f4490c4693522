"""Reads a recipe: a TOML file that is a study; all faults are listed at once."""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from remnant.canaries import BY_LOSS
from remnant.errors import InvalidInput, PlanError, RemnantError, require
from remnant.studies.choices.variant_grid import Cell, grid_cells, with_cell
from remnant.studies.registry import ASSUMED, RECIPES, recipe_of
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.study import Recipe, Study
from remnant.studies.shared.variants import Remedy, Variant, with_changes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MOST, _MOST_SEED = 10**12, 2**63 - 1
_NAME = re.compile(r"\w+")


def read_recipe(path: Path, *, scale: str | None = None) -> Study:
    """Read a recipe file.

    Args:
        path: The file.
        scale: The name of a ``[scale.NAME]`` table in it, whose fields replace those of the recipe.

    Raises:
        InvalidInput: The file is missing or is not TOML.
        PlanError: A section, field, value or the scale is unknown; all faults are listed at once,
            each with the path of its field. All scales are checked, and a fault of a scale names
            it.
    """
    table = _read_toml(path)
    scales = table.pop("scale", {})
    if not isinstance(scales, dict) or not all(
        isinstance(changes, dict) for changes in scales.values()
    ):
        raise PlanError("[scale] is not a section of sections.", hint="Write [scale.NAME.plan].")
    if scale is not None and scale not in scales:
        known = f"It has: {', '.join(scales)}." if scales else "It has none."
        raise PlanError(f"The recipe {path} has no scale {scale!r}.", hint=known)
    studies: dict[str | None, Study] = {None: study_from(table)}
    faults = _Faults()
    for name, changes in scales.items():
        with faults.gathered(f"scale.{name}: "):
            studies[name] = study_from(_changed(table, changes))
    faults.raise_all()
    return studies[scale]


def study_from(table: dict[str, Any]) -> Study:
    """Build a study from plain data, such as a recipe or a record's plan.

    The study's own faults come before those of its variants, which name the variant.

    Raises:
        PlanError: See ``read_recipe``.
    """
    faults = _Faults()
    odd = _check_values(table, faults)
    if odd & {"question", "grid"}:
        faults.raise_all()
    recipe = recipe_of(_question_of(table))
    cells = _cells(table) if recipe.grids else []
    if cells:
        table = with_cell(table, cells[0])
    _check_top(table, recipe, faults)
    parts = _sections(table, recipe, faults, skip=odd)
    if "question" not in table:
        faults.add_hint(
            f'No question is named, so "{ASSUMED}" was assumed; name another at the top, such as '
            f'question = "exposure"; there are: {", ".join(RECIPES)}.'
        )
    faults.raise_all()
    if cells or any(table.get(name) for name in ("compare", "variants", "remedy")):
        recipe.study(**parts)  # its own faults come before those of its variants
    variants = _variants(table, recipe, cells, faults)
    faults.raise_all()
    study: Study = recipe.study(**parts, **variants)
    return study


class _Faults:
    """The faults of a recipe, gathered to be raised as one error."""

    def __init__(self) -> None:
        self._faults: list[str] = []
        self._hints: list[str] = []

    def add(self, *faults: str, hint: str | None = None) -> None:
        """Note faults, each a sentence without its full stop, and what to do about them."""
        self._faults += faults
        if faults and hint is not None:
            self.add_hint(hint)

    def add_hint(self, hint: str) -> None:
        """Note what to say after the faults, if there are any."""
        if hint not in self._hints:
            self._hints.append(hint)

    @contextmanager
    def gathered(self, part: str = "") -> Iterator[None]:
        """Note an error of the package instead of raising it; ``part`` says where it is."""
        try:
            yield
        except RemnantError as error:
            self.add(part + error.message.removesuffix("."), hint=error.hint)

    def raise_all(self) -> None:
        """Raise one error that lists every fault, or return when there is none."""
        require(self._faults, error=PlanError, hint=" ".join(self._hints) or None)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as fault:
        raise InvalidInput(f"The recipe {path} is not there.", hint="Check its path.") from fault
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput(f"The recipe {path} cannot be read: {fault}.") from fault
    except tomllib.TOMLDecodeError as fault:
        raise InvalidInput(f"The recipe {path} is not TOML: {fault}.") from fault


def _question_of(table: dict[str, Any]) -> str:
    name = table.get("question", ASSUMED)
    if not isinstance(name, str) or name not in RECIPES:
        raise PlanError(f"question={name!r} is not one of {', '.join(RECIPES)}.")
    return name


def _check_values(table: dict[str, Any], faults: _Faults) -> set[str]:
    """Note values that no field takes; return the sections that have one."""
    odd = {name: _odd_values(value, (str(name),)) for name, value in table.items()}
    for odd_values in odd.values():
        faults.add(*odd_values, hint="Fix the recipe.")
    return {name for name, odd_values in odd.items() if odd_values}


def _check_top(table: dict[str, Any], recipe: Recipe, faults: _Faults) -> None:
    """Note names at the top level that the question does not have, and values of those it has."""
    unknown = [f"unknown section or field {name!r}" for name in table if name not in recipe.top]
    faults.add(*unknown, hint=f"A recipe has: {', '.join(recipe.top)}.")
    for name in ("label", "title"):
        if name in table and not isinstance(table[name], str):
            faults.add(f"{name}={table[name]!r} is not a text")
    for name in ("compare", "remedy"):
        listed = table.get(name) or []
        if not isinstance(listed, list) or not all(
            isinstance(variant, dict) and isinstance(variant.get("label"), str)
            for variant in listed
        ):
            faults.add(f"{name} is not a list of tables, each with a label")
    varied = table.get("variants") or {}
    if not isinstance(varied, dict) or not all(
        isinstance(changes, dict) for changes in varied.values()
    ):
        faults.add("variants is neither false nor a section of sections")


def _sections(
    table: dict[str, Any], recipe: Recipe, faults: _Faults, *, skip: set[str]
) -> dict[str, Any]:
    """Build the plan and the sections that the recipe has; the study has a default for others.

    Args:
        table: The recipe.
        recipe: What it may hold.
        faults: Takes what is wrong.
        skip: Sections whose faults are noted already.
    """
    built: dict[str, Any] = {}
    given = table.get("plan")
    plan = dict(given) if isinstance(given, dict) else {}
    named = "kind" in plan
    kind = str(plan.pop("kind", None))
    if not named:
        faults.add(f"plan.kind is missing; it is one of {', '.join(recipe.plans)}")
    elif kind not in recipe.plans:
        faults.add(f"plan.kind={kind!r} is not one of {', '.join(recipe.plans)}")
    elif "plan" not in skip:
        built["plan"] = _section("plan", recipe.plans[kind], plan, faults)
    for name, made in recipe.sections.items():
        # A section that is false is left out, as if it were not there.
        if table.get(name, False) is not False and name not in skip:
            built[name] = _section(name, made, table[name], faults)
    absent = [name for name in _needed(recipe.study) if name not in {*built, *skip, "plan"}]
    if absent:
        faults.add(f"The recipe lacks [{'], ['.join(absent)}]", hint="Add it to the recipe.")
    return built


def _section(name: str, made: type[Any], given: Any, faults: _Faults) -> Any:
    """Build a section, or note what is wrong with it."""
    if not isinstance(given, dict):
        faults.add(f"[{name}] is not a section")
        return None
    known = [field.name for field in dataclasses.fields(made)]
    if unknown := [f"unknown field {name}.{field}" for field in given if field not in known]:
        faults.add(*unknown, hint=f"[{name}] has: {', '.join(known)}.")
        return None
    if missing := [field for field in _needed(made) if field not in given]:
        faults.add(f"[{name}] lacks {', '.join(missing)}", hint="Add it to the recipe.")
        return None
    try:
        section = made(**given)
        if isinstance(section, TrainingSettings):
            section.check_options()
    except PlanError as error:
        # Sections give the path of a field themselves; plans know nothing of recipes.
        said = [_in_plan(fault, known) if name == "plan" else fault for fault in error.faults]
        faults.add(*said, hint=error.hint)
        return None
    except (TypeError, ValueError) as fault:
        faults.add(f"[{name}] has a value of the wrong kind: {str(fault).removesuffix('.')}")
        return None
    return section


def _in_plan(fault: str, fields: list[str]) -> str:
    """Return a fault of a plan with the path of the field that it begins with."""
    first = _NAME.match(fault)
    return f"plan.{fault}" if first is not None and first[0] in fields else fault


def _cells(table: dict[str, Any]) -> list[Cell]:
    """Return the combinations of a recipe's grid, where it has one."""
    if "grid" not in table:
        return []
    if not isinstance(table["grid"], dict):
        raise PlanError("[grid] is not a section.")
    return grid_cells(table["grid"])


def _variants(
    table: dict[str, Any], recipe: Recipe, cells: list[Cell], faults: _Faults
) -> dict[str, Any]:
    """Build the studies to compare with, and what they and the study itself are called."""
    fields: dict[str, Any] = {}
    if recipe.compares:
        fields |= {name: table[name] for name in ("label", "title") if name in table}
        others = [(with_cell(table, cell), {"label": cell.label}) for cell in cells[1:]]
        others += [(table, changes) for changes in table.get("compare") or []]
        variants = [_variant(recipe, own, changes, "compare", faults) for own, changes in others]
        fields["compare"] = tuple(variants)
    if cells:
        fields |= {"grid": table["grid"], "label": cells[0].label}
    if recipe.varies:
        named = [{**changes, "label": label} for label, changes in _named_variants(table)]
        variants = [_variant(recipe, table, changes, "variant", faults) for changes in named]
        fields["variants"] = tuple(variants)
    if recipe.remedy is not None:
        fields |= {name: table[name] for name in ("label", "title") if name in table}
        tables = table.get("remedy") or []
        fields["remedy"] = tuple(
            _remedy(recipe, recipe.remedy, table, given, faults) for given in tables
        )
    return fields


def _remedy(
    recipe: Recipe, made: type[Any], table: dict[str, Any], given: dict[str, Any], faults: _Faults
) -> Remedy[Any] | None:
    """Build a remedy: the fields of its kind, and the study with the fields that it changes."""
    label, own = given["label"], [f.name for f in dataclasses.fields(made)]
    known = {"label", "plan", *own, *recipe.sections}
    unknown = [name for name in given if name not in known]
    faults.add(
        *(f"remedy {label!r}: unknown field {name!r}{_nearest(name, own)}" for name in unknown),
        hint=f"A remedy has: label, {', '.join(own)}, and the fields of the recipe that it "
        "changes, such as training.clip.",
    )
    changes = {name: value for name, value in given.items() if name not in {*own, *unknown}}
    variant = _variant(recipe, table, changes, "remedy", faults)
    found = _Faults()
    kind = {name: value for name, value in given.items() if name in own}
    settings = _section("remedy", made, kind, found)
    with faults.gathered(f"remedy {label!r}: "):
        found.raise_all()
    if variant is None or settings is None:
        return None
    return Remedy(label, settings, variant.study)


def _nearest(name: str, known: list[str]) -> str:
    """Return the known name that is most like this one, as a question, or nothing."""
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _named_variants(table: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return list((table.get("variants") or {}).items())


def _variant(
    recipe: Recipe, table: dict[str, Any], changes: dict[str, Any], named: str, faults: _Faults
) -> Variant[Any] | None:
    """Build a study to compare with: the recipe's own, with some fields replaced."""
    names = ("question", "plan", *recipe.sections)
    alone = {name: table[name] for name in names if name in table}
    changes = dict(changes)
    label = changes.pop("label")
    plan = changes.get("plan")
    if isinstance(plan, dict) and plan.get("kind") in recipe.plans:
        known = {f.name for f in dataclasses.fields(recipe.plans[plan["kind"]])} | {"kind"}
        alone["plan"] = {name: alone["plan"][name] for name in alone["plan"] if name in known}
    with faults.gathered(f"{named} {label!r}: "):
        return Variant(label, study_from(_changed(alone, changes)))
    return None


def _changed(table: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the recipe with some fields replaced, without the share of another kind of canary."""
    own, other = table.get("canaries"), changes.get("canaries")
    if isinstance(own, dict) and isinstance(other, dict):
        if other.get("kind", own.get("kind")) not in BY_LOSS:
            own = {name: value for name, value in own.items() if name != "share"}
        table = {**table, "canaries": own}
    own, other = table.get("model"), changes.get("model")
    if isinstance(own, dict) and isinstance(other, dict):
        # Another network has not the name, the function or the file of this one.
        gone = {"name", "sha256"} if other.get("maker") is not None else set()
        gone |= {"maker", "sha256"} if other.get("name") is not None else set()
        table = {**table, "model": {name: own[name] for name in own if name not in gone}}
    return with_changes(table, changes)


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
