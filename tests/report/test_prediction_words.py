"""The sentences of a prediction report say what was done, and no more than was found."""

from __future__ import annotations

import pytest

from remnant.records import Record
from remnant.report import read_view, summary_text
from remnant.report.prediction_numerals import (
    epoch_text,
    epochs_text,
    estimate_text,
    needs_of,
    others_text,
    rate_text,
    signed_text,
    threshold_text,
)
from remnant.report.prediction_text import prediction_lines
from remnant.report.prediction_view import Estimate
from remnant.report.prediction_words import (
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
    moment_sentence,
    protect_sentence,
    reading_sentences,
    stated_sentences,
    stop_text,
    threshold_sentence,
    time_sentence,
)
from remnant.report.tiles import tiles_of
from remnant.report.words import headline, question


def _plain(text: str) -> str:
    return text.replace("\u202f", " ")


@pytest.fixture
def read(make_prediction):
    """The view of a prediction run with changes."""

    def make(**options):
        return read_view(Record.open(make_prediction(**options)))

    return make


def _row(predicted, place=0, **entries):
    """The quality rows with entries of one of them set."""
    rows = predicted["prediction"]["quality"]
    rows[place] |= entries
    return {"prediction": {"quality": rows}}


def test_the_plain_words_tell_what_was_done_and_found(read, predicted):
    view = read(change=_row(predicted, auc=[0.9, 0.85, 0.94], n_memorised=90, n_others=410))
    done, found, listed = map(_plain, in_plain_words(view))
    share = _plain(f"{100 * view.truth.memorised_share:.1f} %")
    assert done == (
        "24 models were trained, each on a random half of the samples; 4 of them were also looked "
        "at early, after 6 of 30 epochs, when the median training loss had dropped by 95.3 %. What "
        "a model has memorised in the end is told by an attack that holds it against all the "
        f"others (LiRA). The first model that was looked at memorised {share} of the 500 samples "
        "it was trained on."
    )
    assert found.startswith(
        "At that moment PSMI put a memorised sample above another one in 90.0 % of the pairs (AUC "
        "0.900, 95 % interval 0.850 to 0.940); guessing gives 50 %. Its own threshold (PSMI ≤ 0) "
        "finds "
    )
    assert f"of 502. {_plain(check_sentence(view.protect))}" in listed


def test_one_target_and_one_epoch(read):
    stop = {"epoch": 0.25, "epochs": 1.0, "reached": False, "dropped": 0.937, "drop": 0.95}
    base = read().prediction.stop
    stop |= {"step": 1, "steps": 4, "at_step": [0, 1], "at_epoch": [0.0, 0.25]}
    stop |= {"median_loss": list(base.median_loss[:2]), "dropped_at": [0.0, 0.937]}
    change = {"targets": 1, "stop": stop, "by_time": []}
    view = read(name="two", change={"prediction": change})
    done = _plain(in_plain_words(view)[0])
    assert done.startswith(
        "24 models were trained, each on a random half of the samples; one of them was also looked "
        "at early, after 0.25 of 1 epoch, where the median training loss came closest to a drop by "
        "95 %, which it never reached (93.7 %)."
    )
    assert _plain(tiles_of(view)[0].remark) == (
        "epochs; median loss down by 93.7 %; 95 % was never reached"
    )
    assert "The other 0.75 epochs of training need not be paid for" in time_sentence(
        view.prediction
    )


def test_nothing_memorised_is_said(read):
    absent = (("prediction", "0 memorised and 502 other samples; it takes 4 and 1."),)
    absent += (("protect", "run 0 memorised none of its samples"),)
    view = read(
        change={"truth": {"memorised_share": 0.0}},
        without=("prediction", "protect"),
        absent=absent,
    )
    assert in_plain_words(view) == [
        "How well memorisation can be predicted was not measured: 0 memorised and 502 other "
        "samples; it takes 4 and 1.",
        "The first model that was looked at memorised none of its training samples.",
        "There is no protect list: run 0 memorised none of its samples.",
    ]
    assert [(_plain(tile.value), tile.remark) for tile in tiles_of(view)] == [
        ("0.0 %", "of its training samples")
    ]
    few = "Too few samples were memorised to say how well that could be predicted."
    view = read(name="three", change={"prediction": {"quality": [], "by_threshold": []}})
    assert in_plain_words(view)[1] == few
    view = read(name="two", change={"prediction": {"quality": []}})
    row = next(one for one in view.prediction.by_threshold if one.threshold == 8.0)
    assert in_plain_words(view)[1] == (
        f"{few} From LiRA’s threshold 8 on there are {row.n_memorised}, for which PSMI has an AUC "
        f"of {row.auc.value:.3f} ({row.auc.low:.3f} to {row.auc.high:.3f})."
    )
    assert [tile.name for tile in tiles_of(view)] == [
        *("Known after", "Memorised in the end", "Protect")
    ]


