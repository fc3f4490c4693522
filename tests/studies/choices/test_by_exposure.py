"""Canaries of all variants by their exposure, by hand."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from remnant.studies.choices.by_exposure import by_exposure
from remnant.studies.choices.result import TrainedVariant


def variant(each, exact_each, **columns):
    """A variant with these canaries; what bands do not need is the same in all."""
    ends = (1.0, None, None)
    searched = columns.get("extracted_each") is not None
    return TrainedVariant(
        label="a variant",
        cell=None,
        repeats=(1,),
        models=len(each),
        steps=10,
        exposure=ends,
        each=tuple(each),
        exact_each=tuple(exact_each),
        saturated=0,
        **dict.fromkeys(("ranked_first", "controls", "twin", "through", "nodes"), None),
        validation_bits=ends,
        training_bits=ends,
        extracted=ends if searched else None,
        parameters=100,
        **{
            name: columns.get(name)
            for name in ("extracted_each", "nodes_each", "skew_normal", "saturated_each")
        },
    )


SEARCHED = {
    "each": (1.0, 3.0, 9.0, 20.0),
    "exact_each": (True, True, True, True),
    "extracted_each": (False, False, True, True),
    "nodes_each": (100, 300),
    "skew_normal": (2.0, 2.0, 5.0, 30.0),
}
PLAIN = {"each": (2.0, 17.5), "exact_each": (False, True), "skew_normal": (2.5, 12.5)}


def test_bands_of_four_bits_and_one_of_the_first():
    found = by_exposure([variant(**SEARCHED), variant(**PLAIN)], space_bits=20.0)
    assert [(one.low, one.high, one.canaries) for one in found] == [
        *((0.0, 4.0, 3), (8.0, 12.0, 1), (16.0, 20.0, 1), (20.0, 20.0, 1))
    ]
    assert [one.searched for one in found] == [2, 1, 0, 1]
    assert [one.read_out for one in found] == [0, 1, 0, 1]
    assert [one.nodes for one in found] == [100.0, 300.0, None, 300.0]
    assert [one.error for one in found] == [
        *((0.0, -1.0, 1.0), (-4.0,) * 3, (-5.0,) * 3, (10.0,) * 3)
    ]
    assert [one.estimated for one in found] == [2, 1, 1, 1]


def test_what_is_known_as_at_least_only_is_in_no_band():
    found = by_exposure(
        [variant(**SEARCHED, saturated_each=(False, True, False, False))], space_bits=20.0
    )
    assert [one.canaries for one in found] == [1, 1, 1]
    assert found[0].nodes == 100.0


def test_every_canary_is_in_one_band():
    space = math.log2(10**9)
    bits = [0.0, 3.999, 4.0, 27.99, 28.0, space - 1.0, space]
    found = by_exposure([variant(bits, [True] * 7)], space_bits=space)
    assert sum(row.canaries for row in found) == 7
    assert found[-1].low == found[-1].high == pytest.approx(29.897, abs=1e-3)
    assert found[-1].canaries == 1
    assert all(row.error is None and row.nodes is None for row in found)


def test_runs_are_pooled_by_exposure(chosen):
    script = Path(__file__).parents[3] / "examples" / "pool_exposures.py"

    def pooled(*folders):
        done = subprocess.run(
            [sys.executable, str(script), *map(str, folders)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return [line.split() for line in done.stdout.splitlines()[1:]]

    once, twice = pooled(chosen), pooled(chosen, chosen)
    assert once
    canaries = [[int(row[row.index("of") - 2]) for row in rows] for rows in (once, twice)]
    assert [2 * count for count in canaries[0]] == canaries[1]
    # The error of the estimate is a mean over canaries: the same run twice does not change it.
    assert [row[-4:] for row in once] == [row[-4:] for row in twice]
