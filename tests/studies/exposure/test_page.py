"""The page of an exposure study, sentence by sentence and branch by branch."""

from __future__ import annotations

import dataclasses

import pytest

from remnant.canaries import read_canary_sets
from remnant.records.typed import plain, result_from
from remnant.report.blocks import Figure, Headline, Prose, Table, Tiles, walk
from remnant.studies.exposure.formats import exposure_cell, interval_text, mean_cell
from remnant.studies.exposure.page import (
    TITLE,
    control_warning,
    controls_sentence,
    extracted_remark,
    method_sentence,
    proof_sentence,
)
from remnant.studies.exposure.result import (
    Candidate,
    ExposureBits,
    ExposureByRepeats,
    ExposureResult,
    Extractions,
    Search,
)
from remnant.studies.registry import QUESTIONS, load

SATURATED = {
    "name": "canary 1", "trial": 0, "repeats": 4, "uses": 3, "bits": 9.97, "low": 8.09,
    "high": 9.5, "rank": None, "cost": 3.0, "saturated": True, "skew_normal_bits": None,
    "twin_bits": None,
}  # fmt: skip


def _plain(text: str) -> str:
    return text.replace("\u202f", " ")


def _search(*canaries: str | None, certified: bool = True, nodes: int = 812) -> Search:
    return Search(
        member="planted, trial 1",
        certified=certified,
        nodes=nodes,
        space=10**6,
        tolerance=1e-6,
        candidates=tuple(
            Candidate(bits=2.5, canary=name, repeats=16 if name else None) for name in canaries
        ),
    )


def _tile(blocks, name):
    return next(
        tile
        for block in blocks
        if isinstance(block, Tiles)
        for tile in block.tiles
        if tile.name == name
    )


def _tables(blocks) -> dict[str, Table]:
    return {block.key: block for block in walk(blocks) if isinstance(block, Table)}


def test_the_headline_rests_on_the_judged_canary(changed, page_of):
    """The canary planted 40 times has 9.97 bits and is not judged: the bar must not show it."""
    result = changed()
    first = page_of(result)[0]
    assert isinstance(first, Headline)
    assert (first.outcome, first.title) == (
        "PASS",
        "The judged canaries are no more exposed than allowed",
    )
    assert first.advice.startswith("No action is needed")
    reading = first.reading
    once = result.exposure.canaries[0]
    assert (reading.value, reading.limit, reading.low, reading.high) == (once.bits, 9.0, None, None)
    assert (reading.lowest, reading.highest) == (0.0, result.exposure.ceiling_bits)
    assert (reading.name, reading.n) == (
        "Highest exposure of the judged canaries",
        "1 canary, 1 training",
    )


def test_where_a_share_is_judged_the_headline_rests_on_it(changed, page_of):
    gate = {"share": 0.2, "judged": 2, "above": 1, "share_low": 0.025, "share_high": 0.975}
    reading = page_of(changed(verdict=gate))[0].reading
    assert (reading.name, reading.value, reading.limit) == (
        "Share of canaries at or above 9 bits",
        0.5,
        0.2,
    )
    assert (reading.low, reading.high, reading.n) == (0.025, 0.975, "2 canaries, 1 training")


def test_a_saturated_exposure_has_an_interval_on_the_first_screen(changed, page_of):
    exposure = {"canaries": [SATURATED], "controls": [], "method": "sampled"}
    reading = page_of(changed(exposure=exposure))[0].reading
    assert (reading.value, reading.low, reading.high) == (8.09, 8.09, 9.5)


@pytest.mark.parametrize(("outcome", "start"), [("FAIL", "Do not rel"), ("INCONCLUSIVE", "Do not")])
def test_every_outcome_says_what_to_do(changed, page_of, outcome, start):
    first = page_of(changed(verdict={"outcome": outcome}))[0]
    assert (first.outcome, first.advice[: len(start)]) == (outcome, start)


def test_without_a_verdict_there_is_a_reason_and_still_a_reading(changed, page_of):
    first = page_of(changed(verdict={"absent": "the run ended"}))[0]
    assert (first.outcome, first.sentence) == (None, "the run ended")
    assert (first.reading.name, first.reading.limit) == ("Highest exposure", None)


def test_what_was_done_and_found_in_plain_words(changed, page_of, all_text):
    result = changed(exposure={"template": "key {digits:3};\n"})
    text = all_text(page_of(result))
    assert (
        "2 canaries were planted in the training text, 1 to 40 times each. The secret in each was "
        "drawn at random from 1 000 possible ones. Exposure measures how likely a planted secret "
        "is to the model compared with all other possible ones: each bit halves the number of "
        "guesses that an attacker needs, and at 9.97 bits the secret is the first guess."
    ) in text
    assert "The canaries read key {digits:3};↵; only the parts in braces are secret." in text
    assert (
        "The most exposed canary, planted 40 times, has 9.97 bits: rank 1 of 1 000. The 4 controls"
    ) in text
    assert text.count("A search that knows only the template extracted 1 of 2 canaries.") == 1
    assert "In a twin of the model, trained on no canary, the same canaries have" in text


