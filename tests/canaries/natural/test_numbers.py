"""Cards, social security numbers and IBANs: their own rules tell them from other numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.canaries.natural.numbers import find_cards, find_ibans, find_ssns


def passes_luhn(digits: str) -> bool:
    doubled = [2 * int(d) for d in digits[-2::-2]]
    return (sum(map(int, digits[-1::-2])) + sum(d - 9 * (d > 9) for d in doubled)) % 10 == 0


@given(rest=st.text("0123456789", min_size=15, max_size=15))
def test_a_card_is_found_where_luhn_lets_it_pass(rest):
    digits = f"4{rest}"
    found = list(find_cards(f"pay {digits} now"))
    assert bool(found) == passes_luhn(digits)
    assert all((one.start, one.end, one.value) == (4, 20, digits) for one in found)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("4111111111111111", "4111111111111111"),
        ("4111-1111-1111-1111", "4111111111111111"),
        ("4111 - 1111 - 1111 - 1111", "4111111111111111"),
        ("5500 0000 0000 0004", "5500000000000004"),
        ("3400 000000 00009", "340000000000009"),
        ("30000000000004", "30000000000004"),
        ("6011000000000004", "6011000000000004"),
        ("3530111333300000", "3530111333300000"),
        ("2223003122003222", "2223003122003222"),
    ],
)
def test_cards_of_all_issuers_and_groupings(written, value):
    (found,) = find_cards(f"card: {written}.")
    assert (found.kind, found.value) == ("card", value)
    assert f"card: {written}."[found.start : found.end] == written


@pytest.mark.parametrize(
    "text",
    [
        "john,4111111111111111,12/25",
        "4111111111111111,123",
        "17,4111111111111111",
        "0,4111111111111111,5",
        "x,0,4111111111111111",
        '"john","4111111111111111"',
        "card_4111111111111111",
        "4111111111111111_old",
    ],
)
def test_a_card_may_be_a_field_of_a_row_or_a_part_of_a_name(text):
    (found,) = find_cards(text)
    assert text[found.start : found.end] == "4111111111111111"


@pytest.mark.parametrize(
    "text",
    [
        "4111111111111112",  # the check digit
        "1111111111111117",  # no issuer
        "0000 0000 0000 0000",
        "4111-1111 1111-1111",  # two separators
        "41111111-11111111",
        "x4111111111111111",
        "4111111111111111.5",
        "0.4111111111111111",
        "0,4111111111111111",
        "-0,4111111111111111;",
        "1_4111111111111111",
        "4111111111111111_1",
        "4,111,111,111,111,111",
        "41111111111111110000",
        "4111\n1111\n1111\n1111",
        "",
    ],
)
def test_what_is_no_card(text):
    assert list(find_cards(text)) == []


@pytest.mark.parametrize("written", ["536-90-4399", "536 - 90 - 4399", "001-01-0001"])
def test_social_security_numbers(written):
    (found,) = find_ssns(f"ssn {written}, and more")
    assert found.value == written.replace(" ", "").replace("-", "")


@pytest.mark.parametrize(
    "text", ["john,536-90-4399,x", "17,536-90-4399,4", "ssn_536-90-4399", "536-90-4399,12"]
)
def test_a_social_security_number_may_be_a_field_of_a_row(text):
    (found,) = find_ssns(text)
    assert text[found.start : found.end] == "536-90-4399"


@pytest.mark.parametrize(
    "text",
    [
        "000-12-3456",
        "666-12-3456",
        "900-12-3456",
        "536-00-4399",
        "536-90-0000",
        "078-05-1120",  # printed on a wallet's card
        "536904399",
        "536-90-43990",
        "1-536-90-4399",
        "1_536-90-4399",
        "536,904,399",
        "536-90 4399",
    ],
)
def test_what_is_no_social_security_number(text):
    assert list(find_ssns(text)) == []


@pytest.mark.parametrize(
    "written",
    ["GB29NWBK60161331926819", "GB29 NWBK 6016 1331 9268 19", "be31 4354 1116 1155"],
)
def test_ibans(written):
    text = f"to {written} Mike"
    (found,) = find_ibans(text)
    assert text[found.start : found.end] == written
    assert (found.value, found.known) == (written.replace(" ", "").upper(), 2)


def test_an_iban_may_be_a_field_of_a_row_or_a_part_of_a_name():
    for text in ("x,GB29NWBK60161331926819,7", "iban_GB29NWBK60161331926819.txt"):
        (found,) = find_ibans(text)
        assert found.value == "GB29NWBK60161331926819"


@pytest.mark.parametrize(
    "text",
    [
        "GB28NWBK60161331926819",  # check digits
        "XX29NWBK60161331926819",  # no country
        "GB29NWBK6016133192681",  # too short
        "GB29 NW BK60 1613 3192 6819",
        "xGB29NWBK60161331926819",
    ],
)
def test_what_is_no_iban(text):
    assert list(find_ibans(text)) == []
