"""Clusters that nobody declared: noticed where neighbours or duplicates show them."""

import numpy as np
import pytest

from remnant import audit_scores
from remnant.measures import exposure_curve, forgetting_curve
from remnant.measures.statistics.design import noticed_clusters

LAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "lognormal": lambda rng, shape: np.exp(2.0 * rng.normal(size=shape)),
    "integer": lambda rng, shape: np.round(rng.normal(size=shape)),
    "yes or no": lambda rng, shape: (rng.random(shape) < 0.3).astype(float),
    "half precision": lambda rng, shape: rng.normal(size=shape).astype(np.float16).astype(float),
    "two decimals": lambda rng, shape: np.round(rng.normal(size=shape), 2),
    "saturated": lambda rng, shape: np.minimum(rng.normal(size=shape), 0.3),
}


def clustered(rng, shape, *, of=5):
    """Clusters of five neighbours, with a correlation of one half."""
    clusters = rng.normal(size=(*shape[:-1], shape[-1] // of))
    return np.repeat(clusters, of, axis=-1) + rng.normal(size=shape)


@pytest.mark.parametrize("law", LAWS)
def test_independent_canaries_are_no_clusters(law):
    rng = np.random.default_rng(1)
    found = [
        noticed_clusters(LAWS[law](rng, shape), LAWS[law](rng, shape))
        for shape in [(1, 1, 100), (2, 8, 32), (8, 1, 100)] * 20
    ]
    assert sum(map(bool, found)) <= 1
    trend = np.linspace(0.0, 3.0, 100)  # canaries that are sorted by length
    assert not noticed_clusters(*(rng.normal(size=(1, 1, 100)) + trend for _ in range(2)))
    assert not noticed_clusters(*(np.sort(rng.normal(size=(1, 1, 100))) for _ in range(2)))


def test_neighbours_and_duplicates_are_noticed():
    rng = np.random.default_rng(2)
    for shape in ((2, 3, 100), (8, 1, 200)):
        assert "neighbouring" in noticed_clusters(clustered(rng, shape), clustered(rng, shape))
    halves = np.repeat(rng.normal(size=(3, 2, 30)), 2, axis=2)[:, :, rng.permutation(60)]
    noisy = halves + 1e-9 * rng.normal(size=halves.shape)
    assert "near-duplicates" in noticed_clusters(noisy, rng.normal(size=(3, 2, 60)))


def test_undeclared_clusters_pass_no_gate_and_declared_ones_may():
    rng = np.random.default_rng(3)
    seen, unseen = (clustered(rng, (2, 8, 100)) for _ in range(2))
    seen[0] += 4.0
    made = {"lags": [10, 1000], "rng": rng, "draws": 40}
    rates = {"seen_scores": seen, "unseen_scores": unseen, "success": "auc", **made}
    alone = forgetting_curve(**rates)
    assert alone.verdict(0.7).outcome == "INCONCLUSIVE"
    assert "pass groups" in alone.verdict(0.7).sentence
    assert alone.safe_after(0.7).lag is None
    assert forgetting_curve(**rates, groups=np.arange(100) // 5).verdict(0.7).outcome == "PASS"
    costs = {"canary_losses": -seen, "reference_losses": -unseen, **made}
    assert "pass groups" in exposure_curve(**costs).safe_after(3.0).reason
    wider = exposure_curve(**costs, groups=np.arange(100) // 5)
    assert wider.safe_after(3.0).lag == 1000
    assert "clusters" in wider.method


def test_scores_with_groups():
    rng = np.random.default_rng(4)
    made = {"seen": clustered(rng, (1000,)), "unseen": clustered(rng, (1000,)), "limit": 0.65}
    made |= {"control": 5.0 + rng.normal(size=50), "rng": rng}
    doubted = audit_scores(**made)
    assert doubted.outcome == "INCONCLUSIVE"
    assert "neighbouring" in doubted.sentence
    labels = np.arange(1000) // 5
    grouped = audit_scores(**made, groups=(labels, labels))
    assert grouped.outcome == "PASS"
    assert grouped.auc.high - grouped.auc.low > 1.2 * (doubted.auc.high - doubted.auc.low)
    independent = audit_scores(**made, groups=(np.arange(1000), np.arange(1000)))
    assert independent.outcome == "PASS", "labels that are all different say so"
