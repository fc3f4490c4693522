"""From what the probes saw to curves and a verdict: reads the record's arrays, touches no model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence
from remnant.measures import ForgettingCurve, Success, Verdict, forgetting_curve
from remnant.plans import InjectPlan, PoisonPlan
from remnant.probes import SIGNALS
from remnant.records import Record
from remnant.studies.decision_results import put_decision, seen_otherwise
from remnant.studies.differences import adjust_for_number, difference_fields
from remnant.studies.gates import (
    put_verdict,
    with_negative_control,
    with_plan,
    with_residual_memory,
)
from remnant.studies.grid import runs_of
from remnant.studies.hidden_results import hidden_scope, measure_hidden
from remnant.studies.image_canaries import columns
from remnant.studies.lags import lag_grid
from remnant.studies.twin_scores import twin_scores

if TYPE_CHECKING:
    from remnant.studies.forgetting import ForgettingStudy

Plan = InjectPlan | PoisonPlan
Calibration = Literal["logit", "loss", "none"]
_OTHERS = ("tpr", "auc", "accuracy", "precision")


def measure_forgetting(record: Record, study: ForgettingStudy) -> None:
    """Measure everything the study asks for and put it into the record."""
    plan, signals = study.plan, record.array("primary.signals")
    primary = _curve(study, plan, signals, "planted")
    record.put_result("curve", curve_fields(primary))
    measure_hidden(record, study, signals)
    unplanted = _curve(study, plan, signals, "aa") if plan.aa else None
    if unplanted is not None:
        record.put_result("curve_aa", curve_fields(unplanted))
    else:
        record.put_absent("curve_aa", "the plan has no A/A twins")
    put_verdict(record, lambda: _verdict(record, study, primary, unplanted))
    put_decision(record, primary, limit=study.attack.limit, batch=plan.batch)
    if plan.controls:
        _put_curve(record, "curve_controls", study, signals, controls=True)
    else:
        record.put_absent("curve_controls", "the plan has no controls")
    for success in _OTHERS:
        if success != study.attack.success:
            _put_curve(record, f"curve_{success}", study, signals, success=success)
    record.put_result("traditional", _traditional(study, plan, signals))
    _compare(record, study, primary)
    record.put_result("scope", _scope(study))


def _verdict(
    record: Record,
    study: ForgettingStudy,
    curve: ForgettingCurve,
    unplanted: ForgettingCurve | None,
) -> Verdict:
    """Judge the last lag together with what the run's own controls and later searches found."""
    plan = study.plan
    found = curve.verdict(study.attack.limit)
    found = with_plan(found, trials=plan.trials, fresh_canaries=plan.fresh_canaries)
    return with_residual_memory(with_negative_control(found, unplanted), record.results())


def curve_fields(curve: ForgettingCurve) -> dict[str, Any]:
    """Return a curve as plain data."""
    levels = sorted({round(curve.chance + (1 - curve.chance) * s, 3) for s in (0.1, 0.2, 0.4)})
    return {
        "success": curve.success,
        "fpr": curve.fpr,
        "confidence": curve.confidence,
        "chance": curve.chance,
        "method": curve.method,
        "trials": curve.trials,
        "n_seen": curve.n_seen,
        "n_unseen": curve.n_unseen,
        **{name: getattr(curve, name).tolist() for name in ("lags", "value", "low", "high")},
        "per_trial": curve.per_trial.tolist(),
        "steps_to": {str(level): curve.steps_to(level) for level in levels},
        **seen_otherwise(curve),
    }


def scores(
    study: ForgettingStudy,
    plan: Plan,
    signals: NDArray[np.float64],
    arm: str,
    *,
    controls: bool = False,
) -> NDArray[np.float64]:
    """Return the attack's scores of one arm on its trial's canaries, ``(lags, trials, canaries)``.

    ``twin_scores`` describes how they are calibrated.
    """
    return twin_scores(plan, signals, arm, study.attack.calibration, controls=controls)


