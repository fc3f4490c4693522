"""The rates at which the gate of defences passes, on a few simulated studies."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

ROOT = Path(__file__).parents[3]
SIMULATIONS = 12


@pytest.fixture(scope="module")
def rows():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from false_claims_defences import defence_cells
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return defence_cells(SIMULATIONS, np.random.default_rng(4), laws=["normal", "lognormal"])


def test_the_gate_seldom_passes_falsely(rows):
    truths = {"noise", "unlearnt", "no change", "share above", "useless", "power"}
    assert {row["truth"] for row in rows} == truths
    for row in rows:
        if row["false_pass"] is None:
            continue
        count = round(row["false_pass"] * SIMULATIONS)
        assert stats.binom.sf(count - 1, SIMULATIONS, row["nominal"]) > 1e-4, row
        if row["truth"] in ("noise", "unlearnt", "useless"):
            assert count == 0, row


def test_a_remedy_that_works_is_shown_to_work(rows):
    power = [row["true_pass"] for row in rows if row["truth"] == "power"]
    assert len(power) == 4
    assert np.mean(power) > 0.7
