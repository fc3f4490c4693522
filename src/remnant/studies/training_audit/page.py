"""The page of an audit of one's own training."""

from __future__ import annotations

import math
from collections.abc import Iterator

from remnant.records.typed import Absent
from remnant.report.blocks import (
    Block,
    Column,
    Facts,
    Figure,
    Headline,
    Missing,
    Reading,
    Table,
    Terms,
    Tile,
    Tiles,
    prose,
    section,
)
from remnant.report.numerals import (
    bits_number,
    bits_text,
    count_text,
    counted,
    percent,
    pvalue_text,
    times_text,
)
from remnant.studies.beside.training_audit import beside
from remnant.studies.exposure.page import (
    ADVICE,
    TITLES,
    control_blocks,
    exposed_canaries,
    exposure_reading,
    exposure_tiles,
    in_plain_words,
    method_blocks,
    reference_cost_blocks,
)
from remnant.studies.exposure.result import ExposureGate
from remnant.studies.exposure.terms import TERMS
from remnant.studies.one_run import page as one_run_page
from remnant.studies.shared.pages import UNDECIDED, RunFacts, closing, headline, scope_section
from remnant.studies.training_audit.charts import course_chart, detection_chart, level_text
from remnant.studies.training_audit.claimed_epsilon import sentence_of
from remnant.studies.training_audit.result import (
    Course,
    DetectedExamples,
    Forgetting,
    MeasuredEpsilon,
    Overhead,
    Sightings,
    TrainingAuditResult,
)

TITLE = "Audit of a training"
_FOUND_TITLES = {
    "PASS": "The attack finds the judged examples no better than allowed",
    "FAIL": "The attack finds planted examples better than allowed",
    "INCONCLUSIVE": UNDECIDED,
}
_FOUND_ADVICE = {
    "PASS": "No action is needed for examples like these, used as often as the judged ones. Repeat "
    "the audit when the data, the model or the training changes.",
    "FAIL": "Do not release this model as it is. Train for fewer epochs, remove duplicates, or "
    "train with differential privacy; then audit again in a new folder.",
    "INCONCLUSIVE": "Do not treat this as a PASS. Add the evidence that the sentence above asks "
    "for, and audit again in a new folder.",
}
_LEDGER_ADVICE = {
    **one_run_page.ADVICE,
    "INCONCLUSIVE": "The sentence above says what is missing: more examples, or a longer training "
    "after the first ones. Audit such a training in a new folder.",
}
_CLAIM_TITLES = {"FAIL": "The training leaks more than it claims"}
_CLAIM_ADVICE = {
    "FAIL": "Do not rely on the claimed epsilon. Check that each example's gradient is clipped, "
    "that the noise is scaled by the clip norm, and that the batches are sampled as the accountant "
    "assumes; then audit again in a new folder.",
}
_MOST_EXAMPLES = 200
_OWN_TASK = Absent("the training's own evaluation says how useful the model is")


def page(result: TrainingAuditResult, run: RunFacts | None = None) -> Iterator[Block]:
    """Yield the page of a result; ``run`` is None for what a command prints without a record."""
    if isinstance(result.detection, DetectedExamples):
        yield from examples_page(result, result.detection, run)
        return
    if isinstance(result.exposure, Absent) and isinstance(result.forgetting, Forgetting):
        yield from _ledger_page(result, result.forgetting, run)
        return
    exposure, repeats, gate = result.exposure, result.repeats, result.exposure_gate
    yield _claim_headline(result) or headline(
        result.verdict,
        TITLES,
        checks=beside(result),
        reading=exposure_reading(exposure, gate),
        advice=ADVICE,
    )
    yield Tiles((*_epsilon_tiles(result), *exposure_tiles(exposure), *_tiles(result)))
    yield from _epsilon_section(result)
    yield section("In plain words", in_plain_words(exposure, _OWN_TASK))
    yield section("How exposed the canaries are", exposed_canaries(exposure, repeats, gate))
    yield section("During the training", _course(result.course))
    yield section("How fast it forgets", _forgetting(result.forgetting))
    yield section("Costs of canaries and of random secrets", reference_cost_blocks(result.costs))
    yield section("Controls", control_blocks(exposure, repeats), part="method")
    yield section(
        "How it was measured", [*method_blocks(exposure, gate), *_watched(result)], part="method"
    )
    yield scope_section(result.scope)
    yield section("How to read this", [Terms(TERMS)])
    if run is not None:
        yield from closing(run)


