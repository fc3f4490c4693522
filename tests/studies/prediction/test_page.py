"""The page of a prediction run says what was done, and no more than was measured."""

from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree

import pytest

from remnant.records import Record
from remnant.records.typed import Absent
from remnant.report.blocks import (
    Facts,
    Figure,
    Headline,
    Missing,
    Prose,
    Section,
    Table,
    Terms,
    Tiles,
    row_value,
    walk,
)
from remnant.report.charts.figure import Size, figure_of
from remnant.report.numerals import epoch_text, epochs_text
from remnant.studies.prediction.charts import (
    layer_chart,
    loss_chart,
    roc_chart,
    scatter_chart,
    stroke_of,
    threshold_chart,
    time_chart,
    tone_of,
)
from remnant.studies.prediction.page import TEXT_TITLE, TITLE, headline_reading, page
from remnant.studies.prediction.result import PREDICTORS, ListCheck
from remnant.studies.prediction.sentences import (
    agreement_sentence,
    base_rate_sentence,
    best_sentence,
    between_text,
    check_sentence,
    convention_sentence,
    default_sentence,
    evidence_sentence,
    false_alarm_sentence,
    flip_sentence,
    in_plain_words,
    memorised_sentence,
    moment_sentence,
    needs_of,
    others_text,
    protect_sentence,
    reading_sentences,
    signed_text,
    stated_sentences,
    stop_text,
    threshold_sentence,
    threshold_text,
    time_sentence,
)
from remnant.studies.shared.estimates import Estimate, estimate_text, rate_text
from remnant.studies.shared.pages import read_run

SECTIONS = (
    "In plain words",
    "How good each predictor is",
    "Which samples to protect",
    "When to look",
    "Where to look, and what counts as memorised",
    "Is the truth stable?",
    "What was tested, and what was not",
    "How to read this",
    "What was run",
)
CHECK = ListCheck(
    memorised=61,
    missed=7,
    rate=Estimate(0.1148, 0.0474, 0.2222),
    held=True,
    chance=0.4,
    refuted=False,
    model=6,
)


def _plain(text):
    return text.replace("\u202f", " ")


@pytest.fixture
def run(small_run):
    return read_run(Record.open(small_run))


@pytest.fixture
def blocks(run):
    """The blocks of a result's page, those within others too."""
    return lambda result: list(walk(page(result, run)))


@pytest.fixture
def comparison(read):
    """How well the predictors did, with the AUC of the first one and other fields set."""

    def make(auc=None, **changes):
        prediction = read().prediction
        rows = list(prediction.quality)
        if auc is not None:
            rows[0] = dataclasses.replace(rows[0], auc=Estimate(*auc))
        return dataclasses.replace(prediction, **{"quality": tuple(rows)} | changes)

    return make


@pytest.fixture
def protect(read):
    """The list with fields set."""
    return lambda **changes: dataclasses.replace(read().protect, **{"stated": 0.187} | changes)


@pytest.fixture
def truth(read):
    """What was memorised, with fields set."""
    return lambda **changes: dataclasses.replace(read().truth, **changes)


def _tiles(found):
    return {
        tile.name: (_plain(tile.value), _plain(tile.remark))
        for block in found
        if isinstance(block, Tiles)
        for tile in block.tiles
    }


def test_a_full_page_has_every_section_in_its_order(read, blocks):
    found = blocks(read())
    assert isinstance(found[0], Headline)
    assert isinstance(found[1], Tiles)
    assert tuple(block.title for block in found if isinstance(block, Section)) == SECTIONS
    assert isinstance(found[-1], Facts)
    assert TITLE == "Prediction of memorisation"
    assert TEXT_TITLE == "Prediction of memorisation of text"


def test_keys_are_unique_and_every_table_has_rows(read, blocks):
    found = blocks(read())
    for kind in (Table, Figure):
        keys = [block.key for block in found if isinstance(block, kind)]
        assert len(keys) == len(set(keys))
    assert [block.key for block in found if isinstance(block, Figure)] == [
        *("roc", "loss", "by-time", "by-threshold", "scatter")
    ]
    tables = {block.key: block for block in found if isinstance(block, Table)}
    assert {key: len(table.rows) for key, table in tables.items()} == {
        "predictors": 6,
        "riskiest": 25,
        "moments": 24,
        "layers": 2,
        "thresholds": 2,
        "agreement": 3,
        "kinds": 3,
        "flagged": 3,
    }
    assert tables["moments"].fold == "Every moment (24 rows)"


