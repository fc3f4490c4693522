"""``constraints.txt`` pins all that a complete install brings."""

from __future__ import annotations

import runpy
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PINS = runpy.run_path(str(HERE / "write_pins.py"))
TEXT = (HERE.parent / "constraints.txt").read_text(encoding="utf-8")


def test_every_package_that_is_installed_is_pinned():
    """Which version is installed is not asked: the tests also run with others."""
    try:
        needed = set(PINS["required"]("remnant", "dev"))
    except PackageNotFoundError as missing:
        pytest.skip(f"{missing.name} is not installed")
    assert len(needed) > 100
    assert needed - PINS["pinned"](TEXT) <= PINS["OURS"]


def test_the_file_is_what_make_pins_writes():
    assert TEXT.startswith(PINS["HEADER"])
    assert "torch==2.13.0\n" in TEXT
    lines = TEXT.removeprefix(PINS["HEADER"]).splitlines()
    assert lines == sorted(set(lines))