def examples_page(
    result: TrainingAuditResult, detected: DetectedExamples, run: RunFacts | None
) -> Iterator[Block]:
    """The page of a training with examples of one's own."""
    gate = result.verdict
    judged = isinstance(gate, ExposureGate) and not result.claim_is_broken
    limit = gate.limit if isinstance(gate, ExposureGate) and judged else None
    yield _claim_headline(result) or headline(
        gate,
        _FOUND_TITLES,
        checks=beside(result),
        reading=_auc_reading(detected, limit),
        advice=_FOUND_ADVICE,
    )
    yield Tiles((*_epsilon_tiles(result), *_detection_tiles(detected), *_tiles(result)))
    yield from _epsilon_section(result)
    yield section("How well the attack finds them", _detection(detected))
    yield section("During the training", [Figure(detection_chart(detected, limit), "course")])
    yield section("Each planted example", _ranked(detected))
    yield section("How fast it forgets", _forgetting(result.forgetting))
    yield section("How it was measured", _watched(result), part="method")
    yield scope_section(result.scope)
    if run is not None:
        yield from closing(run)


def _claim_headline(result: TrainingAuditResult) -> Headline | None:
    """The headline where the measured ε exceeds the claimed one."""
    epsilon = result.epsilon
    if not isinstance(epsilon, MeasuredEpsilon) or not epsilon.exceeds:
        return None
    reading = Reading(
        name="Measured epsilon, lower bound",
        value=epsilon.value,
        low=epsilon.value,
        high=None,
        limit=epsilon.claimed,
        lowest=0.0,
        highest=max(epsilon.largest, epsilon.claimed or 0.0),
        show=_epsilon_text,
        n=f"{counted(epsilon.canaries, 'canary', 'canaries')}, one training",
    )
    return headline(
        result.verdict,
        _CLAIM_TITLES,
        checks=beside(result),
        reading=reading,
        advice=_CLAIM_ADVICE,
    )


def _epsilon_tiles(result: TrainingAuditResult) -> Iterator[Tile]:
    epsilon = result.epsilon
    if isinstance(epsilon, MeasuredEpsilon):
        claim = "none claimed" if epsilon.claimed is None else f"claimed {epsilon.claimed:.4g}"
        yield Tile(
            "Measured epsilon",
            f"at least {_epsilon_text(epsilon.value)}",
            f"{claim}, at delta = {epsilon.delta:g}",
            "harm" if epsilon.exceeds else "",
        )


def _epsilon_section(result: TrainingAuditResult) -> Iterator[Block]:
    epsilon = result.epsilon
    if not isinstance(epsilon, MeasuredEpsilon):
        return
    claimed = "none" if epsilon.claimed is None else f"{epsilon.claimed:.4g}"
    facts = (
        ("Measured", f"at least {_epsilon_text(epsilon.value)}"),
        ("Claimed", claimed),
        ("Delta", f"{epsilon.delta:g}"),
        ("Most that could be shown", _epsilon_text(epsilon.largest)),
        ("Canaries with a coin", count_text(epsilon.canaries)),
        ("Planted of them", count_text(epsilon.included)),
        ("Guesses", count_text(epsilon.guesses)),
        ("Correct guesses", count_text(epsilon.correct)),
    )
    yield section(
        "Measured and claimed epsilon",
        [
            prose(sentence_of(epsilon), depth="show"),
            prose(
                "A fair coin put each canary into the training, once, or left it out. The attack "
                "guesses the coins from the model's scores. A training with a smaller epsilon "
                "would give so many correct guesses in at most "
                f"{percent(1 - epsilon.confidence, 0)} of audits. The bound holds for any training "
                "method; it assumes that nothing else in the training depends on the coins, and "
                "that the claim is about one example more or less."
            ),
            Facts((("Epsilon", facts),)),
        ],
    )


