"""A prediction record is read whole; what is missing is a reason, what is malformed is named."""

from __future__ import annotations

import re

import pytest

from remnant.errors import RecordError
from remnant.records import Record
from remnant.report import read_view, read_views
from remnant.report.prediction_view import PREDICTORS, Estimate, PredictionView, lines_of
from remnant.report.run_view import Finding, NotMeasured, Task


@pytest.mark.parametrize("question", ["prediction", "text-prediction"])
def test_a_full_record_is_read_whole(make_prediction, predicted, question):
    view = read_view(Record.open(make_prediction(question=question)))
    assert isinstance(view, PredictionView)
    assert (view.name, view.question) == ("early", question)
    assert isinstance(view.verdict, Finding)
    assert view.verdict.sentence.startswith("Protect 72 of 499 samples")
    assert view.task == Task(0.963, 360, 0.102)
    found, stored = view.prediction, predicted["prediction"]
    assert tuple(row.predictor for row in found.quality) == PREDICTORS
    assert (found.models, found.targets, found.layer, found.tpr) == (24, 4, "last", 0.75)
    assert found.forward_passes == 0.6
    for row, kept in zip(found.quality, stored["quality"], strict=True):
        assert row.auc == Estimate(*kept["auc"])
        assert (list(row.roc.fpr), list(row.roc.tpr)) == tuple(kept["curve"].values())
        assert (row.default_tpr is None) == (row.predictor != "psmi")
    assert (found.stop.step, found.stop.epoch, found.stop.epochs) == (84, 6.0, 30.0)
    assert found.stop.median_loss == tuple(stored["stop"]["median_loss"])
    assert len(found.by_time) == 15 * 4
    assert found.layers == ("first", "middle", "last")
    assert [one.kind for one in found.kinds] == ["mislabelled", "odd", "clean"]
    truth = view.truth
    assert (truth.models, truth.n, truth.threshold, truth.persistence) == (24, 1000, 4.0, 0.71)
    assert (truth.lira, truth.counterfactual) == tuple(
        tuple(column) for column in predicted["truth"]["scatter"].values()
    )
    assert [(one.first, one.second) for one in truth.agreements] == [
        *(("lira", "counterfactual"), ("lira", "rmia"), ("counterfactual", "rmia"))
    ]
    assert truth.kinds[0].counterfactual == predicted["truth"]["by_kind"][0]["counterfactual"]
    protect = view.protect
    assert (protect.n, protect.runs, len(protect.samples)) == (
        found.quality[0].n_memorised + (found.quality[0].n_others),
        3,
        25,
    )
    assert (protect.check.model, protect.check.missed, protect.check.held) == (6, 7, True)
    assert (protect.check.chance, protect.check.refuted) == (None, False), "of an older record"
    risks = [one.risk for one in protect.samples]
    assert risks == sorted(risks, reverse=True)


def test_rows_come_in_the_order_of_predictors_and_moments(make_prediction, predicted):
    rows = predicted["prediction"]
    change = {key: rows[key][::-1] for key in ("quality", "by_time", "by_threshold")}
    found = read_view(Record.open(make_prediction(change={"prediction": change}))).prediction
    assert tuple(row.predictor for row in found.quality) == PREDICTORS
    lines = lines_of(found.by_time)
    assert tuple(lines) == PREDICTORS[:4]
    for mine in lines.values():
        epochs = [row.epoch for row in mine]
        assert epochs == sorted(epochs)
    assert [row.threshold for row in lines_of(found.by_threshold)["loss"]] == [0, 2, 4, 6, 8]


def test_what_was_not_measured_is_a_reason(make_prediction):
    folder = make_prediction(
        without=("prediction", "truth", "protect"),
        absent=(("protect", "run 0 memorised none of its samples."),),
    )
    view = read_view(Record.open(folder))
    assert view.prediction == view.truth == NotMeasured("this run recorded none")
    assert view.protect == NotMeasured("run 0 memorised none of its samples")


def test_what_may_be_null_or_empty_is_read(make_prediction):
    change = {
        "prediction": {"by_layer": [], "canaries": [], "forward_passes": None},
        "truth": {"agreement": [], "by_kind": [], "persistence": None},
        "protect": {"check": None, "samples": []},
    }
    change["truth"]["scatter"] = {"lira": [], "counterfactual": []}
    view = read_view(Record.open(make_prediction(change=change)))
    assert (view.prediction.layers, view.prediction.forward_passes) == ((), None)
    assert (view.truth.persistence, view.truth.lira) == (None, ())
    assert (view.protect.check, view.protect.samples) == (None, ())


PREDICTION = ("models", "targets", "layer", "confidence", "tpr", "smi", "stop")
LISTS = ("quality", "by_time", "by_layer", "by_threshold", "canaries")
TRUTH = ("models", "n", "signal", "convention", "threshold", "memorised_share", "flip_rate")
PROTECT = ("predictor", "miss", "confidence", "stated", "share", "listed", "n", "runs", "samples")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *(("prediction", key) for key in (*PREDICTION, *LISTS)),
        *(("truth", key) for key in (*TRUTH, "agreement", "scatter", "by_kind")),
        *(("protect", key) for key in PROTECT),
    ],
)
def test_an_entry_that_is_missing_is_named(make_prediction, name, key):
    with pytest.raises(RecordError, match=f"malformed result '{name}': .*{name}.{key} is missing"):
        read_view(Record.open(make_prediction(change={name: {key: None}})))