def test_one_memorised_sample(read, predicted):
    change = _row(predicted, n_memorised=1, n_others=1, k=1, base_rate=0.5)
    row = read(change=change).prediction
    assert evidence_sentence(row).startswith("1 memorised sample and 1 other of the first model")
    assert _plain(base_rate_sentence(row.quality[0])).startswith("50.0 % of the samples are")


@pytest.mark.parametrize(
    ("auc", "words"),
    [
        ([0.95, 0.90, 0.98], "No other predictor that needs as little has a higher AUC."),
        ([0.5, 0.45, 0.55], "which needs as little, has a higher AUC, 0.917 (0.870 to 0.951)."),
        ([0.88, 0.83, 0.92], "(0.870 to 0.951); the intervals overlap, so that this may be luck."),
    ],
)
def test_a_better_predictor_is_named_and_luck_too(read, predicted, auc, words):
    found = read(change=_row(predicted, auc=auc)).prediction
    assert best_sentence(found).endswith(words)
    assert "LT-IQR" not in best_sentence(found), "it needs the whole run"


def test_the_first_predictor_alone_is_compared_with_nothing(read, predicted):
    rows = predicted["prediction"]["quality"]
    found = read(change={"prediction": {"quality": [rows[0], rows[4]]}}).prediction
    assert best_sentence(found) == ""
    without = read(name="two", change={"prediction": {"quality": rows[1:2]}}).prediction
    assert default_sentence(without.quality[0]) == ""
    assert len(reading_sentences(without)) == 1
    assert len(reading_sentences(found)) == 2


def test_what_a_predictor_needs():
    assert needs_of("psmi") == needs_of("mahalanobis") == "one model, early"
    assert (needs_of("lt_iqr"), needs_of("early_lira")) == (
        *("the whole run", "all models, early"),
    )


def test_the_list_says_how_many_and_whether_it_held(read):
    view = read(change={"protect": {"listed": 77, "share": 0.155, "n": 499}})
    assert _plain(protect_sentence(view.protect)) == (
        "To miss at most 20 % of what is memorised, protect the 77 samples of highest risk, 15.5 % "
        "of 499. On another run, which had no part in the rule, it missed 7 of 61 memorised "
        "samples, 11.5 % (4.7 % to 22.2 %): within the 18.7 % stated."
    )
    assert _plain(tiles_of(view)[-1].remark) == (
        "77 of 499 samples; stated to miss at most 18.7 %; held on another run"
    )
    check = {"model": 6, "memorised": 1, "missed": 1, "rate": [1.0, 0.025, 1.0], "held": False}
    view = read(name="two", change={"protect": {"check": check}})
    assert _plain(check_sentence(view.protect)) == (
        "On another run, which had no part in the rule, it missed 1 of 1 memorised sample, 100.0 % "
        "(2.5 % to 100.0 %): more than the 18.7 % stated. Do not rely on it."
    )
    assert tiles_of(view)[-1].remark.endswith("not held on another run")


def test_a_rate_above_the_stated_one_may_be_chance(read):
    check = {"model": 6, "memorised": 736, "missed": 142, "rate": [0.193, 0.165, 0.223]}
    check |= {"held": False, "chance": 0.083, "refuted": False}
    view = read(change={"protect": {"check": check}})
    assert _plain(check_sentence(view.protect)).endswith(
        ": more than the 18.7 % stated. That may be chance: 8.3 % of runs like those that made the "
        "rule would miss as many, and it allows for 10 %. Let more runs make the rule."
    )
    assert "exceeded within chance on another run: 142 of 736 missed" in _plain(
        "\n".join(prediction_lines(view))
    )
    assert tiles_of(view)[-1].remark.endswith("; exceeded within chance on another run")
    refuted = read(name="two", change={"protect": {"check": check | {"refuted": True}}})
    assert check_sentence(refuted.protect).endswith("Do not rely on it.")
    assert "not held on another run" in "\n".join(prediction_lines(refuted))


def test_a_list_without_a_check_or_of_everything(read):
    view = read(change={"protect": {"check": None, "runs": 1}})
    assert check_sentence(view.protect) == "No run was left to check the rule on."
    assert "held" not in tiles_of(view)[-1].remark
    means, means_not = (_plain(words) for _, words in stated_sentences(view.protect))
    assert "was made on one run." in means
    assert "it takes the next one for alike" in means
    assert "at most 18.7 % of the samples that it will memorise" in means
    assert "nor that what is not listed is safe" in means_not
    view = read(name="two", change={"protect": {"listed": 502, "n": 502, "share": 1.0}})
    assert _plain(protect_sentence(view.protect)) == (
        "To miss at most 20 % of what is memorised, all 502 samples would have to be protected: no "
        "shorter list can state that rate."
    )
    assert "made on 3 runs." in stated_sentences(view.protect)[0][1]


