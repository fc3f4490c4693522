"""The page of an exposure study."""

from __future__ import annotations

import math
from collections.abc import Iterator

from remnant.measures.exposure.extrapolation import DOUBTFUL_PVALUE
from remnant.records.typed import Absent
from remnant.report.blocks import (
    Bar,
    Beside,
    Block,
    Cell,
    Code,
    Column,
    Facts,
    Figure,
    Missing,
    Prose,
    Reading,
    Section,
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
    p_equals,
    percent,
    pvalue_text,
    small_text,
    times_text,
)
from remnant.studies.beside.exposure import beside
from remnant.studies.exposure.charts import (
    ceiling_in_sight,
    costs_chart,
    exposure_chart,
    marked,
    named,
)
from remnant.studies.exposure.formats import (
    exposure_cell,
    exposure_number,
    exposure_text,
    mean_cell,
    repeats_text,
)
from remnant.studies.exposure.result import (
    CanaryExposure,
    Candidate,
    ExposureBits,
    ExposureByRepeats,
    ExposureGate,
    ExposureResult,
    Exposures,
    Extractions,
    ReferenceCosts,
    Search,
    most_exposed,
)
from remnant.studies.exposure.terms import TERMS
from remnant.studies.shared.pages import (
    UNDECIDED,
    RunFacts,
    closing,
    headline,
    scope_section,
    task_sentence,
    useless_sentence,
)
from remnant.studies.shared.result_parts import LanguageTask

TITLE = "Exposure and extraction"
PAIR_TITLE = "Exposure in translation"
TITLES = {
    "PASS": "The judged canaries are no more exposed than allowed",
    "FAIL": "A judged canary is more exposed than allowed",
    "INCONCLUSIVE": UNDECIDED,
}
ADVICE = {
    "PASS": "No action is needed for secrets that occur no more often than the judged canaries. "
    "Repeat the study when the data, the model or the training changes.",
    "FAIL": "Do not release this model as it is. Remove secrets and their copies from the "
    "training data, or train so that less is memorised, and run the study again.",
    "INCONCLUSIVE": "Do not treat this as a PASS. Add the evidence that the sentence above asks "
    "for, and run the study again in a new folder.",
}
_GIVEN = {
    None: "",
    "source": " To find the secret of a translation, the model was given the whole source "
    "sentence. So it was for the controls: a model that merely copies exposes these too.",
    "beginning": " To find the secret of a translation, the model was given the source sentence up "
    "to the secret.",
}
_OPEN_ROWS = 16


def page(result: ExposureResult, run: RunFacts) -> Iterator[Block]:
    """The page of an exposure result, of a language model or of a translator."""
    exposure, repeats, extraction = result.exposure, result.repeats, result.extraction
    gate = None if isinstance(result.verdict, Absent) else result.verdict
    yield headline(
        result.verdict,
        TITLES,
        checks=beside(result),
        reading=exposure_reading(exposure, gate),
        advice=ADVICE,
    )
    yield Tiles((*exposure_tiles(exposure), *_extraction_tile(exposure, extraction)))
    warning = useless_sentence(result.task)
    if warning:
        yield prose(warning, tone="notice", depth="summary")
    yield section("In plain words", in_plain_words(exposure, result.task, extraction))
    yield section("How exposed the canaries are", exposed_canaries(exposure, repeats, gate))
    yield section("What can be extracted", _extraction(extraction))
    yield section("Costs of canaries and of random secrets", reference_cost_blocks(result.costs))
    yield section("Controls", control_blocks(exposure, repeats), part="method")
    yield section("How it was measured", method_blocks(exposure, gate), part="method")
    yield scope_section(result.scope)
    yield section("How to read this", [Terms(TERMS)])
    yield from closing(run)


def exposure_reading(exposure: Exposures | Absent, gate: ExposureGate | None) -> Reading | None:
    """The number that the gate judged; None where nothing was measured."""
    if isinstance(exposure, Absent):
        return None
    judged, which = exposure.canaries, ""
    if gate is not None and gate.judged:
        judged, which = exposure.least_planted(gate.judged), " of the judged canaries"
    highest = most_exposed(judged)
    if highest is None:
        return None
    trainings = counted(len({canary.trial for canary in judged}), "training")
    return gate_reading(
        gate,
        highest.estimate,
        name=f"Highest exposure{which}",
        judged=len(judged),
        trainings=trainings,
        ceiling=exposure.ceiling_bits,
    )


