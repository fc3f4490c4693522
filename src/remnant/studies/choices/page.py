"""The page about training choices: which of them change how exposed planted secrets are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from remnant.records.typed import Absent
from remnant.report.blocks import (
    Bar,
    Beside,
    Block,
    Column,
    Depth,
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
from remnant.report.numerals import (
    bits_number,
    bits_text,
    count_text,
    counted,
    epoch_text,
    pvalue_text,
    short_percent,
)
from remnant.studies.beside.choices import beside
from remnant.studies.choices.charts import (
    estimate_chart,
    front_chart,
    nodes_chart,
    through_charts,
    variants_chart,
)
from remnant.studies.choices.formats import (
    band_text,
    bound_text,
    interval_bits,
    interval_number,
    mean_number,
    planted_text,
    share_text,
    signed,
    signed_text,
)
from remnant.studies.choices.result import (
    Band,
    Difference,
    Effect,
    Ends,
    ExposureTrainingResult,
    GridRow,
    Interval,
    TrainedVariant,
    TrainingChoices,
)
from remnant.studies.shared.pages import RunFacts, closing, headline, scope_section, task_sentence

TITLE = "Exposure by training choices"
_MEANS = (
    "The front is that of the means: other seeds may give another, and a mean that is a lower "
    "bound counts with the maximum."
)
_SMALL = 2.0  # bits: no more than noise


@dataclass(frozen=True, slots=True)
class _VariantRow:
    """A variant, its number on the page, and its difference from the first."""

    number: int
    variant: TrainedVariant
    difference: Difference | None


def page(result: ExposureTrainingResult, run: RunFacts) -> Iterator[Block]:
    """Yield the blocks of the page."""
    training = result.training
    reading = None if isinstance(training, Absent) else _reading(training)
    yield headline(result.verdict, {}, checks=beside(result), reading=reading)
    if not isinstance(training, Absent):
        yield Tiles(tuple(_tiles(training, result)))
    yield section("In plain words", _plain_words(result))
    if isinstance(training, Absent):
        missing = Missing("Exposure", training.reason, depth="summary")
        yield section("How exposed the canaries are", [missing])
    else:
        yield section(training.title, _variants(training, result))
        yield from _details(training)
    yield scope_section(result.scope)
    yield section("How to read this", [_TERMS])
    yield from closing(run)


def _details(training: TrainingChoices) -> Iterator[Block]:
    """The sections after the table of variants, where there is something to show."""
    if training.effects:
        yield section("Each choice on its own", _effects(training, training.effects))
    if len(training.variants) > 1:
        yield section("Exposure against usefulness", _front(training))
    if training.followed:
        yield section("Through training", _through(training))
    if training.searched or training.estimated:
        yield section("Extraction, and the error of an estimate", _extraction(training))
    yield section("Controls", [_controls(training)], part="method")
    yield section("How it was measured", [prose(_method_sentence(training))], part="method")


def _reading(training: TrainingChoices) -> Reading:
    highest = training.ranked[-1]
    value, low, high = highest.exposure
    bound = ", at least" if highest.mean_exposure.at_least else ""
    return Reading(
        name=f"Highest mean exposure (“{highest.label}”){bound}",
        value=value,
        low=low,
        high=high,
        limit=None,
        lowest=0.0,
        highest=training.space_bits,
        show=bits_text,
        n=f"{counted(training.trained, 'model')}, {counted(training.trials, 'seed')} a variant",
    )


def _tiles(training: TrainingChoices, result: ExposureTrainingResult) -> Iterator[Tile]:
    ranked = training.ranked
    yield Tile("Highest exposure", bound_text(ranked[-1].mean_exposure), ranked[-1].label)
    if len(ranked) > 1:
        yield Tile("Lowest exposure", bound_text(ranked[0].mean_exposure), ranked[0].label)
    rows = () if isinstance(result.verdict, Absent) else result.verdict.differences
    differ = count_text(sum(row.differs for row in rows))
    remark = f"of {counted(len(rows), 'variant')}, from “{training.variants[0].label}”"
    yield Tile("Differ significantly", differ, remark)
    chance = f"chance gives {bits_text(training.null_mean_bits)}"
    yield Tile("Maximum", bits_text(training.space_bits), chance)


def _plain_words(result: ExposureTrainingResult) -> Iterator[Block]:
    training = result.training
    if isinstance(training, Absent):
        yield prose(f"Exposure was not measured: {training.reason}.", tone="lead")
    else:
        yield prose(_what_was_done(training), tone="lead")
        yield prose(_what_was_found(training), tone="lead")
    yield prose(task_sentence(result.task), tone="lead")


def _variants(training: TrainingChoices, result: ExposureTrainingResult) -> Iterator[Block]:
    yield Figure(variants_chart(training), key="variants")
    heads, rows = training.grid()
    if training.table is not None and heads:
        yield _grid_table(heads, rows, by_rows=training.table.rows, by=training.table.columns)
    yield _variants_table(training, result)
    yield _exposure_table(training)


def _grid_table(
    heads: tuple[str, ...], rows: tuple[GridRow, ...], *, by_rows: str, by: str
) -> Table:
    def column(place: int, head: str) -> Column:
        def mean(row: GridRow) -> Interval | None:
            cell = row.cells[place]
            return None if cell is None else cell.mean_exposure

        return Column(head, mean, mean_number, strong=True)

    return Table(
        caption=f"Mean exposure in bits: {by_rows} in rows, {by} in columns",
        key="grid",
        rows=rows,
        columns=(
            Column(f"{by_rows} \\ {by}", "name"),
            *(column(place, head) for place, head in enumerate(heads)),
        ),
    )


def _variants_table(training: TrainingChoices, result: ExposureTrainingResult) -> Table:
    verdict = result.verdict
    rows = [
        _VariantRow(
            number,
            variant,
            None if isinstance(verdict, Absent) else verdict.difference_of(variant.label),
        )
        for number, variant in enumerate(training.variants, start=1)
    ]
    sure = f"{short_percent(training.confidence)} intervals" if training.trials > 1 else "one seed"
    return Table(
        caption=f"Every variant, in bits, {sure}; the difference is from the first variant, and "
        "its p‑value is corrected for the number of variants",
        key="all-variants",
        rows=rows,
        columns=_variant_columns(training),
        names=True,
        depth="summary",
    )


def _exposure_table(training: TrainingChoices) -> Table:
    """Exposure alone, so that there is room for a bar."""
    sure = f", {short_percent(training.confidence)} interval" if training.trials > 1 else ""
    return Table(
        caption=f"Mean exposure in bits{sure}",
        key="exposure",
        rows=training.variants,
        columns=(
            Column("Variant", "label"),
            Column("Value", "mean_exposure", mean_number, strong=True),
            Column("Low", lambda variant: variant.exposure[1], bits_number),
            Column("High", lambda variant: variant.exposure[2], bits_number),
        ),
        bar=Bar(
            lambda variant: variant.exposure[0],
            bits_number,
            low=lambda variant: variant.exposure[1],
            high=lambda variant: variant.exposure[2],
            mark=("chance", training.null_mean_bits),
        ),
        fold="Exposure of every variant, with both ends of its interval",
        names=True,
        depth="show",
    )


def _variant_columns(training: TrainingChoices) -> tuple[Column, ...]:
    def interval(
        head: str, name: str, show: Callable[[Interval], str], depth: Depth = "page"
    ) -> Column:
        """A column of numbers with intervals, which some variants may lack."""
        return Column(
            head,
            lambda row: _interval(getattr(row.variant, name)),
            show,
            optional=True,
            depth=depth,
        )

    def count(name: str) -> Column:
        return Column(
            name.capitalize(), lambda row: getattr(row.variant, name), count_text, depth="page"
        )

    return (
        Column("Variant", lambda row: f"{row.number}. {row.variant.label}"),
        Column("Exposure", lambda row: row.variant.mean_exposure, interval_number, strong=True),
        Column("Difference", lambda row: row.difference and row.difference.interval, signed_text),
        Column(
            "p‑value", lambda row: row.difference and row.difference.adjusted_p_value, pvalue_text
        ),
        interval(f"Bits a {training.token}, held-out", "validation_bits", interval_number, "show"),
        interval("Trained on", "training_bits", interval_number),
        interval("Ranked first", "ranked_first", share_text),
        interval("Extracted", "extracted", share_text, "show"),
        interval("Controls", "controls", interval_number),
        interval("Twin", "twin", interval_number),
        Column("Planted", lambda row: planted_text(row.variant), depth="page"),
        *map(count, ("models", "steps", "parameters")),
    )


def _interval(ends: Ends | None) -> Interval | None:
    return None if ends is None else Interval(*ends)


def _effects(training: TrainingChoices, effects: tuple[Effect, ...]) -> Iterator[Block]:
    yield prose(_effects_sentence(effects))
    yield Table(
        caption=f"Means over variants, in bits; {counted(training.trials, 'seed')} a variant",
        key="effects",
        rows=effects,
        columns=(
            Column("Choice", _choice_text),
            Column("Exposure", "mean_exposure", interval_number, strong=True),
            Column("Difference", "change", signed_text),
            Column("p‑value", "adjusted_p_value", pvalue_text),
            Column(
                f"Bits a {training.token}, held-out",
                lambda effect: Interval(*effect.validation_bits),
                interval_number,
                depth="page",
            ),
            Column("Variants", "cells", count_text, depth="page"),
        ),
        names=True,
        depth="summary",
    )


def _choice_text(effect: Effect) -> str:
    along = f" (with {', '.join(effect.along)})" if effect.along else ""
    return f"{effect.field}: {effect.value}{along}"


def _front(training: TrainingChoices) -> Iterator[Block]:
    yield prose(_front_sentence(training), depth="summary")
    if len(training.variants) > 2:  # two make no front to look at
        yield Figure(front_chart(training), key="front")


def _through(training: TrainingChoices) -> Iterator[Block]:
    yield prose(_through_sentence(training))
    exposure, costs = through_charts(training)
    yield Beside(
        (Figure(exposure, key="through", half=True), Figure(costs, key="costs", half=True))
    )
    yield prose(_turning_sentence(training))
    for number, (variant, through) in enumerate(training.followed, start=1):
        yield Table(
            caption=f"{variant.label}: bits by epoch",
            key=f"through-{number}",
            rows=through.looks,
            columns=(
                Column("Epoch", "epoch", epoch_text),
                Column("Step", "step", count_text),
                Column("Exposure", "exposure", interval_number, strong=True),
                Column(f"Bits a {training.token}, held-out", "validation", interval_number),
                Column("Trained on", "training", interval_number),
            ),
            fold=f"{variant.label}: all {len(through.step)} measurements",
        )


def _extraction(training: TrainingChoices) -> Iterator[Block]:
    figures = []
    if training.searched:
        yield prose(_extraction_sentence(training))
        figures.append(Figure(nodes_chart(training), key="nodes", half=True))
    if training.estimated:
        yield prose(_estimate_sentence(training))
        figures.append(Figure(estimate_chart(training), key="estimate", half=True))
    yield Beside(tuple(figures))
    if training.by_exposure:
        yield _bands_table(training, training.by_exposure)


def _bands_table(training: TrainingChoices, bands: tuple[Band, ...]) -> Table:
    columns = [Column("Exposure", band_text), Column("Canaries", "canaries", count_text)]
    if training.searched:
        columns += [
            Column(
                "Extracted",
                lambda band: f"{count_text(band.read_out)} of {count_text(band.searched)}",
            ),
            Column("Nodes, median", lambda band: band.nodes or None, _nodes_text),
        ]
    if training.estimated:
        columns += [
            Column("Estimate less exact", lambda band: _interval(band.error), signed_text),
            Column("Ranked exactly", "estimated", count_text),
        ]
    return Table(
        caption="Canaries by exposure, in bits; the error is the mean, with the lowest and the "
        "highest",
        key="bands",
        rows=bands,
        columns=tuple(columns),
        names=True,
    )


def _controls(training: TrainingChoices) -> Block:
    highest = training.highest_controls
    if highest is None:
        return Missing("Exposure of controls", "the plan has no controls")
    return prose(
        "Controls are secrets drawn the same way and never planted. Their highest mean exposure is "
        f"{bits_text(highest)}; chance gives {bits_text(training.null_mean_bits)}, and two bits is "
        "noise."
    )


def _nodes_text(nodes: float) -> str:
    return count_text(round(nodes))


def _what_was_done(training: TrainingChoices) -> str:
    return (
        f"{counted(training.trained, 'language model')} were trained on text with made-up secrets "
        f"in it, in {counted(len(training.variants), 'variant')} of one training, with "
        f"{counted(training.trials, 'seed')} each. Exposure is a planted secret’s rank in the "
        "model’s own ranking of all possible secrets, in bits: each bit halves the guesses that an "
        f"attacker needs, and at {bits_text(training.space_bits)} the secret is ranked first. A "
        f"secret that nobody planted has {bits_text(training.null_mean_bits)} on average."
    )


def _what_was_found(training: TrainingChoices) -> str:
    """The most and the least exposed variant, and whether the controls stayed at chance."""
    lowest, highest = training.ranked[0], training.ranked[-1]
    sentence = f"Exposure is highest with “{highest.label}”, {interval_bits(highest.mean_exposure)}"
    if lowest is not highest:
        sentence += f", and lowest with “{lowest.label}”, {interval_bits(lowest.mean_exposure)}"
    controls = training.highest_controls
    if controls is None:
        return f"{sentence}."
    return f"{sentence}. Controls, which were never planted, have at most {bits_text(controls)}."


def _method_sentence(training: TrainingChoices) -> str:
    """How the exposures were measured."""
    exact = [known for variant in training.variants for known in variant.exact_each]
    if all(exact):
        sentences = ["Every exposure is exact: the rank in the whole space."]
    elif any(exact):
        sentences = [
            f"{sum(exact)} of {counted(len(exact), 'exposure')} are exact ranks; the others were "
            "sampled, because counting their rank would take too long."
        ]
    else:
        sentences = ["Exposures were sampled."]
    saturated = sum(variant.saturated for variant in training.variants)
    if saturated:
        bounds = "is a lower bound" if saturated == 1 else "are lower bounds"
        sentences.append(f"{counted(saturated, 'exposure')} {bounds}.")
    if training.trials > 1:
        sure = short_percent(training.confidence)
        sentences.append(f"Intervals are for the mean over other seeds, at {sure}.")
    return " ".join(sentences)


def _effects_sentence(effects: tuple[Effect, ...]) -> str:
    along = {effect.field: effect.along for effect in effects if effect.along}
    moved = "".join(
        f" {name} changes together with {' and '.join(others)}; the effects of these cannot be "
        "distinguished."
        for name, others in along.items()
    )
    return (
        "Each row is the mean over all variants with that value, and the difference is from the "
        "field’s first value, seed by seed. A mean over many variants can show an effect that no "
        "single variant shows. P‑values are corrected for the rows of this table "
        f"alone.{moved}"
    )


def _front_sentence(training: TrainingChoices) -> str:
    """Which variants are worth choosing between; one is called best only where it is significant.

    A variant is below another where their intervals do not overlap.
    """
    if len(training.pareto) > 1:
        named = ", ".join(f"“{label}”" for label in training.pareto)
        return (
            f"{len(training.pareto)} of {counted(len(training.variants), 'variant')} are on the "
            f"Pareto front of the means: {named}. Moving along it trades usefulness against "
            f"exposure. {_MEANS}"
        )
    best = training.significantly_best()
    if best is None:
        return (
            "No variant is significantly best: the one with the lowest means has intervals that "
            f"overlap those of others. {_MEANS}"
        )
    label, exposes, predicts = best
    if exposes and predicts:
        return f"“{label}” predicts best and exposes least; its intervals overlap no other."
    if exposes:
        return (
            f"“{label}” exposes least. Its bits on held-out text do not differ significantly from "
            "those of all others."
        )
    return (
        f"“{label}” predicts best. Its exposure does not differ significantly from that of all "
        "others."
    )


def _through_sentence(training: TrainingChoices) -> str:
    """What the figures through training show."""
    sentence = (
        f"Exposure while models train, beside the bits a {training.token} that text costs them: a "
        "model may memorise a secret long before it overfits. Thin vertical lines mark the steps "
        "at which the first canary was used."
    )
    ceiling = min(through.ceiling_bits for _, through in training.followed)
    if ceiling < training.space_bits:
        sentence += (
            " During training a canary is ranked among sampled secrets, which show at most "
            f"{bits_text(ceiling)}; the exact rank is known for the end alone."
        )
    return sentence


def _turning_sentence(training: TrainingChoices) -> str:
    """When the validation cost was lowest, and exposure highest, of the first variant followed."""
    variant, through = training.followed[0]
    looks = through.looks
    best = min(looks, key=lambda look: look.validation.value)
    most = max(looks, key=lambda look: look.exposure.value)
    sentence = (
        f"With “{variant.label}” held-out text is predicted best at epoch "
        f"{epoch_text(best.epoch)}, where exposure is {bound_text(best.exposure)}; exposure is "
        f"highest, {bound_text(most.exposure)}, at epoch {epoch_text(most.epoch)}"
    )
    near = next(
        look for look in looks if (look.exposure.high or look.exposure.value) >= most.exposure.value
    )
    if near.step < most.step:
        sentence += f", and not significantly lower from epoch {epoch_text(near.epoch)} on"
    return f"{sentence}."


def _extraction_sentence(training: TrainingChoices) -> str:
    """At which exposures canaries were extracted."""
    canaries = [search for variant in training.searched for search in variant.searches]
    hits = [bits for bits, extracted, _ in canaries if extracted]
    misses = [bits for bits, extracted, _ in canaries if not extracted]
    sentence = "No canary was extracted from any model"
    if hits:
        sentence = (
            f"Extracted: {count_text(len(hits))} of "
            f"{counted(len(canaries), 'canary', 'canaries')}. The least exposed of them has "
            f"{bits_text(min(hits))}"
        )
        if misses:
            sentence += f", the most exposed of the others {bits_text(max(misses))}"
    ended = sum(variant.searches_ended for variant in training.searched)
    if not ended:
        return f"{sentence}."
    return (
        f"{sentence}. The budget ended {counted(ended, 'search', 'searches')} before the result "
        "was certain."
    )


def _estimate_sentence(training: TrainingChoices) -> str:
    """How far the skew-normal estimate is off."""
    errors = [
        estimate - bits
        for variant in training.estimated
        for bits, estimate in variant.estimates
        if bits > _SMALL
    ]
    if not errors:
        return "No canary has more than two bits, where an estimate would matter."
    low = sum(error < 0 for error in errors)
    return (
        f"Of {counted(len(errors), 'canary', 'canaries')} with more than two bits, the skew-normal "
        f"estimate is too low for {low}; its error is {signed(sum(errors) / len(errors))} bits on "
        f"average, from {signed(min(errors))} to {signed(max(errors))}."
    )


_TERMS = Terms(
    (
        (
            "Exposure",
            "The binary logarithm of the number of possible secrets, less that of the canary’s "
            "rank among them by cost. Equal costs count against the canary. A secret that nobody "
            "planted has 1.44 bits on average: two bits is noise.",
        ),
        (
            "The difference",
            "Models of one seed have the same start in all variants of the same shape, and see the "
            "text in the same order where the batch is the same. So variants are compared seed by "
            "seed. The p-value is that of an exact sign-flip test that the two have one law: a "
            "small one shows that they differ, in the mean or otherwise, such as by one training "
            "in ten. It takes six seeds. The interval of the mean difference is too narrow where "
            "a few seeds behave differently. A difference that is not significant is no proof "
            "that there is none.",
        ),
        (
            "The interval",
            "Where the mean would be with other starts and other orders of the text. Where all "
            "models of a variant agree, at the ceiling for instance, a few of them do not prove "
            "that the next would: the interval is then that of as many tosses of one coin, and "
            "reaches far down.",
        ),
        (
            "Usefulness",
            "What a token of held-out text costs the model, in bits. A variant that learns less "
            "exposes less: compare exposures at similar usefulness, or along the front.",
        ),
        (
            "Ranked first, extracted",
            "Ranked first: no possible secret is likelier except other canaries of the same model. "
            "Extracted: a search that knows only the template found the canary among the "
            "likeliest.",
        ),
        (
            "A finding",
            "Training choices have no limit to keep, so there is no PASS or FAIL: the page shows "
            "which choices change exposure, by how much, and what to do.",
        ),
    )
)
