"""The page of a forgetting study: how attack success falls after the canaries were planted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from remnant.records.typed import Absent
from remnant.report.blocks import (
    Block,
    Cell,
    Column,
    Figure,
    Missing,
    Reading,
    Table,
    Terms,
    Tile,
    Tiles,
    prose,
    section,
)
from remnant.report.numerals import count_text, lag_text, p_equals, percent, short_percent
from remnant.studies.beside.forgetting import beside
from remnant.studies.forgetting.decision_blocks import decision_section
from remnant.studies.forgetting.result import AttackUsed, ForgettingResult, WithinLabel
from remnant.studies.residual_memory.blocks import residual_memory_section, searches
from remnant.studies.shared.curve_blocks import (
    after_planting,
    bands,
    comparison_section,
    control_count,
    control_holds,
    curve_tables,
    end_reading,
    epsilon_row,
    evidence_text,
    measure_row,
    measured_by,
    measures_table,
    point_tile,
    traditional_section,
)
from remnant.studies.shared.curve_charts import curve_chart, describe
from remnant.studies.shared.curves import Curve, CurveResult
from remnant.studies.shared.pages import (
    UNDECIDED,
    RunFacts,
    closing,
    headline,
    scope_section,
    task_sentence,
)
from remnant.studies.shared.result_parts import Gate

TITLE = "Forgetting"
_TITLES = {
    "PASS": "Under the limit at the last step watched",
    "FAIL": "Still remembered beyond the limit",
    "INCONCLUSIVE": UNDECIDED,
}
_ADVICE = {
    "PASS": "Examples as old as the last lag need no further protection against this attack. "
    "“What to decide” says whether those used more recently do.",
    "FAIL": "Protect these examples: show them less often, train longer without them before the "
    "release, or train with differential privacy. Then run the study again.",
    "INCONCLUSIVE": "Run the study again in a new folder with more evidence, such as more trials; "
    "the verdict says what is missing.",
}
_KIND = "Same kind, never seen"
_ATTACKERS = {
    "references": "With reference models",
    "checkpoint": "With the checkpoint before planting",
    "none": "With the model alone",
}
_ATTACK = (
    "It scores each example by how likely the model finds its label{compared}, and calls the "
    "highest scores “seen”. Planted and never-planted examples are scored in the same model, so "
    "what it learnt of their kind helps nobody."
)
_COMPARED = {
    "references": ", compared with models that never saw it",
    "checkpoint": ", compared with the model before planting",
    "none": "",
}
_ATTACK_BESIDE_TWIN = (
    "It scores each example by how much more likely the model finds it now than before it was "
    "planted, and calls the highest scores “seen”. A twin of the model that skipped the planting "
    "gives the scores of examples that were not seen."
)
_INSIDE_TERMS = {
    "Unplanted twins": "The same comparison in models that saw none of the examples. Any success "
    "there is not memory; it must stay at chance.",
    _KIND: "What planting teaches about such examples in general: the planted model against its "
    "twin, on examples that neither saw. It is no memory of single examples.",
    "Influence of planting": "By scores less those of the trial’s own twin, which trained the same "
    "way without the planting. It shows that planting left a trace, not that anyone can find it.",
}
_AA = (
    "Two models trained the same way with fresh randomness, neither of which saw the canaries. Any "
    "success of the attack there is not memory; it must stay at chance."
)
_MEASURES = {
    "precision": "Precision",
    "tpr": "True positive rate",
    "auc": "AUC",
    "accuracy": "Attack accuracy",
}
_TRADITIONAL = (
    "Plain accuracy and loss on the canaries often look as if nothing were left long before an "
    "attack fails, so they cannot replace it. Mean over the trials."
)


@dataclass(frozen=True, slots=True)
class _Curves:
    """The curves as they are shown; None where one was not measured.

    Attributes:
        main: By the study's own attack.
        control: The same where nothing was planted.
        kind: Planted model against twin on examples that neither saw.
        inside: Whether ``main`` compares examples inside the planted model.
    """

    main: Curve | None
    control: Curve | None
    kind: Curve | None
    inside: bool

    @property
    def control_name(self) -> str:
        return "Unplanted twins" if self.inside else "A/A twins"


def page(result: ForgettingResult, run: RunFacts) -> Iterator[Block]:
    """What a report shows of a forgetting study."""
    constructed = not result.inside and holds_by_construction(run.recipe)

    def shown(curve: CurveResult | Absent) -> Curve | None:
        return None if isinstance(curve, Absent) else curve.shown(by_construction=constructed)

    curves = _Curves(
        shown(result.curve), shown(result.curve_aa), shown(result.curve_kind), result.inside
    )
    limit = result.verdict.limit if isinstance(result.verdict, Gate) else None
    yield headline(
        result.verdict,
        _TITLES,
        checks=beside(result),
        reading=_reading(curves.main, limit),
        advice=_ADVICE,
    )
    tiles = tuple(_tiles(result, curves))
    if tiles:
        yield Tiles(tiles)
    yield section("In plain words", _plain_words(result, curves, run))
    yield section("How attack success falls", _falls(result, curves, limit))
    yield section("Controls", _controls(result, curves), part="method")
    yield section("Other attackers, and what is no attack", _comparisons(result))
    yield decision_section(result.decision, curves.main)
    yield residual_memory_section(result.hidden, result.returning)
    if not isinstance(result.compare, Absent):
        yield comparison_section(result.compare, curves.main, key="compare")
    yield section("Other measures of success", _other_measures(result, curves.main, shown))
    yield traditional_section(result.traditional, _TRADITIONAL)
    yield scope_section(result.scope)
    yield section("How to read this", [Terms(tuple(_terms(result, curves.main)))])
    yield from closing(run)


def holds_by_construction(recipe: Mapping[str, Any]) -> bool:
    """Whether attack success at lag 0 holds by construction.

    In an INJECT plan the unplanted twin equals its checkpoint at lag 0, so scores calibrated by
    that checkpoint are all 0 there.
    """
    parts = {name: recipe.get(name) for name in ("plan", "attack")}
    plan, attack = (part if isinstance(part, Mapping) else {} for part in parts.values())
    by_checkpoint = attack.get("calibration", "logit") in ("checkpoint", "logit", "loss")
    return plan.get("kind") == "inject" and by_checkpoint


def _reading(curve: Curve | None, limit: float | None) -> Reading | None:
    if curve is None:
        return None
    n = evidence_text(curve.trials, curve.n_seen)
    return end_reading(curve, limit=limit, highest=1.0, n=n)


def _tiles(result: ForgettingResult, curves: _Curves) -> Iterator[Tile]:
    curve, control = curves.main, curves.control
    if curve is not None:
        chance = "" if curve.chance is None else f"chance {curve.show(curve.chance)}"
        for point, extra in ((curve.start, chance), (curve.end, "")):
            name = f"{curve.label} {after_planting(point)}"
            yield point_tile(name, curve, point, remark=extra)
    if control is not None:
        name = f"{curves.control_name} {after_planting(control.end)}"
        yield point_tile(name, control, control.end)
    verdict = result.verdict
    if curve is not None and isinstance(verdict, Gate) and verdict.limit is not None:
        remark = "" if verdict.lag is None else f"at lag {lag_text(verdict.lag)}"
        yield Tile("Limit", curve.show(verdict.limit), remark)


def _plain_words(result: ForgettingResult, curves: _Curves, run: RunFacts) -> Iterator[Block]:
    uses = max((row.uses[1] for row in run.ledger), default=None)
    sentences = [what_was_done(run.plan, uses, attack=result.attack, curve=curves.main)]
    if curves.main is not None:
        sentences += what_was_found(curves.main)
    elif isinstance(result.curve, Absent):
        sentences.append(f"How fast attack success falls was not measured: {result.curve.reason}.")
    sentences.append(control_sentence(result.curve_aa, curves.control, inside=curves.inside))
    sentences.append(searches(result.hidden, result.returning))
    yield prose(" ".join(sentence for sentence in sentences if sentence), tone="lead")
    yield prose(task_sentence(result.task), tone="lead")


def what_was_done(
    plan: Mapping[str, Any],
    uses: int | None,
    *,
    attack: AttackUsed | Absent,
    curve: Curve | None = None,
) -> str:
    """How the canaries were planted, as far as the plan says; nothing where it does not.

    Args:
        plan: Its fields.
        uses: How often one model used a canary; None where that was not recorded.
        attack: Of the result.
        curve: Says how many never-planted examples there were.
    """
    canaries, repeats = plan.get("canaries"), plan.get("repeats")
    if not isinstance(canaries, int):
        return ""
    step, watch = plan.get("step"), plan.get("watch_steps")
    planted = "were part of one model’s training"
    if plan.get("kind") == "inject" and isinstance(repeats, int) and isinstance(step, int):
        times = "once" if repeats == 1 else f"{repeats} times"
        planted = f"were shown to a model {times} at training step {lag_text(step)}"
        if uses is not None and uses > repeats:
            batches = "one batch" if repeats == 1 else f"{repeats} batches"
            planted = (
                f"were shown to a model in {batches} at training step {lag_text(step)}, up to "
                f"{uses} times in all because they fill the batch"
            )
    after = f" for {lag_text(watch)} more steps" if isinstance(watch, int) else ""
    if isinstance(attack, Absent) or attack.against == "twin":
        return (
            f"{lag_text(canaries)} chosen examples {planted}; an otherwise equal twin never saw "
            f"them. Both then trained without these examples{after}. At each point an attacker who "
            "holds the model had to say which examples had been used."
        )
    others = "others" if curve is None or curve.n_unseen is None else count_text(curve.n_unseen)
    return (
        f"{lag_text(canaries)} chosen examples {planted}, which then trained without them{after}. "
        f"At each point {attack.attacker} had to distinguish them from {others} that were chosen "
        "the same way and that this model never saw."
    )


def what_was_found(curve: Curve) -> list[str]:
    """Success at the first lag at which the attack can fail, and at the last one."""
    start, end = curve.start, curve.end
    if curve.success != "precision" or start.value is None or end.value is None:
        return [describe(curve)]
    interval = curve.show_interval(end)
    sure = "" if not interval else f" ({percent(curve.confidence, 0)} interval {interval})"
    guess = "" if curve.chance is None else f"; pure guessing gives {percent(curve.chance, 0)}"
    since = f"{lag_text(start.lag)} steps after planting"
    if start.lag <= 1:
        since = "One step after planting" if start.lag == 1 else "Right after planting"
    return [
        f"{since}, {curve.show(start.value)} of the examples the attacker named had really been "
        f"used{guess}.",
        f"{lag_text(end.lag)} steps after planting it was {curve.show(end.value)}{sure}.",
    ]


def control_sentence(
    stored: CurveResult | Absent, control: Curve | None, *, inside: bool = False
) -> str:
    """What the negative control says about the method; nothing where it has no interval."""
    if isinstance(stored, Absent):
        return f"There is no negative control: {stored.reason}."
    if control is None or control_count(control)[1] == 0:
        return ""
    holding, lags = control_count(control)
    pairs = (
        "the same comparison was made in models that saw none of the examples"
        if inside
        else "pairs of models of which neither saw the examples were compared in the same way"
    )
    check = f"As a check on the method, {pairs}"
    if control_holds(control):
        return f"{check}: the attack did no better than guessing."
    return (
        f"{check}. An attacker can only guess there, but the interval includes chance at only "
        f"{holding} of {lags} lags, so read the curve with caution."
    )


def _falls(result: ForgettingResult, curves: _Curves, limit: float | None) -> Iterator[Block]:
    curve = curves.main
    if curve is None:
        reason = result.curve.reason if isinstance(result.curve, Absent) else ""
        yield Missing("Forgetting curve", reason, depth="summary")
        return
    chart = curve_chart(
        curve,
        control=curves.control,
        control_name=curves.control_name,
        others=[(_KIND, curves.kind)] if curves.inside and curves.kind is not None else [],
        limit=limit,
        title="Attack success against steps since planting",
        label="Planted examples" if curves.inside else "Planted models",
    )
    yield Figure(chart, key="curve", caption=f"{bands(curve)}{measured_by(curve)}")
    if not curves.inside:
        yield prose(
            "The planted model is compared with its twin on the same examples, as in the paper. "
            "Success is memory of these examples and also what was learnt of their kind.",
            depth="show",
        )
    yield from curve_tables(curve, curves.control, control_name=curves.control_name)
    if curve.constructed is not None:
        yield prose(
            f"Lag 0 ({curve.show(curve.constructed.value)}) holds by construction: there the twin "
            "that skipped the planting still equals its checkpoint, so all its scores are 0. The "
            f"first lag at which the attack can fail is {lag_text(curve.start.lag)}.",
            tone="note",
            depth="summary",
        )


def _controls(result: ForgettingResult, curves: _Curves) -> Iterator[Block]:
    if isinstance(result.curve_aa, Absent):
        name = f"{curves.control_name} (negative control)"
        yield Missing(name, result.curve_aa.reason, depth="summary")
    elif curves.control is not None:
        fails = not control_holds(curves.control)
        sentence = control_sentence(result.curve_aa, curves.control, inside=curves.inside)
        if sentence:
            yield prose(sentence, tone="notice" if fails else "plain")
    if curves.inside:
        yield from _inside_controls(result)
    elif curves.kind is not None:
        yield prose(never_planted_sentence(curves.kind), depth="summary")
    elif isinstance(result.curve_kind, Absent):
        yield Missing("Never-planted canaries", result.curve_kind.reason)


def _inside_controls(result: ForgettingResult) -> Iterator[Block]:
    """What a model that learnt only the kind, or only the labels, would not show."""
    own, within = result.own_set, result.within_label
    if isinstance(own, Absent):
        yield Missing("Each model’s own set", own.reason)
    elif not own.can_find:
        reason = f"{count_text(own.sets)} trials have too few orders for a p-value of 5 %"
        yield Missing("Each model’s own set", reason)
    else:
        yield prose(
            f"Each planted model scored the sets of all {count_text(own.sets)} trials. At lag "
            f"{lag_text(own.lags[-1])} its own set ranks {own.mean_rank[-1]:.1f} on average "
            f"(chance {(own.sets + 1) / 2:.1f}); permutation test: {p_equals(own.p_value[-1])}. "
            "Examples are ranked within their label. A model that learnt only the kind of the "
            "examples ranks all sets alike.",
            depth="show",
        )
    if isinstance(within, Absent):
        yield Missing("Within the same label", within.reason)
    else:
        yield prose(
            f"Among examples of the same label AUC is {within_text(within)} at lag "
            f"{lag_text(within.lags[-1])}: a trace of the label alone would give 0.500.",
            depth="show",
        )


def within_text(within: WithinLabel) -> str:
    """The last AUC among examples of one label, with its interval."""
    return f"{within.value[-1]:.3f} ({within.low[-1]:.3f} to {within.high[-1]:.3f})"


@dataclass(frozen=True, slots=True)
class _Compared:
    """One comparison beside the study's own."""

    name: str
    curve: Curve
    note: str


