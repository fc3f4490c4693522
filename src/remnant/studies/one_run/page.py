"""The page of a run with canaries planted along the way, for a reader new to attacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from remnant.records.typed import Absent
from remnant.report.blocks import (
    Bar,
    Block,
    Cell,
    Column,
    Depth,
    Figure,
    Missing,
    Prose,
    Reading,
    Table,
    Terms,
    Tile,
    Tiles,
    prose,
    section,
)
from remnant.report.numerals import count_text, counted, percent, short_percent, times_text
from remnant.studies.beside.one_run import beside
from remnant.studies.one_run.charts import effect_chart, line_keys, success_chart, timeline
from remnant.studies.one_run.formats import (
    after_text,
    effect_text,
    uses_text,
    whole_lag,
)
from remnant.studies.one_run.result import (
    Cohort,
    OneRunCurves,
    OneRunParts,
    SpeechOneRunResult,
    TextOneRunResult,
    TranslationOneRunResult,
)
from remnant.studies.shared.curves import Point
from remnant.studies.shared.pages import (
    UNDECIDED,
    RunFacts,
    closing,
    headline,
    scope_section,
    task_sentence,
)
from remnant.studies.shared.result_parts import LanguageTask, SpeechTask
from remnant.studies.shared.wording import listed
from remnant.tasks.score_words import (
    LOG_ODDS,
    SEQUENCE_COST,
    TARGET_COST,
    TRANSCRIPT_COST,
    ScoreWords,
)

TITLE = "One-run forgetting"
TEXT_TITLE = "One-run forgetting of text"
SPEECH_TITLE = "One-run forgetting of speech"
PAIR_TITLE = "One-run forgetting in translation"
TITLES = {
    "PASS": "Within the limit at the end of this one run",
    "FAIL": "Still found beyond the limit at the end of this one run",
    "INCONCLUSIVE": UNDECIDED,
}
ADVICE = {
    "PASS": "Nothing needs to change for canaries like these. Run it again when the model, the "
    "data or the length of training changes: one run does not show how much another would differ.",
    "FAIL": "Use such examples less often, use them earlier in training, or train longer after "
    "them; then run this again in a new folder.",
    "INCONCLUSIVE": "The sentence above says what is missing: more canaries, or a longer run after "
    "the first window. Change the recipe and run it in a new folder.",
}
_MOST_ROWS = 30
_SCORES: dict[type[OneRunParts], ScoreWords] = {
    TextOneRunResult: SEQUENCE_COST,
    SpeechOneRunResult: TRANSCRIPT_COST,
    TranslationOneRunResult: TARGET_COST,
}
_PLANTED: dict[type[OneRunParts], dict[str, str]] = {  # by kind of canary
    TextOneRunResult: {
        "random": "Canaries are sequences of random tokens behind clean text.",
        "text": "Canaries are passages of held-out text.",
    },
    SpeechOneRunResult: {
        "spoken": "Canaries are sentences of random words, spoken by synthetic voices.",
        "wrong": "Canaries are recordings with random words as a wrong transcript.",
    },
    TranslationOneRunResult: {
        "random": "Canaries are pairs of random words, so that no source predicts its target.",
        "held-out": "Canaries are held-out pairs of sentences.",
    },
}
_WHAT = {
    "tpr": "the share of the planted canaries that the attacker finds",
    "precision": "the share of the canaries named by the attacker that had been planted, with as "
    "many planted as never planted",
    "auc": "how often a planted canary looks more familiar to the model than one never planted",
    "accuracy": "the share of canaries that the attacker sorts correctly into planted and never "
    "planted, with as many of each",
}
ONE_RUN = (
    "This is one run: the intervals show how much other canaries would change these numbers, not "
    "how much another run would."
)


@dataclass(frozen=True, slots=True)
class _Scored:
    """A cohort at one checkpoint."""

    cohort: Cohort
    point: Point
    effect: Point | None


def page(result: OneRunParts, run: RunFacts) -> Iterator[Block]:
    """Yield the blocks of the page."""
    words = _SCORES.get(type(result), LOG_ODDS)
    canaries = run.recipe.get("canaries")
    kind = canaries.get("kind") if isinstance(canaries, Mapping) else None
    planted = _PLANTED.get(type(result), {}).get(str(kind), "")
    curves = result.one_run
    limit = None if isinstance(result.verdict, Absent) else result.verdict.limit
    reading = None if isinstance(curves, Absent) else end_reading(curves, limit)
    yield headline(result.verdict, TITLES, checks=beside(result), reading=reading, advice=ADVICE)
    if not isinstance(curves, Absent):
        yield Tiles(tuple(_tiles(curves, result)))
    yield section("In plain words", _plain_words(result, planted))
    yield section(
        "What the attacker still finds as the run goes on", success_blocks(curves, limit, words)
    )
    if not isinstance(curves, Absent):
        yield section(words.section, _effect(curves, words))
        yield section("Controls", [prose(_controls_sentence(curves))], part="method")
        method = f"Intervals at {percent(curves.confidence, 0)}: {curves.method}."
        yield section("How it was measured", [prose(method)], part="method")
    yield scope_section(result.scope)
    yield section("How to read this", [_terms(curves, words)])
    yield from closing(run)


def end_reading(curves: OneRunCurves, limit: float | None) -> Reading | None:
    """The success at the end of the run that is judged, beside the limit."""
    judged = curves.judged
    end = judged.curve.end
    if end.value is None:
        return None
    return Reading(
        name=f"{judged.curve.label}, planted {times_text(judged.repeats)}, {after_text(end)}",
        value=end.value,
        low=end.low,
        high=end.high,
        limit=limit,
        lowest=0.5 if judged.curve.success == "auc" else 0.0,
        highest=1.0,
        show=judged.curve.show,
        n=f"{counted(judged.n, 'canary', 'canaries')}, {counted(curves.n_unseen, 'control')}, "
        "one run",
    )


def _tiles(curves: OneRunCurves, result: OneRunParts) -> Iterator[Tile]:
    judged = curves.judged
    curve = judged.curve
    which = f"planted {times_text(judged.repeats)}, from step {count_text(judged.start)}"
    for point in (curve.start, curve.end):
        remark = "; ".join(part for part in (curve.show_interval(point), which) if part)
        name = f"{whole_lag(point.lag)} steps after last use"
        yield Tile(name, curve.show(point.value), remark)
    guess = f"never planted; guessing gives {curve.show(curve.chance)}"
    yield Tile("Controls", count_text(curves.n_unseen), guess)
    verdict = result.verdict
    if not isinstance(verdict, Absent) and verdict.limit is not None:
        remark = "" if verdict.lag is None else f"at lag {whole_lag(verdict.lag)}"
        yield Tile("Limit", curve.show(verdict.limit), remark)


def _plain_words(result: OneRunParts, planted: str) -> Iterator[Block]:
    curves = result.one_run
    if isinstance(curves, Absent):
        yield prose(f"Attack success in this run was not measured: {curves.reason}.", tone="lead")
    else:
        yield prose(" ".join(filter(None, (planted, _what_was_done(curves)))), tone="lead")
        yield prose(_what_was_found(curves), tone="lead")
    yield prose(f"{ONE_RUN} {_undetected_sentence(result)}", tone="lead", depth="summary")
    # A terminal shows bits a token and error rates as of twins.
    shown: Depth = "summary" if isinstance(result.task, LanguageTask | SpeechTask) else "page"
    yield prose(task_sentence(result.task), tone="lead", depth=shown)


def success_blocks(
    curves: OneRunCurves | Absent, limit: float | None, words: ScoreWords | None = None
) -> Iterator[Block]:
    """The run as a strip, success against lag, and the numbers.

    Args:
        curves: What was measured.
        limit: Of the gate that judged the curve; None where none did.
        words: What the score of the attack is; None where the user's own code scored.
    """
    if isinstance(curves, Absent):
        yield Missing("Attack success", curves.reason, depth="summary")
        return
    yield Figure(timeline(curves), key="timeline")
    yield Figure(
        success_chart(curves, limit=limit),
        key="success",
        caption=_caption(curves),
        line_keys=line_keys(curves),
    )
    warning = _disagreement_sentence(curves)
    if warning:
        yield prose(warning, tone="notice", depth="summary")
    yield _ends_table(curves)
    yield from _checkpoint_tables(curves, words)


def _effect(curves: OneRunCurves, words: ScoreWords) -> Iterator[Block]:
    if not curves.effect_known:
        yield Missing("Effect of planting", "there is no checkpoint before a window to compare it")
        return
    yield prose(_effect_sentence(curves, words))
    yield Figure(effect_chart(curves, words), key="effect", line_keys=line_keys(curves))


def _ends_table(curves: OneRunCurves) -> Table:
    def shown(point: Point) -> Cell:
        curve = curves.curve
        return Cell(curve.show(point.value), curve.show_interval(point), strong=True)

    curve = curves.curve
    return Table(
        caption=f"{curve.label} (chance {curve.show(curves.chance)}) at the first checkpoint after "
        "each window, and at the end of the run",
        key="ends",
        rows=curves.cohorts,
        columns=(
            Column("From step", "start", count_text),
            Column("Planted", "repeats", uses_text),
            Column("Canaries", "n", count_text, depth="page"),
            Column("Lag", lambda cohort: cohort.curve.start.lag, whole_lag),
            Column("Success", lambda cohort: cohort.curve.start, shown),
            Column("Lag at the end", lambda cohort: cohort.curve.end.lag, whole_lag),
            Column("Success at the end", lambda cohort: cohort.curve.end, shown),
        ),
        depth="summary",
    )


def _checkpoint_tables(curves: OneRunCurves, words: ScoreWords | None) -> Iterator[Block]:
    """All rows, and some of them where there are too many for a terminal."""
    each = max(2, _MOST_ROWS // len(curves.cohorts))
    every = _scored_rows(curves)
    chosen = [row for row in every if row.point in row.cohort.curve.chosen(each)]
    if len(chosen) < len(every):
        fold = f"Every window at chosen checkpoints ({len(chosen)} rows)"
        yield _checkpoint_table(curves, chosen, words, key="chosen", fold=fold, depth="show")
    yield _checkpoint_table(
        curves,
        every,
        words,
        key="checkpoints",
        fold=f"Every window and checkpoint ({len(every)} rows)",
        depth="page" if len(chosen) < len(every) else "show",
    )


def _checkpoint_table(
    curves: OneRunCurves,
    rows: list[_Scored],
    words: ScoreWords | None,
    *,
    key: str,
    fold: str,
    depth: Depth,
) -> Table:
    curve = curves.curve
    effect = "Effect on the score" if words is None else f"Effect ({words.unit})"
    return Table(
        caption=f"{curve.label}, {percent(curves.confidence, 0)} interval, by window and "
        "checkpoint",
        key=key,
        rows=rows,
        columns=(
            Column("From step", lambda row: row.cohort.start, count_text),
            Column("Planted", lambda row: row.cohort.repeats, uses_text),
            Column("Lag", lambda row: row.point.lag, whole_lag),
            Column("Success", lambda row: row.point.value, curve.show, strong=True),
            Column("Low", lambda row: row.point.low, curve.show),
            Column("High", lambda row: row.point.high, curve.show),
            Column(effect, "effect", effect_text, optional=True, depth="page"),
        ),
        bar=Bar(
            lambda row: row.point.value,
            curve.show,
            low=lambda row: row.point.low,
            high=lambda row: row.point.high,
            mark=("chance", curves.chance),
        ),
        fold=fold,
        depth=depth,
    )


def _scored_rows(curves: OneRunCurves) -> list[_Scored]:
    return [
        _Scored(cohort, point, None if effect.value is None else effect)
        for cohort in curves.cohorts
        for point, effect in zip(cohort.curve.points, cohort.effect, strict=True)
    ]


def _what_was_done(curves: OneRunCurves) -> str:
    """What was planted, what was left out, and what the attacker had to do."""
    starts = listed([count_text(start) for start in curves.starts])
    steps = counted(curves.window, "step")
    where = f"in a window of {steps}, from step {starts} on"
    if len(curves.starts) > 1:
        where = f"in {len(curves.starts)} windows of {steps}, from steps {starts} on"
    levels = curves.levels
    often = f"{listed([count_text(n) for n in levels], 'or')} times"
    if len(levels) == 1:
        often = times_text(levels[0])
    return (
        f"{counted(curves.planted, 'canary', 'canaries')} {_were(curves.planted)} planted along "
        f"one ordinary training run of {counted(curves.steps, 'step')}: {where}, a few in a batch, "
        f"{often} each. Another {count_text(curves.n_unseen)}, drawn the same way, "
        f"{_were(curves.n_unseen)} never planted; which ones was decided at random. At every later "
        f"checkpoint {curves.who} had to decide which canaries had been planted."
    )


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _what_was_found(curves: OneRunCurves) -> str:
    """What success is, and how it goes for the canaries planted first."""
    sentences = [measure_sentence(curves)]
    for cohort in curves.first:
        curve = cohort.curve
        start = f" from step {count_text(cohort.start)} on" if len(curves.starts) > 1 else ""
        sentences.append(
            f"Planted {times_text(cohort.repeats)}{start}: "
            f"{curve.show_point(curve.start)} {after_text(curve.start)}, "
            f"{curve.show_point(curve.end)} {after_text(curve.end)}."
        )
    return " ".join(sentences)


def measure_sentence(curves: OneRunCurves) -> str:
    """What the success is that is shown, and what guessing gives."""
    allowed = (
        ""
        if curves.fpr is None
        else f", while it wrongly names at most {short_percent(curves.fpr)} of those never planted"
    )
    guess = curves.curve.show(curves.chance)
    return f"Success is {_WHAT[curves.rate]}{allowed}; guessing gives {guess}."


def _undetected_sentence(result: OneRunParts) -> str:
    """What a success near chance does not mean."""
    listed_there = not isinstance(result.scope, Absent) and result.scope.not_tested
    where = "; “Not tested” lists the searches that were not run" if listed_there else ""
    return (
        "Undetected is not erased: what this attack no longer finds may still be in the "
        f"model{where}."
    )


def _disagreement_sentence(curves: OneRunCurves) -> str:
    """A warning where the windows disagree; else nothing."""
    disagreement = curves.disagreement
    if disagreement is None:
        return ""
    later, first = disagreement.later, disagreement.first
    later_point, first_point = disagreement.later_point, disagreement.first_point
    return (
        f"The windows disagree. Canaries planted {times_text(later.repeats)} from step "
        f"{count_text(later.start)} on give {later.curve.show_point(later_point)} "
        f"{after_text(later_point)}; those from step {count_text(first.start)} on give "
        f"{first.curve.show_point(first_point)} {after_text(first_point)}. So the lag alone "
        "does not determine how much is still found: when in the run a canary was planted matters "
        f"too.{_judged(curves, ' The verdict judges the first window.')}"
    )


def _caption(curves: OneRunCurves) -> str:
    """What lines and bands of the first chart are."""
    later = (
        ""
        if len(curves.starts) == 1
        else f" of the first window{_judged(curves, ', which is the one judged')}; the table has "
        "the others. "
        "If only the lag mattered, lines of one colour would coincide"
    )
    return f"Bands: {percent(curves.confidence, 0)} intervals over canaries{later}."


def _judged(curves: OneRunCurves, words: str) -> str:
    """Words about the gate that judges the curve; none in audits, whose gate judges exposure."""
    return words if curves.ends is None else ""


def _effect_sentence(curves: OneRunCurves, words: ScoreWords) -> str:
    """What the second chart shows."""
    more = "" if len(curves.starts) == 1 else " Bands are again those of the first window."
    return (
        f"{words.effect} At 0 the average effect is gone; single canaries may still be "
        f"detected.{more}"
    )


def _controls_sentence(curves: OneRunCurves) -> str:
    return (
        f"{counted(curves.n_unseen, 'canary', 'canaries')} {_were(curves.n_unseen)} drawn the same "
        "way and never planted. Every success compares planted canaries with these at the same "
        f"checkpoint; an attacker who guesses reaches {curves.curve.show(curves.chance)}."
    )


def _terms(curves: OneRunCurves | Absent, words: ScoreWords) -> Terms:
    measured = None if isinstance(curves, Absent) else curves
    less = "" if measured is None else measured.less
    sure = "95 %" if measured is None else percent(measured.confidence, 0)
    entries: list[tuple[str, str | Prose]] = [
        (
            "The attack",
            f"It scores each canary by {words.attack}{less}, and calls the highest scores "
            "“planted”. Canaries drawn the same way and never planted show what such scores are "
            "without memory.",
        )
    ]
    if measured is not None:
        entries.append((measured.curve.label, measure_sentence(measured)))
    entries += [
        (
            "Lag",
            "Steps of training since a canary’s own last use, as a mean over the canaries planted "
            "in the same window and equally often.",
        ),
        (
            "The interval",
            "If other canaries had been drawn and planted in the same run, an interval made this "
            f"way would hold the true value in {sure} of the cases, at each lag taken by itself. "
            "It is over canaries, not over runs: one run cannot show how much another would "
            "differ.",
        ),
        (
            "The verdict",
            "It judges the canaries planted first, at the end of the run, which is the longest lag "
            "measured. PASS: the one-sided upper bound is at or under the limit, for the attacker "
            "that is named and for every other one that could be computed; the attack found the "
            "canaries at some checkpoint, corrected for the number of checkpoints; and no later "
            "window at half that lag or more is still above the limit at the end. FAIL: a "
            "one-sided lower bound of the attacker that is named, corrected for the number of "
            "groups judged, is above the limit. INCONCLUSIVE: the evidence supports neither; the "
            "sentence beside the verdict says why.",
        ),
    ]
    return Terms(tuple(entries))