def test_a_row_of_the_first_table_has_every_number(read, blocks):
    result = read()
    (table,) = (b for b in blocks(result) if isinstance(b, Table) and b.key == "predictors")
    first = result.prediction.first
    name, auc, fpr, precision, tpr_at, fpr_at, others = (
        column.cell(first) for column in table.shown()
    )
    assert (name.main, name.small) == ("PSMI", "one model, early")
    assert (auc.main, auc.small, auc.strong) == (
        f"{first.auc.value:.3f}",
        f"{first.auc.low:.3f} to {first.auc.high:.3f}",
        True,
    )
    for cell, rate in (
        (fpr, first.fpr_at_tpr),
        (precision, first.precision_at_k),
        (tpr_at, first.default_tpr),
        (fpr_at, first.default_fpr),
    ):
        assert _plain(f"{cell.main} ({cell.small})") == _plain(rate_text(rate))
    assert others.main == f"{min(first.others):.3f} to {max(first.others):.3f}"
    loss = [column.cell(result.prediction.at_stop[1]).main for column in table.shown()]
    assert loss[4:6] == ["–", "–"], "the loss has no threshold of its own"
    bar = table.bar
    ends = (row_value(first, end) for end in (bar.value, bar.low, bar.high))
    assert Estimate(*ends) == first.auc
    assert (bar.mark, bar.show(0.5)) == (("guessing", 0.5), "0.500")


def test_columns_that_hold_nothing_are_left_out(read, blocks, stored):
    rows = stored["prediction"]["quality"]
    rows = [row | {"others": [], "default_tpr": None, "default_fpr": None} for row in rows]
    found = blocks(read(prediction={"quality": rows}))
    (table,) = (b for b in found if isinstance(b, Table) and b.key == "predictors")
    assert len(table.shown()) == 4


def test_what_a_terminal_prints_is_of_depth_summary(read, blocks):
    found = blocks(read())
    printed = [b for b in found if getattr(b, "depth", "page") != "page"]
    assert [type(block) for block in printed] == [Tiles, Table]
    table = printed[1]
    assert (table.key, table.depth) == ("predictors", "summary")
    heads = [_plain(column.name) for column in table.columns if column.depth == "summary"]
    assert heads == ["Predictor", "AUC", "FPR at TPR 75 %"]
    nothing = {"absent": "no time."}
    found = blocks(read(prediction=nothing, protect=nothing, truth=nothing, verdict=None))
    printed = [b for b in found if getattr(b, "depth", "page") != "page"]
    assert printed == [
        Missing("Prediction", "no time", depth="summary"),
        Missing("Protect list", "no time", depth="summary"),
    ]


def test_the_tiles_hold_what_matters_most(comparison, protect, truth, read, blocks):
    stop = dataclasses.replace(
        read().prediction.stop, epoch=6.0, epochs=30.0, dropped=0.953, reached=True
    )
    result = dataclasses.replace(
        read(),
        prediction=comparison((0.9, 0.85, 0.94), stop=stop),
        truth=truth(memorised_share=0.064, flip_rate=Estimate(0.081, 0.062, 0.104), models=24),
        protect=protect(listed=77, n=499, share=0.155, check=CHECK),
    )
    assert _tiles(blocks(result)) == {
        "Known after": ("6 of 30", "epochs; median loss down by 95.3 %"),
        "Memorised in the end": ("6.4 %", "of 120 training samples"),
        "Two models disagree on": (
            "8.1 %",
            "of the samples that both were trained on; 6.2 % to 10.4 %, 24 models",
        ),
        "AUC of PSMI": ("0.900", "0.850 to 0.940; guessing gives 0.5"),
        "Protect": (
            "15.5 %",
            "77 of 499 samples; misses at most 18.7 % of the memorised ones, at 90 % confidence",
        ),
        "Missed on an independent run": ("11.5 %", "7 of 61; 4.7 % to 22.2 %; held"),
    }
    unchecked = dataclasses.replace(result, protect=protect(check=None))
    assert _tiles(blocks(unchecked))["Missed on an independent run"] == (
        *("not checked", "no run was left"),
    )
    never = dataclasses.replace(stop, reached=False, dropped=0.937)
    result = dataclasses.replace(result, prediction=comparison(stop=never))
    assert _tiles(blocks(result))["Known after"][1] == (
        "epochs; median loss down by 93.7 %; 95 % was never reached"
    )


