"""From what sequences cost to exposure curves and a verdict: reads arrays, touches no model."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from remnant.measures import ExposureCurve, ForgettingCurve, Success, Verdict, forgetting_curve
from remnant.probes import WINDOW_SIGNALS
from remnant.records import Record
from remnant.records.typed import Absent, put_parts
from remnant.studies.residual_memory.measured import hidden_scope
from remnant.studies.shared.curves import Traditional
from remnant.studies.shared.gates import put_verdict, with_negative_control, with_residual_memory
from remnant.studies.shared.measured_curves import curve_result, put_comparison
from remnant.studies.shared.result_parts import Tested
from remnant.studies.shared.wording import times
from remnant.studies.text_forgetting.calibration import moved, subtracted
from remnant.studies.text_forgetting.exposure_curves import (
    attacked_by_all,
    costs_by_lag,
    exposure_result,
    twin_exposure,
)
from remnant.studies.text_forgetting.recipe import (
    SequenceStudy,
    TextForgettingStudy,
)
from remnant.studies.text_forgetting.residual_memory import put_residual_memory
from remnant.studies.text_forgetting.result import ByUses

Floats = NDArray[np.float64]


def measure_text_forgetting(
    record: Record, study: TextForgettingStudy, *, examples: int, tokens: int
) -> None:
    """Measure everything the study asks for and put it into the record; no canary is in it.

    Args:
        record: Holds the arrays, and is given the results.
        study: The study that was run.
        examples: Clean windows, from which an epoch's length follows.
        tokens: Of a canary.
    """
    put_twin_curves(record, study)
    put_parts(record, by_uses=_by_uses(record, study, examples))
    put_parts(record, traditional=_traditional(record, study, tokens))
    put_parts(record, scope=_scope(record, study, tokens))


def put_twin_curves(record: Record, study: SequenceStudy) -> None:
    """Put exposure and attack success against lag, controls, searches and verdict into the record.

    Args:
        record: Holds, for each part of the study, ``NAME.signals`` of the shape ``(lags, members,
            signals, canaries and references)``, of which signal 0 is the cost in bits; with two
            trials or more ``NAME.twins_bits``, the mean cost under the unplanted members of other
            trials; with reference models also their ``NAME.reference_bits``. ``task`` is there.
        study: The study that was run.
    """
    parts = study.parts()
    attacked = attacked_by_all(record, "primary", parts["primary"])
    primary = attacked.own
    put_parts(record, curve_exposure=attacked.stored(), calibrations=attacked.table())
    unplanted = _controls(record, parts["primary"])
    put_residual_memory(record, parts["primary"])

    def judged() -> Verdict:
        verdict = with_negative_control(attacked.verdict(), unplanted)
        return with_residual_memory(verdict, record.results())

    put_verdict(record, judged, task=record.results().get("task"))
    for success in get_args(Success):
        name = "curve" if success == "precision" else f"curve_{success}"
        curve = _success(record, study, "planted", success)
        put_parts(record, **{name: curve_result(curve)})
    _compare(record, study, primary)


def _controls(record: Record, study: SequenceStudy) -> ExposureCurve | None:
    """Put what the attack finds in the A/A twins, which saw no canary, into the record."""
    if study.plan.aa and moved(record, study).any():
        exposed = twin_exposure(record, "primary", study, "aa")
        put_parts(
            record,
            curve_exposure_aa=exposure_result(
                exposed, study.attack.limit, exposed.safe_after(study.attack.limit)
            ),
            curve_aa=curve_result(_success(record, study, "aa", "precision")),
        )
        return exposed
    reason = (
        "the A/A twins have not parted within the lags that were measured"
        if study.plan.aa
        else "the plan has no A/A twins"
    )
    put_parts(record, curve_exposure_aa=Absent(reason), curve_aa=Absent(reason))
    return None


def _success(record: Record, study: SequenceStudy, arm: str, success: Success) -> ForgettingCurve:
    """Return how well an attack distinguishes planted from never-planted sequences.

    Both are scored by the same member. What it learnt about random tokens in general applies to
    both, so only what it kept of the canaries themselves distinguishes them.
    """
    lags, seen, references = costs_by_lag(record, "primary", study, arm)
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


def canary_uses(study: SequenceStudy, examples: int) -> NDArray[np.int64]:
    """Return how often the planted member of the first trial used each canary."""
    plan = study.plan
    ledger = plan.ledger(examples=examples)
    mine = ledger.member == plan.members_of("planted")[0]
    uses = np.bincount(ledger.canary[mine], ledger.uses[mine], minlength=plan.canaries)
    return uses.astype(np.int64)


def _by_uses(record: Record, study: TextForgettingStudy, examples: int) -> ByUses | Absent:
    """Return one exposure curve for each number of copies, or why there is but one number."""
    plan = study.plan
    if not isinstance(plan.copies, tuple):
        return Absent("all canaries were planted equally often")
    uses = canary_uses(study, examples)
    series = []
    for copies in np.unique(plan.copies_of).tolist():
        who = np.flatnonzero(plan.copies_of == copies)
        many = int(uses[who].max())  # some of POISON's miss an epoch that is cut short
        attacked = attacked_by_all(record, "primary", study.parts()["primary"], canaries=who)
        series.append(replace(attacked.stored(), label=f"seen {times(many)}", uses=many))
    return ByUses(
        title="Canaries seen more or less often", chance=series[0].chance, series=tuple(series)
    )


def _traditional(record: Record, study: TextForgettingStudy, tokens: int) -> Traditional:
    """Return the canaries' mean loss a token, in nats, and the share of tokens guessed right."""
    plan, signals = study.plan, record.array("primary.signals")
    columns: dict[str, tuple[float, ...]] = {}
    for side, arm in (("seen", "planted"), ("unseen", "twin")):
        own = signals[:, plan.members_of(arm), :, : plan.canaries].mean(axis=(1, 3))
        columns[f"{side}_accuracy"] = tuple(own[:, WINDOW_SIGNALS.index("right")].tolist())
        nats = own[:, WINDOW_SIGNALS.index("bits")] * math.log(2.0) / tokens
        columns[f"{side}_loss"] = tuple(nats.tolist())
    return Traditional(lags=tuple(study.lags()), **columns)


