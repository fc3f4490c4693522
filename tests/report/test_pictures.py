"""Pictures in the page are PNG files that any reader reads back."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from remnant.errors import InvalidInput
from remnant.report.pictures import png

SHAPES = st.tuples(st.sampled_from([1, 3]), st.integers(1, 9), st.integers(1, 9))


@given(arrays(np.float64, SHAPES, elements=st.floats(0, 1)))
def test_a_picture_is_read_back_as_it_was_given(pixels):
    with Image.open(io.BytesIO(png(pixels)), formats=["PNG"]) as picture:
        assert picture.mode == ("L" if pixels.shape[0] == 1 else "RGB")
        found = np.asarray(picture)
    levels = found[None] if found.ndim == 2 else found.transpose(2, 0, 1)
    np.testing.assert_array_equal(levels, np.rint(255 * pixels))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8, bool])
def test_any_numbers_will_do(dtype):
    stripes = (np.arange(48).reshape(3, 4, 4) % 2).astype(dtype)
    with Image.open(io.BytesIO(png(stripes))) as picture:
        assert np.asarray(picture).max() == 255


def test_what_rounding_left_over_is_cut_off():
    assert png(np.full((1, 2, 2), 1.0000001)) == png(np.ones((1, 2, 2)))
    assert png(np.full((1, 2, 2), -1e-9)) == png(np.zeros((1, 2, 2)))


@pytest.mark.parametrize(
    ("pixels", "words"),
    [
        (np.zeros((2, 8, 8)), "has shape (2, 8, 8)"),
        (np.zeros((8, 8)), "has shape (8, 8)"),
        (np.zeros((1, 0, 8)), "has shape (1, 0, 8)"),
        (np.full((1, 2, 2), np.nan), "no shade between 0 and 1"),
        (np.full((1, 2, 2), np.inf), "no shade between 0 and 1"),
        (np.full((1, 2, 2), 1.5), "no shade between 0 and 1"),
        (np.full((1, 2, 2), -0.5), "no shade between 0 and 1"),
        (np.full((1, 2, 2), "a"), "no shade between 0 and 1"),
    ],
)
def test_what_is_no_picture_is_refused(pixels, words):
    with pytest.raises(InvalidInput) as caught:
        png(pixels)
    assert words in str(caught.value)
