"""From what sequences cost to exposure curves, searches and a verdict: reads arrays."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence
from remnant.measures import (
    ExposureCurve,
    ForgettingCurve,
    Success,
    Verdict,
    exposure_curve,
    forgetting_curve,
)
from remnant.probes import WINDOW_SIGNALS
from remnant.records import Record
from remnant.records.typed import Absent, put_parts
from remnant.studies.forgetting.exposure_curves import (
    attacked_by_all,
    calibrated_bits,
    costs_by_lag,
    exposure_result,
    hidden_bits,
    moved,
    subtracted,
    twin_exposure,
)
from remnant.studies.forgetting.pair_recipe import TranslationForgettingStudy
from remnant.studies.forgetting.sequence_result import ByUses
from remnant.studies.forgetting.sequence_training import sequence_task
from remnant.studies.forgetting.text_recipe import (
    SequenceStudy,
    TextForgettingStudy,
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
from remnant.studies.shared.curves import Traditional
from remnant.studies.shared.gates import (
    not_learnt,
    put_verdict,
    with_negative_control,
    with_residual_memory,
)
from remnant.studies.shared.measured_curves import curve_result, put_comparison
from remnant.studies.shared.result_parts import Tested
from remnant.studies.shared.wording import times

Floats = NDArray[np.float64]
PlainStudy = TextForgettingStudy | TranslationForgettingStudy
_SHOWN = ("validation_bits", "character_error_rate")  # of a task, in the rows of disturbances


def measure_text_forgetting(
    record: Record, study: PlainStudy, *, examples: int, tokens: float
) -> None:
    """Measure everything the study asks for and put it into the record; no canary is in it.

    Args:
        record: Holds the arrays, and is given the results.
        study: The study that was run.
        examples: Clean windows or pairs, from which an epoch's length follows.
        tokens: Of a canary that are scored, on average.
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


def _by_uses(record: Record, study: SequenceStudy, examples: int) -> ByUses | Absent:
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


def _traditional(record: Record, study: SequenceStudy, tokens: float) -> Traditional:
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


def sequence_scope(
    record: Record,
    study: SequenceStudy,
    *,
    planted: str,
    data: str,
    cost: str,
    untested: tuple[str, ...],
    beside: tuple[str, ...] = (),
    others: str,
) -> Tested:
    """Return what a study of sequences tested and what it did not.

    Args:
        record: Holds the search for residual memory.
        study: The study.
        planted, data: What the canaries were, and what the models were trained on.
        cost: By what they are ranked.
        untested: What was not tested of such canaries and costs; the first comes first.
        beside: The same, after what may be hidden.
        others: Which other models and data were not tested.
    """
    plan, references = study.plan, study.canaries.references
    tested = [
        f"{plan.kind.upper()}: {plan.trials} trials of {plan.canaries} canaries{planted} in "
        f"{study.model.name} on {data}",
        f"{cost}, {subtracted(study, study.attack.calibration)}, ranked among {references} "
        f"references of the trial's own, for {plan.watch_steps} steps after the canaries were last "
        "used",
    ]
    tested += ["A/A twins as the negative control"] if plan.aa else []
    scanned = "absent" not in record.results()["returning"]
    searched, may_be_hidden = hidden_scope(study.hidden, scanned=scanned)
    first, *more = untested
    not_tested = [
        first,
        f"exposure beyond {math.log2(references + 1):.1f} bits a canary: more references would "
        "show it",
        *more,
        *may_be_hidden,
        *beside,
        f"lags beyond {plan.watch_steps} steps, {others}",
    ]
    if not plan.fresh_canaries and plan.trials > 1:
        not_tested.append("other canaries: all trials planted the same ones")
    if not plan.aa:
        not_tested.append("A/A twins: there was no negative control")
    if plan.trials == 1:
        not_tested.append("how much another training run would differ: there was one trial")
    return Tested(tested=(*tested, *searched), not_tested=tuple(not_tested))


def _scope(record: Record, study: PlainStudy, tokens: float) -> Tested:
    extraction = "extraction: a rank among references does not say that a canary can be extracted"
    adversaries = (
        "adversaries who know the batch order, see gradients, or query the model while it trains",
    )
    if isinstance(study, TranslationForgettingStudy):
        words = sequence_task(study).scope(study)
        return sequence_scope(
            record,
            study,
            planted=f", {words.planted},",
            data=words.data,
            cost=words.scored[0],
            untested=(*words.untested, extraction),
            beside=adversaries,
            others=words.others,
        )
    level, random = study.text.level, study.canaries.kind == "random"
    others = {
        "random": "text that a model can predict: random tokens are learnt as such, by heart",
        "text": "text that no model can predict, such as passwords and numbers",
    }
    return sequence_scope(
        record,
        study,
        planted=f" of {tokens} random {level}s"
        if random
        else f" of {tokens} {level}s of held-out text",
        data=study.data.path if study.data else study.text.name,
        cost="a sequence's cost",
        untested=(others[study.canaries.kind], extraction),
        beside=adversaries,
        others="other models and other text",
    )


