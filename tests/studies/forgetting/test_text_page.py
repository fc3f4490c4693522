"""The page of a study of forgetting of text: its order, and the sentences of every branch."""

from __future__ import annotations

import dataclasses

import pytest

from remnant.records import Record, gate_row
from remnant.records.typed import Absent, read_result
from remnant.report.blocks import (
    Figure,
    Headline,
    Missing,
    Prose,
    Section,
    Table,
    Terms,
    Tiles,
    walk,
)
from remnant.studies.forgetting.sequence_page import (
    TITLE,
    caption,
    control_sentence,
    page,
    saturated_sentence,
    what_was_done,
    what_was_found,
)
from remnant.studies.forgetting.sequence_result import (
    ExposureCurveResult,
    SafeAfter,
    TextForgettingResult,
)
from remnant.studies.shared.pages import read_run


def plain(text):
    return text.replace("\u202f", " ")


def blocks_of(record):
    return tuple(page(read_result(record, TextForgettingResult), read_run(record)))


def exposed(value, lags=(0.0, 10.0, 200.0), **changes):
    """A curve with intervals of half a bit on each side, chance at 1.43."""
    fields = {
        "chance": 1.43,
        "confidence": 0.95,
        "method": "Student t over 3 trials",
        "trials": 3,
        "n_canaries": 32,
        "n_references": 300,
        "ceiling": 8.23,
        "low": tuple(bits - 0.5 for bits in value),
        "high": tuple(bits + 0.5 for bits in value),
        "saturated": (0.0,) * len(lags),
        "safe_after": SafeAfter(lag=200.0, reason="From lag 200 on all is at or under 3."),
        **changes,
    }
    return ExposureCurveResult(lags=lags, value=value, **fields)


def test_the_page_has_the_same_order_as_all_pages(text_run):
    blocks = blocks_of(Record.open(text_run))
    assert TITLE == "Forgetting of text"
    assert [type(block) for block in blocks[:2]] == [Headline, Tiles]
    assert [block.title for block in blocks if isinstance(block, Section)] == [
        "In plain words",
        "How exposure falls",
        "Controls",
        "Is it erased, or only undetected?",
        "Canaries seen more or less often",
        "The same study, varied",
        "Distinguishing planted from never-planted sequences",
        "What accuracy and loss show",
        "What was tested, and what was not",
        "How to read this",
        "When the canaries were used",
        "What was run",
    ]
    for kind in (Table, Figure):
        keys = [block.key for block in walk(blocks) if isinstance(block, kind)]
        assert len(keys) == len(set(keys))


def test_the_headline_has_a_number_beside_its_limit(text_run):
    headline, tiles = blocks_of(Record.open(text_run))[:2]
    curve = Record.open(text_run).results()["curve_exposure"]
    reading = headline.reading
    assert (reading.value, reading.high) == (curve["value"][-1], curve["high"][-1])
    assert (reading.limit, reading.lowest) == (3.0, 0.0)
    assert reading.highest == curve["ceiling"]
    assert reading.n == "3 trainings, 12 canaries each"
    assert [tile.name for tile in tiles.tiles] == [
        "Mean exposure right after planting",
        "Highest mean exposure",
        "Mean exposure after 30 steps",
        "A/A twins after 30 steps",
        "Limit",
    ]


@pytest.mark.parametrize(
    ("outcome", "title", "advice"),
    [
        ("PASS", "No more exposed than allowed at the last step watched", "used more recently"),
        ("FAIL", "Still more exposed than allowed", "Protect this text"),
        ("INCONCLUSIVE", "Not enough evidence to decide", "Run the study again"),
    ],
)
def test_each_outcome_says_what_to_do(changed, text_run, outcome, title, advice):
    row = gate_row(outcome=outcome, sentence="A sentence.", claim="Claimed.", limit=3.0, lag=30)
    headline = blocks_of(changed(text_run, {"verdict": row}))[0]
    assert (headline.outcome, headline.title) == (outcome, title)
    assert advice in headline.advice