def _compare(record: Record, study: SequenceStudy, primary: ExposureCurve) -> None:
    """Put the variants' exposure curves beside the study's own."""
    variants = []
    for name, part in list(study.parts().items())[1:]:
        attacked = attacked_by_all(record, name, part)
        variants.append((name, attacked.own, attacked.stored()))
    put_comparison(record, study, primary, variants, success="exposure", chance=primary.null)


def searched_scope(record: Record, study: SequenceStudy) -> tuple[list[str], list[str]]:
    """Return what was searched for residual memory and what was not, as lines of the scope."""
    scanned = "absent" not in record.results()["returning"]
    return hidden_scope(study.hidden, scanned=scanned)


def _scope(record: Record, study: TextForgettingStudy, tokens: int) -> Tested:
    plan = study.plan
    what = (
        f"{tokens} random {study.text.level}s"
        if study.canaries.kind == "random"
        else (f"{tokens} {study.text.level}s of held-out text")
    )
    tested = [
        f"{plan.kind.upper()}: {plan.trials} trials of {plan.canaries} canaries of {what} in "
        f"{study.model.name} on {study.data.path if study.data else study.text.name}",
        f"a sequence's cost, {subtracted(study, study.attack.calibration)}, ranked among "
        f"{study.canaries.references} references of the trial's own, for {plan.watch_steps} steps "
        "after the canaries were last used",
    ]
    tested += ["A/A twins as the negative control"] if plan.aa else []
    searched, may_be_hidden = searched_scope(record, study)
    tested += searched
    others = {
        "random": "text that a model can predict: random tokens are learnt as such, by heart",
        "text": "text that no model can predict, such as passwords and numbers",
    }
    not_tested = [
        others[study.canaries.kind],
        f"exposure beyond {math.log2(study.canaries.references + 1):.1f} bits a canary: more "
        "references would show it",
        "extraction: a rank among references does not say that a canary can be extracted",
        *may_be_hidden,
        "adversaries who know the batch order, see gradients, or query the model while it trains",
        f"lags beyond {plan.watch_steps} steps, other models and other text",
    ]
    if not plan.fresh_canaries and plan.trials > 1:
        not_tested.append("other canaries: all trials planted the same ones")
    if not plan.aa:
        not_tested.append("A/A twins: there was no negative control")
    if plan.trials == 1:
        not_tested.append("how much another training run would differ: there was one trial")
    return Tested(tested=tuple(tested), not_tested=tuple(not_tested))
