"""From reactions to scores, and from scores to a verdict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant import FeaturePlan
from remnant.measures.feature_score import feature_score
from remnant.studies.features import FeatureStudy
from remnant.studies.features_results import member_scores
from remnant.studies.features_settings import ScoreSettings
from remnant.studies.features_verdict import scope_fields, verdict_fields


@settings(deadline=None, max_examples=40)
@given(
    members=st.integers(1, 4),
    images=st.integers(2, 12),
    nulls=st.integers(1, 9),
    level=st.sampled_from([None, 0.0, 0.25]),
    seed=st.integers(0, 999),
)
def test_members_are_scored_as_one_model_is(members, images, nulls, level, seed):
    rng = np.random.default_rng(seed)
    unique, controls = rng.random((2, members, images)).round(1)
    if level is not None:
        unique, controls = np.full((members, images), level), np.zeros((members, images))
    null_means = rng.choice([0.0, 0.25, 0.5, 1.0], (members, nulls))
    found = member_scores(unique, controls, null_means)
    for member in range(members):
        one = feature_score(
            unique=unique[member],
            controls=controls[member],
            null_means=null_means[member],
            bound=16.2,
            rng=rng,
            convention="",
            draws=20,
        )
        assert found.value[member] == pytest.approx(one.value, abs=1e-12)
        assert found.p_value[member] == one.p_value
        expected = 1.0 if one.t_test_p_value is None else one.t_test_p_value
        assert found.t_test[member] == pytest.approx(expected)


STUDY = FeatureStudy(plan=FeaturePlan(), score=ScoreSettings(limit=0.1))


def plain(value, low, high):
    share = [0.6, 0.3, 0.8]
    return {
        "name": "plain",
        "what": "mlp1 on digits",
        "changes": "",
        "beyond": [value, low, high],
        "planted": {"n": 30, "share_significant": share},
        "unplanted": {"n": 11, "share_significant": [0.1, 0.0, 0.4]},
    }


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
    verdict = verdict_fields(STUDY, plain(*found))
    assert verdict["outcome"] == outcome
    assert said in verdict["sentence"]
    assert verdict["limit"] == 0.1
    assert verdict["lag"] is None
    assert "Of 30 models that were trained on one stamped image, 60.0%" in verdict["sentence"]


def test_the_scope_names_the_other_ways_to_train():
    other = {**plain(0.0, 0.0, 0.0), "name": "dropout", "changes": "dropout 0.2"}
    alone, both = (scope_fields(STUDY, rows) for rows in ([other], [other, other]))
    assert "dropout (dropout 0.2)" in both["tested"][-1]
    assert len(alone["tested"]) == 2
    assert all(isinstance(line, str) for lines in both.values() for line in lines)
