"""What a record says of the command that wrote it."""

from __future__ import annotations

import hashlib
import os
import sys
from importlib.metadata import version
from pathlib import Path
from unittest import mock

import click
import pytest
import torch
from click.testing import CliRunner

from remnant.cli.options.declared import threads
from remnant.cli.options.parameters import checked, noted
from remnant.cli.output import amount_options
from remnant.errors import RecordError
from remnant.records.provenance import Command, command_facts, input_digests, is_utc, used_libraries
from remnant.studies.command_record import weights_digest


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.fixture
def noting():
    """A command that keeps what a record would say of it."""
    said = {}

    @click.command("weigh")
    @click.argument("files", nargs=-1, type=click.Path(path_type=Path))
    @click.option("--model", type=click.Path(path_type=Path))
    @click.option("--out", type=click.Path(path_type=Path))
    @click.option("--text")
    @click.option("--limit", default="0.5")
    @click.option("--method", type=click.Choice(["exact", "sampled"]))
    @click.option("--only", multiple=True, type=int)
    @threads(passed_on=False)
    @amount_options
    @click.option("--json", "as_json", is_flag=True)
    def weigh(**_):
        said.update(command_facts(folders=True))

    def run(*arguments, name="weigh"):
        weigh.name = name
        done = CliRunner().invoke(weigh, [str(a) for a in arguments], prog_name=f"remnant {name}")
        assert done.exit_code == 0, done.output
        return said

    noted(checked(weigh))
    return run


def test_a_program_without_a_command_names_none():
    assert command_facts() == {}


def test_the_command_line_has_dots_instead_of_free_text(noting, tmp_path):
    file = tmp_path / "a file.txt"
    file.write_text("x")
    options = ("--text", "S3CRET", "--limit", "auto", "--method", "exact", "--only", 1, "--only", 2)
    line = noting(file, *options, "--json", "--out", "run")["command"]
    assert line == (
        "remnant weigh --out run --text … --limit auto --method exact --only 1 --only 2 --json "
        f"'{file}'"
    )
    counted = ("--threads", torch.get_num_threads())
    with mock.patch.dict(os.environ):
        line = noting(*counted, "-v")["command"]
    assert line == f"remnant weigh --threads {counted[1]}", "-v changes nothing that is recorded"
    assert noting()["command"] == "remnant weigh", "defaults are not repeated"


def test_every_file_that_is_read_has_its_digest_by_name(noting, tmp_path):
    model = tmp_path / "tuned"
    model.mkdir()
    for name in ("model.safetensors", "tokenizer.json", "adapter_config.json"):
        (model / name).write_text(name)
    text = tmp_path / "seen.jsonl"
    text.write_text("one")
    out = tmp_path / "out"
    out.mkdir()
    (out / "old").write_text("not read")
    assert noting(text, "--model", model, "--out", out)["inputs"] == {
        "files seen.jsonl": sha256(text),
        **{f"--model {path.name}": sha256(path) for path in sorted(model.iterdir())},
    }
    text.write_text("two")
    assert noting(text)["inputs"] == {"files seen.jsonl": sha256(text)}, "a changed file"


def test_names_of_scanned_files_are_not_shown(noting, tmp_path):
    file = tmp_path / "AKIA0123456789.txt"
    file.write_text("x")
    said = noting(file, tmp_path, name="scan")
    assert "AKIA" not in str(said)
    assert len(said["inputs"]) == 2


def test_a_large_folder_has_one_digest_of_all_its_files(tmp_path):
    for i in range(60):
        (tmp_path / f"{i}.png").write_text(str(i))
    command = Command("remnant weigh", {"--images": (tmp_path,)})
    assert input_digests(command, folders=False) == {}
    (before,) = input_digests(command, folders=True).values()
    (tmp_path / "7.png").write_text("another")
    ((name, after),) = input_digests(command, folders=True).items()
    assert name == "--images (60 files)"
    assert after != before


def test_a_file_that_cannot_be_read_any_more_loses_no_result(tmp_path, monkeypatch):
    file = tmp_path / "x"
    file.write_text("x")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("remnant.records.provenance.file_sha256", refuse)
    said = input_digests(Command("", {"--seen": (file,)}), folders=False)
    assert said == {"--seen x": "cannot be read any more"}
    with pytest.raises(RecordError, match=r"x cannot be read: Permission denied\.$"):
        weights_digest(file)


def test_versions_are_those_of_all_libraries_that_are_loaded():
    found = used_libraries()
    assert found["numpy"] == version("numpy")
    assert found["click"] == version("click")
    assert "remnant" in found
    assert all(is_loaded not in found for is_loaded in ("ray",) if is_loaded not in sys.modules)
    assert is_utc(Command("x").started)
