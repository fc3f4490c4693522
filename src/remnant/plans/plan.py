"""What every plan is: frozen fields, checked once, with a fingerprint."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from remnant.plans.fingerprint import fingerprint, lasting, plan_fields

PRECISIONS = ("float32", "tf32", "bf16", "float64")
ORDER, INIT, DROPOUT, FILL, PLACES, SPLIT, SHADOW_ORDER, SHADOW_INIT, COHORTS = range(
    1, 10
)  # what a key is for, so that no two uses meet
FEATURE_ORDER, FEATURE_INIT, FEATURE_DROPOUT, FEATURE_CANARIES = range(10, 14)


def whole(plan: Any, name: str, least: int, faults: list[str]) -> None:
    """Note a fault unless the field is a whole number >= ``least``; store it as ``int``."""
    value = getattr(plan, name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        faults.append(f"{name}={value!r} is not a whole number")
    elif value < least:
        faults.append(f"{name}={value} is less than {least}")
    else:
        object.__setattr__(plan, name, int(value))


def whole_row(plan: Any, name: str, least: int, faults: list[str]) -> None:
    """Note a fault unless the field is a list of whole numbers >= ``least``; store a tuple."""
    given = getattr(plan, name)
    row = given.tolist() if isinstance(given, np.ndarray) else given
    plain = isinstance(row, list | tuple) and all(
        isinstance(v, int | np.integer) and not isinstance(v, bool) and v >= least for v in row
    )
    if not plain or len(row) == 0:
        faults.append(f"{name}={given!r} is not a list of whole numbers of at least {least}")
    else:
        object.__setattr__(plan, name, tuple(int(v) for v in row))


def one_of(plan: Any, name: str, allowed: tuple[Any, ...], faults: list[str]) -> None:
    """Note a fault unless the field is one of ``allowed``."""
    value = getattr(plan, name)
    if value not in allowed or isinstance(value, bool) != isinstance(allowed[0], bool):
        faults.append(f"{name}={value!r} is not one of {', '.join(map(repr, allowed))}")


class Plan:
    """Frozen data that says who sees what, when, in which precision."""

    kind: ClassVar[str]

    @property
    def fingerprint(self) -> str:
        """A digest of the plan's kind and fields: it moves exactly when one of them does."""
        return fingerprint(lasting(self, self.to_dict()))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return plan_fields(self)
