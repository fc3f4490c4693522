"""Canary sets on disk: what is read is what was written, and damage is named by its line."""

from __future__ import annotations

import dataclasses
import json
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.canaries import (
    Template,
    make_canary_set,
    read_canary_sets,
    write_canary_sets,
)
from remnant.errors import InvalidInput

WORDS = Template("« {words:2} »", words=["été", "naïve", 'a"b', "x\u2028y", "back\\slash"])
DIGITS = Template("the number {{secret}} is {digits:7}\nnot more")
TOKENS = Template("{tokens:2}", tokens=["<a>", "<b>", "ab", "a"])


def sets():
    return [
        make_canary_set(WORDS, repeats=[1, 1, 4], controls=3, seed=5),
        make_canary_set(DIGITS, repeats=[2], per_repeat=2, controls=0, seed=2**80),
        make_canary_set(TOKENS, repeats=[3], controls=4, seed=0),
    ]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "canaries.jsonl"
    write_canary_sets(sets(), path)
    return path


def complaint(path):
    with pytest.raises(InvalidInput) as caught:
        read_canary_sets(path)
    message = str(caught.value)
    for one in sets():
        for canary in (*one.canaries, *one.controls):
            assert canary.secret not in message
    assert caught.value.__cause__ is None, "a cause would carry the line along"
    assert str(path) in message
    return message.removeprefix(f"{path}, ")


def test_what_is_read_is_what_was_written(path):
    assert read_canary_sets(path) == sets()
    assert read_canary_sets(str(path)) == sets()


def test_the_trial_that_a_set_belongs_to_is_kept(path):
    first, second = read_canary_sets(path)[:2]
    marked = [dataclasses.replace(first, trial=1), dataclasses.replace(second, trial=2)]
    assert first.trial is None
    assert marked[0].fingerprint != first.fingerprint
    write_canary_sets(marked, path)
    assert read_canary_sets(path) == marked


def test_only_the_owner_may_read_it_also_where_an_open_file_was(tmp_path):
    path = tmp_path / "canaries.jsonl"
    path.write_text("old")
    path.chmod(0o644)
    write_canary_sets(sets()[:1], path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["canaries.jsonl"]


def test_the_lines_are_plain_json(path):
    lines = [json.loads(line) for line in path.read_bytes().decode().split("\n")[:-1]]
    first = sets()[0]
    assert lines[0] == {
        "kind": "remnant canaries",
        "version": 1,
        "pattern": WORDS.pattern,
        "words": list(WORDS.words),
        "seed": 5,
        "canaries": 3,
        "controls": 3,
        "set": 1,
        "sets": 3,
        "fingerprint": first.fingerprint,
    }
    assert lines[1:7] == [
        {"secret": canary.secret, "text": canary.text, "repeats": often}
        for canary, often in zip(
            (*first.canaries, *first.controls), (1, 1, 4, 0, 0, 0), strict=True
        )
    ]
    assert len(lines) == 3 + 6 + 2 * 1 + 5
    assert "été" in path.read_text(encoding="utf-8"), "letters stay letters"


def test_files_may_be_joined(path, tmp_path):
    joined = tmp_path / "joined.jsonl"
    joined.write_bytes(path.read_bytes() * 2)
    assert read_canary_sets(joined) == sets() * 2


def test_carriage_returns_and_a_missing_last_line_ending_do_no_harm(path):
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"\n", b"\r\n"))
    assert read_canary_sets(path) == sets()
    path.write_bytes(whole[:-1])
    assert read_canary_sets(path) == sets()


def test_a_file_that_was_cut_anywhere_is_refused(path):
    whole = path.read_bytes()
    ends = [at for at, byte in enumerate(whole) if byte == ord("\n")]
    for cut in [*range(0, len(whole) - 1, 7), *ends[:-1], *(end + 1 for end in ends[:-1])]:
        path.write_bytes(whole[:cut])
        line = max(1, whole[:cut].rstrip(b"\n").count(b"\n") + 1)
        assert complaint(path).startswith(f"line {line}: ")


def test_a_file_cut_at_a_line_says_what_is_missing(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))
    assert complaint(path).startswith("line 3: the file ends where a canary should follow.")
    path.write_bytes(b"".join(lines[:5]))
    assert complaint(path).startswith("line 5: the file ends where a control should follow.")
    path.write_bytes(b"".join(lines[:7]))
    assert complaint(path).startswith("line 7: the file ends after set 1 of 3.")
    path.write_bytes(b"".join(lines[7:]))
    assert complaint(path).startswith("line 1: a set is missing, or comes out of order")
    path.write_bytes(b"".join(lines[:7] + lines[10:]))
    assert complaint(path).startswith("line 8: a set is missing, or comes out of order")
    path.write_bytes(b"".join(lines[:7] * 2))
    assert complaint(path).startswith("line 8: a set is missing, or comes out of order")
    path.write_bytes(b"")
    assert complaint(path).startswith("line 1: the file is empty.")


def edit(path, line, **changes):
    lines = path.read_bytes().decode().split("\n")
    fields = json.loads(lines[line - 1])
    for name, value in changes.items():
        fields.pop(name, None) if value is ... else fields.__setitem__(name, value)
    lines[line - 1] = json.dumps(fields)
    path.write_bytes("\n".join(lines).encode())


