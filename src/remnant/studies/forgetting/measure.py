"""From what the probes saw to curves, searches and a verdict: reads arrays, touches no model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import (
    ForgettingCurve,
    Success,
    Verdict,
    auc_within_label,
    forgetting_decision,
    own_set_test,
)
from remnant.measures.forgetting.instance_scores import InstanceCalibration
from remnant.measures.forgetting.second_tests import mean_over_trials
from remnant.probes import SIGNALS
from remnant.records import Record
from remnant.records.typed import Absent, put_parts
from remnant.studies.forgetting.attack_curves import Attacks, attacks_of
from remnant.studies.forgetting.attack_scores import RunScores
from remnant.studies.forgetting.recipe import ForgettingStudy, controls_as_neighbours, runs_of
from remnant.studies.forgetting.result import (
    DecayLaw,
    Decision,
    Forecast,
    ForgettingResult,
    OwnSet,
    ProtectLast,
    SafeAfter,
    WithinLabel,
)
from remnant.studies.residual_memory.measured import (
    NOT_ASKED,
    hidden_scope,
    or_absent,
    residual_memory,
    scan,
)
from remnant.studies.residual_memory.result import ResidualMemory, Returning
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.curves import CurveResult, Ends, Traditional, Unmeasured
from remnant.studies.shared.gates import (
    put_verdict,
    with_lost_attackers,
    with_negative_control,
    with_plan,
    with_residual_memory,
)
from remnant.studies.shared.image_canaries import columns
from remnant.studies.shared.measured_curves import curve_result, put_comparison
from remnant.studies.shared.result_parts import Tested

Floats = NDArray[np.float64]
_OTHERS = ("tpr", "auc", "accuracy", "precision")
_NOT_INSIDE = "the study compares the planted model with its twin, not examples inside one model"


def measure_forgetting(record: Record, study: ForgettingStudy) -> None:
    """Measure everything the study asks for and put it into the record."""
    plan, limit = study.plan, study.attack.limit
    run = attacks_of(record, "primary", study)
    curve, attackers = run.curve(), run.others()
    others = attackers.curves
    put_parts(record, format={"version": ForgettingResult.VERSION})
    put_parts(record, attack=run.used, curve=curve_result(curve))
    measure_hidden(record, study, run)
    control = or_absent(run.control)
    put_parts(record, curve_aa=_stored(control))
    unplanted = None if isinstance(control, Absent) else control

    def judged() -> Verdict:
        verdict = curve.verdict(limit, attacker=run.used.attacker, others=others)
        verdict = with_lost_attackers(verdict, attackers.lost)
        verdict = with_plan(verdict, trials=plan.trials, fresh_canaries=plan.fresh_canaries)
        verdict = with_negative_control(verdict, unplanted)
        return with_residual_memory(verdict, record.results())

    put_verdict(record, judged, task=record.results().get("task"))
    put_decision(record, curve, limit=limit, batch=plan.batch, others=others)
    put_parts(
        record,
        **{f"curve_by_{name}": _stored(made) for name, made in attackers.by_calibration.items()},
        curve_influence=_stored(or_absent(run.influence)),
        curve_twin=_stored(or_absent(run.as_in_the_paper)),
        curve_kind=_stored(or_absent(run.kind)),
        own_set=or_absent(_own_set, record, study, run),
        within_label=or_absent(_within_label, record, study, run),
    )
    for success in _OTHERS:
        if success != study.attack.success:
            other = or_absent(run.curve, success=cast(Success, success))
            put_parts(record, **{f"curve_{success}": _stored(other)})
    put_parts(record, traditional=_traditional(study, record.array("primary.signals")))
    _compare(record, study, curve)
    put_parts(record, scope=_scope(study, run))


def _stored(curve: ForgettingCurve | Absent) -> CurveResult | Absent:
    return curve if isinstance(curve, Absent) else curve_result(curve)


def _own_set(record: Record, study: ForgettingStudy, run: Attacks) -> OwnSet:
    """Whether each planted model finds its own set among the sets of all trials."""
    plan, scores = study.plan, run.inside()
    if scores is None:
        raise NotEnoughEvidence(_NOT_INSIDE)
    if not plan.fresh_canaries or plan.trials < 2:
        raise NotEnoughEvidence("all trials planted the same canaries")
    test = own_set_test(
        scores.scores,
        own=run.scores.own,
        labels=record.array("primary.labels"),
        rng=np.random.default_rng([plan.seed, 2, 1]),
    )
    return OwnSet(
        lags=tuple(map(float, study.lags())),
        p_value=tuple(test.p_value.tolist()),
        mean_rank=tuple(test.ranks.mean(axis=1).tolist()),
        sets=test.sets,
    )


def _within_label(record: Record, study: ForgettingStudy, run: Attacks) -> WithinLabel:
    """Success among examples of one label: a trace of the label is not the example."""
    scores = run.inside()
    if scores is None:
        raise NotEnoughEvidence(_NOT_INSIDE)
    labels = record.array("primary.labels")
    measured = auc_within_label(
        seen_scores=scores.seen,
        unseen_scores=scores.unseen,
        seen_labels=labels[scores.groups[0]],
        unseen_labels=labels[scores.groups[1]],
    )
    mean, low, high = mean_over_trials(measured, study.attack.confidence)
    return WithinLabel(
        lags=tuple(map(float, study.lags())),
        value=tuple(mean.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
    )


def _traditional(study: ForgettingStudy, signals: Floats) -> Traditional:
    """Return the canaries' mean accuracy and loss, which look forgotten before the attack fails."""
    plan = study.plan
    means: dict[str, tuple[float, ...]] = {}
    for side, arm in (("seen", "planted"), ("unseen", "twin")):
        for name, signal in (("accuracy", "correct"), ("loss", "loss")):
            values = [
                signals[1:, member, SIGNALS.index(signal), columns(plan, trial, controls=False)]
                for trial, member in enumerate(plan.members_of(arm))
            ]
            means[f"{side}_{name}"] = tuple(np.mean(values, axis=(0, 2)).tolist())
    return Traditional(lags=tuple(study.lags()), **means)


