"""From what the probes saw to curves and a verdict: reads the record's arrays, touches no model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence
from remnant.measures import ForgettingCurve, Success, Verdict, forgetting_curve
from remnant.plans import PoisonPlan
from remnant.probes import SIGNALS
from remnant.records import Record
from remnant.records.typed import Absent, put_parts
from remnant.studies.forgetting.decision import put_decision
from remnant.studies.forgetting.recipe import ForgettingStudy, runs_of
from remnant.studies.forgetting.residual_memory import measure_hidden
from remnant.studies.forgetting.twin_scores import twin_scores
from remnant.studies.residual_memory.measured import hidden_scope
from remnant.studies.shared.curves import CurveResult, Traditional
from remnant.studies.shared.differences import put_comparison
from remnant.studies.shared.gates import (
    put_verdict,
    with_negative_control,
    with_plan,
    with_residual_memory,
)
from remnant.studies.shared.image_canaries import columns as columns_of
from remnant.studies.shared.measured_curves import curve_result
from remnant.studies.shared.parts import Tested

Floats = NDArray[np.float64]
_OTHERS = ("tpr", "auc", "accuracy", "precision")


def measure_forgetting(record: Record, study: ForgettingStudy) -> None:
    """Measure everything the study asks for and put it into the record."""
    plan, signals = study.plan, record.array("primary.signals")
    primary = _curve(study, signals, "planted")
    put_parts(record, curve=curve_result(primary))
    measure_hidden(record, study, signals)
    unplanted = _curve(study, signals, "aa") if plan.aa else None
    put_parts(
        record,
        curve_aa=Absent("the plan has no A/A twins")
        if unplanted is None
        else curve_result(unplanted),
    )
    put_verdict(
        record,
        lambda: _verdict(record, study, primary, unplanted),
        task=record.results().get("task"),
    )
    put_decision(record, primary, limit=study.attack.limit, batch=plan.batch)
    put_parts(
        record,
        curve_controls=_other_curve(study, signals, controls=True)
        if plan.controls
        else Absent("the plan has no controls"),
    )
    for success in _OTHERS:
        if success != study.attack.success:
            put_parts(record, **{f"curve_{success}": _other_curve(study, signals, success=success)})
    put_parts(record, traditional=_traditional(study, signals))
    _compare(record, study, primary)
    put_parts(record, scope=_scope(study))


def _verdict(
    record: Record,
    study: ForgettingStudy,
    curve: ForgettingCurve,
    unplanted: ForgettingCurve | None,
) -> Verdict:
    """Judge the last lag together with what the run's own controls and later searches found."""
    plan = study.plan
    verdict = curve.verdict(study.attack.limit)
    verdict = with_plan(verdict, trials=plan.trials, fresh_canaries=plan.fresh_canaries)
    return with_residual_memory(with_negative_control(verdict, unplanted), record.results())


def _curve(
    study: ForgettingStudy,
    signals: Floats,
    arm: str,
    *,
    success: str | None = None,
    controls: bool = False,
) -> ForgettingCurve:
    plan, attack = study.plan, study.attack
    seen, unseen = (
        twin_scores(plan, signals, side, attack.calibration, controls=controls)
        for side in (arm, "twin")
    )
    return forgetting_curve(
        seen_scores=seen,
        unseen_scores=unseen,
        lags=study.lags(),
        success=cast(Success, success or attack.success),
        fpr=attack.fpr,
        confidence=attack.confidence,
        rng=np.random.default_rng([plan.seed, 2]),
        control_at_zero=isinstance(plan, PoisonPlan),
    )


def _other_curve(study: ForgettingStudy, signals: Floats, **choices: Any) -> CurveResult | Absent:
    """Return a secondary curve, or why there is none."""
    try:
        return curve_result(_curve(study, signals, "planted", **choices))
    except NotEnoughEvidence as fault:
        return Absent(str(fault))


def _traditional(study: ForgettingStudy, signals: Floats) -> Traditional:
    """Return the canaries' mean accuracy and loss, which look forgotten before the attack fails."""
    plan = study.plan
    columns: dict[str, tuple[float, ...]] = {}
    for side, arm in (("seen", "planted"), ("unseen", "twin")):
        for name, signal in (("accuracy", "correct"), ("loss", "loss")):
            values = [
                signals[1:, member, SIGNALS.index(signal), columns_of(plan, trial, controls=False)]
                for trial, member in enumerate(plan.members_of(arm))
            ]
            columns[f"{side}_{name}"] = tuple(np.mean(values, axis=(0, 2)).tolist())
    return Traditional(lags=tuple(study.lags()), **columns)


def _compare(record: Record, study: ForgettingStudy, primary: ForgettingCurve) -> None:
    """Put the variants' curves beside the study's own, and how far they lie from it."""
    parts = study.parts()
    trained = runs_of(parts)
    variants = []
    for name, part in list(parts.items())[1:]:
        signals = record.array(f"{trained[name]}.signals")
        curve = _curve(part, signals, "planted")
        stored = replace(curve_result(curve), traditional=_traditional(part, signals))
        variants.append((name, curve, stored))
    put_comparison(record, study, primary, variants)


def _scope(study: ForgettingStudy) -> Tested:
    plan = study.plan
    tested = [
        f"{plan.kind.upper()}: {plan.trials} trials of {plan.canaries} {study.canaries.kind} "
        f"canaries in {study.model.name} on {study.data.title}",
        f"attack with calibration '{study.attack.calibration}', for {plan.watch_steps} steps after "
        "the canaries were last used",
    ]
    tested += ["A/A twins as the negative control"] if plan.aa else []
    searched, may_be_hidden = hidden_scope(study.hidden)
    tested += searched
    not_tested = [
        "adversaries who know the batch order, see gradients, or query the model while it trains",
        *may_be_hidden,
        f"lags beyond {plan.watch_steps} steps, other models, other data and other kinds of canary",
        "extraction: this attack distinguishes seen from unseen examples, it recovers none",
    ]
    if not plan.fresh_canaries and plan.trials > 1:
        not_tested.append("other canaries: all trials planted the same ones")
    if not plan.aa:
        not_tested.append("A/A twins: there was no negative control")
    return Tested(tested=tuple(tested), not_tested=tuple(not_tested))
