"""The classes that write a prediction result read it back; what is damaged is named."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import subprocess
import sys

import pytest

from remnant.errors import InvalidInput, RecordError
from remnant.records import Record
from remnant.records.typed import Absent, plain, read_result, result_from
from remnant.studies.prediction.result import (
    PREDICTORS,
    EarlyStop,
    OperatingPoints,
    PredictionResult,
    by_predictor,
)
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.result_parts import Finding

PARTS = ("verdict", "prediction", "truth", "protect", "task", "scope")


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_stored_as_it_is_read(small_run, part):
    record = Record.open(small_run)
    result = read_result(record, PredictionResult)
    made, kept = plain(getattr(result, part)), record.results()[part]
    assert json.dumps(made) == json.dumps(kept)


def test_every_row_of_the_record_is_a_part(small_run):
    assert {field.name for field in dataclasses.fields(PredictionResult)} == set(PARTS)
    assert set(Record.open(small_run).results()) == set(PARTS)


def test_reading_needs_no_pytorch():
    code = "import sys, remnant.studies.prediction.page; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_numbers_with_intervals_are_estimates(read, stored):
    prediction = read().prediction
    for row, kept in zip(prediction.quality, stored["prediction"]["quality"], strict=True):
        assert row.auc == Estimate(*kept["auc"])
        assert (row.default_tpr is None) == (row.predictor != "psmi")
        assert (list(row.curve.fpr), list(row.curve.tpr)) == tuple(kept["curve"].values())
    assert prediction.samples == prediction.quality[0].n_memorised + prediction.quality[0].n_others
    assert prediction.layers == ("last", "2")
    assert prediction.thresholds == (0.0, 1.0)


def test_rows_come_in_the_order_of_predictors_and_moments(read, stored):
    rows = stored["prediction"]
    names = ("quality", "by_time", "by_threshold")
    prediction = read(prediction={name: rows[name][::-1] for name in names}).prediction
    assert tuple(row.predictor for row in prediction.at_stop) == PREDICTORS
    assert prediction.first.predictor == "psmi"
    lines = by_predictor(prediction.moments)
    assert tuple(lines) == PREDICTORS[:4]
    for mine in lines.values():
        epochs = [row.epoch for row in mine]
        assert epochs == sorted(epochs)
        assert len(epochs) == 6


def test_what_was_not_measured_is_a_reason(read):
    result = read(
        prediction=None, truth=None, protect={"absent": "run 0 memorised none of its samples."}
    )
    assert result.prediction == result.truth == Absent("this run recorded none")
    assert result.protect == Absent("run 0 memorised none of its samples")


def test_what_may_be_null_or_empty_is_read(read):
    scatter = {"lira": [], "counterfactual": []}
    result = read(
        prediction={"quality": [], "by_layer": [], "canaries": []},
        truth={"agreement": [], "by_kind": [], "persistence": None, "scatter": scatter},
        protect={"check": None, "samples": []},
    )
    assert (result.prediction.layers, result.prediction.first) == ((), None)
    assert result.prediction.samples is None
    assert result.truth.persistence is None
    assert (result.protect.check, result.protect.samples) == (None, ())


def test_an_older_record_lacks_what_came_later(stored):
    for name in ("false_alarms", "false_alarm_limit"):
        del stored["truth"][name]
    del stored["protect"]["unfit"]
    for name in ("chance", "refuted"):
        del stored["protect"]["check"][name]
    result = result_from(stored, PredictionResult, where="run")
    assert (result.truth.false_alarms, result.truth.unfit) == (None, 0)
    check = result.protect.check
    assert (check.chance, check.refuted) == (None, not check.held)
    assert plain(result.truth) == stored["truth"], "what was not there is not made up"
    stored["protect"]["check"]["held"] = False
    again = result_from(stored, PredictionResult, where="run")
    assert again.protect.check.refuted
    assert "refuted" not in stored["protect"]["check"], "the rows are not changed"


@pytest.mark.parametrize("question", ["prediction", "text-prediction"])
def test_an_outcome_of_older_rules_is_a_finding(stored, tmp_path, question):
    verdict = {"outcome": "PASS", "sentence": "A sentence.", "limit": 0.5, "lag": None}
    with Record.create(
        tmp_path / "old",
        question=question,
        plan={},
        plan_fingerprint="1",
        data_fingerprint="2",
        execution={},
        provenance={},
    ) as record:
        for name, row in (stored | {"verdict": verdict}).items():
            record.put_result(name, row)
        result = read_result(record, PredictionResult)
    assert isinstance(result.verdict, Finding)
    assert result.verdict.headline == "Protect list, checked by older rules"
    assert result.verdict.sentence == "A sentence."


PREDICTION = ("models", "targets", "layer", "confidence", "tpr", "smi", "stop")
LISTS = ("quality", "by_time", "by_layer", "by_threshold", "canaries")
TRUTH = ("models", "n", "signal", "convention", "threshold", "memorised_share", "flip_rate")
PROTECT = ("predictor", "miss", "confidence", "stated", "share", "listed", "n", "runs", "samples")


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize(
    ("name", "key"),
    [
        *(("prediction", key) for key in (*PREDICTION, *LISTS)),
        *(("truth", key) for key in (*TRUTH, "agreement", "scatter", "by_kind")),
        *(("protect", key) for key in PROTECT),
    ],
)
def test_an_entry_that_is_missing_is_named(stored, name, key, gone):
    if gone:
        del stored[name][key]
    else:
        stored[name][key] = None
    words = rf"run holds a malformed result '{name}': .*{name}\.{key} is (missing|not one of)"
    with pytest.raises(RecordError, match=words):
        result_from(stored, PredictionResult, where="run")


@pytest.mark.parametrize(
    ("name", "path", "value", "words"),
    [
        ("prediction", "quality.0.predictor", "luck", "is not one of 'psmi', 'loss', 'logit_gap'"),
        ("prediction", "quality.1.auc", [0.9, 0.8], "has 2 entries, not value, low and high"),
        ("prediction", "quality.1.auc", [0.9, 0.8, 1.2], "has entries that are not between 0 and"),
        ("prediction", "quality.1.auc", 0.9, "is a float, no list"),
        ("prediction", "quality.0.default_tpr", ["x", 0, 1], "[0] is a str, no finite number"),
        ("prediction", "quality.0.base_rate", 18.5, "is not between 0 and 1"),
        ("prediction", "quality.0.k", 9.5, "is a float, no whole number from 0"),
        ("prediction", "quality.0.others", 0.9, "is a float, no list"),
        ("prediction", "quality.0.others", [math.nan], "[0] is a float, no finite number"),
        ("prediction", "quality.0.curve.fpr", [0.0, 0.5, 0.4, 1.0], "does not rise from 0 to 1"),
        ("prediction", "quality.0.curve.tpr", [0.1, 1.0], "does not rise from 0 to 1"),
        ("prediction", "quality.0.curve.tpr", [0.0, 1.0], "has 2 entries for"),
        ("prediction", "by_time.3.epoch", "six", "is a str, no finite number"),
        ("prediction", "by_layer.0", 3, "is an int, no object"),
        ("prediction", "stop.at_epoch", [0.0, 2.0, 1.0], "do not rise"),
        ("prediction", "stop.median_loss", [2.4], "has 1 entries for 7 at_step"),
        ("prediction", "stop.reached", "yes", "is a str, neither true nor false"),
        ("prediction", "canaries.0.flagged", 1.5, "is not between 0 and 1"),
        ("prediction", "smi", math.inf, "is a float, no finite number"),
        ("truth", "flip_rate", [0.1, 0.05], "has 2 entries, not value, low and high"),
        ("truth", "agreement.0.first", "loss", "is not one of 'lira', 'counterfactual', 'rmia'"),
        ("truth", "agreement.2.low", None, "is missing, no finite number"),
        ("truth", "scatter.lira", [0.5], "has 240 entries for 1 lira"),
        ("truth", "scatter.lira", [1.5] * 240, "has entries that are not between 0 and 1"),
        ("truth", "by_kind.1.rmia", "high", "is a str, no finite number"),
        ("truth", "persistence", 7, "is not between 0 and 1"),
        ("protect", "predictor", "oracle", "is not one of 'psmi'"),
        ("protect", "check.held", 1, "is an int, neither true nor false"),
        ("protect", "check.missed", 10**6, "is more than were memorised"),
        ("protect", "check.chance", 2.0, "is not between 0 and 1"),
        ("protect", "check.refuted", 1, "is an int, neither true nor false"),
        ("protect", "check", [], "is a list, no object"),
        ("protect", "samples.3.example", -1, "is an int, no whole number from 0"),
        ("protect", "samples.24.memorised", None, "is missing, neither true nor false"),
        ("verdict", "headline", 3, "is an int, no text"),
        ("task", "test_accuracy", "good", "is a str, no finite number"),
        ("scope", "tested", "all", "is a str, no list"),
    ],
)
def test_a_damaged_row_is_named_and_its_value_is_not(stored, name, path, value, words):
    place = stored[name]
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in way:
        place = place[part]
    place[last] = value
    with pytest.raises(RecordError) as caught:
        result_from(stored, PredictionResult, where="run")
    message = str(caught.value)
    assert message.startswith(f"run holds a malformed result '{name}': ")
    field = re.sub(r"\.(\d+)", r"[\1]", path)
    if "entries for" in words:
        field = re.escape(field.rsplit(".", 1)[0]) + r"\.\w+"
    else:
        field = re.escape(field)
    assert re.search(rf"{name}\.{field} ?{re.escape(words)}", message), message
    if isinstance(value, str):
        assert value not in message.removeprefix("run holds")


def test_all_faults_are_listed(read):
    with pytest.raises(RecordError) as caught:
        read(protect={"stated": "little", "runs": -1, "check": {"held": True}})
    for words in ("stated is a str", "runs is an int", "check.model is missing", "check.rate is"):
        assert words in str(caught.value)


def test_columns_must_be_equally_long_when_they_are_made():
    with pytest.raises(InvalidInput, match=r"^\.tpr has 2 entries for 3 fpr"):
        OperatingPoints(fpr=(0.0, 0.5, 1.0), tpr=(0.0, 1.0))
    with pytest.raises(InvalidInput, match=r"\.drop is not between 0 and 1; \.at_epoch do not"):
        EarlyStop(
            step=1,
            epoch=0.5,
            dropped=0.9,
            drop=95.0,
            reached=True,
            steps=2,
            epochs=1.0,
            at_step=(0, 1),
            at_epoch=(0.5, 0.5),
            median_loss=(2.0, 1.0),
            dropped_at=(0.0, 0.5),
        )
