"""Variants of a patch: what it may have looked like instead."""

from __future__ import annotations

import numpy as np
import pytest

from remnant import Patch
from remnant.canaries.patches import Patches, patch_variants

SHAPE = (1, 12, 12)


def _pixels(patch, **changes):
    return {variant.name: variant.patch for variant in patch_variants(patch, SHAPE)}


def test_ink_and_paper_exchanged_is_the_patch_of_the_other_ink():
    for ink, paper in ((0.0, 1.0), (0.2, 0.9)):
        made = _pixels(Patch.letter("K", ink=ink, paper=paper))["with ink and paper exchanged"]
        other = Patch.letter("K", ink=paper, paper=ink)
        np.testing.assert_allclose(made.pixels, other.pixels)
        assert (made.row, made.column, made.grain) == (other.row, other.column, other.grain)


def test_a_faint_patch_has_a_variant_at_full_contrast():
    faint = Patch.letter("K", ink=0.6, paper=0.5, opacity=0.3)
    full = _pixels(faint)["at full contrast"]
    np.testing.assert_allclose(full.pixels, Patch.letter("K").pixels)
    assert full.opacity == 1.0
    assert "at full contrast" not in _pixels(Patch.letter("K"))


def test_variants_differ_and_fit_the_image():
    letter = Patch.letter("H", row=0, column=7)  # alike turned by 180° and mirrored
    names = list(_pixels(letter))
    assert names == [
        "with ink and paper exchanged",
        "one pixel lower",
        "one pixel further left",
        "with row and column exchanged",
        "turned by 90°",
    ]
    wide = Patch.array(np.arange(8.0).reshape(1, 2, 4) ** 2 / 64, row=8, column=1)
    assert "turned by 180°" in _pixels(wide)
    assert "turned by 90°" in _pixels(wide)
    assert "turned by 90°" not in _pixels(Patch.array(wide.pixels, row=9, column=1))


@pytest.mark.parametrize("name", list(_pixels(Patch.letter("F", ink=0.9, row=1, column=2))))
def test_other_patches_are_changed_in_the_same_way(name):
    place = {"ink": 0.9, "row": 1, "column": 2}
    variants = {v.name: v for v in patch_variants(Patch.letter("F", **place), SHAPE)}
    changed = variants[name].of(Patches.of([Patch.letter(one, **place) for one in "FG"]))
    np.testing.assert_array_equal(changed.pixels[0], variants[name].patch.pixels)
    assert (changed.row, changed.column) == (variants[name].patch.row, variants[name].patch.column)
    alone = {v.name: v for v in patch_variants(Patch.letter("G", **place), SHAPE)}
    if name in alone:
        np.testing.assert_array_equal(changed.pixels[1], alone[name].patch.pixels)
