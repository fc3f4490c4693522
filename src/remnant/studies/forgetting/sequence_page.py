"""The page of a study of forgetting of text: how exposure falls after the canaries were planted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from remnant.records.typed import Absent
from remnant.report.blocks import (
    Block,
    Cell,
    Column,
    Figure,
    Missing,
    Reading,
    Section,
    Table,
    Terms,
    Tile,
    Tiles,
    prose,
    section,
)
from remnant.report.numerals import SPACE, bits_number, bits_text, counted, lag_text, percent
from remnant.studies.beside.sequence_forgetting import beside
from remnant.studies.forgetting.sequence_result import (
    ByCalibration,
    ByUses,
    ExposureAt,
    ExposureCurveResult,
    TextForgettingResult,
)
from remnant.studies.residual_memory.blocks import residual_memory_section, searches
from remnant.studies.shared.curve_blocks import (
    ComparedCurve,
    after_planting,
    bands,
    comparison_section,
    control_count,
    control_holds,
    curve_tables,
    end_reading,
    evidence_text,
    measure_row,
    measures_table,
    point_column,
    point_tile,
    traditional_section,
)
from remnant.studies.shared.curve_charts import comparison_chart, curve_chart
from remnant.studies.shared.curves import Curve, CurveResult, Point
from remnant.studies.shared.pages import (
    UNDECIDED,
    RunFacts,
    closing,
    headline,
    scope_section,
    task_sentence,
    useless_sentence,
)
from remnant.studies.shared.result_parts import Gate

TITLE = "Forgetting of text"
PAIR_TITLE = "Forgetting in translation"
TITLES = {
    "PASS": "No more exposed than allowed at the last step watched",
    "FAIL": "Still more exposed than allowed",
    "INCONCLUSIVE": UNDECIDED,
}
_ADVICE = {
    "PASS": "Text as old as the last lag needs no further protection against this test. Protect "
    "what was used more recently: see from which lag on the limit holds.",
    "FAIL": "Protect this text: show it less often, train longer without it before the release, or "
    "train with differential privacy. Then run the study again.",
    "INCONCLUSIVE": "Run the study again in a new folder with more evidence, such as more trials; "
    "the verdict says what is missing.",
}
_INFLUENCE = (
    "From each cost was subtracted what the model’s own twin, which never saw the canaries, pays "
    "for the same sequence. No attacker has this twin: the curve is the influence of planting."
)
_CALIBRATED = {
    "twins": "From each cost was subtracted the mean of what the twins of the other trials, which "
    "never saw a canary, pay for the same sequence.",
    "influence": _INFLUENCE,
    "twin": _INFLUENCE,  # in records of version 0.2
    "references": "From each cost was subtracted the mean of what reference models, trained on "
    "parts of the clean text, pay for the same sequence.",
}
_PLANTED = (
    "Sequences of random tokens, which no text predicts, were planted into a language model’s "
    "training. It then trained on clean text and never saw them again."
)
_PAIRS_PLANTED = (
    "Pairs of sentences were planted into a translator’s training. It then trained on clean pairs "
    "and never saw them again. A sequence is the target of a pair, and its cost is that of the "
    "target given the source."
)
_TRADITIONAL = (
    "The share of the canaries’ tokens that was guessed right, and the mean loss of a token. "
    "Neither compares a canary with sequences that were never planted: a model also learns what "
    "random tokens look like. Mean over the trials."
)
_NULL_BITS = "1.44"  # 1/ln 2, where no curve says it


def page(result: TextForgettingResult, run: RunFacts) -> Iterator[Block]:
    """What a report shows of a study of forgetting of text."""
    exposure = measured(result.curve_exposure)
    control = measured(result.curve_exposure_aa)
    limit = result.verdict.limit if isinstance(result.verdict, Gate) else None
    yield headline(
        result.verdict,
        TITLES,
        checks=beside(result),
        reading=exposure_reading(exposure, limit),
        advice=_ADVICE,
    )
    if exposure is not None:
        yield Tiles(tuple(exposure_tiles(exposure, control, limit)))
    yield section("In plain words", _plain_words(result, exposure, run.recipe))
    falling = falling_blocks(result.curve_exposure, control, limit, result.calibrations)
    yield section("How exposure falls", falling)
    yield section("Controls", controls(result.curve_exposure_aa), part="method")
    yield residual_memory_section(result.hidden, result.returning)
    if not isinstance(result.by_uses, Absent):
        yield _by_uses(result.by_uses)
    if not isinstance(result.compare, Absent):
        primary = None if exposure is None else exposure.curve
        yield comparison_section(result.compare, primary, key="compare", start=True)
    yield section(
        "Distinguishing planted from never-planted sequences",
        [success_table(result.attack_success)],
    )
    yield traditional_section(result.traditional, _TRADITIONAL)
    yield scope_section(result.scope)
    yield section("How to read this", [Terms(tuple(_terms(exposure)))])
    yield from closing(run)


def measured(stored: ExposureCurveResult | Absent) -> ExposureCurveResult | None:
    """The curve, where there is one."""
    return None if isinstance(stored, Absent) else stored


def exposure_reading(exposure: ExposureCurveResult | None, limit: float | None) -> Reading | None:
    """The mean exposure at the last lag, beside the limit."""
    if exposure is None:
        return None
    n = evidence_text(exposure.trials, exposure.n_canaries)
    return end_reading(
        exposure.curve, limit=limit, highest=max(exposure.ceiling, limit or 0.0), n=n
    )


def exposure_tiles(
    exposure: ExposureCurveResult, control: ExposureCurveResult | None, limit: float | None
) -> Iterator[Tile]:
    """Exposure at the start, at its highest and at the end, the control's, and the limit."""
    curve, peak = exposure.curve, exposure.peak
    chance = "" if curve.chance is None else f"chance {bits_text(curve.chance)}"

    def tile(name: str, point: Point, extra: str = "") -> Tile:
        when = f"{name} {after_planting(point)}"
        return point_tile(when, curve, point, value=_bits(point), remark=extra)

    yield tile("Mean exposure", curve.start, chance)
    yield Tile("Highest mean exposure", _bits(peak), f"at lag {lag_text(peak.lag)}")
    yield tile("Mean exposure", curve.end)
    if control is not None:
        yield tile("A/A twins", control.curve.end, chance)
    if limit is not None:
        yield Tile("Limit", bits_text(limit), "at the last lag")


