"""The record of a run in which nothing was planted, but batch order was logged."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.integrations.training.state import AuditState
from remnant.measures import Success
from remnant.measures.forgetting.one_run_attackers import read_references
from remnant.measures.forgetting.recency import Uses, levels_of_use
from remnant.plans.schedule import Ledger
from remnant.records.outcomes import finding_row, gate_row
from remnant.records.typed import Absent
from remnant.studies.exposure.result import ExposureGate
from remnant.studies.shared.result_parts import Finding, Tested
from remnant.studies.training_audit.forgetting import MeasuredForgetting, measured_forgetting
from remnant.studies.training_audit.result import Sightings, TrainingAuditResult

Floats = NDArray[np.float64]
_NOTHING_PLANTED = Absent("nothing was planted: the examples are those of the training")


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredLedger:
    """A logged run as it was measured.

    Attributes:
        result: All numbers and the verdict.
        scores: By how many updates the model had.
        uses: When examples were in batches.
        ledger: ``(lines, 3)``: step, example and count.
    """

    result: TrainingAuditResult
    scores: dict[int, Floats]
    uses: Uses
    ledger: NDArray[np.int64]


def measured_ledger(
    scores: Mapping[int, ArrayLike],
    ledger: ArrayLike | Ledger,
    *,
    limit: float | None,
    success: Success,
    fpr: float,
    confidence: float,
    seed: int,
    void: str = "",
    references: ArrayLike | None = None,
) -> MeasuredLedger:
    """Measure a logged run and write nothing; see ``Audit.from_ledger``.

    ``void`` says why examples and controls cannot be compared, where that is known: the outcome is
    then INCONCLUSIVE, with a limit and without.
    """
    table = _read_scores(scores)
    examples = len(next(iter(table.values())))
    rows = (
        np.column_stack([ledger.step, ledger.canary, ledger.uses])
        if isinstance(ledger, Ledger)
        else ledger
    )
    uses = Uses.of(rows, examples=examples)
    _check_references(references, table)
    planned = ledger.windows if isinstance(ledger, Ledger) else None
    if planned is not None and planned.shape != (examples,):
        raise InvalidInput(
            f"ledger has windows of {planned.size} examples, and {examples} are scored.",
            hint="Score all examples of the plan, in its order.",
        )
    curve = measured_forgetting(
        scores=table,
        uses=uses,
        levels=levels_of_use(uses.counts),
        seed=seed,
        planned=planned,
        success=success,
        fpr=fpr,
        confidence=confidence,
        references=references,
    )
    if isinstance(curve, Absent):
        raise NotEnoughEvidence(f"There is no curve: {curve.reason}.")
    stored = np.asarray(rows, dtype=np.int64).reshape(len(np.asarray(rows)), -1)
    if stored.shape[1] == 2:
        stored = np.column_stack([stored, np.ones(len(stored), dtype=np.int64)])
    return MeasuredLedger(_result(curve, uses, limit=limit, void=void), table, uses, stored)


def ledger_audit(
    scores: Mapping[int, ArrayLike],
    ledger: ArrayLike | Ledger,
    *,
    out: Path,
    limit: float | None,
    success: Success,
    fpr: float,
    confidence: float,
    seed: int,
    void: str = "",
    references: ArrayLike | None = None,
) -> tuple[TrainingAuditResult, Path]:
    """Measure a logged run and write its record and report; see ``measured_ledger``.

    Returns:
        The result, and the page.
    """
    measured = measured_ledger(
        scores,
        ledger,
        limit=limit,
        success=success,
        fpr=fpr,
        confidence=confidence,
        seed=seed,
        void=void,
        references=references,
    )
    examples = len(measured.uses.counts)
    settings = {"success": success, "fpr": fpr, "confidence": confidence}
    digest = _digest(measured.scores, measured.ledger, references)
    state = AuditState(
        out,
        plan={"kind": "ledger", "examples": examples, "seed": seed, "data": digest, **settings},
        settings={"limit": limit},
        canary_set=None,
    )
    state.begin(rows=examples, copies=int(measured.uses.counts.sum()), device="cpu")
    state.write(measured.scores, measured.ledger)
    if references is not None:
        state.keep_references(np.asarray(references, dtype=np.float64))
    return measured.result, state.finish(measured.result)


def _read_scores(scores: Mapping[int, ArrayLike]) -> dict[int, Floats]:
    """The scores as arrays of one length, with finite numbers."""
    if not isinstance(scores, Mapping) or not scores:
        raise InvalidInput(
            "scores is not a mapping from a number of updates to one score an example.",
            hint="Give at least the scores before the training and after it.",
        )
    table: dict[int, Floats] = {}
    for updates, values in scores.items():
        try:
            table[int(updates)] = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, RuntimeError):
            raise InvalidInput(f"The scores after {updates} updates are not numbers.") from None
    shapes = {values.shape for values in table.values()}
    finite = all(np.isfinite(values).all() for values in table.values())
    if len(shapes) > 1 or len(next(iter(shapes))) != 1 or not finite or min(table) < 0:
        raise InvalidInput(
            "scores does not hold one finite number an example at every step, with steps from 0 "
            "on.",
            hint="Score all examples, in the same order, every time.",
        )
    return table


def _check_references(references: ArrayLike | None, table: Mapping[int, Floats]) -> None:
    """Refuse scores of reference models that do not fit those of the run."""
    faults: list[str] = []
    if references is not None:
        read_references(references, np.stack([table[step] for step in sorted(table)]), faults)
    require(faults)


def _result(
    curve: MeasuredForgetting, uses: Uses, *, limit: float | None, void: str
) -> TrainingAuditResult:
    used = uses.last >= 0
    never = int((~used).sum())
    return TrainingAuditResult(
        verdict=_verdict(curve, limit, void),
        exposure=_NOTHING_PLANTED,
        repeats=_NOTHING_PLANTED,
        costs=_NOTHING_PLANTED,
        course=_NOTHING_PLANTED,
        forgetting=curve.part,
        sightings=Sightings(
            planted=int(used.sum()),
            seen=int(used.sum()),
            uses=int(uses.counts.sum()),
            fewest=int(uses.counts[used].min()),
            most=int(uses.counts.max()),
            first_step=int(uses.first[used].min()),
            last_step=int(uses.last.max()),
            context=0,
        ),
        overhead=Absent("the run was scored elsewhere"),
        scope=Tested(
            tested=(
                f"One training, in whose batches {int(used.sum())} scored examples were "
                f"{int(uses.counts.sum())} times, by its log.",
                f"{never} examples that were in no batch, as controls.",
            ),
            not_tested=(
                "Whether the controls were drawn the same way as the examples: without that, a "
                "difference between them need not be memory.",
                "How much another training would differ: there was one.",
                "Whether what the attack no longer finds is gone or only hidden.",
            ),
        ),
    )


def _verdict(curve: MeasuredForgetting, limit: float | None, void: str) -> ExposureGate | Finding:
    row = None if limit is None else gate_row(**asdict(curve.measured.verdict(limit)))
    if void:
        row = gate_row(
            outcome="INCONCLUSIVE", sentence=void, claim=f"No claim: {void}", limit=limit
        )
    if row is not None:
        return ExposureGate(**row)
    judged = curve.part.curves.judged
    start, end = judged.curve.start, judged.curve.end
    show = judged.curve.show
    return Finding(
        **finding_row(
            headline="Forgetting measured, not judged",
            sentence=(
                f"Of the examples last used first, {judged.curve.label} goes from "
                f"{show(start.value)} at lag {start.lag:.0f} to {show(end.value)} at lag "
                f"{end.lag:.0f} (chance {show(judged.curve.chance)}). {curve.part.control}"
            ),
            advice="Set limit= to have the end of the run judged.",
        )
    )


def _digest(
    table: Mapping[int, Floats], rows: NDArray[np.int64], references: ArrayLike | None
) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(rows).tobytes())
    for updates in sorted(table):
        digest.update(str(updates).encode() + table[updates].tobytes())
    if references is not None:
        digest.update(np.asarray(references, dtype=np.float64).tobytes())
    return digest.hexdigest()
