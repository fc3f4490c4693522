"""``remnant scan --redact`` as its user meets it: a cleaned copy, counts, and no secret shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

# Made up, and in parts: no file of ours holds one whole.
CARD = "4929 " + "0714 3683 5574"
SSN = "536-90-" + "4399"
EMAIL = "r.okafor71@" + "quvzad.org"


@pytest.fixture(scope="module")
def command(command, with_tables):
    """Commands with their tables."""
    return with_tables(command)


@pytest.fixture
def mail(tmp_path):
    folder = tmp_path / "mail"
    folder.mkdir()
    (folder / "one.txt").write_text(f"to {EMAIL}: {CARD}\n")
    (folder / "rows.jsonl").write_text(json.dumps({"text": f"n {SSN}", "n": 4929071436835574}))
    (folder / f"{EMAIL}.txt").write_text("536904399, again\n")
    (folder / "image.bin").write_bytes(b"\0\1\2")
    return folder


def shows_a_secret(text: str) -> bool:
    return any(part in text for part in ("okafor", "4929", "0714", "4399", "536"))


def test_a_cleaned_copy_is_written_and_a_second_scan_finds_nothing(
    command, mail, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "cleaned"
    done = command("scan", mail.name, "--redact", out.name)
    assert (done.code, done.err) == (0, "")
    assert {path.name: path.read_text() for path in out.iterdir()} == {
        "one.txt": "to [EMAIL]: [CARD]\n",
        "rows.jsonl": '{"text": "n [SSN]", "n": 0}',
        "….txt": "[SSN], again\n",
    }
    text = done.out
    assert text[text.index("Cleaned copy") :].splitlines() == [
        "Cleaned copy in cleaned: 3 files, 5 replacements in 3 of them.",
        "",
        "Replacements in the cleaned copy",
        "File        card  ssn  email",
        "one.txt        1    0      1",
        "….txt          0    1      0",
        "rows.jsonl     1    1      0",
        "In JSON files, 1 number became 0.",
        "",
        "Warning: 1 file or link not copied",
        "Path            Reason",
        "mail/image.bin  is a binary file: it holds a zero",
        "The copy may still hold secrets. 7 kinds were searched for: card, ssn, iban, email, "
        "phone, key, random. Not searched for: names, street addresses, passwords without a fixed "
        "form, and secrets in an encoding such as base64 or hex. Detectors miss secrets.",
    ]
    assert not shows_a_secret(text)
    again = command("scan", out, "--gate")
    assert (again.code, again.out.split(":")[0]) == (0, "PASS")


def test_it_goes_with_json_a_record_and_a_gate(command, mail, tmp_path):
    out = tmp_path / "cleaned"
    done = command(
        *("scan", mail, "--redact", out, "--json", "--gate", "--out", tmp_path / "record")
    )
    assert done.code == 1, "the gate judges what was scanned, not the copy"
    cleaned = json.loads(done.out)["cleaned"]
    assert cleaned["counts"] == {
        **dict.fromkeys(("card", "ssn", "iban", "email", "phone", "key", "random"), 0),
        "card": 2,
        "ssn": 2,
        "email": 1,
    }
    assert [file["copy"] for file in cleaned["files"]] == ["one.txt", "….txt", "rows.jsonl"]
    assert [file["zeros"] for file in cleaned["files"]] == [0, 0, 1]
    assert [file["reason"] for file in cleaned["not_copied"]] == [
        "is a binary file: it holds a zero"
    ]
    assert not shows_a_secret(json.dumps(cleaned))
    shown = command("show", tmp_path / "record")
    assert "Cleaned copy in" in shown.out
    assert "cleaned" not in json.loads(command("scan", mail, "--json").out)


def test_names_of_copies_hold_no_secret_with_reveal_either(command, mail, tmp_path):
    done = command("scan", mail, "--redact", tmp_path / "cleaned", "--reveal")
    assert EMAIL in done.out
    assert not any("okafor" in name for name in os.listdir(tmp_path / "cleaned"))


def test_text_without_a_secret_is_copied_with_the_same_warning(command, tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text("nothing")
    done = command("scan", path, "--kinds", "ssn", "--redact", tmp_path / "cleaned")
    assert "0 replacements in 0 of them" in done.out
    assert "The copy may still hold secrets. 1 kind was searched for: ssn." in done.out
    assert (tmp_path / "cleaned" / "plain.txt").read_text() == "nothing"


def test_chosen_kinds_alone_are_replaced(command, mail, tmp_path):
    command("scan", mail / "one.txt", "--kinds", "card", "--redact", tmp_path / "cleaned")
    assert (tmp_path / "cleaned" / "one.txt").read_text() == f"to {EMAIL}: [CARD]\n"


@pytest.mark.parametrize(
    ("place", "extra", "words"),
    [
        ("mail", (), "is one of the inputs, or inside one"),
        ("mail/new", (), "is one of the inputs, or inside one"),
        ("full", (), "is not empty. Name a new or an empty folder."),
        ("full/file", (), "is a file"),
        ("no/where", (), "is not in a folder that exists"),
        ("new", ("--out", "new"), "are the same folder, or one is inside the other"),
        ("new", ("--out", "new/scan.json"), "is not the path of a file"),
        ("record/new", ("--out", "record"), "is not in a folder that exists"),
    ],
)
def test_places_that_are_refused_before_anything_is_read(
    command, mail, tmp_path, monkeypatch, place, extra, words
):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    done = command("scan", "mail", "--redact", place, *extra)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert words in done.err
    assert {path.name for path in tmp_path.iterdir()} == {"mail", "full"}


def test_a_file_that_is_no_text_and_was_named_is_refused_and_nothing_is_written(
    command, mail, tmp_path
):
    done = command("scan", mail / "image.bin", mail / "one.txt", "--redact", tmp_path / "cleaned")
    assert (done.code, done.out) == (2, "")
    assert not (tmp_path / "cleaned").exists()


def test_pytorch_is_not_needed(mail, tmp_path):
    code = (
        "import sys\nfrom remnant.cli.main import main\n"
        "try:\n    main()\nfinally:\n    sys.exit(7 * ('torch' in sys.modules))"
    )
    arguments = ["scan", str(mail), "--redact", str(tmp_path / "cleaned")]
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, check=False, timeout=600
    )
    assert run.returncode == 0
    assert (tmp_path / "cleaned" / "one.txt").is_file()