def test_the_headline_rests_on_the_check_or_on_the_auc(read, protect):
    result = dataclasses.replace(read(), protect=protect(check=CHECK))
    reading = headline_reading(result)
    assert (reading.value, reading.low, reading.high) == CHECK.rate
    assert (reading.limit, reading.lowest, reading.highest) == (None, 0.0, 1.0)
    assert (reading.n, _plain(reading.show(reading.value))) == ("61 memorised samples", "11.5 %")
    first = result.prediction.first
    for unchecked in (protect(check=None), Absent("no time")):
        reading = headline_reading(dataclasses.replace(result, protect=unchecked))
        assert (reading.value, reading.low, reading.high) == first.auc
        assert reading.name == "AUC of PSMI"
        assert reading.n == f"{first.n_memorised} memorised samples, {first.n_others} others"
    nothing = Absent("no time")
    assert (
        headline_reading(dataclasses.replace(result, protect=nothing, prediction=nothing)) is None
    )


def test_an_empty_record_is_shown_as_not_measured(read, blocks, text_of):
    result = read(
        verdict=None,
        prediction={"absent": "no time."},
        protect={"absent": "nothing was memorised"},
        truth=None,
        task=None,
        scope=None,
    )
    found = blocks(result)
    text = text_of(found)
    for words in (
        "No verdict",
        "How well memorisation can be predicted was not measured: no time.",
        "Prediction: not measured: no time.",
        "What was memorised in the end: not measured: this run recorded none.",
        "There is no protect list: nothing was memorised.",
        "Protect list: not measured: nothing was memorised.",
        "The model's usefulness was not measured: this run recorded none.",
        "Scope: not measured: this run recorded none.",
        "must be at least a threshold.",
    ):
        assert words in text, words
    assert not any(isinstance(block, Figure | Tiles | Table) for block in found)
    assert "# When to look" not in text


def test_a_page_without_rows_layers_or_check(read, blocks, text_of):
    empty = {"quality": [], "by_time": [], "by_layer": [], "by_threshold": [], "canaries": []}
    scatter = {"lira": [], "counterfactual": []}
    found = blocks(
        read(
            prediction=empty,
            truth={"agreement": [], "by_kind": [], "scatter": scatter},
            protect={"samples": [], "check": None},
        )
    )
    text = text_of(found)
    assert "Quality of the predictors: not measured: too few samples were memorised." in text
    assert "No run was left to check the list." in text
    assert "What counts as memorised" not in text
    assert "Spearman" not in text
    assert [block.key for block in found if isinstance(block, Figure)] == ["loss"]
    assert not any(isinstance(block, Table) for block in found)
    one = text_of(blocks(read(prediction={"by_layer": []})))
    assert "# What counts as memorised" in one
    assert "by layer" not in one


def test_a_list_that_did_not_hold_is_a_notice(read, protect, blocks):
    exceeded = dataclasses.replace(CHECK, held=False, refuted=True)
    for check, tone in ((CHECK, "plain"), (exceeded, "notice")):
        found = blocks(dataclasses.replace(read(), protect=protect(check=check)))
        (words,) = (
            b
            for b in found
            if isinstance(b, Prose) and b.tone != "lead" and b.text.startswith("To miss at most")
        )
        assert words.tone == tone


# Sentences.


def test_the_plain_words_tell_what_was_done_and_found(read, comparison, truth):
    stop = dataclasses.replace(
        read().prediction.stop, epoch=6.0, epochs=30.0, dropped=0.953, reached=True
    )
    result = dataclasses.replace(
        read(),
        prediction=comparison((0.9, 0.85, 0.94), stop=stop),
        truth=truth(memorised_share=0.064),
    )
    done, quality, listed = map(_plain, in_plain_words(result))
    assert done == (
        "8 models were trained, each on a random half of the samples. 3 of them were also examined "
        "early, after 6 of 30 epochs, when the median training loss had dropped by 95.3 %. What a "
        "model memorised in the end is determined by an attack (LiRA) that compares it with all "
        "the other models. The first model that was examined early memorised 6.4 % of the 120 "
        "samples it was trained on."
    )
    assert quality.startswith(
        "At that moment PSMI ranked a memorised sample above another one in 90.0 % of the pairs "
        "(AUC 0.900, 95 % interval 0.850 to 0.940); guessing gives 50 %. Its own threshold (PSMI ≤ "
        "0) finds "
    )
    assert listed.endswith(f"of 120. {_plain(check_sentence(result.protect))}")


