"""Canaries that all trainings share: seen or declared, and in the interval."""

import numpy as np
import pytest

from remnant.errors import InvalidInput
from remnant.measures import exposure_curve, forgetting_curve
from remnant.measures.statistics.design import same_places


def curve(rng, seen, unseen, **more):
    made = {"lags": np.arange(len(seen)), "success": "auc", "rng": rng, "draws": 100}
    return forgetting_curve(seen_scores=seen, unseen_scores=unseen, **made, **more)


def test_independent_canaries_are_not_taken_for_shared_ones():
    rng = np.random.default_rng(0)
    shapes = [(1, 2, 20), (4, 3, 40), (2, 8, 100)] * 50
    wrong = sum(same_places(rng.normal(size=shape)) for shape in shapes)
    wrong += sum(same_places(np.round(rng.exponential(size=shape))) for shape in shapes)
    assert wrong <= 6
    assert same_places(rng.normal(size=(2, 8, 32)) + rng.normal(size=32))


def test_intervals_with_shared_canaries_cover():
    """Half of the variance is the canaries': without the crossed interval 6 in 10 cover."""
    rng = np.random.default_rng(1)
    inside = {"found": 0, "neither": 0}
    for _ in range(60):
        seen, unseen = (rng.normal(size=32) + rng.normal(size=(1, 8, 32)) for _ in range(2))
        for shared in inside:
            declared = None if shared == "found" else shared
            found = curve(rng, seen, unseen, shared=declared)
            inside[shared] += found.low[0] <= 0.5 <= found.high[0]
    assert inside["found"] >= 54
    assert inside["neither"] <= 50


def test_labels_by_trial_tell_shared_canaries_from_rotating_ones():
    rng = np.random.default_rng(2)
    own = np.arange(4 * 20).reshape(4, 20)
    others = np.stack([np.setdiff1d(own, row) for row in own])
    scores = rng.normal(size=80)
    seen = (scores[own] + rng.normal(size=(4, 20)))[None]
    unseen = (scores[others] + rng.normal(size=(4, 60)))[None]
    assert curve(rng, seen, unseen).evidence.shared == (False, True), "by its places"
    assert curve(rng, seen, unseen, groups=(own, others)).evidence.shared == (False, False)
    controls = np.tile(np.arange(100, 160), (4, 1))
    assert curve(rng, seen, unseen, groups=(own, controls)).evidence.shared == (False, True)
    assert "trials share" in curve(rng, seen, unseen, shared="both").method


def test_shared_references_widen_an_exposure_curve():
    rng = np.random.default_rng(3)
    canaries = rng.normal(size=(1, 6, 30))
    references = rng.normal(size=(1, 1, 40)) + 0.01 * rng.normal(size=(1, 6, 40))
    made = {"canary_losses": canaries, "reference_losses": references, "lags": [1]}
    wide, narrow = (
        exposure_curve(**made, rng=np.random.default_rng(0), shared=shared)
        for shared in ("references", "neither")
    )
    assert wide.high[0] > narrow.high[0]
    assert "trials share" in exposure_curve(**made, rng=rng).method


@pytest.mark.parametrize("shared", ["all", True, 3])
def test_an_unknown_declaration_is_refused(shared):
    rng = np.random.default_rng(4)
    with pytest.raises(InvalidInput, match="is not one of seen, unseen, both, neither"):
        curve(rng, *rng.normal(size=(2, 1, 3, 20)), shared=shared)
