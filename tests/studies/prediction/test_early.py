"""The result and the page of ``remnant predict``."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from remnant.cli.output import command_page
from remnant.measures import cross_entropy, logit_gap
from remnant.records.typed import plain
from remnant.report.blocks import Table, walk
from remnant.report.terminal import detail
from remnant.studies.prediction.early_measure import (
    ListRule,
    SampleAnswers,
    early_prediction,
    early_result,
    layer_predictions,
    sample_rows,
)
from remnant.studies.prediction.early_page import TITLE, UNKNOWN, early_blocks

N = 120


def answers(*, logits=True, start=None):
    """Hidden states of three classes, some samples with the label of another one."""
    rng = np.random.default_rng(0)
    labels = np.arange(N) % 3
    hidden = np.eye(3)[labels] * 4 + rng.normal(size=(N, 3))
    labels = np.where(np.arange(N) < 12, (labels + 1) % 3, labels)
    losses = cross_entropy(hidden, labels) if logits else None
    return SampleAnswers(
        labels=labels,
        hidden=(hidden, hidden[:, :2]),
        layers=("last", "first"),
        predicted=hidden.argmax(axis=1) if logits else None,
        losses=losses,
        logit_gaps=logit_gap(hidden, labels) if logits else None,
        start_losses=None if start is None else np.full(N, start),
        name=int,
    )


def prediction(given, *, truth=None, **rule):
    layers = layer_predictions(given, directions=50, list_alone=False, seed=0)
    return early_prediction(given, layers, ListRule(**{"by": "psmi"} | rule), truth, seed=0)


def test_the_result_holds_what_json_prints():
    early = prediction(answers(start=9.0), top=20, truth=np.arange(N) < 12)
    result = early_result(early)
    printed = json.loads(json.dumps(plain(result), allow_nan=False))
    assert list(printed) == [
        *("n", "classes", "accuracy", "layers", "stop", "by", "rule", "listed", "share"),
        *("riskiest", "truth", "miss_rate_unknown", "warnings", "out"),
    ]
    assert (printed["n"], printed["classes"], printed["listed"]) == (N, 3, 20)
    assert printed["rule"] == "the riskiest 20 by PSMI"
    assert list(printed["stop"]) == [
        *("start_median_loss", "median_loss", "dropped", "drop", "reached")
    ]
    assert list(printed["truth"]) == [
        *("memorised", "auc", "fpr_at_tpr", "tpr", "confidence", "missed", "miss_rate"),
        "listed_and_memorised",
    ]
    missed = 12 - printed["truth"]["listed_and_memorised"]
    assert printed["truth"]["missed"] == missed
    assert printed["truth"]["miss_rate"][0] == missed / 12
    rows = sample_rows(early)
    assert [row["rank"] for row in printed["riskiest"]] == list(range(1, 11))
    assert all(rows[row["index"]] == row for row in printed["riskiest"])
    assert {"psmi", "psmi:first", "mahalanobis:first"} <= set(rows[0])
    assert sum(row["listed"] for row in rows) == 20


def test_what_is_not_known_has_a_reason():
    bare = plain(early_result(prediction(answers(logits=False))))
    assert bare["stop"] == {"absent": "losses are not known without logits"}
    assert bare["truth"] == {"absent": "no --memorised was given"}
    assert (bare["accuracy"], bare["miss_rate_unknown"]) == (None, True)
    assert bare["riskiest"][0]["loss"] is None
    no_start = plain(early_result(prediction(answers())))["stop"]
    assert no_start["absent"] == "no --start was given"
    assert no_start["median_loss"] == pytest.approx(np.median(answers().losses))


def test_the_page_shows_every_number_of_the_summary():
    given = answers(start=0.1)
    result = early_result(prediction(given, top=4, truth=np.arange(N) < 12))
    text = detail(command_page(TITLE, early_blocks(result)))
    lines = text.splitlines()
    assert lines[0].startswith(f"{N} samples, 3 classes; the model gives ")
    for layer in result.layers:
        size = f"{layer.features} features"
        assert f"{layer.layer}: {size}, SMI {layer.smi:.3f} nats" in lines
    assert f"warning, {result.warnings[0]}" in lines
    assert result.warnings[0].startswith("too early: ")
    assert "predicted to be memorised: 4 of 120 (3.3 %): the riskiest 4 by PSMI" in lines
    truth = result.truth
    for name, numbers in (
        ("AUC", truth.auc),
        ("FPR at a TPR of 75 %", truth.fpr_at_tpr),
        ("missed by the list", truth.miss_rate),
    ):
        value, low, high = (f"{number:.3f}" for number in numbers)
        assert f"{name}: {value} ({low} to {high})" in text
    assert f"({truth.missed} of 12)" in text
    assert UNKNOWN not in text
    (table,) = (block for block in walk(early_blocks(result)) if isinstance(block, Table))
    assert [row["rank"] for row in table.rows] == [1, 2, 3, 4], "no more than are listed"


def test_without_a_list_the_riskiest_are_shown():
    result = early_result(prediction(answers(logits=False)))
    none = replace(result, listed=0)
    assert len(none.shown) == 10
    assert UNKNOWN in detail(command_page(TITLE, early_blocks(none)))
    assert "–" in detail(command_page(TITLE, early_blocks(none))), "losses are not known"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (ListRule(by="psmi"), "PSMI at or under 0"),
        (ListRule(by="loss", share=0.125), "the riskiest 12.5 % by loss"),
        (ListRule(by="mahalanobis", top=1500), "the riskiest 1 500 by Mahalanobis"),
    ],
)
def test_the_rule_in_words(rule, text):
    assert rule.text == text
