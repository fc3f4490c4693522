"""The rates at which the feature gate passes, on a few simulated studies."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).parents[3]


def _cells(simulations):
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from false_claims_features import feature_cells
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return feature_cells(simulations, np.random.default_rng(3))


def test_the_gate_seldom_passes_falsely_and_often_truly():
    """No cell is above nominal by more than simulation error; silence is not soundness."""
    simulations = 40
    rows = _cells(simulations)
    assert {row["truth"] for row in rows} == {"noise", "blind", "above", "chance"}
    assert {row["trainings"] for row in rows} == {3, 8}
    for row in rows:
        if row["false_pass"] is None:
            continue
        count = round(row["false_pass"] * simulations)
        assert stats.binom.sf(count - 1, simulations, row["nominal"]) > 1e-4, row
        if row["truth"] == "blind":
            assert count == 0
    power = [row["true_pass"] for row in rows if row["truth"] == "chance" and row["trainings"] == 8]
    assert np.mean(power) > 0.8