def put_residual_memory(record: Record, study: SequenceStudy) -> None:
    """Put what disturbances and later checkpoints bring back into the record.

    Args:
        record: Holds the arrays, with ``[hidden]`` also ``primary.hidden``, what canaries and
            references cost undisturbed and disturbed members, and ``primary.hidden_task``; and
            ``task``.
        study: The study's own part, without its variants.
    """
    hidden: ResidualMemory | Absent = Absent(NOT_ASKED)
    if study.hidden is not None:
        hidden = or_absent(_residual_memory, record, study, study.hidden)
    put_parts(record, hidden=hidden, returning=or_absent(_scan, record, study))


def _residual_memory(
    record: Record, study: SequenceStudy, settings: HiddenSettings
) -> ResidualMemory:
    """Attack the disturbed models, calibrated as the study is."""
    plan, attack = study.plan, study.attack
    numbers = record.array("primary.hidden_task")
    canaries, references = hidden_bits(record, study, "planted")
    exposed = exposure_curve(
        canary_losses=canaries,
        reference_losses=references,
        lags=np.arange(len(canaries)),  # the slots: before, then each disturbance
        confidence=attack.confidence,
        rng=np.random.default_rng([plan.seed, 2]),
        control_at_zero=True,
    )
    task, row = sequence_task(study), record.results().get("task") or {}
    columns: list[dict[str, Any]] = []
    for slot, own in enumerate(numbers[:, plan.members_of("planted")]):
        fields = task.fields(own, row)
        shown = {name: fields[name] for name in _SHOWN if name in fields}
        ends = {"exposure": exposed.value, "exposure_low": exposed.low}
        ends["exposure_high"] = exposed.high
        columns.append({name: float(column[slot]) for name, column in ends.items()} | shown)
        if slot:
            columns[-1]["useful"] = not not_learnt(fields)
    unplanted = None
    if plan.aa and moved(record, study)[-1]:
        own_canaries, own_references = hidden_bits(record, study, "aa")
        unplanted = -own_canaries, -own_references
    return residual_memory(
        settings,
        planted=(-canaries, -references),
        unplanted=unplanted,
        success="auc",
        fpr=attack.fpr,
        confidence=attack.confidence,
        seed=plan.seed,
        lag=float(study.lags()[-1]),
        columns=columns[1:],
        **columns[0],
    )


def _scan(record: Record, study: SequenceStudy) -> Returning:
    """Look for canaries that are lost at some checkpoints and found at a later one.

    A canary's score is how many references cost more *in the same model*. So what one model learnt
    about such sequences in general does not make its canaries come back.
    """
    plan, attack = study.plan, study.attack
    there = np.ones(len(study.lags()), dtype=bool)
    if plan.aa:
        arm, reference = "aa", "A/A twins"
        there = moved(record, study)
        if not there.any():
            raise NotEnoughEvidence("the A/A twins have not parted within the lags measured.")
    elif study.attack.calibration == "influence":
        raise NotEnoughEvidence(
            "how many canaries come back by chance is read off models that saw none; each trial's "
            "own twin calibrates its costs, and the plan has no A/A twins.",
            hint='Give the plan A/A twins (aa = true), or set attack.calibration = "twins".',
        )
    else:
        arm, reference = "twin", "unplanted twins"
    canaries, references = calibrated_bits(record, "primary", study, "planted")
    null, null_references = calibrated_bits(record, "primary", study, arm)
    return scan(
        seen=beaten(canaries, references)[there],
        null=beaten(null, null_references)[there],
        unseen=beaten(references, references)[there],
        fpr=attack.fpr,
        confidence=attack.confidence,
        reference=reference,
    )


def beaten(costs: Floats, references: Floats) -> Floats:
    """Return how many references cost more than each sequence, in the same checkpoint and trial.

    Args:
        costs: ``(checkpoints, trials, n)``.
        references: ``(checkpoints, trials, references)``.

    Example:
        >>> beaten(np.array([[[1.0, 2.0]]]), np.array([[[0.0, 2.0, 3.0]]])).tolist()
        [[[2.0, 1.0]]]
    """
    made = np.empty(costs.shape)
    for checkpoint, trials in enumerate(np.sort(references, axis=2)):
        for trial, row in enumerate(trials):
            cheaper = np.searchsorted(row, costs[checkpoint, trial], side="right")
            made[checkpoint, trial] = len(row) - cheaper
    return made