def test_when_to_look(read, predicted):
    found = read().prediction
    assert _plain(time_sentence(found)) == (
        "The rule watches how training goes and stops after 6 of 30 epochs, when the median "
        "training loss had dropped by 95.3 %. Watching the loss and asking the predictors took 0.6 "
        "passes over the training samples in all. The other 24 epochs of training need not be paid "
        "for before the list is known."
    )
    stop = predicted["prediction"]["stop"] | {"epoch": 30.0}
    late = read(name="two", change={"prediction": {"stop": stop, "forward_passes": None}})
    assert time_sentence(late.prediction).endswith("the end of the training: nothing is saved.")
    assert "passes" not in time_sentence(late.prediction)


def test_the_best_moment_is_told_in_hindsight(read, predicted):
    rows = [row for row in predicted["prediction"]["by_time"] if row["predictor"] == "psmi"][:4]
    for row, value in zip(rows, (0.5, 0.8, 0.97, 0.9), strict=True):
        row["auc"] = [value, 0.4, 0.99]
    change = _row(predicted, auc=[0.9, 0.75, 0.95])
    change["prediction"]["by_time"] = rows
    found = read(change=change).prediction
    assert moment_sentence(found) == (
        "The AUC of PSMI first came within the interval of the stop after 0.429 epochs (0.800) and "
        "was highest after 0.571 epochs (0.970); both are known in hindsight only."
    )
    change["prediction"]["by_time"] = rows[:1]
    assert moment_sentence(read(name="two", change=change).prediction) == ""
    change["prediction"]["by_time"] = []
    assert moment_sentence(read(name="three", change=change).prediction) == ""


def test_the_truth_is_held_against_itself_and_the_paper(read, predicted):
    truth = read().truth
    assert _plain(flip_sentence(truth)).startswith(
        "Of two models that were both trained on a sample, one has memorised it and the other not "
        "in 8.1 % (6.2 % to 10.4 %) of the cases. What one model memorised is memorised by another "
        "that saw it too in 71.0 % of the cases."
    )
    assert between_text(truth.agreements[2]) == "Counterfactual memorization and RMIA"
    assert convention_sentence(truth) == (
        "LiRA over 24 models, from the logit gap; online, mean, per-example variance."
    )
    pair = predicted["truth"]["agreement"][0]
    for i, (value, words) in enumerate(
        ((0.8, "within that range"), (0.7, "below"), (0.95, "above"))
    ):
        agreement = [pair | {"value": value}]
        truth = read(name=f"run{i}", change={"truth": {"agreement": agreement}}).truth
        told = agreement_sentence(truth)
        assert f"correlation of {value:.2f} (Spearman)" in told
        assert told.endswith(f"0.75 to 0.88 for fine-tuned language models: this is {words}.")
    truth = read(name="none", change={"truth": {"agreement": [], "persistence": None}}).truth
    assert agreement_sentence(truth) == ""
    assert "What one model memorised" not in flip_sentence(truth)


def test_targets_that_are_no_judges_are_counted(read):
    told = false_alarm_sentence(read().truth)
    assert told.startswith("Going by samples that it never saw, 2.0 % of what the first target is")
    assert " One target is above 20.0 % and had no part in making or checking" in told
    few = read(name="few", change={"truth": {"false_alarms": [0.02, 0.1]}}).truth
    assert false_alarm_sentence(few).endswith("is to be taken for chance.")
    many = read(name="many", change={"truth": {"false_alarms": [0.5, 0.9]}}).truth
    assert "2 targets are above" in false_alarm_sentence(many)
    unknown = read(name="unknown", change={"truth": {"false_alarms": None}}).truth
    assert false_alarm_sentence(unknown) == ""


@pytest.mark.parametrize("kind", ["prediction", "text-prediction"])
@pytest.mark.parametrize("outcome", ["PASS", "FAIL", "INCONCLUSIVE"])
def test_an_outcome_of_older_rules_is_shown_as_a_finding(read, kind, outcome):
    verdict = {"outcome": outcome, "sentence": "A sentence.", "limit": 0.5, "lag": None}
    view = read(name=outcome, question=kind, results={"verdict": verdict})
    assert question(view).startswith("Prediction of memorisation")
    assert headline(view) == "Protect list, checked by older rules"
    assert view.verdict.sentence == "A sentence."
    text = summary_text(view)
    assert text.startswith("FINDING: Protect list, checked by older rules. A sentence.")
    assert outcome not in text


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


def test_the_threshold_elsewhere_is_named(read):
    assert threshold_sentence(read().prediction).endswith("Elsewhere it is 4.")
    none = read(name="two", change={"prediction": {"quality": []}}).prediction
    assert threshold_sentence(none).endswith("extreme they are.")
    assert stop_text(none.stop).startswith("after 6 of 30 epochs")
