"""What a run's own controls and searches say enters its verdict; models that learnt nothing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from remnant.measures import exposure_curve, forgetting_curve
from remnant.measures.verdict import Verdict
from remnant.plans import InjectPlan
from remnant.records import Record
from remnant.studies import Execution, run_study
from remnant.studies.forgetting import ForgettingStudy
from remnant.studies.gates import (
    put_verdict,
    with_negative_control,
    with_plan,
    with_residual_memory,
)
from remnant.studies.settings import AttackSettings, TrainingSettings

PASS = Verdict("PASS", "Under the limit.", "At most 0.55.", 0.6, 100.0)
FAIL = dataclasses.replace(PASS, outcome="FAIL", sentence="Above it.", claim="At least 0.7.")
BLIND = ForgettingStudy(
    plan=InjectPlan(
        canaries=24, step=20, repeats=1, watch_steps=100, trials=4, batch=32, fresh_canaries=True
    ),
    training=TrainingSettings(options={"lr": 1e-20}),
    attack=AttackSettings(success="auc", limit=0.7, lags=(10, 50, 100)),
)


def unplanted(shift):
    rng = np.random.default_rng(0)
    return forgetting_curve(
        seen_scores=shift + rng.normal(size=(2, 8, 100)),
        unseen_scores=rng.normal(size=(2, 8, 100)),
        lags=[10, 100],
        success="auc",
        rng=rng,
        draws=20,
    )


def test_one_pair_of_twins_shows_nothing():
    found = with_plan(PASS, trials=1, fresh_canaries=True)
    assert found.outcome == "INCONCLUSIVE"
    assert "one pair of twins cannot show" in found.claim
    assert with_plan(FAIL, trials=1, fresh_canaries=True) == FAIL
    assert with_plan(PASS, trials=8, fresh_canaries=True) == PASS
    same = with_plan(PASS, trials=8, fresh_canaries=False)
    assert same.outcome == "PASS"
    assert "all trainings planted the same canaries" in same.claim


def test_twins_at_chance_change_nothing():
    for verdict in (PASS, FAIL):
        assert with_negative_control(verdict, None) == verdict
        assert with_negative_control(verdict, unplanted(0.0)) == verdict


def test_a_fail_that_the_negative_control_shares_is_no_memory():
    found = with_negative_control(FAIL, unplanted(2.0))
    assert found.outcome == "INCONCLUSIVE"
    assert "the A/A twins, which never saw a canary, are distinguished too" in found.sentence
    assert found.claim.startswith("No claim: the A/A twins")
    above_chance = with_negative_control(FAIL, unplanted(0.25))
    assert above_chance.outcome == "FAIL"
    assert "A/A twins" in above_chance.claim
    assert with_negative_control(PASS, unplanted(2.0)).outcome == "PASS"


def test_the_negative_control_of_exposure_is_in_bits():
    rng = np.random.default_rng(0)
    curve = exposure_curve(
        canary_losses=rng.normal(size=(1, 8, 60)) - 3.0,
        reference_losses=rng.normal(size=(1, 8, 200)),
        lags=[10],
        rng=rng,
        draws=20,
    )
    bits = dataclasses.replace(FAIL, limit=2.0)
    assert with_negative_control(bits, curve).outcome == "INCONCLUSIVE"


def disturbance(reading, low, high):
    return {"label": "weight noise, 0.1", "reading": reading, "after_low": low, "after_high": high}


def searched(*rows, **returning):
    return {"hidden": {"disturbances": list(rows)}, "returning": returning}


@pytest.mark.parametrize(
    ("results", "outcome", "words"),
    [
        (searched(disturbance("still found", 0.62, 0.7)), "FAIL", "Residual memory: after weight"),
        (searched(disturbance("still found", 0.52, 0.58)), "PASS", "found after 1 of 1 disturb"),
        (searched(disturbance("not found", 0.4, 0.72)), "PASS", "may be up to 0.720, above the"),
        (
            searched(pvalue=0.01, returned=9, lost=40, chance_returned=2),
            "PASS",
            "9 of 40 lost canaries come back at a later checkpoint (2 by chance, p = 0.01)",
        ),
    ],
)
def test_residual_memory_fails_a_pass_or_is_named_by_it(results, outcome, words):
    found = with_residual_memory(PASS, results)
    assert found.outcome == outcome
    assert words in found.claim


def test_nothing_found_leaves_a_pass_alone():
    quiet = searched(
        disturbance("not found", 0.4, 0.58), pvalue=0.4, returned=2, lost=40, chance_returned=2
    )
    for results in ({}, quiet, {"hidden": {"absent": "not run"}, "returning": {"absent": "few"}}):
        assert with_residual_memory(PASS, results) == PASS
    loud = searched(disturbance("still found", 0.62, 0.7))
    assert with_residual_memory(FAIL, loud) == FAIL


def test_models_that_learnt_nothing_do_not_pass(tmp_path):
    run_study(BLIND, tmp_path / "run", Execution())
    results = Record.open(tmp_path / "run").results()
    assert results["verdict"]["outcome"] == "INCONCLUSIVE"
    assert "did not find the canaries" in results["verdict"]["claim"]
    assert results["verdict"]["rules"] == 2
    assert results["decision"]["safe_after"]["lag"] is None
    assert results["decision"]["protect_last"]["examples"] is None


def test_a_confidence_that_claims_nothing_is_absent(tmp_path):
    attack = dataclasses.replace(BLIND.attack, confidence=0.5)
    run_study(dataclasses.replace(BLIND, attack=attack), tmp_path / "run", Execution())
    verdict = Record.open(tmp_path / "run").results()["verdict"]
    assert "confidence=0.5 is not above one half" in verdict["absent"]


def test_a_verdict_is_put_once_it_is_judged():
    rows = {}

    class Kept:
        def put_result(self, name, row):
            rows[name] = row

    put_verdict(Kept(), lambda: PASS)
    assert rows["verdict"]["claim"] == PASS.claim