def _comparisons(result: ForgettingResult) -> Iterator[Block]:
    rows = list(_compared(result))
    if not rows:
        return
    first = rows[0].curve

    def cell(curve: Curve, *, end: bool) -> Cell:
        point = curve.end if end else curve.points[0]
        return Cell(curve.show(point.value), curve.show_interval(point))

    yield Table(
        caption=f"{first.label} by other comparisons in the same run",
        key="comparisons",
        rows=rows,
        columns=(
            Column("Comparison", "name", depth="summary"),
            Column(
                f"At lag {lag_text(first.points[0].lag)}",
                "curve",
                lambda curve: cell(curve, end=False),
                depth="summary",
            ),
            Column(
                f"At lag {lag_text(first.end.lag)}",
                "curve",
                lambda curve: cell(curve, end=True),
                depth="summary",
            ),
            Column("What it is", "note"),
        ),
        depth="summary",
    )


def _compared(result: ForgettingResult) -> Iterator[_Compared]:
    """The study's own comparison, if it is one inside the model, then the others."""
    if result.inside and not isinstance(result.curve, Absent):
        attack = result.attack
        name = _ATTACKERS["none" if isinstance(attack, Absent) else attack.calibration]
        yield _Compared(name, result.curve.shown(), "the attacker of this study")
    for name, curve in result.other_attackers.items():
        yield _Compared(_ATTACKERS[name], curve.shown(), "an attacker: a PASS needs this one too")
    beside = (
        ("Influence of planting", result.curve_influence, "no attack: nobody has the trial’s twin"),
        ("As in the paper", result.curve_twin, "planted model against its twin: memory and kind"),
        (_KIND, result.curve_kind, "planted model against twin on examples that neither saw"),
    )
    for name, stored, note in beside if result.inside else ():
        if not isinstance(stored, Absent):
            yield _Compared(name, stored.shown(), note)


