"""Text for language models: Python's own library, files, windows and planted canaries."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.data import text as module
from remnant.data.text import plant, read_text, standard_library_text, windows
from remnant.errors import InvalidInput


def test_the_library_gives_the_same_text_again_and_another_for_another_seed():
    one = standard_library_text(characters=50_000, seed=1)
    assert one == standard_library_text(characters=50_000, seed=1)
    other = standard_library_text(characters=50_000, seed=2)
    assert one.train != other.train
    assert (len(one.train), len(one.validation)) == (50_000, 5_000)
    assert (one.train + one.validation).isascii()
    assert "\r" not in one.train
    longer = standard_library_text(characters=60_000, seed=1)
    assert longer.train.startswith(one.train)


def test_no_file_is_in_both_parts_and_tests_are_left_out(tmp_path, monkeypatch):
    wanted = {}
    for place in range(12):
        wanted[f"pack/m{place:02}.py"] = f"# {place:02}\n" * 20
    unwanted = ("test/t.py", "a/tests/t.py", "site-packages/p/t.py", "notes.txt")
    for name, text in {**wanted, **dict.fromkeys(unwanted, "# 99\n" * 20)}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "odd.py").write_bytes("# é\n".encode())
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
    (tmp_path / "empty.py").write_text("\n")
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    for seed in range(5):
        corpus = standard_library_text(characters=950, seed=seed)
        train = {line for line in corpus.train.splitlines() if len(line) == 4}
        validation = {line for line in corpus.validation.splitlines() if len(line) == 4}
        assert validation
        assert not train & validation
        assert train | validation <= {f"# {place:02}" for place in range(12)}
    with pytest.raises(InvalidInput, match=r"characters=5000 and a tenth more .* which has 1200"):
        standard_library_text(characters=5000)
    with pytest.raises(InvalidInput, match="characters=9 is less than 10"):
        standard_library_text(characters=9)


def test_files_come_by_name_whatever_the_disk_says(tmp_path, monkeypatch):
    for name in ("b.py", "a/c.py", "a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    expected = [tmp_path / "a.py", tmp_path / "a" / "c.py", tmp_path / "b.py"]
    assert module._library_files(tmp_path) == expected
    listed = sorted(tmp_path.rglob("*.py"), reverse=True)
    monkeypatch.setattr(Path, "rglob", lambda self, pattern: iter(listed))
    assert module._library_files(tmp_path) == expected


def test_a_file_is_read_as_text(tmp_path):
    (tmp_path / "a.txt").write_bytes("\ufeffé\r\nb\rc\n".encode())
    assert read_text(tmp_path / "a.txt") == "é\nb\nc\n"
    assert read_text(str(tmp_path / "a.txt")) == "é\nb\nc\n"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"ab\0c", "is not text: it holds zero bytes"),
        (b"ab\xe9c", "is not UTF-8 at byte 2"),
    ],
)
def test_a_file_that_is_no_text_is_refused(raw, words, tmp_path):
    (tmp_path / "a.txt").write_bytes(raw)
    with pytest.raises(InvalidInput, match=rf"a\.txt {words}"):
        read_text(tmp_path / "a.txt")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="is not there"):
        read_text(tmp_path / "a.txt")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_text(tmp_path)


@given(tokens=st.integers(2, 60), length=st.integers(1, 59))
def test_every_token_but_the_first_is_a_label_once(tokens, length):
    ids = np.arange(tokens)
    if tokens <= length:
        with pytest.raises(InvalidInput, match=f"{tokens} tokens do not make a window"):
            windows(ids, length=length)
        return
    found = windows(ids, length=length)
    assert found.dtype == np.int64
    assert found.shape == ((tokens - 1) // length, length + 1)
    np.testing.assert_array_equal(found[:, 1:].ravel(), ids[1 : 1 + len(found) * length])
    np.testing.assert_array_equal(found[:, :-1] + 1, found[:, 1:])
    found[0, -1] = -5
    assert (ids >= 0).all()


@given(window=st.lists(st.integers(0, 9), max_size=12), data=st.data())
def test_a_planted_canary_pushes_the_text_back(window, data):
    canary = data.draw(st.lists(st.integers(100, 109), min_size=1, max_size=14))
    at = data.draw(st.integers(-1, 13))
    if not 0 <= at <= len(window) - len(canary):
        with pytest.raises(InvalidInput, match=f"a canary of {len(canary)} tokens does not fit"):
            plant(window, canary, at=at)
        return
    found = plant(window, canary, at=at)
    assert found.tolist() == (window[:at] + canary + window[at:])[: len(window)]


def test_nothing_of_a_canary_is_told():
    with pytest.raises(InvalidInput) as fault:
        plant([1, 2], [281, 265, 17], at=0)
    assert not any(part in str(fault.value) for part in ("281", "265", "17"))
    with pytest.raises(InvalidInput, match="one row of tokens each"):
        plant([1, 2], [], at=0)
