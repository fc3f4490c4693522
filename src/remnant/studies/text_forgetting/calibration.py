"""What sequences cost a trial's members, less what others pay: the study's calibration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from remnant.probes import WINDOW_SIGNALS
from remnant.records import Record
from remnant.studies.text_forgetting.recipe import SequenceStudy

Floats = NDArray[np.float64]
_BITS = WINDOW_SIGNALS.index("bits")


def calibrated(
    study: SequenceStudy, bits: Floats, arm: str, others: Floats | None
) -> tuple[Floats, Floats]:
    """Return the calibrated costs of canaries and references under one arm.

    Args:
        study: Whose plan and calibration they are.
        bits: ``(slots, members, canaries and references)``.
        arm: Its name.
        others: What reference models pay on average, ``(slots or 1, trials, canaries and
            references)``; None where they do not calibrate.

    Returns:
        Bits of the shapes ``(slots, trials, canaries)`` and ``(slots, trials, references)``.
    """
    plan = study.plan
    own = bits[:, plan.members_of(arm)]
    if study.attack.calibration == "twin":
        own = own - bits[:, plan.members_of("twin")]
    elif others is not None:
        own = own - others
    return own[..., : plan.canaries], own[..., plan.canaries :]


def calibrated_bits(
    record: Record, name: str, study: SequenceStudy, arm: str
) -> tuple[Floats, Floats]:
    """Return the calibrated costs of canaries and references under one arm.

    Returns:
        Bits of the shapes ``(lags, trials, canaries)`` and ``(lags, trials, references)``.
    """
    others = None
    if study.attack.calibration == "references":
        others = record.array(f"{name}.reference_bits").mean(axis=1)
    return calibrated(study, record.array(f"{name}.signals")[:, :, _BITS], arm, others)


def moved(record: Record, study: SequenceStudy) -> NDArray[np.bool_]:
    """At which lags the A/A twin is another model than the one that its costs are calibrated by.

    INJECT's twins are one model until the canaries were planted: at lag 0 all their costs are
    equal, and nothing can be compared.
    """
    seen, references = calibrated_bits(record, "primary", study, "aa")
    return np.asarray(np.any(np.concatenate([seen, references], axis=2) != 0.0, axis=(1, 2)))