def gate_reading(
    gate: ExposureGate | None,
    highest: ExposureBits,
    *,
    name: str,
    judged: int,
    trainings: str,
    ceiling: float,
) -> Reading:
    """The number that a gate judged: the share above the limit, or the highest exposure.

    Args:
        gate: The outcome; None where nothing was judged.
        highest: The highest exposure of the judged canaries.
        name: What it is called.
        judged: How many canaries were judged.
        trainings: How many trainings they are from, in words.
        ceiling: The maximum, in bits.
    """
    n = f"{counted(judged, 'canary', 'canaries')}, {trainings}"
    if gate is not None and gate.share is not None and gate.above is not None:
        return Reading(
            name=f"Share of canaries at or above {gate.limit:g} bits",
            value=gate.above / judged,
            low=gate.share_low,
            high=gate.share_high,
            limit=gate.share,
            lowest=0.0,
            highest=1.0,
            show=percent,
            n=n,
        )
    exact = highest.low == highest.high
    return Reading(
        name=name,
        value=highest.value,
        low=None if exact else highest.low,
        high=None if exact else highest.high,
        limit=None if gate is None else gate.limit,
        lowest=0.0,
        highest=ceiling,
        show=bits_text,
        n=n,
    )


def exposure_tiles(exposure: Exposures | Absent) -> Iterator[Tile]:
    """The highest exposure, the maximum, and the controls."""
    if isinstance(exposure, Exposures):
        highest, mean = exposure.highest, exposure.controls_mean
        if highest is not None:
            remark = (
                f"of {counted(len(exposure.canaries), 'canary', 'canaries')}: {highest.name}, "
                f"planted {times_text(highest.repeats)}"
            )
            yield Tile("Highest exposure", exposure_text(highest.estimate), remark)
        first = f"rank 1 of {counted(exposure.space, 'secret')}"
        yield Tile("Maximum possible", bits_text(exposure.ceiling_bits), first)
        if mean is not None:
            chance = (
                f"mean of {counted(len(exposure.controls), 'control')}; chance gives "
                f"{bits_number(exposure.null_mean_bits)}, two bits is noise"
            )
            yield Tile("Never planted", exposure_text(mean), chance)


def _extraction_tile(
    exposure: Exposures | Absent, extraction: Extractions | Absent
) -> Iterator[Tile]:
    if isinstance(extraction, Extractions):
        extracted = len(extraction.extracted)
        number = count_text(extracted)
        if isinstance(exposure, Exposures):
            number += f" of {count_text(len(exposure.canaries))}"
        remark = extracted_remark(extraction)
        yield Tile("Extracted secrets", number, remark, "harm" if extracted else "")


def extracted_remark(extraction: Extractions) -> str:
    """How many guesses a search had and whether it is proven: ``top 3 guesses, proven``."""
    searches, proven, parts = extraction.of_planted, extraction.proven, []
    if extraction.guesses is not None:
        parts.append(f"top {counted(extraction.guesses, 'guess', 'guesses')}")
    if len(searches) > 1:
        parts.append(f"in each of {count_text(len(searches))} models")
    if not proven:
        parts.append("not proven: a budget ended the search")
    elif proven == len(searches):
        parts.append("proven")
    else:
        parts.append(
            f"{count_text(proven)} of {counted(len(searches), 'search', 'searches')} proven"
        )
    return ", ".join(parts)


def in_plain_words(
    exposure: Exposures | Absent,
    task: LanguageTask | Absent,
    extraction: Extractions | Absent | None = None,
) -> Iterator[Block]:
    """What was planted and found, in sentences; ``extraction`` is None if none was planned."""
    if isinstance(exposure, Absent):
        reason = exposure.reason
        yield prose(f"The exposure of the canaries was not measured: {reason}.", tone="lead")
    else:
        yield prose(
            f"{_planted(exposure)} Exposure measures how likely a planted secret is to the model "
            "compared with all other possible ones: each bit halves the number of guesses that an "
            f"attacker needs, and at {bits_text(exposure.ceiling_bits)} the secret is the first "
            "guess.",
            tone="lead",
        )
        pattern = exposure.template.replace("\n", "↵")
        yield prose(
            "The canaries read ", Code(pattern), "; only the parts in braces are secret.",
            tone="lead",
        )  # fmt: skip
        yield prose(" ".join(_findings(exposure, extraction)), tone="lead")
    yield prose(task_sentence(task), tone="lead")


