"""Telephone numbers and e-mail addresses."""

from __future__ import annotations

import re
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remnant.canaries.natural import numbers
from remnant.canaries.natural.numbers import check_region, find_emails, find_phones
from remnant.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("mail Ann.Lee+x@Uni-Bonn.de.", "Ann.Lee+x@Uni-Bonn.de"),
        ("<a@b.co>", "a@b.co"),
        ("a_b%c-d@x.y.museum, and", "a_b%c-d@x.y.museum"),
        ("an m\u00fcller@firma.de", "m\u00fcller@firma.de"),
        ("an mu\u0308ller@firma.de", "mu\u0308ller@firma.de"),
        ("\u0438\u0432\u0430\u043d@firma.ru", "\u0438\u0432\u0430\u043d@firma.ru"),
        ("\u8bf7\u8054\u7cfbann@uni.edu\u8c22\u8c22", "ann@uni.edu"),  # no blanks in this script
    ],
)
def test_addresses(text, written):
    (found,) = find_emails(text)
    assert text[found.start : found.end] == written
    assert found.value == written.lower()
    assert written[-found.tail :] == "@" + written.rpartition("@")[2]


@pytest.mark.parametrize(
    "text",
    [
        "ann@example.com",
        "ann@mail.example.org",
        "ann@host.invalid",
        "ann@localhost",
        "a..b@uni.edu",
        "ann@-uni.edu",
        "@decorator.name",
        "ann@uni",
        "a" * 65 + "@uni.edu",
        "ann @ uni . edu",
        "ann@uni.edu\u00e9",
    ],
)
def test_what_is_no_address(text):
    assert list(find_emails(text)) == []


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("(650) 253-0000", 0),
        ("650.253.0000", 0),
        ("650 - 253 - 0000", 0),
        ("6502530000", 0),
        ("+1 650 253 0000", 2),
        ("+44 20 8366 1177", 3),
        ("+4930901820", 3),
    ],
)
def test_numbers(written, known):
    text = f"first\ncall {written}, please\n"
    (found,) = find_phones(text, region="US")
    assert text[found.start : found.end] == written
    assert found.known == known


@pytest.mark.parametrize(
    "text",
    ["17,650-253-0000", "17,650-253-0000,x", "a,17,6502530000", "17,6502530000,x", "a,6502530000"],
)
def test_a_number_may_be_a_field_of_a_row(text):
    assert [one.value for one in find_phones(text, region="US")] == ["tel:+1-650-253-0000"]


def test_a_number_is_the_same_however_it_is_written():
    text = "(650) 253-0000 / +1 650-253-0000 / 6502530000"
    assert len({one.value for one in find_phones(text, region="US")}) == 1


@pytest.mark.parametrize(
    "text",
    [
        "253-0000",
        "6502-5300-00",
        "3.6502530000",
        "3,6502530000",
        "123 456 7890",
        "2005-05-24",
        "650 253\n0000",
        "\uff16\uff15\uff10 \uff12\uff15\uff13 \uff10\uff10\uff10\uff10",
    ],
)
def test_what_is_no_number(text):
    assert list(find_phones(text, region="US")) == []


def test_a_number_without_a_code_is_of_the_region():
    assert [one.value for one in find_phones("020 8366 1177", region="GB")] == [
        "tel:+44-20-8366-1177"
    ]
    assert list(find_phones("020 8366 1177", region="US")) == []
    with pytest.raises(InvalidInput, match="region='Utopia' is not the two-letter code"):
        check_region("Utopia")


@pytest.mark.parametrize("between", [" ", ", ", " or call ", " 7 " + "word " * 30])
def test_a_long_line_of_numbers_is_looked_through(between):
    numbers = [f"650-253-{n:04d}" for n in range(400)]
    text = between.join(numbers)
    found = list(find_phones(text, region="US"))
    assert [text[one.start : one.end] for one in found] == numbers


NUMBERS = st.tuples(
    st.sampled_from(["", "", "-", " ", "+"]),
    st.text("0123456789", min_size=1, max_size=11),
    st.sampled_from([".", ".", ".", "", "-", " "]),
    st.text("0123456789", min_size=1, max_size=12),
    st.sampled_from(["", "", "e-05", "E7", " "]),
).map("".join)


@given(
    fields=st.lists(NUMBERS | st.just("650.2530000"), min_size=1, max_size=12),
    separator=st.sampled_from([",", ";", "\t", ", ", "\n", "\r\n", " "]),
    region=st.sampled_from(["US", "DE", "GB", "IT", "BR", "AR", "IS", "JP"]),
)
@example(fields=["2125551234.5", "0.2125551234", "650.2530000"], separator=",", region="US")
@example(fields=["0.0493012345678", "030.123456"], separator=",", region="DE")
def test_leaving_decimals_out_changes_nothing_that_is_found(fields, separator, region):
    """The library asked about the whole text is the slow definition."""
    text = separator.join(fields)
    found = list(find_phones(text, region=region))
    with patch.object(numbers, "_without_decimals", lambda text, region: text):
        assert list(find_phones(text, region=region)) == found


def test_a_table_of_decimals_leaves_the_library_little_to_look_at():
    rng = np.random.default_rng(0)
    rows = "\n".join(",".join(f"{x:.6f}" for x in row) for row in rng.normal(size=(200, 12)))
    left = numbers._without_decimals(rows, "US")
    assert len(left) == len(rows)
    assert len(re.findall("[0-9]", left)) < 0.05 * len(re.findall("[0-9]", rows))
