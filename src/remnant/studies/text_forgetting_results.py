"""From what sequences cost to exposure curves and a verdict: reads arrays, touches no model."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from remnant.measures import (
    ExposureCurve,
    ForgettingCurve,
    Success,
    exposure_curve,
    forgetting_curve,
)
from remnant.plans import InjectPlan
from remnant.probes import WINDOW_SIGNALS
from remnant.records import Record
from remnant.studies.differences import adjust_for_number, difference_fields
from remnant.studies.forgetting_results import curve_fields
from remnant.studies.gates import put_verdict, with_negative_control
from remnant.studies.wording import times

if TYPE_CHECKING:
    from remnant.studies.text_forgetting import TextForgettingStudy

Floats = NDArray[np.float64]
_ROWS = ("lags", "value", "low", "high")


def measure_text_forgetting(
    record: Record, study: TextForgettingStudy, *, examples: int, tokens: int
) -> None:
    """Measure everything the study asks for and put it into the record; no canary is in it.

    Args:
        record: Holds the arrays, and is given the results.
        study: What was asked.
        examples: Clean windows, from which an epoch's length follows.
        tokens: Of a canary.
    """
    parts = study.parts()
    primary = _exposure(record, "primary", parts["primary"], "planted")
    record.put_result("curve_exposure", exposure_fields(primary, study.attack.limit))
    unplanted = _controls(record, parts["primary"])
    put_verdict(
        record, lambda: with_negative_control(primary.verdict(study.attack.limit), unplanted)
    )
    for success in get_args(Success):
        name = "curve" if success == "precision" else f"curve_{success}"
        curve = _success(record, study, "planted", success)
        record.put_result(name, curve_fields(curve))
    _by_uses(record, study, examples)
    record.put_result("traditional", _traditional(record, study, tokens))
    _compare(record, study, primary)
    record.put_result("scope", _scope(study, tokens))


def calibrated_bits(
    record: Record, name: str, study: TextForgettingStudy, arm: str
) -> tuple[Floats, Floats]:
    """Return what one arm pays for canaries and for references, less what others pay for them.

    Returns:
        Bits of the shapes ``(lags, trials, canaries)`` and ``(lags, trials, references)``.
    """
    plan = study.plan
    bits = record.array(f"{name}.signals")[:, :, WINDOW_SIGNALS.index("bits")]
    own = bits[:, plan.members_of(arm)]
    if study.attack.calibration == "twin":
        own = own - bits[:, plan.members_of("twin")]
    elif study.attack.calibration == "references":
        own = own - record.array(f"{name}.reference_bits").mean(axis=1)
    return own[..., : plan.canaries], own[..., plan.canaries :]


def exposure_fields(curve: ExposureCurve, limit: float) -> dict[str, Any]:
    """Return an exposure curve as plain data."""
    levels = sorted({bits for bits in (2.0, 3.0, 5.0, float(limit)) if bits < curve.ceiling})
    return {
        "success": "exposure",
        "chance": curve.null,
        **{
            name: getattr(curve, name)
            for name in (
                "confidence",
                "method",
                "trials",
                "n_canaries",
                "n_references",
                "ceiling",
            )
        },
        **{name: getattr(curve, name).tolist() for name in (*_ROWS, "saturated", "per_trial")},
        "steps_to": {f"{bits:g}": curve.steps_to(bits) for bits in levels},
        "safe_after": asdict(curve.safe_after(limit)),
    }


def _controls(record: Record, study: TextForgettingStudy) -> ExposureCurve | None:
    """Put what the attack finds in the A/A twins, which saw no canary, into the record."""
    names = ("curve_exposure_aa", "curve_aa")
    reason = "the plan has no A/A twins"
    if study.plan.aa and moved(record, study).any():
        exposed = _exposure(record, "primary", study, "aa")
        record.put_result(names[0], exposure_fields(exposed, study.attack.limit))
        record.put_result(names[1], curve_fields(_success(record, study, "aa", "precision")))
        return exposed
    if study.plan.aa:
        reason = "the A/A twins have not parted within the lags that were measured"
    for name in names:
        record.put_absent(name, reason)
    return None


def moved(record: Record, study: TextForgettingStudy) -> NDArray[np.bool_]:
    """At which lags the A/A twin is another model than the one that its costs are calibrated by.

    INJECT's twins are one model until the canaries were planted: at lag 0 all their costs are
    equal, and nothing can be compared.
    """
    seen, references = calibrated_bits(record, "primary", study, "aa")
    return np.asarray(np.any(np.concatenate([seen, references], axis=2) != 0.0, axis=(1, 2)))


def _sides(
    record: Record, name: str, study: TextForgettingStudy, arm: str
) -> tuple[Floats, Floats, Floats]:
    """Lags, and costs of canaries and references at them."""
    seen, references = calibrated_bits(record, name, study, arm)
    lags = np.asarray(study.lags(), dtype=np.float64)
    there = moved(record, study) if arm == "aa" else np.ones(len(lags), dtype=bool)
    return lags[there], seen[there], references[there]


def _exposure(
    record: Record,
    name: str,
    study: TextForgettingStudy,
    arm: str,
    *,
    canaries: NDArray[np.intp] | slice = slice(None),
) -> ExposureCurve:
    lags, seen, references = _sides(record, name, study, arm)
    return exposure_curve(
        canary_losses=seen[..., canaries],
        reference_losses=references,
        lags=lags,
        confidence=study.attack.confidence,
        rng=np.random.default_rng([study.plan.seed, 2]),
        control_at_zero=True,
    )


def _success(
    record: Record, study: TextForgettingStudy, arm: str, success: Success
) -> ForgettingCurve:
    """How well planted sequences are told from never-planted ones.

    Both are scored by the same member: what it learnt about random tokens as such it learnt about
    both, and only what it kept of the canaries themselves tells them apart.
    """
    lags, seen, references = _sides(record, "primary", study, arm)
    return forgetting_curve(
        seen_scores=-seen,
        unseen_scores=-references,
        lags=lags,
        success=success,
        fpr=study.attack.fpr,
        confidence=study.attack.confidence,
        rng=np.random.default_rng([study.plan.seed, 2]),
        control_at_zero=True,
    )


def canary_uses(study: TextForgettingStudy, examples: int) -> NDArray[np.int64]:
    """Return how often the planted member of the first trial used each canary."""
    plan = study.plan
    ledger = plan.ledger(examples=examples)
    mine = ledger.member == plan.members_of("planted")[0]
    found = np.bincount(ledger.canary[mine], ledger.uses[mine], minlength=plan.canaries)
    return found.astype(np.int64)


def _by_uses(record: Record, study: TextForgettingStudy, examples: int) -> None:
    """Put one exposure curve per number of copies into the record."""
    plan = study.plan
    if not isinstance(plan, InjectPlan) or not isinstance(plan.copies, tuple):
        record.put_absent("by_uses", "all canaries were planted alike")
        return
    uses = canary_uses(study, examples)
    series = []
    for many in np.unique(uses).tolist():
        who = np.flatnonzero(uses == many)
        curve = _exposure(record, "primary", study.parts()["primary"], "planted", canaries=who)
        fields = exposure_fields(curve, study.attack.limit)
        series.append({"label": f"seen {times(many)}", "uses": many, **fields})
    shared = {"title": "Canaries seen more or less often", "success": "exposure"}
    record.put_result("by_uses", {**shared, "chance": series[0]["chance"], "series": series})


def _traditional(record: Record, study: TextForgettingStudy, tokens: int) -> dict[str, Any]:
    """Return the canaries' mean loss a token, in nats, and the share of tokens guessed right."""
    plan, signals = study.plan, record.array("primary.signals")
    found: dict[str, Any] = {"lags": study.lags()}
    for side, arm in (("seen", "planted"), ("unseen", "twin")):
        own = signals[:, plan.members_of(arm), :, : plan.canaries].mean(axis=(1, 3))
        found[f"{side}_accuracy"] = own[:, WINDOW_SIGNALS.index("right")].tolist()
        nats = own[:, WINDOW_SIGNALS.index("bits")] * math.log(2.0) / tokens
        found[f"{side}_loss"] = nats.tolist()
    return found


