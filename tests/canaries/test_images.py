"""What is planted: wrong labels that are never right, odd images, ranks by loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from remnant.canaries import (
    BY_LOSS,
    KINDS,
    QUARTER,
    blank,
    by_loss,
    mislabelled,
    odd,
    rows_in_share,
)
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
    share=st.floats(0.01, 1),
    part=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_losses_rank_the_pool(losses, share, part, seed):
    losses, held = np.array(losses), rows_in_share(len(losses), share)
    ranked, left = np.sort(losses), (len(losses) - held) // 2
    ends = {
        "easy": ranked[:held],
        "medium": ranked[left : left + held],
        "hard": ranked[len(ranked) - held :],
    }
    for level, end in ends.items():
        rows = by_loss(losses, count=held, level=level, rng=rng(seed), share=share)
        assert len(set(rows.tolist())) == held
        np.testing.assert_array_equal(np.sort(losses[rows]), end)
        fewer = by_loss(losses, count=int(part * held), level=level, rng=rng(seed), share=share)
        assert len(set(fewer.tolist())) == int(part * held)
        assert set(fewer) <= set(rows), "few come from the same share as many"


def test_rows_chosen_by_loss_are_any_of_their_share_in_any_order():
    losses = rng().permutation(400) / 7
    hardest = np.argsort(losses)[-20:]
    first, chosen = np.zeros(20), np.zeros(400)
    for seed in range(400):
        rows = by_loss(losses, count=4, level="hard", rng=rng(seed), share=0.05)
        first[hardest == rows[0]] += 1
        chosen[rows] += 1
    assert chosen.sum() == chosen[hardest].sum() == 1600
    assert stats.chisquare(first).pvalue > 1e-4
    assert stats.chisquare(chosen[hardest]).pvalue > 1e-4


def test_a_share_is_a_quarter_unless_given():
    assert QUARTER == 0.25
    rows = by_loss(np.arange(80.0), count=20, level="hard", rng=rng())
    assert sorted(rows) == list(range(60, 80))
    words = "21 canaries and controls .* holds 20 examples among its hardest 25 %"
    with pytest.raises(PlanError, match=words):
        by_loss(np.arange(80.0), count=21, level="hard", rng=rng())


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
        lambda count: by_loss(np.arange(9.0), count=count, level="hard", rng=rng(), share=1.0),
        lambda count: by_loss(np.arange(9.0), count=count, level="easy", rng=rng(), share=1.0),
    ],
)
def test_more_than_the_pool_holds_are_refused(draw):
    assert sorted(draw(9)) == list(range(9))
    with pytest.raises(PlanError, match=r"10 canaries and controls .* the pool holds 9") as caught:
        draw(10)
    assert caught.value.hint.startswith("Plant fewer canaries")


def test_what_cannot_be_done_is_said():
    with pytest.raises(PlanError, match="level='hardest' is not one of hard, medium, easy"):
        by_loss(np.arange(9.0), count=1, level="hardest", rng=rng())
    with pytest.raises(PlanError, match="classes=1 leaves no wrong label"):
        mislabelled(np.zeros(9, int), count=1, classes=1, rng=rng())
    assert set(BY_LOSS) < set(KINDS)