def test_the_tables_name_what_they_show(text_run):
    tables = {b.key: b for b in walk(blocks_of(Record.open(text_run))) if isinstance(b, Table)}
    assert [column.name for column in tables["lags"].columns] == [
        *("Lag", "Mean", "Low", "High", "Median", "A/A twins")
    ]
    curve = Record.open(text_run).results()["curve_exposure"]
    median = tables["lags"].columns[4]
    assert [median.of(row) for row in tables["lags"].rows] == curve["median"]
    calibrations = tables["calibrations"]
    assert [column.name for column in calibrations.columns] == [
        *("Calibration", "Each cost is taken", "Mean at lag 0", "Median at lag 0"),
        *("Mean at lag 30", "Median at lag 30"),
    ]
    assert [row.name for row in calibrations.rows] == ["twins", "none", "influence"]
    assert tables["levels"].caption == "Steps until exposure falls to a level"
    assert [column.name for column in tables["uses"].columns] == [
        *("Canaries", "At the start", "At the end")
    ]
    assert "At the start" in [column.name for column in tables["compare"].columns]


def test_a_limit_beyond_the_references_is_on_the_scale(changed, text_run):
    row = gate_row(outcome="PASS", sentence="A sentence.", claim="Claimed.", limit=9.0, lag=30)
    assert blocks_of(changed(text_run, {"verdict": row}))[0].reading.highest == 9.0


def test_a_run_that_measured_nothing_says_so(changed, text_run, page_text):
    names = set(Record.open(text_run).results()) - {"curve_exposure"}
    record = changed(text_run, absent={"curve_exposure": "no time."}, without=names)
    blocks = blocks_of(record)
    text = page_text(blocks)
    assert blocks[0].outcome is None
    assert not any(isinstance(block, Tiles | Figure) for block in walk(blocks))
    for words in (
        "No verdict",
        "How exposed they are was not measured: no time.",
        "Exposure: not measured: no time.",
        "A/A twins (negative control): not measured: this run recorded none.",
        "Attack success: not measured: this run recorded none.",
        "Accuracy and loss on the canaries: not measured: this run recorded none.",
        "its exposure is 1.44 bits on average",
        "in 95 % of the cases",
    ):
        assert words in text, words
    brief = page_text(blocks, "summary")
    assert "Exposure: not measured: no time." in brief
    assert "A/A twins (negative control): not measured" in brief


def test_variants_without_a_curve_of_the_study_keep_their_chance(changed, text_run):
    record = changed(text_run, absent={"curve_exposure": "no time"})
    figures = [block for block in walk(blocks_of(record)) if isinstance(block, Figure)]
    compared = next(figure for figure in figures if figure.key == "compare")
    assert compared.chart.y_label == "Mean exposure in bits"
    assert len(compared.chart.rules) == 1


def test_what_was_done_names_the_references_and_the_calibration():
    stored = exposed((2.0, 4.0, 2.0))
    twins = what_was_done(stored, {"attack": {"calibration": "twins"}})
    assert "32 planted sequences were ranked among 300 references" in twins
    assert "chance gives 1.43 bits" in plain(twins)
    assert "the twins of the other trials, which never saw a canary" in twins
    for name in ("influence", "twin"):  # the second in records of version 0.2
        influence = what_was_done(stored, {"attack": {"calibration": name}})
        assert "the model’s own twin, which never saw the canaries" in influence
        assert "No attacker has this twin" in influence
    others = what_was_done(stored, {"attack": {"calibration": "references"}})
    assert "the mean of what reference models" in others
    assert "subtracted" not in what_was_done(stored, {"attack": {"calibration": "none"}})
    assert "subtracted" not in what_was_done(stored, {})
    assert what_was_done(Absent("no time"), {}).endswith("was not measured: no time.")


