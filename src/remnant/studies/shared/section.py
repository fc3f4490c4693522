"""What every section of a recipe is: a frozen dataclass whose fields are checked against bounds."""

from __future__ import annotations

from typing import Any, ClassVar

from remnant.errors import PlanError, require
from remnant.measures.statistics.checks import check_gate_confidence
from remnant.plans.bounds import field_faults


class Section:
    """A section of a recipe beside ``[plan]``; all of its faults are listed at once.

    Subclasses are frozen dataclasses and name their section: ``class DataSettings(Section,
    name="data")``. The annotations of their fields say what is allowed (``plans/bounds.py``).
    """

    NAME: ClassVar[str]
    CODE: ClassVar[tuple[str, ...]] = ()  # fields that name functions of the user's own
    HINT: ClassVar[str] = "Fix the recipe."

    def __init_subclass__(cls, *, name: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        cls.NAME = name or cls.NAME

    def __post_init__(self) -> None:
        faults = field_faults(self, prefix=f"{self.NAME}.")
        faults = faults or [*self._gate_faults(), *self._contradictions()]
        require(faults, error=PlanError, hint=self.HINT)

    def _gate_faults(self) -> list[str]:
        """A section with a limit and a confidence is that of a gate."""
        faults: list[str] = []
        if hasattr(self, "limit") and hasattr(self, "confidence"):
            check_gate_confidence(f"{self.NAME}.confidence", self.confidence, faults)
        return faults

    def _contradictions(self) -> list[str]:
        """Return what is wrong with fields together, where each is within its bound."""
        return []
