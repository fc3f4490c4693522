"""Planted examples against controls: definitions, coverage, and how often the gate is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures.exposure.detection import detection
from remnant.studies.training_audit.own_examples import MeasuredExamples, examples_audit
from remnant.studies.training_audit.result import Overhead

SCORES = st.lists(st.integers(-4, 4), min_size=2, max_size=8)


@settings(max_examples=40, deadline=None)
@given(SCORES, st.lists(st.integers(-4, 4), min_size=10, max_size=14))
def test_agrees_with_its_definition(planted, controls):
    out = detection(
        scores=planted,
        control_scores=controls,
        repeats=np.ones(len(planted)),
        rng=np.random.default_rng(0),
        draws=20,
    )
    seen, unseen = np.array(planted), np.array(controls)
    wins = (seen[:, None] > unseen).mean() + (seen[:, None] == unseen).mean() / 2
    assert out.auc[0] == pytest.approx(wins)
    above = (unseen[None] >= seen[:, None]).sum(1)
    np.testing.assert_allclose(out.ranks.bits, np.log2((len(unseen) + 1) / (above + 1)))
    assert out.ranks.saturated.tolist() == (above == 0).tolist()


def test_levels_and_scores_before_training():
    rng = np.random.default_rng(1)
    before, level = rng.normal(0, 50, 60), rng.normal(0, 50, 40)
    repeats = np.repeat([4, 1], 30)
    rise = np.where(repeats == 4, 3.0, 0.0) + rng.normal(0, 1, 60)
    out = detection(
        scores=before + rise,
        control_scores=level + rng.normal(0, 1, 40),
        repeats=repeats,
        before=before,
        control_before=level,
        rng=rng,
    )
    assert out.calibrated
    assert out.repeats.tolist() == [1, 4]
    assert out.auc[1] > 0.95 > 0.7 > out.auc[0]
    assert out.p_values[1] < 0.001 < out.p_values[0]


def test_scores_that_are_all_alike_expose_nothing():
    out = detection(
        scores=np.zeros(20),
        control_scores=np.zeros(20),
        repeats=np.ones(20),
        rng=np.random.default_rng(0),
    )
    assert out.auc.tolist() == [0.5]
    assert out.ranks.bits.max() == 0
    assert out.p_values[0] == 1


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"scores": [1.0, np.nan]}, InvalidInput, "scores"),
        ({"repeats": [1.0]}, InvalidInput, "repeats has 1 entries for 2 scores"),
        ({"before": [1.0, 2.0]}, InvalidInput, "only one of before and control_before"),
        ({"control_scores": np.zeros(9)}, NotEnoughEvidence, "9 controls"),
    ],
)
def test_bad_input_is_named(changes, error, words):
    given = {"scores": [0.0, 1.0], "control_scores": np.arange(12.0), "repeats": [1, 1]}
    with pytest.raises(error, match=words):
        detection(**(given | changes), rng=np.random.default_rng(0))


@pytest.mark.parametrize("area", [0.5, 0.75])
def test_the_interval_covers_at_its_rate(area):
    rng = np.random.default_rng(2)
    shift = stats.norm.ppf(area) * np.sqrt(2)
    inside, runs = 0, 300
    for _ in range(runs):
        out = detection(
            scores=rng.normal(shift, 1, 30),
            control_scores=rng.normal(0, 1, 40),
            repeats=np.ones(30),
            rng=rng,
            draws=100,
        )
        inside += bool(out.auc_low[0] <= area <= out.auc_high[0])
    # 95 % of them, less three standard errors of so many runs.
    assert inside / runs > 0.95 - 3 * np.sqrt(0.95 * 0.05 / runs)


def outcomes(area, *, limit, runs=200, other=None, used=True, judged=None):
    """What the gate says of trainings whose groups have these AUCs in truth."""
    rng = np.random.default_rng(3)
    said = []
    for number in range(runs):
        shifts = [stats.norm.ppf(a) * np.sqrt(2) for a in (area, area if other is None else other)]
        repeats = np.repeat([1, 8], 30)
        planted = rng.normal(np.repeat(shifts, 30), 1)
        scores = np.concatenate([planted, rng.normal(0, 1, 50)])
        uses = np.column_stack([np.zeros(60), np.arange(60), repeats]).astype(np.int64)
        measured = MeasuredExamples(
            kind="texts",
            repeats=repeats,
            controls=50,
            drawn=True,
            scores={0: np.zeros(110), 10: scores},
            score="a number",
            final=10,
            uses=uses if used else uses[:0],
            context=0,
            overhead=Overhead(
                scored=2, skipped=0, scoring_seconds=0, training_seconds=1, allowed=None
            ),
            data="made-up rows",
            seed=number,
        )
        said.append(examples_audit(measured, limit=limit, judged=judged).verdict.outcome)
    return {name: said.count(name) / runs for name in ("PASS", "FAIL", "INCONCLUSIVE")}


def test_a_model_that_learnt_nothing_seldom_passes():
    # The positive control errs with 2.5 % at most; three standard errors more.
    said = outcomes(0.5, limit=0.9)
    assert said["PASS"] < 0.025 + 3 * np.sqrt(0.025 * 0.975 / 200)
    assert said["FAIL"] == 0


def test_a_model_at_the_limit_seldom_passes_or_fails():
    said = outcomes(0.75, limit=0.75)
    allowed = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert said["PASS"] < allowed
    assert said["FAIL"] < allowed


def test_judged_examples_pass_beside_a_positive_control():
    said = outcomes(0.5, limit=0.8, other=0.99, judged=1)
    assert said["PASS"] > 0.9
    assert said["FAIL"] == 0


def test_what_is_far_above_the_limit_fails():
    assert outcomes(0.5, limit=0.7, other=0.97)["FAIL"] > 0.95


def test_examples_that_were_in_no_batch_are_inconclusive():
    assert outcomes(0.7, limit=0.95, used=False, runs=5)["INCONCLUSIVE"] == 1