def test_a_peak_on_the_way_is_named():
    sentence = plain(what_was_found(exposed((2.43, 4.43, 1.88))))
    assert sentence == (
        "Right after planting the mean exposure was 2.43 bits; it was highest after 10 steps, with "
        "4.43 bits; after 200 steps it was 1.88 bits (95 % interval 1.38 to 2.38). Exposure need "
        "not be highest at the beginning: look at the whole curve. From lag 200 on all is at or "
        "under 3."
    )


def test_a_curve_that_only_falls_has_no_peak_on_the_way():
    falling = exposed((4.0, 3.0), lags=(5.0, 50.0), low=None, high=None)
    sentence = plain(what_was_found(falling))
    assert sentence.startswith(
        "After 5 steps the mean exposure was 4.00 bits; after 50 steps it was 3.00 bits. From lag"
    )


def test_controls_at_chance_away_from_it_and_absent():
    at_chance = control_sentence(exposed((1.4, 1.5, 1.4)))
    assert at_chance.endswith("there they are no more exposed than by chance.")
    away = control_sentence(exposed((4.0, 1.5, 4.0)))
    assert "includes chance at only 1 of 3 lags, so read the curve with caution" in away
    assert control_sentence(Absent("none")) == "There is no negative control: none."


def test_a_control_off_chance_is_a_notice(changed, text_run):
    row = Record.open(text_run).results()["curve_exposure_aa"]
    leaky = row | {"value": [4.0] * 3, "low": [3.0] * 3, "high": [5.0] * 3}
    blocks = blocks_of(changed(text_run, {"curve_exposure_aa": leaky}))
    notices = [b.text for b in walk(blocks) if isinstance(b, Prose) and b.tone == "notice"]
    assert ["only 0 of 3 lags" in notice for notice in notices] == [True]


def test_saturated_canaries_are_a_lower_bound():
    assert saturated_sentence(exposed((2.0, 4.0, 2.0))) == ""
    sentence = plain(saturated_sentence(exposed((2.0, 4.0, 2.0), saturated=(0.0, 0.2, 0.1))))
    assert sentence == (
        "At most 20.0 % of the canaries at a lag were cheaper than every reference (10.0 % at the "
        "last lag): each counts as 8.23 bits, which is a lower bound."
    )


def test_the_caption_says_what_the_curve_rests_on():
    assert plain(caption(exposed((2.0, 4.0, 2.0)))) == (
        "Bands: 95 % intervals. 3 trials; 32 canaries and 300 references each; at most 8.23 bits "
        "can be shown; Student t over 3 trials."
    )
    lonely = exposed((2.0, 4.0, 2.0), trials=1, method=None, confidence=None)
    assert plain(caption(lonely)).startswith("1 trial; 32 canaries")
    unknown = dataclasses.replace(lonely, trials=None)
    assert caption(unknown).startswith("32 canaries")


def test_a_model_worse_than_guessing_is_a_warning(changed, text_run, page_text):
    row = Record.open(text_run).results()["task"] | {"validation_bits": 9.5, "uniform_bits": 6.0}
    text = page_text(blocks_of(changed(text_run, {"task": row})), "summary")
    assert "Warning: no use as a language model: 9.50 bits a character" in text


def test_the_terms_take_their_numbers_from_the_curve(text_run):
    blocks = walk(blocks_of(Record.open(text_run)))
    terms = dict(next(block for block in blocks if isinstance(block, Terms)).entries)
    chance = Record.open(text_run).results()["curve_exposure"]["chance"]
    assert f"its exposure is {chance:.2f} bits on average" in terms["Exposure"]
    assert "two bits are noise" in terms["Exposure"]


def test_what_was_not_compared_has_no_section(changed, text_run):
    record = changed(text_run, absent={"compare": "nothing", "by_uses": "all alike"})
    titles = [block.title for block in blocks_of(record) if isinstance(block, Section)]
    assert "The same study, varied" not in titles
    assert "Canaries seen more or less often" not in titles
    assert not any(
        isinstance(block, Missing) and block.what == "Difference"
        for block in walk(blocks_of(record))
    )
