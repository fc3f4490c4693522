"""A run about training choices: read whole, told in words, drawn, and refused where malformed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from remnant.errors import RecordError
from remnant.records import Record
from remnant.report import read_view, write_report
from remnant.report.run_view import NotMeasured
from remnant.report.text import detail_text, summary_text
from remnant.report.tiles import tiles_of
from remnant.report.training_figures import training_figures
from remnant.report.training_view import Interval, TrainingView
from remnant.report.training_words import (
    estimate_sentence,
    extraction_sentence,
    front_sentence,
    in_plain_words,
    method_sentence,
    share_text,
    signed_text,
    through_sentence,
    turning_sentence,
    what_was_found,
)


@pytest.fixture
def make(make_training):
    return make_training


def view_of(folder) -> TrainingView:
    view = read_view(Record.open(folder))
    assert isinstance(view, TrainingView)
    return view


def test_a_full_record_is_read_whole(make):
    view = view_of(make())
    found = view.training
    assert [one.label for one in found.variants] == [f"planted {n}" for n in (1, 4, 16, 64)]
    first = found.variants[0]
    assert first.exposure == Interval(3.0, 2.0, 4.0)
    assert first.cell == {"batch": "16", "units": "50"}
    assert first.read_out == (False, False, False, True, True)
    assert first.through.uses == (40, 140, 240, 340)
    assert first.through.epoch_steps == 100
    assert [one.value.value for one in view.differences] == [3.5, 11.2, 15.0]
    assert found.by_insertions
    heads, rows = found.table()
    assert heads == ("50", "100")
    assert [(name, [one.label for one in cells]) for name, cells in rows] == [
        ("16", ["planted 1", "planted 16"]),
        ("32", ["planted 4", "planted 64"]),
    ]


def test_the_words_tell_what_was_found(make):
    view = view_of(make())
    found = view.training
    assert "20 language models" in in_plain_words(view)
    assert "highest with “planted 64”" in what_was_found(found)
    assert "at most 1.50" in what_was_found(found)
    assert method_sentence(found).startswith("Every exposure is exact")
    assert "at most 9.97" in through_sentence(found)
    assert "best at epoch 2" in turning_sentence(found)
    assert "at epoch 3" in turning_sentence(found)
    assert "3 of 4 variants are on the Pareto front of the means" in front_sentence(found)
    assert extraction_sentence(found).startswith("8 of 20 canaries were read out")
    assert "puts 20 too low; its error is −0.25" in estimate_sentence(found)


def test_the_page_shows_every_variant_and_every_figure(make):
    page = write_report(make()).read_text(encoding="utf-8")
    assert "Exposure by training choices report" in page
    assert "Training choices change exposure" in page
    for name in ("variants", "front", "through", "costs", "nodes", "estimate"):
        assert f'id="{name}-wide-title"' in page
    assert len(re.findall('class="seam"', page)) == 2 * 4  # drawn for a wide and a narrow page
    assert "batch \\ units" in page
    assert "+15.00 (+14.00 to +16.00)" in page
    for n in (1, 4, 16, 64):
        assert f"planted {n}" in page


def test_the_page_has_each_field_on_its_own_and_canaries_by_exposure(make):
    page = write_report(make()).read_text(encoding="utf-8")
    row = page[page.index("batch: 32") :].split("</tr>")[0]
    assert "+3.65 (+2.65 to +4.65)" in row
    assert "0.008" in row
    first = page[page.index("0.00 to 4.00") :].split("</tr>")[0]
    assert "2 of 5" in first
    assert "1 234" in first.replace("\u202f", " ").replace("\xa0", " ")
    assert "−0.25 (−0.50 to +0.10)" in first
    assert "ranked first, 19.93" in page


def test_a_run_from_before_these_tables_has_a_page_without_them(make):
    def older(results):
        del results["training"]["effects"], results["training"]["by_exposure"]

    page = write_report(make(older)).read_text(encoding="utf-8")
    assert "Each choice on its own" not in page
    assert "Canaries by exposure" not in page


def test_what_is_known_as_at_least_only_is_told_so_everywhere(make):
    def cut(results):
        first = results["training"]["variants"][0]
        first.update(saturated=2, searches_ended=1)
        first["through"]["at_least"] = [False, False, False, True, True]
        results["verdict"]["differences"][0]["at_least"] = True
        results["training"]["effects"][0].update(at_least=True, along=["training.options.lr"])
        results["training"]["effects"][1]["difference_at_least"] = True

    folder = make(cut)
    view = view_of(folder)
    found = view.training
    assert "lowest with “planted 1”, ≥ 3.00" in what_was_found(found)
    assert [tile.value.split("\u202f")[0] for tile in tiles_of(view)][1] == "≥ 3.00"
    assert "planted 1   ≥ 3.00 (2.00 to 4.00)" in summary_text(view)
    assert "planted 4   6.50 (5.50 to 7.50)  +2.50 to +4.50, p" in summary_text(view)
    assert "planted 1, at least" in detail_text(view)
    assert "1 search was ended by the budget" in extraction_sentence(found)
    page = write_report(folder).read_text(encoding="utf-8")
    assert page.count("≥ 3.00") >= 5  # a tile, two tables, the looks and a figure's words
    assert "≥ 8.60" in page
    assert "<td>+2.65 to +4.65</td>" in page
    assert "With batch moves training.options.lr" in page


def test_a_peak_that_is_not_told_from_others_is_not_one(make):
    def flat(results):
        for one in results["training"]["variants"]:
            ends = [(1, 0, 2), (8, 6, 10), (9, 7, 11), (9.2, 7, 11), (9.1, 7, 11)]
            one["through"]["exposure"] = [list(map(float, row)) for row in ends]

    told = turning_sentence(view_of(make(flat)).training)
    assert "is highest, 9.20" in told
    assert told.endswith("at epoch 3, and from epoch 1 on it cannot be told from that.")


def test_the_terminal_has_a_line_and_a_bar_for_every_variant(make):
    view = view_of(make())
    text = summary_text(view)
    assert text.startswith("FINDING: Training choices change exposure. Planting 8 times instead")
    assert "planted 64  18.00 (17.00 to 19.00)  +15.00 (+14.00 to +16.00), p = 0.003" in text
    assert "Pareto front of the means: 'planted 64', 'planted 4', 'planted 1'" in text
    assert "units 100  16.10 (15.10 to 17.10)  +11.35 (+10.35 to +12.35), p = 0.008" in text
    assert len(detail_text(view).splitlines()) == 2 + 4 + 1
    assert [tile.value.split("\u202f")[0] for tile in tiles_of(view)] == [
        "18.00",
        "3.00",
        "3",
        "19.93",
    ]


def test_what_was_not_looked_at_is_not_shown(make):
    def bare(results):
        for one in results["training"]["variants"]:
            for name in ("through", "extracted", "skew_normal", "ranked_first", "controls", "cell"):
                one[name] = None
            one["exposure"][1:] = [None, None]
            one["exact_each"], one["saturated"] = [False] * 5, 2
            one["repeats"] = [1, 4]
        results["training"]["table"], results["training"]["trials"] = None, 1
        for row in results["verdict"]["differences"]:
            row |= {"difference": [row["difference"][0], None, None], "adjusted_p_value": None}

    folder = make(bare)
    view = view_of(folder)
    figures = training_figures(view)
    assert figures["through"] == []
    assert figures["nodes"] is figures["estimate"] is None
    assert not view.training.by_insertions
    assert "8 exposures are at least" in method_sentence(view.training)
    page = write_report(folder).read_text(encoding="utf-8")
    assert "Variant, by its number in the table" in page
    assert "Read out</th>" not in page
    assert "≥ 18.00" in page
    assert "p –" in summary_text(view)


def test_estimates_are_held_against_exact_ranks_alone(make):
    def mixed(results):
        results["training"]["variants"][0]["exact_each"] = [True, False, False, True, True]

    view = view_of(make(mixed))
    found = view.training
    assert [len(one.estimates) for one in found.variants] == [3, 5, 5, 5]
    assert "18 of 20 exposures are exact ranks" in method_sentence(found)


def test_a_run_without_results_says_so(make):
    folder = make(without=("training", "verdict"))
    view = view_of(folder)
    assert isinstance(view.training, NotMeasured)
    assert view.differences == ()
    assert "was not measured" in in_plain_words(view)
    assert tiles_of(view) == []
    assert detail_text(view) == ""
    assert "training choices  not measured" in summary_text(view)
    assert "not measured" in write_report(folder).read_text(encoding="utf-8")


def test_variants_of_like_usefulness_have_an_axis_that_tells_them_apart(make):
    def alike(results):
        for i, one in enumerate(results["training"]["variants"]):
            one["validation_bits"] = [2.0 + 0.001 * i + d for d in (0.0, -0.05, 0.05)]

    wide = training_figures(view_of(make(alike)))["front"].wide
    ticks = re.findall(r'class="tick middle"[^>]*>([^<]+)<', wide)
    assert len(ticks) > 3
    assert len(set(ticks)) == len(ticks)


@pytest.mark.parametrize(
    ("validation", "exposure", "words"),
    [
        (0.05, 1.0, "No variant is significantly best: "),
        (0.001, 1.0, "“planted 1” predicts best. Its exposure does not differ"),
        (0.05, 0.1, "“planted 1” exposes least. Its bits on held-out text do not differ"),
        (0.001, 0.1, "“planted 1” predicts best and exposes least; its intervals"),
    ],
)
def test_a_variant_is_called_best_only_where_it_differs(make, validation, exposure, words):
    """The first has the lowest means in both; the intervals say whether that is significant."""

    def near(results):
        for number, one in enumerate(results["training"]["variants"]):
            bits, reach = 5.087 + 0.007 * number, validation
            one["validation_bits"] = [bits, bits - reach, bits + reach]
            shown = 3.0 + 0.5 * number
            one["exposure"] = [shown, shown - exposure, shown + exposure]
        results["training"]["pareto"] = ["planted 1"]

    view = view_of(make(near))
    assert front_sentence(view.training).startswith(words)
    said = "no variant is significantly best" in summary_text(view)
    assert said == words.startswith("No variant")


def test_the_front_is_drawn_with_intervals_in_both_directions(make):
    def wide(results):
        for one in results["training"]["variants"]:
            bits = one["validation_bits"][0]
            one["validation_bits"] = [bits, bits - 0.5, bits + 0.5]

    figure = training_figures(view_of(make(wide)))["front"]
    lines = re.findall(r'<line[^>]*class="whisker[^>]*>', str(figure.wide))
    level = [line for line in lines if len(set(re.findall(r'y[12]="([^"]+)"', line))) == 1]
    assert len(level) == 4


def test_one_variant_alone_has_no_front(make):
    def alone(results):
        results["training"]["variants"][1:] = []
        results["training"]["pareto"] = ["planted 1"]
        results["verdict"]["differences"] = []

    view = view_of(make(alone))
    assert training_figures(view)["front"] is None
    assert "lowest" not in what_was_found(view.training)
    assert front_sentence(view.training) == "There is one variant, and no front."
    assert len(tiles_of(view)) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one.update(exposure=[1.0, 2.0]), "exposure is no value with two ends"),
        (lambda one: one.update(exposure=None), "exposure is missing, no list"),
        (lambda one: one.update(each=["much"]), r"each\[0\] is a str, no finite number"),
        (lambda one: one.update(skew_normal=[1.0]), "skew_normal has 1 entries for 5 each"),
        (lambda one: one.update(extracted_each=[1] * 5), "neither true nor false"),
        (lambda one: one.update(exact_each=[True]), "exact_each has 1 entries for 5 each"),
        (lambda one: one.update(cell=[1]), "cell is a list, no object"),
        (lambda one: one.update(cell={"batch": 1}), "cells without the table's fields"),
        (lambda one: one.update(nodes_each=[1.0, 2.0]), "2 entries for 5 canaries"),
        (lambda one: one.update(label="other"), "pareto names what is no variant"),
        (lambda one: one["through"].update(step=[0]), "entries for 1 step"),
    ],
)
def test_a_malformed_result_is_named(make, change, message):
    folder = make(lambda results: change(results["training"]["variants"][0]))
    with pytest.raises(RecordError, match=message):
        read_view(Record.open(folder))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found["effects"][1].update(difference=[1.0]), "no value with two ends"),
        (lambda found: found["effects"][0].update(cells="two"), "effects.0..cells is a str"),
        (lambda found: found["by_exposure"][0].update(read_out=-1), "by_exposure.0..read_out"),
        (lambda found: found.update(by_exposure=3), "by_exposure is an int, no list"),
    ],
)
def test_malformed_tables_are_named(make, change, message):
    folder = make(lambda results: change(results["training"]))
    with pytest.raises(RecordError, match=message):
        read_view(Record.open(folder))


def test_runs_are_pooled_by_exposure(make):
    folder = make()
    script = Path(__file__).parents[2] / "examples" / "pool_exposures.py"
    done = subprocess.run(
        [sys.executable, str(script), str(folder), str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[3] for row in rows] == ["10", "10", "10", "10"]
    assert " ".join(rows[0]) == "0 to 4.0 10 4 of 10 700 10 -0.25 (-0.25 to -0.25)"


def test_labels_are_escaped(make):
    def spiked(results):
        results["training"]["variants"][0]["label"] = "<script>alert(1)</script>"
        results["training"]["pareto"][-1] = "<script>alert(1)</script>"

    page = write_report(make(spiked)).read_text(encoding="utf-8")
    assert "<script>" not in page


def test_numbers_in_print():
    assert share_text(None) == "–"
    assert share_text(Interval(0.5, None, None)).startswith("50")
    assert signed_text(Interval(-1.0, None, None)) == "−1.00"
    assert signed_text(Interval(-0.001, -1.0, 1.0)) == "+0.00 (−1.00 to +1.00)"
