"""Residual memory of classifiers: their scores after disturbances and at later checkpoints."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence
from remnant.measures import Success
from remnant.plans import PoisonPlan
from remnant.records import Record
from remnant.records.typed import Absent, put_parts
from remnant.studies.forgetting.recipe import ForgettingStudy
from remnant.studies.forgetting.twin_scores import other_twins, twin_scores
from remnant.studies.residual_memory.measured import NOT_ASKED, or_absent, residual_memory, scan
from remnant.studies.residual_memory.result import ResidualMemory, Returning
from remnant.studies.residual_memory.settings import HiddenSettings

Floats = NDArray[np.float64]


def measure_hidden(record: Record, study: ForgettingStudy, signals: Floats) -> None:
    """Put what disturbances and later checkpoints bring back into the record."""
    hidden: ResidualMemory | Absent = Absent(NOT_ASKED)
    if study.hidden is not None:
        disturbed = record.array("primary.hidden"), record.array("primary.hidden_accuracy")
        hidden = or_absent(_residual_memory, study, study.hidden, signals, *disturbed)
    put_parts(record, hidden=hidden, returning=or_absent(_scan, study, signals))


def _residual_memory(
    study: ForgettingStudy,
    settings: HiddenSettings,
    signals: Floats,
    disturbed: Floats,
    accuracy: Floats,
) -> ResidualMemory:
    """Attack the disturbed models, each beside its twin under the same disturbance."""
    plan, attack = study.plan, study.attack
    # Slot 0 is the checkpoint that scores are calibrated by, then the last lag, then the rest.
    slots = np.concatenate([signals[:1], signals[-1:], disturbed])
    sides = {arm: twin_scores(plan, slots, arm, attack.calibration) for arm in plan.arms}
    return residual_memory(
        settings,
        planted=(sides["planted"], sides["twin"]),
        unplanted=(sides["aa"], sides["twin"]) if plan.aa else None,
        success=cast(Success, attack.success),
        fpr=attack.fpr,
        confidence=attack.confidence,
        seed=plan.seed,
        lag=float(plan.watch_steps if not attack.lags else max(attack.lags)),
        columns=[{"test_accuracy": float(own.mean())} for own in accuracy],
    )


def _scan(study: ForgettingStudy, signals: Floats) -> Returning:
    """Look for canaries that are lost at some checkpoints and found at a later one."""
    plan, method = study.plan, study.attack.calibration
    if plan.aa:
        null, reference = twin_scores(plan, signals, "aa", method), "A/A twins"
    else:
        needed = 3 if isinstance(plan, PoisonPlan) and method != "none" else 2
        if plan.trials < needed:
            raise NotEnoughEvidence(
                "without A/A twins, how many canaries come back by chance is read off other "
                f"trials' twins; that takes at least {needed} trials.",
                hint="Give the plan A/A twins (aa = true), or more trials.",
            )
        null = twin_scores(plan, signals, other_twins(plan), method)
        reference = "other trials' twins"
    return scan(
        seen=twin_scores(plan, signals, "planted", method),
        null=null,
        unseen=twin_scores(plan, signals, "twin", method),
        fpr=study.attack.fpr,
        confidence=study.attack.confidence,
        reference=reference,
    )
