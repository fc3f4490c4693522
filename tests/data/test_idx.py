"""IDX files that the test writes, whole and damaged, and MNIST's layout."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from remnant.data import load_images
from remnant.data.catalogue import read_idx, read_mnist
from remnant.errors import InvalidInput

VALUES = np.random.default_rng(0).integers(0, 256, (6, 3, 5), dtype=np.uint8)


def idx(values):
    """The format by hand: two zeros, the type, the axes, each length in big-endian, the bytes."""
    header = bytes([0, 0, 8, values.ndim])
    return header + b"".join(n.to_bytes(4, "big") for n in values.shape) + values.tobytes()


def write(path, values):
    raw = idx(values)
    path.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)
    return path


@pytest.mark.parametrize("name", ["a-idx3-ubyte", "a-idx3-ubyte.gz"])
@pytest.mark.parametrize("values", [VALUES, VALUES[0, 0], VALUES[:0], np.zeros((300, 1), np.uint8)])
def test_what_was_written_is_read(name, values, tmp_path):
    found = read_idx(write(tmp_path / name, values))
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, values)


WHOLE = idx(VALUES)
PACKED = gzip.compress(WHOLE, mtime=0)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "is not an IDX file of bytes"),
        (WHOLE[:3], "is not an IDX file of bytes"),
        (b"\x89PNG" + WHOLE[4:], "is not an IDX file of bytes"),
        (b"\0\0\x0d\x03" + WHOLE[4:], "is not an IDX file of bytes"),  # floats
        (WHOLE[:4], "is damaged"),
        (WHOLE[:10], "is damaged"),
        (WHOLE[:-1], "is damaged"),
        (WHOLE + b"\0", "is damaged"),
        (b"\0\0\x08\xff" + WHOLE[4:], "is damaged"),
        (b"\0\0\x08\x03" + b"\xff" * 12 + WHOLE[16:], "is damaged"),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_a_damaged_file_is_named(raw, words, compressed, tmp_path):
    path = tmp_path / ("images.gz" if compressed else "images")
    path.write_bytes(gzip.compress(raw, mtime=0) if compressed else raw)
    with pytest.raises(InvalidInput, match=words) as caught:
        read_idx(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize("raw", [b"", WHOLE, PACKED[:-12], PACKED[:15] + b"\xff" * 30])
def test_a_damaged_archive_is_named(raw, tmp_path):
    path = tmp_path / "images.gz"
    path.write_bytes(raw)
    with pytest.raises(InvalidInput, match=r"images.gz (cannot be read|is not an IDX)"):
        read_idx(path)


def test_a_missing_file_and_a_folder_in_its_place(tmp_path):
    with pytest.raises(InvalidInput, match="nowhere is not there") as caught:
        read_idx(tmp_path / "nowhere")
    assert "--data" in caught.value.hint
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_idx(tmp_path)


@pytest.fixture(params=["", ".gz"])
def mnist(request, tmp_path):
    """Sixteen and ten images in MNIST's layout; both kinds of file are found."""
    rng = np.random.default_rng(1)
    written = {}
    for prefix, n in (("train", 16), ("t10k", 10)):
        images = rng.integers(0, 256, (n, 4, 6), dtype=np.uint8)
        labels = np.arange(n, dtype=np.uint8) % 10
        write(tmp_path / f"{prefix}-images-idx3-ubyte{request.param}", images)
        write(tmp_path / f"{prefix}-labels-idx1-ubyte{request.param}", labels)
        written[prefix] = images, labels
    return tmp_path, written


def test_a_folder_in_mnists_layout(mnist):
    folder, written = mnist
    for found, (images, labels) in zip(read_mnist(folder), written.values(), strict=True):
        assert found.images.dtype == np.float32
        assert found.labels.dtype == np.int64
        assert len(found) == len(labels)
        np.testing.assert_allclose(found.images[:, 0], images / 255, rtol=1e-6)
        np.testing.assert_array_equal(found.labels, labels)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_the_catalogue_finds_the_folder_or_the_one_inside(mnist, name):
    folder, _ = mnist
    direct = load_images(name, folder=folder)
    assert (len(direct.clean), len(direct.pool), len(direct.test)) == (16, 5, 5)
    inner = folder / name
    inner.mkdir()
    for path in list(folder.glob("*ubyte*")):
        path.rename(inner / path.name)
    assert load_images(name, folder=folder).fingerprint == direct.fingerprint
    assert load_images(name, folder=inner).fingerprint == direct.fingerprint


def test_the_plain_file_goes_before_the_compressed(mnist):
    folder, _ = mnist
    write(folder / "train-labels-idx1-ubyte", np.full(16, 3, np.uint8))
    assert set(read_mnist(folder)[0].labels) == {3}


def test_images_and_labels_that_do_not_belong_together(mnist):
    folder, _ = mnist
    for labels in (np.zeros(15, np.uint8), np.zeros((16, 1), np.uint8)):
        write(folder / "train-labels-idx1-ubyte", labels)
        with pytest.raises(InvalidInput, match="train images and labels do not belong together"):
            read_mnist(folder)


def test_an_empty_folder_says_what_it_lacks(tmp_path):
    with pytest.raises(InvalidInput, match=r"train-images-idx3-ubyte.gz is not there"):
        load_images("mnist", folder=tmp_path)
