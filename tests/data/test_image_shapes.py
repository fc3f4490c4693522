"""Images of another kind, in the shape that a model takes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.data import load_images
from remnant.data.image_shapes import other_images, resized
from remnant.errors import PlanError


@settings(max_examples=40)
# Of images one pixel wide torch 2.13 repeats the first row.
@given(sizes=st.tuples(*[st.integers(2, 40)] * 4), seed=st.integers(0, 999))
def test_resizing_is_torchs_linear_one_without_aliases(sizes, seed):
    images = np.random.default_rng(seed).random((2, 3, *sizes[:2]), dtype=np.float32)
    found = resized(images, *sizes[2:])
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(images), sizes[2:], mode="bilinear", antialias=True
    )
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)
    assert found.dtype == np.float32


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (1, 5, 9)])
@pytest.mark.parametrize("name", ["blocks", "digits"])
def test_they_have_the_models_shape_and_follow_from_the_seed(name, shape):
    found = other_images(name, shape=shape, count=30, seed=1)
    assert found.shape == (30, *shape)
    assert found.dtype == np.float32
    assert 0.0 <= found.min() < found.max() <= 1.0
    np.testing.assert_array_equal(found, other_images(name, shape=shape, count=30, seed=1))
    assert (found != other_images(name, shape=shape, count=30, seed=2)).any()
    if name == "digits" and shape[0] == 3:
        np.testing.assert_array_equal(found[:, 0], found[:, 2])


def test_no_image_comes_twice():
    found = other_images("digits", shape=(1, 8, 8), count=1797)
    data = load_images("digits")
    parts = np.concatenate([data.clean.images, data.pool.images, data.test.images])
    assert sorted(one.tobytes() for one in found) == sorted(one.tobytes() for one in parts)


def test_blocks_are_squares_of_one_value():
    found = other_images("blocks", shape=(1, 28, 28), count=5)
    cells = found.reshape(5, 1, 7, 4, 7, 4)
    assert (cells == cells[:, :, :, :1, :, :1]).all()
    assert len(np.unique(found)) == 5 * 49


def test_colours_become_as_bright_as_they_look(tmp_path, monkeypatch):
    from remnant.data import image_shapes as module
    from remnant.data.images import Images

    pure = np.eye(3, dtype=np.float32)[:, :, None, None].repeat(4, 2).repeat(4, 3)
    coloured = Images(pure, np.zeros(3, np.int64))
    monkeypatch.setattr(module, "training_images", lambda name, folder: coloured)
    found = other_images("cifar10", shape=(1, 4, 4), count=3)
    np.testing.assert_allclose(found[:, 0, 0, 0], [0.299, 0.587, 0.114], rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "cats"}, "images.name='cats' is not one of blocks, digits, framed"),
        ({"shape": (2, 8, 8)}, r"not of the shape \(2, 8, 8\)"),
        ({"shape": (64,)}, r"not of the shape \(64,\)"),
        ({"name": "digits", "count": 1798}, "count=1798 is more than the 1797 images of digits"),
        ({"name": "mnist"}, "mnist is read from files. Pass --data FOLDER."),
    ],
)
def test_what_is_not_there_is_refused(given, said):
    with pytest.raises(PlanError, match=said):
        other_images(**{"name": "blocks", "shape": (1, 8, 8), "count": 5, **given})
