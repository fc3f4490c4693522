"""Reading patterns: literals, holes, braces, and every way to write them wrongly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.canaries.holes import Hole, Slot, slots_of, split
from remnant.errors import InvalidInput

NONE = {"words": None, "tokens": None}


@given(st.lists(st.one_of(st.text(alphabet="ab{} :|", max_size=4), st.integers(1, 9)), max_size=6))
def test_what_was_written_is_read_whatever_braces_the_text_holds(parts):
    written, expected = "", []
    for part in parts:
        if isinstance(part, int):
            written += f"{{digits:{part}}}"
            expected.append(Hole("digits", str(part)))
        elif part:
            written += part.replace("{", "{{").replace("}", "}}")
            if expected and isinstance(expected[-1], str):
                expected[-1] += part
            else:
                expected.append(part)
    assert split(written) == expected


def test_a_pattern_becomes_prefix_slots_and_suffix():
    words = ("one", "two")
    prefix, slots, suffix = slots_of(
        "a {{b}} {digits:2}-{choice:x||y z}{words:3}!", {"words": words, "tokens": None}
    )
    digit = Slot("digits", tuple("0123456789"))
    word, blank = Slot("words", words), Slot("literal", (" ",))
    assert prefix == "a {b} "
    assert suffix == "!"
    assert slots == (
        *(digit, digit, Slot("literal", ("-",)), Slot("choice", ("x", "", "y z"))),
        *(word, blank, word, blank, word),
    )
    assert slots[4].choices is slots[6].choices, "a large vocabulary is stored once"


def test_each_kind_has_its_choices():
    tokens = ("<a>", "{", "|")
    _, slots, _ = slots_of(
        "{digits:1}{letters:1}{hex:1}{tokens:2}", {"words": None, "tokens": tokens}
    )
    assert [slot.kind for slot in slots] == ["digits", "letters", "hex", "tokens", "tokens"]
    assert ["".join(slot.choices) for slot in slots[:3]] == [
        "0123456789",
        "abcdefghijklmnopqrstuvwxyz",
        "0123456789abcdef",
    ]
    assert slots[3].choices == slots[4].choices == tokens


def test_a_hole_may_be_all_there_is():
    assert slots_of("{digits:01}", NONE) == ("", (Slot("digits", tuple("0123456789")),), "")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("nothing here", r"pattern has no hole, so that nothing in it is secret\. Write one"),
        ("", "pattern has no hole"),
        ("{{digits:3}}", "pattern has no hole"),
        ("{digit:3}", r"\{digit:3\} is a hole of unknown kind; the kinds are digits, letters, hex"),
        ("{}", r"\{\} is a hole of unknown kind"),
        ("{literal:a}", "unknown kind"),
        ("a {digits:3", "unbalanced braces: the '{' at character 3 is never closed"),
        ("a } {digits:3}", r"the '}' at character 3 closes no hole\. Write {{ and }}"),
        ('{"id": {digits:3}}', "the '{' at character 8 stands inside the hole that opens at 1"),
        ("{digits:3}}", "the '}' at character 11 closes no hole"),
        ("{digits}", r"the count in \{digits\} is not a whole number of at least 1"),
        ("{digits:}", "not a whole number"),
        ("{digits:0}", r"the count in \{digits:0\} is not a whole number of at least 1"),
        ("{digits:-1}", "not a whole number"),
        ("{digits:1.5}", "not a whole number"),
        ("{digits: 2}", "not a whole number"),
        ("{digits:٣}", "not a whole number"),
        ("{digits:1001}", r"the count in \{digits:1001\} is more than 1000"),
        ("{digits:" + "9" * 5000 + "}", "is more than 1000"),
        ("{digits:600}{hex:600}", "pattern has more than 1000 slots"),
        ("{choice:}", r"\{choice:\} has no choices; write them as {choice:a\|b\|c}"),
        ("{choice}", "has no choices"),
        ("{choice:a|b|a|a}", r"\{choice:a\|b\|a\|a\} holds 2 choice\(s\) more than once"),
        ("{choice:|}", "holds 1 choice"),
        ("{words:2}", r"pattern has a \{words:n\} hole and words= was not given"),
        ("{tokens:2}", r"pattern has a \{tokens:n\} hole and tokens= was not given"),
        ("{digit:3} {words:0}", r"unknown kind.*; the count in \{words:0\}.*; pattern has a"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_explained(pattern, message):
    with pytest.raises(InvalidInput, match=message):
        slots_of(pattern, NONE)


def test_a_long_hole_is_not_repeated_in_full():
    with pytest.raises(InvalidInput) as caught:
        slots_of("{" + "x" * 500 + "}", NONE)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "words= is empty"),
        (("a", "b", "a"), r"words= holds 1 choice\(s\) more than once"),
        (("a", ""), r"words\[1\] is an empty string"),
    ],
)
def test_a_faulty_vocabulary_is_explained(words, message):
    with pytest.raises(InvalidInput, match=message):
        slots_of("{words:1}", {"words": words, "tokens": None})


def test_a_vocabulary_that_no_hole_uses_is_refused():
    with pytest.raises(InvalidInput, match=r"words= was given and pattern has no \{words:n\} hole"):
        slots_of("{digits:1}", {"words": ("a",), "tokens": None})
    with pytest.raises(InvalidInput, match=r"tokens= was given and pattern has no"):
        slots_of("{words:1}", {"words": ("a",), "tokens": ("a",)})
