"""Text files: canaries on lines of their own, all other bytes as they were."""

from __future__ import annotations

import json
import os
import stat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.canaries import Template, insert_into_file, make_canary_set, text_file
from remnant.errors import InvalidInput

PINS = Template("mein PIN für heute ist {digits:5}")


def rng(seed=0):
    return np.random.default_rng(seed)


def made(*repeats, template=PINS):
    return make_canary_set(template, repeats=repeats, controls=3, seed=0)


LINES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n\ufeff")),
    min_size=1,
    max_size=8,
)


@settings(max_examples=200)
@given(
    lines=LINES,
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    is_closed=st.booleans(),
    mark=st.sampled_from(["", "\ufeff"]),
    repeats=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    seed=st.integers(0, 99),
)
def test_all_other_lines_their_endings_and_the_mark_stay(
    tmp_path_factory, lines, newline, is_closed, mark, repeats, seed
):
    if len(lines) == 1 and not is_closed:
        newline = "\n"  # the file has none of its own
    if not is_closed and not lines[-1]:
        lines[-1] = "x"  # a last line without letters and ending is no line
    folder = tmp_path_factory.mktemp("files")
    source, destination = folder / "old.txt", folder / "new.txt"
    content = (mark + newline.join(lines) + newline * is_closed).encode()
    source.write_bytes(content)
    canary_set = made(*repeats)
    where = insert_into_file(source, destination, canary_set, rng=rng(seed))
    found = destination.read_bytes().decode()
    assert found.startswith(mark)
    found = found.removeprefix(mark)
    assert found.endswith(newline) == is_closed
    new = (found.removesuffix(newline) if is_closed else found).split(newline)
    assert len(new) == len(lines) + sum(repeats)
    places = dict(where.tolist())
    for position, canary in places.items():
        assert new[position] == canary_set.canaries[canary].text
    assert [line for at, line in enumerate(new) if at not in places] == lines
    assert np.bincount(where[:, 1]).tolist() == list(canary_set.repeats)
    assert source.read_bytes() == content
    assert sorted(one.name for one in folder.iterdir()) == ["new.txt", "old.txt"]


@pytest.mark.parametrize(
    ("content", "positions", "expected"),
    [
        (b"a\nb\n", [0, 1, 2], b"0\na\n0\nb\n1\n"),
        (b"a\nb", [0, 2, 2], b"0\na\nb\n0\n1"),
        (b"a\r\nb", [2, 2, 0], b"1\r\na\r\nb\r\n0\r\n0"),
        (b"a\r\nb\n", [1, 1, 1], b"a\r\n0\r\n0\r\n1\r\nb\n"),
        (b"a\rb\n", [1, 1, 0], b"1\na\rb\n0\n0\n"),
        (b"a\rb", [1, 2, 0], b"1\ra\r0\rb\r0"),
        (b"a", [0, 1, 1], b"0\na\n0\n1"),
        (b"\n", [0, 1, 1], b"0\n\n0\n1\n"),
        (b"\xef\xbb\xbfa\n", [0, 0, 1], b"\xef\xbb\xbf0\n0\na\n1\n"),
    ],
)
def test_lines_go_where_they_are_sent(tmp_path, content, positions, expected):
    canary_set = made(2, 1)
    source, destination = tmp_path / "old", tmp_path / "new"
    source.write_bytes(content)
    where = insert_into_file(source, destination, canary_set, positions=positions)
    names = {canary.text.encode(): b"%d" % at for at, canary in enumerate(canary_set.canaries)}
    found = destination.read_bytes()
    for text, name in names.items():
        found = found.replace(text, name)
    assert found == expected
    assert len(where) == 3


def test_the_permissions_of_the_source_are_kept_and_an_old_destination_is_replaced(tmp_path):
    source, destination = tmp_path / "old", tmp_path / "new"
    source.write_text("a\n")
    source.chmod(0o640)
    destination.write_text("something else")
    insert_into_file(str(source), str(destination), made(1), rng=rng())
    assert stat.S_IMODE(destination.stat().st_mode) == 0o640
    assert "something else" not in destination.read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"source=.*old is empty\. Canaries go among other lines"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"ab\ncd\0e\n", "is a binary file: line 2 holds a NUL"),
        (b"caf\xe9\n", "is not text in UTF-8"),
        ("café\n".encode("utf-16"), "is not text in UTF-8"),
    ],
)
def test_what_is_no_text_is_refused_and_nothing_is_left_behind(tmp_path, content, message):
    source = tmp_path / "old"
    source.write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        insert_into_file(source, tmp_path / "new", made(1), rng=rng())
    assert list(tmp_path.iterdir()) == [source]


