"""What a study with inserted canaries keeps of its training, whatever it trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import CanarySet, write_canary_sets
from remnant.plans import InsertPlan
from remnant.records import Record

CANARIES = "canaries.jsonl"


def keep_insertions(
    record: Record, plan: InsertPlan, sets: Sequence[CanarySet], *, examples: int
) -> NDArray[Any]:
    """Keep when canaries were used, and the canaries with their trial.

    Returns:
        How often each was used, ``(trials, canaries)``.
    """
    ledger = plan.ledger(examples=examples)
    record.put_ledger(
        {name: getattr(ledger, name) for name in ("member", "canary", "step", "uses")}
    )
    marked = [dataclasses.replace(drawn, trial=at) for at, drawn in enumerate(sets, start=1)]
    write_canary_sets(marked, record.folder / CANARIES)
    uses = np.bincount(ledger.canary, weights=ledger.uses, minlength=plan.trials * plan.canaries)
    return uses.reshape(plan.trials, plan.canaries)
