"""What a search for residual memory stores: disturbances, and canaries that come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from remnant.errors import InvalidInput
from remnant.records.typed import optional
from remnant.studies.shared.curves import Curve, Point, bare_curve

Kind = Literal["noise", "relearn"]
Reading = Literal["comes back", "hidden", "still found", "not found"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """Attack success after the models were disturbed in one way.

    Attributes:
        kind: Weight noise, or relearning on similar examples.
        amount: Scale of the noise, or steps of relearning.
        after, after_low, after_high: Success on the disturbed models.
        rise, rise_low, rise_high: That less the success on the undisturbed models.
        pvalue_after, pvalue_rise: Above chance, and risen; both corrected for their number.
        test_accuracy: Of disturbed classifiers; None of other models.
        aa, aa_low, aa_high: Success on the A/A twins after the same; None where there are none.
        exposure, exposure_low, exposure_high: Mean exposure of the canaries in the disturbed
            models, in bits; None of classifiers.
        validation_bits: What a validation token costs disturbed language models, in bits.
        character_error_rate: Of disturbed recognisers of speech, on validation utterances.
        useful: Whether the disturbed models do their task better than chance, by the rule of the
            gate; None where that was not tested.
    """

    kind: Kind
    amount: float
    label: str
    after: float
    after_low: float
    after_high: float
    rise: float
    rise_low: float
    rise_high: float
    pvalue_after: float
    pvalue_rise: float
    reading: Reading
    test_accuracy: float | None = optional()
    aa: float | None = optional()
    aa_low: float | None = optional()
    aa_high: float | None = optional()
    exposure: float | None = optional()
    exposure_low: float | None = optional()
    exposure_high: float | None = optional()
    validation_bits: float | None = optional()
    character_error_rate: float | None = optional()
    useful: bool | None = optional()

    @property
    def success(self) -> Point:
        """Success on the disturbed models with its interval, at an amount of disturbance."""
        return Point(self.amount, self.after, self.after_low, self.after_high)

    @property
    def control(self) -> Point | None:
        """The same on the A/A twins; None where there are none."""
        if self.aa is None:
            return None
        return Point(self.amount, self.aa, self.aa_low, self.aa_high)

    @property
    def exposed(self) -> Point | None:
        """Mean exposure in the disturbed models; None of classifiers."""
        if self.exposure is None:
            return None
        return Point(self.amount, self.exposure, self.exposure_low, self.exposure_high)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualMemory:
    """Attack success before and after each disturbance; the row ``hidden`` of a record.

    Attributes:
        before, before_low, before_high: Success on the undisturbed models.
        lag: The lag at which they were disturbed.
        draws: Noise draws of each scale.
        neighbours: Examples in the relearning.
        exposure, exposure_low, exposure_high, validation_bits, character_error_rate: Of the
            undisturbed models, as in ``Disturbance``.
    """

    before: float
    before_low: float
    before_high: float
    pvalue_before: float | None = None
    success: str
    fpr: float | None
    chance: float
    confidence: float
    trials: int
    method: str
    lag: float
    draws: int
    neighbours: int
    disturbances: tuple[Disturbance, ...]
    exposure: float | None = optional()
    exposure_low: float | None = optional()
    exposure_high: float | None = optional()
    validation_bits: float | None = optional()
    character_error_rate: float | None = optional()

    def __post_init__(self) -> None:
        if not self.disturbances:
            raise InvalidInput(".disturbances is empty")

    @property
    def undisturbed(self) -> Point:
        """Success on the undisturbed models."""
        return Point(self.lag, self.before, self.before_low, self.before_high)

    @property
    def exposed(self) -> Point | None:
        """Mean exposure in the undisturbed models; None of classifiers."""
        if self.exposure is None:
            return None
        return Point(self.lag, self.exposure, self.exposure_low, self.exposure_high)

    @property
    def curve(self) -> Curve:
        """What success is and how it is printed; its one point is the undisturbed models."""
        return bare_curve(
            (self.undisturbed,), success=self.success, chance=self.chance, fpr=self.fpr
        )

    def of(self, kind: Kind) -> tuple[Disturbance, ...]:
        """The disturbances of one kind."""
        return tuple(row for row in self.disturbances if row.kind == kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Returning:
    """Canaries lost at some checkpoints and found at a later one: ``measures.Returning`` as stored.

    Attributes:
        checkpoints: How many were scanned.
        reference: Which models determine how many come back by chance.
    """

    canaries: int
    lost: int
    returned: int
    chance_returned: int
    excess: float
    excess_low: float
    excess_high: float
    pvalue: float
    fpr: float | None = None
    strict_fpr: float | None = None
    quiet: int | None = None
    trials: int | None = None
    confidence: float
    method: str | None = None
    checkpoints: int
    reference: str

    @property
    def significant(self) -> bool:
        """Whether more came back than do by chance."""
        return self.pvalue <= 1.0 - self.confidence + 1e-12
