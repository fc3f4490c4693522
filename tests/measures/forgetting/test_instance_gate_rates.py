"""The rates at which the gate of instance memory passes and fails, on a few simulated audits."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

ROOT = Path(__file__).parents[3]
AUDITS = 40


@pytest.fixture(scope="module")
def benchmark_module():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import false_claims_instances
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return false_claims_instances


def _not_above_nominal(rates, nominal):
    for truth, rate in rates.items():
        share = nominal.get(truth, 0.05)
        assert stats.binom.sf(round(rate * AUDITS) - 1, AUDITS, share) > 1e-4, truth


@pytest.mark.parametrize("design", ["rotated", "same sets"])
def test_the_gate_seldom_errs_where_models_know_the_kind_or_lie_above_the_limit(
    benchmark_module, design
):
    rng = np.random.default_rng(1)
    world = benchmark_module.World(design, 5, "exponential")
    rates = benchmark_module.kind_claims(world, AUDITS, rng)
    rates |= benchmark_module.above_claims(world, AUDITS, rng)
    assert {truth.split(":")[0] for truth in rates} == {"kind", "above"}
    _not_above_nominal(rates, {"kind: PASS": 0.025})
    assert world.mean_auc(world.just_above(), 200) == pytest.approx(0.6, abs=0.015)


def test_the_gate_passes_where_nothing_is_left_and_more_attackers_pass_less_often(
    benchmark_module,
):
    world = benchmark_module.World("rotated", 8, "normal")
    rates = benchmark_module.power(world, AUDITS, np.random.default_rng(2))
    assert rates["chance"] > 0.2
    assert 0.0 < rates["chance, all attackers"] <= rates["chance"]


def test_own_sets_are_seldom_found_by_kind_or_labels(benchmark_module):
    world = benchmark_module.World("rotated", 5, "normal")
    rates = benchmark_module.own_set_claims(world, AUDITS, np.random.default_rng(3))
    assert len(rates) == 3
    _not_above_nominal(rates, {})
