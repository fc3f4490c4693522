"""Samples as somebody else keeps them: what is read, and what is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.data import catalogue
from remnant.data.labelled import (
    as_images,
    normalised,
    read_array,
    read_labelled,
    read_labels,
)
from remnant.errors import InvalidInput, PlanError

LABELS = np.arange(6) % 2


def saved(tmp_path, **arrays):
    np.savez(tmp_path / "data.npz", **arrays)
    return tmp_path / "data.npz"


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((6, 28, 28), (6, 1, 28, 28)),
        ((6, 1, 28, 28), (6, 1, 28, 28)),
        ((6, 28, 28, 1), (6, 1, 28, 28)),
        ((6, 3, 9, 8), (6, 3, 9, 8)),
        ((6, 9, 8, 3), (6, 3, 9, 8)),
        ((6, 9, 8, 4), (6, 4, 9, 8)),
    ],
)
def test_images_come_in_one_form(tmp_path, shape, wanted):
    rng = np.random.default_rng(0)
    given = rng.integers(0, 256, size=shape).astype(np.uint8)
    found = read_labelled(saved(tmp_path, images=given, labels=LABELS))
    assert found.inputs.shape == wanted
    assert (found.inputs.dtype, found.labels.dtype) == (np.float32, np.int64)
    axis = 3 if len(shape) == 4 and shape[1] == wanted[2] else None
    plain = given[:, None] if len(shape) == 3 else given
    plain = np.moveaxis(plain, 3, 1) if axis else plain
    np.testing.assert_allclose(found.inputs, plain / 255, rtol=1e-6)
    again = read_labelled(saved(tmp_path, images=given / 255, labels=LABELS.astype(float)))
    np.testing.assert_allclose(again.inputs, found.inputs, rtol=1e-6)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((6, 3, 9, 3)), r"\(6, 3, 9, 3\), of which either end could be the channels"),
        (np.zeros((6, 5, 9, 7)), "of which neither end could be the channels"),
        (np.zeros((6, 5)), r"have the shape \(6, 5\); it takes \(n, channels"),
        (np.full((6, 8, 8), 2.0), "reach from 2 to 2, not from 0 to 1"),
        (np.full((6, 8, 8), 255), "of type int64 reach from 255 to 255"),
        (np.full((6, 8, 8), np.nan), "hold 384 values that are NaN"),
        (np.zeros((5, 8, 8)), r"images of shape \(5, 8, 8\) for 6 labels"),
        (np.full((6, 8, 8), "a"), "images are not numbers"),
    ],
)
def test_other_images_are_refused(tmp_path, images, words):
    with pytest.raises(InvalidInput, match=words):
        read_labelled(saved(tmp_path, images=images, labels=LABELS))


def test_inputs_are_taken_as_they_are(tmp_path):
    table = np.random.default_rng(0).normal(size=(6, 3))
    found = read_labelled(saved(tmp_path, inputs=table, labels=LABELS))
    np.testing.assert_array_equal(found.inputs, table.astype(np.float32))
    tokens = np.arange(24, dtype=np.int32).reshape(6, 4)
    found = read_labelled(saved(tmp_path, inputs=tokens, labels=LABELS))
    assert found.inputs.dtype == np.int64


@pytest.mark.parametrize(
    "labels",
    [[0.5, 1.0], [-1, 0], [[0], [1]], [], ["a", "b"], [np.nan, 1.0], [True, False]],
)
def test_labels_are_whole_numbers_from_0_on(labels):
    with pytest.raises(InvalidInput, match="are not whole numbers from 0 on"):
        read_labels(np.array(labels), "labels")


def test_files_that_are_something_else_are_refused(tmp_path):
    for arrays, words in (
        ({"x": LABELS}, "holds x; it takes labels, and either images or inputs"),
        ({"images": LABELS, "inputs": LABELS, "labels": LABELS}, "holds images, inputs, labels"),
        (
            {"images": np.array([{}] * 6), "labels": LABELS},
            "holds pickled objects, which are never",
        ),
    ):
        with pytest.raises(InvalidInput, match=words):
            read_labelled(saved(tmp_path, **arrays))
    with pytest.raises(InvalidInput, match=r"no\.npz is not there"):
        read_labelled(tmp_path / "no.npz")
    np.save(tmp_path / "one.npy", LABELS)
    with pytest.raises(InvalidInput, match="holds a single array"):
        read_labelled(tmp_path / "one.npy")
    with pytest.raises(InvalidInput, match="holds several arrays"):
        read_array(saved(tmp_path, labels=LABELS))
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(InvalidInput, match="something else than plain arrays"):
        read_labelled(tmp_path / "text.npz")
    cut = saved(tmp_path, images=np.zeros((6, 8, 8)), labels=LABELS)
    cut.write_bytes(cut.read_bytes()[:900])
    with pytest.raises(InvalidInput):
        read_labelled(cut)


def test_normalisation_is_by_channel():
    images = as_images(np.random.default_rng(0).random((4, 3, 5, 5)), "images")
    found = normalised(images, [0.1, 0.2, 0.3], [0.5, 1.0, 2.0])
    for channel, (mean, std) in enumerate([(0.1, 0.5), (0.2, 1.0), (0.3, 2.0)]):
        wanted = (images[:, channel] - mean) / std
        np.testing.assert_allclose(found[:, channel], wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(normalised(images, [0.5], [2.0]), (images - 0.5) / 2.0, atol=1e-6)
    for mean, std, words in (
        ([0.1, 0.2], [1.0], "mean has 2 numbers for images of 3 channel"),
        ([0.1], [0.0], "a deviation is above 0"),
        ([np.nan], [1.0], "a deviation is above 0"),
    ):
        with pytest.raises(InvalidInput, match=words):
            normalised(images, mean, std)


def test_a_named_set_is_its_training_part_in_order():
    found = catalogue.training_images("digits")
    assert found.images.shape == (1797, 1, 8, 8)
    assert found.labels[:10].tolist() == list(range(10))
    with pytest.raises(PlanError, match="Pass --data FOLDER"):
        catalogue.training_images("mnist")
    with pytest.raises(PlanError, match=r"data\.name='x' is not one of digits"):
        catalogue.training_images("x")
