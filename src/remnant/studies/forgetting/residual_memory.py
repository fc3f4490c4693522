"""Residual memory of classifiers: their scores after disturbances and at later checkpoints."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence
from remnant.measures import Success
from remnant.measures.forgetting.instance_scores import InstanceCalibration
from remnant.records import Record
from remnant.records.typed import Absent, put_parts
from remnant.studies.forgetting.attack_curves import Attacks
from remnant.studies.forgetting.attack_scores import RunScores
from remnant.studies.forgetting.recipe import ForgettingStudy, controls_as_neighbours
from remnant.studies.residual_memory.measured import NOT_ASKED, or_absent, residual_memory, scan
from remnant.studies.residual_memory.result import ResidualMemory, Returning
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.image_canaries import columns

Floats = NDArray[np.float64]


def measure_hidden(record: Record, study: ForgettingStudy, run: Attacks) -> None:
    """Put what disturbances and later checkpoints bring back into the record."""
    hidden: ResidualMemory | Absent = Absent(NOT_ASKED)
    if study.hidden is not None:
        hidden = or_absent(_residual_memory, record, study, study.hidden)
    put_parts(record, hidden=hidden, returning=or_absent(_scan, study, run))


def _residual_memory(
    record: Record, study: ForgettingStudy, settings: HiddenSettings
) -> ResidualMemory:
    """Attack the disturbed models; references and twins had the same disturbance."""
    plan, attack = study.plan, study.attack
    signals, disturbed = record.array("primary.signals"), record.array("primary.hidden")
    # Slot 0 is the checkpoint that scores are calibrated by, then the last lag, then the rest.
    slots = np.concatenate([signals[:1], signals[-1:], disturbed])
    scores = RunScores.of(
        plan,
        slots,
        attack.signal,
        record.array("primary.near_copies"),
        barred=_trained_on(study, settings, slots.shape[-1]),
    )
    calibration: Any = attack.calibration
    if attack.against == "twin":
        planted = scores.against_twin(calibration)
        unplanted = scores.against_twin(calibration, arm="aa") if plan.aa else None
        groups = None
    else:
        found = scores.instance(calibration)
        planted = found.seen, found.unseen
        groups = tuple(scores.clusters(side) for side in found.groups)
        unplanted = cast(Any, (found.control_seen, found.control_unseen))
    return residual_memory(
        settings,
        planted=planted,
        unplanted=unplanted,
        groups=groups,
        success=cast(Success, attack.success),
        fpr=attack.fpr,
        confidence=attack.confidence,
        seed=plan.seed,
        lag=float(plan.watch_steps if not attack.lags else max(attack.lags)),
        columns=[
            {"test_accuracy": float(own.mean())} for own in record.array("primary.hidden_accuracy")
        ],
    )


def _trained_on(
    study: ForgettingStudy, settings: HiddenSettings, examples: int
) -> NDArray[np.bool_]:
    """Which examples any model was trained on by a disturbance."""
    barred = np.zeros(examples, dtype=bool)
    for trial in range(study.plan.trials):
        first = columns(study.plan, trial, controls=True).start
        barred[first : first + controls_as_neighbours(study.plan, settings)] = True
    return barred


def _scan(study: ForgettingStudy, run: Attacks) -> Returning:
    """Look for canaries that are lost at some checkpoints and found at a later one.

    How many come back by chance is read off examples that the same models never saw, or, where the
    study compares with the twin, off its A/A twin.
    """
    if study.attack.against == "twin":
        if not study.plan.aa:
            raise NotEnoughEvidence("the plan has no A/A twins")
        calibration = str(study.attack.calibration)
        seen, unseen = run.scores.against_twin(calibration)
        null, reference = run.scores.against_twin(calibration, arm="aa")[0], "A/A twins"
    else:
        scores = run.scores.instance(cast(InstanceCalibration, study.attack.calibration))
        seen, reference = scores.seen, "never-planted examples in the same models"
        null, unseen = _divided(scores.unseen, seen.shape[2])
    return scan(
        seen=seen,
        null=null,
        unseen=unseen,
        fpr=study.attack.fpr,
        confidence=study.attack.confidence,
        reference=reference,
    )


def _divided(unseen: Floats, count: int) -> tuple[Floats, Floats]:
    """Take ``count`` of each trial's never-planted examples, evenly spread, and leave the rest."""
    n = unseen.shape[2]
    if n <= count:
        raise NotEnoughEvidence(
            f"{n} never-planted examples are too few to show how many of {count} come back by "
            "chance"
        )
    taken = np.zeros(n, dtype=bool)
    taken[np.linspace(0, n - 1, count).round().astype(int)] = True
    return unseen[..., taken], unseen[..., ~taken]