def test_one_target_that_never_got_there(read, comparison):
    stop = dataclasses.replace(
        read().prediction.stop, epoch=0.25, epochs=1.0, dropped=0.937, reached=False
    )
    result = dataclasses.replace(read(), prediction=comparison(stop=stop, targets=1))
    assert _plain(in_plain_words(result)[0]).startswith(
        "8 models were trained, each on a random half of the samples. One of them was also "
        "examined early, after 0.25 of 1 epoch, when the drop of the median training loss (93.7 %) "
        "came closest to 95 %, which it never reached."
    )
    assert time_sentence(stop).endswith("The list does not need the remaining 0.75 epochs of "
                                        "training.")  # fmt: skip
    late = dataclasses.replace(stop, epoch=1.0)
    assert time_sentence(late).endswith("That is the end of the training: nothing is saved.")
    assert stop_text(dataclasses.replace(stop, reached=True)).startswith("after 0.25 of 1 epoch, ")


def test_nothing_memorised_is_said(read, comparison, truth):
    nothing = dataclasses.replace(
        read(),
        prediction=Absent("0 memorised and 502 other samples; it takes 4 and 1"),
        protect=Absent("run 0 memorised none of its samples"),
        truth=truth(memorised_share=0.0),
    )
    assert in_plain_words(nothing) == [
        "How well memorisation can be predicted was not measured: 0 memorised and 502 other "
        "samples; it takes 4 and 1.",
        "The first model that was examined early memorised none of its training samples.",
        "There is no protect list: run 0 memorised none of its samples.",
    ]
    few = "Too few samples were memorised to say how well that could be predicted."
    result = dataclasses.replace(read(), prediction=comparison(quality=(), by_threshold=()))
    assert in_plain_words(result)[1] == few
    result = dataclasses.replace(read(), prediction=comparison(quality=()))
    row = next(row for row in result.prediction.by_threshold if row.threshold == 1.0)
    assert in_plain_words(result)[1] == (
        f"{few} At LiRA’s threshold 1, {row.n_memorised} samples count as memorised, and PSMI has "
        f"an AUC of {estimate_text(row.auc)}."
    )
    assert memorised_sentence(result.prediction, result.truth).endswith("its training samples.")


def test_one_memorised_sample(read):
    row = dataclasses.replace(read().prediction.first, n_memorised=1, n_others=1, base_rate=0.5)
    assert evidence_sentence(row).startswith("1 memorised sample and 1 other of the first model")
    assert _plain(base_rate_sentence(row)).startswith("50.0 % of the samples are memorised")


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ((0.95, 0.90, 0.98), "No other predictor of the same cost has a higher AUC."),
        (
            (0.5, 0.45, 0.55),
            "The loss, at the same cost, has a higher AUC: 0.917 (0.870 to 0.951).",
        ),
        ((0.88, 0.83, 0.92), "(0.870 to 0.951); the intervals overlap, so this may be chance."),
    ],
)
def test_a_better_predictor_is_named_and_luck_too(comparison, read, first, words):
    rows = list(read().prediction.quality)
    rows[0] = dataclasses.replace(rows[0], auc=Estimate(*first))
    rows[1] = dataclasses.replace(rows[1], auc=Estimate(0.917, 0.870, 0.951))
    rows[4] = dataclasses.replace(rows[4], auc=Estimate(0.99, 0.98, 1.0))
    sentence = best_sentence(comparison(quality=tuple(rows)))
    assert sentence.endswith(words)
    assert "LT-IQR" not in sentence, "it needs the whole run"