def _bits(point: Point) -> str:
    return bits_text(point.value or 0.0)


def _plain_words(
    result: TextForgettingResult, exposure: ExposureCurveResult | None, recipe: Mapping[str, Any]
) -> Iterator[Block]:
    yield prose(what_was_done(result.curve_exposure, recipe), tone="lead")
    if exposure is not None:
        control = control_sentence(result.curve_exposure_aa)
        yield prose(f"{what_was_found(exposure)} {control}", tone="lead")
    yield prose(searches(result.hidden, result.returning), tone="lead")
    yield prose(task_sentence(result.task), tone="lead")
    warning = useless_sentence(result.task)
    if warning:
        yield prose(warning, tone="notice", depth="summary")


def what_was_done(stored: ExposureCurveResult | Absent, recipe: Mapping[str, Any]) -> str:
    """How the canaries were planted and ranked, and what exposure says."""
    planted = _PAIRS_PLANTED if "pairs" in recipe else _PLANTED
    if isinstance(stored, Absent):
        return f"{planted} How exposed they are was not measured: {stored.reason}."
    ranked = (
        f"At each point {counted(stored.n_canaries, 'planted sequence')} were ranked among "
        f"{counted(stored.n_references, 'reference')}, drawn the same way and never planted, by "
        "what the model pays for them. Exposure says how far to the front a sequence comes: ten "
        f"bits mean about one in a thousand; chance gives {bits_text(stored.chance or 0.0)}."
    )
    attack = recipe.get("attack")
    calibration = attack.get("calibration") if isinstance(attack, Mapping) else None
    parts = (planted, ranked, _CALIBRATED.get(str(calibration), ""))
    return " ".join(part for part in parts if part)


