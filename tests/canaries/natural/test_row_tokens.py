"""The parts of JSON and CSV files: joined they are the file, and their texts are its fields."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from remnant.canaries.natural import row_tokens
from remnant.canaries.natural.row_tokens import tokens_of
from remnant.canaries.natural.rows import delimiter_of
from remnant.errors import InvalidInput

TEXTS = st.text(st.sampled_from('ab,;"\\\n\r\t é\U0001f600{}[]:07-'), max_size=8)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.floats(), st.booleans(), st.none()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def parts(content: str, name: str, layout: str, *, read: int = 1 << 18):
    """The parts of a file that is read so many characters at once."""
    with patch.object(row_tokens, "_READ", read):
        return list(tokens_of(Path(name), io.StringIO(content, newline=""), layout))


def strings_in(value) -> list[str]:
    if isinstance(value, dict):
        return [text for name, inner in value.items() for text in [name, *strings_in(inner)]]
    if isinstance(value, list):
        return [text for inner in value for text in strings_in(inner)]
    return [value] if isinstance(value, str) else []


@settings(deadline=None)
@given(
    st.lists(VALUES, max_size=4),
    st.booleans(),
    st.sampled_from([None, 2]),
    st.sampled_from([1, 3, 1 << 18]),
)
def test_json_parts_are_the_file_and_its_strings(values, ascii_only, indent, read):
    content = "\n".join(json.dumps(v, ensure_ascii=ascii_only, indent=indent) for v in values)
    tokens = parts(content, "x.json", "json", read=read)
    assert "".join(token.raw for token in tokens) == content
    strings = [token for token in tokens if token.form in ("string", "name")]
    assert [json.loads(token.raw) for token in strings] == strings_in(values)
    for token in strings:
        text = json.loads(token.raw)
        assert token.text == text or (token.form == "name" and token.text is None)
        assert token.written("".join(token.characters)) == token.raw
        assert len(token.characters) == len(text)
        assert [json.loads(f'"{written}"') for written in token.characters] == list(text)


def test_json_names_lead_to_each_value():
    content = '{"a b": [{"c7": "x"}, "y"], "d": {"e": -12, "f": {}}, "g": "z"} "alone" 5'
    named = [(t.raw, t.names) for t in parts(content, "x.json", "json") if t.form]
    assert named == [
        ('"a b"', ()),
        ('"c7"', ("a b",)),
        ('"x"', ("a b", "c7")),
        ('"y"', ("a b",)),
        ('"d"', ()),
        ('"e"', ("d",)),
        ("-12", ("d", "e")),
        ('"f"', ("d",)),
        ('"g"', ()),
        ('"z"', ("g",)),
        ('"alone"', ()),
        ("5", ()),
    ]


def test_halves_of_a_surrogate_pair_are_characters_of_their_own():
    token = parts(r'"\ud83d x \ud83d\ude00 \ude00"', "x.json", "json")[0]
    assert token.characters == ["\\ud83d", " ", "x", " ", "\\ud83d\\ude00", " ", "\\ude00"]
    assert len(token.text) == 7


CELLS = st.lists(st.lists(TEXTS, min_size=1, max_size=3), max_size=4)


@settings(deadline=None, max_examples=500)
@example(table=[['"\r'], [""]], delimiter=",", end="\n", quoted=False, read=1)
@given(
    table=CELLS,
    delimiter=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
    quoted=st.booleans(),
    read=st.sampled_from([1, 2, 3, 1 << 18]),
)
def test_table_parts_are_the_file_and_its_cells(table, delimiter, end, quoted, read):
    out = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting).writerows(table)
    content = out.getvalue()
    # The reader of tables guesses the separator from the first line.
    first_line = io.StringIO(content, newline="").readline()
    guessed = delimiter_of(Path("x.csv"), first_line)
    try:
        cells = [
            c
            for row in csv.reader(io.StringIO(content, newline=""), delimiter=guessed, strict=True)
            for c in row
            if c
        ]
    except csv.Error:
        return  # refused by the scan before anything is copied
    tokens = parts(content, "x.csv", "csv", read=read)
    assert "".join(token.raw for token in tokens) == content
    assert [token.text for token in tokens if token.text] == cells
    for token in tokens:
        if token.form:
            assert token.written("".join(token.characters)) == token.raw
            assert len(token.characters) == len(token.text)


def test_cells_have_the_names_of_their_columns():
    content = '\nname,,"the\nkey",\r\nann,1,x,2,3\n,,7'
    named = [(t.text, t.names) for t in parts(content, "x.csv", "csv") if t.form]
    assert named == [
        ("name", ("column 1",)),
        ("the\nkey", ("column 3",)),
        *((text, (f"column {n}",)) for n, text in enumerate(["ann", "1", "x", "2", "3"], 1)),
        ("7", ("column 3",)),
    ]
    named = [t.names for t in parts("name\tkey\nann\tx\ty", "x.tsv", "csv") if t.form]
    assert named == [("name",), ("key",), ("name",), ("key",), ("column 3",)]


@pytest.mark.parametrize("content", ['{"a": "b', '"\\x"'])
def test_a_file_that_is_not_json_any_more_is_refused(content):
    with pytest.raises(InvalidInput, match="changed while it was read"):
        parts(content, "x.json", "json")