def test_the_first_predictor_alone_is_compared_with_nothing(comparison, read):
    rows = read().prediction.quality
    alone = comparison(quality=(rows[0], rows[4]))
    assert best_sentence(alone) == ""
    assert default_sentence(rows[1]) == ""
    assert len(reading_sentences(alone, rows[1])) == 1
    assert reading_sentences(alone, rows[0])[0].endswith("The dot marks it.")


def test_the_list_says_how_many_and_whether_it_held(protect):
    listed = protect(listed=77, share=0.155, n=499, check=CHECK)
    assert _plain(protect_sentence(listed)) == (
        "To miss at most 20 % of the memorised samples, protect the 77 samples of highest risk, "
        "15.5 % of 499. On an independent run the list missed 7 of 61 memorised samples, 11.5 % "
        "(4.7 % to 22.2 %): within the 18.7 % stated."
    )
    check = dataclasses.replace(
        CHECK, memorised=1, missed=1, rate=Estimate(1.0, 0.025, 1.0), held=False, refuted=True
    )
    assert _plain(check_sentence(protect(check=check))) == (
        "On an independent run the list missed 1 of 1 memorised sample, 100.0 % (2.5 % to 100.0 "
        "%): more than the 18.7 % stated. Do not rely on it."
    )
    assert (CHECK.outcome, check.outcome) == ("held", "not held")


def test_a_rate_above_the_stated_one_may_be_chance(protect):
    check = ListCheck(
        memorised=736,
        missed=142,
        rate=Estimate(0.193, 0.165, 0.223),
        held=False,
        chance=0.083,
        refuted=False,
        model=6,
    )
    assert _plain(check_sentence(protect(check=check))).endswith(
        ": more than the 18.7 % stated. This may be chance: 8.3 % of runs like those that made the "
        "list would miss as many, and the list allows for 10 %. Make the list on more runs."
    )
    assert check.outcome == "exceeded within chance"
    for worse in ({"refuted": True}, {"chance": None}):
        again = dataclasses.replace(check, **worse)
        assert check_sentence(protect(check=again)).endswith("Do not rely on it.")


def test_a_list_without_a_check_or_of_everything(protect):
    alone = protect(check=None, runs=1)
    assert check_sentence(alone) == "No run was left to check the list."
    means, means_not = (_plain(words) for _, words in stated_sentences(alone))
    assert "was made on one run." in means
    assert "at most 18.7 % of the samples that it will memorise" in means
    assert means.endswith(
        "That is for trainings like this one; one training does not show how trainings differ."
    )
    assert "a sample that is not listed need not be safe" in means_not
    whole = protect(listed=502, n=502, share=1.0, runs=3)
    assert _plain(protect_sentence(whole)) == (
        "To miss at most 20 % of the memorised samples, all 502 samples would have to be "
        "protected: no shorter list can state that rate."
    )
    assert "made on 3 runs." in stated_sentences(whole)[0][1]


def test_the_best_moment_is_known_in_hindsight(comparison, read):
    rows = [row for row in read().prediction.moments if row.predictor == "psmi"][:4]
    rows = [
        dataclasses.replace(row, auc=Estimate(value, 0.4, 0.99))
        for row, value in zip(rows, (0.5, 0.8, 0.97, 0.9), strict=True)
    ]
    first = (0.9, 0.75, 0.95)
    assert moment_sentence(comparison(first, by_time=tuple(rows))) == (
        "The AUC of PSMI first came within the interval of the stop after 4 epochs (0.800) and was "
        "highest after 8 epochs (0.970); both are known only in hindsight."
    )
    assert moment_sentence(comparison(first, by_time=tuple(rows[:1]))) == ""
    assert moment_sentence(comparison(first, by_time=())) == ""
    assert moment_sentence(comparison(quality=())) == ""


def test_the_truth_is_compared_with_itself_and_the_paper(truth):
    found = truth(flip_rate=Estimate(0.081, 0.062, 0.104), persistence=0.71)
    assert _plain(flip_sentence(found)).startswith(
        "Two models that were both trained on a sample disagree whether it is memorised in 8.1 % "
        "(6.2 % to 10.4 %) of the cases. What one model memorised is memorised by another one that "
        "was trained on it in 71.0 % of the cases."
    )
    assert between_text(found.agreement[2]) == "Counterfactual memorization and RMIA"
    assert convention_sentence(found) == (
        "LiRA over 8 models, from the logit gap; online, mean, pooled variance, ddof 1."
    )
    pair = found.agreement[0]
    for value, words in ((0.8, "within that range"), (0.7, "below"), (0.95, "above")):
        row = dataclasses.replace(pair, value=value)
        sentence = agreement_sentence(truth(agreement=(row,)))
        assert f"correlation of {value:.2f} (Spearman)" in sentence
        assert sentence.endswith(f"0.75 to 0.88 for fine-tuned language models: this is {words}.")
    none = truth(agreement=(), persistence=None)
    assert agreement_sentence(none) == ""
    assert "What one model memorised" not in flip_sentence(none)


