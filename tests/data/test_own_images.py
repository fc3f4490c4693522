"""The user's own images and features: what is read, what is refused and how it is said."""

from __future__ import annotations

import hashlib
import pickle
import sys

import numpy as np
import pytest
from PIL import Image

from remnant.data.catalogue import load_own_images
from remnant.data.images import Images, cut, examples_needed
from remnant.data.own_files import OwnFiles
from remnant.data.own_images import own_images
from remnant.errors import InvalidInput, MissingExtra, PlanError

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (6, 8, 8), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


@pytest.fixture
def read(tmp_path):
    """Write arrays to an npz file and read it."""

    def reading(*, named=None, **arrays):
        np.savez(tmp_path / "mine.npz", **arrays)
        return own_images(OwnFiles(path="mine.npz", folder=tmp_path), inputs=named)

    return reading


@pytest.fixture
def folder(tmp_path):
    """A folder with two classes of two grey pictures each."""
    for name in ("dog", "cat"):
        (tmp_path / "mine" / name).mkdir(parents=True)
        for number in range(2):
            pixels = BYTES[number] // (1 + (name == "cat"))
            Image.fromarray(pixels).save(tmp_path / "mine" / name / f"{number}.png")
    return tmp_path / "mine"


def refusal(read_it):
    with pytest.raises(InvalidInput) as caught:
        read_it()
    assert "\n" not in str(caught.value)
    assert caught.value.hint, "it says what to do"
    return str(caught.value)


def test_images_are_read_as_everywhere_else(read):
    train, held_out, origin = read(images=BYTES, labels=LABELS)
    np.testing.assert_array_equal(train.images, (BYTES[:, None] / np.float32(255)))
    np.testing.assert_array_equal(train.labels, LABELS)
    assert held_out is None
    assert origin.classes == ("0", "1", "2")
    colour, _, _ = read(images=np.repeat(BYTES[..., None], 3, axis=3), labels=LABELS)
    assert colour.images.shape == (6, 3, 8, 8)


def test_features_stay_as_they_are_and_bytes_are_divided(read):
    rows = RNG.normal(0, 50, (6, 5))
    train, _, _ = read(named="x", x=rows, labels=LABELS)
    np.testing.assert_array_equal(train.images[:, 0, 0], rows.astype(np.float32))
    train, _, _ = read(images=BYTES.reshape(6, 64), labels=LABELS)
    np.testing.assert_array_equal(train.images[:, 0, 0], BYTES.reshape(6, 64) / np.float32(255))


@pytest.mark.parametrize(
    ("labels", "classes", "numbers"),
    [
        (["cat", "ant", "cat"], ("ant", "cat"), [1, 0, 1]),
        ([10, 2, 10], ("2", "10"), [1, 0, 1]),
        (["10", "2", "010"], ("2", "10"), [1, 0, 1]),
        ([-1, 1, 1], ("-1", "1"), [0, 1, 1]),
        ([3.0, 0.0, 3.0], ("0", "3"), [1, 0, 1]),
        ([True, False, True], ("0", "1"), [1, 0, 1]),
    ],
)
def test_labels_become_numbers_in_order_and_the_origin_says_which(read, labels, classes, numbers):
    train, _, origin = read(images=BYTES[:3], labels=np.array(labels))
    assert origin.classes == classes
    assert train.labels.tolist() == numbers
    assert origin.to_dict()["classes"] == {str(n): name for n, name in enumerate(classes)}


def test_the_origin_has_the_digest_of_the_file(read, tmp_path):
    _, _, origin = read(images=BYTES, labels=LABELS)
    digest = hashlib.sha256((tmp_path / "mine.npz").read_bytes()).hexdigest()
    assert origin.files == (("mine.npz", digest),)