def never_planted_sentence(curve: Curve) -> str:
    """How the attack does on canaries that were drawn the same way and never planted."""
    guess = "" if curve.chance is None else f"; guessing gives {curve.show(curve.chance)}"
    return (
        "Never-planted canaries, drawn the same way and scored in the same models: "
        f"{curve.label} is {curve.show_point(curve.start)} at lag {lag_text(curve.start.lag)} and "
        f"{curve.show_point(curve.end)} at lag {lag_text(curve.end.lag)}{guess}. A value above "
        "chance shows that planting changed the model on canaries it did not see: the planted "
        "model against its twin shows what was learnt of the kind too."
    )


def _other_measures(
    result: ForgettingResult,
    main: Curve | None,
    shown: Callable[[CurveResult | Absent], Curve | None],
) -> Iterator[Block]:
    measured = [curve for curve in map(shown, result.other_measures.values()) if curve is not None]
    if measured:
        rows = [measure_row(curve) for curve in measured]
        epsilon = None if main is None else epsilon_row(main)
        yield measures_table(
            "The same attack by other measures",
            rows if epsilon is None else [*rows, epsilon],
            start=f"At lag {lag_text(measured[0].start.lag)}",
        )
    for name, curve in result.other_measures.items():
        if isinstance(curve, Absent):
            yield Missing(_MEASURES[name], curve.reason)


