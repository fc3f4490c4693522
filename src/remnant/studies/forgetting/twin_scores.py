"""The attack's scores of a trial's members on its own canaries, calibrated as the plan allows."""

from __future__ import annotations

from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from remnant.measures import calibrated_scores
from remnant.plans import InjectPlan, PoisonPlan
from remnant.probes import SIGNALS
from remnant.studies.shared.image_canaries import columns

Calibration = Literal["logit", "loss", "none"]
Floats = NDArray[np.float64]


def twin_scores(
    plan: InjectPlan | PoisonPlan,
    signals: Floats,
    arm: str | NDArray[np.int64],
    calibration: str,
    *,
    controls: bool = False,
) -> Floats:
    """Return the scores of one arm on its trial's canaries, ``(slots, trials, canaries)``.

    INJECT is calibrated by the checkpoint that a trial's members share. POISON's members share
    none, so a trial is calibrated by the mean of the other trials' unplanted twins in the same
    slot, which saw no canary at all; ``twins`` does that with INJECT too.

    Args:
        plan: Whose members they are.
        signals: Shape ``(1 + slots, members, signals, canaries)``; the first is the checkpoint.
        arm: Its name, or the member that is scored in each trial.
        calibration: ``logit``, ``loss``, ``twins`` (log-odds) or ``none``.
        controls: Score the controls instead of the canaries.
    """
    by_twins = calibration == "twins" or isinstance(plan, PoisonPlan)
    method = cast(Calibration, "logit" if calibration == "twins" else calibration)
    values = signals[:, :, SIGNALS.index("loss" if method == "loss" else "log_odds")]
    twins = plan.members_of("twin")
    made = []
    for trial, member in enumerate(plan.members_of(arm) if isinstance(arm, str) else arm):
        here = columns(plan, trial, controls=controls)
        own = values[1:, member, here]
        if method == "none":
            made.append(calibrated_scores(signal=own, method=method))
            continue
        if by_twins:
            others = np.setdiff1d(twins, [twins[trial], member])
            reference = values[1:, others][:, :, here].mean(axis=1)
        else:
            reference = np.broadcast_to(values[0, member, here], own.shape)
        made.append(calibrated_scores(signal=own, checkpoint_signal=reference, method=method))
    return np.stack(made, axis=1)


def other_twins(plan: InjectPlan | PoisonPlan) -> NDArray[np.int64]:
    """Return for each trial the next trial's unplanted twin: a model that saw none of its canaries.

    Where canaries are not fresh, it saw none either: it is unplanted.
    """
    return np.roll(plan.members_of("twin"), -1)
