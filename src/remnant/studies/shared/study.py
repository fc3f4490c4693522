"""What all studies have in common, and what a recipe of each may hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import NoneType
from typing import Any, ClassVar, Protocol, get_args, get_type_hints, runtime_checkable


@runtime_checkable
class Study(Protocol):
    """A plan with everything else that changes its numbers.

    Attributes:
        QUESTION: The name under which the registry has its question.
        plan: Who sees what, and when.
    """

    QUESTION: ClassVar[str]

    @property
    def plan(self) -> Any:
        """Who sees what, and when."""
        ...

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data: its question, then one table for each section."""
        ...


class SectionedStudy:
    """A study whose plain data is its question, its plan, and one table for each section.

    Studies are frozen dataclasses that inherit from it and name their sections in ``SECTIONS``.
    """

    QUESTION: ClassVar[str]
    SECTIONS: ClassVar[tuple[str, ...]]
    plan: Any

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data: its question, then one table for each section."""
        sections = {name: getattr(self, name) for name in self.SECTIONS}
        tables = {name: section_fields(part) for name, part in sections.items() if part is not None}
        return {"question": self.QUESTION, "plan": self.plan.to_dict()} | tables

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        from remnant.plans.plan import fingerprint, lasting  # NumPy, which a list need not

        return fingerprint(lasting(self, self.to_dict()))


def section_fields(section: Any) -> dict[str, Any]:
    """Return the fields of a section as JSON has them: a tuple becomes a list."""
    fields = dataclasses.asdict(section)
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a recipe of one question may hold, read off the fields of its study.

    Attributes:
        study: The dataclass that a recipe becomes; its fields are the plan and the sections.
        example: Values of fields without a default, by section, for a recipe to begin with.
        remedy: The dataclass of the fields of a ``[[remedy]]`` beside its label and the fields of
            the recipe that it changes; None where the question has no remedies.
    """

    study: type[Any]
    example: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    remedy: type[Any] | None = None

    @property
    def plans(self) -> dict[str, type[Any]]:
        """The dataclass of each kind of plan, by the value of ``plan.kind``."""
        return {plan.kind: plan for plan in _types(self.study, "plan")}

    @property
    def sections(self) -> dict[str, type[Any]]:
        """The dataclass of each section beside ``[plan]``."""
        return {name: _types(self.study, name)[0] for name in self.study.SECTIONS}

    @property
    def compares(self) -> bool:
        """Whether ``label``, ``title`` and ``[[compare]]`` are allowed."""
        return "compare" in self.study.__dataclass_fields__

    @property
    def varies(self) -> bool:
        """Whether ``[variants.NAME]`` is allowed."""
        return "variants" in self.study.__dataclass_fields__

    @property
    def grids(self) -> bool:
        """Whether ``[grid]`` is allowed."""
        return "grid" in self.study.__dataclass_fields__

    @property
    def top(self) -> tuple[str, ...]:
        """The names that may occur at the top level of a recipe."""
        names: tuple[str, ...] = ("label", "title", "compare") if self.compares else ()
        names += () if self.remedy is None else ("label", "title", "remedy")
        names += ("variants",) if self.varies else ()
        names += ("grid",) if self.grids else ()
        return ("question", *names, "plan", *self.sections)


def _types(study: Any, name: str) -> list[Any]:
    """Return the types that a field of a study takes, without None."""
    annotation = _annotations(study)[name]
    return [part for part in get_args(annotation) or (annotation,) if part is not NoneType]


@cache
def _annotations(study: Hashable) -> dict[str, Any]:
    return get_type_hints(study)
