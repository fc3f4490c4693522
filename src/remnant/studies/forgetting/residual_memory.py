"""Residual memory: attack success after disturbances, and canaries that come back later."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence
from remnant.measures import (
    ForgettingCurve,
    HiddenTest,
    Success,
    forgetting_curve,
    hidden_test,
    returning,
)
from remnant.plans import PoisonPlan
from remnant.records import Record
from remnant.records.typed import Absent, put_parts
from remnant.studies.forgetting.recipe import ForgettingStudy, HiddenSettings
from remnant.studies.forgetting.result import Disturbance, Kind, ResidualMemory, Returning
from remnant.studies.forgetting.twin_scores import other_twins, twin_scores

Floats = NDArray[np.float64]
P = ParamSpec("P")
R = TypeVar("R")
NOT_ASKED = "the recipe has no [hidden] section: no weight noise, no relearning"
_SEED = 6  # beside canaries (1), curves (2) and the disturbances' own (3 to 5)


def measure_hidden(record: Record, study: ForgettingStudy, signals: Floats) -> None:
    """Put what disturbances and later checkpoints bring back into the record."""
    hidden: ResidualMemory | Absent = Absent(NOT_ASKED)
    if study.hidden is not None:
        disturbed = record.array("primary.hidden"), record.array("primary.hidden_accuracy")
        hidden = _or_absent(_residual_memory, study, study.hidden, signals, *disturbed)
    put_parts(record, hidden=hidden, returning=_or_absent(_scan, study, signals))


def _or_absent(measured: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | Absent:
    """Return the measurement, or why there is too little evidence for it."""
    try:
        return measured(*args, **kwargs)
    except NotEnoughEvidence as fault:
        return Absent(str(fault))


def hidden_scope(study: ForgettingStudy) -> tuple[list[str], list[str]]:
    """Return which of the three searches were run, and which were not, as lines of the scope."""
    settings = study.hidden
    noise = settings is not None and settings.noise
    relearn = settings is not None and settings.relearn_steps
    named = {"weight noise": noise, "relearning on similar examples": relearn}
    done = [name for name, ran in named.items() if ran]
    missing = [name for name, ran in named.items() if not ran]
    tested = [
        "whether what the attack no longer finds is gone or only hidden, by: "
        + ", ".join([*done, "a scan of all later checkpoints"])
    ]
    other = "stronger or other disturbances" if done else "disturbances of any kind"
    not_tested = [
        "that what is not found is gone: "
        + (f"no {' and no '.join(missing)} was run, and " if missing else "")
        + f"{other} may still bring it to light"
    ]
    return tested, not_tested


def disturbances_of(settings: HiddenSettings) -> list[tuple[Kind, float, str]]:
    """Return what was done, in the order of the arrays: a kind, a number and words.

    Example:
        >>> settings = HiddenSettings(noise=(0.1,), draws=5, relearn_steps=(1, 20), neighbours=64)
        >>> [label for _, _, label in disturbances_of(settings)][::2]
        ['weight noise, 0.1 of each tensor’s spread', '20 steps on neighbours']
    """
    rows: list[tuple[Kind, float, str]] = [
        ("noise", scale, f"weight noise, {scale:g} of each tensor’s spread")
        for scale in settings.noise
    ]
    for steps in settings.relearn_steps:
        many = "1 step" if steps == 1 else f"{steps} steps"
        rows.append(("relearn", steps, f"{many} on neighbours"))
    return rows


def _residual_memory(
    study: ForgettingStudy,
    settings: HiddenSettings,
    signals: Floats,
    disturbed: Floats,
    accuracy: Floats,
) -> ResidualMemory:
    """Attack the disturbed models, each beside its twin under the same disturbance."""
    plan, attack = study.plan, study.attack
    # Slot 0 is the checkpoint that scores are calibrated by, then the last lag, then the rest.
    slots = np.concatenate([signals[:1], signals[-1:], disturbed])
    sides = {arm: twin_scores(plan, slots, arm, attack.calibration) for arm in plan.arms}
    attacked: dict[str, Any] = {
        "success": cast(Success, attack.success),
        "fpr": attack.fpr,
        "confidence": attack.confidence,
    }
    tested = hidden_test(
        seen_before=sides["planted"][0],
        unseen_before=sides["twin"][0],
        seen_after=sides["planted"][1:],
        unseen_after=sides["twin"][1:],
        rng=np.random.default_rng([plan.seed, _SEED]),
        **attacked,
    )
    control = None
    if plan.aa:
        control = forgetting_curve(
            seen_scores=sides["aa"],
            unseen_scores=sides["twin"],
            lags=np.arange(len(sides["aa"])),
            rng=np.random.default_rng([plan.seed, _SEED, 1]),
            **attacked,
        )
    return ResidualMemory(
        **{name: getattr(tested, name) for name in _SHARED},
        lag=float(plan.watch_steps if not attack.lags else max(attack.lags)),
        draws=settings.draws,
        neighbours=settings.neighbours,
        disturbances=_rows(settings, tested, control, accuracy),
    )


_SHARED = (
    *("before", "before_low", "before_high", "pvalue_before", "success", "fpr", "chance"),
    *("confidence", "trials", "method"),
)
_COLUMNS = ("after", "after_low", "after_high", "rise", "rise_low", "rise_high")


def _rows(
    settings: HiddenSettings,
    tested: HiddenTest,
    control: ForgettingCurve | None,
    accuracy: Floats,
) -> tuple[Disturbance, ...]:
    """One row a disturbance; slot 0 of the control's curve is the undisturbed models."""
    rows = []
    for place, (kind, amount, label) in enumerate(disturbances_of(settings)):
        twins = {}
        if control is not None:
            ends = {"aa": control.value, "aa_low": control.low, "aa_high": control.high}
            twins = {name: float(column[place + 1]) for name, column in ends.items()}
        rows.append(
            Disturbance(
                kind=kind,
                amount=amount,
                label=label,
                **{name: float(getattr(tested, name)[place]) for name in _COLUMNS},
                pvalue_after=float(tested.pvalues_after[place]),
                pvalue_rise=float(tested.pvalues_rise[place]),
                reading=tested.readings[place],
                test_accuracy=float(accuracy[place].mean()),
                **twins,
            )
        )
    return tuple(rows)


def _scan(study: ForgettingStudy, signals: Floats) -> Returning:
    """Look for canaries that are lost at some checkpoints and found at a later one."""
    plan, method = study.plan, study.attack.calibration
    if plan.aa:
        null, reference = twin_scores(plan, signals, "aa", method), "A/A twins"
    else:
        needed = 3 if isinstance(plan, PoisonPlan) and method != "none" else 2
        if plan.trials < needed:
            raise NotEnoughEvidence(
                "without A/A twins, how many canaries come back by chance is read off other "
                f"trials' twins; that takes at least {needed} trials.",
                hint="Give the plan A/A twins (aa = true), or more trials.",
            )
        null = twin_scores(plan, signals, other_twins(plan), method)
        reference = "other trials' twins"
    scanned = returning(
        seen_scores=twin_scores(plan, signals, "planted", method),
        null_scores=null,
        unseen_scores=twin_scores(plan, signals, "twin", method),
        fpr=study.attack.fpr,
        confidence=study.attack.confidence,
    )
    numbers = dataclasses.asdict(scanned)
    del numbers["who"]
    return Returning(**numbers, checkpoints=len(signals) - 1, reference=reference)
