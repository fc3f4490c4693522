"""The pages of ``remnant exposure`` and ``remnant extract``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

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
    times_text,
    whole_text,
)
from remnant.report.quoting import printable
from remnant.studies.beside.exposure import of_sets
from remnant.studies.exposure.audit_result import (
    AuditedSet,
    ComparedSecret,
    ExposureAuditResult,
    ExtractResult,
    ExtrapolatedSet,
    FoundSecret,
    PrintedCanary,
    QueriesToLeak,
    Ranks,
)
from remnant.studies.exposure.charts import planted_chart
from remnant.studies.exposure.formats import (
    WHOLE_TEXTS,
    exposure_cell,
    exposure_number,
    repeats_text,
)
from remnant.studies.exposure.page import TITLES, gate_reading
from remnant.studies.exposure.result import ExposureBits, ExposureGate
from remnant.studies.shared.pages import headline

EXPOSURE_TITLE = "Exposure of canaries in a model"
EXTRACT_TITLE = "The likeliest secrets of a model"
ADVICE = {
    "PASS": "No action is needed for secrets that occur no more often than the judged canaries. "
    "Measure again when the data, the model or the training changes.",
    "FAIL": "Do not release this model as it is. Remove secrets and their copies from the "
    "training data, or train so that less is memorised, and measure again.",
    "INCONCLUSIVE": "Do not treat this as a PASS. Add the evidence that the sentence above asks "
    "for, and measure again.",
}
_CONTROLS_SHOWN = 10
_LONGEST_COST = 1000  # bits


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
    space = _space(audited.space, audited.space_bits)
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


def _space(space: int | None, bits: float) -> str:
    """The size of a space, such as ``10 000 secrets (13.3 bits)``."""
    many = f"about 2^{math.floor(bits)}" if space is None else whole_text(space)
    return f"{many} {'secret' if space == 1 else 'secrets'} ({bits:.1f} bits)."


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
            Column("Secret", "secret", _secret_text, optional=True),
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


def _secret_text(text: str) -> str:
    """A secret in a cell; double spaces and non-breaking hyphens, which a terminal loses, as codes.

    Example:
        >>> _secret_text("a b"), _secret_text("a  b")
        ('a b', '"a \\\\u0020b"')
    """
    if "  " not in text and "\N{NON-BREAKING HYPHEN}" not in text:
        return printable(text)
    quoted = json.dumps(text, ensure_ascii=not text.isprintable())
    return re.sub("(?<= ) |\N{NON-BREAKING HYPHEN}", _code, quoted)


def _code(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


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


def extract_page(result: ExtractResult) -> Iterator[Block]:
    """The proof, the candidates, and how many queries leak the first of them."""
    proof = result.sentence[:1].upper() + result.sentence[1:]
    yield prose(
        Code(printable(result.template)),
        f": {_space(result.space, result.space_bits)}",
        depth="show",
    )
    yield prose(f"{proof}.", tone="proven" if result.certified else "open", depth="show")
    if result.arithmetic:
        yield prose(result.arithmetic, depth="show")
    yield Table(
        caption="The likeliest secrets" if result.certified else "The likeliest secrets found",
        key="candidates",
        rows=tuple(enumerate(result.candidates, start=1)),
        columns=(
            Column("Place", lambda row: row[0]),
            Column("Cost in bits", lambda row: row[1].bits, bits_number),
            Column("Probability", lambda row: _probability(row[1]), _probability_text),
            Column("Secret", lambda row: row[1].secret or result.hidden, _secret_text),
            Column("Known as", lambda row: known_as(row[1]), optional=True),
        ),
        depth="show",
    )
    yield Table(
        caption="Queries until the first comes out with a probability of 50 % and 99 %",
        key="queries",
        rows=result.queries,
        columns=(
            Column("Decoding", _decoding_text),
            Column("50 %", "queries_50", whole_text),
            Column("99 %", "queries_99", whole_text),
            Column("Remark", "reason", optional=True),
        ),
        depth="show",
    )


def _probability(candidate: FoundSecret) -> float | str:
    """The probability; a power of two where floating point ends."""
    if candidate.bits is None or candidate.bits < _LONGEST_COST:
        return candidate.probability
    return f"2^-{candidate.bits:.0f}"


def _probability_text(probability: float | str) -> str:
    return probability if isinstance(probability, str) else f"{probability:.2g}"


def known_as(candidate: FoundSecret) -> str | None:
    """Which canary a candidate is; None where it was not compared with a file of canaries."""
    if not isinstance(candidate, ComparedSecret):
        return None
    canary = candidate.canary
    if canary is None:
        return "no canary"
    often = f"planted {times_text(canary.repeats)}" if canary.repeats else "never planted"
    return f"{canary.name} of set {canary.set}, {often}"


def _decoding_text(queries: QueriesToLeak) -> str:
    given = {"temperature": queries.temperature, "top-k": queries.top_k, "top-p": queries.top_p}
    return ", ".join(f"{name} {value:g}" for name, value in given.items() if value)