def _epsilon_text(value: float) -> str:
    return f"{math.floor(100 * value) / 100:.2f}"


def _auc_reading(detected: DetectedExamples, limit: float | None) -> Reading:
    level = detected.highest
    return Reading(
        name=f"AUC, planted {times_text(level.repeats)}",
        value=level.auc,
        low=level.auc_low,
        high=level.auc_high,
        limit=limit,
        lowest=0.0,
        highest=1.0,
        show=_auc_text,
        n=f"{level.n} {detected.kind}, {counted(detected.controls, 'control')}, one training",
    )


def _detection_tiles(detected: DetectedExamples) -> Iterator[Tile]:
    level = detected.highest
    yield Tile(
        "Highest AUC",
        _auc_text(level.auc),
        f"{_interval(level.auc_low, level.auc_high)}; planted {times_text(level.repeats)}",
    )
    yield Tile(
        "Positive control",
        "found" if detected.found else "not found",
        "some group of planted examples scores higher than the controls",
        "" if detected.found else "harm",
    )


def _detection(detected: DetectedExamples) -> Iterator[Block]:
    yield prose(
        f"The attack is that of {detected.who}: the score of an example is {detected.score}"
        f"{detected.less}. AUC is how often a planted example "
        f"scores higher than a control: 0.5 is chance. TPR is the share of planted examples that "
        f"are flagged if {percent(detected.fpr, 0)} of the controls are. Intervals at "
        f"{percent(detected.confidence, 0)}: {detected.method}. {detected.control}",
        tone="plain" if detected.found else "notice",
    )
    yield Table(
        caption="Attack success by number of times planted",
        key="detection",
        rows=detected.levels,
        columns=(
            Column("Planted", "repeats", level_text),
            Column("Examples", "n", count_text),
            Column("AUC", "auc", _auc_text, strong=True),
            Column("AUC at least", "auc_low", _auc_text),
            Column("AUC at most", "auc_high", _auc_text),
            Column(f"TPR at FPR {detected.fpr:g}", "tpr", percent),
            Column("TPR at least", "tpr_low", percent),
            Column("TPR at most", "tpr_high", percent),
            Column("p", "p_value", pvalue_text),
        ),
    )
    if not detected.controls_drawn:
        yield prose(
            "The controls were given apart from the planted examples. A difference between the two "
            "that was there before training can look like memory.",
            tone="notice",
        )


def _ranked(detected: DetectedExamples) -> Iterator[Block]:
    yield prose(
        f"Rank of each example among {counted(detected.controls, 'control')}, which can show up to "
        f"{bits_text(detected.ceiling_bits)}: {count_text(detected.saturated)} of "
        f"{count_text(len(detected.examples))} score higher than every control. Of examples that "
        f"were never trained on, 1 in {count_text(detected.controls + 1)} would."
    )
    yield Table(
        caption="Each planted example among the controls, in bits",
        key="examples",
        rows=tuple(sorted(detected.examples, key=lambda row: (-row.repeats, -row.bits))),
        columns=(
            Column("Example", "number"),
            Column("Planted", "repeats", times_text),
            Column("Uses", "uses", count_text),
            Column("Bits", "bits", bits_number, strong=True),
            Column("Above every control", "saturated", lambda above: "yes" if above else "no"),
            Column("Low", "low", bits_number),
            Column("High", "high", bits_number),
        ),
        fold=f"Each planted example ({count_text(len(detected.examples))} rows)",
        limit=_MOST_EXAMPLES,
    )


def _auc_text(auc: float) -> str:
    return f"{auc:.3f}"


def _interval(low: float, high: float) -> str:
    return f"{low:.3f} to {high:.3f}"


