"""What is planted: wrong labels that are never right, odd images, ranks by loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from remnant.canaries import BY_LOSS, KINDS, blank, by_loss, mislabelled, odd
from remnant.errors import PlanError


def rng(seed=0):
    return np.random.default_rng(seed)


@given(
    labels=st.lists(st.integers(0, 6), min_size=1, max_size=30),
    share=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_a_wrong_label_is_never_the_right_one_and_no_row_comes_twice(labels, share, seed):
    labels, count = np.array(labels), int(share * len(labels))
    rows, wrong = mislabelled(labels, count=count, classes=7, rng=rng(seed))
    assert len(set(rows.tolist())) == len(rows) == len(wrong) == count
    assert (wrong != labels[rows]).all()
    assert ((wrong >= 0) & (wrong < 7)).all()
    assert rows.dtype == wrong.dtype == np.int64


def test_wrong_labels_are_uniform_over_the_wrong_ones_and_rows_over_the_pool():
    labels = np.arange(20_000) % 5
    rows, wrong = mislabelled(labels, count=10_000, classes=5, rng=rng())
    for own in range(5):
        counts = np.bincount(wrong[labels[rows] == own], minlength=5)
        assert counts[own] == 0
        assert stats.chisquare(np.delete(counts, own)).pvalue > 1e-4
    assert stats.chisquare(np.histogram(rows, bins=20, range=(0, 20_000))[0]).pvalue > 1e-4
    assert stats.chisquare(np.bincount(labels[rows])).pvalue > 1e-4


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 7, 9), (1, 1, 1)])
def test_blank_images_are_of_one_colour_each_and_differ(shape):
    images, labels = blank(shape, count=6, classes=4, rng=rng())
    assert images.shape == (6, *shape)
    assert images.dtype == np.float32
    assert images.flags.c_contiguous
    assert images.flags.writeable
    assert (images == images[:, :, :1, :1]).all()
    assert len(np.unique(images[:, 0, 0, 0])) == 6
    assert 0.0 <= images.min() <= images.max() <= 1.0
    assert set(labels.tolist()) <= {0, 1, 2, 3}


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 7, 9), (1, 1, 1), (2, 5, 4)])
def test_odd_images_are_blocks_of_the_right_shape_and_brightness(shape):
    images, labels = odd(shape, count=6, classes=4, rng=rng())
    assert images.shape == (6, *shape)
    assert images.dtype == np.float32
    assert images.flags.c_contiguous
    assert images.min() >= 0
    assert images.max() <= 1
    assert labels.shape == (6,)
    assert labels.dtype == np.int64
    assert set(labels) <= set(range(4))
    for row in range(0, shape[1], 2):
        for column in range(0, shape[2], 2):
            block = images[:, :, row : row + 2, column : column + 2]
            assert (block == block[:, :, :1, :1]).all()
    assert len({image.tobytes() for image in images}) == 6


def test_odd_images_are_uniform_in_brightness_and_in_label():
    images, labels = odd((1, 8, 8), count=2000, classes=4, rng=rng())
    assert stats.kstest(images[:, :, ::2, ::2].ravel(), "uniform").pvalue > 1e-4
    assert stats.chisquare(np.bincount(labels, minlength=4)).pvalue > 1e-4


@given(
    losses=st.lists(st.floats(0, 50), min_size=1, max_size=30),
    share=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_losses_rank_the_pool(losses, share, seed):
    losses, count = np.array(losses), int(share * len(losses))
    ranked = np.sort(losses)
    found = {level: by_loss(losses, count=count, level=level, rng=rng(seed)) for level in BY_LOSS}
    for rows in found.values():
        assert len(set(rows.tolist())) == len(rows) == count
    np.testing.assert_array_equal(np.sort(losses[found["easy"]]), ranked[:count])
    np.testing.assert_array_equal(np.sort(losses[found["hard"]]), ranked[len(ranked) - count :])
    left = (len(losses) - count) // 2
    np.testing.assert_array_equal(np.sort(losses[found["medium"]]), ranked[left : left + count])


def test_rows_chosen_by_loss_come_in_random_order():
    losses = rng().permutation(400) / 7
    first = np.zeros(4)
    for seed in range(200):
        rows = by_loss(losses, count=4, level="hard", rng=rng(seed))
        first[np.argsort(losses[rows])[0]] += 1
    assert stats.chisquare(first).pvalue > 1e-4


def test_the_same_generator_gives_the_same_canaries():
    labels = np.arange(50) % 5
    for draw in (
        lambda r: mislabelled(labels, count=9, classes=5, rng=r),
        lambda r: odd((1, 8, 8), count=9, classes=5, rng=r),
        lambda r: (by_loss(np.arange(50.0), count=9, level="hard", rng=r),),
    ):
        for one, again in zip(draw(rng(3)), draw(rng(3)), strict=True):
            np.testing.assert_array_equal(one, again)
        assert any((a != b).any() for a, b in zip(draw(rng(3)), draw(rng(4)), strict=True))


@pytest.mark.parametrize(
    "draw",
    [
        lambda count: mislabelled(np.arange(9) % 3, count=count, classes=3, rng=rng())[0],
        lambda count: by_loss(np.arange(9.0), count=count, level="hard", rng=rng()),
        lambda count: by_loss(np.arange(9.0), count=count, level="easy", rng=rng()),
    ],
)
def test_more_than_the_pool_holds_are_refused(draw):
    assert sorted(draw(9)) == list(range(9))
    with pytest.raises(PlanError, match=r"10 canaries and controls .* the pool holds 9") as caught:
        draw(10)
    assert caught.value.hint == "Plant fewer canaries."


def test_what_cannot_be_done_is_said():
    with pytest.raises(PlanError, match="level='hardest' is not one of hard, medium, easy"):
        by_loss(np.arange(9.0), count=1, level="hardest", rng=rng())
    with pytest.raises(PlanError, match="classes=1 leaves no wrong label"):
        mislabelled(np.zeros(9, int), count=1, classes=1, rng=rng())
    assert set(BY_LOSS) < set(KINDS)
