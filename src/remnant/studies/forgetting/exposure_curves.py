"""Exposure curves of a study of sequences, by every calibration that its arrays allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from remnant.errors import RecordError
from remnant.measures import ExposureCurve, Verdict, exposure_curve
from remnant.measures.forgetting.safe_after import SafeAfter as Safe
from remnant.probes import WINDOW_SIGNALS
from remnant.records import Record
from remnant.studies.forgetting.sequence_result import (
    ByCalibration,
    CalibrationRow,
    ExposureAt,
    ExposureCurveResult,
    SafeAfter,
)
from remnant.studies.forgetting.text_recipe import (
    ATTACKERS,
    CALIBRATIONS,
    SequenceStudy,
)

Floats = NDArray[np.float64]
_LEVELS = (2.0, 3.0, 5.0)  # bits
_INFLUENCE = "no attacker has the trial's own twin: what was measured is the influence of planting"
_BITS = WINDOW_SIGNALS.index("bits")


def calibrated_bits(
    record: Record, name: str, study: SequenceStudy, arm: str, *, calibration: str | None = None
) -> tuple[Floats, Floats]:
    """Return the calibrated costs of canaries and references under one arm at every lag.

    Args:
        record: Holds the arrays.
        name, study: A part of the study.
        arm: Whose costs.
        calibration: One of ``allowed``; the study's own, if not given.

    Returns:
        Bits of the shapes ``(lags, trials, canaries)`` and ``(lags, trials, references)``.
    """
    return _calibrated(
        study,
        record.array(f"{name}.signals")[:, :, _BITS],
        arm,
        calibration or study.attack.calibration,
        twins=lambda: record.array(f"{name}.twins_bits"),
        references=lambda: record.array(f"{name}.reference_bits"),
    )


def hidden_bits(record: Record, study: SequenceStudy, arm: str) -> tuple[Floats, Floats]:
    """Return the calibrated costs under one arm, undisturbed and after each disturbance.

    The twins of other trials were disturbed too; reference models stay as they are at the last lag.

    Returns:
        Bits of the shapes ``(slots, trials, canaries)`` and ``(slots, trials, references)``.
    """
    return _calibrated(
        study,
        record.array("primary.hidden"),
        arm,
        study.attack.calibration,
        twins=lambda: record.array("primary.hidden_twins"),
        references=lambda: record.array("primary.reference_bits")[-1:],
    )


def _calibrated(
    study: SequenceStudy,
    bits: Floats,
    arm: str,
    calibration: str,
    *,
    twins: Callable[[], Floats],
    references: Callable[[], Floats],
) -> tuple[Floats, Floats]:
    """Return the calibrated costs of canaries and references under one arm.

    Args:
        study: Whose members they are.
        bits: ``(slots, members, canaries and references)``.
        arm: Its name.
        calibration: One of ``CALIBRATIONS``.
        twins: Reads what other trials' twins pay, ``(slots, trials, canaries and references)``.
        references: Reads what reference models pay, ``(slots or 1, models, trials, canaries and
            references)``.
    """
    plan = study.plan
    own = bits[:, plan.members_of(arm)]
    if calibration == "influence":
        own = own - bits[:, plan.members_of("twin")]
    elif calibration == "twins":
        own = own - twins()
    elif calibration == "references":
        own = own - references().mean(axis=1)
    return own[..., : plan.canaries], own[..., plan.canaries :]


def allowed(record: Record, name: str, study: SequenceStudy) -> tuple[str, ...]:
    """Return the calibrations that the arrays of one part allow, as ``CALIBRATIONS`` lists them.

    Raises:
        RecordError: The arrays lack what other trials' twins pay: an earlier version trained them.
    """
    held = record.array_names()
    needs = {"twins": f"{name}.twins_bits", "references": f"{name}.reference_bits"}
    if study.other_twins and needs["twins"] not in held:
        raise RecordError(
            f"{record.folder} lacks the array {needs['twins']}: an earlier version trained these "
            "models and did not store what the other trials' unplanted twins pay.",
            hint="Run the study in a new --out folder, or finish this run with the version that "
            "began it.",
        )
    return tuple(
        calibration
        for calibration in CALIBRATIONS
        if calibration not in needs or needs[calibration] in held
    )


def attacker(study: SequenceStudy, calibration: str) -> str:
    """Return who can calibrate like this, in words; nobody can by influence."""
    attack = study.attack
    return {
        "twins": f"an attacker with {study.other_twins} models trained without these "
        f"{study.THINGS}",
        "references": f"an attacker with {attack.reference_models} reference models",
        "none": "an attacker with the model alone",
        "influence": "nobody",
    }[calibration]


def subtracted(study: SequenceStudy, calibration: str) -> str:
    """Return what is done to each cost, as the end of a sentence."""
    attack = study.attack
    return {
        "twins": f"less the mean of {study.other_twins} models trained without these "
        f"{study.THINGS}, the unplanted twins of the other trials",
        "references": f"less the mean of {attack.reference_models} reference models, each trained "
        f"on a random {attack.fraction:.0%} of the clean {study.CLEAN}",
        "none": "as it is",
        "influence": "less what the trial's own unplanted twin pays for it, which no attacker has",
    }[calibration]


def moved(record: Record, study: SequenceStudy) -> NDArray[np.bool_]:
    """At which lags the A/A twin is another model than the one that its costs are calibrated by.

    INJECT's twins are one model until the canaries were planted: by influence all costs are equal
    at lag 0, and nothing can be compared.
    """
    seen, references = calibrated_bits(record, "primary", study, "aa")
    return np.asarray(np.any(np.concatenate([seen, references], axis=2) != 0.0, axis=(1, 2)))


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
