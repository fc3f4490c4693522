"""Tensors of the user's own: inputs of any shape, from an npz file or a function, as they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from remnant.data.catalogue import cut_own_tensors, load_own_images
from remnant.data.own_files import OwnFiles
from remnant.errors import InvalidInput
from remnant.studies import study_from

N = 20
LABELS = np.arange(N) % 2


def cut(given):
    return cut_own_tensors(given, maker="mine:data", sha256="ab" * 32)


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [
        (np.random.default_rng(0).normal(5.0, 3.0, (N, 3)), "float32"),
        (np.random.default_rng(0).normal(5.0, 3.0, (N, 2, 3, 4, 5)), "float32"),
        (np.arange(N * 6).reshape(N, 6).astype(np.int32), "int64"),
        (np.arange(N), "int64"),
        (np.arange(N * 4, dtype=np.uint8).reshape(N, 2, 2), "int64"),
    ],
)
def test_inputs_of_any_shape_are_taken_as_they_are_from_both_places(inputs, kind, tmp_path):
    np.savez(tmp_path / "mine.npz", inputs=inputs, labels=LABELS)
    files = OwnFiles(path="mine.npz", folder=tmp_path)
    of_file, made = load_own_images(files, tensors=True), cut((inputs, LABELS))
    for part in ("clean", "pool", "test"):
        one, other = getattr(of_file, part), getattr(made, part)
        assert one.images.dtype == other.images.dtype == kind
        np.testing.assert_array_equal(one.images, other.images)
        np.testing.assert_array_equal(one.labels, other.labels)
    whole = np.concatenate([getattr(made, part).images for part in ("clean", "pool", "test")])
    assert sorted(whole.reshape(-1).tolist()) == sorted(inputs.astype(kind).reshape(-1).tolist())
    assert made.tensors
    assert not made.are_images
    assert of_file.fingerprint != made.fingerprint  # of the file, and of the function's file


def test_tensors_of_torch_and_names_as_labels_are_taken():
    names = np.array(["no", "yes"])[LABELS]
    made = cut((torch.arange(float(N))[:, None], names))
    assert made.classes == 2
    assert made.origin.to_dict() == {
        "data_files": {"mine:data": "ab" * 32},
        "classes": {"0": "no", "1": "yes"},
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "returns NoneType, not a pair of arrays"),
        ((1, 2, 3), "returns tuple of 3, not a pair"),
        ((np.zeros((N, 2)), LABELS), "all inputs are equal"),
        ((np.arange(N)[:, None], LABELS[:5]), "20 inputs for 5 labels"),
        ((np.arange(N)[:, None], np.zeros((N, 2))), "not one label an example"),
        ((np.arange(N)[:, None], np.zeros(N)), "has one class only"),
        ((np.arange(N)[:, None], LABELS + 0.5), "neither a whole number nor a name"),
        ((np.full((N, 2), np.nan), LABELS), "40 values that are NaN"),
        ((np.array(["a"] * N), LABELS), "not numbers"),
        ((np.zeros((0, 2)), np.zeros(0)), "have the shape"),
        (([[1], [1, 2]], LABELS), "NumPy makes no arrays of"),
        ((torch.zeros(N, 1, requires_grad=True), LABELS), "NumPy makes no arrays of"),
    ],
)
def test_what_is_no_data_is_refused(given, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        cut(given)
    assert "mine:data" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"name": "tensors"}, 'data.path or data.maker is needed with data.name = "tensors"'),
        (
            {"name": "mnist", "maker": "a:b"},
            "data.name='mnist' and data.maker='a:b' are both given",
        ),
        ({"maker": "a:b", "path": "x.npz"}, "data.path is not for data.maker"),
        ({"maker": "a:b", "labels": "y"}, "data.labels is not for data.maker"),
        ({"maker": "a.b"}, "not of the form package.module:function"),
        ({"options": {"n": 1}}, "data.options needs data.maker"),
    ],
)
def test_contradictions_in_a_recipe_are_refused(data, words):
    plan = {"kind": "inject", "canaries": 8, "step": 2, "watch_steps": 2}
    with pytest.raises(ValueError, match="Fix the recipe") as caught:
        study_from({"plan": plan, "data": data})
    assert words in str(caught.value)


def test_a_function_of_data_makes_the_name_and_the_title():
    plan = {"kind": "inject", "canaries": 8, "step": 2, "watch_steps": 2}
    data = study_from({"plan": plan, "data": {"maker": "a:b"}}).data
    assert (data.name, data.title) == ("tensors", "a:b")
