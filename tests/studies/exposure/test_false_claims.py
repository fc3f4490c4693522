"""The simulation of the exposure gate: its rows, and that false PASS are within nominal."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[3] / "benchmarks" / "false_claims_exposure.py"


@pytest.fixture(scope="module")
def simulation():
    spec = importlib.util.spec_from_file_location("false_claims_exposure", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_false_passes_are_within_nominal_and_true_ones_are_given(simulation):
    rows = simulation.exposure_cells(25, np.random.default_rng(0), laws=["exponential"])
    assert {row["trainings"] for row in rows} == {1, 3, 8}
    assert {row["truth"] for row in rows} == {
        *("noise", "share above", "share above, trainings differ", "trainings", "power"),
    }
    assert not [row for row in rows if simulation.too_often(row)]
    for row in rows:
        known = row["true_pass"] if row["truth"] == "power" else row["false_pass"]
        assert 0 <= known <= 1
        if row["truth"] == "power":
            assert known > 0.8


def test_too_many_false_passes_are_seen(simulation):
    row = {"nominal": 0.05, "false_pass": 0.1, "simulations": 400}
    assert simulation.too_often(row)
    assert not simulation.too_often({**row, "false_pass": 0.06})
    assert not simulation.too_often({**row, "nominal": None})


@pytest.mark.parametrize("law", ["normal", "t(2)", "exponential", "lognormal", "bimodal"])
def test_laws_exceed_numbers_as_often_as_they_say(simulation, law):
    rng = np.random.default_rng(1)
    drawn = simulation.LAWS[law].draw(rng, (20_000,))
    for number in (-0.5, 0.5, 2.0):
        said = float(simulation.LAWS[law].above(np.array(number)))
        assert abs((drawn > number).mean() - said) < 4 * np.sqrt(said / 20_000)
