"""Tables as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from types import SimpleNamespace

import numpy as np
import pytest

from remnant.report.blocks import Column, Table
from remnant.report.tables import csv_text, json_text, plain_rows, sort_value


def _table(*values, column=None):
    return Table(caption="t", key="t", rows=values, columns=(column or Column("V", lambda v: v),))


def _cells(table):
    return [row[0] for row in csv.reader(io.StringIO(csv_text(table)))][1:]


def test_a_value_with_ends_becomes_three_columns():
    interval = SimpleNamespace(value=1.5, low=1.0, high=None)
    bound = SimpleNamespace(value=3.0, at_least=True)
    rows = plain_rows(_table(None, interval, bound))
    assert rows == [
        {"V": None, "V, low": None, "V, high": None, "V, at least": None},
        {"V": 1.5, "V, low": 1.0, "V, high": None, "V, at least": None},
        {"V": 3.0, "V, low": None, "V, high": None, "V, at least": True},
    ]
    assert csv_text(_table(interval)) == '"V","V, low","V, high"\r\n1.5,1.0,""\r\n'


def test_a_column_names_an_attribute_or_one_of_an_attribute():
    row = SimpleNamespace(n=2, models=SimpleNamespace(n=7))
    values = ("n", "models.n", lambda row: row.n + row.models.n)
    assert [Column("N", value).of(row) for value in values] == [2, 7, 9]


def test_names_are_unique_and_say_their_group():
    columns = (
        Column("M", len, group="a"),
        Column("M", len, group="b"),
        Column("M", len, group="b"),
    )
    table = Table(caption="t", key="t", rows=("xy",), columns=columns)
    assert plain_rows(table) == [{"a: M": 2, "b: M": 2, "b: M (2)": 2}]
    assert csv_text(Table(caption="t", key="t", rows=(), columns=columns)) == '"M","M","M"\r\n'


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1+1",
        "-1+1",
        "@SUM(A1)",
        "  =cmd",
        "\t=1",
        "\r=1",
        "＝1",
        "-",
        "+a",
        "=HYPERLINK(1)",
    ],
)
def test_what_a_spreadsheet_would_run_begins_with_an_apostrophe(text):
    (cell,) = _cells(_table(text))
    assert cell.startswith("'")
    assert json.loads(json_text(_table(text))) == [{"V": text}], "JSON is not run by anybody"
    head = Table(caption="t", key="t", rows=(), columns=(Column(text, str),))
    assert next(csv.reader(io.StringIO(csv_text(head))))[0].startswith("'")


@pytest.mark.parametrize("value", [-1, -1.5, 1e-9, "-1.5", "+2", "-3e-7", "plain", "a=b", ""])
def test_numbers_and_plain_text_stay_as_they_are(value):
    assert _cells(_table(value)) == [str(value)]


def test_values_are_plain_data_or_the_text_shown():
    shown = Column("V", lambda v: v, lambda v: "one\u202fthing")
    assert plain_rows(_table(object(), column=shown)) == [{"V": "one thing"}]
    values = (np.float64(0.5), np.int64(3), True, float("inf"), (1, None), [SimpleNamespace(a=1)])
    rows = [row["V"] for row in plain_rows(_table(*values, column=shown))]
    assert rows == [0.5, 3, True, "inf", [1, None], ["one thing"]]
    json_text(_table(float("nan"), np.float32("nan")))
    assert _cells(_table((1, None), True)) == ["1; ", "true"]


def test_what_a_row_is_sorted_by():
    column = Column("V", lambda v: v, lambda v: "shown")
    values = (None, 2.5, SimpleNamespace(value=7), (3, 4), "text", object(), ())
    assert [sort_value(column, v) for v in values] == [
        "", "2.5", "7", "3", "text", "shown", "shown"
    ]  # fmt: skip
