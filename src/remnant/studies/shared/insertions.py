"""What a study with inserted canaries keeps of its training, whatever it trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import CanarySet, write_canary_sets
from remnant.plans import InsertPlan
from remnant.population import Checkpoint, Fit
from remnant.records import Record
from remnant.studies.exposure.audit import Progress
from remnant.studies.shared.classifiers import how_trained
from remnant.studies.shared.recording import Recorded
from remnant.studies.shared.settings import Execution

CANARIES = "canaries.jsonl"


def saving_and_progress(
    study: Recorded, record: Record, execution: Execution, steps: int, progress: Progress | None
) -> dict[str, Any]:
    """Return where a fit saves itself and whom it tells, as its arguments."""
    return {
        "checkpoint": Checkpoint(
            record.folder / "checkpoint-training.safetensors",
            seconds=execution.checkpoint_seconds,
            key=f"{study.fingerprint}/{record.data_fingerprint}",
        ),
        "on_step": None if progress is None else lambda done: progress("training", done, steps),
    }


def keep_insertions(
    record: Record, plan: InsertPlan, fit: Fit, sets: Sequence[CanarySet], *, examples: int
) -> NDArray[Any]:
    """Keep how it was trained, when canaries were used, and the canaries with their trial.

    Returns:
        How often each was used, ``(trials, canaries)``.
    """
    record.update_execution(how_trained("training", fit))
    ledger = plan.ledger(examples=examples)
    record.put_ledger(
        {name: getattr(ledger, name) for name in ("member", "canary", "step", "uses")}
    )
    marked = [dataclasses.replace(drawn, trial=at) for at, drawn in enumerate(sets, start=1)]
    write_canary_sets(marked, record.folder / CANARIES)
    uses = np.bincount(ledger.canary, weights=ledger.uses, minlength=plan.trials * plan.canaries)
    return uses.reshape(plan.trials, plan.canaries)