def test_the_tiles_say_what_the_terminal_says(changed, page_of):
    blocks = page_of(changed())
    tile = _tile(blocks, "Highest exposure")
    assert _plain(tile.value) == "9.97 bits"
    assert tile.remark == "of 2 canaries: canary 2, planted 40 times"
    assert _tile(blocks, "Maximum possible").remark == "rank 1 of 1\u202f000 secrets"
    never = _tile(blocks, "Never planted").remark
    assert never == "mean of 4 controls; chance gives 1.44, two bits is noise"
    extracted = _tile(blocks, "Extracted secrets")
    assert (extracted.value, extracted.remark, extracted.tone) == (
        *("1 of 2", "top 3 guesses, proven", "harm"),
    )


def test_one_canary_alone(changed, page_of, all_text):
    only = SATURATED | {"repeats": 1, "high": None, "cost": None}
    exposure = {"canaries": [only], "controls": [], "method": "sampled"}
    result = changed(exposure=exposure, extraction=None)
    blocks = page_of(result)
    text = all_text(blocks)
    assert "1 canary was planted in the training text, once. The secret" in text
    assert "The most exposed canary, planted once, has at least 8.09 bits. There are no con" in text
    assert "estimated from a random sample" in text
    table = _tables(blocks)["canaries"]
    cells = {column.name: column.cell(table.rows[0]) for column in table.shown()}
    assert (cells["Exposure"].main, cells["Exposure"].small) == ("at least 8.09", "from 8.09")
    assert cells["Cost"].main == "no probability"
    assert {"Rank of 1\u202f000", "Twin", "Extrapolated", "Trial"}.isdisjoint(cells)
    assert "Extraction: not measured: this run recorded none." in all_text(blocks, "summary")


def test_nothing_planted_and_nothing_measured(changed, page_of, all_text):
    text = all_text(page_of(changed(exposure={"canaries": []})))
    assert "No canary was planted; the template has 1 000 possible secrets." in text
    nothing = {name: {"absent": "out of memory"} for name in ("exposure", "repeats", "costs")}
    blocks = page_of(changed(**nothing))
    assert blocks[0].reading is None
    assert not [block for block in walk(blocks) if isinstance(block, Figure)]
    assert "Exposure: not measured: out of memory." in all_text(blocks, "summary")
    assert "The exposure of the canaries was not measured: out of memory." in all_text(blocks)
    tile = _tile(blocks, "Extracted secrets")
    assert (tile.value, tile.tone) == ("1", "harm")


def test_a_page_of_nothing_at_all_can_be_made(page_of, all_text):
    empty = result_from({}, ExposureResult, where="x")
    text = all_text(page_of(empty))
    assert text.count("this run recorded none") >= 6


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("source", "the model was given the whole source sentence. So it was for the controls"),
        ("beginning", "the model was given the source sentence up to the secret."),
    ],
)
def test_a_translator_was_given_something(changed, page_of, all_text, given, words):
    text = all_text(page_of(changed(exposure={"given": given})))
    assert words in text
    assert "planted in the training pairs of a translator" in text


def test_translation_shares_result_and_page():
    text, pairs = (QUESTIONS[name] for name in ("exposure", "translation-exposure"))
    assert (text.result, text.page, text.run) == (pairs.result, pairs.page, pairs.run)
    assert (load(text.heading), load(pairs.heading)) == (TITLE, "Exposure in translation")


@pytest.mark.parametrize(
    ("search", "words"),
    [
        (_search("a"), "Proven: no likelier secret exists among 1 000 000 (812 nodes searched)."),
        (_search("a", nodes=1), "Proven: no likelier secret exists among 1 000 000 (1 node search"),
        (
            _search(certified=False, nodes=2_000_000),
            "Not proven: a budget ended the search after 2 000 000 nodes; likelier secrets may "
            "exist among 1 000 000.",
        ),
    ],
)
def test_a_search_says_what_is_proven(search, words):
    assert _plain(proof_sentence(search)).startswith(words)


@pytest.mark.parametrize(
    ("canaries", "words"),
    [
        (("canary 3", None), "The likeliest secret is canary 3, planted 16 times."),
        ((None, "canary 3"), "The likeliest secret is not a canary, but canary 3, planted 16 "),
        ((None, None), "None of the 2 likeliest secrets is a canary."),
        ((None,), "The likeliest secret is not a canary."),
        ((), "The search returned no secret."),
    ],
)
def test_what_was_extracted(changed, page_of, all_text, canaries, words):
    extraction = plain(Extractions(searches=(_search(*canaries),)))
    assert words in all_text(page_of(changed(extraction=extraction)))


