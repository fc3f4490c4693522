"""Pictures from folders and files, brought into the shape that a model takes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from remnant.errors import InvalidInput
from remnant.integrations.classifiers.pictures import fitted, read_pictures


def rng():
    return np.random.default_rng(0)


def pixels(*shape):
    return np.random.default_rng(1).integers(256, size=shape, dtype=np.uint8)


def test_pictures_of_the_right_shape_are_not_changed(tmp_path):
    grey, colour = pixels(3, 9, 7), pixels(3, 9, 7, 3)
    for at in range(3):
        (tmp_path / "grey").mkdir(exist_ok=True)
        (tmp_path / "colour").mkdir(exist_ok=True)
        Image.fromarray(grey[at]).save(tmp_path / "grey" / f"{at}.png")
        Image.fromarray(colour[at]).save(tmp_path / "colour" / f"{at}.PNG")
    found = read_pictures(tmp_path / "grey", rng=rng())
    np.testing.assert_allclose(found.images.numpy(), grey[:, None] / np.float32(255))
    assert (found.shape, found.labels) == ((1, 9, 7), None)
    found = read_pictures(tmp_path / "colour", shape=(3, 9, 7), rng=rng())
    np.testing.assert_allclose(found.images.numpy(), colour.transpose(0, 3, 1, 2) / np.float32(255))
    # Together: the grey ones become coloured.
    assert read_pictures(tmp_path, rng=rng()).images.shape == (6, 3, 9, 7)


def test_sixteen_bits_are_read_as_such(tmp_path):
    wide = np.array([[0, 65535], [32768, 257]], dtype=np.uint16)
    Image.fromarray(wide).save(tmp_path / "scan.png")
    found = read_pictures(tmp_path, rng=rng()).images[0, 0]
    np.testing.assert_allclose(found.numpy(), wide / 65535, rtol=1e-6)


def test_grey_and_size_are_those_of_pillow():
    colour = pixels(20, 30, 3)
    images = torch.from_numpy(colour.transpose(2, 0, 1).copy()).float()[None] / 255
    grey = np.asarray(Image.fromarray(colour).convert("L"), dtype=np.float32) / 255
    np.testing.assert_allclose(fitted(images, (1, 20, 30), "x")[0, 0], grey, atol=1 / 255)
    small = np.asarray(Image.fromarray(colour).resize((10, 8), Image.Resampling.BILINEAR))
    np.testing.assert_allclose(
        fitted(images, (3, 8, 10), "x")[0].numpy().transpose(1, 2, 0), small / 255, atol=1.01 / 255
    )
    np.testing.assert_array_equal(
        fitted(images[:, :1], (3, 20, 30), "x").numpy(), images[:, :1].repeat(1, 3, 1, 1).numpy()
    )
    with pytest.raises(InvalidInput, match="images of 3 channels cannot be made images of 4"):
        fitted(images, (4, 20, 30), "x")


def test_files_of_arrays_and_their_labels(tmp_path):
    images, labels = pixels(50, 8, 8), np.arange(50) % 5
    np.save(tmp_path / "a.npy", images)
    np.savez(tmp_path / "b.npz", images=images, labels=labels)
    tensors = {"images": torch.from_numpy(images), "labels": torch.from_numpy(labels)}
    save_file(tensors, tmp_path / "c.safetensors")
    save_file({"x": torch.from_numpy(images)[:, None].bfloat16() / 256}, tmp_path / "d.safetensors")
    expected = images[:, None] / np.float32(255)
    for name in ("a.npy", "b.npz", "c.safetensors"):
        found = read_pictures(tmp_path / name, rng=rng())
        np.testing.assert_array_equal(found.images.numpy(), expected)
        if name != "a.npy":
            np.testing.assert_array_equal(found.labels, labels)
            own = read_pictures(tmp_path / name, label=3, rng=rng())
            np.testing.assert_array_equal(own.images.numpy(), expected[labels == 3])
    assert read_pictures(tmp_path / "d.safetensors", rng=rng()).images.dtype == torch.float32
    some = [read_pictures(tmp_path / "b.npz", count=20, rng=rng()) for _ in range(2)]
    assert len(some[0].images) == 20
    np.testing.assert_array_equal(some[0].labels, some[1].labels)
    for row, label in zip(some[0].images.numpy(), some[0].labels, strict=True):
        assert any(np.array_equal(row, one) for one in expected[labels == label])


def test_files_that_hold_something_else(tmp_path):
    np.savez(tmp_path / "other.npz", labels=np.arange(3))
    np.savez(tmp_path / "apart.npz", images=pixels(3, 4, 4), labels=np.arange(4))
    np.save(tmp_path / "flat.npy", pixels(16))
    np.save(tmp_path / "words.npy", np.full((3, 4, 4), "a"))
    for name, said in (
        ("other.npz", "holds labels; it takes images"),
        ("apart.npz", "3 images for 4 labels"),
        ("flat.npy", "are no images"),
        ("words.npy", "are no images"),
    ):
        with pytest.raises(InvalidInput, match=said):
            read_pictures(tmp_path / name, rng=rng())
