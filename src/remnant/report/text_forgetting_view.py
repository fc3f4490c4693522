"""The view of a run that asked how fast a language model forgets random-token canaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remnant.records import Record
from remnant.report.curve import Curve, Point, read_curve
from remnant.report.fields import Fields
from remnant.report.forgetting_view import (
    Comparison,
    Traditional,
    read_comparison,
    read_traditional,
)
from remnant.report.run_view import NotMeasured, Results, RunView, run_fields

_SUCCESSES = ("curve", "curve_tpr", "curve_auc", "curve_accuracy")


@dataclass(frozen=True, slots=True)
class ExposureCurve:
    """Mean exposure against lag.

    Attributes:
        curve: In bits; its chance is the mean exposure of what was never planted.
        n_canaries, n_references: Of each trial.
        ceiling: The most bits that so many references can show.
        saturated: Share of the canaries at the ceiling, at each lag.
        safe_after: From which lag on the limit is shown to hold, or None.
        safe_reason: The same in a sentence, or why it was not judged.
    """

    curve: Curve
    n_canaries: int
    n_references: int
    ceiling: float
    saturated: tuple[float, ...]
    safe_after: float | None
    safe_reason: str

    @property
    def peak(self) -> Point:
        """The lag at which the canaries are most exposed."""
        return max(self.curve.points, key=lambda point: point.value or 0.0)


@dataclass(frozen=True, slots=True)
class TextForgettingView(RunView):
    """Everything a report shows of one such run.

    Attributes:
        exposure: Of the canaries in the models that saw them.
        control: Of the same in the A/A twins, which did not.
        by_uses: Exposure by how often canaries were seen.
        successes: How well they are told from sequences that were never planted, by record name.
        traditional: Accuracy and loss on the canaries.
        comparison: The same study with other settings.
        calibration: What a sequence's cost was compared with.
    """

    exposure: ExposureCurve | NotMeasured
    control: ExposureCurve | NotMeasured
    by_uses: Comparison | NotMeasured
    successes: tuple[tuple[str, Curve | NotMeasured], ...]
    traditional: Traditional | NotMeasured
    comparison: Comparison | NotMeasured
    calibration: str


def read_text_forgetting(record: Record) -> TextForgettingView:
    """Read such a run's record into a view.

    Raises:
        RecordError: A result is there but not in the form it should have.
    """
    results = Results(record)
    primary = results.raw("curve_exposure")

    def success(name: str) -> Curve | NotMeasured:
        return results.read(name, lambda found: read_curve(found, name=name))

    def compared(name: str) -> Comparison | NotMeasured:
        return results.read(name, lambda found: read_comparison(found, primary))

    attack = record.plan.get("attack")
    return TextForgettingView(
        **run_fields(record, results),
        exposure=results.read("curve_exposure", _exposure("curve_exposure")),
        control=results.read("curve_exposure_aa", _exposure("curve_exposure_aa")),
        by_uses=compared("by_uses"),
        successes=tuple((name, success(name)) for name in _SUCCESSES),
        traditional=results.read("traditional", read_traditional),
        comparison=compared("compare"),
        calibration=str(attack.get("calibration", "")) if isinstance(attack, Mapping) else "",
    )


def _exposure(name: str) -> Any:
    def read(found: Mapping[str, Any]) -> ExposureCurve:
        curve = read_curve(found, name=name)
        fields = Fields(found, name=name)
        saturated = fields.numbers("saturated")
        fields.same_length(lags=curve.points, saturated=saturated)
        safe = fields.inner("safe_after")
        made = ExposureCurve(
            curve=curve,
            n_canaries=fields.whole("n_canaries"),
            n_references=fields.whole("n_references"),
            ceiling=fields.number("ceiling"),
            saturated=saturated,
            safe_after=None if safe.has("absent") else safe.number_or_none("lag"),
            safe_reason=_absent(safe) if safe.has("absent") else safe.text("reason"),
        )
        fields.check()
        return made

    return read


def _absent(safe: Fields) -> str:
    reason = safe.text("absent").removesuffix(".")
    return f"From which lag on the limit holds is not shown: {reason}."
