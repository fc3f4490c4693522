"""Names that were in use before are still there, with a warning."""

from __future__ import annotations

import pytest

import remnant.data


def test_the_old_name_of_a_question_still_works_and_says_the_new_one():
    with pytest.warns(DeprecationWarning, match="MultipleChoice"):
        assert remnant.data.Question is remnant.data.MultipleChoice


def test_other_names_are_missing_as_usual():
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = remnant.data.nothing_like_it