def _compare(record: Record, study: TextForgettingStudy, primary: ExposureCurve) -> None:
    """Put the variants' exposure curves beside the study's own."""
    if not study.compare:
        record.put_absent("compare", "the recipe compares nothing")
        return
    series, differences = [_series(study.label, primary)], []
    variants = list(study.parts().items())[1:]
    for (name, part), variant in zip(variants, study.compare, strict=True):
        curve = _exposure(record, name, part, "planted")
        fields = exposure_fields(curve, part.attack.limit)
        record.put_result(f"curve_{name}", {"label": variant.label, **fields})
        series.append(_series(variant.label, curve))
        differences.append(
            difference_fields(variant.label, curve, primary, study.attack.confidence)
        )
    adjust_for_number(differences)
    shared = {"title": study.title, "success": "exposure", "chance": primary.null}
    record.put_result("compare", {**shared, "series": series, "differences": differences})


def _series(label: str, curve: ExposureCurve) -> dict[str, Any]:
    return {"label": label, **{name: getattr(curve, name).tolist() for name in _ROWS}}


def _scope(study: TextForgettingStudy, tokens: int) -> dict[str, Any]:
    plan, attack = study.plan, study.attack
    ways = {
        "twin": "less what the trial's unplanted twin pays for it",
        "references": f"less the mean of {attack.reference_models} reference models, each trained "
        f"on a random {attack.fraction:.0%} of the clean text",
        "none": "as it is",
    }
    what = (
        f"{tokens} random {study.text.level}s"
        if study.canaries.kind == "random"
        else (f"{tokens} {study.text.level}s of held-out text")
    )
    tested = [
        f"{plan.kind.upper()}: {plan.trials} trials of {plan.canaries} canaries of {what} in "
        f"{study.model.name} on {study.text.name}",
        f"a sequence's cost, {ways[attack.calibration]}, ranked among {study.canaries.references} "
        f"references of the trial's own, for {plan.watch_steps} steps after the canaries were last "
        "used",
    ]
    tested += ["A/A twins as the negative control"] if plan.aa else []
    others = {
        "random": "text that a model can predict: random tokens are learnt as such, by heart",
        "text": "text that no model can predict, such as passwords and numbers",
    }
    not_tested = [
        others[study.canaries.kind],
        f"exposure beyond {math.log2(study.canaries.references + 1):.1f} bits a canary: more "
        "references would show it",
        "extraction: a rank among references does not say that a canary can be read out",
        "adversaries who know the batch order, see gradients, or query the model while it trains",
        f"lags beyond {plan.watch_steps} steps, other models and other text",
    ]
    if not plan.fresh_canaries and plan.trials > 1:
        not_tested.append("other canaries: all trials planted the same ones")
    if not plan.aa:
        not_tested.append("A/A twins: there was no negative control")
    if plan.trials == 1:
        not_tested.append("how much another training run would differ: there was one trial")
    return {"tested": tested, "not_tested": not_tested}
