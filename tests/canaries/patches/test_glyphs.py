"""Thirty-six shapes that cannot be taken for each other, and what cannot be written."""

from __future__ import annotations

import string
from itertools import combinations

import numpy as np
import pytest

from remnant.canaries.patches.glyphs import GLYPHS, written
from remnant.errors import InvalidInput

WRITTEN = string.ascii_uppercase + string.digits


def test_every_capital_and_figure_has_a_shape_of_five_by_five():
    assert set(GLYPHS) == {*WRITTEN, " "}
    for glyph in GLYPHS.values():
        assert glyph.shape == (5, 5)
        assert glyph.dtype == np.bool_
    for name in WRITTEN:
        ink = GLYPHS[name]
        assert ink.any(axis=1).all(), f"{name} has an empty row"
        assert 7 <= ink.sum() <= 18


def test_no_two_shapes_are_alike_also_when_one_is_moved():
    for one, other in combinations(WRITTEN, 2):
        assert (GLYPHS[one] != GLYPHS[other]).sum() >= 2, (one, other)
        for shift in (-1, 1):
            moved = np.roll(GLYPHS[one], shift, axis=1)
            assert (moved != GLYPHS[other]).sum() >= 2, (one, other, shift)


def test_text_is_glyphs_side_by_side():
    found = written("A1 B", gap=2)
    assert found.shape == (5, 4 * 5 + 3 * 2)
    for place, name in enumerate("A1 B"):
        np.testing.assert_array_equal(found[:, 7 * place : 7 * place + 5], GLYPHS[name])
        assert not found[:, 7 * place + 5 : 7 * place + 7].any()
    np.testing.assert_array_equal(written("AB", gap=0), np.hstack([GLYPHS["A"], GLYPHS["B"]]))


def test_what_cannot_be_written_is_said_without_the_rest_of_the_text():
    with pytest.raises(InvalidInput, match=r"3 kind\(s\) of character .*'c'") as caught:
        written("SEcreT")
    assert "SE" not in str(caught.value)
    assert "T." not in str(caught.value)
    for nothing in ("", "   ", 5):
        with pytest.raises(InvalidInput, match="nothing to write"):
            written(nothing)
    for gap in (-1, 1.5, True):
        with pytest.raises(InvalidInput, match="gap="):
            written("AB", gap=gap)
