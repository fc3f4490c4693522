"""The page about training choices: all numbers of the run, and its sentences in all branches."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from remnant.records import Record
from remnant.records.typed import Absent, read_result
from remnant.report import blocks as made_of
from remnant.report.charts.figure import figure_of
from remnant.studies.choices.charts import (
    estimate_chart,
    front_chart,
    nodes_chart,
    through_charts,
    variants_chart,
)
from remnant.studies.choices.formats import band_text, share_text, signed_text
from remnant.studies.choices.page import TITLE, page
from remnant.studies.choices.result import Band, ExposureTrainingResult, Interval
from remnant.studies.shared.pages import read_run


@pytest.fixture(scope="module")
def result(chosen):
    return read_result(Record.open(chosen), ExposureTrainingResult)


@pytest.fixture(scope="module")
def run(chosen):
    return read_run(Record.open(chosen))


@pytest.fixture
def text_of(run, page_text):
    return lambda result, **options: page_text(page(result, run), **options)


def changed(result, change=None, **fields):
    """The result with other fields, and every variant put through ``change``."""
    variants = fields.pop("variants", result.training.variants)
    if change is not None:
        variants = tuple(replace(v, **change(i, v)) for i, v in enumerate(variants))
    return replace(result, training=replace(result.training, variants=variants, **fields))


def first_only(result):
    """The result with its first variant alone."""
    variants = result.training.variants[:1]
    alone = changed(result, variants=variants, pareto=(variants[0].label,), effects=None)
    return replace(alone, verdict=replace(alone.verdict, differences=()))


def keys_of(result, run):
    return [
        block.key
        for block in made_of.walk(page(result, run))
        if isinstance(block, made_of.Table | made_of.Figure)
    ]


def test_the_page_has_its_parts_in_order(result, run):
    blocks = list(page(result, run))
    assert isinstance(blocks[0], made_of.Headline)
    assert isinstance(blocks[1], made_of.Tiles)
    titles = [block.title for block in blocks if isinstance(block, made_of.Section)]
    assert titles == [
        "In plain words",
        "Batch and units",
        "Each choice on its own",
        "Exposure against usefulness",
        "Through training",
        "Extraction, and the error of an estimate",
        "Controls",
        "How it was measured",
        "What was tested, and what was not",
        "How to read this",
        "When the canaries were used",
        "What was run",
    ]
    keys = keys_of(result, run)
    assert len(set(keys)) == len(keys)
    assert TITLE == "Exposure by training choices"


def test_the_headline_is_a_finding_with_the_highest_exposure(result, run):
    headline = next(iter(page(result, run)))
    assert headline.outcome == "FINDING"
    assert headline.advice == result.verdict.advice
    highest = result.training.ranked[-1]
    reading = headline.reading
    assert (reading.value, reading.low, reading.high) == highest.exposure
    assert (reading.limit, reading.highest) == (None, result.training.space_bits)
    assert reading.n == "15 models, 3 seeds a variant"


def test_the_words_say_what_was_found(result, text_of):
    text, training = text_of(result), result.training
    highest, lowest = training.ranked[-1], training.ranked[0]
    assert "15 language models were trained" in text
    assert f"highest with “{highest.label}”, {highest.exposure[0]:.2f} bits" in text
    assert f"lowest with “{lowest.label}”, {lowest.exposure[0]:.2f} bits" in text
    assert f"have at most {training.highest_controls:.2f} bits" in text
    assert "Every exposure is exact: the rank in the whole space." in text
    assert "Intervals are for the mean over other seeds, at 95 %." in text
    assert "batch changes together with training.options.lr" in text
    assert "which show at most 7.24 bits" in text


def test_every_variant_has_a_row_with_a_bar_in_the_terminal(result, run, text_of):
    tables = {b.key: b for b in made_of.walk(page(result, run)) if isinstance(b, made_of.Table)}
    table = tables["all-variants"]
    assert table.depth == "summary"
    bars = tables["exposure"]
    assert (bars.depth, bars.bar.mark) == ("show", ("chance", result.training.null_mean_bits))
    assert len(bars.rows) == 5
    text = text_of(result, depth="show")
    for number, variant in enumerate(result.training.variants, start=1):
        value, low, high = variant.exposure
        assert f"{number}. {variant.label}" in text
        assert f"{value:.2f} ({low:.2f} to {high:.2f})" in text
    assert [column.name for column in table.shown()][:5] == [
        *("Variant", "Exposure", "Difference", "p‑value", "Bits a character, held-out")
    ]
    effects = tables["effects"]
    assert effects.columns[0].cell(effects.rows[1]).main == "batch: 16 (with training.options.lr)"
    grid = tables["grid"]
    assert [column.name for column in grid.columns] == ["batch \\ units", "8", "16"]
    means = [[column.cell(row).main for column in grid.columns] for row in grid.rows]
    assert means == [
        [name, *(f"{result.training.variants[i].exposure[0]:.2f}" for i in places)]
        for name, places in (("8", (0, 1)), ("16", (2, 3)))
    ]


def test_a_cell_without_a_variant_is_a_dash(result, run):
    variants = (*result.training.variants[:3], result.training.variants[4])
    some = changed(result, variants=variants, pareto=(variants[0].label,))
    tables = {b.key: b for b in made_of.walk(page(some, run)) if isinstance(b, made_of.Table)}
    grid = tables["grid"]
    assert grid.columns[2].cell(grid.rows[1]).main == "–"


def test_lower_bounds_are_marked_everywhere(result, text_of):
    def saturated(number, variant):
        bounds = (False, False, True)
        return {
            "saturated": 2,
            "searches_ended": int(number == 0),
            "through": replace(variant.through, at_least=bounds),
        }

    cut = changed(
        result,
        saturated,
        effects=tuple(
            replace(effect, at_least=True, difference_at_least=effect.difference is not None)
            for effect in result.training.effects
        ),
    )
    differences = tuple(replace(row, at_least=True) for row in cut.verdict.differences)
    cut = replace(cut, verdict=replace(cut.verdict, differences=differences))
    text = text_of(cut)
    lowest, highest = cut.training.ranked[0], cut.training.ranked[-1]
    assert f"lowest with “{lowest.label}”, ≥ {lowest.exposure[0]:.2f} bits" in text
    assert text.count(f"≥ {highest.exposure[0]:.2f}") >= 3  # a tile, a sentence and a table
    assert f"Highest mean exposure (“{highest.label}”), at least" in text
    ends = signed_text(Interval(*differences[-1].difference, at_least=True))
    assert ends.replace("\N{MINUS SIGN}", "-") in text
    assert "(" not in ends
    assert "10 exposures are lower bounds." in text
    assert "The budget ended 1 search before the result was certain." in text
    one = changed(result, lambda number, _: {"saturated": int(number == 0)})
    assert "1 exposure is a lower bound." in text_of(one)


@pytest.mark.parametrize(
    ("exact", "words"),
    [
        ((True, False, True), "10 of 15 exposures are exact ranks; the others were sampled"),
        ((False,) * 3, "Exposures were sampled."),
    ],
)
def test_how_exposures_were_measured(result, text_of, exact, words):
    assert words in text_of(changed(result, lambda *_: {"exact_each": exact}))


def test_a_peak_that_is_not_significant_is_not_one(result, text_of):
    def flat(_, variant):
        ends = ((1.0, 0.0, 2.0), (9.0, 7.0, 11.0), (9.2, 7.0, 11.0))
        at = {"epoch": (0.0, 1.0, 2.0), "at_least": (False,) * 3}
        return {"through": replace(variant.through, exposure=ends, **at)}

    text = text_of(changed(result, flat))
    assert "exposure is highest, 9.20 bits, at epoch 2, and not significantly lower from" in text
    assert "not significantly lower from epoch 1 on." in text


def test_what_was_not_measured_is_not_shown(result, run, text_of):
    names = ("through", "extracted", "extracted_each", "nodes", "nodes_each", "skew_normal")
    names += ("ranked_first", "controls", "twin", "cell")

    def bare(_, variant):
        value, _, _ = variant.exposure
        return dict.fromkeys(names) | {"exposure": (value, None, None), "repeats": (1, 4)}

    bare_result = changed(result, bare, table=None, trials=1, effects=None, by_exposure=None)
    rows = tuple(
        replace(row, difference=(row.difference[0], None, None), adjusted_p_value=None)
        for row in result.verdict.differences
    )
    bare_result = replace(bare_result, verdict=replace(result.verdict, differences=rows))
    assert keys_of(bare_result, run) == ["variants", "all-variants", "exposure", "front", "ledger"]
    text = text_of(bare_result)
    assert "Exposure of controls: not measured: the plan has no controls." in text
    assert "one seed; the difference" in text
    assert "Intervals are" not in text
    assert "1, 4" in text
    for name in ("Extracted", "Ranked first", "Twin"):
        assert f"\n{name}\n" not in text
    chart = variants_chart(bare_result.training)
    assert chart.x_label == "Variant, by its number in the table"


def test_a_run_without_results_says_so(result, run, text_of):
    empty = ExposureTrainingResult(
        **dict.fromkeys(("verdict", "training", "task", "scope"), Absent("cut"))
    )
    blocks = list(page(empty, run))
    assert blocks[0].outcome is None
    assert not any(isinstance(b, made_of.Tiles | made_of.Figure) for b in made_of.walk(blocks))
    assert "Exposure: not measured: cut." in text_of(empty, depth="show")
    assert "Exposure was not measured: cut." in text_of(empty)
    unjudged = replace(result, verdict=Absent("cut"))
    assert "of 0 variants" in text_of(unjudged)


def test_one_variant_alone_has_no_front(result, run, text_of):
    alone = first_only(result)
    assert "front" not in keys_of(alone, run)
    assert "lowest with" not in text_of(alone)
    tiles = next(b for b in page(alone, run) if isinstance(b, made_of.Tiles))
    assert len(tiles.tiles) == 3


def test_two_variants_have_a_sentence_and_no_chart(result, run, text_of):
    variants = result.training.variants[:2]
    labels = tuple(variant.label for variant in variants)
    two = changed(result, variants=variants, pareto=labels, effects=None)
    assert "front" not in keys_of(two, run)
    assert "2 of 2 variants are on the Pareto front of the means" in text_of(two, depth="show")


@pytest.mark.parametrize(
    ("validation", "exposure", "words"),
    [
        (0.05, 1.0, "No variant is significantly best: "),
        (0.001, 1.0, "“batch 8, units 8” predicts best. Its exposure does not differ"),
        (0.05, 0.1, "“batch 8, units 8” exposes least. Its bits on held-out text do not differ"),
        (0.001, 0.1, "“batch 8, units 8” predicts best and exposes least; its intervals"),
    ],
)
def test_a_variant_is_called_best_only_where_it_differs(
    result, text_of, validation, exposure, words
):
    """The first has the lowest means in both; the intervals say whether that is significant."""

    def near(number, _):
        bits, shown = 5.087 + 0.007 * number, 3.0 + 0.5 * number
        return {
            "validation_bits": (bits, bits - validation, bits + validation),
            "exposure": (shown, shown - exposure, shown + exposure),
        }

    best = changed(result, near, pareto=("batch 8, units 8",))
    assert words in text_of(best, depth="show")


def test_extraction_in_words(result, text_of):
    none = changed(result, lambda *_: {"extracted_each": (False,) * 3})
    assert "No canary was extracted from any model." in text_of(none)
    every = changed(result, lambda *_: {"extracted_each": (True,) * 3, "each": (9.0, 8.0, 9.5)})
    assert "Extracted: 15 of 15 canaries. The least exposed of them has 8.00 bits." in text_of(
        every
    )
    some = changed(
        result, lambda *_: {"extracted_each": (True, False, True), "each": (9.0, 6.0, 9.5)}
    )
    assert "9.00 bits, the most exposed of the others 6.00 bits." in text_of(some)


def test_estimates_in_words(result, text_of):
    off = changed(result, lambda *_: {"each": (5.0, 6.0, 1.0), "skew_normal": (4.5, 6.5, 1.0)})
    assert (
        "Of 10 canaries with more than two bits, the skew-normal estimate is too low for 5; its "
        "error is +0.00 bits on average, from -0.50 to +0.50."
    ) in text_of(off)
    small = changed(result, lambda *_: {"each": (0.5, 1.0, 1.5)})
    assert "No canary has more than two bits" in text_of(small)


def test_the_bands_have_searches_and_errors(result, run):
    tables = {b.key: b for b in made_of.walk(page(result, run)) if isinstance(b, made_of.Table)}
    bands = tables["bands"]
    assert sum(row.canaries for row in bands.rows) == 15
    shown = [[column.cell(row).main for column in bands.columns] for row in bands.rows]
    for row, cells in zip(bands.rows, shown, strict=True):
        assert cells[2] == f"{row.read_out} of {row.searched}"
    first = Band(
        low=9.97,
        high=9.97,
        canaries=3,
        searched=0,
        read_out=0,
        nodes=None,
        estimated=0,
        error=None,
    )
    assert band_text(first) == "ranked first, 9.97"
    assert [column.cell(first).main for column in bands.columns][3:5] == ["–", "–"]


def test_the_front_is_drawn_with_intervals_in_both_directions(result):
    dots = [dot for group in front_chart(result.training).dots for dot in group.dots]
    assert len(dots) == 5
    assert all(dot.left is not None and dot.right is not None for dot in dots)
    assert all(dot.low is not None and dot.high is not None for dot in dots)


def test_variants_of_similar_usefulness_have_an_axis_that_distinguishes_them(result):
    def alike(number, _):
        bits = 2.0 + 0.001 * number
        return {"validation_bits": (bits, bits - 0.05, bits + 0.05)}

    chart = front_chart(changed(result, alike).training)
    assert chart.x_digits > 3


def test_variants_are_drawn_against_how_often_they_were_planted(result):
    chart = variants_chart(result.training)
    assert chart.x_kind == "apart"
    assert chart.x_ticks == (4.0, 30.0)
    assert chart.lines == ()  # four variants planted equally often have one place
    variants = (result.training.variants[0], result.training.variants[-1])
    labels = tuple(variant.label for variant in variants)
    two = changed(result, variants=variants, pareto=labels).training
    assert len(variants_chart(two).lines) == 1


def test_uses_of_the_first_canary_are_marked_unless_they_are_many(result):
    exposure, costs = through_charts(result.training)
    first = result.training.variants[0].through
    assert exposure.seams == tuple(step / first.epoch_steps for step in first.uses)
    assert costs.seams == ()

    def often(_, variant):
        return {"through": replace(variant.through, uses=tuple(range(1, 130)))}

    assert through_charts(changed(result, often).training)[0].seams == ()


def test_dots_hold_every_canary(result):
    training = result.training
    for chart in (variants_chart(training), nodes_chart(training), estimate_chart(training)):
        assert sum(len(group.dots) for group in chart.dots) == 15


def test_labels_are_text_and_no_markup(result):
    label = "<script>alert(1)</script>"
    spiked = changed(
        result, lambda number, v: {"label": label if number == 0 else v.label}, pareto=(label,)
    )
    drawn = figure_of(front_chart(spiked.training), "front")
    assert "<script>" not in str(drawn.wide)


def test_numbers_in_print():
    assert share_text(Interval(0.5, None, None)).startswith("50")
    assert signed_text(Interval(-1.0, None, None)) == "−1.00"
    assert signed_text(Interval(-0.001, -1.0, 1.0)) == "+0.00 (−1.00 to +1.00)"
    assert signed_text(Interval(1.0, 0.5, 2.0, at_least=True)) == "+0.50 to +2.00"
    assert signed_text(Interval(1.0, None, None, at_least=True)) == "–"
    assert dataclasses.astuple(Interval(1.0, 0.5, 2.0)) == (1.0, 0.5, 2.0, False)
