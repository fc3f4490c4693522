"""``--out``: a folder for a record and a report, or a file of a kind that the command writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from remnant.cli.options.out_folder import out_folder, show_written
from remnant.errors import InvalidInput, RecordError


def test_a_name_without_such_an_ending_is_a_folder(tmp_path):
    assert out_folder(None) is None
    for name in ("audit", "v1.2", "runs/audit.d"):
        assert out_folder(tmp_path / name) == tmp_path / name
    assert not any(tmp_path.iterdir()), "nothing is made before something is measured"


def test_endings_of_files_keep_their_meaning(tmp_path):
    for name in ("a.csv", "a.json", "A.CSV"):
        assert out_folder(tmp_path / name, files=(".csv", ".json")) is None


def test_a_file_that_the_command_does_not_write_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"ends in \.html, and this command") as fault:
        out_folder(Path("x.html"), files=(".csv",))
    assert fault.value.hint == "Name a folder for a record and a report, or a .csv file."
    with pytest.raises(InvalidInput, match=r"redirect the output of --json\."):
        out_folder(Path("x.json"))


def test_a_folder_that_cannot_be_used_is_named_with_its_option(tmp_path):
    (tmp_path / "notes").write_text("", encoding="utf-8")
    with pytest.raises(RecordError) as fault:
        out_folder(tmp_path / "notes")
    assert str(fault.value).startswith(f"--out {tmp_path / 'notes'} is a file, not a folder.")


def test_where_the_report_is_goes_to_the_stream_that_holds_no_json(capsys):
    show_written(Path("a\nb") / "report.html")
    show_written(Path("report.html"), private=True, err=True)
    shown = capsys.readouterr()
    assert shown.out == "report: a\\u000ab/report.html\n"
    assert shown.err == "report: report.html (only its owner can read it)\n"
