"""Files of any size, a piece at a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.canaries.natural.reading import encoding_of, pieces_of
from remnant.errors import InvalidInput


@given(
    text=st.text(st.sampled_from("ab\n\r é\u2028"), max_size=80),
    block=st.integers(1, 30),
    kept=st.integers(2, 12),
    longest=st.integers(0, 12),
)
def test_pieces_are_the_file(tmp_path_factory, text, block, kept, longest):
    path = tmp_path_factory.mktemp("pieces") / "file.txt"
    path.write_bytes(text.encode())
    joined = ""
    for piece in pieces_of(path, "utf-8-sig", block=block, kept=kept, longest=longest):
        start = len(joined) - piece.fresh
        assert text[start : start + len(piece.text)] == piece.text
        before = text[:start]
        assert piece.line == before.count("\n") + 1
        assert piece.column == len(before) - before.rfind("\n")
        assert piece.fresh <= kept or start == 0
        joined += piece.text[piece.fresh : piece.until]
        rest = piece.text[piece.until :]
        assert len(rest) >= longest or joined + rest == text
        assert len(piece.text) <= kept + 2 * block + longest
        assert joined == text[: len(joined)]
        ends = joined.endswith("\n") or joined == text
        assert ends or "\n" not in piece.text[piece.fresh : piece.until]
    assert joined == text


def test_memory_does_not_grow_with_the_length_of_a_line(tmp_path):
    path = tmp_path / "one-line.txt"
    path.write_text("x" * 100_000)
    sizes = [
        len(piece.text) for piece in pieces_of(path, "utf-8", block=1000, kept=100, longest=100)
    ]
    assert len(sizes) > 90
    assert max(sizes) <= 1200


@pytest.mark.parametrize(
    ("content", "latin_1", "found"),
    [
        (b"", False, "utf-8-sig"),
        ("café".encode(), False, "utf-8-sig"),
        ("\ufeffcafé".encode(), True, "utf-8-sig"),
        ("café".encode("latin-1"), True, "latin-1"),
        ("é".encode()[:1], True, "latin-1"),
    ],
)
def test_encodings(tmp_path, content, latin_1, found):
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    assert encoding_of(path, latin_1=latin_1) == found


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "is a binary file: it holds a zero"),
        ("text".encode("utf-16"), "begins with the mark of UTF-16"),
        ("text".encode("utf-32"), "begins with the mark of UTF-32"),
        (b"one\ntwo\nthr\xe9e\n", "is not text in UTF-8, from line 3 on"),
        (b"a" * (1 << 20) + b"\n\xff", "is not text in UTF-8, from line 2 on"),
        (b"cut \xc3", "is not text in UTF-8, from line 1 on"),
        (b"cut \xc3", "or set latin_1= to read it as Latin-1"),
        ("é".encode() * (1 << 19) + b"\xc3\x28", "is not text in UTF-8"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path, content, words):
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=words) as told:
        encoding_of(path, latin_1=False)
    assert str(path) in str(told.value)


def test_a_binary_file_is_refused_as_latin_1_too(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(b"\xff" * (1 << 20) + b"\0")
    with pytest.raises(InvalidInput, match="binary"):
        encoding_of(path, latin_1=True)


def test_a_file_that_changes_meanwhile_is_refused(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("a\n" * 10)
    encoding = encoding_of(path, latin_1=False)
    path.write_bytes(b"\xff\xff")
    with pytest.raises(InvalidInput, match="changed while it was read"):
        list(pieces_of(path, encoding))
    path.unlink()
    with pytest.raises(InvalidInput, match="cannot be read"):
        list(pieces_of(path, encoding))
