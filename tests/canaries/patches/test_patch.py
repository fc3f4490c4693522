"""Stamping against a loop over pixels, and random patches against what they should be."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant import Patch
from remnant.canaries import Patches
from remnant.canaries.patches.glyphs import GLYPHS
from remnant.errors import InvalidInput, NotEnoughEvidence


def rng(seed=0):
    return np.random.default_rng(seed)


def by_hand(images, pixels, row, column, opacity):
    """Pixel by pixel; ``pixels`` has one patch an image."""
    out = images.astype(np.float64).copy()
    for n, c, i, j in np.ndindex(len(out), out.shape[1], *pixels.shape[-2:]):
        ink = pixels[n, c if pixels.shape[1] > 1 else 0, i, j]
        below = out[n, c, row + i, column + j]
        out[n, c, row + i, column + j] = opacity * ink + (1 - opacity) * below
    return out


@settings(max_examples=60)
@given(
    seed=st.integers(0, 9999),
    channels=st.sampled_from([1, 3]),
    colours=st.sampled_from([1, 3]),
    row=st.integers(0, 3),
    column=st.integers(0, 3),
    opacity=st.sampled_from([1.0, 0.5, 0.1]),
    kind=st.sampled_from(["float16", "float32", "float64"]),
    tensor=st.booleans(),
    each=st.booleans(),
)
def test_stamping_is_what_it_says(
    seed, channels, colours, row, column, opacity, kind, tensor, each
):
    colours = min(channels, colours)
    draw = rng(seed)
    images = draw.random((4, channels, 8, 9)).astype(kind)
    patch = Patch.array(draw.random((colours, 3, 5)), row=row, column=column, opacity=opacity)
    many = Patches.of([patch.shuffled(draw) for _ in range(4)])
    stamp = many if each else patch
    pixels = many.pixels if each else np.repeat(patch.pixels[None], 4, axis=0)
    given = torch.from_numpy(images.copy()) if tensor else images.copy()
    found = stamp.stamp(given)
    assert type(found) is type(given)
    assert found.dtype == given.dtype
    assert found.shape == given.shape
    np.testing.assert_array_equal(np.asarray(given), images)
    wanted = by_hand(images, pixels, row, column, opacity)
    exact = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-12}[kind]
    np.testing.assert_allclose(np.asarray(found, dtype=np.float64), wanted, rtol=0, atol=exact)
    outside = np.ones((8, 9), dtype=bool)
    outside[row : row + 3, column : column + 5] = False
    np.testing.assert_array_equal(np.asarray(found)[..., outside], images[..., outside])
    if not each:
        np.testing.assert_array_equal(np.asarray(patch.stamp(given[0])), np.asarray(found)[0])


def test_stamping_lets_gradients_through():
    images = torch.rand(2, 1, 6, 6, requires_grad=True)
    Patch.letter("A", row=0, column=0).stamp(images).sum().backward()
    assert images.grad[:, :, :5, :5].abs().sum() == 0
    assert (images.grad[:, :, 5:] == 1).all()


def test_a_letter_is_its_glyph_at_its_place_and_larger_ones_are_made_of_squares():
    black = np.zeros((1, 1, 28, 28), dtype=np.float32)
    found = Patch.letter("A", size=5, row=1, column=1).stamp(black)
    np.testing.assert_array_equal(found[0, 0, 1:6, 1:6], GLYPHS["A"])
    assert found.sum() == GLYPHS["A"].sum()
    large = Patch.letter("K", size=15, row=2, column=4, ink=0.2, paper=0.7)
    np.testing.assert_array_equal(
        large.pixels[0], np.where(np.kron(GLYPHS["K"], np.ones((3, 3))), 0.2, 0.7)
    )
    assert (large.row, large.column, large.grain) == (2, 4, 3)
    word = Patch.text("NAME 7", size=10, gap=2)
    assert word.pixels.shape == (1, 10, 2 * (6 * 5 + 5 * 2))
    np.testing.assert_array_equal(word.pixels[0, ::2, 14:24:2], GLYPHS["A"])


def test_colours():
    red = Patch.letter("L", ink=(1.0, 0.0, 0.0), paper=0.25, row=0, column=0)
    assert red.pixels.shape == (3, 5, 5)
    np.testing.assert_array_equal(red.pixels[:, 0, 0], [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(red.pixels[:, 0, 1], [0.25, 0.25, 0.25])
    on_paper = Patch.letter("L", ink=0, paper=[0.5, 1, 1])
    np.testing.assert_array_equal(on_paper.pixels[:, 0, 1], [0.5, 1.0, 1.0])
    with pytest.raises(InvalidInput, match="a patch of 3 channels does not fit images of 1"):
        red.stamp(np.zeros((2, 1, 9, 9)))


def test_a_patch_is_frozen_and_does_not_tell_what_it_shows():
    drawn = np.eye(4)
    patch = Patch.array(drawn, row=2, column=0)
    drawn[:] = 0.0
    assert patch.pixels.sum() == 4.0
    with pytest.raises(ValueError, match="read-only"):
        patch.pixels[0, 0, 0] = 0.5
    with pytest.raises(dataclasses.FrozenInstanceError):
        patch.row = 3
    assert repr(patch) == "Patch(4x4 grey at row 2, column 0)"
    assert repr(patch.shuffles(rng(), 9)) == "Patches(9 of 4x4 grey at row 2, column 0)"
    faint = Patch.text("SECRET", size=10, ink=(1, 1, 0), opacity=0.5)
    assert repr(faint) == "Patch(10x70 in 3 channels at row 1, column 1, opacity 0.5)"


def squares(pixels, grain):
    """The squares of a picture, sorted."""
    _, height, width = pixels.shape
    return sorted(
        tuple(pixels[:, i : i + grain, j : j + grain].ravel())
        for i in range(0, height, grain)
        for j in range(0, width, grain)
    )


@settings(max_examples=40)
@given(
    seed=st.integers(0, 9999),
    channels=st.sampled_from([1, 3]),
    grain=st.integers(1, 3),
    tall=st.integers(1, 4),
    wide=st.integers(1, 4),
)
def test_shuffling_moves_squares_whole_and_loses_none(seed, channels, grain, tall, wide):
    draw = rng(seed)
    pixels = draw.random((channels, grain * tall, grain * wide))
    patch = Patch.array(pixels, row=3, column=4, opacity=0.7, grain=grain)
    found = patch.shuffled(draw)
    assert squares(found.pixels, grain) == squares(pixels, grain)
    assert (found.row, found.column, found.opacity, found.grain) == (3, 4, 0.7, grain)
    for one in patch.random_like(draw, 5, "shuffled").pixels:
        assert squares(one, grain) == squares(pixels, grain)


def test_every_order_is_as_likely():
    patch = Patch.array([[0.0, 0.25], [0.5, 1.0]])
    found = patch.shuffles(rng(), 23).pixels
    assert found.shape == (23, 1, 2, 2)
    many = patch.random_like(rng(1), 6000, "shuffled").pixels.reshape(6000, 4)
    orders, counts = np.unique(many, axis=0, return_counts=True)
    assert len(orders) == 24
    assert stats.chisquare(counts).pvalue > 1e-4


def test_random_patches_are_new_for_each_image_and_have_their_law():
    patch = Patch.letter("A", size=10, ink=0.8, paper=0.2, opacity=0.5)
    uniform = patch.random_like(rng(), 400)
    assert uniform.pixels.shape == (400, 1, 10, 10)
    assert (uniform.row, uniform.column, uniform.opacity) == (1, 1, 0.5)
    cells = uniform.pixels[:, 0, ::2, ::2]
    np.testing.assert_array_equal(uniform.pixels[:, 0], np.kron(cells, np.ones((2, 2))))
    assert stats.kstest((cells.ravel() - 0.2) / 0.6, "uniform").pvalue > 1e-4
    assert len(np.unique(cells)) == cells.size
    binary = patch.random_like(rng(), 400, "binary").pixels[:, 0, ::2, ::2]
    levels, counts = np.unique(binary.round(12), return_counts=True)
    np.testing.assert_allclose(levels, [0.2, 0.8])
    assert stats.binomtest(int(counts[0]), int(counts.sum()), 0.5).pvalue > 1e-4
    red = Patch.letter("A", ink=(1, 0, 0)).random_like(rng(), 50).pixels
    assert red[:, 1:].max() == 0.0 < red[:, 0].min()


def test_the_same_generator_gives_the_same_patches():
    patch = Patch.letter("Q")
    for draw in (
        lambda r: patch.shuffled(r).pixels,
        lambda r: patch.shuffles(r, 6).pixels,
        lambda r: patch.random_like(r, 6, "uniform").pixels,
        lambda r: patch.random_like(r, 6, "binary").pixels,
    ):
        np.testing.assert_array_equal(draw(rng(3)), draw(rng(3)))
        assert (draw(rng(3)) != draw(rng(4))).any()


def test_a_patch_without_orders_has_no_nulls():
    with pytest.raises(NotEnoughEvidence, match=r"have 1 different order\(s\), too few for 19"):
        Patch.array(np.ones((5, 5))).shuffles(rng(), 19)
    small = Patch.array([[0.0, 0.5, 1.0]])
    assert len(small.shuffles(rng(), 5)) == 5
    with pytest.raises(NotEnoughEvidence, match=r"have 6 different order\(s\), too few for 6"):
        small.shuffles(rng(), 6)
    assert Patch.array(np.ones((5, 5))).shuffled(rng()).pixels.sum() == 25


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Patch.letter("AB"), "letter is not one character"),
        (lambda: Patch.letter("a"), "without a glyph, such as 'a'"),
        (lambda: Patch.letter("A", size=7), "size=7 is not a multiple of 5"),
        (lambda: Patch.letter("A", size=0), "size=0 is not a multiple of 5"),
        (lambda: Patch.letter("A", row=-1), "row=-1 is not a whole number of at least 0"),
        (lambda: Patch.letter("A", column=1.0), "column=1.0 is not a whole number"),
        (lambda: Patch.letter("A", opacity=0.0), "opacity=0.0 is not above 0 and at most 1"),
        (lambda: Patch.letter("A", opacity=float("nan")), "opacity=nan is not above 0"),
        (lambda: Patch.letter("A", ink=2), "ink=2 is neither a grey level nor a colour"),
        (lambda: Patch.letter("A", paper=float("nan")), "paper=nan is neither"),
        (lambda: Patch.letter("A", ink=[1, 1], paper=[0, 0, 0]), "ink has 2 channels and paper 3"),
        (lambda: Patch.letter("A", ink=0.0), "ink=0.0 and paper=0.0 are alike"),
        (lambda: Patch.array([[0.0, np.nan]]), "NaN or values outside"),
        (lambda: Patch.array([[0.0, 255.0]]), "NaN or values outside"),
        (lambda: Patch.array([1.0, 0.0]), r"pixels has shape \(2,\)"),
        (lambda: Patch.array(np.zeros((0, 3))), r"pixels has shape \(0, 3\)"),
        (lambda: Patch.array("A"), "not an array of numbers"),
        (lambda: Patch.array(np.eye(3), grain=2), "grain=2 does not divide"),
        (lambda: Patch.array([[2.0]], row=-1, opacity=5), "outside .*; row=-1 .*; opacity=5"),
        (lambda: Patch.letter("A").shuffles(7, 0), "rng=7 is not .*; count=0 is not"),
        (lambda: Patch.letter("A").random_like(rng(), 3, "grey"), "kind='grey' is not one of"),
        (lambda: Patches.of([]), "0 patches have 0 different"),
        (lambda: Patches.of([Patch.letter("A"), Patch.letter("A", row=2)]), "2 patches have 2"),
    ],
)
def test_faults_of_patches(make, said):
    with pytest.raises(InvalidInput, match=said):
        make()


@pytest.mark.parametrize(
    ("images", "said"),
    [
        (np.zeros((2, 1, 5, 8)), "5x5 pixels at row 1, column 1 reaches outside images of 5x8"),
        (np.zeros((2, 1, 8, 5)), "reaches outside images of 8x5"),
        (np.zeros((8, 8)), r"images has shape \(8, 8\)"),
        (np.zeros((0, 1, 8, 8)), "images has shape"),
        (np.zeros((2, 1, 8, 8), dtype=np.uint8), "dtype uint8.*Divide bytes by 255"),
        (torch.zeros((2, 1, 8, 8), dtype=torch.int64), "dtype torch.int64"),
        (np.full((2, 1, 8, 8), 1.5), "values from 1.5 to 1.5, outside"),
        (np.full((2, 1, 8, 8), -0.1), "outside .*before images are normalised"),
        (np.full((2, 1, 8, 8), np.nan), "images holds NaN"),
        (torch.full((2, 1, 8, 8), float("nan")), "images holds NaN"),
        ([[[[0.5]]]], "images is a list"),
        ("images", "images is a str"),
    ],
)
def test_faults_of_images(images, said):
    with pytest.raises(InvalidInput, match=said):
        Patch.letter("A").stamp(images)


def test_every_image_needs_its_own():
    many = Patch.letter("A").shuffles(rng(), 3)
    assert many.take(np.array([2, 0])).pixels.shape == (2, 1, 5, 5)
    np.testing.assert_array_equal(many.take(np.array([2])).pixels[0], many.pixels[2])
    for n in (1, 2, 4):
        with pytest.raises(InvalidInput, match=rf"3 patch\(es\) were given for {n} image\(s\)"):
            many.stamp(np.zeros((n, 1, 8, 8)))
    with pytest.raises(InvalidInput, match=r"1 patch\(es\) were given for 2"):
        many.take(np.array([0])).stamp(np.zeros((2, 1, 8, 8)))
