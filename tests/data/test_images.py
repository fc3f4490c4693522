"""The three parts of an audit's data, the digits, and the catalogue's refusals."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.data import DATA_SETS, Images, load_images
from remnant.data.images import cut
from remnant.errors import PlanError


def numbered(n, first=0):
    """Images that carry their own number, so that they can be told apart."""
    numbers = np.arange(first, first + n)
    images = np.repeat(numbers[:, None, None, None], 4, axis=2).astype(np.float32) / 1000
    return Images(images, numbers % 7)


def numbers_of(part):
    numbers = np.round(part.images[:, 0, 0, 0] * 1000).astype(int)
    np.testing.assert_array_equal(part.labels, numbers % 7)  # each image kept its own label
    return numbers.tolist()


@pytest.mark.parametrize("n", [10, 11, 50, 97])
def test_without_a_held_out_part_everything_is_cut_in_three(n):
    data = cut(numbered(n), None, examples=None, seed=0)
    parts = [numbers_of(part) for part in (data.clean, data.pool, data.test)]
    assert sorted(sum(parts, [])) == list(range(n))  # noqa: RUF017
    assert [len(part) for part in parts[:2]] == [round(0.5 * n), round(0.3 * n)]
    assert data.classes == 7
    assert parts[0] != sorted(parts[0])


@pytest.mark.parametrize("held_out", [10, 11])
def test_a_held_out_part_is_halved_into_pool_and_test(held_out):
    data = cut(numbered(30), numbered(held_out, first=500), examples=None, seed=0)
    assert sorted(numbers_of(data.clean)) == list(range(30))
    assert numbers_of(data.clean) != list(range(30))
    pool, test = numbers_of(data.pool), numbers_of(data.test)
    assert sorted(pool + test) == list(range(500, 500 + held_out))
    assert len(pool) - len(test) in (0, 1)


@pytest.mark.parametrize("held_out", [None, numbered(20, first=500)])
def test_the_cut_follows_from_its_seed_alone(held_out):
    one, again, other = (cut(numbered(40), held_out, examples=None, seed=s) for s in (3, 3, 4))
    assert one.fingerprint == again.fingerprint != other.fingerprint
    for name in ("clean", "pool", "test"):
        np.testing.assert_array_equal(getattr(one, name).images, getattr(again, name).images)
        assert numbers_of(getattr(one, name)) != numbers_of(getattr(other, name))


@pytest.mark.parametrize("part", ["train", "held_out"])
@pytest.mark.parametrize("what", ["pixel", "label"])
def test_one_pixel_or_one_label_moves_the_fingerprint(part, what):
    sets = {"train": numbered(40), "held_out": numbered(20, first=500)}
    before = cut(**sets, examples=None, seed=0).fingerprint
    assert len(before) == 16
    if what == "pixel":
        sets[part].images[7, 0, 3, 0] += np.float32(1 / 255)
    else:
        sets[part].labels[7] = (sets[part].labels[7] + 1) % 7
    assert cut(**sets, examples=None, seed=0).fingerprint != before


def test_fewer_examples_are_the_first_of_all_and_leave_the_rest_alone():
    whole = cut(numbered(40), None, examples=None, seed=0)
    few = cut(numbered(40), None, examples=5, seed=0)
    assert numbers_of(few.clean) == numbers_of(whole.clean)[:5]
    assert numbers_of(few.pool) == numbers_of(whole.pool)
    assert few.fingerprint != whole.fingerprint
    assert cut(numbered(40), None, examples=20, seed=0).fingerprint == whole.fingerprint


@pytest.mark.parametrize("examples", [0, -1, 21])
def test_more_examples_than_there_are_or_none_are_refused(examples):
    with pytest.raises(PlanError, match=f"data.examples={examples} is not between 1 and the 20"):
        cut(numbered(40), None, examples=examples, seed=0)


@pytest.mark.parametrize(
    ("n", "held_out"), [(0, None), (1, None), (2, None), (9, 1), (9, 0), (0, 9)]
)
def test_too_little_to_cut_is_refused(n, held_out):
    rest = None if held_out is None else numbered(held_out)
    with pytest.raises(PlanError, match="too few to cut"):
        cut(numbered(n), rest, examples=None, seed=0)


def test_framed_digits_are_the_digits_in_black():
    plain, framed = load_images("digits"), load_images("framed-digits")
    assert framed.clean.images.shape[1:] == (1, 20, 20)
    np.testing.assert_array_equal(framed.test.images[..., 6:14, 6:14], plain.test.images)
    np.testing.assert_array_equal(framed.test.labels, plain.test.labels)
    assert framed.clean.images.sum() == plain.clean.images.sum()


def test_the_digits_are_there():
    data = load_images("digits")
    parts = (data.clean, data.pool, data.test)
    assert sum(map(len, parts)) == 1797
    assert data.classes == 10
    for part in parts:
        assert part.images.dtype == np.float32
        assert part.images.shape[1:] == (1, 8, 8)
        assert part.labels.dtype == np.int64
        assert set(part.labels) == set(range(10))
        assert part.images.min() == 0
        assert part.images.max() == 1
    assert data.fingerprint == load_images("digits", seed=0).fingerprint
    assert data.fingerprint != load_images("digits", seed=1).fingerprint
    assert len(load_images("digits", examples=12).clean) == 12


def test_an_unknown_set_is_answered_with_the_known():
    with pytest.raises(PlanError, match=r"data.name='svhn' is not one of digits, framed-digits, "):
        load_images("svhn")


@pytest.mark.parametrize("name", [name for name in DATA_SETS if "digits" not in name])
def test_a_set_from_files_needs_a_folder(name):
    with pytest.raises(PlanError, match=f"{name} is read from files") as caught:
        load_images(name)
    assert caught.value.hint == "Pass --data FOLDER."