def test_targets_with_many_false_positives_are_counted(truth):
    found = truth(false_alarms=(0.02, 0.3, 0.0), false_alarm_limit=0.2)
    sentence = _plain(false_alarm_sentence(found))
    assert sentence.startswith(
        "Estimated false positives among the samples that the first target is said to have "
        "memorised: 2.0 %, from samples that it was not trained on. One target is above 20.0 % and "
        "was not used to make or check the protect list"
    )
    few = truth(false_alarms=(0.02, 0.1), false_alarm_limit=0.2)
    assert false_alarm_sentence(few).endswith("from samples that it was not trained on.")
    many = truth(false_alarms=(0.5, 0.9), false_alarm_limit=0.2)
    assert "2 targets are above" in false_alarm_sentence(many)
    assert "and were not used" in false_alarm_sentence(many)
    assert false_alarm_sentence(truth(false_alarms=None, false_alarm_limit=None)) == ""


def test_the_threshold_of_the_page_is_named(comparison):
    assert threshold_sentence(comparison()).endswith("The rest of this page uses the threshold 1.")
    assert threshold_sentence(comparison(quality=())).endswith("fewer and more extreme samples.")


def test_terms_name_the_threshold(read, blocks):
    terms = [block for block in blocks(read()) if isinstance(block, Terms)][-1]
    meanings = dict(terms.entries)
    assert "must be at least 1." in meanings["Memorised"]
    assert list(meanings)[-1] == "A finding"


def test_numbers_in_print():
    assert [epoch_text(e) for e in (6.0, 0.25, 12.03, 38.46, 256.4)] == [
        *("6", "0.25", "12", "38.5", "256")
    ]
    assert (epochs_text(1.0), epochs_text(0.5)) == ("1 epoch", "0.5 epochs")
    assert estimate_text(Estimate(0.9, 0.85, 0.95)) == "0.900 (0.850 to 0.950)"
    assert _plain(rate_text(Estimate(0.9, 0.85, 0.95))) == "90.0 % (85.0 % to 95.0 %)"
    assert others_text([]) == "–"
    assert others_text([0.9]) == others_text([0.9, 0.9]) == "0.900"
    assert others_text([0.93, 0.91, 0.95]) == "0.910 to 0.950"
    assert (signed_text(-1.234), signed_text(-0.001)) == ("−1.23", "0.00")
    assert (threshold_text(-2.0), threshold_text(4.0)) == ("−2", "4")
    assert needs_of("psmi") == needs_of("mahalanobis") == "one model, early"
    assert (needs_of("lt_iqr"), needs_of("early_lira")) == ("the whole run", "all models, early")


# Charts.


def test_a_predictor_has_one_colour_and_what_comes_late_is_dashed():
    assert len({tone_of(name) for name in PREDICTORS}) == len(PREDICTORS)
    assert [stroke_of(name) for name in PREDICTORS] == [*["full"] * 4, "dashed", "dashed"]


def test_the_operating_points_are_drawn_and_the_default_threshold_is_a_dot(read):
    prediction = read().prediction
    chart = roc_chart(prediction)
    assert [line.label for line in chart.lines] == [
        *("PSMI", "Loss", "Logit gap", "Mahalanobis", "LT-IQR", "Early LiRA", "Guessing")
    ]
    first = prediction.first
    assert (chart.lines[0].x, chart.lines[0].y) == (first.curve.fpr, first.curve.tpr)
    ((dot,),) = (dots.dots for dots in chart.dots)
    assert (dot.x, dot.y) == (first.default_fpr.value, first.default_tpr.value)
    assert (dot.low, dot.high) == (first.default_tpr.low, first.default_tpr.high)
    assert dot.tip.startswith("PSMI ≤ 0: TPR ")
    assert _plain(chart.rules[0].label) == "TPR 75 %"
    keys = [(key.label, key.tone, key.kind) for key in figure_of(chart, "roc").keys]
    assert keys[:3] == [
        ("PSMI ≤ 0", "ceiling", "dots"),
        ("PSMI", "main", "line"),
        ("Loss", "second", "line"),
    ]
    assert ("LT-IQR", "fifth", "line dashed") in keys
    assert ("Guessing", "chance", "line dotted") in keys