def _planted(exposure: Exposures) -> str:
    """What was planted, and what the model was given."""
    repeats = [canary.repeats for canary in exposure.canaries]
    space = count_text(exposure.space)
    if not repeats:
        return f"No canary was planted; the template has {space} possible secrets."
    where = "training text" if exposure.given is None else "training pairs of a translator"
    often = times_text(min(repeats))
    if min(repeats) != max(repeats):
        often = f"{count_text(min(repeats))} to {count_text(max(repeats))} times each"
    elif len(repeats) > 1:
        often += " each"
    verb = "was" if len(repeats) == 1 else "were"
    return (
        f"{counted(len(repeats), 'canary', 'canaries')} {verb} planted in the {where}, {often}. "
        f"The secret in each was drawn at random from {space} possible ones."
        f"{_GIVEN[exposure.given]}"
    )


def _findings(exposure: Exposures, extraction: Extractions | Absent | None) -> Iterator[str]:
    highest = exposure.highest
    if highest is not None:
        rank = ""
        if highest.rank is not None:
            rank = f": rank {count_text(highest.rank)} of {count_text(exposure.space)}"
        yield (
            f"The most exposed canary, planted {times_text(highest.repeats)}, has "
            f"{exposure_text(highest.estimate)}{rank}."
        )
    yield controls_sentence(exposure)
    if isinstance(extraction, Extractions):
        yield _extracted_sentence(extraction, len(exposure.canaries))


def _extracted_sentence(extraction: Extractions, planted: int) -> str:
    extracted = len(extraction.extracted)
    if not extracted:
        return "A search for the likeliest secrets extracted no canary."
    return (
        f"A search that knows only the template extracted {count_text(extracted)} of "
        f"{counted(planted, 'canary', 'canaries')}."
    )


def controls_sentence(exposure: Exposures) -> str:
    """What the controls show about the measurement itself."""
    mean, many = exposure.controls_mean, len(exposure.controls)
    chance = f"Chance alone gives {bits_text(exposure.null_mean_bits)}; two bits is noise."
    if mean is None:
        return f"There are no controls. {chance}"
    who = "The control" if many == 1 else f"The {counted(many, 'control')}"
    return (
        f"{who}, drawn the same way and never planted, {'has' if many == 1 else 'have'} "
        f"{exposure_text(mean)} on average. {chance}"
    )


def exposed_canaries(
    exposure: Exposures | Absent, repeats: ExposureByRepeats | Absent, gate: ExposureGate | None
) -> Iterator[Block]:
    """The chart of the canaries, their means by how often planted, and each of them."""
    limit = None if gate is None else gate.limit
    levels = () if isinstance(repeats, Absent) else repeats.levels
    if isinstance(exposure, Absent):
        yield Missing("Exposure", exposure.reason, depth="summary")
    else:
        yield prose(
            "Each dot is one canary. The higher it is, the closer its secret is to being the "
            "model’s first guess. Dots near the dotted line are at chance."
        )
        far = f"The ceiling, {bits_text(exposure.ceiling_bits)}, is far above this chart."
        far *= not ceiling_in_sight(exposure)
        yield Figure(exposure_chart(exposure, levels, limit=limit), "exposure", far)
    if isinstance(repeats, Absent):
        yield Missing("Exposure by number of times planted", repeats.reason)
    else:
        chance = None if isinstance(exposure, Absent) else exposure.null_mean_bits
        yield _levels_table(repeats, chance)
    if isinstance(exposure, Exposures):
        yield _canaries_table(exposure)


def _levels_table(repeats: ExposureByRepeats, chance: float | None) -> Table:
    tested = "p-values against chance"
    if repeats.against_controls:
        tested = "p-values of canaries against the controls, of controls against chance"
    spread = any(level.mean_low is not None for level in repeats.levels)
    over_runs = "; 95 % interval over training runs" if spread else ""
    return Table(
        caption=f"Mean exposure in bits by number of times planted{over_runs}; {tested}",
        key="levels",
        rows=repeats.levels,
        columns=(
            Column(
                "Planted",
                "repeats",
                lambda repeats: count_text(repeats) if repeats else "never (controls)",
            ),
            Column("Canaries", "n", count_text),
            Column("Mean", "mean", mean_cell, strong=True),
            Column("Median", "median", exposure_number, optional=True, depth="page"),
            Column("Twin", "twin_mean_bits", bits_number, optional=True),
            Column("p-value", repeats.p_value, pvalue_text),
        ),
        bar=Bar(
            "shown",
            bits_number,
            low="mean_low",
            high="mean_high",
            mark=None if chance is None else ("chance", chance),
            floor=0.0,
        ),
        depth="show",
    )


