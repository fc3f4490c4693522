"""From reactions to scores, and from scores to a verdict."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from remnant import FeaturePlan
from remnant.measures.features.feature_score import member_scores
from remnant.measures.statistics.crossed_interval import crossed_mean, crossed_share
from remnant.records import Record
from remnant.records.typed import plain
from remnant.studies.features.measure import NO_CANARY, variant_result
from remnant.studies.features.recipe import FeatureStudy, ScoreSettings
from remnant.studies.features.result import (
    Canary,
    Models,
    Spread,
    VariantResult,
    WhiteBox,
)
from remnant.studies.features.verdict import feature_gate, feature_scope
from remnant.studies.shared.estimates import Estimate

NULLS, IMAGES = 39, 12


@pytest.fixture
def told(tmp_path):
    """What a variant shows of made-up reactions, and the scores of its members."""

    def tell(plan, high, confidence=0.95):
        rng = np.random.default_rng(5)
        record = Record.create(
            tmp_path / f"run{len(list(tmp_path.iterdir()))}",
            question="unique-features",
            plan={},
            plan_fingerprint="p",
            data_fingerprint="d",
            execution={},
            provenance={},
        )
        lift = np.zeros((plan.members, 1))
        lift[plan.grid, 0] = rng.exponential(0.05, plan.canaries)
        arrays = {
            "unique": rng.normal(0.5, 0.1, (plan.members, IMAGES)) + lift,
            "controls": rng.normal(0.5, 0.1, (plan.members, IMAGES)),
            "redrawn": rng.normal(0.5, 0.02, (plan.members, 2)),
            "null_means": rng.normal(0.5, 0.03, (plan.members, NULLS)),
            "white_box": rng.normal(0, 1, (plan.members, plan.canaries)),
            "test_accuracy": rng.uniform(0.9, 0.95, plan.members),
            "updates": np.full(plan.members, 12),
        }
        for name, array in arrays.items():
            record.put_array(f"plain.{name}", array)
        record.put_array("canaries.places", np.arange(plan.canaries))
        record.put_array("canaries.labels", np.arange(plan.canaries))
        study = FeatureStudy(plan=plan, score=ScoreSettings(nulls=NULLS, confidence=confidence))
        variant = variant_result(
            study, record, "plain", label="plain", changes="", high=high, epoch=6
        )
        scores = member_scores(arrays["unique"], arrays["controls"], arrays["null_means"])
        return plain(variant), scores

    return tell


@pytest.mark.parametrize(
    ("high", "confidence"),
    [
        ([True, True, True, False, False], 0.95),
        ([False, True, False, True, True], 0.8),
        ([True, True, True, True, False], 0.95),  # of one canary: over seeds only
    ],
)
def test_each_half_is_its_own_canaries_beside_their_twins(told, high, confidence):
    plan = FeaturePlan(canaries=5, seeds=3, unplanted=2)
    found, scores = told(plan, np.array(high), confidence)
    assert set(found["by_influence"]) == {"high", "low"}
    for name, half in found["by_influence"].items():
        mine = [canary for canary in range(5) if high[canary] == (name == "high")]
        hits, m, beyond = [], [], []
        for seed in range(3):  # seed by seed: five canaries, then their twin
            members = [6 * seed + canary for canary in mine]
            hits.append([bool(scores.p_value[one] <= 0.05) for one in members])
            m.append([scores.value[one] for one in members])
            beyond.append([scores.value[one] - scores.value[6 * seed + 5] for one in members])
        assert half["canaries"] == len(mine)
        assert half["n"] == 3 * len(mine)
        for key, interval in (
            ("share_significant", crossed_share(hits, confidence=confidence)),
            ("mean", crossed_mean(m, confidence=confidence)),
            ("beyond_m", crossed_mean(beyond, confidence=confidence)),
        ):
            value, low, top = half[key]
            assert [value, low, top] == pytest.approx([interval.value, interval.low, interval.high])
            assert low <= value <= top
        assert half["beyond_m"][0] == pytest.approx(np.mean(beyond))
        assert half["share_significant"][0] == np.mean(hits)


def test_both_halves_together_are_all_canaries(told):
    plan = FeaturePlan(canaries=5, seeds=2, unplanted=2)
    found, _ = told(plan, np.arange(5) < 3)
    halves = found["by_influence"].values()
    assert sum(half["n"] for half in halves) == found["planted"]["n"]
    for key, whole in (
        ("beyond_m", found["beyond_m"]),
        ("mean", found["planted"]["mean"]),
        ("share_significant", found["planted"]["share_significant"]),
    ):
        weighed = sum(half["n"] * half[key][0] for half in halves) / found["planted"]["n"]
        assert weighed == pytest.approx(whole[0])


def test_canaries_chosen_at_random_have_no_halves(told):
    found, _ = told(FeaturePlan(canaries=4, seeds=2, unplanted=2), None)
    assert found["by_influence"] is None


def test_one_canary_leaves_the_low_half_with_a_reason(told):
    found, _ = told(FeaturePlan(canaries=1, seeds=2, unplanted=2), np.array([True]))
    halves = found["by_influence"]
    assert halves["low"] == {"absent": NO_CANARY}
    assert halves["high"]["beyond_m"] == found["beyond_m"]
    assert halves["high"]["share_significant"] == found["planted"]["share_significant"]
    assert np.isfinite([halves["high"][key] for key in ("mean", "beyond_m")]).all()


STUDY = FeatureStudy(plan=FeaturePlan(), score=ScoreSettings(limit=0.1))


ZERO = Estimate(0.0, 0.0, 0.0)


def models(n, *share):
    share = Estimate(*share)
    return Models(
        n=n,
        share_positive=share,
        share_significant=share,
        share_t_test=share,
        mean_positive=None,
        mean=ZERO,
        largest=0.0,
    )


def variant(*beyond, **changes):
    """A variant of which the share beyond unplanted models is this."""
    made = VariantResult(
        name="plain",
        what="mlp1 on digits",
        changes="",
        test_accuracy=Estimate(0.9, 0.85, 0.95),
        stopped_epoch=ZERO,
        members=41,
        blind=0,
        planted=models(30, 0.6, 0.3, 0.8),
        unplanted=models(11, 0.1, 0.0, 0.4),
        beyond=Estimate(*beyond),
        beyond_m=ZERO,
        by_influence=None,
        white_box=WhiteBox(planted=ZERO, twins=ZERO, largest=0.0),
        by_canary=(
            Canary(
                example=0, label=0, high=None, influence=None, m=(0.0,), p=(1.0,), twin_m=(0.0,)
            ),
        ),
        spread=Spread(seeds=0.0, canaries=None, patches=None, sign_changes=0.0),
        through=None,
        influence=None,
        activations=None,
    )
    return dataclasses.replace(made, **changes)


def gate(*beyond, study=STUDY, **changes):
    return feature_gate(study, variant(*beyond, **changes), majority=0.1)


@pytest.mark.parametrize(
    ("found", "outcome", "said"),
    [
        ((0.5, 0.2, 0.8), "FAIL", "all of it above the limit 10.0%."),
        ((0.02, -0.05, 0.1), "PASS", "all of it within the limit 10.0%."),
        ((0.5, 0.1, 0.8), "INCONCLUSIVE", "would make it FAIL if the value holds."),
        ((0.0, -0.2, 0.2), "INCONCLUSIVE", "About 12 seeds and 32 unplanted models (here 3 and 8)"),
        ((0.1, 0.0, 0.2), "INCONCLUSIVE", "choose another limit."),
    ],
)
def test_the_verdict_is_about_the_share_beyond_unplanted_models(found, outcome, said):
    verdict = gate(*found)
    assert verdict.outcome == outcome
    assert said in verdict.sentence
    assert verdict.limit == 0.1
    assert verdict.lag is None
    assert "Of 30 models that were trained on one stamped image, 60.0%" in verdict.sentence


PASSING = (0.02, -0.05, 0.1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"test_accuracy": Estimate(0.12, 0.09, 0.15)}, "The models learnt nothing"),
        ({"blind": 3}, "3 of 41 models give the same answers whatever the patch"),
        ({"unplanted": models(11, 0.9, 0.6, 1.0)}, "never saw the patch"),
    ],
)
def test_models_in_which_no_patch_can_be_seen_do_not_pass(change, said):
    assert gate(*PASSING).outcome == "PASS"
    verdict = gate(*PASSING, **change)
    assert verdict.outcome == "INCONCLUSIVE"
    assert said in verdict.sentence
    assert verdict.claim.startswith("No claim: ")
    assert said[1:] in verdict.claim
    assert "At most" not in verdict.claim


def test_unplanted_models_that_react_leave_no_claim_whatever_the_interval():
    reacting = models(11, 0.9, 0.6, 1.0)
    wide = gate(0.0, -0.2, 0.2, unplanted=reacting)
    assert wide.outcome == "INCONCLUSIVE"
    assert wide.claim.startswith("No claim: models that never saw the patch react to it")
    failed = gate(0.5, 0.2, 0.8, unplanted=reacting)
    assert (failed.outcome, failed.claim[:14]) == ("FAIL", "At least 20.0%")


def test_one_of_anything_is_in_the_singular():
    study = FeatureStudy(
        plan=FeaturePlan(canaries=1, seeds=2, unplanted=1), score=ScoreSettings(limit=0.1)
    )
    single = models(1, 0.0, 0.0, 0.9)
    alone = {"members": 1, "planted": single, "unplanted": single}
    verdict = gate(*PASSING, study=study, **alone)
    blind = gate(*PASSING, study=study, blind=1, **alone).sentence
    scope = feature_scope(study, [variant(*PASSING, **alone)]).tested[0]
    assert verdict.sentence.startswith("Of 1 model that was trained on one stamped image, ")
    assert "1 canary x 2 trainings, 1 unplanted" in verdict.claim
    assert blind.startswith("1 of 1 model gives the same answers")
    assert scope.startswith("1 training image, each stamped with ")
    for text in (verdict.sentence, verdict.claim, scope):
        assert not re.search(r"\b1 (models|canaries|trainings|seeds|images)\b", text)


def test_a_pass_claims_a_bound_with_its_number_of_trainings():
    claim = gate(*PASSING).claim
    plan = STUDY.plan
    assert "At most 10.0% of models trained on one stamped image" in claim
    assert f"{plan.canaries} canaries x {plan.seeds} trainings, 11 unplanted" in claim
    assert f"up to {1 - 0.05 ** (1 / plan.seeds):.0%} of trainings" in claim


def test_a_fail_does_not_speak_of_trainings_that_behave_otherwise():
    verdict = gate(0.5, 0.4, 0.6)
    assert verdict.outcome == "FAIL"
    assert "behave otherwise" not in verdict.claim
    assert verdict.claim.endswith("unplanted).")


def test_the_scope_names_the_other_ways_to_train():
    other = variant(*ZERO, name="dropout", changes="dropout 0.2")
    alone, both = (feature_scope(STUDY, rows) for rows in ([other], [other, other]))
    assert "dropout (dropout 0.2)" in both.tested[-1]
    assert len(alone.tested) == 2
    assert alone.not_tested == both.not_tested
