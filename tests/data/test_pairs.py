"""Pairs of sentences: two files or one, and the two parts."""

from __future__ import annotations

import pytest

from remnant.data.pairs import load_pairs, read_pairs
from remnant.errors import InvalidInput, PlanError


def write(folder, **files):
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_two_files_and_one_with_tabs_give_the_same_pairs(tmp_path):
    write(tmp_path, en=["a dog", "", "two"], de=["ein hund", "nichts", "zwei"])
    write(tmp_path, both=["a dog\tein hund\tCC", "\tnichts", "", "two\tzwei"])
    expected = [("a dog", "ein hund"), ("two", "zwei")]
    assert read_pairs(tmp_path / "en", tmp_path / "de") == expected
    assert read_pairs(tmp_path / "both") == expected


def test_files_that_do_not_fit_are_refused(tmp_path):
    write(tmp_path, en=["a", "b", "c"], de=["x", "y"], both=["a\tb", "c d"], half=["\tx"])
    (tmp_path / "empty").write_text("\n")
    for given, message in (
        (("en", "de"), "has 3 lines and .*de has 2"),
        (("en", "empty"), "is empty"),
        (("en", "absent"), "is not there"),
        (("both",), "line 2: there is no tab"),
        (("half",), "no sentence with a translation"),
    ):
        with pytest.raises(InvalidInput, match=message):
            read_pairs(*(tmp_path / name for name in given))


def test_no_pair_is_in_both_parts_and_the_seed_draws_them(tmp_path):
    write(tmp_path, en=[f"w{i % 40}" for i in range(80)], de=[f"x{i % 40}" for i in range(80)])
    one = load_pairs("en", "de", folder=tmp_path, pairs=30)
    assert (len(one.train), len(one.validation)) == (30, 3)
    assert len({*one.train, *one.validation}) == 33
    assert one == load_pairs("en", "de", folder=tmp_path, pairs=30)
    other = load_pairs("en", "de", folder=tmp_path, pairs=30, seed=1)
    assert other.train != one.train
    assert other.fingerprint != one.fingerprint
    every = load_pairs("en", "de", folder=tmp_path)
    assert (len(every.train), len(every.validation)) == (36, 3)


def test_long_pairs_are_left_out_and_too_few_refused(tmp_path):
    write(tmp_path, en=["w " * (i % 4 + 1) + str(i) for i in range(40)], de=["x"] * 40)
    found = load_pairs("en", "de", folder=tmp_path, longest=3)
    assert max(len(source.split()) for source, _ in found.train) == 3
    with pytest.raises(InvalidInput, match=r"20 different pairs .* too few for 30"):
        load_pairs("en", "de", folder=tmp_path, longest=3, pairs=30)
    with pytest.raises(PlanError, match="read from a file"):
        load_pairs("en", "de", folder=None)