def _canaries_table(exposure: Exposures) -> Table:
    rows = exposure.ranked
    sampled = exposure.method == "sampled"
    trial = (Column("Trial", lambda row: row.trial + 1),)
    return Table(
        caption="Every canary and control, those planted most first; in bits"
        + ("; 95 % interval in small print" if sampled else ""),
        key="canaries",
        rows=rows,
        columns=(
            Column("Canary", "name"),
            Column(
                "Exposure", "estimate", exposure_cell if sampled else exposure_number, strong=True
            ),
            Column("Planted", "repeats", repeats_text),
            Column("Times seen", "uses", count_text),
            Column(f"Rank of {count_text(exposure.space)}", "rank", count_text, optional=True),
            Column("Twin", "twin_bits", bits_number, optional=True),
            Column("Cost", _cost, _cost_text),
            Column("Extrapolated", "skew_normal_bits", bits_number, optional=True),
            *(trial if exposure.several_trials else ()),
        ),
        fold=f"Every canary and control ({len(rows)})" if len(rows) > _OPEN_ROWS else "",
        names=True,
    )


def _cost(canary: CanaryExposure) -> float | str:
    return canary.cost if math.isfinite(canary.cost) else "no probability"


def _cost_text(cost: float | str) -> str:
    return cost if isinstance(cost, str) else bits_number(cost)


def _extraction(extraction: Extractions | Absent) -> Iterator[Block]:
    if isinstance(extraction, Absent):
        yield Missing("Extraction", extraction.reason, depth="summary")
        return
    yield prose(
        "A search that knows only the template looks for the secrets that each model finds "
        "likeliest. Canaries among them are named; the secrets themselves are not in this report."
    )
    yield Beside(
        tuple(_search(search, f"search-{at}") for at, search in enumerate(extraction.searches, 1))
    )


def _search(search: Search, key: str) -> Section:
    blocks: list[Block] = [
        prose(proof_sentence(search), tone="proven" if search.certified else "open"),
        prose(_candidates_sentence(search)),
    ]
    if search.candidates:
        blocks.append(
            Table(
                caption="The likeliest secrets"
                if search.certified
                else "The likeliest secrets that were found",
                key=key,
                rows=tuple(enumerate(search.candidates, start=1)),
                columns=(
                    Column("Place", lambda row: row[0]),
                    Column("Cost in bits", lambda row: row[1].bits, bits_number),
                    Column("Which canary", lambda row: row[1].canary or "none", _canary_cell),
                    Column("Planted", lambda row: row[1].repeats, count_text),
                ),
            )
        )
    return Section(f"Model: {search.member}", tuple(blocks))


def _canary_cell(name: str) -> Cell:
    return Cell(name, strong=name != "none")


def proof_sentence(search: Search) -> str:
    """What the search proves."""
    space, nodes = count_text(search.space), counted(search.nodes, "node")
    if search.certified:
        return f"Proven: no likelier secret exists among {space} ({nodes} searched)."
    return (
        f"Not proven: a budget ended the search after {nodes}; likelier secrets may exist among "
        f"{space}."
    )


def _candidates_sentence(search: Search) -> str:
    """Which of the candidates are canaries."""
    if not search.candidates:
        return "The search returned no secret."
    first = search.candidates[0]
    if first.canary is not None:
        return f"The likeliest secret is {_named(first)}."
    later = [candidate for candidate in search.candidates if candidate.canary is not None]
    if later:
        return f"The likeliest secret is not a canary, but {_named(later[0])}, comes later."
    if len(search.candidates) == 1:
        return "The likeliest secret is not a canary."
    return f"None of the {len(search.candidates)} likeliest secrets is a canary."


def _named(candidate: Candidate) -> str:
    if candidate.repeats is None:
        return str(candidate.canary)
    return f"{candidate.canary}, planted {times_text(candidate.repeats)}"


def reference_cost_blocks(costs: ReferenceCosts | Absent) -> Iterator[Block]:
    """The costs of random secrets, with the canaries among them."""
    if isinstance(costs, Absent):
        yield Missing("Costs of the references", costs.reason)
        return
    yield prose(
        f"Costs of {counted(costs.n_references, 'random secret')} in the model “{costs.member}”, "
        "in bits; lower is likelier. A canary among the bars is like any other secret. A canary "
        "far to their left is memorised."
    )
    yield Figure(
        costs_chart(costs),
        "costs",
        " ".join(_not_in_chart(costs)),
        flags="A canary, and how often it was planted",
    )
    if costs.skew_normal is not None:
        yield _fit(costs.ks_pvalue)
    yield Table(
        caption="References by cost, in bits",
        key="costs",
        rows=costs.bins,
        columns=(
            Column("From", "low", bits_number),
            Column("To", "high", bits_number),
            Column("References", "count", count_text),
        ),
        fold="The histogram in numbers",
    )


