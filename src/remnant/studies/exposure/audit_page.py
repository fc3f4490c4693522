"""The page of ``remnant exposure``, and of its record."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from remnant.report.blocks import (
    Bar,
    Block,
    Cell,
    Code,
    Column,
    Figure,
    Prose,
    Reading,
    Table,
    prose,
    section,
)
from remnant.report.charts.shapes import Chart, Dot
from remnant.report.numerals import (
    bits_number,
    count_text,
    counted,
    printable,
    whole_text,
)
from remnant.studies.beside.exposure import of_audit, of_sets
from remnant.studies.command_result import record_page
from remnant.studies.exposure.audit_result import (
    AuditedSet,
    ExposureAuditResult,
    ExposureCommand,
    ExtrapolatedSet,
    PrintedCanary,
    Ranks,
)
from remnant.studies.exposure.charts import planted_chart
from remnant.studies.exposure.formats import (
    WHOLE_TEXTS,
    exposure_cell,
    exposure_number,
    repeats_text,
    secret_text,
    space_text,
)
from remnant.studies.exposure.page import TITLES, gate_reading
from remnant.studies.exposure.result import ExposureBits, ExposureGate
from remnant.studies.shared.pages import RunFacts, headline

TITLE = "Exposure of canaries in a model"
ADVICE = {
    "PASS": "No action is needed for secrets that occur no more often than the judged canaries. "
    "Measure again when the data, the model or the training changes.",
    "FAIL": "Do not release this model as it is. Remove secrets and their copies from the "
    "training data, or train so that less is memorised, and measure again.",
    "INCONCLUSIVE": "Do not treat this as a PASS. Add the evidence that the sentence above asks "
    "for, and measure again.",
}
_CONTROLS_SHOWN = 10


def exposure_page(result: ExposureAuditResult) -> Iterator[Block]:
    """The verdict where there is a limit, then one section a set."""
    gate = None if result.verdict is None else ExposureGate(**result.verdict.row())
    if gate is not None:
        yield headline(
            gate,
            TITLES,
            checks=of_sets(result, gate),
            reading=audit_reading(result, gate),
            advice=ADVICE,
        )
    yield from set_sections(result, limit=None if gate is None else gate.limit)


def set_sections(result: ExposureAuditResult, *, limit: float | None) -> Iterator[Block]:
    """One section a set; charts show the limit."""
    if result.equal:
        yield prose(result.equal, tone="notice", depth="show")
    if result.reference_fault:
        fault = result.reference_fault
        yield prose(f"{fault[0].upper()}{fault[1:]}.", tone="notice", depth="show")
    for audited in result.sets:
        yield section(f"Set {audited.set}", _set(audited, limit))


def audit_reading(result: ExposureAuditResult, gate: ExposureGate) -> Reading:
    """The number that the gate judged."""
    canaries = [canary for audited in result.sets for canary in audited.canaries]
    judged = sorted(canaries, key=lambda canary: canary.repeats)[: gate.judged]
    return gate_reading(
        gate,
        max((canary.estimate for canary in judged), key=lambda estimate: estimate.value),
        name="Highest exposure of the judged canaries",
        judged=len(judged),
        trainings="one training",
        ceiling=max(audited.space_bits for audited in result.sets),
    )


def _set(audited: AuditedSet, limit: float | None) -> Iterator[Block]:
    space = space_text(audited.space, audited.space_bits)
    yield prose(
        f"Set {audited.set}: ", Code(printable(audited.template)), f", {space}", depth="show"
    )
    yield prose(_method(audited), depth="show")
    if audited.ranked_apart:
        names = ", ".join(audited.ranked_apart)
        yield prose(f"Exact for {names}: {audited.ranked_apart_reason}.", depth="show")
    if audited.arithmetic:
        yield prose(audited.arithmetic, depth="show")
    if audited.calibrated:
        yield prose("Costs and exposure are calibrated by reference models.", depth="show")
    key = f"set-{audited.set}"
    yield Figure(_chart(audited, limit), f"{key}-exposure")
    yield _canaries_table(audited, f"{key}-canaries")
    yield _means_table(audited, f"{key}-means")
    for warning in _warnings(audited):
        yield prose(warning, tone="notice", depth="show")
    if isinstance(audited, ExtrapolatedSet):
        yield _law(audited)


def _method(audited: AuditedSet) -> str:
    exact = audited.method == "exact"
    sampled = "" if exact else f"; {counted(audited.references, 'reference')}"
    return f"{audited.method.capitalize()}: {audited.reason}{sampled}."


def _chart(audited: AuditedSet, limit: float | None) -> Chart:
    return planted_chart(
        map(_dot, audited.canaries),
        map(_dot, audited.controls),
        description=" ".join(
            f"Planted {repeats_text(mean.repeats)}: {exposure_number(mean.mean)} bits on average."
            for mean in audited.means
        ),
        chance=audited.null_mean_bits,
        limit=limit,
    )


def _dot(row: PrintedCanary) -> Dot:
    tip = f"{row.name}, planted {repeats_text(row.repeats)}: {exposure_number(row.estimate)} bits"
    return Dot(float(row.repeats), row.estimate.value, tip, row.low, row.high, row.at_least)


def _canaries_table(audited: AuditedSet, key: str) -> Table:
    space = "all" if audited.space is None else whole_text(audited.space)
    more = len(audited.controls) - _CONTROLS_SHOWN
    return Table(
        caption="Exposure of canaries and controls, in bits; 95 % interval where sampled",
        key=key,
        rows=(*audited.canaries, *audited.controls[:_CONTROLS_SHOWN]),
        columns=(
            Column("Canary", "name"),
            Column("Planted", "repeats", repeats_text),
            Column("Exposure", "estimate", _exposure_cell, strong=True),
            Column(f"Rank of {space}", "ranks", _rank_text, optional=True),
            Column("Cost", "cost", bits_number),
            Column("Skew-normal", "skew_normal_bits", bits_number, optional=True),
            Column("Secret", "secret", secret_text, optional=True),
        ),
        note=f"{counted(more, 'more control')}: --json has all." if more > 0 else "",
        depth="show",
    )


def _exposure_cell(exposure: ExposureBits) -> Cell:
    """The exposure with its interval, or with its bounds where a budget ended the walk.

    There is none where the rank is exact, and none after "at least" where only that is known.
    """
    cell = exposure_cell(exposure)
    bare = cell.small == "exact" or (exposure.at_least and exposure.high is None)
    return Cell(cell.main) if bare else cell


def _rank_text(ranks: Ranks) -> str:
    return f"{'at most ' if ranks.low < ranks.value else ''}{whole_text(ranks.value)}"


def _means_table(audited: AuditedSet, key: str) -> Table:
    chance = audited.null_mean_bits
    return Table(
        caption=f"Mean exposure in bits; {bits_number(chance)} where nothing is memorised",
        key=key,
        rows=audited.means,
        columns=(
            Column("Planted", "repeats", repeats_text),
            Column("Canaries", "n", count_text),
            Column("Mean", "mean", exposure_number, strong=True),
            Column("Median", "median", exposure_number, optional=True, depth="page"),
            Column("p-value", "p_value", "{:.2g}".format),
        ),
        bar=Bar("mean_low", bits_number, mark=("chance", chance), floor=0.0),
        depth="show",
    )


def _warnings(audited: AuditedSet) -> Iterator[str]:
    if audited.saturated:
        walkable = not audited.calibrated and WHOLE_TEXTS not in audited.reason
        walk = "; a walk with more --max-nodes ranks exactly" if walkable else ""
        yield (
            f"{counted(audited.saturated, 'value')} saturated, since no reference was as cheap: "
            "the lower end of the interval is shown as “at least”. Each further bit takes twice "
            f"the references{walk}."
        )
    if audited.ended:
        yield (
            "A budget ended the walk, so ranks and exposure are bounds. Raise --max-nodes, "
            "--max-seconds or --memory, or use --method sampled."
        )
    for reason in audited.untested:
        yield f"Not tested: {reason.rstrip('.')}."


def _law(audited: ExtrapolatedSet) -> Prose:
    if audited.ks_pvalue is None:
        return prose(
            "No skew-normal law: too few references with different costs.",
            tone="notice",
            depth="show",
        )
    p_value = f"Kolmogorov–Smirnov p = {audited.ks_pvalue:.2g}"
    if audited.skew_normal_doubtful:
        return prose(
            f"The skew-normal law is doubtful ({p_value}): do not take its bits for exposure.",
            tone="notice",
            depth="show",
        )
    return prose(f"Skew-normal law: {p_value}, an extrapolation.", tone="note", depth="show")


def page(result: ExposureCommand, run: RunFacts) -> Iterator[Block]:
    """Yield the page of a record."""
    measured, verdict = result.measured, result.verdict
    gate = verdict if isinstance(verdict, ExposureGate) else None
    reading = None
    if gate is not None and isinstance(measured, ExposureAuditResult):
        reading = audit_reading(measured, gate)
    yield from record_page(
        result,
        run,
        partial(set_sections, limit=None if gate is None else gate.limit),
        heading="Exposure",
        what="Exposure",
        checks=of_audit(result),
        titles=TITLES,
        advice=ADVICE,
        reading=reading,
    )
