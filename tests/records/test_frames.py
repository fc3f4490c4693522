"""Rows of results as data frames."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import pytest

from remnant.errors import InvalidInput, MissingExtra, NotEnoughEvidence
from remnant.records.typed import Absent, Result, optional, page_only


class Interval(NamedTuple):
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    grams: float
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    name: str
    share: Interval | None
    ends: tuple[float, float | None, float | None]
    weight: Weight
    each: tuple[int, ...] = ()
    stamps: tuple[Weight, ...] = ()
    note: str | None = optional()
    shown: str = page_only("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    value: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    title: str
    lags: tuple[float, ...]
    value: tuple[float | None, ...]
    per_trial: tuple[tuple[float, ...], ...]
    edges: tuple[float, ...]
    epsilon: Columns | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    number: int
    parcels: tuple[Parcel, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Parcels(Result):
    ROWS: ClassVar[tuple[str, ...]] = ("shelves.parcels", "late.parcels")

    curve: Curve | Absent
    shelves: tuple[Shelf, ...]
    late: Shelf | Absent


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sent(Result):
    ROWS: ClassVar[tuple[str, ...]] = ("measured",)

    measured: Parcels | Absent


PARCEL = Parcel(
    name="a",
    share=Interval(0.5, 0.4, 0.6),
    ends=(2.0, None, 3.0),
    weight=Weight(grams=5.0, known=True),
    each=(1, 2),
    stamps=(Weight(grams=0.1, known=False),),
    shown="SECRET",
)
UNKNOWN = Parcel(name="b", share=None, ends=(1.0, 0.0, 2.0), weight=PARCEL.weight, note="torn")
PARCELS = Parcels(
    curve=Curve(
        title="weights",
        lags=(0.0, 5.0),
        value=(1.0, None),
        per_trial=((1.0,), (2.0,)),
        edges=(0.0, 1.0, 2.0),
        epsilon=Columns(value=(3.0, 4.0)),
    ),
    shelves=(Shelf(number=4, parcels=(PARCEL,)), Shelf(number=7, parcels=(UNKNOWN,))),
    late=Absent("no parcel is late"),
)


def test_the_main_rows_have_a_column_a_number_and_three_an_interval():
    frame = PARCELS.to_frame()
    assert frame.to_dict("records")[0] == {
        "number": 4,
        "name": "a",
        "share": 0.5,
        "share_low": 0.4,
        "share_high": 0.6,
        "ends": 2.0,
        "ends_low": pytest.approx(float("nan"), nan_ok=True),
        "ends_high": 3.0,
        "weight_grams": 5.0,
        "weight_known": True,
        "each": (1, 2),
        "note": pytest.approx(float("nan"), nan_ok=True),
    }
    assert frame["name"].tolist() == ["a", "b"]
    assert frame["note"][1] == "torn"
    assert "SECRET" not in frame.to_csv()


def test_columns_of_a_part_become_rows():
    frame = PARCELS.to_frame("curve")
    assert frame.to_dict("list") == {
        "lags": [0.0, 5.0],
        "value": [1.0, pytest.approx(float("nan"), nan_ok=True)],
        "epsilon_value": [3.0, 4.0],
    }


def test_a_path_may_end_at_another_result():
    assert Sent(measured=PARCELS).to_frame().equals(PARCELS.to_frame())


def test_a_wrong_path_is_refused_with_all_tables():
    with pytest.raises(InvalidInput, match="rows='late' is no table of this Parcels") as caught:
        PARCELS.to_frame("late")
    tables = "shelves.parcels, late.parcels, curve, shelves, shelves.parcels.stamps"
    assert caught.value.hint == f"Its tables are {tables}."


def test_rows_that_were_not_measured_are_refused_with_the_reason():
    with pytest.raises(NotEnoughEvidence, match=r"late\.parcels was not .*: no parcel is late"):
        PARCELS.to_frame("late.parcels")
    with pytest.raises(NotEnoughEvidence, match="measured was not measured: no time"):
        Sent(measured=Absent("no time")).to_frame()


def test_a_missing_library_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="A data frame needs pandas") as caught:
        PARCELS.to_frame()
    assert "notebook" in caught.value.hint
