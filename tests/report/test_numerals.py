"""Numbers in print: nothing is lost but digits that do not matter."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.report.numerals import (
    bits_number,
    bits_text,
    count_text,
    counted,
    in_print,
    lag_text,
    percent,
    pvalue_text,
    short_percent,
    small_text,
    times_text,
)

PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@given(st.integers(0, 10**15 - 1))
def test_a_count_of_up_to_fifteen_digits_is_printed_whole(count):
    assert int(count_text(count).replace("\u202f", "")) == count


@given(st.integers(10**15, 10**400))
def test_a_larger_one_is_a_power_of_ten_to_three_digits(count):
    found = re.fullmatch(r"(?:([\d.]+)\u202f×\u202f)?10([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", count_text(count))
    leading, power = float(found[1] or 1), int(found[2].translate(PLAIN))
    assert 1 <= leading < 10
    assert abs(math.log10(leading) + power - math.log10(count)) < 0.0022


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (10**15, "10¹⁵"),
        (9_999_999_999_999_999, "1.00 × 10¹⁶"),
        (267_735**4, "5.14 × 10²¹"),
        (10**400, "10⁴⁰⁰"),
    ],
)
def test_large_counts(count, words):
    assert count_text(count).replace("\u202f", " ") == words


def test_bits_have_two_decimals_and_no_negative_zero():
    assert [bits_number(bits) for bits in (19.934, -0.0, -0.004, 1.005, None)] == [
        *("19.93", "0.00", "0.00", "1.00", "–")
    ]
    assert bits_text(1.4427) == "1.44\u202fbits"


def test_how_often_and_how_many():
    assert [times_text(n) for n in (1, 2, 1000)] == ["once", "2 times", "1\u202f000 times"]
    assert counted(1, "canary", "canaries") == "1 canary"
    assert counted(2, "canary", "canaries") == "2 canaries"
    assert counted(0, "node") == "0 nodes"


def test_probabilities_and_tolerances():
    shown = [pvalue_text(p).replace("\u202f", " ") for p in (1.0, 0.1, 0.0999, 0.001, 0.00099, 0)]
    assert shown == ["1.00", "0.10", "0.100", "0.001", "< 0.001", "< 0.001"]
    assert pvalue_text(None) == "–"
    shown = [small_text(v).replace("\u202f", " ") for v in (0.0, 0.5, 0.001, 9.6e-5, 2e-12)]
    assert shown == ["0", "0.5", "0.001", "1 × 10⁻⁴", "2 × 10⁻¹²"]


def test_names_in_quotes_are_printed_as_they_are():
    names = ("'dropout p = 1e-05'", '"width x 3, -0.5"', "“K9-77%”", "'a <= 5 at FPR 0.1'")
    for name in names:
        assert in_print(f"With {name} it is 5 x 5.") == f"With {name} it is 5 × 5."
    assert in_print("the canaries' AUC is 5 x 5, the models' too") == (
        "the canaries' AUC is 5 × 5, the models' too"
    )


def test_a_version_is_no_p_value():
    assert in_print("p = 1.2.3e-5") == "p = 1.2.3e-5"


def _plain(text):
    return text.replace("\u202f", " ").replace("\u00a0", " ")


def test_shares_and_lags_in_print():
    assert _plain(percent(0.5)) == "50.0 %"
    assert percent(None) == "–"
    assert [_plain(short_percent(v)) for v in (0.1, 0.025, 0.001, None)] == [
        *("10 %", "2.5 %", "0.1 %", "–")
    ]
    assert [_plain(lag_text(lag)) for lag in (0, 12345, 2.5)] == ["0", "12 345", "2.5"]