@pytest.mark.parametrize(
    ("name", "path", "value", "words"),
    [
        ("prediction", "quality.0.predictor", "luck", "is none of psmi, loss, logit_gap"),
        ("prediction", "quality.1.auc", [0.9, 0.8], "has 2 entries, not value, low and high"),
        ("prediction", "quality.1.auc", [0.9, 0.8, 1.2], "holds what is no share between 0 and 1"),
        ("prediction", "quality.1.auc", 0.9, "is a float, no list"),
        ("prediction", "quality.0.default_tpr", ["x", 0, 1], "[0] is a str, no finite number"),
        ("prediction", "quality.0.base_rate", 18.5, "is no share between 0 and 1"),
        ("prediction", "quality.0.k", 9.5, "is a float, no whole number from 0"),
        ("prediction", "quality.0.others", 0.9, "is a float, no list"),
        ("prediction", "quality.0.curve.fpr", [0.0, 0.5, 0.4, 1.0], "does not rise from 0 to 1"),
        ("prediction", "quality.0.curve.tpr", [0.1, 1.0], "does not rise from 0 to 1"),
        ("prediction", "quality.0.curve.tpr", [0.0, 1.0], "has 2 entries for"),
        ("prediction", "by_time.3.epoch", "six", "is a str, no finite number"),
        ("prediction", "by_layer.0", 3, "is an int, no object"),
        ("prediction", "stop.at_epoch", [0.0, 2.0, 1.0], "do not rise"),
        ("prediction", "stop.median_loss", [2.4], "has 1 entries for 16 at_step"),
        ("prediction", "stop.reached", "yes", "is a str, neither true nor false"),
        ("prediction", "canaries.0.flagged", 1.5, "is no share between 0 and 1"),
        ("truth", "flip_rate", [0.1, 0.05], "has 2 entries, not value, low and high"),
        ("truth", "agreement.0.first", "loss", "is none of lira, counterfactual, rmia"),
        ("truth", "agreement.2.low", None, "is missing, no finite number"),
        ("truth", "scatter.lira", [0.5], "has 400 entries for 1 lira"),
        ("truth", "scatter.lira", [1.5] * 400, "holds what is no share"),
        ("truth", "by_kind.1.rmia", "high", "is a str, no finite number"),
        ("truth", "persistence", 7, "is no share between 0 and 1"),
        ("protect", "predictor", "oracle", "is none of psmi"),
        ("protect", "check.held", 1, "is an int, neither true nor false"),
        ("protect", "check.missed", 62, "is more than were memorised"),
        ("protect", "check.chance", 2.0, "is no share between 0 and 1"),
        ("protect", "check.refuted", 1, "is an int, neither true nor false"),
        ("protect", "check", [], "is a list, no object"),
        ("protect", "samples.3.example", -1, "is an int, no whole number from 0"),
        ("protect", "samples.24.memorised", None, "is missing, neither true nor false"),
    ],
)
def test_a_malformed_result_is_named(make_prediction, predicted, name, path, value, words):
    place = predicted[name]
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in way:
        place = place[part]
    place[last] = value
    with pytest.raises(RecordError) as caught:
        read_view(Record.open(make_prediction(results={name: predicted[name]})))
    assert f"malformed result '{name}': " in str(caught.value)
    field = re.sub(r"\.(\d+)", r"[\1]", path)
    if "entries for" in words:
        field = re.escape(field.rsplit(".", 1)[0]) + r"\.\w+"
    else:
        field = re.escape(field)
    assert re.search(f"{name}.{field} ?{re.escape(words)}", str(caught.value)), caught.value


def test_all_faults_are_listed(make_prediction):
    change = {"stated": "little", "runs": -1, "check": {"held": True}}
    with pytest.raises(RecordError) as caught:
        read_view(Record.open(make_prediction(change={"protect": change})))
    for words in ("stated is a str", "runs is an int", "check.model is missing", "check.rate is"):
        assert words in str(caught.value)


def test_a_pool_beside_or_under_a_run_is_passed_over(make_pool, make_prediction, tmp_path):
    make_prediction(name="out")
    make_pool("out/pool")
    make_prediction(name="out/again")
    assert [view.name for view in read_views(tmp_path / "out")] == ["out", "again"]


def test_a_pool_is_no_run(make_pool, tmp_path):
    pool = make_pool("lonely/pool")
    for read in (read_views, lambda folder: read_view(Record.open(folder))):
        with pytest.raises(RecordError) as caught:
            read(pool)
        assert str(caught.value) == (
            f"{pool} is a pool of shadow models’ scores, and no run. Name the run that was made "
            "with it."
        )
    with pytest.raises(RecordError, match="lonely holds no record"):
        read_views(tmp_path / "lonely")