def test_the_fingerprint_moves_with_any_byte_of_the_file(tmp_path):
    files = OwnFiles(path="mine.npz", folder=tmp_path)
    found = set()
    for more in ({}, {"unused": np.zeros(1)}, {"unused": np.ones(1)}):
        np.savez(tmp_path / "mine.npz", images=BYTES, labels=LABELS, **more)
        data = load_own_images(files)
        found.add(data.fingerprint)
        plain = cut(*own_images(files)[:2], examples=None, seed=0)
        np.testing.assert_array_equal(plain.clean.images, data.clean.images)
    assert len(found) == 3


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"images": BYTES}, "has no array 'labels' (data.labels); it holds images"),
        ({"labels": LABELS}, "has no array 'images' or 'inputs' (data.inputs); it holds labels"),
        (
            {"images": BYTES, "inputs": BYTES, "labels": LABELS},
            "has both 'images' and 'inputs', and data.inputs names none",
        ),
        ({"images": BYTES, "labels": LABELS[:5]}, "6 images for 5 labels"),
        ({"images": BYTES, "labels": np.eye(6)}, "labels have the shape (6, 6), not one label"),
        ({"images": BYTES, "labels": LABELS / 2}, "labels[1] is neither a whole number nor a name"),
        (
            {"images": BYTES, "labels": np.full(6, np.nan)},
            "labels[2] is neither a whole number nor a name (and 3 more of this kind)",
        ),
        ({"images": BYTES, "labels": np.array(["a", ""] * 3)}, "labels[1] is neither"),
        ({"images": BYTES, "labels": LABELS.astype(complex)}, "holds complex numbers"),
        ({"images": BYTES, "labels": LABELS.astype("S1")}, "labels are of type |S1, neither"),
        ({"images": BYTES, "labels": np.zeros(6, int)}, "mine.npz has one class only, '0'"),
        ({"images": np.full((6, 8, 8), np.nan), "labels": LABELS}, "images hold 384 values that"),
        ({"inputs": np.full((6, 2), 1e300), "labels": LABELS}, "NaN, infinite or too large"),
        ({"images": BYTES / 2, "labels": LABELS}, "reach from 0 to 127.5, not from 0 to 1"),
        ({"images": LABELS, "labels": LABELS}, "images have the shape (6,); it takes (examples, "),
        ({"images": np.zeros((0, 8, 8)), "labels": LABELS[:0]}, "have the shape (0, 8, 8)"),
        ({"images": BYTES.astype(str), "labels": LABELS}, "are of type <U3, not numbers"),
        ({"images": np.zeros((6, 8, 8)), "labels": LABELS}, "all values of mine.npz are equal"),
        (
            {"images": np.array([{}] * 6), "labels": LABELS},
            "holds pickled objects, which are never loaded",
        ),
    ],
)
def test_arrays_that_are_refused(read, arrays, words, tmp_path):
    said = refusal(lambda: read(**arrays))
    assert words in said
    assert said.startswith("data.path: ")
    assert "mine.npz" in said


def test_several_faults_of_a_file_are_listed_at_once(read):
    said = refusal(lambda: read(images=np.full((5, 8, 8), np.nan), labels=np.array([0.5] * 6)))
    assert "values that are NaN" in said
    assert "5 images for 6 labels" in said
    assert "labels[0] is neither" in said


def test_files_that_are_no_npz_are_refused(tmp_path):
    for name, content in (
        ("mine.npz", b"no archive"),
        ("pickled.npz", pickle.dumps({"labels": 1})),
    ):
        (tmp_path / name).write_bytes(content)
        said = refusal(lambda name=name: own_images(OwnFiles(path=name, folder=tmp_path)))
        assert "is damaged, or holds something else than plain arrays" in said
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    said = refusal(lambda: own_images(OwnFiles(path="mine.csv", folder=tmp_path)))
    assert "is neither an .npz file nor a folder" in said
    said = refusal(lambda: own_images(OwnFiles(path="none.npz", folder=tmp_path)))
    assert f"data.path: {tmp_path / 'none.npz'} is not there" in said


def test_a_held_out_file_has_the_same_shape_and_classes(tmp_path):
    np.savez(tmp_path / "a.npz", images=BYTES, labels=LABELS)
    files = OwnFiles(path="a.npz", held_out="b.npz", folder=tmp_path)
    np.savez(tmp_path / "b.npz", images=BYTES[:, :6], labels=LABELS)
    said = refusal(lambda: own_images(files))
    assert (
        "data.held_out: b.npz has inputs of shape (1, 6, 8), and a.npz of shape (1, 8, 8)" in said
    )
    np.savez(tmp_path / "b.npz", images=BYTES, labels=LABELS + 1)
    said = refusal(lambda: own_images(files))
    assert "data.held_out: b.npz has classes that data.path has not: '3'" in said
    np.savez(tmp_path / "b.npz", images=BYTES[:4], labels=LABELS[:4])
    data = load_own_images(files)
    assert (len(data.clean), len(data.pool), len(data.test)) == (6, 2, 2)