def what_was_found(exposure: ExposureCurveResult) -> str:
    """How exposure changed, in a paragraph."""
    curve, peak = exposure.curve, exposure.peak
    start, end = curve.start, curve.end
    begins = "Right after planting" if start.lag <= 1 else f"After {lag_text(start.lag)} steps"
    parts = [f"{begins} the mean exposure was {_bits(start)}"]
    inside = peak.lag not in (start.lag, end.lag)
    if inside:
        parts.append(f"it was highest after {lag_text(peak.lag)} steps, with {_bits(peak)}")
    interval = curve.show_interval(end)
    sure = f" ({percent(curve.confidence, 0)} interval {interval})" if interval else ""
    parts.append(f"after {lag_text(end.lag)} steps it was {_bits(end)}{sure}")
    sentence = "; ".join(parts) + "."
    if inside:
        sentence += " Exposure need not be highest at the beginning: look at the whole curve."
    return f"{sentence} {exposure.safe_reason}"


def control_sentence(control: ExposureCurveResult | Absent, *, what: str = "sequences") -> str:
    """What the A/A twins say about the measurement itself.

    Args:
        control: Their exposure.
        what: Was planted.
    """
    if isinstance(control, Absent):
        return f"There is no negative control: {control.reason}."
    inside, lags = control_count(control.curve)
    check = f"As a check, the same {what} were ranked in models that never saw any of them"
    if control_holds(control.curve):
        return f"{check}: there they are no more exposed than by chance."
    return (
        f"{check}. The interval includes chance at only {inside} of {lags} lags, so read the curve "
        "with caution."
    )


def falling_blocks(
    exposure: ExposureCurveResult | Absent,
    control: ExposureCurveResult | None,
    limit: float | None,
    calibrations: ByCalibration | Absent,
) -> Iterator[Block]:
    """How exposure falls: the chart, its numbers, and how many canaries are beyond the ceiling.

    At last the same by every calibration.
    """
    if isinstance(exposure, Absent):
        yield Missing("Exposure", exposure.reason, depth="summary")
        return
    twins = None if control is None else control.curve
    chart = curve_chart(
        exposure.curve,
        control=twins,
        limit=limit,
        title="Mean exposure against steps since planting",
        label="Planted",
    )
    yield Figure(chart, key="curve", caption=caption(exposure))
    medians = (
        None if exposure.median is None else dict(zip(exposure.lags, exposure.median, strict=True))
    )
    yield from curve_tables(exposure.curve, twins, medians=medians)
    if not isinstance(calibrations, Absent):
        yield calibrations_table(calibrations, exposure.curve)
    saturated = saturated_sentence(exposure)
    if saturated:
        yield prose(saturated, tone="note")


def calibrations_table(calibrations: ByCalibration, curve: Curve) -> Table:
    """Exposure at the first and the last lag by every calibration of the run.

    Args:
        calibrations: The rows.
        curve: The study's own, which prints the numbers.
    """

    def mean(at: ExposureAt) -> Cell:
        return Cell(curve.show(at.value), f"{curve.show(at.low)} to {curve.show(at.high)}")

    def columns(end: str, lag: float) -> tuple[Column, Column]:
        at = f"at lag {lag_text(lag)}"
        return (
            Column(f"Mean {at}", end, mean, strong=True),
            Column(f"Median {at}", lambda row: getattr(row, end).median, curve.show),
        )

    first, last = calibrations.lags
    return Table(
        caption="Exposure by what each cost is compared with",
        key="calibrations",
        rows=calibrations.rows,
        columns=(
            Column("Calibration", "name"),
            Column("Each cost is taken", "said", depth="page"),
            *columns("start", first),
            *columns("end", last),
        ),
        note="PASS needs the upper bound of every attacker to be within the limit: twins, "
        "references, none. No attacker has the twin of influence, so it decides no gate. By chance "
        "the median is 1 bit.",
        depth="show",
    )


