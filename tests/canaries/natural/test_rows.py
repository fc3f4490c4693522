"""Files of rows are read by field: what each field gives by itself, and faults with their line."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remnant.canaries.natural import KINDS, find_secrets, rows, scan_files
from remnant.canaries.natural.reading import batches_of
from remnant.canaries.natural.rows import (
    FieldText,
    RowCount,
    check_rows,
    fields_of,
    layout_of,
)
from remnant.errors import InvalidInput

SALT = b"0123456789abcdef"
# Made up, and in parts: no file of ours holds one whole.
SECRETS = {
    "card": "4929 " + "0714 3683 5574",
    "ssn": "536-90-" + "4399",
    "iban": "GB29 NWBK " + "6016 1331 9268 19",
    "email": "r.okafor71@" + "mailbox.org",
    "phone": "(650) 253" + "-0000",
    "key": "AK" + "IA" + "QZ7TM4KDW8RB2XNC",
    "random": '"9f8b1c7d' + 'e2a603547b1e9ac4"',
}
PARTS = st.one_of(
    st.sampled_from(
        ["", "a", "some words, ", "\n", "\r\n", "é ", "7 ", "\t", '"', "\\", "/", "\u2028", "0,"]
    ),
    st.sampled_from([f" {secret} " for secret in SECRETS.values()]),
    st.sampled_from(list(SECRETS.values())),
    st.sampled_from(["650", "253", "0000", "-", "@", "4929071436835574", "9f8b1c7de2a60354"]),
)
TEXTS = st.lists(PARTS, max_size=6).map("".join)


@pytest.fixture
def file(tmp_path):
    def make(content: str | bytes, name: str = "rows.jsonl"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def texts_of(path, *fields):
    found = fields_of(path, "utf-8-sig", layout_of(path), fields=fields)
    return [(field.row, field.line, field.field, field.text) for field in found]


def counted_rows(path, *fields):
    count = RowCount(path, fields)
    for _ in fields_of(path, "utf-8", layout_of(path), fields=fields, count=count):
        pass
    return count


def expected_of(name: str, text: str) -> set[tuple[str, int, str, str]]:
    """What one field gives by itself: the slow definition."""
    matches = [(match, text, 0) for match in find_secrets(text)]
    if len(text) >= 8 and not set(text) & set(" \t\r\n\"'`\\\u2028\x85\xa0"):
        before = f'{name} = "'
        wrapped = f'{before}{text}"'
        matches = [
            (match, wrapped, len(before))
            for match in find_secrets(wrapped)
            if match.start >= len(before)
        ]
    return {
        (
            match.kind,
            match.start - offset + 1,
            whole[match.start : match.end],
            whole[max(offset, match.start - 64) : match.start],
        )
        for match, whole, offset in matches
    }


def scanned(path, **options):
    scan = scan_files([path], salt=SALT, **options)
    places = {
        (place.row, place.field, secret.kind, place.column)
        for secret in scan.found
        for place in secret.places
    }
    return scan, places


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    table=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8),
    block=st.integers(20, 400),
    ascii_only=st.booleans(),
    layout=st.sampled_from(["jsonl", "json", "csv"]),
)
def test_a_file_of_rows_gives_what_each_field_gives_by_itself(
    file, table, block, ascii_only, layout
):
    if layout == "csv":
        written = io.StringIO(newline="")
        csv.writer(written).writerows([["first", "second"], *table])
        content = written.getvalue()
    else:
        values = [{"first": one, "second": two} for one, two in table]
        if layout == "jsonl":
            lines = [json.dumps(value, ensure_ascii=ascii_only) for value in values]
            content = "\n".join(lines)
        else:
            content = json.dumps(values, ensure_ascii=ascii_only, indent=1)
    expected = {
        (row, name, kind, column)
        for row, pair in enumerate(table, start=1)
        for name, text in zip(("first", "second"), pair, strict=True)
        for kind, column, _, _ in expected_of(name, text)
    }
    if not any(one or two for one, two in table):
        return
    path = file(content, f"rows.{layout}")
    scan, places = scanned(path, block=block)
    assert places == expected
    assert sum(secret.count for secret in scan.found) == len(expected)
    header = len("firstsecond") * (layout == "csv")
    assert scan.files[0].characters == header + sum(len(one) + len(two) for one, two in table)
    assert scan.files[0].rows == len(table)


def test_json_is_unescaped_and_the_context_is_what_the_model_saw(file):
    mail, key, card = SECRETS["email"], SECRETS["key"], "4929071436835574"
    lines = [
        json.dumps({"text": f"Dear all,\n{key} is the key"}),
        '{"text": "write to ' + mail.replace("@", "\\u0040") + '"}',
        '{"text": "pay with\\t' + card + '\\nor \\"cash\\""}',
        '{"text": "see https:\\/\\/ann:' + "tulip9" + '@host.org"}',
    ]
    scan, places = scanned(file("\n".join(lines)))
    assert places == {
        (1, "text", "key", 11),
        (2, "text", "email", 10),
        (3, "text", "card", 10),
        (4, "text", "key", 17),
    }
    contexts = {secret.kind: secret.way.context for secret in scan.found if secret.count == 1}
    assert contexts["email"] == "write to "
    assert contexts["card"] == "pay with\t"
    assert {secret.way.context for secret in scan.found if secret.kind == "key"} == {
        "Dear all,\n",
        "see https://ann:",
    }


def test_no_secret_and_no_context_crosses_from_one_field_into_the_next(file):
    half = SECRETS["phone"].partition(" ")
    path = file(json.dumps({"a": half[0], "b": half[2], "c": "at last", "d": SECRETS["ssn"]}))
    scan, places = scanned(path)
    assert places == {(1, "d", "ssn", 1)}
    assert scan.found[0].way.context == ""


def test_nested_objects_and_lists_are_read_and_named(file):
    chat = [
        {"role": "user", "content": "who?"},
        {"role": "assistant", "content": f"ask {SECRETS['email']}"},
    ]
    row = {"messages": chat, "meta": {"tags": [["x", SECRETS["ssn"]]], "score": 1.5, "ok": True}}
    _, places = scanned(file(json.dumps(row) + "\n\n" + json.dumps({"text": SECRETS["iban"]})))
    assert places == {
        (1, "messages[1].content", "email", 5),
        (1, "meta.tags[0][1]", "ssn", 1),
        (2, "text", "iban", 1),
    }
    scan = scan_files([file(json.dumps(row) + "\n\n" + json.dumps({"text": "a"}))], salt=SALT)
    assert {place.line for secret in scan.found for place in secret.places} == {1}
    assert scan.files[0].rows == 2


def test_what_needs_a_name_or_quotes_is_found_in_fields_too(file):
    secret = "qU3kPz9XvTn2" + "LwRb7YcEa1Hs" + "Jd5Gf8MoIt4KxVpN"
    digest = SECRETS["random"].strip('"')
    row = {"aws_secret_access_key": secret, "token": digest, "other": f"x {digest}"}
    _, places = scanned(file(json.dumps(row)))
    assert places == {(1, "aws_secret_access_key", "key", 1), (1, "token", "random", 1)}
    table = file(f"user,aws_secret_access_key\nann,{secret}\n", "keys.csv")
    assert scanned(table)[1] == {(1, "aws_secret_access_key", "key", 1)}


def test_long_numbers_names_of_fields_and_headers_are_text(file):
    card = "4929071436835574"
    row = {"card": int(card), "time": 1700000000, SECRETS["email"]: {"n": 1}}
    _, places = scanned(file(json.dumps(row)))
    assert places == {(1, "card", "card", 1), (1, "(name of a field)", "email", 1)}
    token = "h" + "f_" + "aQbWcEdRfTgYhUjIkOlPzXcVbNmAsDfGhJ"
    _, places = scanned(file(f"name,{token}\nann,1\n", "rows.csv"))
    assert places == {(0, token, "key", 1)}


def test_tables_with_and_without_a_header_and_other_separators(file):
    semicolons = file('name;note\r\nann;"a; ""b""\nc"\r\n\r\nbob;d\r\n', "rows.csv")
    assert texts_of(semicolons) == [
        *((0, 1, "name", "name"), (0, 1, "note", "note")),
        *((1, 2, "name", "ann"), (1, 2, "note", 'a; "b"\nc')),
        *((2, 5, "name", "bob"), (2, 5, "note", "d")),
    ]
    bare = file("1\tgood film\n0\tbad film\textra\n", "rows.tsv")
    assert texts_of(bare) == [
        *((1, 1, "column 1", "1"), (1, 1, "column 2", "good film")),
        *((2, 2, "column 1", "0"), (2, 2, "column 2", "bad film"), (2, 2, "column 3", "extra")),
    ]


def test_documents_of_json_are_read_element_by_element(file, monkeypatch):
    monkeypatch.setattr(rows, "_READ", 7)
    listed = file('[\n {"a": "x"},\n "y",\n 12345678901234,\n ["z"]\n]\n', "rows.json")
    assert texts_of(listed) == [
        *((1, 2, "a", "x"), (2, 3, "", "y"), (3, 4, "", "12345678901234"), (4, 5, "[0]", "z")),
    ]
    lines = file('{"a": "x"}\n\n{"a":\n "y"}', "lines.json")
    assert texts_of(lines) == [(1, 1, "a", "x"), (2, 3, "a", "y")]
    assert texts_of(file("[]", "none.json")) == texts_of(file(" \n", "blank.json")) == []


def test_fields_are_chosen_by_name_or_by_path(file):
    chat = [{"role": "user", "content": "a"}, {"role": "bot", "content": ["b", {"x": "c"}]}]
    path = file(json.dumps({"chat": chat, "a.b": "d", "a": {"b": "e"}, "id": "f"}))
    assert [text for *_, text in texts_of(path, "chat.content")] == ["a", "b", "c"]
    assert [text for *_, text in texts_of(path, "a.b")] == ["d"]
    assert [text for *_, text in texts_of(path, "id", "chat.role")] == ["f", "user", "bot"]
    _, places = scanned(
        file(json.dumps({"text": SECRETS["ssn"], "id": SECRETS["email"]})), fields=["text"]
    )
    assert places == {(1, "text", "ssn", 1)}


def test_rows_without_text_are_counted_with_the_first_line(file):
    path = file('{"text": "a"}\n{"text": null}\n{"text": []}\n{"text": "", "n": 3}\n')
    counted = counted_rows(path)
    assert (counted.rows, counted.without_text, counted.first_without_text) == (4, 3, 2)
    (scanned_file,) = scan_files([path], salt=SALT, fields=["text"]).files
    assert (scanned_file.rows_without_text, scanned_file.first_without_text) == (3, 2)
    path = file('{"chat": []}\n{"chat": [{"said": "a"}]}\n')
    assert counted_rows(path, "chat.said").without_text == 1


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("name", "content", "fields", "words"),
    [
        ("a.jsonl", '{"a": "x"}\nplain\n', [], "line 2: the row is not JSON (Expecting value, col"),
        ("a.jsonl", '{"a": "x"}\n{"a": "y\n', [], "line 2: the row is not JSON"),
        ("a.jsonl", f'{{"a": "x"}}\n{DEEP}\n', [], "line 2: the row is nested too deeply"),
        ("a.jsonl", '{"a": 1}\n{"b": [2]}\n', [], "line 1: the row has no text, and no other"),
        ("a.jsonl", '{"a": "x"}\n{"b": "y"}', ["a"], "line 2: the row has no field 'a'; it has b."),
        ("a.jsonl", '"x"', ["a", "b"], "line 1: the row has none of the fields 'a', 'b'."),
        ("a.jsonl", '{"a": "x"}\n', ["a", "b"], "a.jsonl: no row has the field 'b'."),
        ("a.json", '[{"a": "x"}, {"a": }]', [], "line 1: the row is not JSON (Expecting value)"),
        ("a.json", '[{"a": "x"}\n{"a": "y"}]', [], "line 2: the row is not JSON (a comma or ]"),
        ("a.json", '["x"]\n["y"]', [], "line 2: the row is not JSON (there is more text after"),
        ("a.json", '{"a": "x"\n', [], "the row is not JSON"),
        ("a.json", '["x"', [], "line 1: the row is not JSON (a comma or ]"),
        ("a.csv", 'a,b\n1,x\n2,"y\n', [], "line 3: the row is not CSV (unexpected end of data)"),
        ("a.csv", "a,b\n1,x\n", ["c"], "line 2: the row has no field 'c'; it has a, b."),
        ("a.csv", "a,b\n1,x\n2\n", ["b"], "line 3: the row has no field 'b'; it has a."),
    ],
)
def test_faults_name_the_file_and_the_line(file, name, content, fields, words):
    path = file(content, name)
    with pytest.raises(InvalidInput) as fault:
        scan_files([path], salt=SALT, fields=fields)
    assert str(path) in fault.value.message
    assert words in fault.value.message
    assert "as_text= to read" in str(fault.value.hint)
    assert scan_files([path], salt=SALT, as_text=True).files[0].rows is None


def test_a_fault_shows_no_name_that_may_be_a_secret(file):
    path = file(json.dumps({SECRETS["email"]: "x", "b": "y"}))
    with pytest.raises(InvalidInput) as fault:
        scan_files([path], salt=SALT, fields=["text"])
    assert fault.value.message.endswith("it has b.")


def test_a_folder_falls_back_to_plain_text_and_says_so(file):
    path = file(f'{{"a": "x"}}\nsee {SECRETS["ssn"]}\n')
    scan = scan_files([path.parent], salt=SALT)
    assert scan.files[0].rows is None
    assert scan.files[0].read_as_text == "line 2: the row is not JSON (Expecting value, column 1)"
    assert [(secret.kind, secret.places[0].line) for secret in scan.found] == [("ssn", 2)]
    with pytest.raises(InvalidInput, match="line 2"):
        scan_files([path.parent], salt=SALT, fields=["a"])
    path.write_text('{"n": 1}\n{"n": 2}\n')
    (scanned_file,) = scan_files([path.parent], salt=SALT).files
    assert (scanned_file.rows, scanned_file.rows_without_text) == (2, 2)
    assert scanned_file.read_as_text is None, "nothing can be hidden in it"


def test_rows_longer_than_the_limit_are_refused_or_read_as_text(file, monkeypatch):
    monkeypatch.setattr(rows, "LONGEST_ROW", 1000)
    monkeypatch.setattr(rows, "_READ", 100)
    long = "word " * 300 + SECRETS["ssn"]
    for name, content in (
        ("long.jsonl", json.dumps({"text": long})),
        ("long.json", json.dumps([{"text": long}])),
        ("long.csv", f'id,text\n1,"{long}"\n'),
    ):
        path = file(content, name)
        with pytest.raises(InvalidInput, match="longer than 1000 characters"):
            scan_files([path], salt=SALT)
        assert len(scan_files([path], salt=SALT, as_text=True).found) == 1
        path.unlink()


def test_a_quote_that_is_never_closed_does_not_read_the_whole_file(file, monkeypatch):
    monkeypatch.setattr(rows, "LONGEST_ROW", 1000)
    before = csv.field_size_limit()
    path = file('id,text\n1,"open\n' + "some words\n" * 500, "open.csv")
    with pytest.raises(InvalidInput, match=r"line 2: the row is not CSV \(field larger than"):
        scan_files([path], salt=SALT)
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fields": "text"}, "fields= is one name, not a list"),
        ({"fields": [" "]}, "fields= has an empty name"),
        ({"fields": ["a"], "as_text": True}, "fields= and as_text= are both given"),
        ({"fields": ["a"]}, "fields= chooses fields, and no file is JSON or CSV"),
    ],
)
def test_settings_that_contradict_each_other(file, options, words):
    with pytest.raises(InvalidInput, match=words):
        scan_files([file("x", "plain.txt")], salt=SALT, **options)


def test_half_a_pair_of_surrogates_is_replaced(file):
    path = file('{"text": "https://ann:tul\\ud83dip@host.org"}')
    (found,) = scan_files([path], salt=SALT, kinds=["key"]).found
    assert found.way.written == "tul\ufffdip"


def test_batches_are_bounded_and_a_long_field_is_cut_without_loss(file):
    fields = [FieldText(f"some words {n}", n, n, "text") for n in range(5000)]
    sizes = [len(batch.text) for batch in batches_of(fields, block=2000)]
    assert len(sizes) > 30
    assert max(sizes) < 2100
    text = "".join(f"{n:04d} words {SECRETS[KINDS[n % 7]]}, " for n in range(700))
    path = file(json.dumps({"text": "x", "long": text}))
    whole, places = scanned(path)
    cut, cut_places = scanned(path, block=3000)
    assert len(places) == 700
    assert cut_places == places
    assert {secret.way for secret in cut.found} == {secret.way for secret in whole.found}
    assert cut.files[0].characters == len(text) + 1


@pytest.mark.parametrize("layout", ["jsonl", "json", "csv"])
def test_memory_does_not_grow_with_the_number_of_rows(tmp_path, layout):
    peaks = []
    for many in (2000, 20_000):
        texts = [f"some words {n} and then some more words" for n in range(many)]
        path = tmp_path / f"{many}.{layout}"
        if layout == "jsonl":
            path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        elif layout == "json":
            path.write_text(json.dumps([{"text": text} for text in texts]))
        else:
            path.write_text("id,text\n" + "".join(f"1,{text}\n" for text in texts))
        del texts
        tracemalloc.start()
        check_rows(path, "utf-8", layout_of(path))
        for batch in batches_of(fields_of(path, "utf-8", layout_of(path)), block=20_000):
            assert len(batch.text) < 21_000
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 10 * 2**20
    assert peaks[1] < 3 * max(peaks[0], 2**19)
