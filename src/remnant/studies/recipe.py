"""Reads a recipe: a TOML file that is a study, every field checked."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any, TypeVar

from remnant.errors import InvalidInput, PlanError, require
from remnant.plans import InjectPlan, PoisonPlan
from remnant.studies.forgetting import ForgettingStudy
from remnant.studies.settings import (
    AttackSettings,
    CanarySettings,
    DataSettings,
    ModelSettings,
    TrainingSettings,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PLANS: dict[str, type[InjectPlan] | type[PoisonPlan]] = {
    "inject": InjectPlan,
    "poison": PoisonPlan,
}
_SECTIONS: dict[str, type] = {
    "data": DataSettings,
    "canaries": CanarySettings,
    "model": ModelSettings,
    "training": TrainingSettings,
    "attack": AttackSettings,
}
_TOP = ("question", "compare_repeats", "plan", *_SECTIONS)
Made = TypeVar("Made")


def read_recipe(path: Path) -> ForgettingStudy:
    """Read a recipe file.

    Raises:
        InvalidInput: The file is missing or is not TOML.
        PlanError: A section, field or value is unknown; all faults are listed at once.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as fault:
        raise InvalidInput(f"The recipe {path} is not there.", hint="Check its path.") from fault
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput(f"The recipe {path} cannot be read: {fault}.") from fault
    except tomllib.TOMLDecodeError as fault:
        raise InvalidInput(f"The recipe {path} is not TOML: {fault}.") from fault
    return study_from(table)


def study_from(table: dict[str, Any]) -> ForgettingStudy:
    """Build a study from plain data, such as a recipe or a record's plan."""
    faults = [f"unknown section or field {name!r}" for name in table if name not in _TOP]
    if table.get("question", "forgetting") != "forgetting":
        faults.append(f"question={table['question']!r} is not 'forgetting'")
    plan = table.get("plan")
    plan = dict(plan) if isinstance(plan, dict) else {}
    kind = str(plan.pop("kind", None))
    repeats = table.get("compare_repeats") or []
    if not isinstance(repeats, list) or any(
        isinstance(r, bool) or not isinstance(r, int) for r in repeats
    ):
        faults.append(f"compare_repeats={repeats!r} is not a list of whole numbers")
    if kind not in _PLANS:
        faults.append(f"plan.kind={kind!r} is not one of {', '.join(_PLANS)}")
    else:
        faults += _unknown("plan", plan, _PLANS[kind])
    for name, section in _SECTIONS.items():
        faults += _unknown(name, table.get(name) or {}, section)
    require(faults, error=PlanError, hint=f"A recipe has: {', '.join(_TOP)}.")
    sections: dict[str, Any] = {
        name: _build(name, section, table.get(name) or {}) for name, section in _SECTIONS.items()
    }
    return ForgettingStudy(
        plan=_build("plan", _PLANS[kind], plan),
        compare_repeats=tuple(repeats),
        **sections,
    )


def _unknown(name: str, given: Any, made: type) -> list[str]:
    if not isinstance(given, dict):
        return [f"[{name}] is not a section"]
    known = {f.name for f in dataclasses.fields(made)}
    return [f"unknown field {name}.{field}" for field in given if field not in known]


def _build(name: str, made: type[Made], given: dict[str, Any]) -> Made:
    needed = [
        f.name
        for f in dataclasses.fields(made)  # type: ignore[arg-type]
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    missing = [field for field in needed if field not in given]
    if missing:
        raise PlanError(f"[{name}] lacks {', '.join(missing)}.", hint="Add it to the recipe.")
    try:
        return made(**given)
    except (TypeError, ValueError) as fault:
        if isinstance(fault, PlanError):
            raise
        raise PlanError(f"[{name}] has a value of the wrong kind: {fault}.") from fault
