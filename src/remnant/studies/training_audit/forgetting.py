"""How fast one training forgets: its curve by recency, from scores by step and a ledger of uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import OneRunForgetting, Success
from remnant.measures.forgetting.recency import (
    Uses,
    kept_references,
    recency_curve,
    windows_of_last_use,
)
from remnant.records.typed import Absent
from remnant.studies.one_run.measure import curves_from
from remnant.studies.training_audit.result import Forgetting

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_STREAM = 4  # of random numbers, beside those of the audit


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredForgetting:
    """A curve as it was measured, and as a record keeps it.

    Attributes:
        measured: Judges a limit.
        part: Of the result.
    """

    measured: OneRunForgetting
    part: Forgetting


def measured_forgetting(
    *,
    scores: Mapping[int, ArrayLike],
    uses: Uses,
    levels: Ints,
    seed: int,
    planned: Ints | None = None,
    success: Success = "auc",
    fpr: float = 0.1,
    confidence: float = 0.95,
    references: ArrayLike | None = None,
) -> MeasuredForgetting | Absent:
    """Return the curve of a training, or why there is none.

    The curve is that of ``one_run_forgetting`` for windows of last use, and its intervals have the
    coverage of that function.

    Args:
        scores: One number an example, higher = more likely seen, by how many updates the model had.
        uses: When examples were in batches; those that never were are the controls.
        levels: How often each example was planted; each level has a curve of its own.
        seed: Draws the resamples behind the intervals.
        planned: The window of each example that the plan meant, -1 for never. It counts where the
            last uses of one window all come before those of the next.
        success, fpr, confidence, references: See ``one_run_forgetting``.
    """
    # An update counts from 0 in the ledger; after it the model has had one more.
    by_update = {updates - 1: values for updates, values in scores.items()}
    steps = sorted(by_update)
    reason = _nothing_to_measure(uses, steps)
    if reason:
        return Absent(reason)
    windows, begun = _windows(uses, steps, levels, planned)
    if not _is_spread(windows, uses, steps):
        last = uses.last[uses.last >= 0]
        return Absent(
            f"all canaries were last used between steps {last.min()} and {last.max()}, which is "
            "between two scorings, so that they have one lag; score more often (every=), or use "
            'plan="staggered"'
        )
    kept = (windows >= 0) | (uses.last < 0)  # what was used after the last scoring is no control
    models = kept_references(references, kept)
    try:
        measured = recency_curve(
            scores={step: np.asarray(by_update[step])[kept] for step in steps},
            last_seen=uses.last[kept],
            first_seen=uses.first[kept],
            repeats=levels[kept],
            cohorts=windows[kept],
            references=models,
            calibrate=steps[0] < uses.first[uses.first >= 0].min(),
            success=success,
            fpr=fpr,
            confidence=confidence,
            rng=np.random.default_rng([seed, _STREAM]),
        )
    except (InvalidInput, NotEnoughEvidence) as fault:
        return Absent(str(fault))
    spans = _spans(windows, begun, uses.last)
    measured = replace(measured, planted_from=np.array(spans["starts"], float)[measured.cohort])
    control = measured.positive_control()
    counts = uses.counts[windows >= 0]
    return MeasuredForgetting(
        measured,
        Forgetting(
            curves=curves_from(measured, steps=steps[-1] + 1, **spans),
            control=control.reason,
            found=control.found,
            fewest=int(counts.min()),
            most=int(counts.max()),
        ),
    )


def _nothing_to_measure(uses: Uses, steps: list[int]) -> str:
    """Why there is no curve; empty where there may be one."""
    if not (uses.last >= 0).any():
        return "no canary was in any batch"
    if (uses.last >= 0).all():
        return "there are no controls: every canary was in a batch"
    if not steps or steps[-1] < uses.last[uses.last >= 0].min():
        return "canaries were not scored after they were used"
    return ""


def _windows(uses: Uses, steps: list[int], levels: Ints, planned: Ints | None) -> tuple[Ints, Ints]:
    """The window of each example, and the step of the use with which it begins.

    The window is that of the plan where the training kept it, and begins with a first use if
    those of later windows come later; else it is one of last uses.
    """
    late = uses.last > steps[-1]
    if planned is not None:
        used = np.where((uses.last >= 0) & ~late, planned, -1)
        names = np.unique(used[used >= 0])
        of_each = [uses.last[used == name] for name in names]
        apart = all(earlier.max() < later.min() for earlier, later in pairwise(of_each))
        if apart and len(names) > 1:
            firsts = [int(uses.first[used == name].min()) for name in names]
            rising = all(earlier < later for earlier, later in pairwise(firsts))
            windows = np.where(used >= 0, np.searchsorted(names, used), -1)
            return windows, uses.first if rising else uses.last
    return windows_of_last_use(uses.last, steps, levels=levels), uses.last


def _is_spread(windows: Ints, uses: Uses, steps: list[int]) -> bool:
    """Whether there are two lags or more."""
    if windows.max() > 0:
        return True
    end = int(uses.last[windows == 0].max())
    return sum(step >= end for step in steps) > 1


def _spans(windows: Ints, begun: Ints, last: Ints) -> dict[str, Any]:
    """The steps of each window, from the use with which it begins to the last of its last uses."""
    of_each = [windows == number for number in range(int(windows.max()) + 1)]
    starts = tuple(int(begun[window].min()) for window in of_each)
    ends = tuple(int(last[window].max()) + 1 for window in of_each)
    longest = max(end - start for start, end in zip(starts, ends, strict=True))
    return {"starts": starts, "ends": ends, "window": longest}