def _compare(record: Record, study: ForgettingStudy, primary: ForgettingCurve) -> None:
    """Put the variants' curves beside the study's own, and how far they lie from it."""
    parts = study.parts()
    trained = runs_of(parts)
    variants = []
    for name, part in list(parts.items())[1:]:
        run = attacks_of(record, trained[name], part)
        curve = run.curve()
        signals = record.array(f"{trained[name]}.signals")
        stored = replace(curve_result(curve), traditional=_traditional(part, signals))
        variants.append((name, curve, stored))
    put_comparison(record, study, primary, variants)


def _scope(study: ForgettingStudy, run: Attacks) -> Tested:
    plan = study.plan
    inside = study.attack.against == "never-planted"
    compared = (
        "planted against never-planted examples inside each planted model"
        if inside
        else "each planted model against its unplanted twin"
    )
    tested = [
        f"{plan.kind.upper()}: {plan.trials} trials of {plan.canaries} {study.canaries.kind} "
        f"canaries in {study.model.title} on {study.data.title}",
        f"{compared}{f', by {run.used.attacker}' if inside else ''}, for {plan.watch_steps} steps "
        "after the canaries were last used",
    ]
    if inside:
        tested.append("the same comparison in unplanted twins as the negative control")
    elif plan.aa:
        tested.append("A/A twins as the negative control")
    searched, may_be_hidden = hidden_scope(study.hidden)
    tested += searched
    not_tested = [
        "adversaries who know the batch order, see gradients, or query the model while it trains",
        "attackers with more or better reference models than the other trials'",
        *may_be_hidden,
        f"lags beyond {plan.watch_steps} steps, other models, other data and other kinds of canary",
        "extraction: this attack distinguishes seen from unseen examples, it recovers none",
    ]
    if not plan.fresh_canaries and plan.trials > 1:
        not_tested.append("other canaries: all trials planted the same ones")
    if not inside and not plan.aa:
        not_tested.append("A/A twins: there was no negative control")
    return Tested(tested=tuple(tested), not_tested=tuple(not_tested))


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


def put_decision(
    record: Record,
    curve: ForgettingCurve,
    *,
    limit: float,
    batch: int,
    others: Mapping[str, ForgettingCurve] | None = None,
) -> None:
    """Put the decision into the record, or why there is none.

    A lag is safe only where the curve and those of all ``others``, by attacker, are within the
    limit.

    No lag is called safe where the run's own verdict says otherwise about a curve that by itself
    would pass: residual memory above the limit, or one pair of twins.
    """
    try:
        decision = decide(curve, limit=limit, batch=batch, others=others)
        verdict = record.results().get("verdict", {})
        if (
            curve.verdict(limit, others=others).outcome == "PASS"
            and verdict.get("outcome") != "PASS"
        ):
            reason = str(verdict.get("claim", "The run's verdict is no PASS."))
            decision = replace(
                decision,
                safe_after=SafeAfter(lag=None, reason=reason),
                protect_last=ProtectLast(steps=None, examples=None, reason=reason),
            )
    except InvalidInput as fault:  # such as a confidence of one half, at which nothing is claimed
        put_parts(record, decision=Absent(str(fault)))
    else:
        put_parts(record, decision=decision)


def decide(
    curve: ForgettingCurve,
    *,
    limit: float,
    batch: int,
    others: Mapping[str, ForgettingCurve] | None = None,
) -> Decision:
    """Return safe lag, protected examples, decay and forecast; None stands for unbounded ends."""
    measured = forgetting_decision(
        curve, limit, batch=batch, confidence=curve.confidence, others=others
    )
    safe, protect = measured.safe, measured.protect
    decay: Unmeasured | DecayLaw = Unmeasured(absent=measured.no_decay or "")
    forecast: Unmeasured | Forecast = Unmeasured(absent=measured.no_decay or "")
    if measured.decay is not None and measured.floor is not None and measured.reaches is not None:
        law, floor, reaches = measured.decay, measured.floor, measured.reaches
        half_life = _ends(law.half_life, law.half_life_low, law.half_life_high)
        if law.no_half_life is not None:
            half_life = replace(half_life, reason=law.no_half_life.removesuffix("."))
        decay = DecayLaw(
            law=law.law,
            shown=law.drop_low > 0.0,
            start=law.start,
            half_life=half_life,
            floor=_ends(floor.value, floor.low, floor.high),
            error=law.error,
            trials=law.trials,
        )
        ends = _ends(reaches.value, reaches.low, reaches.high)
        forecast = Forecast(value=ends.value, low=ends.low, high=ends.high, beyond=reaches.beyond)
    return Decision(
        limit=limit,
        confidence=curve.confidence,
        success=curve.success,
        fpr=curve.fpr,
        last_lag=float(curve.lags[-1]),
        batch=batch,
        safe_after=SafeAfter(lag=safe.lag, reason=safe.reason),
        protect_last=ProtectLast(
            steps=protect.steps, examples=protect.examples, reason=protect.reason
        ),
        decay=decay,
        forecast=forecast,
    )


def _ends(value: float | None, low: float | None, high: float | None) -> Ends:
    """Return a number and its interval; None stands for what is not finite."""
    value, low, high = (
        None if number is None or not math.isfinite(number) else float(number)
        for number in (value, low, high)
    )
    return Ends(value=value, low=low, high=high)