def _terms(result: ForgettingResult, curve: Curve | None) -> Iterator[tuple[str, str]]:
    attack = result.attack
    if isinstance(attack, Absent) or attack.against == "twin":
        yield "The attack", _ATTACK_BESIDE_TWIN
    else:
        yield "The attack", _ATTACK.format(compared=_COMPARED[attack.calibration])
    if curve is not None and curve.success == "precision" and curve.fpr is not None:
        fpr = short_percent(curve.fpr)
        yield (
            curve.label,
            f"The attacker may be wrong on {fpr} of the unseen examples. Precision is the share "
            "of those it calls seen that really were, with as many seen as unseen. Guessing gives "
            f"{curve.show(curve.chance)}; a perfect attack at a realised false positive rate of "
            f"exactly {fpr} gives {curve.show(curve.highest)}, and more only if fewer unseen "
            "examples are called seen.",
        )
    sure = "95 %" if curve is None or curve.confidence is None else percent(curve.confidence, 0)
    yield (
        "The band",
        "A two-sided interval: if the whole audit were repeated many times, an interval made this "
        f"way would include the true value in {sure} of them, at each lag taken by itself. “At or "
        f"under” a limit, as the decision says it, is a one-sided bound at {sure}: it lies below "
        "the upper end of the two-sided interval.",
    )
    if result.inside:
        yield from _INSIDE_TERMS.items()
    else:
        yield "A/A twins", _AA
    yield (
        "Heuristic ε",
        "The logarithm of true over false positive rate, as the forgetting paper reports it. It "
        "puts curves into the unit of differential privacy; it is one attack at one threshold and "
        "bounds nothing.",
    )
    yield (
        "The verdict",
        f"It judges the longest lag. PASS: the one-sided upper bound at {sure} is at or under the "
        "limit, and the attack found the canaries at some lag, corrected for the number of lags. "
        f"FAIL: the one-sided lower bound at {sure} is above the limit. INCONCLUSIVE: the evidence "
        "supports neither; the sentence says why."
        + (
            " PASS also needs the bounds of all other attackers that were computed."
            if result.other_attackers
            else ""
        )
        + (
            ""
            if result.inside
            else " After INJECT, lag 0 does not count as found, because the attack succeeds there "
            "by construction; after POISON it counts."
        ),
    )
