"""The gate of a scan: a secret fails it, and it passes only text that was read."""

from __future__ import annotations

import json
import os

import pytest

from remnant.canaries.natural import KINDS, redact, scan_files
from remnant.canaries.natural.scanning import control_texts, undetected_kinds
from remnant.studies.found_secrets.verdict import judge_scan

SALT = b"0123456789abcdef"
SSN = "536-90-" + "4399"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plain.txt").write_text("nothing to see")
    return tmp_path


def judged(*paths, **options):
    return judge_scan(scan_files(list(paths), salt=SALT, **options))


def test_clean_text_passes_and_says_what_was_read(folder):
    gate = judged(folder)
    assert gate.outcome == "PASS"
    assert gate.sentence == f"1 file with 14 characters: no secret of {', '.join(KINDS)}."
    assert gate.claim == gate.sentence
    (folder / "picture.png").write_bytes(b"\x89PNG\0")
    assert judged(folder).sentence.endswith(" Not scanned: 1 binary file.")
    assert judged(folder).outcome == "PASS"


@pytest.mark.parametrize("kind", KINDS)
def test_one_secret_of_any_kind_fails(folder, kind):
    (folder / "other.txt").write_text(control_texts()[kind])
    gate = judged(folder)
    assert (gate.outcome, gate.claim) == ("FAIL", "")
    assert gate.sentence == f"1 secret ({kind} 1) in 1 of 2 files."


def test_a_secret_fails_whatever_was_not_read(folder):
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    (folder / "picture.png").write_bytes(b"\x89PNG\0")
    (folder / "other.txt").write_text(SSN)
    gate = judged(folder)
    assert gate.outcome == "FAIL"
    assert gate.sentence == "1 secret (ssn 1) in 1 of 2 files. Not scanned: 2 files."


@pytest.mark.parametrize(
    ("content", "name"),
    [(b"", "empty.txt"), (b"\n\n", "blank.jsonl"), (b"[]", "none.json"), (b"\0", "zero.bin")],
)
def test_where_no_text_was_read_nothing_is_concluded(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    gate = judged(tmp_path)
    assert gate.outcome == "INCONCLUSIVE"
    assert gate.sentence.startswith("No text was scanned")


@pytest.mark.parametrize("content", [b"caf\xe9", "text".encode("utf-16")])
def test_text_in_another_encoding_is_no_pass(folder, content):
    (folder / "other.txt").write_bytes(content)
    gate = judged(folder)
    assert gate.outcome == "INCONCLUSIVE"
    assert "1 file could not be read as text." in gate.sentence


@pytest.mark.parametrize("content", ["text".encode("utf-16-le"), f"a,{SSN}\0".encode()])
@pytest.mark.parametrize("name", ["notes.txt", "table.CSV", "page.html"])
def test_text_with_zeros_is_no_pass(folder, name, content):
    (folder / name).write_bytes(content)
    gate = judged(folder)
    assert gate.outcome == "INCONCLUSIVE"
    assert gate.sentence.startswith("1 file could not be read as text.")


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_links_to_what_was_not_read_are_no_pass(folder, tmp_path_factory, kind):
    """Data folders of hubs consist of links, and a training follows them."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "more.txt").write_text(SSN)
    target = elsewhere if kind == "folder" else elsewhere / "more.txt"
    (folder / "linked").symlink_to(target)
    gate = judged(folder)
    assert gate.outcome == "INCONCLUSIVE"
    assert gate.sentence.startswith("1 file could not be read as text.")
    assert judged(folder, exclude=["linked"]).outcome == "PASS"
    assert judged(folder, elsewhere).outcome == "FAIL"


def test_links_to_what_was_read_pass(folder):
    (folder / "linked.txt").symlink_to(folder / "plain.txt")
    (folder / "round").symlink_to(folder)
    (folder / "broken.txt").symlink_to(folder / "nothing.txt")
    assert judged(folder).outcome == "PASS"


@pytest.mark.parametrize("name", ["train.parquet", "train.jsonl.gz", "mail.ZIP", "paper.pdf"])
def test_binary_files_that_hold_text_are_no_pass(folder, name):
    (folder / name).write_bytes(b"\x1f\x8b\0\0")
    gate = judged(folder)
    assert gate.outcome == "INCONCLUSIVE"
    assert gate.sentence.startswith("1 file could not be read as text.")
    assert judged(folder, exclude=[name]).outcome == "PASS"


def test_a_broken_file_of_rows_in_a_folder_is_no_pass(folder):
    """Read as plain text, an escape may hide a secret: here its first letter."""
    token = "gh" + "p_" + "aQ1bW2cE3dR4fT5gY6hU7jI8kO9lP0zX1cV2"
    row = json.dumps({"text": f"the key {token}"}).replace("ghp_", "\\u0067hp_")
    (folder / "train.jsonl").write_text(f"{row}\nbroken\n")
    gate = judged(folder)
    assert gate.outcome == "INCONCLUSIVE"
    assert gate.sentence.startswith("1 file could not be read by field.")
    (folder / "train.jsonl").write_text(f"{row}\n")
    assert judged(folder).outcome == "FAIL"
    (folder / "train.jsonl").write_text('{"n": 1}\n')
    assert judged(folder).outcome == "PASS"


TOKEN = "gh" + "p_" + "aQ1bW2cE3dR4fT5gY6hU7jI8kO9lP0zX1cV2"


@pytest.mark.parametrize("secret", [SSN, TOKEN, "4539" + "148803436467"])
@pytest.mark.parametrize(
    "written",
    [
        lambda secret: json.dumps({"arguments": json.dumps({"code": f"use it\n{secret}\n"})}),
        lambda secret: json.dumps({"arguments": json.dumps({"code": f"a\tb\n\t{secret}"})}),
        lambda secret: f"https://example.org/?first=1&q=%22{secret}%22",
        lambda secret: f"source: 'value\\u003d{secret}\\n'",
    ],
)
@pytest.mark.parametrize("name", ["train.jsonl", "notes.txt"])
def test_a_secret_after_an_escape_fails(folder, name, written, secret):
    """The escape's last letter or digit is no part of the word that follows."""
    text = written(secret)
    row = text if text.startswith("{") else json.dumps({"text": text})
    (folder / name).write_text(row if name.endswith("jsonl") else text)
    gate = judged(folder)
    assert gate.outcome == "FAIL"
    assert gate.sentence.startswith("1 secret")
    assert redact(text).text.count("[") == 1 + text.count("[")
    assert secret not in redact(text).text


def test_a_folder_that_cannot_be_listed_is_no_pass(folder, monkeypatch):
    (folder / "locked").mkdir()
    listed = os.scandir

    def refused(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "scandir", refused)
    scan = scan_files([folder], salt=SALT)
    assert [skipped.reason for skipped in scan.skipped] == ["cannot be listed: Permission denied"]
    assert judge_scan(scan).outcome == "INCONCLUSIVE"


def test_each_kind_has_a_control_that_is_found():
    assert undetected_kinds(KINDS) == ()
    assert undetected_kinds(KINDS, region="DE", min_entropy=5.5) == ()
    assert undetected_kinds(KINDS, min_entropy=6.0) == ("random",)


def test_a_finder_that_finds_nothing_is_noticed(monkeypatch):
    from remnant.canaries.natural import scanning

    monkeypatch.setattr(scanning, "find_keys", lambda text: iter(()))
    assert "key" in undetected_kinds(KINDS)
