"""What a record keeps of a decision: numbers where a law describes the curve, reasons elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.measures import forgetting_curve
from remnant.records.typed import load, plain
from remnant.report.numerals import percent
from remnant.studies.forgetting.decision_blocks import answers
from remnant.studies.forgetting.measure import decide
from remnant.studies.forgetting.result import Decision
from remnant.studies.shared.curves import Ends, Unmeasured

LAGS = np.array([0.0, 25, 50, 100, 200, 400])


def decided(shift):
    """The decision about scores of eight models, whose planted examples score higher by shift."""
    rng = np.random.default_rng(0)
    curve = forgetting_curve(
        seen_scores=np.asarray(shift)[:, None, None] + rng.normal(size=(6, 8, 100)),
        unseen_scores=rng.normal(size=(6, 8, 100)),
        lags=LAGS,
        success="auc",
        rng=rng,
        draws=60,
    )
    return decide(curve, limit=0.62, batch=64)


def read_again(decision):
    faults: list[str] = []
    read = load(Decision, plain(decision), "decision", faults)
    assert faults == []
    return read


def asked(decision):
    """The answers beyond the safe lag and what to protect, by their questions."""
    return {row.question: row for row in list(answers(decision, percent))[2:]}


def test_a_decay_has_a_half_life_and_no_reason():
    decision = decided(3.0 * np.exp(-LAGS / 60))
    half = decision.decay.half_life
    assert half.low < half.value < half.high < LAGS[-1]
    assert "reason" not in plain(half)
    assert read_again(decision) == decision
    row = asked(decision)["How long until half of the fall is over?"]
    assert row.answer == f"{half.value:.0f} steps ({half.low:.0f} to {half.high:.0f})"


def test_a_curve_that_rises_first_has_neither_half_life_nor_forecast():
    decision = decided([1.0, 2.5, 3.0, 2.0, 0.3, 0.0])
    assert isinstance(decision.decay, Unmeasured)
    assert decision.decay == decision.forecast
    assert decision.decay.reason.startswith("Success rises first: it is 0.")
    assert read_again(decision) == decision
    (row,) = asked(decision).values()
    assert (row.answer, row.because) == ("not measured", decision.decay.absent)


def test_a_half_life_beyond_the_last_lag_is_a_reason_beside_a_forecast():
    decision = decided(2.0 * np.exp(-LAGS / 800))
    assert decision.decay.shown
    reason = "Half of the fall is not over at the last lag, 400"
    assert decision.decay.half_life == Ends(value=None, low=None, high=None, reason=reason)
    assert read_again(decision) == decision
    row = asked(decision)["How long until half of the fall is over?"]
    assert row.answer == "not known"
    assert row.because.startswith(f"{reason}. ")
    assert decision.forecast.beyond


def test_a_flat_curve_has_no_half_life():
    leaves = decided([1.0] * 6)
    assert leaves.decay == leaves.forecast == Unmeasured(absent="No fall is shown.")
    inside = decided([1.0, 1.0, 0.95, 0.9, 0.85, 0.7])
    assert not inside.decay.shown
    assert inside.decay.half_life.reason == "No fall is shown"
    for decision, answer in ((leaves, "not measured"), (inside, "no fall shown")):
        (row,) = asked(decision).values()
        assert row.answer == answer
        assert row.because.startswith(("No fall is shown.", "No fall was shown"))


@pytest.mark.parametrize("half_life", [2453212.0, 41.6])
def test_a_half_life_of_an_older_record_is_read(half_life):
    row = plain(decided(3.0 * np.exp(-LAGS / 60)))
    row["decay"]["half_life"] = {"value": half_life, "low": 0.0, "high": None}
    faults: list[str] = []
    read = load(Decision, row, "decision", faults)
    assert faults == []
    assert read.decay.half_life == Ends(value=half_life, low=0.0, high=None)
