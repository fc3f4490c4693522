"""Records of commands: written whole or not at all, read like a study's, private where needed."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from remnant.errors import InvalidInput, RecordError
from remnant.records import Record, list_runs
from remnant.records.typed import Absent, Result, page_only, read_result
from remnant.report.blocks import Block, Check, prose, walk
from remnant.studies import command_record
from remnant.studies.command_record import check_command_folder, write_command_record
from remnant.studies.registry import QUESTIONS, Question
from remnant.studies.reporting import read_page, write_report
from remnant.studies.shared.pages import RunFacts, closing, headline
from remnant.studies.shared.result_parts import Finding, Gate

TITLE = "Weights of parcels"


@dataclass(frozen=True, kw_only=True)
class Parcel:
    name: str
    grams: float
    note: str = page_only("")


@dataclass(frozen=True, kw_only=True)
class HeavyParcel(Parcel):
    helpers: int | None


@dataclass(frozen=True, kw_only=True)
class Weighed:
    parcels: tuple[HeavyParcel | Parcel, ...]
    scale: int | Parcel
    by_name: dict[str, Parcel]
    unit: str = page_only("")


@dataclass(frozen=True, kw_only=True, repr=False)
class ParcelsResult(Result):
    verdict: Finding | Gate | Absent
    measured: Weighed | Absent


def beside(result: ParcelsResult) -> tuple[Check, ...]:
    return (Check(name="scales", status="agrees", text="scales agree"),)


def page(result: ParcelsResult, run: RunFacts) -> Iterator[Block]:
    yield headline(result.verdict, {}, checks=beside(result))
    if isinstance(result.measured, Weighed):
        unit = result.measured.unit
        for parcel in result.measured.parcels:
            yield prose(f"{parcel.name}: {parcel.grams} {unit}, {parcel.note}")
        yield prose(f"{run.array('weights').sum():g} in all")
    yield from closing(run, ledger=False)


RESULT = ParcelsResult(
    verdict=Finding(headline="Two parcels", sentence="Two parcels weigh 5 kg.", advice="Carry."),
    measured=Weighed(
        parcels=(
            Parcel(name="a", grams=2000.0, note="fragile"),
            HeavyParcel(name="b", grams=3000.0, helpers=None),
        ),
        scale=3,
        by_name={"c": Parcel(name="c", grams=1.0, note="small")},
        unit="grams",
    ),
)


@pytest.fixture(autouse=True)
def _own_question(monkeypatch):
    monkeypatch.setitem(
        QUESTIONS,
        "parcels",
        Question(
            title="How heavy are parcels?",
            result=f"{__name__}:ParcelsResult",
            page=f"{__name__}:page",
            heading=f"{__name__}:TITLE",
            beside=f"{__name__}:beside",
            repeatable=False,
        ),
    )


def write(folder: Path, **changes: Any) -> Path:
    given: dict[str, Any] = {
        "question": "parcels",
        "plan": {"data": {"files": 2}},
        "result": RESULT,
        "arrays": {"weights": np.array([2000.0, 3000.0])},
        "data": {"sha256": "ab"},
        "seeds": {"draw": 3},
    }
    return write_command_record(folder, **given | changes)


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}


def test_the_result_is_read_back_with_the_fields_for_its_page(tmp_path):
    folder = tmp_path / "runs" / "weighed"
    assert write(folder) == folder / "report.html"
    record = Record.open(folder)
    assert read_result(record, ParcelsResult) == RESULT
    assert (record.status, record.question, record.plan["data"]) == (
        "complete",
        "parcels",
        {"files": 2},
    )
    assert record.provenance["seeds"] == {"draw": 3}
    stored = record.results()["measured"]["parcels"]
    assert stored == [
        {"name": "a", "grams": 2000.0},
        {"name": "b", "grams": 3000.0, "helpers": None},
    ], "each part is stored as it is printed"
    assert sorted(path.name for path in folder.iterdir()) == [
        "arrays",
        "record.lock",
        "record.sqlite",
        "report.html",
    ]


def test_its_page_and_report_are_those_of_any_record(tmp_path):
    folder = tmp_path / "weighed"
    document = write(folder).read_text(encoding="utf-8")
    assert "a: 2000.0 grams, fragile" in document
    assert "5000 in all" in document
    assert "weighed" in document
    assert read_page(Record.open(folder)).name == "weighed"
    [run] = list_runs(tmp_path)
    assert (run.status, run.headline, run.verdict) == ("complete", "Two parcels", None)


def test_the_plan_and_the_data_have_fingerprints(tmp_path):
    write(tmp_path / "a")
    write(tmp_path / "b", plan={"data": {"files": 3}})
    write(tmp_path / "c", data={"sha256": "cd"})
    a, b, c = (Record.open(tmp_path / name) for name in "abc")
    assert a.plan_fingerprint == c.plan_fingerprint != b.plan_fingerprint
    assert a.data_fingerprint == b.data_fingerprint != c.data_fingerprint


def test_an_empty_folder_may_be_given_and_a_link_to_one(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    assert write(tmp_path / "link") == tmp_path / "link" / "report.html"
    assert Record.open(tmp_path / "empty").status == "complete"


def test_a_record_is_never_replaced(tmp_path):
    write(tmp_path / "weighed")
    for use in (check_command_folder, write):
        with pytest.raises(RecordError, match=r"already holds a record\. Name a new folder"):
            use(tmp_path / "weighed")


def test_other_contents_are_refused_and_left_alone(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    (folder / "report.html").write_text("mine", encoding="utf-8")
    with pytest.raises(RecordError, match=r"is not empty: it holds notes\.txt and 1 more"):
        check_command_folder(folder)
    with pytest.raises(RecordError, match="is not empty"):
        write(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt", "report.html"]


def test_a_file_is_refused_also_as_a_parent(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RecordError, match="is a file, not a folder"):
        check_command_folder(tmp_path / "file")
    with pytest.raises(RecordError, match=r"cannot be (made|used)"):
        check_command_folder(tmp_path / "file" / "inner")
    with pytest.raises(RecordError, match="cannot be used: File name too long"):
        check_command_folder(tmp_path / ("x" * 300))


def test_a_place_without_permission_is_refused_before_anything_is_measured(tmp_path, monkeypatch):
    def refused(**options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(tempfile, "mkdtemp", refused)
    with pytest.raises(RecordError, match=r"cannot be written: in .*, Permission denied"):
        check_command_folder(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()


def test_a_check_leaves_nothing(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new", "a/b/c"):
        check_command_folder(tmp_path / name)
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), RecordError("the disk is full.")])
def test_an_error_or_an_interrupt_leaves_nothing(tmp_path, monkeypatch, fault):
    def fail(folder):
        raise fault

    monkeypatch.setattr(command_record, "write_report", fail)
    with pytest.raises(type(fault)):
        write(tmp_path / "new" / "weighed")
    (tmp_path / "empty").mkdir()
    with pytest.raises(type(fault)):
        write(tmp_path / "empty")
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_what_is_no_json_leaves_nothing(tmp_path):
    with pytest.raises(InvalidInput):
        write(tmp_path / "weighed", plan={"seed": float("nan")})
    with pytest.raises(InvalidInput, match="data is nan"):
        write(tmp_path / "weighed", data=float("nan"))
    assert not (tmp_path / "weighed").exists()


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    folder = tmp_path / "weighed"
    (folder / ".remnant-unfinished-x1" / "weighed").mkdir(parents=True)
    (folder / ".remnant-unfinished-x1" / "weighed" / "record.sqlite").write_text("half")
    (folder / "record.lock").touch()
    write(folder)
    assert not list(folder.glob(".remnant*"))
    assert Record.open(folder).status == "complete"


def test_a_folder_that_was_filled_meanwhile_is_left_alone(tmp_path, monkeypatch):
    def meanwhile(folder):
        (tmp_path / "weighed" / "notes.txt").write_text("mine", encoding="utf-8")

    monkeypatch.setattr(command_record, "write_report", meanwhile)
    with pytest.raises(RecordError, match=r"it holds notes\.txt"):
        write(tmp_path / "weighed")
    assert [path.name for path in (tmp_path / "weighed").iterdir()] == ["notes.txt"]


def test_private_records_are_readable_by_their_owner_alone(tmp_path):
    old = os.umask(0o022)
    try:
        write(tmp_path / "open")
        write(tmp_path / "private", private=True)
        (tmp_path / "empty").mkdir()
        write(tmp_path / "empty", private=True)
        copy = write_report(tmp_path / "private", tmp_path / "copy.html")
        both = write_report(tmp_path, tmp_path / "both.html")
    finally:
        os.umask(old)
    assert modes(tmp_path / "open") == {0o644}
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o700
    for folder in ("private", "empty"):
        files = [tmp_path / folder / name for name in ("record.sqlite", "report.html")]
        files.append(tmp_path / folder / "arrays" / "weights.npy")
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert {stat.S_IMODE(file.stat().st_mode) for file in (copy, both)} == {0o600}


def test_a_page_that_shows_secrets_says_so(tmp_path):
    hidden = write(tmp_path / "hidden", private=True).read_text(encoding="utf-8")
    shown = write(tmp_path / "shown", reveal=True).read_text(encoding="utf-8")
    assert "This report shows secrets" in shown
    assert "This report shows secrets" not in hidden
    assert (tmp_path / "shown" / "record.sqlite").stat().st_mode & 0o077 == 0
    blocks = list(walk(read_page(Record.open(tmp_path / "shown")).blocks))
    assert blocks[1] == prose(
        "This report shows secrets (--reveal). Do not pass it on.", tone="notice", depth="summary"
    )
