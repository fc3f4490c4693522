from __future__ import annotations

import pytest

from remnant.data import corpus_fingerprint, load_corpus
from remnant.data.corpus import deduplicated, without_duplicates
from remnant.errors import InvalidInput, PlanError


def test_a_file_is_cut_into_two_parts(tmp_path):
    (tmp_path / "a.txt").write_text("abcdefghijk" * 10)
    whole = load_corpus("a.txt", folder=tmp_path)
    assert (len(whole.train), len(whole.validation)) == (100, 10)
    assert whole.train + whole.validation == "abcdefghijk" * 10
    part = load_corpus("a.txt", folder=tmp_path, characters=40)
    assert part.train == ("abcdefghijk" * 10)[:40]
    assert part.validation == ("abcdefghijk" * 10)[40:44]


def test_the_standard_library_is_there():
    corpus = load_corpus("standard-library", characters=2000)
    assert (len(corpus.train), len(corpus.validation)) == (2000, 200)
    assert corpus != load_corpus("standard-library", characters=2000, seed=1)


def test_the_fingerprint_moves_with_either_part(tmp_path):
    (tmp_path / "a.txt").write_text("abcdefghijk" * 10)
    prints = {
        corpus_fingerprint(load_corpus("a.txt", folder=tmp_path, characters=n))
        for n in (40, 50, 60)
    }
    assert len(prints) == 3


def test_faults(tmp_path):
    (tmp_path / "a.txt").write_text("abcdefghijk")
    with pytest.raises(PlanError, match="characters is needed"):
        load_corpus("standard-library")
    with pytest.raises(PlanError, match="--data FOLDER"):
        load_corpus("a.txt")
    with pytest.raises(InvalidInput, match="has 11 characters, too few for 11"):
        load_corpus("a.txt", folder=tmp_path, characters=11)
    with pytest.raises(InvalidInput, match="is not there"):
        load_corpus("b.txt", folder=tmp_path)


LONG = "the quick brown fox jumps over the lazy dog and then runs away from it"


@pytest.mark.parametrize("between", ["\n", "\n\n"])
def test_passages_that_are_there_twice_are_dropped_but_short_ones_are_not(between):
    other = LONG.replace("fox", "hen").replace("dog", "cow").replace("away", "home to rest")
    text = between.join([LONG, "else:", other, LONG.upper(), "else:"])
    assert without_duplicates(text) == between.join([LONG, "else:", other, "else:"])
    assert without_duplicates("a" + between + "a") == "a" + between + "a"


def test_a_corpus_without_duplicates_is_judged_by_the_same_text(tmp_path):
    (tmp_path / "a.txt").write_text(f"{LONG}\n" * 22)
    plain = load_corpus("a.txt", folder=tmp_path)
    found = load_corpus("a.txt", folder=tmp_path, deduplicate=True)
    assert found.validation == plain.validation
    assert len(found.train) < len(plain.train) / 4


def test_near_duplicates_and_repeated_lines_are_counted():
    said = "one two three four five six seven eight nine ten eleven twelve"
    text = f"{said}\nmy pin is 1234\n{said} 13\nhi\n  my pin is 1234\nhi\nmy pin is 1235"
    plain = deduplicated(text)
    assert plain.text == f"{said}\nmy pin is 1234\nhi\n  my pin is 1234\nhi\nmy pin is 1235"
    assert (plain.passages, plain.near_duplicates, plain.repeated_lines) == (7, 1, 0)
    lines = deduplicated(text, line_characters=14)
    assert lines.text == f"{said}\nmy pin is 1234\nhi\nhi\nmy pin is 1235"
    assert (lines.near_duplicates, lines.repeated_lines) == (1, 1)
    assert deduplicated(text, line_characters=15) == plain
    assert deduplicated("a\nb\n", line_characters=1).text == "a\nb\n"
    with pytest.raises(InvalidInput, match="line_characters=0 is not at least 1"):
        deduplicated(text, line_characters=0)