def _not_in_chart(costs: ReferenceCosts) -> Iterator[str]:
    more = len(marked(costs)) - len(named(costs))
    if more:
        yield f"The most exposed canaries are named; {more} more are in the table above."
    if costs.unmarked:
        names = ", ".join(costs.unmarked)
        yield f"Not in the chart, since the model gives them no probability: {names}."


def _fit(p_value: float | None) -> Prose:
    if p_value is None:
        return prose("The fit of the skew-normal law was not tested.", tone="note")
    if p_value <= DOUBTFUL_PVALUE:
        return prose(
            "The fit is doubtful: the costs do not follow the skew-normal law (Kolmogorov–Smirnov "
            f"{p_equals(p_value)}). Do not rely on bits extrapolated from it.",
            tone="notice",
        )
    return prose(
        f"The costs are consistent with the skew-normal law (Kolmogorov–Smirnov "
        f"{p_equals(p_value)}). Bits extrapolated from it are still only a guess.",
        tone="note",
    )


def control_blocks(
    exposure: Exposures | Absent, repeats: ExposureByRepeats | Absent
) -> Iterator[Block]:
    """What the controls show about the measurement itself."""
    if isinstance(exposure, Absent):
        yield Missing("Controls", exposure.reason)
        return
    yield prose(controls_sentence(exposure))
    if isinstance(repeats, ExposureByRepeats):
        yield from control_warning(repeats)
    if exposure.twin_mean is not None:
        yield prose(
            "In a twin of the model, trained on no canary, the same canaries have "
            f"{bits_text(exposure.twin_mean)} on average."
        )


def control_warning(repeats: ExposureByRepeats) -> Iterator[Prose]:
    """A warning where controls are more exposed than chance explains."""
    controls = repeats.controls
    if controls is None or controls.pooled_pvalue is None:
        return
    p_value = p_equals(controls.pooled_pvalue)
    if not repeats.controls_are_exposed:
        yield prose(f"Test of the controls against chance: {p_value}.")
        return
    against = ""
    if repeats.against_controls:
        against = " The p-values of canaries are therefore against the controls."
    yield prose(
        f"The controls are more exposed than chance explains ({p_value}), although they were never "
        "planted. Something other than memory makes these secrets likely, so read the exposures "
        f"with caution.{against}",
        tone="notice",
        depth="summary",
    )


def method_blocks(exposure: Exposures | Absent, gate: ExposureGate | None) -> Iterator[Block]:
    """How exposure was measured, and what the gate judged."""
    if isinstance(exposure, Absent):
        yield Missing("Method", exposure.reason)
    else:
        yield prose(method_sentence(exposure))
    if gate is not None and gate.judged is not None:
        yield Facts((("The gate", tuple(_gate_facts(gate))),))


def method_sentence(exposure: Exposures) -> str:
    """How ranks were determined, and why by this method."""
    space = count_text(exposure.space)
    how = (
        f"The ranks are exact: each of the {space} secrets was compared, or excluded because its "
        "beginning alone already costs more."
        if exposure.method == "exact"
        else f"The ranks are estimated from a random sample of the {space} secrets, so each "
        "exposure has a 95 % interval. Where no sampled secret is as cheap as the canary, only a "
        "lower bound (“at least”) is known."
    )
    reason = exposure.reason.strip().removesuffix(".")
    for opening in (f"{exposure.method}: ", f"{exposure.method}, because "):
        reason = reason.removeprefix(opening)
    if reason:
        how += f" Reason for this method: {reason}."
    if exposure.method == "exact" and exposure.tolerance is not None:
        how += f" Costs within {small_text(exposure.tolerance)} bits count as equal."
    return how


def _gate_facts(gate: ExposureGate) -> Iterator[tuple[str, str]]:
    if gate.limit is not None:
        yield "limit", f"{gate.limit:g} bits"
    if gate.judged is not None and gate.above is not None:
        yield "canaries judged", count_text(gate.judged)
        yield "at or above the limit, or possibly so", count_text(gate.above)
    if gate.share_low is not None and gate.share_high is not None:
        ends = f"{percent(gate.share_low)} to {percent(gate.share_high)}"
        yield "share of such canaries, one-sided 95 % bounds", ends
    yield "share allowed", "none" if gate.share is None else percent(gate.share)
    yield "p-value of judged canaries against chance", pvalue_text(gate.p_value)
    control = "none found" if gate.control is None else f"planted {times_text(gate.control)}"
    yield "positive control", control
    if gate.trainings is not None:
        yield "trainings", count_text(gate.trainings)