def _ledger_page(
    result: TrainingAuditResult, forgetting: Forgetting, run: RunFacts | None
) -> Iterator[Block]:
    """The page of a training in which nothing was planted and batch order was logged."""
    gate = result.verdict
    limit = gate.limit if isinstance(gate, ExposureGate) else None
    yield headline(
        gate,
        one_run_page.TITLES,
        checks=beside(result),
        reading=one_run_page.end_reading(forgetting.curves, limit),
        advice=_LEDGER_ADVICE,
    )
    yield Tiles(tuple(_tiles(result)))
    yield section("How fast it forgets", _forgetting(forgetting, limit))
    yield scope_section(result.scope)
    if run is not None:
        yield from closing(run)


def _forgetting(forgetting: Forgetting | Absent, limit: float | None = None) -> Iterator[Block]:
    if isinstance(forgetting, Absent):
        yield Missing("Attack success by steps since the last use", forgetting.reason)
        return
    curves = forgetting.curves
    uses = f"{forgetting.fewest} to {forgetting.most} times"
    if forgetting.fewest == forgetting.most:
        uses = times_text(forgetting.most)
    yield prose(
        f"Canaries are grouped by when they were last in a batch. Each was in batches {uses}. The "
        f"attack is that of {curves.who}: it takes the model's score of a canary"
        f"{curves.less and curves.less + ','} for a sign that it was trained on. "
        f"{one_run_page.measure_sentence(curves)}"
    )
    yield prose(forgetting.control, tone="plain" if forgetting.found else "notice")
    yield from one_run_page.success_blocks(curves, limit)
    yield prose(
        f"{one_run_page.ONE_RUN} Undetected is not erased. Intervals at "
        f"{percent(curves.confidence, 0)}: {curves.method}."
    )


def _tiles(result: TrainingAuditResult) -> Iterator[Tile]:
    seen = result.sightings
    if isinstance(seen, Sightings):
        yield Tile(
            "Canaries in batches",
            f"{count_text(seen.seen)} of {count_text(seen.planted)}",
            f"{counted(seen.uses, 'use')} in the training",
            "" if seen.uses else "harm",
        )


def _course(course: Course | Absent) -> Iterator[Block]:
    if isinstance(course, Absent):
        yield Missing("Exposure during the training", course.reason)
        return
    yield prose(
        f"Canaries were scored at {counted(len(course.steps), 'step')} and ranked among "
        f"{counted(course.references, 'random secret')}, which can show up to "
        f"{bits_text(course.ceiling_bits)}. The final measurement above can show more."
    )
    yield Figure(course_chart(course), "course")
    yield Table(
        caption="Mean exposure in bits by step and by number of times planted",
        key="course",
        rows=course.rows,
        columns=(
            Column("Step", "step", count_text),
            Column("Planted", "repeats", level_text),
            Column("Canaries", "n", count_text),
            Column("Mean", "mean_bits", bits_number, strong=True),
            Column("At the maximum", "saturated", count_text),
        ),
        fold=f"Mean exposure by step ({len(course.rows)} rows)",
    )


def _watched(result: TrainingAuditResult) -> Iterator[Block]:
    facts: list[tuple[str, str]] = []
    seen, overhead = result.sightings, result.overhead
    if isinstance(seen, Sightings):
        facts.append(("Uses of one canary", f"{seen.fewest} to {seen.most}"))
        if seen.first_step is not None and seen.last_step is not None:
            facts.append(("Steps with a canary", f"{seen.first_step} to {seen.last_step}"))
        facts.append(("Tokens before a canary", count_text(seen.context)))
    if isinstance(overhead, Overhead):
        facts += _overhead(overhead)
    yield Facts((("The training", tuple(facts)),))
    if not isinstance(result.exposure, Absent) and any(
        canary.twin_bits is not None for canary in result.exposure.canaries
    ):
        yield prose("Twin: the same model without its adapter, which saw no canary.")


def _overhead(overhead: Overhead) -> Iterator[tuple[str, str]]:
    skipped = f", {count_text(overhead.skipped)} left out" if overhead.skipped else ""
    yield "Scorings", f"{count_text(overhead.scored)}{skipped}"
    if overhead.share is not None:
        allowed = "" if overhead.allowed is None else f" (at most {percent(overhead.allowed)})"
        yield "Share of training time", f"{percent(overhead.share)}{allowed}"
