"""CIFAR-10 from small PNG sheets that the test writes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from remnant.data import load_images
from remnant.data.catalogue import read_cifar10
from remnant.errors import InvalidInput

ROWS = 4  # images a sheet


def sheet(images):
    """One image a row, its pixels left to right and top to bottom, three colours a pixel."""
    n = len(images)
    flat = np.zeros((n, 1024, 3), np.uint8)
    for image in range(n):
        for y in range(32):
            for x in range(32):
                flat[image, 32 * y + x] = images[image, :, y, x]
    return Image.fromarray(flat)


@pytest.fixture
def cifar(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (6 * ROWS, 3, 32, 32), dtype=np.uint8)
    labels = (np.arange(6 * ROWS) * 3 % 10).tolist()
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    for number, name in enumerate(names):
        sheet(images[ROWS * number : ROWS * (number + 1)]).save(tmp_path / f"{name}.png")
    (tmp_path / "train_lables.json").write_text(json.dumps(labels[: 5 * ROWS]))
    (tmp_path / "test_lables.json").write_text(json.dumps(labels[5 * ROWS :]))
    return tmp_path, images, np.array(labels)


def test_pixels_colours_and_labels_are_where_they_were(cifar):
    folder, images, labels = cifar
    train, held_out = read_cifar10(folder)
    for found, rows in ((train, slice(0, 5 * ROWS)), (held_out, slice(5 * ROWS, None))):
        assert found.images.dtype == np.float32
        assert found.labels.dtype == np.int64
        np.testing.assert_allclose(found.images, images[rows] / 255, rtol=1e-6)
        np.testing.assert_array_equal(found.labels, labels[rows])


def test_the_catalogue_reads_it(cifar):
    folder, *_ = cifar
    data = load_images("cifar10", folder=folder, examples=7)
    assert [len(part) for part in (data.clean, data.pool, data.test)] == [7, ROWS // 2, ROWS // 2]
    assert data.clean.images.shape == (7, 3, 32, 32)


def test_every_missing_file_is_named(cifar):
    folder, *_ = cifar
    for name in ("data_batch_2.png", "data_batch_5.png", "train_lables.json"):
        (folder / name).unlink()
    with pytest.raises(
        InvalidInput, match=r"data_batch_2.png, .*data_batch_5.png, .*train_lables.json: not there"
    ) as caught:
        read_cifar10(folder)
    assert "--data" in caught.value.hint


def damage(path, *, at, byte=0xFF):
    raw = bytearray(path.read_bytes())
    raw[at] ^= byte
    path.write_bytes(raw)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "data_batch_3.png").write_bytes(b""),
        lambda folder: (folder / "data_batch_3.png").write_bytes(b"not a picture"),
        lambda folder: (folder / "data_batch_3.png").write_bytes(
            (folder / "data_batch_3.png").read_bytes()[:4000]
        ),
        lambda folder: damage(folder / "data_batch_3.png", at=3000),
        lambda folder: damage(folder / "data_batch_3.png", at=20),
        lambda folder: damage(folder / "data_batch_3.png", at=38),
        lambda folder: (folder / "train_lables.json").write_text("[1, 2"),
        lambda folder: (folder / "train_lables.json").write_text('{"a": 1}'),
        lambda folder: (folder / "train_lables.json").write_text("null"),
        lambda folder: (folder / "train_lables.json").write_text('["cat"]'),
        lambda folder: (folder / "train_lables.json").write_bytes(b"\xff\xfe\x00"),
        lambda folder: Image.new("RGB", (1000, ROWS)).save(folder / "data_batch_3.png"),
    ],
)
def test_a_damaged_file_is_the_users_to_mend(spoil, cifar):
    folder, *_ = cifar
    spoil(folder)
    with pytest.raises(InvalidInput, match="a file is damaged"):
        read_cifar10(folder)


@pytest.mark.parametrize(
    "labels", [[1] * (5 * ROWS - 1), [1] * (5 * ROWS + 1), 3, [[1, 2]] * (5 * ROWS), []]
)
def test_labels_that_do_not_match_the_sheets_are_refused(labels, cifar):
    folder, *_ = cifar
    (folder / "train_lables.json").write_text(json.dumps(labels))
    with pytest.raises(InvalidInput, match="labels"):
        read_cifar10(folder)


def test_grey_sheets_are_read_as_three_equal_colours(cifar):
    folder, *_ = cifar
    Image.fromarray(np.full((ROWS, 1024), 51, np.uint8)).save(folder / "test_batch.png")
    np.testing.assert_allclose(read_cifar10(folder)[1].images, 0.2, rtol=1e-6)


def test_bytes_become_the_rounded_quotients():
    pixels = np.arange(256, dtype=np.uint8)
    quotients = np.divide(pixels, np.float32(255), dtype=np.float32)
    np.testing.assert_array_equal(quotients, (pixels / 255).astype(np.float32))