def test_a_predictor_without_a_threshold_or_a_curve(comparison, read):
    rows = read().prediction.quality
    bare = dataclasses.replace(rows[0], default_tpr=None, default_fpr=None)
    assert roc_chart(comparison(quality=(bare, *rows[1:]))).dots == ()
    flat = tuple(dataclasses.replace(row, curve=None) for row in rows)
    assert roc_chart(comparison(quality=flat)) is None


def test_the_loss_falls_to_its_aim_and_the_stop_is_marked(read):
    prediction = read().prediction
    stop = prediction.stop
    chart = loss_chart(stop)
    (line,) = chart.lines
    assert (line.x, line.y) == (stop.at_epoch, stop.median_loss)
    (rule,) = chart.rules
    assert (_plain(rule.label), rule.y) == ("95 % lower", pytest.approx(0.05 * line.y[0]))
    assert chart.mark == time_chart(prediction).mark == (stop.epoch, "stop, 26.7")
    empty = dict.fromkeys(("at_step", "at_epoch", "median_loss", "dropped_at"), ())
    assert loss_chart(dataclasses.replace(stop, **empty)) is None


def test_every_moment_and_its_interval_are_drawn(read, comparison):
    prediction = read().prediction
    chart = time_chart(prediction)
    assert [len(line.x) for line in chart.lines] == [6] * 4
    for line, row in zip(chart.lines, prediction.by_time[:4], strict=True):
        assert (line.x[0], line.y[0]) == (row.epoch, row.auc.value)
        assert (line.low[0], line.high[0]) == (row.auc.low, row.auc.high)
    svg = ElementTree.fromstring(str(figure_of(chart, "t", Size(880, 340, True)).wide))
    by_class = {
        name: [part for part in svg.iter() if name in (part.get("class") or "").split()]
        for name in ("plot", "tick", "band")
    }
    assert len(by_class["band"]) == 4
    # The scale begins with the first moment; no tick may stand before it.
    ticks = [float(p.get("x")) for p in by_class["tick"] if "middle" in p.get("class")]
    assert min(ticks) >= float(by_class["plot"][0].get("x"))
    assert time_chart(comparison(by_time=())) is None
    assert len(time_chart(comparison(by_time=prediction.by_time[:1])).lines) == 1


def test_many_layers_are_drawn_in_their_order(comparison, read):
    assert layer_chart(read().prediction) is None, "the table shows two layers"
    row = read().prediction.by_layer[0]
    names = ("embedding", "block 1", "block 2", "last")
    rows = tuple(dataclasses.replace(row, layer=name) for name in names)
    chart = layer_chart(comparison(by_layer=rows))
    assert chart.x_ticks == chart.lines[0].x == (1.0, 2.0, 3.0, 4.0)
    assert "at embedding" in chart.description
    assert chart.x_label.endswith("(1 is embedding)")


def test_thresholds_are_drawn_with_how_many_are_memorised(comparison, read):
    prediction = read().prediction
    chart = threshold_chart(prediction)
    assert chart.x_ticks == (0.0, 1.0)
    last = prediction.by_threshold[-1]
    assert f"at threshold 1, {last.n_memorised} memorised" in chart.description
    assert threshold_chart(comparison(by_threshold=prediction.by_threshold[:3])) is None


def test_every_scattered_sample_is_a_dot(read):
    truth = read().truth
    chart = scatter_chart(truth)
    (dots,) = chart.dots
    assert [(dot.x, dot.y) for dot in dots.dots] == [
        *zip(truth.scatter.counterfactual, truth.scatter.lira, strict=True)
    ]
    assert re.match(r"LiRA \d+\.\d %, counterfactual", _plain(dots.dots[0].tip))
    assert chart.x_label == "Counterfactual memorization (logit gap)"
