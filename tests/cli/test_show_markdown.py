"""``remnant show --md``: Markdown on standard output or in a file."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from remnant.report.markdown import MADE_BY, render
from remnant.studies.reporting import read_pages

STORED = Path(__file__).parents[1] / "studies" / "stored_records" / "0.3"


@pytest.fixture
def run(tmp_path):
    with zipfile.ZipFile(STORED / "found-secrets.zip") as packed:
        packed.extractall(tmp_path / "run")
    return tmp_path / "run"


def test_it_is_printed(command, run):
    done = command("show", run, "--md")
    assert done.code == 0, done.err
    assert done.out == render(read_pages(run))
    assert done.out.splitlines()[-1].startswith(MADE_BY)


def test_it_is_written_and_only_its_own_file_is_replaced(command, run, tmp_path):
    out = tmp_path / "summary.md"
    done = command("show", run, "--md", "--out", out)
    assert (done.code, done.out) == (0, f"{out}\n")
    assert out.read_text() == render(read_pages(run))
    assert command("show", run, "--md", "--out", out).code == 0
    out.write_text("my notes\n")
    refused = command("show", run, "--md", "--out", out)
    assert refused.code == 2
    assert "exists already and is not a summary in Markdown" in refused.err
    assert out.read_text() == "my notes\n"
    assert command("show", run, "--md", "--out", out, "--force").code == 0
    assert out.read_text().startswith("## ")


def test_a_private_record_gives_a_private_file(command, run, tmp_path):
    out = tmp_path / "summary.md"
    command("show", run, "--md", "--out", out)
    (page,) = read_pages(run)
    assert page.private
    assert os.stat(out).st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--md", "--json"], "--json and --md are two forms of one output."),
        (["--out", "x.md"], "--out and --force are for --md and --html."),
        (["--force"], "--out and --force are for --md and --html."),
        (["--json", "--out", "x.md"], "--out and --force are for --md and --html."),
        (["--md", "--out", "none/x.md"], "is not the path of a file in a folder that exists"),
    ],
)
def test_what_does_not_go_together_is_refused(command, run, options, said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    refused = command("show", run, *options)
    assert refused.code == 2
    assert said in refused.err
    assert refused.out == ""
    assert not (tmp_path / "x.md").exists()
