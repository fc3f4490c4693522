"""``benchmarks/same_numbers.py compare`` on folders made by hand: what it lists, what fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
RESULTS = {".": {"results": {"curve": {"value": [0.5, 0.25], "sentence": "AUC is 0.5 at lag 3."}}}}
SAVED = {
    "arrays.json": {".": {"scores": "ab12"}},
    "results.json": RESULTS,
    "codes.json": {"show": 0},
    "show.txt": "AUC 0.50 of 1\u202f000 scores, -3 to 4, 2\u00d710\u207b\u00b3\n",
}


@pytest.fixture(scope="module")
def compare():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import same_numbers_compare
    finally:
        sys.path.remove(str(BENCHMARKS))
    yield same_numbers_compare
    del sys.modules["same_numbers_compare"]


@pytest.fixture
def compared(compare, tmp_path, capsys):
    """Compare ``SAVED`` with itself but for some files; return whether they are the same."""

    def write(root, parts):
        folder = root / "saved" / "curve"
        folder.mkdir(parents=True)
        for name, part in parts.items():
            (folder / name).write_text(part if isinstance(part, str) else json.dumps(part))

    def run(changes, *, allow_rewording=False):
        write(tmp_path / "before", SAVED)
        write(tmp_path / "after", SAVED | changes)
        same = compare.compare(
            tmp_path / "before", tmp_path / "after", allow_rewording=allow_rewording, only=[]
        )
        return same, capsys.readouterr().out

    return run


def changed(**fields):
    curve = {key: v for key, v in (RESULTS["."]["results"]["curve"] | fields).items() if v}
    return {".": {"results": {"curve": curve}}}


def test_what_is_the_same_is_said_to_be(compared):
    same, out = compared({})
    assert same
    assert (
        out == "curve: arrays equal; exit codes equal; result rows equal; text equal\nThe same.\n"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"arrays.json": {".": {"scores": "ab13"}}},
            'arrays.json differs: $...scores: "ab12" → "ab13"',
        ),
        ({"arrays.json": {".": {}}}, 'missing: $...scores = "ab12"'),
        (
            {"results.json": changed(value=[0.5, 0.26])},
            "differs: $...results.curve.value[1]: 0.25 → 0.26",
        ),
        (
            {"results.json": changed(value=[0.5])},
            "missing: $...results.curve.value[1] = 0.25",
        ),
        ({"results.json": changed(value=None)}, "missing: $...results.curve.value = [0.5, 0.25]"),
        ({"codes.json": {"show": 3}}, "codes.json differs: $.show: 0 → 3"),
        (
            {"show.txt": "AUC 0.50 of 1\u202f000 scores, 3 to 4, 2\u00d710\u207b\u00b3\n"},
            'show.txt gone: -3 (1 → 0 times): "AUC 0.50 of 1000 scores, -3 to 4',
        ),
    ],
)
def test_what_differs_or_is_missing_fails(compared, changes, words):
    same, out = compared(changes)
    assert not same
    assert words in out
    assert out.endswith("NOT the same.\n")


def test_a_missing_file_or_run_fails(compare, compared, tmp_path, capsys):
    assert compared({})[0]
    (tmp_path / "after" / "saved" / "curve" / "codes.json").unlink()
    roots = tmp_path / "before", tmp_path / "after"
    assert not compare.compare(*roots, allow_rewording=False, only=[])
    assert "codes.json missing: the file is only in BEFORE" in capsys.readouterr().out
    (tmp_path / "before" / "saved" / "other").mkdir()
    assert not compare.compare(*roots, allow_rewording=False, only=[])
    assert "other: MISSING, only in BEFORE" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="BEFORE has no run curves"):
        compare.compare(*roots, allow_rewording=False, only=["curves"])


def test_what_is_new_is_only_listed(compared):
    same, out = compared(
        {
            "results.json": changed(high=[0.75]),
            "show.txt": SAVED["show.txt"] + "and 77 more\n",
        }
    )
    assert same
    assert "new: $...results.curve.high = [0.75]" in out
    assert 'new: 77 (0 → 1 times): "' in out


@pytest.mark.parametrize(
    ("sentence", "accepted"), [("At lag 3 the AUC is 0.5.", True), ("AUC is 0.6 at lag 3.", False)]
)
def test_sentences_may_be_reworded_if_asked_for_but_not_their_numbers(compared, sentence, accepted):
    same, _ = compared({"results.json": changed(sentence=sentence)}, allow_rewording=True)
    assert same is accepted


def test_a_reworded_sentence_differs_unless_asked_for(compared):
    assert not compared({"results.json": changed(sentence="At lag 3 the AUC is 0.5.")})[0]


def test_an_outcome_is_no_sentence(compare):
    assert not compare.is_reworded("PASS", "FAIL")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1\u202f000\u202f000 of 2 000 secrets", ["1000000", "2000"]),
        ("\u22120.5 to 6.2\u20139.5, top-3", ["-0.5", "6.2", "9.5", "3"]),
        ("p = 2.8e-05, 10\u207b\u00b3, .909", ["2.8e-05", "10^-3", ".909"]),
        ("2026-11-16T19:56:10Z\n1 min 2 s\ntorch 2.11.0+cpu, 9fcb4e1a", []),
    ],
)
def test_numbers_are_read_as_they_are_printed(compare, text, numbers):
    assert list(compare.numbers_in(text).elements()) == numbers