def test_a_folder_of_images_is_read_by_class(folder):
    (folder / ".hidden").mkdir()
    (folder / "cat" / ".DS_Store").write_text("x")
    train, _, origin = own_images(OwnFiles(path=str(folder)))
    assert origin.classes == ("cat", "dog")
    assert train.labels.tolist() == [0, 0, 1, 1]
    wanted = np.stack([BYTES[0] // 2, BYTES[1] // 2, BYTES[0], BYTES[1]])[:, None]
    np.testing.assert_array_equal(train.images, wanted / np.float32(255))
    before = origin.files
    (folder / "cat" / "0.png").rename(folder / "cat" / "3.png")
    assert own_images(OwnFiles(path=str(folder)))[2].files != before


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_colour_images_are_read(folder, mode):
    for file in folder.rglob("*.png"):
        Image.open(file).convert(mode).save(file)
    train, _, _ = own_images(OwnFiles(path=str(folder)))
    assert train.images.shape[1:] == (len(mode), 8, 8)


def damage(path):
    path.write_bytes(path.read_bytes()[:60])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: Image.new("L", (9, 8)).save(f / "dog" / "1.png"), "9 x 8 pixels, mode L, 0.png"),
        (lambda f: Image.new("RGB", (8, 8)).save(f / "dog" / "1.png"), "8 x 8 pixels, mode RGB"),
        (lambda f: damage(f / "dog" / "1.png"), "dog/1.png is damaged, or no PNG or JPEG"),
        (lambda f: (f / "dog" / "1.png").write_text("hello"), "dog/1.png is damaged"),
        (lambda f: (f / "dog" / "a.txt").write_text("hello"), "dog/a.txt is no PNG or JPEG"),
        (lambda f: (f / "dog" / "more").mkdir(), "dog/more is no PNG or JPEG of a class"),
        (lambda f: (f / "loose.png").write_text(""), "loose.png is no PNG or JPEG of a class"),
        (lambda f: (f / "eel").mkdir(), "eel is empty"),
    ],
)
def test_folders_that_are_refused(folder, change, words):
    change(folder)
    said = refusal(lambda: own_images(OwnFiles(path=str(folder))))
    assert words in said
    assert said.startswith(f"data.path: {folder}")


def test_a_mode_of_all_images_that_is_not_read_is_named(folder):
    for file in folder.rglob("*.png"):
        Image.open(file).convert("P").save(file)
    assert "has 8 x 8 pixels, mode P" in refusal(lambda: own_images(OwnFiles(path=str(folder))))


def test_folders_without_classes_are_refused(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    said = refusal(lambda: own_images(OwnFiles(path=str(tmp_path / "empty"))))
    assert "has no sub-folders" in said
    for file in (folder / "cat").iterdir():
        file.unlink()
    (folder / "cat").rmdir()
    assert "one class only, 'dog'" in refusal(lambda: own_images(OwnFiles(path=str(folder))))


def test_images_without_pillow(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match="Reading image folders needs Pillow"):
        own_images(OwnFiles(path=str(folder)))


def test_too_few_examples_to_cut(read, tmp_path):
    read(images=BYTES[:3], labels=LABELS[:3])
    with pytest.raises(PlanError, match="too few to cut: 2 clean, 1 pool, 0 test") as caught:
        load_own_images(OwnFiles(path="mine.npz", folder=tmp_path))
    assert caught.value.hint == "Give at least 5 examples, or 2 in a held-out part."
    for count in range(5, 60):
        data = cut(*own_images_of(count), examples=None, seed=0)
        assert min(len(data.clean), len(data.pool), len(data.test)) > 0


def own_images_of(count, *, held_out=None):
    def made(number):
        return Images(np.zeros((number, 1, 2, 2), np.float32), np.arange(number) % 2)

    return made(count), None if held_out is None else made(held_out)


@pytest.mark.parametrize("pool", range(1, 40))
def test_the_number_of_examples_that_a_pool_needs_is_the_least(pool):
    least = int(examples_needed(pool, held_out=False).split()[0])
    sizes = [len(cut(*own_images_of(n), examples=None, seed=0).pool) for n in (least, least - 1)]
    assert sizes[0] >= pool
    assert sizes[1] < pool or least == 5
    half = int(examples_needed(pool, held_out=True).split()[0])
    if half > 1:
        data = cut(*own_images_of(9, held_out=half), examples=None, seed=0)
        assert len(data.pool) == pool