@pytest.mark.parametrize(
    ("guesses", "certified", "remark"),
    [
        (3, (True,), "top 3 guesses, proven"),
        (1, (True,), "top 1 guess, proven"),
        (None, (True,), "proven"),
        (3, (False,), "top 3 guesses, not proven: a budget ended the search"),
        (None, (True, False), "in each of 2 models, 1 of 2 searches proven"),
    ],
)
def test_how_a_search_was_made(guesses, certified, remark):
    searches = tuple(
        dataclasses.replace(_search("canary 3", certified=proven), asked=guesses)
        for proven in certified
    )
    assert extracted_remark(Extractions(searches=searches)) == remark


def test_nothing_extracted_is_neutral_and_a_twin_does_not_count(changed, page_of, all_text):
    twin = dataclasses.replace(_search("canary 1"), member="twin, trial 1")
    extraction = plain(Extractions(searches=(_search(None), twin)))
    blocks = page_of(changed(extraction=extraction))
    tile = _tile(blocks, "Extracted secrets")
    assert (tile.value, tile.tone) == ("0 of 2", "")
    assert "A search for the likeliest secrets extracted no canary." in all_text(blocks)


@pytest.mark.parametrize(
    ("p_value", "tone", "words"),
    [
        (0.03, "notice", "The fit is doubtful: the costs do not follow the skew-normal law"),
        (0.1, "notice", "The fit is doubtful"),
        (0.11, "note", "The costs are consistent with the skew-normal law (Kolmogorov–Smirnov p ="),
        (None, "note", "The fit of the skew-normal law was not tested."),
    ],
)
def test_a_doubtful_fit_is_a_notice(changed, page_of, p_value, tone, words):
    law = {"shape": -1.6, "location": 23.4, "scale": 2.6}
    blocks = page_of(changed(costs={"skew_normal": law, "ks_pvalue": p_value}))
    (fit,) = [
        block for block in walk(blocks) if isinstance(block, Prose) and block.text.startswith(words)
    ]
    assert fit.tone == tone


def test_no_fit_has_no_sentence(changed, page_of, all_text):
    text = all_text(page_of(changed(costs={"skew_normal": None, "ks_pvalue": None})))
    assert "skew-normal" not in text.lower()


def test_the_method_and_its_reason(changed):
    exposure = changed(
        exposure={
            "space": 10**6,
            "reason": "exact: the walk was expected to take about 1.1e+05 nodes of 2000000 allowed",
            "tolerance": 2e-6,
        }
    ).exposure
    assert _plain(method_sentence(exposure)) == (
        "The ranks are exact: each of the 1 000 000 secrets was compared, or excluded because its "
        "beginning alone already costs more. Reason for this method: the walk was expected to "
        "take about 1.1e+05 nodes of 2000000 allowed. Costs within 2 × 10⁻⁶ bits count as equal."
    )


def test_a_ceiling_out_of_sight_is_named_under_the_chart(changed, page_of):
    def figure(bits):
        blocks = page_of(changed(exposure={"ceiling_bits": bits}))
        return next(block for block in walk(blocks) if isinstance(block, Figure))

    assert figure(40.0).caption == ""
    assert _plain(figure(103.4).caption) == "The ceiling, 103.40 bits, is far above this chart."


def test_canaries_that_the_chart_cannot_name_are_counted(changed, page_of, all_text):
    marked = [{"name": f"c{i}", "repeats": 1, "cost": float(i), "bits": 1.0} for i in range(16)]
    marked.append({"name": "gone", "repeats": 1, "cost": None, "bits": 0.0})
    text = all_text(page_of(changed(costs={"marked": marked})))
    assert "The most exposed canaries are named; 2 more are in the table above." in text
    assert "since the model gives them no probability: gone." in text


def levels(p_value, control_pvalue=None) -> ExposureByRepeats:
    return ExposureByRepeats(
        repeats=(0, 4),
        n=(16, 3),
        mean_bits=(3.0, 9.0),
        twin_mean_bits=(None, None),
        pooled_pvalue=(p_value, 1e-9),
        control_pvalue=(None, control_pvalue),
    )


