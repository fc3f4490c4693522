"""From the scores of one run's canaries to its curves and a verdict; touches no model."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from remnant.measures import OneRunForgetting, Success, one_run_forgetting
from remnant.plans import StaggeredPlan
from remnant.records import Record
from remnant.records.typed import put_parts
from remnant.studies.one_run.recipe import StaggeredStudy
from remnant.studies.one_run.result import COLUMNS, AttackerAtEnd, OneRunCurves
from remnant.studies.registry import task_of
from remnant.studies.shared.gates import put_verdict
from remnant.studies.shared.result_parts import Tested

_SETTINGS = (
    *("rate", "fpr", "confidence", "chance", "calibrated", "method", "n_unseen"),
    *("attacker", "references"),
)


def measure_one_run(record: Record, study: StaggeredStudy) -> None:
    """Measure the run's curves, judge them, and put both into the record; no canary is in it.

    Args:
        record: Holds ``scores``, and ``task``: a model that did not learn its task does not pass.
        study: The study that was run.
    """
    measured = one_run_curve(study, record.array("scores"))
    put_parts(record, one_run=curves_of(study, measured))
    put_verdict(
        record,
        lambda: measured.verdict(study.attack.limit),
        task=record.results().get("task"),
    )
    put_parts(record, scope=_scope(study))


def one_run_curve(study: StaggeredStudy, scores: Any) -> OneRunForgetting:
    """Return the curve of the run; lag 0 is right after a canary's last use."""
    plan, attack = study.plan, study.attack
    return one_run_forgetting(
        scores=scores,
        checkpoints=np.array(study.probe_steps()) - 1,
        last_seen=plan.last_seen,
        first_seen=plan.first_seen,
        cohorts=plan.cohort_of,
        repeats=plan.repeats_of,
        success=cast(Success, attack.success),
        fpr=attack.fpr,
        confidence=attack.confidence,
        calibrate=attack.calibrate,
        rng=np.random.default_rng([plan.seed, 2]),
    )


def curves_of(study: StaggeredStudy, measured: OneRunForgetting) -> OneRunCurves:
    """Return the curves as a record keeps them, one entry a cohort and checkpoint."""
    plan = study.plan
    return curves_from(
        measured, starts=tuple(plan.starts), window=plan.window, steps=plan.total_steps
    )


def curves_from(
    measured: OneRunForgetting,
    *,
    starts: tuple[int, ...],
    window: int,
    steps: int,
    ends: tuple[int, ...] | None = None,
) -> OneRunCurves:
    """Return the curves as a record keeps them.

    Args:
        measured: What was measured.
        starts, window, steps, ends: See ``OneRunCurves``.
    """
    control = measured.positive_control()
    return OneRunCurves(
        **{name: getattr(measured, name) for name in _SETTINGS},
        starts=starts,
        window=window,
        steps=steps,
        **{name: _known(getattr(measured, name)) for name in ("lags", *COLUMNS)},
        ends=ends,
        found=control.found,
        found_at=control.lag,
        others=attackers_at_end(measured),
    )


def attackers_at_end(
    measured: OneRunForgetting, kept: NDArray[np.bool_] | None = None
) -> tuple[AttackerAtEnd, ...]:
    """Return the other attackers on what is judged, as a record keeps them.

    Args:
        measured: What was measured.
        kept: Which groups of canaries are judged; None for all.
    """
    rows = []
    for other in measured.evidence.others:
        low, high = other.lower(measured.confidence), other.upper(measured.confidence)
        at = int(np.argmax(high if kept is None else np.where(kept, high, -np.inf)))
        rows.append(
            AttackerAtEnd(
                name=other.name,
                success=float(other.success[at]),
                low=float(low[at]),
                high=float(high[at]),
            )
        )
    return tuple(rows)


def _known(column: NDArray[Any]) -> Any:
    """Return a column as a tuple of numbers, with None for what is not finite."""
    return tuple(value if math.isfinite(value) else None for value in column.tolist())


def _not_long_after(plan: StaggeredPlan) -> tuple[str, ...]:
    """Return the line of the scope for a run that ends soon after its last window, if it does."""
    after = plan.total_steps - (plan.starts[-1] + plan.window)
    if len(plan.starts) == 1 or after > plan.window:
        return ()
    return (
        f"the model more than {after} steps after the last window, which hides canaries of earlier "
        "windows for a while",
    )


def _scope(study: StaggeredStudy) -> Tested:
    plan, words = study.plan, task_of(study).scope(study)
    return Tested(
        tested=(
            f"STAGGERED: one run of {plan.total_steps} steps of {words.model} on "
            f"{words.data}, {plan.canaries - plan.never} {words.planted} in {len(plan.starts)} "
            f"windows of {plan.window} steps",
            *words.scored,
            f"{plan.never} canaries drawn the same way, never planted: controls of every window",
        ),
        not_tested=(
            "how much another run would differ: there was one",
            *words.untested,
            "adversaries who know the batch order, see gradients, or query the model while it "
            "trains",
            "whether what the attack no longer finds is gone or only hidden: no weight noise, no "
            "relearning, no scan of later checkpoints was run",
            f"lags beyond the end of the run, {words.others}",
            *_not_long_after(plan),
        ),
    )
