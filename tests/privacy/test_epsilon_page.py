"""The page about bounds on epsilon shows what its commands give."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "how-epsilon-is-bounded.md"


def test_the_pages_examples_give_what_they_show():
    examples = doctest.testfile(str(PAGE), module_relative=False)
    assert examples.attempted > 10
    assert examples.failed == 0