def test_controls_beyond_chance_are_a_warning_in_the_terminal_too():
    (warning,) = control_warning(levels(1e-5, 0.02))
    assert (warning.tone, warning.depth) == ("notice", "summary")
    assert "more exposed than chance explains (p < 0.001)" in _plain(warning.text)
    assert warning.text.endswith("The p-values of canaries are therefore against the controls.")
    (warning,) = control_warning(levels(0.01))
    assert warning.text.endswith("so read the exposures with caution.")
    (calm,) = control_warning(levels(0.5))
    assert (calm.tone, calm.text) == ("plain", "Test of the controls against chance: p = 0.50.")
    assert list(control_warning(levels(None))) == []


def test_p_values_are_against_controls_that_are_exposed(changed, page_of):
    blocks = page_of(dataclasses.replace(changed(), repeats=levels(1e-5, 0.02)))
    table = _tables(blocks)["levels"]
    assert "p-values of canaries against the controls" in table.caption
    shown = [_plain(table.shown()[-1].cell(row).main) for row in table.rows]
    assert shown == ["< 0.001", "0.020"]


def test_one_control_is_not_several(changed):
    exposure = changed().exposure
    alone = dataclasses.replace(exposure, controls=exposure.controls[:1])
    assert controls_sentence(alone).startswith(
        "The control, drawn the same way and never planted, has "
    )


def test_exposures_and_intervals_in_print():
    assert exposure_cell(ExposureBits(3.5, 3.0, 4.25)).small == "3.00 to 4.25"
    assert exposure_cell(ExposureBits(3.5)).small == ""
    assert interval_text(ExposureBits(3.5, 3.5, 3.5)) == "exact"
    assert mean_cell(ExposureBits(3.5, 3.5, 3.5)).small == "3.50 to 3.50"
    assert mean_cell(ExposureBits(3.5, at_least=True)).main == "at least 3.50"


def test_a_saturated_exposure_is_shown_in_one_way_everywhere(changed, page_of, all_text):
    level = {
        "repeats": [0, 4], "n": [1, 1], "mean_bits": [9.97, 9.97], "mean_at_least": [8.09, 8.09],
        "median_bits": [8.09, 8.09],
        "mean_low": [None, None], "mean_high": [None, None], "twin_mean_bits": [None, None],
        "pooled_pvalue": [None, None], "control_pvalue": [None, None],
    }  # fmt: skip
    marked = {"name": "canary 1", "repeats": 4, "cost": 3.0, "bits": 9.97, "at_least": 8.09}
    control = SATURATED | {"name": "control 1", "repeats": 0}
    result = changed(
        exposure={
            "canaries": [SATURATED],
            "controls": [control],
            "method": "sampled",
            "ceiling_bits": 10.5,
        },
        repeats=level,
        costs={"marked": [marked]},
        verdict=None,
    )
    blocks = page_of(result)
    for text in (all_text(blocks), all_text(blocks, "summary"), all_text(blocks, "show")):
        assert "at least 8.09" in text
        assert "9.97" not in text
        assert "≥" not in text
    assert all_text(blocks).count("at least 8.09") > 8
    levels = _tables(blocks)["levels"]
    assert [column.cell(levels.rows[1]).main for column in levels.columns[2:4]] == [
        *("at least 8.09", "at least 8.09")
    ]
    assert [column.name for column in levels.columns[2:4]] == ["Mean", "Median"]
    assert "8.09 to 9.50" in all_text(blocks)


def test_many_canaries_are_folded_and_trials_have_a_column(changed, page_of):
    rows = [SATURATED | {"name": f"canary {i}", "trial": i % 2} for i in range(20)]
    table = _tables(page_of(changed(exposure={"canaries": rows, "controls": []})))["canaries"]
    assert table.fold == "Every canary and control (20)"
    assert [column.name for column in table.shown()][-1] == "Trial"
    assert {column.cell(row).main for row in table.rows for column in table.shown()[-1:]} == {
        "1",
        "2",
    }


def test_a_useless_model_is_a_warning_in_the_terminal(changed, page_of, all_text):
    text = all_text(page_of(changed(task={"validation_bits": 16.01})), "summary")
    assert "no use as a language model: 16.01 bits a character" in text


def test_the_gate_is_shown_in_numbers(changed, page_of, all_text):
    text = all_text(page_of(changed()))
    for line in ("canaries judged\n1", "share allowed\nnone", "positive control\nplanted 40 times"):
        assert line in text


def test_tables_and_figures_have_keys_of_their_own(changed, page_of):
    blocks = list(walk(page_of(changed())))
    for kind in (Table, Figure):
        keys = [block.key for block in blocks if isinstance(block, kind)]
        assert len(set(keys)) == len(keys) > 1


def test_no_secret_is_on_the_page(changed, page_of, all_text, exact_folder):
    (drawn,) = read_canary_sets(exact_folder / "canaries.jsonl")
    text = all_text(page_of(changed()))
    for canary in (*drawn.canaries, *drawn.controls):
        assert canary.text not in text