def caption(exposure: ExposureCurveResult) -> str:
    """How many trials, canaries and references the curve rests on."""
    curve, facts = exposure.curve, []
    if curve.trials is not None:
        facts.append(f"{curve.trials}{SPACE}{'trial' if curve.trials == 1 else 'trials'}")
    facts += [
        f"{counted(exposure.n_canaries, 'canary', 'canaries')} and "
        f"{counted(exposure.n_references, 'reference')} each",
        f"at most {bits_text(exposure.ceiling)} can be shown",
    ]
    facts += [curve.method] if curve.method else []
    return f"{bands(curve)}{'; '.join(facts)}."


def saturated_sentence(exposure: ExposureCurveResult) -> str:
    """How many canaries are beyond all references; nothing where none is."""
    most = max(exposure.saturated, default=0.0)
    if most == 0:
        return ""
    return (
        f"At most {percent(most)} of the canaries at a lag were cheaper than every reference "
        f"({percent(exposure.saturated[-1])} at the last lag): each counts as "
        f"{bits_number(exposure.ceiling)} bits, which is a lower bound."
    )


def controls(control: ExposureCurveResult | Absent, *, what: str = "sequences") -> Iterator[Block]:
    """The A/A twins; a notice where they are not at chance.

    Args:
        control: Their exposure.
        what: Was planted.
    """
    if isinstance(control, Absent):
        yield Missing("A/A twins (negative control)", control.reason, depth="summary")
        return
    fails = not control_holds(control.curve)
    yield prose(control_sentence(control, what=what), tone="notice" if fails else "plain")


def _by_uses(by_uses: ByUses) -> Section:
    curves = by_uses.curves
    first = curves[0][1]
    return section(
        by_uses.title,
        [
            Figure(comparison_chart(by_uses.title, curves), key="uses-compare"),
            Table(
                caption="Mean exposure in bits by how often canaries were seen",
                key="uses",
                rows=[ComparedCurve(label, curve, None) for label, curve in curves],
                columns=(
                    Column("Canaries", "label", depth="summary"),
                    point_column("At the start", first, end=False),
                    point_column("At the end", first, end=True),
                ),
                depth="summary",
            ),
        ],
    )


def success_table(measures: tuple[CurveResult, ...]) -> Block:
    """Attack success by every measure that was taken."""
    if not measures:
        return Missing("Attack success", "this run recorded none")
    rows = [measure_row(stored.shown()) for stored in measures]
    return measures_table("Attack success, from the same costs", rows, start="At the start")


def _terms(exposure: ExposureCurveResult | None) -> Iterator[tuple[str, str]]:
    curve = None if exposure is None else exposure.curve
    chance = _NULL_BITS if curve is None else curve.show(curve.chance)
    yield (
        "Exposure",
        "A planted sequence that comes before all but one in 2ᵇ of its references has b bits. A "
        f"sequence that was never planted may come anywhere; its exposure is {chance} bits on "
        "average, with a median of 1 bit, and two bits are noise.",
    )
    yield "The band", band_term(curve)
    yield (
        "A/A twins",
        "Models trained the same way with fresh randomness, which saw none of the sequences. Any "
        "exposure of the canaries there is not memory; it must stay at chance.",
    )
    yield (
        "Attack success",
        "An attacker names the sequences that the model finds cheapest. Those that were never "
        "planted are scored by the same model, so that what it learnt about random tokens in "
        "general helps nobody.",
    )
    yield (
        "The verdict",
        "PASS: the interval of the mean exposure at the last lag is within the limit for every "
        "attacker that was computed, the canaries were exposed at some lag, and no more of them "
        "are beyond the references than chance explains. FAIL: the interval lies above the limit. "
        "INCONCLUSIVE: the evidence supports neither.",
    )


def band_term(curve: Curve | None) -> str:
    """What the band around a curve means."""
    sure = "95 %" if curve is None or curve.confidence is None else percent(curve.confidence, 0)
    return (
        "If the whole audit were repeated with other models, canaries and references, an interval "
        f"made this way would include the true mean in {sure} of the cases, at each lag taken by "
        "itself."
    )
