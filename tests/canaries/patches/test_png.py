"""Patches from files: the levels that were written, whatever the mode."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from PIL import Image

from remnant import Patch
from remnant.errors import InvalidInput, MissingExtra

BYTES = np.random.default_rng(0).integers(0, 256, (4, 6, 3)).astype(np.uint8)


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "1", "P"])
def test_levels_are_read_as_written(tmp_path, mode):
    made = Image.fromarray(BYTES).convert(mode)
    made.save(tmp_path / "a.png")
    found = Patch.image(tmp_path / "a.png", row=2, column=3, opacity=0.5)
    grey = mode in ("L", "LA", "1")
    wanted = np.asarray(made.convert("L" if grey else "RGB"), dtype=float).reshape(4, 6, -1) / 255
    np.testing.assert_allclose(found.pixels, wanted.transpose(2, 0, 1))
    assert found.pixels.shape[0] == (1 if grey else 3)
    assert (found.row, found.column, found.opacity, found.grain) == (2, 3, 0.5, 1)


def test_sixteen_bits_are_read_as_written(tmp_path):
    levels = np.arange(24, dtype=np.uint16).reshape(4, 6) * 2800
    Image.fromarray(levels).save(tmp_path / "a.png")
    np.testing.assert_allclose(Patch.image(tmp_path / "a.png").pixels[0], levels / 65535)


def test_files_that_will_not_do_are_refused(tmp_path):
    clear = np.dstack([BYTES, np.full((4, 6), 255, np.uint8)])
    clear[0, 0, 3] = 254
    Image.fromarray(clear).save(tmp_path / "clear.png")
    with pytest.raises(InvalidInput, match="transparent somewhere"):
        Patch.image(tmp_path / "clear.png")
    Image.fromarray(BYTES).save(tmp_path / "a.gif")
    whole = tmp_path / "whole.png"
    Image.fromarray(BYTES).save(whole)
    (tmp_path / "cut.png").write_bytes(whole.read_bytes()[:60])
    (tmp_path / "text.png").write_text("not a picture")
    for name in ("a.gif", "cut.png", "text.png", "missing.png"):
        with pytest.raises(InvalidInput, match="not a PNG file that can be read"):
            Patch.image(tmp_path / name)


def test_without_pillow_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r"needs Pillow. .*\[data\]"):
        Patch.image("a.png")