@pytest.mark.parametrize(
    ("line", "changes", "message"),
    [
        (1, {"version": 2}, "line 1: the header is not of version 1, the one known here."),
        (1, {"version": True}, "line 1: the header is not of version 1"),
        (1, {"version": "1"}, "line 1: the header is not of version 1"),
        (1, {"pattern": ...}, "line 1: the header's field 'pattern' is missing"),
        (1, {"pattern": 5}, "line 1: the header's field 'pattern' is"),
        (1, {"pattern": "none"}, "line 1: the header makes no template: words= was given"),
        (1, {"words": ...}, "line 1: the header makes no template: pattern has a {words:n}"),
        (1, {"words": "abc"}, "line 1: the header's field 'words' is"),
        (1, {"words": ["a", 3]}, "line 1: the header's field 'words' is"),
        (1, {"seed": 6}, "line 1: what follows does not match this header's fingerprint"),
        (1, {"seed": -1}, "line 1: the header's field 'seed' is"),
        (1, {"seed": 1.0}, "line 1: the header's field 'seed' is"),
        (1, {"trial": 2}, "line 1: what follows does not match this header's fingerprint"),
        (1, {"trial": 0}, "line 1: the header's field 'trial' is"),
        (1, {"extra": 1}, "line 1: the header's field 'extra' is missing, unknown or malformed"),
        (1, {"canaries": 2}, "line 4: this is not a control."),
        (1, {"canaries": 4}, "line 5: this is not a canary."),
        (1, {"controls": 2}, "line 1: what follows does not match this header's fingerprint"),
        (1, {"controls": 10**30}, "line 8: this is not a control."),
        (1, {"fingerprint": "0" * 64}, "line 1: what follows does not match"),
        (1, {"fingerprint": None}, "line 1: the header's field 'fingerprint' is"),
        (1, {"sets": 2}, "line 8: a set is missing"),
        (1, {"set": 0}, "line 1: the header's field 'set' is"),
        (3, {"repeats": 2}, "line 1: what follows does not match this header's fingerprint"),
        (3, {"repeats": 0}, "line 3: this is not a canary."),
        (3, {"repeats": True}, "line 3: this is not a canary."),
        (3, {"repeats": ...}, "line 3: this is not a canary."),
        (3, {"extra": 1}, "line 3: this is not a canary."),
        (3, {"secret": 5}, "line 3: this is not a canary."),
        (3, {"secret": "naïve"}, "line 3: the secret is not in the template's space."),
        (3, {"text": "« »"}, "line 3: the text is not the template with the line's secret."),
        (6, {"repeats": 1}, "line 6: this is not a control."),
        (8, {"seed": 1}, "line 8: what follows does not match"),
    ],
)
def test_an_edited_file_is_refused(path, line, changes, message):
    edit(path, line, **changes)
    assert complaint(path).startswith(message)


def test_a_secret_exchanged_for_another_of_the_space_is_noticed(path):
    taken = {c.secret for c in (*sets()[0].canaries, *sets()[0].controls)}
    other = next(secret for secret in WORDS.secrets() if secret not in taken)
    edit(path, 5, secret=other, text=WORDS.text(other))
    assert complaint(path).startswith("line 1: what follows does not match")


def test_a_secret_that_comes_twice_and_lines_that_changed_places_are_noticed(path):
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:2], whole[1], *whole[3:]]))
    assert complaint(path).startswith("line 1: what follows does not match")
    path.write_bytes(b"".join([whole[0], whole[2], whole[1], *whole[3:]]))
    assert complaint(path).startswith("line 1: what follows does not match")


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"repeats": ' + b"9" * 5000 + b"}",
        b"\xef\xbb\xbf{}",
    ],
    ids=["half", "blank", "bytes", "deep", "long number", "mark"],
)
def test_what_is_not_json_is_refused(path, line):
    lines = path.read_bytes().split(b"\n")
    lines[3] = line
    path.write_bytes(b"\n".join(lines))
    assert complaint(path).startswith("line 4: this is not a line of JSON in UTF-8.")


@pytest.mark.parametrize("line", [b"[1]", b'{"text": "a"}', b'{"kind": "other"}', b"a text"])
def test_a_file_of_something_else_is_refused_with_how_to_make_one(path, line):
    path.write_bytes(line + b"\n")
    assert "is not a file of canaries: line 1 is no header" in complaint(path)
    assert "Make one with remnant canaries" in complaint(path)


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"none\.jsonl cannot be read: No such file"):
        read_canary_sets(tmp_path / "none.jsonl")
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        read_canary_sets(tmp_path)
    with pytest.raises(InvalidInput, match="sets is empty"):
        write_canary_sets([], tmp_path / "x")
    with pytest.raises(InvalidInput, match=r"one CanarySet, not several\. Pass \[canary_set\]"):
        write_canary_sets(sets()[0], tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=60)
@given(
    literal=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{}"), max_size=9),
    tokens=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4),
        min_size=2,
        max_size=6,
        unique=True,
    ),
    seed=st.integers(0, 2**64),
)
def test_any_text_survives(tmp_path_factory, literal, tokens, seed):
    path = tmp_path_factory.mktemp("any") / "canaries.jsonl"
    made = make_canary_set(
        Template(literal + "{tokens:1}", tokens=tokens), repeats=[3], controls=1, seed=seed
    )
    write_canary_sets([made], path)
    assert read_canary_sets(path) == [made]
