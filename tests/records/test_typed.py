"""Typed results: what is written is read back, and what is damaged is named by its place."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.errors import InvalidInput, RecordError
from remnant.records.outcomes import RULES
from remnant.records.typed import (
    Absent,
    Result,
    load,
    optional,
    plain,
    put_result,
    read_result,
    result_from,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    bits: float
    rank: int | None
    share: float | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    method: Literal["exact", "sampled"] = "exact"

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.counts) + 1:
            raise InvalidInput(
                f".edges has {len(self.edges)} entries for {len(self.counts)} counts"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    outcome: str
    limit: float
    rules: int = RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    headline: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    rows: tuple[Row, ...]
    by_name: dict[str, float]
    span: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Measured(Result):
    verdict: Finding | Gate | Absent
    rows: Rows | Absent
    histogram: Histogram | Absent


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Newer(Measured):
    VERSION: ClassVar[int] = 2

    @classmethod
    def upgrade(cls, parts: dict[str, Any], version: int) -> dict[str, Any]:
        if version == 1:
            rows = {**parts["rows"], "span": [parts["rows"]["first"], parts["rows"]["last"]]}
            return parts | {"rows": rows}
        return parts


NUMBERS = st.floats(-1e100, 1e100)  # larger ones are refused as damage
ROWS = st.builds(
    Row,
    name=st.text(),
    bits=NUMBERS,
    rank=st.none() | st.integers(0, 2**60),
    share=st.none() | NUMBERS,
)
WHOLE = st.builds(
    Measured,
    verdict=st.builds(Gate, outcome=st.just("PASS"), limit=NUMBERS)
    | st.builds(Finding, headline=st.text()),
    rows=st.builds(
        Rows,
        rows=st.lists(ROWS).map(tuple),
        by_name=st.dictionaries(st.text(), NUMBERS),
        span=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    ),
    histogram=st.just(Absent("no reference was sampled"))
    | st.just(Histogram(edges=(0.0, 1.0), counts=(3,))),
)


@given(WHOLE)
def test_a_result_is_read_back_from_its_plain_data(result):
    parts = json.loads(json.dumps(result.to_dict()))
    assert result_from(parts, Measured, where="run") == result


@given(WHOLE)
def test_a_result_is_printed_in_one_line(result):
    said = result.verdict.outcome if isinstance(result.verdict, Gate) else result.verdict.headline
    assert repr(result) == f"Measured({' '.join(said.split())})"


def test_a_result_without_a_verdict_is_printed_with_the_reason():
    result = result_from({"verdict": {"absent": "killed\nin time."}}, Measured, where="run")
    assert repr(result) == "Measured(no verdict: killed in time)"


def test_a_result_has_no_room_for_more():
    result = result_from({}, Measured, where="run")
    assert not hasattr(result, "__dict__")
    with pytest.raises(FrozenInstanceError):
        result.rows = 3


def test_a_part_that_is_not_there_is_absent():
    result = result_from({"verdict": {"absent": "Stopped."}}, Measured, where="run")
    assert result.verdict == Absent("Stopped")
    assert result.rows == Absent("this run recorded none")


def test_an_optional_field_is_left_out_where_it_is_none():
    assert plain(Row(name="a", bits=1.0, rank=None)) == {"name": "a", "bits": 1.0, "rank": None}
    assert plain(Row(name="a", bits=1.0, rank=None, share=0.5))["share"] == 0.5


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        (3, "rows is an int, no object"),
        ({"by_name": {}, "span": [0, 1]}, "rows.rows is missing, no list"),
        (
            {"rows": [{"name": "k", "bits": "S3CRET"}], "by_name": {}, "span": [0, 1]},
            "rows.rows[0].bits is a str, no finite number",
        ),
        (
            {"rows": [{"name": "k", "bits": math.nan}], "by_name": {}, "span": [0, 1]},
            "rows.rows[0].bits is a float, no finite number",
        ),
        (
            {"rows": [{"name": 5, "bits": 1.0}], "by_name": {}, "span": [0, 1]},
            "rows.rows[0].name is an int, no text",
        ),
        (
            {"rows": [{"name": "k", "bits": 1, "rank": -1}], "by_name": {}, "span": [0, 1]},
            "rows.rows[0].rank is an int, no whole number from 0",
        ),
        ({"rows": [], "by_name": {}, "span": [0]}, "rows.span has 1 entries, not 2"),
        ({"rows": [], "by_name": {"a": True}, "span": [0, 1]}, "rows.by_name.a is a bool"),
        ({"rows": [], "by_name": [], "span": [0, 1]}, "rows.by_name is a list, no object"),
    ],
)
def test_a_fault_names_its_place_and_never_the_value(rows, place):
    with pytest.raises(RecordError, match="holds a malformed result 'rows'") as caught:
        result_from({"rows": rows}, Measured, where="run")
    assert place in str(caught.value)
    assert "S3CRET" not in str(caught.value)


def test_all_faults_are_listed():
    with pytest.raises(RecordError) as caught:
        result_from(
            {"rows": {"rows": [{}]}, "histogram": {"edges": [1.0], "counts": [1], "method": "x"}},
            Measured,
            where="run",
        )
    for place in ("rows.rows[0].name", "rows.rows[0].bits", "rows.by_name", "histogram.method"):
        assert place in str(caught.value)


def test_checks_of_several_fields_are_faults_too():
    with pytest.raises(RecordError, match=r"histogram\.edges has 1 entries for 1 counts"):
        result_from({"histogram": {"edges": [1.0], "counts": [1]}}, Measured, where="run")


def test_an_older_version_is_upgraded_and_a_newer_one_refused():
    rows = {"rows": [], "by_name": {}, "first": 1, "last": 2}
    result = result_from({"rows": rows}, Newer, where="run")
    assert result.rows == Rows(rows=(), by_name={}, span=(1, 2))
    with pytest.raises(RecordError, match="malformed result of version 1"):
        result_from({"rows": {}}, Newer, where="run")
    with pytest.raises(RecordError, match="version 3"):
        result_from({"format": {"version": 3}}, Newer, where="run")


def test_too_large_a_number_is_no_number():
    faults: list[str] = []
    load(float, 10**400, "bits", faults)
    assert faults == ["bits is an int, no finite number"]


def test_a_record_keeps_a_result(create):
    record = create()
    result = Newer(
        verdict=Gate(outcome="FAIL", limit=1.0),
        rows=Rows(rows=(Row(name="a", bits=1.0, rank=2),), by_name={"x": 0.5}, span=(1, 2)),
        histogram=Absent("none was made"),
    )
    put_result(record, result)
    assert read_result(record, Newer) == result
    assert record.results()["format"] == {"version": 2}
    assert record.results() == json.loads(json.dumps(result.to_dict()))


class Ends(NamedTuple):
    value: float
    low: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    ends: Ends
    other: Ends | None = None


def test_a_named_tuple_is_stored_as_a_list_and_read_by_name():
    faults: list[str] = []
    interval = Interval(ends=Ends(0.5, 0.25))
    assert plain(interval) == {"ends": [0.5, 0.25], "other": None}
    assert load(Interval, plain(interval), "part", faults) == interval
    assert faults == []


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([0.5], "part.ends has 1 entries, not value and low"),
        ([0.5, math.nan], "part.ends[1] is a float, no finite number"),
        ({"value": 0.5}, "part.ends is a dict, no list"),
        (None, "part.ends is missing, no list"),
    ],
)
def test_a_damaged_named_tuple_is_named_by_its_place(ends, said):
    faults: list[str] = []
    assert load(Interval, {"ends": ends}, "part", faults) is None
    assert faults == [said]
    faults.clear()
    load(Interval, {}, "part", faults)
    assert faults == ["part.ends is missing, no list"]
