"""Exposure curves of a study of sequences, by every calibration that its arrays allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from remnant.measures import ExposureCurve, Verdict, exposure_curve
from remnant.measures.forgetting.safe_after import SafeAfter as Safe
from remnant.records import Record
from remnant.studies.text_forgetting.calibration import (
    allowed,
    attacker,
    calibrated_bits,
    moved,
    subtracted,
)
from remnant.studies.text_forgetting.recipe import (
    ATTACKERS,
    CALIBRATIONS,
    SequenceStudy,
)
from remnant.studies.text_forgetting.result import (
    ByCalibration,
    CalibrationRow,
    ExposureAt,
    ExposureCurveResult,
    SafeAfter,
)

Floats = NDArray[np.float64]
_LEVELS = (2.0, 3.0, 5.0)  # bits
_INFLUENCE = "no attacker has the trial's own twin: what was measured is the influence of planting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacked:
    """An exposure curve by the study's own calibration, and those by every other one.

    Attributes:
        own: By the study's own calibration.
        others: By the others that the arrays allow.
        study: Whose curves they are.
    """

    own: ExposureCurve
    others: Mapping[str, ExposureCurve]
    study: SequenceStudy

    @property
    def attackers(self) -> dict[str, ExposureCurve]:
        """The curves of the other attackers, by who they are."""
        return {
            attacker(self.study, calibration): curve
            for calibration, curve in self.others.items()
            if calibration in ATTACKERS
        }

    def verdict(self) -> Verdict:
        """The verdict of the study's own curve, which passes only where all attackers' do.

        By influence nothing is decided, since no attacker can measure the curve.
        """
        attack = self.study.attack
        if attack.calibration == "influence":
            return _undecided(self.own.verdict(attack.limit))
        named = attacker(self.study, attack.calibration)
        return self.own.verdict(attack.limit, attacker=named, others=self.attackers)

    def stored(self) -> ExposureCurveResult:
        """The study's own curve in its stored form."""
        attack = self.study.attack
        safe = self.own.safe_after(attack.limit, others=self.attackers)
        if attack.calibration == "influence":
            safe = replace(safe, lag=None, reason=f"{_INFLUENCE[0].upper()}{_INFLUENCE[1:]}.")
        return exposure_result(self.own, attack.limit, safe)

    def table(self) -> ByCalibration:
        """The first and the last lag by every calibration."""
        own = self.study.attack.calibration
        curves = {own: self.own, **self.others}
        return ByCalibration(
            own=own,
            lags=(float(self.own.lags[0]), float(self.own.lags[-1])),
            rows=tuple(
                CalibrationRow(
                    name=name,
                    said=subtracted(self.study, name),
                    attacker=name in ATTACKERS,
                    start=_point(curves[name], 0),
                    end=_point(curves[name], -1),
                )
                for name in CALIBRATIONS
                if name in curves
            ),
        )


def _point(curve: ExposureCurve, at: int) -> ExposureAt:
    return ExposureAt(
        value=float(curve.value[at]),
        low=float(curve.low[at]),
        high=float(curve.high[at]),
        median=float(curve.median[at]),
    )


def attacked_by_all(
    record: Record,
    name: str,
    study: SequenceStudy,
    *,
    canaries: NDArray[np.intp] | slice = slice(None),
) -> Attacked:
    """Return the mean exposure of some planted canaries by every calibration.

    Args:
        record, name, study, canaries: As for ``twin_exposure``.

    Raises:
        RecordError: As for ``allowed``.
    """
    curves = {
        calibration: twin_exposure(
            record, name, study, "planted", canaries=canaries, calibration=calibration
        )
        for calibration in allowed(record, name, study)
    }
    own = curves.pop(study.attack.calibration)
    return Attacked(own=own, others=curves, study=study)


def _undecided(verdict: Verdict) -> Verdict:
    """The verdict of a curve by influence: INCONCLUSIVE, whatever its bounds are."""
    return replace(
        verdict,
        outcome="INCONCLUSIVE",
        sentence=f"{verdict.sentence} But {_INFLUENCE}. Set attack.calibration to twins, "
        "references or none.",
        claim=f"No claim: {_INFLUENCE}.",
    )


def exposure_result(curve: ExposureCurve, limit: float, safe: Safe) -> ExposureCurveResult:
    """Return an exposure curve in its stored form, with its answer to ``safe_after``."""
    control = curve.positive_control()
    levels = sorted({bits for bits in (*_LEVELS, float(limit)) if bits < curve.ceiling})
    return ExposureCurveResult(
        chance=curve.null,
        confidence=curve.confidence,
        method=curve.method,
        trials=curve.trials,
        n_canaries=curve.n_canaries,
        n_references=curve.n_references,
        ceiling=curve.ceiling,
        lags=tuple(curve.lags.tolist()),
        value=tuple(curve.value.tolist()),
        low=tuple(curve.low.tolist()),
        high=tuple(curve.high.tolist()),
        median=tuple(curve.median.tolist()),
        saturated=tuple(curve.saturated.tolist()),
        per_trial=tuple(tuple(row) for row in curve.per_trial.tolist()),
        steps_to={f"{bits:g}": curve.steps_to(bits) for bits in levels},
        safe_after=SafeAfter(**asdict(safe)),
        found=control.found,
        found_at=control.lag,
    )


def costs_by_lag(
    record: Record, name: str, study: SequenceStudy, arm: str, calibration: str | None = None
) -> tuple[Floats, Floats, Floats]:
    """Lags, and costs of canaries and references at them."""
    seen, references = calibrated_bits(record, name, study, arm, calibration=calibration)
    lags = np.asarray(study.lags(), dtype=np.float64)
    there = moved(record, study) if arm == "aa" else np.ones(len(lags), dtype=bool)
    return lags[there], seen[there], references[there]


def twin_exposure(
    record: Record,
    name: str,
    study: SequenceStudy,
    arm: str,
    *,
    canaries: NDArray[np.intp] | slice = slice(None),
    references: NDArray[np.intp] | slice = slice(None),
    calibration: str | None = None,
) -> ExposureCurve:
    """Return the mean exposure of some canaries in one arm, among some references.

    Args:
        record, name, study, arm, calibration: As for ``calibrated_bits``.
        canaries, references: Their numbers; all, if not given.
    """
    lags, seen, unseen = costs_by_lag(record, name, study, arm, calibration)
    return exposure_curve(
        canary_losses=seen[..., canaries],
        reference_losses=unseen[..., references],
        lags=lags,
        confidence=study.attack.confidence,
        rng=np.random.default_rng([study.plan.seed, 2]),
        control_at_zero=True,
    )