def _curve(
    study: ForgettingStudy,
    plan: Plan,
    signals: NDArray[np.float64],
    arm: str,
    *,
    success: str | None = None,
    controls: bool = False,
) -> ForgettingCurve:
    attack = study.attack
    return forgetting_curve(
        seen_scores=scores(study, plan, signals, arm, controls=controls),
        unseen_scores=scores(study, plan, signals, "twin", controls=controls),
        lags=lag_grid(plan.watch_steps, attack.lags),
        success=cast(Success, success or attack.success),
        fpr=attack.fpr,
        confidence=attack.confidence,
        rng=np.random.default_rng([plan.seed, 2]),
        control_at_zero=isinstance(plan, PoisonPlan),
    )


def _put_curve(
    record: Record,
    name: str,
    study: ForgettingStudy,
    signals: NDArray[np.float64],
    **choices: Any,
) -> None:
    """Put a secondary curve into the record, or why there is none."""
    try:
        curve = _curve(study, study.plan, signals, "planted", **choices)
    except NotEnoughEvidence as fault:
        record.put_absent(name, str(fault))
    else:
        record.put_result(name, curve_fields(curve))


def _traditional(
    study: ForgettingStudy, plan: Plan, signals: NDArray[np.float64]
) -> dict[str, Any]:
    """Return the canaries' mean accuracy and loss, which look forgotten before the attack fails."""
    found: dict[str, Any] = {"lags": lag_grid(plan.watch_steps, study.attack.lags)}
    for side, arm in (("seen", "planted"), ("unseen", "twin")):
        for name, signal in (("accuracy", "correct"), ("loss", "loss")):
            values = [
                signals[1:, member, SIGNALS.index(signal), columns(plan, trial, controls=False)]
                for trial, member in enumerate(plan.members_of(arm))
            ]
            found[f"{side}_{name}"] = np.mean(values, axis=(0, 2)).tolist()
    return found


def _compare(record: Record, study: ForgettingStudy, primary: ForgettingCurve) -> None:
    """Put the variants' curves beside the study's own, and how far they lie from it."""
    parts = study.parts()
    if not study.compare:
        record.put_absent("compare", "the recipe compares nothing")
        return
    trained = runs_of(parts)
    series, differences = [_series(study.label, primary)], []
    for (name, part), variant in zip(list(parts.items())[1:], study.compare, strict=True):
        signals = record.array(f"{trained[name]}.signals")
        curve = _curve(part, part.plan, signals, "planted")
        record.put_result(
            f"curve_{name}",
            {
                "label": variant.label,
                **curve_fields(curve),
                "traditional": _traditional(part, part.plan, signals),
            },
        )
        series.append(_series(variant.label, curve))
        differences.append(
            difference_fields(variant.label, curve, primary, study.attack.confidence)
        )
    adjust_for_number(differences)
    record.put_result(
        "compare", {"title": study.title, "series": series, "differences": differences}
    )


def _series(label: str, curve: ForgettingCurve) -> dict[str, Any]:
    rows = {name: getattr(curve, name).tolist() for name in ("lags", "value", "low", "high")}
    return {"label": label, **rows}


def _scope(study: ForgettingStudy) -> dict[str, Any]:
    plan = study.plan
    tested = [
        f"{plan.kind.upper()}: {plan.trials} trials of {plan.canaries} {study.canaries.kind} "
        f"canaries in {study.model.name} on {study.data.name}",
        f"attack with calibration '{study.attack.calibration}', for {plan.watch_steps} steps after "
        "the canaries were last used",
    ]
    tested += ["A/A twins as the negative control"] if plan.aa else []
    searched, may_be_hidden = hidden_scope(study)
    tested += searched
    not_tested = [
        "adversaries who know the batch order, see gradients, or query the model while it trains",
        *may_be_hidden,
        f"lags beyond {plan.watch_steps} steps, other models, other data and other kinds of canary",
        "extraction: this attack tells seen from unseen examples, it does not recover them",
    ]
    if not plan.fresh_canaries and plan.trials > 1:
        not_tested.append("other canaries: all trials planted the same ones")
    if not plan.aa:
        not_tested.append("A/A twins: there was no negative control")
    return {"tested": tested, "not_tested": not_tested}
