"""What stands beside a finding about samples that will be memorised."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.typed import Absent
from remnant.report.blocks import Check, Status
from remnant.report.numerals import counted, percent
from remnant.studies.beside.checks import Recorded, not_measured, positive_control
from remnant.studies.prediction.early_result import EarlyResult, Moment, NotMeasured
from remnant.studies.prediction.result import (
    ListCheck,
    Memorisation,
    PredictionResult,
    PredictorComparison,
    ProtectList,
)
from remnant.studies.prediction.sentences import name_of
from remnant.studies.shared.estimates import Estimate, ends_text

_CHANCE = 0.5  # AUC of a predictor that knows nothing


def beside(result: PredictionResult) -> tuple[Check, ...]:
    """The controls of a prediction study and what contradicts its finding."""
    return tuple(_checks(result))


def of_early(result: Recorded[EarlyResult]) -> tuple[Check, ...]:
    """The same of ``remnant predict``."""
    measured = result.measured
    if isinstance(measured, Absent):
        return (not_measured("truth"),)
    checks = []
    if isinstance(measured.truth, NotMeasured):
        checks.append(not_measured("truth"))
    else:
        checks.append(_predictor(measured.by, measured.truth.auc))
    stop = measured.stop
    if isinstance(stop, Moment):
        text = (
            f"the loss has dropped by {percent(stop.dropped, 0)} of {percent(stop.drop, 0)} needed"
        )
        status: Status = "agrees" if stop.reached else "disagrees"
        checks.append(Check(name="moment", status=status, text=text, contradicts=not stop.reached))
    else:
        checks.append(not_measured("moment"))
    return tuple(checks)


def _checks(result: PredictionResult) -> Iterator[Check]:
    protect = result.protect
    if isinstance(protect, ProtectList):
        if isinstance(result.prediction, PredictorComparison):
            for row in result.prediction.at_stop:
                if row.predictor == protect.predictor:
                    yield _predictor(name_of(row.predictor), row.auc)
        yield (
            not_measured("independent run")
            if protect.check is None
            else _run(protect.check, protect)
        )
    else:
        yield not_measured("independent run")
    yield from _planted(result.prediction)
    yield from _truth(result.truth, listed=isinstance(protect, ProtectList))


def _predictor(name: str, auc: Estimate) -> Check:
    """Whether the predictor is shown to be better than chance; a list by another is no list."""
    better = auc.low > _CHANCE
    said = "better than chance" if better else "not shown to be better than chance"
    text = f"{name} is {said} (AUC {auc.value:.3f}, {ends_text(auc)})"
    status: Status = "agrees" if better else "disagrees"
    return Check(name="predictor", status=status, text=text, contradicts=not better)


def _run(check: ListCheck, protect: ProtectList) -> Check:
    """The list's rule on a run that did not make it: refuted where chance does not explain it."""
    text = f"an independent run missed {check.missed} of {check.memorised} memorised samples"
    text += "" if check.held else f" (stated: at most {percent(protect.stated, 0)})"
    status: Status = "disagrees" if check.refuted else "agrees"
    return Check(name="independent run", status=status, text=text, contradicts=check.refuted)


def _planted(prediction: PredictorComparison | Absent) -> Iterator[Check]:
    """The positive control: planted kinds of samples, which PSMI has to distinguish."""
    if isinstance(prediction, Absent):
        return
    kinds = [kind for kind in prediction.canaries if kind.auc is not None]
    if not kinds:
        yield not_measured("positive control")
        return
    found = [kind for kind in kinds if kind.auc is not None and kind.auc.low > _CHANCE]
    where = f"in {len(found)} of {counted(len(kinds), 'planted kind')}"
    yield positive_control(bool(found), None, where=where)


def _truth(truth: Memorisation | Absent, *, listed: bool) -> Iterator[Check]:
    """How reliable the truth is; a doubtful one contradicts a list, if there is one."""
    if isinstance(truth, Absent):
        return
    if truth.unfit and truth.false_alarms is not None:
        of = counted(len(truth.false_alarms), "target")
        text = f"{truth.unfit} of {of} with too many false positives"
        yield Check(name="false positives", status="not at chance", text=text, contradicts=listed)
    apart = [row for row in truth.agreement if row.low <= 0.0]
    if apart:
        text = f"{apart[0].first} and {apart[0].second} are not shown to agree on what is memorised"
        yield Check(name="other measures", status="disagrees", text=text, contradicts=listed)
    elif truth.agreement:
        yield Check(name="other measures", status="agrees", text="measures of memorisation agree")
