"""``remnant scan`` on files of rows and as a gate, as its user meets it."""

from __future__ import annotations

import json
import os

import pytest

# Made up, and in parts: no file of ours holds one whole.
EMAIL = "r.okafor71@" + "quvzad.org"
SSN = "536-90-" + "4399"
TOKEN = "gh" + "p_" + "aQ1bW2cE3dR4fT5gY6hU7jI8kO9lP0zX1cV2"


@pytest.fixture(scope="module")
def command(command, with_tables):
    """Commands with their tables."""
    return with_tables(command)


@pytest.fixture
def chat(tmp_path):
    path = tmp_path / "chat.jsonl"
    rows = [
        {"messages": [{"role": "user", "content": f"hello\nuse {TOKEN} please"}]},
        {"messages": [{"role": "user", "content": "mail to " + EMAIL}], "id": SSN},
        {"messages": []},
    ]
    lines = [json.dumps(row).replace("@", "\\u0040") for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_places_are_file_row_and_field(command, chat):
    done = command("scan", chat)
    assert (done.code, done.err) == (0, "")
    lines = done.out.replace(str(chat), "chat.jsonl").splitlines()
    assert lines[0] == "1 file, 3 rows, 105 characters."
    assert lines[1] == "chat.jsonl: 1 row of 3 without text, the first at line 3."
    places = {
        line.split()[1]: line.rpartition("chat.jsonl")[2] for line in lines if ", row" in line
    }
    assert places == {
        "key": ":1, row 1, messages[0].content:11",
        "email": ":2, row 2, messages[0].content:9",
        "ssn": ":2, row 2, id:1",
    }
    assert any("GitHub" in line for line in lines)
    assert not [part for part in (EMAIL[:8], SSN[4:], TOKEN[4:12]) if part in done.out]


def test_json_has_rows_fields_and_services(command, chat):
    found = json.loads(command("scan", chat, "--json").out)
    assert found["files"][0]["rows"] == 3
    assert found["files"][0]["rows_without_text"] == 1
    by_kind = {secret["kind"]: secret for secret in found["secrets"]}
    place = by_kind["key"]["places"][0]
    assert (place["line"], place["row"], place["column"]) == (1, 1, 11)
    assert place["field"] == "messages[0].content"
    assert by_kind["key"]["service"] == "GitHub"
    assert "service" not in by_kind["ssn"]
    plain = json.loads(command("scan", chat, "--json", "--as-text").out)
    assert "rows" not in plain["files"][0]
    assert "row" not in plain["secrets"][0]["places"][0]
    assert {secret["kind"] for secret in plain["secrets"]} == {"key", "ssn"}, "the escape hides it"


def test_fields_are_chosen(command, chat):
    def kinds(*options):
        found = json.loads(command("scan", chat, "--json", *options).out)
        return {secret["kind"] for secret in found["secrets"]}

    assert kinds("--field", "messages.content") == {"key", "email"}
    assert kinds("--field", "messages", "--field", "id") == {"key", "email", "ssn"}


def test_names_of_fields_are_redacted_like_paths(command, tmp_path):
    path = tmp_path / "people.json"
    path.write_text(json.dumps({EMAIL: {"id": SSN}, SSN: "x"}))
    for done in (command("scan", path), command("scan", path, "--json")):
        assert done.code == 0
        assert "okafor" not in done.out
        assert SSN not in done.out
    assert EMAIL in command("scan", path, "--reveal").out
    table = tmp_path / "people.csv"
    table.write_text(f"name,{TOKEN}\nann,{SSN}\n")
    assert TOKEN[4:] not in command("scan", table, "--json").out


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("{}\nplain", [], "line 2: the row is not JSON (Expecting value, column 1). Fix the file"),
        ("{}\n", [], "line 1: the row has no text, and no other row has any. Choose other fields"),
        ('{"a": "b"}', ["--field", "text"], "line 1: the row has no field 'text'; it has a."),
        ('{"a": "b"}', ["--field", "a", "--as-text"], "--field and --as-text are both given"),
        ('{"a": "b"}', ["--field", ""], "--field has an empty name"),
        ('{"a": "b"}', ["--allow-inconclusive"], "only --gate sets"),
        ('{"a": "b"}', ["--gate", "--min-entropy", 7], "--gate could not fail"),
    ],
)
def test_faults_are_one_sentence(command, tmp_path, content, options, words):
    path = tmp_path / "rows.jsonl"
    path.write_text(content)
    done = command("scan", path, *options)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 1
    if "row" in words:
        assert "--as-text to read" in done.err


def test_a_folder_with_a_broken_file_is_scanned_with_a_warning(command, chat):
    (chat.parent / "broken.jsonl").write_text(f"{{}}\n{SSN}\n")
    done = command("scan", chat.parent)
    assert done.code == 0
    assert "broken.jsonl was read as plain text: line 2: the row is not JSON" in done.out
    assert "broken.jsonl:2:1" in done.out


def test_the_gate_fails_passes_or_concludes_nothing(command, chat, tmp_path):
    done = command("scan", chat, "--gate")
    assert done.code == 1
    assert done.out.startswith("FAIL: 3 secrets (ssn 1, email 1, key 1) in 1 of 1 file.\n")
    assert command("scan", chat).code == 0, "without --gate nothing is judged"
    done = command("scan", chat, "--gate", "--kinds", "card,iban")
    assert (done.code, done.out.split(":")[0]) == (0, "PASS")
    assert "no secret of card, iban." in done.out
    found = json.loads(command("scan", chat, "--gate", "--json").out)
    assert found["verdict"]["outcome"] == "FAIL"
    assert "verdict" not in json.loads(command("scan", chat, "--json").out)


def test_a_gate_that_read_nothing_is_no_pass(command, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    assert command("scan", folder, "--gate").code == 2, "no file at all"
    (folder / "picture.bin").write_bytes(b"\0\1")
    for allowed in ([], ["--allow-inconclusive"]):
        done = command("scan", folder, "--gate", *allowed)
        assert (done.code, done.out.split(":")[0]) == (3, "INCONCLUSIVE")
    assert command("scan", folder / "picture.bin", "--gate").code == 2, "named, and refused"
    (folder / "plain.txt").write_text("words")
    assert command("scan", folder, "--gate").code == 0
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    assert command("scan", folder, "--gate").code == 3
    assert command("scan", folder, "--gate", "--allow-inconclusive").code == 0
    assert command("scan", folder, "--gate", "--latin-1").code == 0


def test_a_pipe_is_refused_and_passed_over_in_a_folder(command, tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert "is a FIFO, not a regular file" in command("scan", tmp_path / "pipe.jsonl").err
    (tmp_path / "plain.txt").write_text("words")
    assert command("scan", tmp_path, "--gate").code == 0
