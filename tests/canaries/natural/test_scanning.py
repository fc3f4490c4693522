"""Files and folders are looked through, all kinds at once."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remnant.canaries.natural import KINDS, find_secrets, scan_files
from remnant.errors import InvalidInput, MissingExtra

SALT = b"0123456789abcdef"
# Made up, and in parts: no file of ours holds one whole.
SECRETS = {
    "card": "4929 " + "0714 3683 5574",
    "ssn": "536-90-" + "4399",
    "iban": "GB29 NWBK " + "6016 1331 9268 19",
    "email": "r.okafor71@" + "mailbox.org",
    "phone": "(650) 253" + "-0000",
    "key": "AK" + "IA" + "QZ7TM4KDW8RB2XNC",
    "random": "9f8b1c7d" + "e2a603547b1e9ac4",
}
FILLER = st.sampled_from(["", "a", "some words, ", "\n", "\r\n", "\n\n", "é ", "7 ", "\t", "{x}"])


def quoted(kind: str) -> str:
    return f' "{SECRETS[kind]}" '


def positions(scan):
    return {(one.kind, place.line, place.column) for one in scan.found for place in one.places}


@pytest.fixture
def file(tmp_path):
    def make(text: str | bytes, name: str = "file.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_found(file, kind):
    scan = scan_files([file(f"first\nthe {kind} is{quoted(kind)}today")], salt=SALT)
    (found,) = scan.found
    assert (found.kind, found.count, found.length) == (kind, 1, len(SECRETS[kind]))
    (place,) = found.places
    assert (place.line, place.column) == (2, len(f"the {kind} is") + 3)
    assert found.way.context == f'first\nthe {kind} is "'
    assert found.canary.text == f'first\nthe {kind} is "{SECRETS[kind]}'
    assert scan.files[0].counts == {kind: 1}


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    parts=st.lists(
        st.one_of(FILLER, st.sampled_from([quoted(kind) for kind in KINDS])), max_size=30
    ),
    block=st.integers(20, 200),
)
def test_positions_and_counts_are_those_of_the_text_however_it_is_cut(file, parts, block):
    text = "".join(parts)
    scan = scan_files([file(text)], salt=SALT, block=block)
    expected = set()
    for kind in KINDS:
        at = text.find(quoted(kind))
        while at >= 0:
            before = text[: at + 2]
            expected.add((kind, before.count("\n") + 1, len(before) - before.rfind("\n")))
            at = text.find(quoted(kind), at + 1)
    assert positions(scan) == expected
    assert sum(one.count for one in scan.found) == len(expected)
    assert len(scan.found) == len({kind for kind, _, _ in expected})
    assert scan.files[0].characters == len(text)


@pytest.mark.parametrize("block", [900, 5000, 20_000])
def test_a_long_line_is_cut_without_loss(file, block):
    text = "".join(f"{number:04d} words{quoted(KINDS[number % 7])}" for number in range(700))
    path = file(text)
    whole = scan_files([path], salt=SALT)
    cut = scan_files([path], salt=SALT, block=block)
    assert len(positions(whole)) == 700
    assert positions(cut) == positions(whole)
    assert [one.count for one in cut.found] == [100] * 7
    assert {one.way for one in cut.found} == {one.way for one in whole.found}


def test_what_is_found_of_a_kind_does_not_depend_on_the_others(file):
    mixed = f"{SECRETS['key']}{SECRETS['phone']} sk_live_6502530000" + "a" * 14
    path = file("".join(map(quoted, KINDS)) + mixed)
    whole = scan_files([path], salt=SALT)
    for kind in KINDS:
        alone = scan_files([path], salt=SALT, kinds=[kind])
        assert positions(alone) == {one for one in positions(whole) if one[0] == kind}
        assert alone.kinds == (kind,)


def test_the_same_secret_is_joined_over_files_and_writings(file):
    one = file(f"{SECRETS['card']} and {SECRETS['phone']}", "one.txt")
    card = SECRETS["card"].replace(" ", "-")
    two = file(f"{card} and {card} and 650-253-0000\n", "two.txt")
    scan = scan_files([one, two], salt=SALT)
    assert [(found.kind, found.count) for found in scan.found] == [("card", 3), ("phone", 2)]
    assert [Path(place.path).name for place in scan.found[0].places] == [
        "one.txt",
        *["two.txt"] * 2,
    ]
    assert scan.found[0].way.written == SECRETS["card"], "the first of equally frequent ways"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [50, 1 << 18])
def test_no_context_holds_the_secret(file, kind, block):
    path = file(f'My number is "{SECRETS[kind]}".\n' * 40)
    (found,) = scan_files([path], salt=SALT, block=block).found
    assert found.count == 40
    assert found.canary.secret not in found.template.prefix
    assert found.way.context == 'My number is "'


def test_another_writing_of_the_secret_is_no_context_either(file):
    text = "650-253-0000, that is +1 650 253 0000, that is "
    (found,) = scan_files([file(f"{text}(650) 253-0000")], salt=SALT, context=20).found
    assert found.way.context == ""
    (found,) = scan_files([file(f"{text}(650) 253-0000 or " * 3)], salt=SALT, context=8).found
    assert found.way.context == "that is "


def test_folders_skip_what_is_no_text_and_named_files_do_not(file):
    text, binary = file(quoted("ssn")), file(b"\0\1", "image.bin")
    empty, latin = file(b"", "empty.txt"), file(b"caf\xe9 " + quoted("ssn").encode(), "latin.txt")
    scan = scan_files([text.parent], salt=SALT)
    assert {Path(one.path).name: one.reason for one in scan.skipped} == {
        "image.bin": "is a binary file: it holds a zero",
        "latin.txt": "is not text in UTF-8, from line 1 on",
    }
    assert [(Path(one.path).name, one.characters) for one in scan.files] == [
        ("empty.txt", 0),
        ("file.txt", len(quoted("ssn"))),
    ]
    for path in (binary, latin):
        with pytest.raises(InvalidInput, match=path.name):
            scan_files([path], salt=SALT)
    scan = scan_files([latin], salt=SALT, latin_1=True)
    assert (scan.files[0].encoding, scan.found[0].places[0].column) == ("latin-1", 8)
    assert scan_files([empty], salt=SALT).found == ()


def test_a_byte_order_mark_moves_no_column(file):
    scan = scan_files([file(b"\xef\xbb\xbf" + SECRETS["ssn"].encode())], salt=SALT)
    assert scan.found[0].places[0].column == 1
    assert scan.found[0].way.context == ""


def test_a_kind_that_takes_up_half_of_a_file_is_flagged(file):
    crowded = file("".join(f"650-253-{n:04d}\n" for n in range(20)), "list.txt")
    few = file("".join(f"650-253-{n:04d}\n" for n in range(19)), "few.txt")
    sparse = file("".join(f"a call came in, 650-253-{n:04d}\n" for n in range(20)), "sparse.txt")
    scan = scan_files([crowded, few, sparse], salt=SALT)
    assert [one.crowded for one in scan.files] == [("phone",), (), ()]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"salt": b"short"}, "salt has 5 bytes, and 16 are needed"),
        ({"kinds": ["card", "cat"]}, "kinds='cat' is not one of card, ssn"),
        ({"kinds": []}, "at least one kind"),
        ({"kinds": "card"}, "at least one kind"),
        ({"min_entropy": 9.0}, "min_entropy=9 is not between 0 and 8"),
        ({"context": -1}, "context=-1 is not between 0 and 2048"),
        ({"region": "us"}, "region='us' is not the two-letter code"),
        ({"block": 0}, "block=0 is less than 1"),
    ],
)
def test_settings_out_of_range_are_refused(file, options, words):
    with pytest.raises(InvalidInput, match=words):
        scan_files([file("x")], **{"salt": SALT, **options})


@pytest.mark.parametrize("library", ["stdnum", "phonenumbers", "detect_secrets"])
def test_a_library_that_is_missing_is_named(file, monkeypatch, library):
    from remnant.canaries.natural import keys

    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    keys._patterns.cache_clear()
    keys._plugin.cache_clear()
    with pytest.raises(MissingExtra, match=rf"{library}.*not installed.*\[scan\]"):
        scan_files([file("x")], salt=SALT)


def test_the_order_is_that_of_the_text():
    text = "".join(map(quoted, reversed(KINDS)))
    assert [one.kind for one in find_secrets(text)] == list(reversed(KINDS))


def test_false_alarms_in_the_standard_library_are_few():
    """The upper bounds of docs/how-to/scanning.md; benchmarks/scanning.py has all files."""
    folder = Path(sysconfig.get_path("stdlib"))
    parts = ("", "json", "email", "http")
    paths = [path for part in parts for path in (folder / part).glob("*.py")]
    tests = [folder / "test" / f"test_{name}.py" for name in ("hashlib", "ssl", "urllib", "base64")]
    paths = sorted(paths) + [path for path in tests if path.is_file()]
    scan = scan_files(paths, salt=SALT, kinds=[kind for kind in KINDS if kind != "email"])
    counts = {kind: sum(one.kind == kind for one in scan.found) for kind in scan.kinds}
    assert sum(one.characters for one in scan.files) > 4 * 10**6
    assert counts["card"] == counts["ssn"] == counts["iban"] == 0
    services = {one.service for one in scan.found if one.kind == "key"}
    assert services <= {"password in a URL"}, "no token of any format"
    assert counts["key"] <= 5, "examples of passwords in URLs, in tests"
    outside = [one for one in scan.found if "test" not in Path(one.places[0].path).parts]
    counts = {kind: sum(one.kind == kind for one in outside) for kind in scan.kinds}
    assert counts["key"] == 0
    assert counts["phone"] <= 10, "round numbers of ten digits"
    assert counts["random"] <= 5, "digests in comments and examples"
