"""Copies without secrets: the same files otherwise, all of them or none."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remnant.canaries.natural import KINDS, cleaned_copies, scan_files, write_cleaned
from remnant.canaries.natural.reading import pieces_of
from remnant.errors import InvalidInput

SALT = b"0123456789abcdef"
# Made up, and in parts: no file of ours holds one whole.
CARD = "4929 " + "0714 3683 5574"
SSN = "536-90-" + "4399"
EMAIL = "r.okafor71@" + "mailbox.org"
PHONE = "(650) 253" + "-0000"
RANDOM = "9f8b1c7d" + "e2a603547b1e9ac4"
PARTS = st.one_of(
    st.sampled_from(["", "a", "words, ", "\n", "\r\n", "é\U0001f600 ", "\t", '"', "\\", "/", "0,"]),
    st.sampled_from([f" {secret} " for secret in (CARD, SSN, EMAIL, PHONE, RANDOM)]),
    st.sampled_from([CARD, SSN, EMAIL, PHONE, RANDOM, "650", "253", "0000", "-", "@"]),
)
TEXTS = st.lists(PARTS, max_size=6).map("".join)
BUSY = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def clean(tmp_path_factory):
    """Write files, clean them, and scan the copy again: it holds nothing."""

    def make(files: dict[str, str | bytes], **settings):
        home = tmp_path_factory.mktemp("cleaned")
        for name, content in files.items():
            path = home / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        scan = scan_files([home / "in"], salt=SALT, **settings)
        chosen = {name: settings[name] for name in ("fields", "exclude") if name in settings}
        copies = write_cleaned([home / "in"], home / "out", scan=scan, **chosen)
        assert not scan_files([home / "out"], salt=SALT, **settings).found
        return {file.copy: (home / "out" / file.copy).read_bytes() for file in copies.files}, copies

    return make


@BUSY
@given(TEXTS)
def test_a_text_is_cleaned_and_the_rest_stays(clean, text):
    written, copies = clean({"a.txt": f"first {text}\r\nlast"})
    cleaned = written["a.txt"].decode()
    assert cleaned.startswith("first")
    assert cleaned.endswith("\r\nlast")
    for kind in KINDS:
        assert cleaned.count(f"[{kind.upper()}]") == copies.files[0].counts.get(kind, 0)
    if not copies.files[0].counts:
        assert cleaned == f"first {text}\r\nlast"


@pytest.mark.parametrize("block", [50, 70, 1000])
def test_copies_do_not_depend_on_how_a_file_is_cut(clean, monkeypatch, block):
    lines = [f"line {n} has {secret}\n" for n in range(30) for secret in (CARD, SSN, EMAIL, PHONE)]
    text = "".join(lines) + (f"x {SSN} " * 50) + f"536904399{EMAIL}"
    rows = "".join(json.dumps({"text": line}) + "\n" for line in lines) + json.dumps(text)
    whole, _ = clean({"a.txt": text, "b.jsonl": rows})

    def in_small_pieces(path, encoding):
        return pieces_of(path, encoding, block=block, kept=40, longest=40)

    monkeypatch.setattr(cleaned_copies, "pieces_of", in_small_pieces)
    monkeypatch.setattr(cleaned_copies, "BLOCK", block)
    assert clean({"a.txt": text, "b.jsonl": rows})[0] == whole


def same_structure(before, after) -> bool:
    """Whether two values differ in texts, names and numbers alone."""
    if isinstance(before, dict):
        values = zip(before.values(), after.values(), strict=True)
        return isinstance(after, dict) and all(same_structure(*pair) for pair in values)
    if isinstance(before, list):
        pairs = zip(before, after, strict=True)
        return isinstance(after, list) and all(same_structure(*pair) for pair in pairs)
    return type(before) is type(after)


NUMBERS = st.sampled_from([7, -3, 2.5, 4929071436835574, 6502530000, 536904399.0, 1700000000])
VALUES = st.recursive(
    st.one_of(TEXTS, NUMBERS, st.booleans(), st.none()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@BUSY
@given(st.lists(VALUES, min_size=1, max_size=4), st.booleans(), st.sampled_from(["jsonl", "json"]))
def test_json_stays_json_with_the_same_structure(clean, values, ascii_only, ending):
    rows = [json.dumps(value, ensure_ascii=ascii_only) for value in values]
    content = "\r\n".join(rows) if ending == "jsonl" else f"[{', '.join(rows)}]"
    written, copies = clean({f"a.{ending}": content, "b.txt": f"{CARD} {SSN} {PHONE} {EMAIL}"})
    copy = written[f"a.{ending}"].decode()
    after = [json.loads(row) for row in copy.split("\r\n")] if ending == "jsonl" else None
    assert same_structure(values, json.loads(copy) if after is None else after)
    assert copy.isascii() or not ascii_only
    if not copies.files[0].counts:
        assert copy == content


@BUSY
@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=4))
def test_a_table_stays_a_table_with_the_same_shape(clean, cells):
    out = io.StringIO(newline="")
    table = [["name", "note"], *cells]
    csv.writer(out).writerows(table)
    written, copies = clean({"a.csv": out.getvalue()})
    copy = list(csv.reader(io.StringIO(written["a.csv"].decode(), newline="")))
    assert [len(row) for row in copy] == [len(row) for row in table]
    if not copies.files[0].counts:
        assert written["a.csv"].decode() == out.getvalue()


def test_escapes_blanks_and_numbers_stay_as_they_are_written(clean):
    content = f'{{"t" : "\\u00e9\\/ {SSN} \\ud83d", "n":1.50e+3, "c": 4929071436835574}}\r\n\r\n'
    written, copies = clean({"a.jsonl": content})
    assert written["a.jsonl"].decode() == (
        '{"t" : "\\u00e9\\/ [SSN] \\ud83d", "n":1.50e+3, "c": 0}\r\n\r\n'
    )
    assert (copies.files[0].counts, copies.files[0].zeros) == ({"card": 1, "ssn": 1}, 1)


def test_names_of_fields_stay_different(clean):
    written, _ = clean({"a.json": json.dumps({EMAIL: 1, f"x{EMAIL}": 2, "ann@uni.edu": 3})})
    assert json.loads(written["a.json"]) == {"[EMAIL]": 1, "[EMAIL] 2": 2, "[EMAIL] 3": 3}


def test_a_value_that_a_later_one_of_the_same_name_hides_is_cleaned(clean):
    written, _ = clean({"a.jsonl": f'{{"text": "{SSN}", "text": "nothing here at all"}}'})
    assert written["a.jsonl"] == b'{"text": "[SSN]", "text": "nothing here at all"}'


def test_a_secret_of_one_file_is_replaced_in_the_others_in_any_field(clean):
    row = {"text": f"call {PHONE}", "id": 6502530000, "other": "6502530000 or 212-736-5000"}
    written, _ = clean({"a.jsonl": json.dumps(row)}, fields=["text"])
    assert json.loads(written["a.jsonl"]) == {
        "text": "call [PHONE]",
        "id": 0,
        "other": "[PHONE] or 212-736-5000",
    }
    written, copies = clean({"a.txt": f"my {SSN}\n", "b.txt": "no 536904399.\n"})
    assert written == {"a.txt": b"my [SSN]\n", "b.txt": b"no [SSN].\n"}
    assert [file.counts for file in copies.files] == [{"ssn": 1}, {"ssn": 1}]


def test_encodings_and_marks_stay(clean):
    marked = b"\xef\xbb\xbf" + f"é {SSN}\r".encode()
    written, _ = clean({"a.txt": marked, "b.txt": f"é {SSN}".encode("latin-1")}, latin_1=True)
    assert written["a.txt"] == b"\xef\xbb\xbf" + "é [SSN]\r".encode()
    assert written["b.txt"] == "é [SSN]".encode("latin-1")
    written, _ = clean({"a.csv": b"\xef\xbb\xbfname,id\r\nann," + SSN.encode()})
    assert written["a.csv"] == b"\xef\xbb\xbfname,id\r\nann,[SSN]"


def test_broken_rows_are_copied_as_the_text_that_they_were_read_as(clean):
    written, _ = clean({"a.jsonl": f"{{no json {SSN}"})
    assert written["a.jsonl"] == b"{no json [SSN]"


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text(f"my {SSN}\n")
    (folder / "sub" / "b.txt").write_text("nothing\n")
    return folder


def copied(texts, *paths, **options):
    paths = paths or (texts,)
    scan = scan_files(paths, salt=SALT)
    return write_cleaned(paths, texts.parent / "out", scan=scan, **options)


def test_what_has_no_copy_is_listed_with_the_reason(texts):
    (texts / "image.bin").write_bytes(b"\0\1")
    (texts / "latin.txt").write_bytes(b"caf\xe9")
    (texts / "link.txt").symlink_to(texts / "a.txt")
    (texts / "folder").symlink_to(texts / "sub")
    os.mkfifo(texts / "pipe")
    copies = copied(texts)
    assert {(os.path.basename(file.path), file.reason) for file in copies.not_copied} == {
        ("image.bin", "is a binary file: it holds a zero"),
        ("latin.txt", "is not text in UTF-8, from line 1 on"),
        ("link.txt", "is a link, which is not followed"),
        ("folder", "is a link, which is not followed"),
        ("pipe", "is not a regular file"),
    }
    assert {file.copy for file in copies.files} == {"a.txt", "sub/b.txt"}
    assert sorted(path.name for path in (texts.parent / "out").rglob("*")) == [
        *("a.txt", "b.txt", "sub")
    ]


def test_permissions_are_no_wider(texts):
    os.chmod(texts / "a.txt", 0o600)
    os.chmod(texts / "sub" / "b.txt", 0o444)
    copied(texts)
    out = texts.parent / "out"
    modes = {name: stat.S_IMODE((out / name).stat().st_mode) for name in ("", "a.txt", "sub/b.txt")}
    assert modes == {"": 0o700, "a.txt": 0o600, "sub/b.txt": 0o444}


def test_names_with_several_inputs(texts):
    copies = copied(texts, texts / "sub", texts / "a.txt")
    assert [file.copy for file in copies.files] == ["sub/b.txt", "a.txt"]
    other = texts / "sub" / "a.txt"
    other.write_text("other")
    with pytest.raises(InvalidInput, match="and another file would have the same copy"):
        write_cleaned(
            [texts / "a.txt", other],
            texts.parent / "out 2",
            scan=scan_files([texts / "a.txt", other], salt=SALT),
        )
    assert not (texts.parent / "out 2").exists()


def test_names_that_lose_a_secret_stay_different(texts):
    for name in ("ann", "bob"):
        (texts / f"{name}@uni.edu.txt").write_text("x")
    copies = copied(texts, shown_path=lambda path: path.replace("ann", "…").replace("bob", "…"))
    names = [file.copy for file in copies.files]
    assert {"…@uni.edu.txt", "…@uni.edu 2.txt"} < set(names)


def test_an_empty_folder_and_a_link_to_one_are_used(texts):
    out = texts.parent / "out"
    (texts.parent / "real").mkdir()
    out.symlink_to(texts.parent / "real")
    copied(texts)
    assert out.is_symlink()
    assert (texts.parent / "real" / "a.txt").read_text() == "my [SSN]\n"
    with pytest.raises(InvalidInput, match="out is not empty"):
        copied(texts)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("in", "is one of the inputs, or inside one"),
        ("in/new", "is one of the inputs, or inside one"),
        ("file", "is a file"),
        ("no/where", "is not in a folder that exists"),
        (".", "is not empty"),
    ],
)
def test_places_that_are_refused(texts, place, words):
    (texts.parent / "file").write_text("")
    with pytest.raises(InvalidInput, match=words):
        write_cleaned([texts], texts.parent / place, scan=scan_files([texts], salt=SALT))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_an_error_while_writing_leaves_nothing(texts, monkeypatch, number):
    scan = scan_files([texts], salt=SALT)
    before = cleaned_copies._Cleaner.copy

    def failing(self, source, target, **options):
        if source.name == "b.txt":
            raise OSError(number, os.strerror(number), str(target))
        return before(self, source, target, **options)

    monkeypatch.setattr(cleaned_copies._Cleaner, "copy", failing)
    said = "the disk is full" if number == errno.ENOSPC else "Permission denied"
    with pytest.raises(InvalidInput, match=f"out cannot be written: {said}.*No copy was written"):
        write_cleaned([texts], texts.parent / "out", scan=scan)
    assert [path.name for path in texts.parent.iterdir()] == ["in"]


def test_a_file_that_changed_after_the_scan_is_cleaned_or_refused(texts):
    scan = scan_files([texts], salt=SALT)
    (texts / "a.txt").write_text(f"now {CARD} and {SSN}")
    write_cleaned([texts], texts.parent / "out", scan=scan)
    assert (texts.parent / "out" / "a.txt").read_text() == "now [CARD] and [SSN]"
    (texts / "a.txt").unlink()
    with pytest.raises(InvalidInput, match=r"a\.txt cannot be read: No such file"):
        write_cleaned([texts], texts.parent / "gone", scan=scan)
    (texts / "a.txt").write_bytes(b"caf\xe9")
    with pytest.raises(InvalidInput, match="changed while it was read"):
        write_cleaned([texts], texts.parent / "gone", scan=scan)
    assert not (texts.parent / "gone").exists()
