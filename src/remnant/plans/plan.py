"""What every plan is: frozen fields, checked once, with a fingerprint."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar

from remnant.errors import PlanError, require
from remnant.plans.bounds import field_faults, one_of
from remnant.plans.fingerprint import fingerprint, lasting, plan_fields
from remnant.plans.order import FULL_BATCHES, SAMPLINGS, generator

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
