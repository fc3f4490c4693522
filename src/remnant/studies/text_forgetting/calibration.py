"""What sequences cost a trial's members, less what others pay: the calibrations of a study."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from remnant.plans import InjectPlan, PoisonPlan
from remnant.probes import WINDOW_SIGNALS
from remnant.records import Record
from remnant.studies.text_forgetting.recipe import CALIBRATIONS, SequenceStudy

Floats = NDArray[np.float64]
_BITS = WINDOW_SIGNALS.index("bits")


def calibrated(
    plan: InjectPlan | PoisonPlan, bits: Floats, arm: str, compared: Floats | None
) -> tuple[Floats, Floats]:
    """Return the calibrated costs of canaries and references under one arm.

    Args:
        plan: Whose members they are.
        bits: ``(slots, members, canaries and references)``.
        arm: Its name.
        compared: What is subtracted from each trial's costs, ``(slots or 1, trials, canaries and
            references)``; None for nothing.

    Returns:
        Bits of the shapes ``(slots, trials, canaries)`` and ``(slots, trials, references)``.
    """
    own = bits[:, plan.members_of(arm)]
    if compared is not None:
        own = own - compared
    return own[..., : plan.canaries], own[..., plan.canaries :]


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
    calibration = calibration or study.attack.calibration
    bits = record.array(f"{name}.signals")[:, :, _BITS]
    compared = None
    if calibration == "influence":
        compared = bits[:, study.plan.members_of("twin")]
    elif calibration == "twins":
        compared = record.array(f"{name}.twins_bits")
    elif calibration == "references":
        compared = record.array(f"{name}.reference_bits").mean(axis=1)
    return calibrated(study.plan, bits, arm, compared)


def hidden_bits(record: Record, study: SequenceStudy, arm: str) -> tuple[Floats, Floats]:
    """Return the calibrated costs under one arm, undisturbed and after each disturbance.

    The twins of other trials were disturbed too; reference models stay as they are at the last lag.

    Returns:
        Bits of the shapes ``(slots, trials, canaries)`` and ``(slots, trials, references)``.
    """
    calibration = study.attack.calibration
    bits, compared = record.array("primary.hidden"), None
    if calibration == "influence":
        compared = bits[:, study.plan.members_of("twin")]
    elif calibration == "twins":
        compared = record.array("primary.hidden_twins")
    elif calibration == "references":
        compared = record.array("primary.reference_bits")[-1:].mean(axis=1)
    return calibrated(study.plan, bits, arm, compared)


def allowed(record: Record, name: str) -> tuple[str, ...]:
    """Return the calibrations that the arrays of one part allow, as ``CALIBRATIONS`` lists them."""
    held = record.array_names()
    needs = {"twins": f"{name}.twins_bits", "references": f"{name}.reference_bits"}
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
