"""What every plan is: frozen fields, checked once, with a digest of its kind and of every field."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import Field, field, fields, is_dataclass
from typing import Annotated, Any, ClassVar

from remnant.errors import PlanError, require
from remnant.plans.bounds import field_faults, one_of
from remnant.plans.schedule import FULL_BATCHES, SAMPLINGS, generator

_LATER = "added later"


def added_later(default: Any) -> Any:
    """Declare a field that a plan or section did not have in an earlier version.

    At its default the field is left out of fingerprints, so that runs and pools of the earlier
    version are still known as the same. The default must do what was done before the field existed.

    Args:
        default: The value, which must not be mutable.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Settings:
        ...     limit: float = 0.7
        ...     share: float | None = added_later(None)
        >>> lasting(Settings(), {"limit": 0.7, "share": None})
        {'limit': 0.7}
        >>> lasting(Settings(share=0.2), {"limit": 0.7, "share": 0.2})
        {'limit': 0.7, 'share': 0.2}
    """
    return field(default=default, metadata={_LATER: True})


def lasting(owner: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain form of ``owner`` without fields that were added later and are at default.

    Args:
        owner: A plan, or a study whose sections are dataclasses.
        values: Its plain form, a section a table.
    """
    made = dict(values)
    for known in fields(owner):
        value = getattr(owner, known.name)
        if _at_later_default(known, value):
            made.pop(known.name, None)
        elif is_dataclass(value) and isinstance(made.get(known.name), Mapping):
            made[known.name] = lasting(value, made[known.name])
    return made


def _at_later_default(known: Field[Any], value: Any) -> bool:
    return bool(known.metadata.get(_LATER)) and value == known.default


def plan_fields(plan: Any) -> dict[str, Any]:
    """Return the plan as plain data, ``kind`` first, ready for JSON."""
    values = {field.name: getattr(plan, field.name) for field in fields(plan)}
    return {"kind": plan.kind, **{name: plain_value(value) for name, value in values.items()}}


def fingerprint(values: Any) -> str:
    """Digest plain data: the same data give the same 16 hexadecimal digits on every machine.

    Example:
        >>> fingerprint({"a": 1}) == fingerprint({"a": 1}) != fingerprint({"a": 2})
        True
    """
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plain_value(value: Any) -> Any:
    """Return a field's value as JSON has it: a tuple becomes a list."""
    return list(value) if isinstance(value, tuple) else value


PRECISIONS = ("float32", "tf32", "bf16", "float64")
ORDER, INIT, DROPOUT, FILL, PLACES, SPLIT, SHADOW_ORDER, SHADOW_INIT, COHORTS = range(
    1, 10
)  # what a key is for, so that no two uses meet
FEATURE_ORDER, FEATURE_INIT, FEATURE_DROPOUT, FEATURE_CANARIES, NOISE, UTTERANCES = range(10, 16)
SEQUENCES = 16

# Plans that put canaries into certain places of a batch need batches without empty places.
FullBatches = Annotated[str, one_of(FULL_BATCHES)]
Sampling = Annotated[str, one_of(SAMPLINGS)]
Precision = Annotated[str, one_of(PRECISIONS)]


class Plan:
    """Frozen data that says who sees what, when, in which precision."""

    kind: ClassVar[str]
    seed: int

    def __post_init__(self) -> None:
        faults = field_faults(self) or self._contradictions()
        require(faults, error=PlanError, hint="Fix the plan's fields.")

    def _contradictions(self) -> list[str]:
        """Return what is wrong with fields together, where each is within its bound."""
        return []

    @property
    def fingerprint(self) -> str:
        """A digest of the plan's kind and fields: it moves exactly when one of them does."""
        return fingerprint(lasting(self, self.to_dict()))

    @property
    @abstractmethod
    def members(self) -> int:
        """How many models the plan trains."""

    @property
    def noise_seeds(self) -> list[int]:
        """The noise of each member's private training: every member has its own.

        Twins that shared their noise would differ by more than one private model gives away.
        """
        return [
            int(generator(self.seed, NOISE, member).integers(2**31))
            for member in range(self.members)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return plan_fields(self)
