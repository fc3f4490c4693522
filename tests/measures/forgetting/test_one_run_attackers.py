"""One run against reference models: definitions, error rates, and who has to be excluded."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from remnant.errors import InvalidInput
from remnant.measures.forgetting.one_run_attackers import MODEL_ALONE, TWO_CHECKPOINTS
from remnant.measures.statistics.success import trial_success

PATH = Path(__file__).parents[3] / "benchmarks" / "one_run_references.py"
SPEC = importlib.util.spec_from_file_location("one_run_references", PATH)
BENCHMARK = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(BENCHMARK)
LAST, PLANTED, STEPS = BENCHMARK.LAST, BENCHMARK.PLANTED, BENCHMARK.STEPS
LIMIT = BENCHMARK.LIMIT
NOTHING, FORGOTTEN, AT_LIMIT, KEPT = BENCHMARK.RUNS.values()
measured, simulated = BENCHMARK.measured, BENCHMARK.simulated


def verdicts(shifts, *, audits=200, limit=LIMIT, alone=False, seed=0, **choices):
    rng, judged = np.random.default_rng(seed), []
    for _ in range(audits):
        scores, references = simulated(rng, shifts, **choices)
        judged.append(measured(rng, scores, None if alone else references).verdict(limit))
    return judged


def shares(judged):
    outcomes = [verdict.outcome for verdict in judged]
    return {name: outcomes.count(name) / len(outcomes) for name in ("PASS", "FAIL")}


def at_most(count, audits, rate):
    return stats.binomtest(count, audits, rate, alternative="greater").pvalue > 0.001


def auc(scores):
    return trial_success(scores[PLANTED], scores[~PLANTED], success="auc", fpr=0.1)


@pytest.mark.parametrize(("models", "divided"), [(1, False), (3, False), (4, True), (8, True)])
def test_scores_against_references_are_the_definition(models, divided):
    rng = np.random.default_rng(0)
    scores, references = simulated(rng, KEPT, models=models)
    out = measured(rng, scores, references)
    less = scores - references.mean(axis=1)
    if divided:
        less /= references.std(axis=1, ddof=1)
    np.testing.assert_allclose(out.success, [auc(row) for row in less[1:]])
    assert out.references == models
    assert not out.calibrated
    said = f"an attacker with {models} reference model"
    assert out.attacker.startswith(said)
    others = {other.name: other.success[0] for other in out.evidence.others}
    assert others == {
        MODEL_ALONE: pytest.approx(auc(scores[-1])),
        TWO_CHECKPOINTS: pytest.approx(auc(scores[-1] - scores[0])),
    }


def test_one_table_of_references_serves_all_checkpoints():
    rng = np.random.default_rng(0)
    scores, references = simulated(rng, KEPT)
    table = references[-1]
    one = measured(np.random.default_rng(1), scores, table)
    each = measured(np.random.default_rng(1), scores, np.stack([table] * len(STEPS)))
    np.testing.assert_array_equal(one.success, each.success)
    np.testing.assert_array_equal(one.high, each.high)


def test_copies_of_a_reference_are_one_model():
    rng = np.random.default_rng(0)
    scores, references = simulated(rng, KEPT, models=1)
    one = measured(np.random.default_rng(1), scores, references)
    copied = measured(np.random.default_rng(1), scores, references.repeat(6, axis=1))
    assert copied.references == 1
    np.testing.assert_allclose(copied.success, one.success)


def test_a_constant_of_an_example_in_all_models_changes_nothing():
    rng = np.random.default_rng(0)
    scores, references = simulated(rng, KEPT)
    constant = 2.0 ** rng.integers(0, 6, LAST.size)
    one = measured(np.random.default_rng(1), scores, references)
    moved = measured(np.random.default_rng(1), scores + constant, references + constant)
    np.testing.assert_allclose(one.success, moved.success)
    np.testing.assert_allclose(one.high, moved.high)


@pytest.mark.parametrize("models", [1, 3, 8])
def test_a_run_that_learnt_nothing_seldom_passes_and_never_fails(models):
    judged = verdicts(NOTHING, models=models, audits=120)
    outcomes = [verdict.outcome for verdict in judged]
    assert at_most(outcomes.count("PASS"), len(outcomes), 0.025)
    assert "FAIL" not in outcomes


def test_a_run_at_the_limit_is_judged_wrongly_at_the_nominal_rate():
    outcomes = [verdict.outcome for verdict in verdicts(AT_LIMIT, audits=200)]
    assert at_most(outcomes.count("PASS"), len(outcomes), 0.05)
    assert at_most(outcomes.count("FAIL"), len(outcomes), 0.05)


def test_a_leak_that_two_checkpoints_miss_is_found_against_references():
    """A PASS of two checkpoints would be about an attacker who looks away."""
    assert shares(verdicts(KEPT, alone=True, audits=60))["PASS"] > 0.75
    assert shares(verdicts(KEPT, audits=60)) == {"PASS": 0.0, "FAIL": pytest.approx(1.0, abs=0.1)}
    assert shares(verdicts(KEPT, models=3, audits=60))["PASS"] == 0.0


def test_what_is_forgotten_passes_for_every_attacker():
    """Chance puts each attacker below chance in 5 %, which keeps a PASS back."""
    judged = verdicts(FORGOTTEN, audits=120)
    assert shares(judged)["PASS"] > 0.75
    claim = next(verdict.claim for verdict in judged if verdict.outcome == "PASS")
    assert "of an attacker with 8 reference models trained without these examples is " in claim
    assert f"The same holds for {MODEL_ALONE} (at most " in claim
    assert f"and {TWO_CHECKPOINTS} (at most " in claim


def test_the_model_alone_has_to_be_excluded_too():
    """A first checkpoint that is mostly noise hides from the difference what scores show."""
    rng = np.random.default_rng(0)
    scores = np.array([0.0, 60.0, 2.0, 2.0, 2.0])[:, None] * PLANTED
    scores = scores + rng.normal(size=scores.shape)
    scores[0] += 20.0 * rng.normal(size=LAST.size)
    judged = measured(rng, scores).verdict(LIMIT)
    assert judged.outcome == "INCONCLUSIVE"
    assert f"the AUC of {TWO_CHECKPOINTS} is 0.490 on" in judged.sentence
    assert f"not shown to be within the limit of 0.7 for {MODEL_ALONE}" in judged.claim
    assert measured(rng, scores, calibrate=False).verdict(LIMIT).outcome == "FAIL"


@pytest.mark.parametrize("who", [slice(None), 0, slice(0, 4)])
def test_references_that_saw_the_canaries_make_no_pass(who):
    judged = verdicts(FORGOTTEN, saw=4.0, who=who, audits=40)
    assert shares(judged) == {"PASS": 0.0, "FAIL": 0.0}
    said = "planted canaries score higher in a reference model than chance allows"
    assert any(said in verdict.claim for verdict in judged)


def test_references_hide_no_more_than_other_attackers_find():
    """Each reference remembers the canaries as well as the run does, so all scores look usual."""
    beside = shares(verdicts(KEPT, saw=1.8, audits=60))["PASS"]
    assert beside < shares(verdicts(KEPT, alone=True, audits=60))["PASS"]


def test_references_that_saw_the_controls_make_no_fail():
    judged = verdicts(NOTHING, saw_controls=4.0, audits=40)
    assert shares(judged) == {"PASS": 0.0, "FAIL": 0.0}
    assert sum("controls score higher in a reference" in verdict.claim for verdict in judged) > 35
    assert "Pass reference models that never saw these examples" in judged[0].sentence


@pytest.mark.parametrize("models", [1, 8])
def test_honest_references_are_suspected_at_five_percent(models):
    rng, audits = np.random.default_rng(3), 120
    faults = sum(
        bool(measured(rng, *simulated(rng, KEPT, models=models)).evidence.reference_fault.reason)
        for _ in range(audits)
    )
    assert at_most(faults, audits, 0.05)


def test_clusters_of_examples_are_no_reason_to_suspect_references():
    """Ten examples of a cluster share their difficulty, and are planted together or not at all."""
    rng, clusters, audits = np.random.default_rng(4), np.arange(LAST.size) // 10, 80
    faults = {"given": 0, "not given": 0}
    for _ in range(audits):
        shared = rng.normal(size=20).repeat(10)
        references = 3.0 * shared + 0.5 * rng.normal(size=(8, LAST.size))
        scores = rng.normal(size=(len(STEPS), LAST.size))
        for name, groups in (("given", clusters), ("not given", None)):
            out = measured(rng, scores, references, groups=groups, draws=20)
            faults[name] += bool(out.evidence.reference_fault.reason)
    assert at_most(faults["given"], audits, 0.05)
    assert faults["not given"] > 20


@pytest.mark.parametrize(
    ("references", "words"),
    [
        (np.zeros((8, 199)), r"not \(models, 200\) or \(5, models, 200\)"),
        (np.zeros((4, 8, 200)), r"has the shape \(4, 8, 200\)"),
        (np.zeros(200), r"has the shape \(200,\)"),
        (np.full((8, 200), np.nan), "references holds 1600 value"),
        ("models", "references is not an array of numbers"),
    ],
)
def test_faulty_references_are_named(references, words):
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInput, match=words):
        measured(rng, simulated(rng, KEPT)[0], references)
