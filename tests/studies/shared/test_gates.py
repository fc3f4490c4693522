"""What a run's own controls and searches say enters its verdict; models that learnt nothing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from remnant.errors import PlanError
from remnant.measures import exposure_curve, forgetting_curve
from remnant.measures.forgetting.verdict import Verdict
from remnant.plans import InjectPlan
from remnant.records import Record, gate_row
from remnant.records.outcomes import RULES
from remnant.studies import Execution, run_study
from remnant.studies.choices.recipe import LimitedMeasureSettings, TrainedMeasureSettings
from remnant.studies.features.recipe import ScoreSettings
from remnant.studies.forgetting.recipe import AttackSettings, ForgettingStudy
from remnant.studies.forgetting.text_recipe import TextAttackSettings
from remnant.studies.one_run.recipe import OneRunSettings
from remnant.studies.shared.gates import (
    not_learnt,
    put_verdict,
    with_learnt_task,
    with_lost_attackers,
    with_negative_control,
    with_plan,
    with_residual_memory,
)
from remnant.studies.shared.settings import TrainingSettings

PASS = Verdict("PASS", "Under the limit.", "At most 0.55.", 0.6, 100.0)
FAIL = dataclasses.replace(PASS, outcome="FAIL", sentence="Above it.", claim="At least 0.7.")
BLIND = ForgettingStudy(
    plan=InjectPlan(
        canaries=24, step=20, repeats=1, watch_steps=100, trials=4, batch=32, fresh_canaries=True
    ),
    training=TrainingSettings(options={"lr": 1e-20}),
    attack=AttackSettings(success="auc", limit=0.95, lags=(10, 50, 100)),
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


@pytest.mark.parametrize(("trials", "count"), [(1, "one trial"), (2, "2 trials")])
def test_one_or_two_trials_pass_nothing(trials, count):
    found = with_plan(PASS, trials=trials, fresh_canaries=True)
    assert found.outcome == "INCONCLUSIVE"
    assert f"{count} cannot show whether models differ by memory" in found.claim
    assert "run 8 trials" in found.sentence


def test_the_plan_stands_beside_a_verdict():
    open_one = dataclasses.replace(PASS, outcome="INCONCLUSIVE", claim="No claim: too few.")
    for trials in (3, 4):
        found = with_plan(open_one, trials=trials, fresh_canaries=True)
        assert (
            f"With {trials} trials no gate is likely to be decided: run 8 or more."
            in found.sentence
        )
    assert with_plan(open_one, trials=5, fresh_canaries=True) == open_one
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
    assert "unplanted twins, which never saw a canary, are distinguished too" in found.sentence
    assert found.claim.startswith("No claim: unplanted twins")
    above_chance = with_negative_control(FAIL, unplanted(0.25))
    assert above_chance.outcome == "FAIL"
    assert "unplanted twins" in above_chance.claim
    assert with_negative_control(PASS, unplanted(2.0)).outcome == "PASS"


def test_a_pass_whose_negative_control_is_below_chance_is_none():
    """What scores too low in models that never saw it hides memory."""
    found = with_negative_control(PASS, unplanted(-1.0))
    assert found.outcome == "INCONCLUSIVE"
    assert "the same comparison is below chance" in found.claim
    assert with_negative_control(FAIL, unplanted(-1.0)).outcome == "FAIL"


def test_an_attacker_that_was_not_measured_leaves_no_pass():
    found = with_lost_attackers(PASS, {"none": "8 are too few"})
    assert found.outcome == "INCONCLUSIVE"
    assert found.claim.startswith("No claim: another attacker was not measured (calibrated by none")
    assert with_lost_attackers(FAIL, {"none": "8 are too few"}) == FAIL
    assert with_lost_attackers(PASS, {}) == PASS


def test_the_claim_and_the_line_of_controls_agree_on_the_negative_control():
    def shift_to(low):
        """The smallest shift at which this bound of the twins is above chance."""
        return next(s for s in np.linspace(0, 0.5, 101) if low(unplanted(s)) > 0.5)

    one_sided = shift_to(lambda twins: twins.evidence.lower(twins.confidence)[-1])
    two_sided = shift_to(lambda twins: twins.low[-1])
    assert one_sided < two_sided
    assert with_negative_control(FAIL, unplanted(one_sided)) == FAIL
    assert "unplanted twins" in with_negative_control(FAIL, unplanted(two_sided)).claim


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


def exposed(reading, low, high):
    """A disturbance of sequences: AUC far above a limit in bits is no reason to fail."""
    bits = {"exposure": (low + high) / 2, "exposure_low": low, "exposure_high": high}
    return disturbance(reading, 0.99, 1.0) | bits


@pytest.mark.parametrize(
    ("row", "outcome", "words"),
    [
        (exposed("comes back", 3.2, 5.0), "FAIL", "mean exposure is at least 3.20 bits, above"),
        (exposed("still found", 1.9, 2.6), "PASS", "found after 1 of 1 disturbances"),
        (exposed("not found", 1.0, 4.0), "PASS", "mean exposure may be up to 4.00 bits, above"),
    ],
)
def test_residual_memory_of_sequences_is_held_against_a_limit_in_bits(row, outcome, words):
    found = with_residual_memory(dataclasses.replace(PASS, limit=3.0), searched(row))
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
    assert "did not learn their task" in results["verdict"]["sentence"]
    assert results["verdict"]["rules"] == RULES == 3
    assert results["decision"]["safe_after"]["lag"] is None
    assert results["decision"]["protect_last"]["examples"] is None


def test_a_confidence_that_claims_nothing_is_refused():
    for section, name in (
        (BLIND.attack, "attack"),
        (OneRunSettings(), "attack"),
        (TextAttackSettings(), "attack"),
        (ScoreSettings(), "score"),
        (LimitedMeasureSettings(), "measure"),
    ):
        with pytest.raises(PlanError, match=f"{name}.confidence=0.55 is under 0.8, the least"):
            dataclasses.replace(section, confidence=0.55)
    assert TrainedMeasureSettings(confidence=0.55).confidence == 0.55  # judges nothing


def test_a_verdict_is_put_once_it_is_judged():
    rows = {}

    class Kept:
        def put_result(self, name, row):
            rows[name] = row

    put_verdict(Kept(), lambda: PASS)
    assert rows["verdict"]["claim"] == PASS.claim


UNTRAINED = {"test_accuracy": 0.112, "test_examples": 297, "majority": 0.131}
TRAINED = UNTRAINED | {"test_accuracy": 0.95}
GUESSING = {"validation_bits": 6.71, "uniform_bits": 6.6, "token": "character"}
DEAF = {
    "character_error_rate": 0.92,
    "word_error_rate": 1.0,
    "swapped_error_rate": 0.93,
    "utterances": 40,
    "p_value": 0.3,
}


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (
            UNTRAINED,
            "test accuracy is 11.2% (at least 8.3% with 95% confidence, 297 test examples)",
        ),
        (UNTRAINED, "always naming the commonest class gives 13.1%"),
        (GUESSING, "a validation character costs 6.71 bits, and a uniform guess 6.60 bits"),
        (DEAF, "what they hear of 40 validation utterances is no nearer to what was said"),
    ],
)
def test_a_pass_of_models_that_did_not_learn_their_task_is_none(task, said):
    row = gate_row(**dataclasses.asdict(PASS))
    found = with_learnt_task(row, task)
    assert found["outcome"] == "INCONCLUSIVE"
    assert "did not learn their task" in found["claim"]
    assert said in found["claim"]
    assert said in found["sentence"]
    assert found["sentence"].endswith("Train longer, or with another learning rate.")
    failed = gate_row(**dataclasses.asdict(FAIL))
    assert with_learnt_task(failed, task) == failed
    undecided = row | {"outcome": "INCONCLUSIVE"}
    named = with_learnt_task(undecided, task)
    assert (named["outcome"], named["claim"]) == ("INCONCLUSIVE", undecided["claim"])
    assert named["sentence"].startswith(f"{undecided['sentence']} Besides, the models did not")
    assert said in named["sentence"]


def test_a_pass_stays_where_the_task_was_learnt_or_not_measured():
    row = gate_row(**dataclasses.asdict(PASS))
    learnt = GUESSING | {"validation_bits": 2.3}
    for task in (TRAINED, learnt, {}, UNTRAINED | {"majority": None}):
        assert with_learnt_task(row, task) == row


def test_the_accuracy_of_a_guess_is_rarely_taken_for_a_learnt_task():
    """The bound is one-sided at 95 %: right answers by chance pass at most one time in twenty."""
    rng = np.random.default_rng(0)
    right = rng.binomial(200, 0.3, size=2000) / 200
    tasks = [{"test_accuracy": one, "test_examples": 200, "majority": 0.3} for one in right]
    assert np.mean([not not_learnt(task) for task in tasks]) <= 0.05


def test_a_run_that_found_its_canaries_but_learnt_nothing_does_not_pass(tmp_path):
    """So small a learning rate moves the canaries a little and leaves accuracy at a guess."""
    plan = InjectPlan(
        canaries=32, step=50, watch_steps=400, trials=8, batch=64, fresh_canaries=True
    )
    study = ForgettingStudy(
        plan=plan,
        training=TrainingSettings(options={"lr": 1e-5}),
        attack=AttackSettings(limit=0.75, lags=(1, 10, 100, 400)),
    )
    run_study(study, tmp_path / "run", Execution())
    results = Record.open(tmp_path / "run").results()
    verdict = results["verdict"]
    assert verdict["outcome"] == "INCONCLUSIVE"
    assert "did not learn their task" in verdict["sentence"]
    assert results["decision"]["safe_after"]["lag"] is None
