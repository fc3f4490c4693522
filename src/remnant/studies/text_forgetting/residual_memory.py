"""Residual memory of sequences: exposure after disturbances, and canaries that come back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence
from remnant.measures import exposure_curve
from remnant.records import Record
from remnant.records.typed import Absent, put_parts
from remnant.studies.residual_memory.measured import NOT_ASKED, or_absent, residual_memory, scan
from remnant.studies.residual_memory.result import ResidualMemory, Returning
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.gates import not_learnt
from remnant.studies.text_forgetting.calibration import calibrated_bits, hidden_bits, moved
from remnant.studies.text_forgetting.recipe import SequenceStudy
from remnant.studies.text_forgetting.training import sequence_task

Floats = NDArray[np.float64]
_SHOWN = ("validation_bits", "character_error_rate")  # of a task, in the rows of disturbances


def put_residual_memory(record: Record, study: SequenceStudy) -> None:
    """Put what disturbances and later checkpoints bring back into the record.

    Args:
        record: Holds the arrays, with ``[hidden]`` also ``primary.hidden``, what canaries and
            references cost undisturbed and disturbed members, and ``primary.hidden_task``; and
            ``task``.
        study: The study's own part, without its variants.
    """
    hidden: ResidualMemory | Absent = Absent(NOT_ASKED)
    if study.hidden is not None:
        hidden = or_absent(_residual_memory, record, study, study.hidden)
    put_parts(record, hidden=hidden, returning=or_absent(_scan, record, study))


def _residual_memory(
    record: Record, study: SequenceStudy, settings: HiddenSettings
) -> ResidualMemory:
    """Attack the disturbed models, calibrated as the study is."""
    plan, attack = study.plan, study.attack
    numbers = record.array("primary.hidden_task")
    canaries, references = hidden_bits(record, study, "planted")
    exposed = exposure_curve(
        canary_losses=canaries,
        reference_losses=references,
        lags=np.arange(len(canaries)),  # the slots: before, then each disturbance
        confidence=attack.confidence,
        rng=np.random.default_rng([plan.seed, 2]),
        control_at_zero=True,
    )
    task, row = sequence_task(study), record.results().get("task") or {}
    columns: list[dict[str, Any]] = []
    for slot, own in enumerate(numbers[:, plan.members_of("planted")]):
        fields = task.fields(own, row)
        shown = {name: fields[name] for name in _SHOWN if name in fields}
        ends = {"exposure": exposed.value, "exposure_low": exposed.low}
        ends["exposure_high"] = exposed.high
        columns.append({name: float(column[slot]) for name, column in ends.items()} | shown)
        if slot:
            columns[-1]["useful"] = not not_learnt(fields)
    unplanted = None
    if plan.aa and moved(record, study)[-1]:
        own_canaries, own_references = hidden_bits(record, study, "aa")
        unplanted = -own_canaries, -own_references
    return residual_memory(
        settings,
        planted=(-canaries, -references),
        unplanted=unplanted,
        success="auc",
        fpr=attack.fpr,
        confidence=attack.confidence,
        seed=plan.seed,
        lag=float(study.lags()[-1]),
        columns=columns[1:],
        **columns[0],
    )


def _scan(record: Record, study: SequenceStudy) -> Returning:
    """Look for canaries that are lost at some checkpoints and found at a later one.

    A canary's score is how many references cost more *in the same model*. So what one model learnt
    about such sequences in general does not make its canaries come back.
    """
    plan, attack = study.plan, study.attack
    there = np.ones(len(study.lags()), dtype=bool)
    if plan.aa:
        arm, reference = "aa", "A/A twins"
        there = moved(record, study)
        if not there.any():
            raise NotEnoughEvidence("the A/A twins have not parted within the lags measured.")
    elif study.attack.calibration == "influence":
        raise NotEnoughEvidence(
            "how many canaries come back by chance is read off models that saw none; each trial's "
            "own twin calibrates its costs, and the plan has no A/A twins.",
            hint='Give the plan A/A twins (aa = true), or set attack.calibration = "twins".',
        )
    else:
        arm, reference = "twin", "unplanted twins"
    canaries, references = calibrated_bits(record, "primary", study, "planted")
    null, null_references = calibrated_bits(record, "primary", study, arm)
    return scan(
        seen=beaten(canaries, references)[there],
        null=beaten(null, null_references)[there],
        unseen=beaten(references, references)[there],
        fpr=attack.fpr,
        confidence=attack.confidence,
        reference=reference,
    )


def beaten(costs: Floats, references: Floats) -> Floats:
    """Return how many references cost more than each sequence, in the same checkpoint and trial.

    Args:
        costs: ``(checkpoints, trials, n)``.
        references: ``(checkpoints, trials, references)``.

    Example:
        >>> beaten(np.array([[[1.0, 2.0]]]), np.array([[[0.0, 2.0, 3.0]]])).tolist()
        [[[2.0, 1.0]]]
    """
    made = np.empty(costs.shape)
    for checkpoint, trials in enumerate(np.sort(references, axis=2)):
        for trial, row in enumerate(trials):
            cheaper = np.searchsorted(row, costs[checkpoint, trial], side="right")
            made[checkpoint, trial] = len(row) - cheaper
    return made
