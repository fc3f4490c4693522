"""Canaries of all variants by their exposure, by hand."""

from __future__ import annotations

import math

import pytest

from remnant.studies.by_exposure import by_exposure

SEARCHED = {
    "each": [1.0, 3.0, 9.0, 20.0],
    "exact_each": [True, True, True, True],
    "extracted_each": [False, False, True, True],
    "nodes_each": [100, 300],
    "skew_normal": [2.0, 2.0, 5.0, 30.0],
}
PLAIN = {"each": [2.0, 17.5], "exact_each": [False, True], "extracted_each": None,
         "nodes_each": None, "skew_normal": [2.5, 12.5]}  # fmt: skip


def test_bands_of_four_bits_and_one_of_the_first():
    found = by_exposure([SEARCHED, PLAIN], space_bits=20.0)
    assert [(one["low"], one["high"], one["canaries"]) for one in found] == [
        *((0.0, 4.0, 3), (8.0, 12.0, 1), (16.0, 20.0, 1), (20.0, 20.0, 1))
    ]
    assert [one["searched"] for one in found] == [2, 1, 0, 1]
    assert [one["read_out"] for one in found] == [0, 1, 0, 1]
    assert [one["nodes"] for one in found] == [100.0, 300.0, None, 300.0]
    assert [one["error"] for one in found] == [
        *([0.0, -1.0, 1.0], [-4.0] * 3, [-5.0] * 3, [10.0] * 3)
    ]
    assert [one["estimated"] for one in found] == [2, 1, 1, 1]


def test_what_is_known_as_at_least_only_is_in_no_band():
    found = by_exposure(
        [SEARCHED | {"saturated_each": [False, True, False, False]}], space_bits=20.0
    )
    assert [one["canaries"] for one in found] == [1, 1, 1]
    assert found[0]["nodes"] == 100.0


def test_every_canary_is_in_one_band():
    space = math.log2(10**9)
    bits = [0.0, 3.999, 4.0, 27.99, 28.0, space - 1.0, space]
    one = {"each": bits, "exact_each": [True] * 7}
    found = by_exposure([one], space_bits=space)
    assert sum(row["canaries"] for row in found) == 7
    assert found[-1]["low"] == found[-1]["high"] == pytest.approx(29.897, abs=1e-3)
    assert found[-1]["canaries"] == 1
    assert all(row["error"] is None and row["nodes"] is None for row in found)
