"""Gone or only hidden, measured: from what disturbed models said to rows of a table."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence
from remnant.measures import Success, forgetting_curve, hidden_test, returning
from remnant.plans import PoisonPlan
from remnant.records import Record
from remnant.studies.hidden_settings import HiddenSettings
from remnant.studies.twin_scores import other_twins, twin_scores

if TYPE_CHECKING:
    from remnant.studies.forgetting import ForgettingStudy

Floats = NDArray[np.float64]
NOT_ASKED = "the recipe has no [hidden] section: no weight noise, no relearning"
_SEED = 6  # beside canaries (1), curves (2) and the disturbances' own (3 to 5)


def measure_hidden(record: Record, study: ForgettingStudy, signals: Floats) -> None:
    """Put what disturbances and later checkpoints bring to light into the record."""
    if study.hidden is None:
        record.put_absent("hidden", NOT_ASKED)
    else:
        found = record.array("primary.hidden"), record.array("primary.hidden_accuracy")
        try:
            fields = _disturbances(study, study.hidden, signals, *found)
        except NotEnoughEvidence as fault:
            record.put_absent("hidden", str(fault))
        else:
            record.put_result("hidden", fields)
    try:
        record.put_result("returning", _scan(study, signals))
    except NotEnoughEvidence as fault:
        record.put_absent("returning", str(fault))


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


def disturbances_of(settings: HiddenSettings) -> list[dict[str, Any]]:
    """Return what was done, in the order of the arrays: a kind, a number and words.

    Example:
        >>> settings = HiddenSettings(noise=(0.1,), draws=5, relearn_steps=(1, 20), neighbours=64)
        >>> [row["label"] for row in disturbances_of(settings)][::2]
        ['weight noise, 0.1 of each tensor’s spread', '20 steps on neighbours']
    """
    rows: list[dict[str, Any]] = [
        {
            "kind": "noise",
            "amount": scale,
            "label": f"weight noise, {scale:g} of each tensor’s spread",
        }
        for scale in settings.noise
    ]
    for steps in settings.relearn_steps:
        many = "1 step" if steps == 1 else f"{steps} steps"
        rows.append({"kind": "relearn", "amount": steps, "label": f"{many} on neighbours"})
    return rows


def _disturbances(
    study: ForgettingStudy,
    settings: HiddenSettings,
    signals: Floats,
    disturbed: Floats,
    accuracy: Floats,
) -> dict[str, Any]:
    """Attack the disturbed models, each beside its twin under the same disturbance."""
    plan, attack = study.plan, study.attack
    # Slot 0 is the checkpoint that scores are calibrated by, then the last lag, then the rest.
    slots = np.concatenate([signals[:1], signals[-1:], disturbed])
    sides = {arm: twin_scores(plan, slots, arm, attack.calibration) for arm in plan.arms}
    asked: dict[str, Any] = {
        "success": cast(Success, attack.success),
        "fpr": attack.fpr,
        "confidence": attack.confidence,
    }
    found = hidden_test(
        seen_before=sides["planted"][0],
        unseen_before=sides["twin"][0],
        seen_after=sides["planted"][1:],
        unseen_after=sides["twin"][1:],
        rng=np.random.default_rng([plan.seed, _SEED]),
        **asked,
    )
    rows = disturbances_of(settings)
    columns = ("after", "after_low", "after_high", "rise", "rise_low", "rise_high")
    for place, row in enumerate(rows):
        row |= {name: float(getattr(found, name)[place]) for name in columns}
        row["pvalue_after"] = float(found.pvalues_after[place])
        row["pvalue_rise"] = float(found.pvalues_rise[place])
        row["reading"] = found.readings[place]
        row["test_accuracy"] = float(accuracy[place].mean())
    if plan.aa:
        control = forgetting_curve(
            seen_scores=sides["aa"],
            unseen_scores=sides["twin"],
            lags=np.arange(len(sides["aa"])),
            rng=np.random.default_rng([plan.seed, _SEED, 1]),
            **asked,
        )
        for place, row in enumerate(rows, start=1):
            row["aa"] = float(control.value[place])
            row["aa_low"], row["aa_high"] = float(control.low[place]), float(control.high[place])
    plain = ("before", "before_low", "before_high", "pvalue_before", "success", "fpr", "chance")
    return {
        **{name: getattr(found, name) for name in (*plain, "confidence", "trials", "method")},
        "lag": float(plan.watch_steps if not attack.lags else max(attack.lags)),
        "draws": settings.draws,
        "neighbours": settings.neighbours,
        "disturbances": rows,
    }


def _scan(study: ForgettingStudy, signals: Floats) -> dict[str, Any]:
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
    found = returning(
        seen_scores=twin_scores(plan, signals, "planted", method),
        null_scores=null,
        unseen_scores=twin_scores(plan, signals, "twin", method),
        fpr=study.attack.fpr,
        confidence=study.attack.confidence,
    )
    fields = {
        one.name: getattr(found, one.name) for one in dataclasses.fields(found) if one.name != "who"
    }
    return {**fields, "checkpoints": len(signals) - 1, "reference": reference}
