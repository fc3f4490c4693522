"""What sequences cost a trial's members, less what others pay: the calibrations of a study."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from remnant.errors import RecordError
from remnant.probes import WINDOW_SIGNALS
from remnant.records import Record
from remnant.studies.text_forgetting.recipe import (
    CALIBRATIONS,
    SequenceStudy,
)

Floats = NDArray[np.float64]
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
