"""Entries are read by type; every fault is listed, and none tells a value."""

from __future__ import annotations

import pytest

from remnant.errors import InvalidInput
from remnant.report.fields import Fields

SECRET = "281265017"


def test_what_is_well_formed_is_read():
    found = Fields(
        {
            "bits": 3,
            "space": 10**40,
            "sure": False,
            "name": "canary 1",
            "mean": [1, None],
            "steps": [0.5, 2],
            "n": [3],
            "names": ["a"],
            "rows": [[1, None], []],
            "inner": {"shape": -1.5},
            "each": [{"x": 1}, {"x": 2}],
            "rank": None,
        },
        name="result",
    )
    assert found.number("bits") == 3.0
    assert found.whole("space") == 10**40
    assert found.flag("sure") is False
    assert found.text("name") == "canary 1"
    assert found.numbers_or_none("mean") == (1.0, None)
    assert found.numbers("steps") == (0.5, 2.0)
    assert found.wholes("n") == (3,)
    assert found.texts("names") == ("a",)
    assert found.rows("rows") == ((1.0, None), ())
    assert found.inner("inner").number("shape") == -1.5
    assert [one.whole("x") for one in found.each("each")] == [1, 2]
    assert found.has("bits")
    assert (found.whole_or_none("rank"), found.number_or_none("rank")) == (None, None)
    assert (found.text_or_none("nowhere"), found.has("nowhere")) == (None, False)
    found.check()


@pytest.mark.parametrize(
    ("value", "method", "words"),
    [
        (SECRET, "number", "is a str, no finite number"),
        (True, "number", "is a bool, no finite number"),
        (float("nan"), "number", "is a float, no finite number"),
        (10**400, "number", "is an int, no finite number"),
        (None, "number", "is missing, no finite number"),
        (SECRET, "number_or_none", "is a str, no finite number"),
        (-1, "whole", "is an int, no whole number from 0"),
        (2.5, "whole", "is a float, no whole number from 0"),
        (True, "whole_or_none", "is a bool, no whole number from 0"),
        (1, "flag", "is an int, neither true nor false"),
        (281265017, "text", "is an int, no text"),
        (SECRET, "numbers", "is a str, no list"),
        ([SECRET], "numbers", "[0] is a str, no finite number"),
        ([1, {}], "numbers_or_none", "[1] is a dict, no finite number"),
        ([1.5], "wholes", "[0] is a float, no whole number from 0"),
        ([281265017], "texts", "[0] is an int, no text"),
        ([SECRET], "rows", "[0] is a str, no list"),
        (SECRET, "each", "is a str, no list"),
        ([SECRET], "each", "[0] is a str, no object"),
        (SECRET, "inner", "is a str, no object"),
    ],
)
def test_a_fault_names_the_place_and_not_the_value(value, method, words):
    found = Fields({"key": value}, name="result")
    getattr(found, method)("key")
    with pytest.raises(InvalidInput) as caught:
        found.check()
    assert str(caught.value) == f"result.key{words if words[0] == '[' else f' {words}'}."
    assert SECRET not in str(caught.value)


def test_all_faults_are_listed_of_inner_objects_too():
    found = Fields({"a": "x", "rows": [{"b": None}, {"b": 1}]}, name="result")
    found.number("a")
    for row in found.each("rows"):
        row.number("b")
    found.same_length(steps=(1, 2), bits=(1,), names=(1, 2))
    assert found.faults == [
        "result.a is a str, no finite number",
        "result.rows[0].b is missing, no finite number",
        "result.bits has 1 entries for 2 steps",
    ]


def test_what_is_no_object_is_one_fault():
    assert Fields([1], name="result").faults == ["result is a list, no object"]