def test_the_source_is_never_the_destination(tmp_path):
    source = tmp_path / "old"
    source.write_text("a\n")
    (tmp_path / "linked").symlink_to(source)
    os.link(source, tmp_path / "hard")
    (tmp_path / "folder").mkdir()
    for name in ("old", "linked", "hard", "folder/../old"):
        with pytest.raises(InvalidInput, match=r"is the source too\. Write the canaries to anoth"):
            insert_into_file(source, tmp_path / name, made(1), rng=rng())
    assert source.read_text() == "a\n"


def test_what_is_no_file_is_refused(tmp_path):
    for source in (tmp_path, tmp_path / "none"):
        with pytest.raises(InvalidInput, match=r"source=.* is not a file"):
            insert_into_file(source, tmp_path / "new", made(1), rng=rng())


@pytest.mark.parametrize("pattern", ["a\nb {digits:5}", "a\rb {digits:5}"])
def test_canaries_of_several_lines_are_refused(tmp_path, pattern):
    source = tmp_path / "old"
    source.write_text("a\n")
    with pytest.raises(InvalidInput, match="The canaries span several lines"):
        insert_into_file(source, tmp_path / "new", made(1, template=Template(pattern)), rng=rng())


def test_positions_are_checked_against_the_lines(tmp_path):
    source = tmp_path / "old"
    source.write_text("a\nb\n")
    with pytest.raises(InvalidInput, match="positions holds 3, outside 0 to 2"):
        insert_into_file(source, tmp_path / "new", made(1), positions=[3])
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("later", ["a\n", "a\nb\nc\n"])
def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path, monkeypatch, later):
    source = tmp_path / "old"
    source.write_text("a\nb\n")
    look_at = text_file._look_at

    def look_and_change(path):
        shape = look_at(path)
        path.write_text(later)
        return shape

    monkeypatch.setattr(text_file, "_look_at", look_and_change)
    with pytest.raises(InvalidInput, match=r"changed while it was read\. Try again"):
        insert_into_file(source, tmp_path / "new", made(1), positions=[0])
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_file_that_holds_a_canary_or_a_control_already_is_refused(tmp_path, newline):
    canary_set = made(1, 2)
    source = tmp_path / "old"
    lines = ["a", f"> {canary_set.canaries[1].text}!", canary_set.controls[0].text, "b"]
    source.write_text(newline.join(lines), newline="")
    with pytest.raises(InvalidInput, match="old holds 2 of the canaries and controls") as fault:
        insert_into_file(source, tmp_path / "new", canary_set, rng=rng())
    assert not any(one.secret in str(fault.value) for one in canary_set.canaries)
    assert list(tmp_path.iterdir()) == [source]


ROWS = [{"text": "a", "id": 1}, {"text": 'b "é" \n c'}, {"id": 3}]


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "old.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS) + "\n")
    return path


@pytest.mark.parametrize("pattern", ['the "key" is {digits:5}', "two\nlines é {digits:5}"])
def test_json_lines_take_whole_rows(tmp_path, rows, pattern):
    canary_set = made(2, 1, template=Template(pattern))
    where = insert_into_file(rows, tmp_path / "new", canary_set, rng=rng(), field="text")
    lines = (tmp_path / "new").read_text().splitlines()
    places = dict(where.tolist())
    for position, canary in places.items():
        assert json.loads(lines[position]) == {"text": canary_set.canaries[canary].text}
    rest = [line for at, line in enumerate(lines) if at not in places]
    assert rest == rows.read_text().splitlines()


def test_json_lines_need_a_field_that_they_have_and_plain_text_takes_none(tmp_path, rows):
    plain = tmp_path / "plain"
    plain.write_text('{"text": "a"}\nand more\n')
    for source, field, message in (
        (rows, None, r"holds JSON lines, and field= is missing\. Name the field"),
        (rows, "id", "field='id' holds a text in no row of source="),
        (rows, "txt", "field='txt' holds a text in no row"),
        (plain, "text", "does not hold a JSON object on every line"),
    ):
        with pytest.raises(InvalidInput, match=message):
            insert_into_file(source, tmp_path / "new", made(1), rng=rng(), field=field)
    assert not (tmp_path / "new").exists()
    insert_into_file(plain, tmp_path / "new", made(1), rng=rng())


def test_a_canary_that_stands_in_a_row_already_is_found_however_it_is_written(tmp_path):
    canary_set = made(1, template=Template('é "key" {digits:5}'))
    source = tmp_path / "old.jsonl"
    row = {"text": "a", "turns": [{"said": f"so {canary_set.canaries[0].text}."}]}
    for ascii_only in (True, False):
        source.write_text(json.dumps(row, ensure_ascii=ascii_only) + "\n")
        with pytest.raises(InvalidInput, match="holds 1 of the canaries and controls"):
            insert_into_file(source, tmp_path / "new", canary_set, rng=rng(), field="text")
