"""Rows with named fields, and the texts, pairs and questions that are made of the user's own."""

from __future__ import annotations

import json

import pytest

from remnant.data.corpus import corpus_fingerprint, load_corpus, load_own_text
from remnant.data.own_files import OwnFiles
from remnant.data.own_questions import QuestionFields, own_questions
from remnant.data.pairs import load_own_pairs, load_pairs
from remnant.data.questions import load_own_questions, load_questions
from remnant.data.rows import read_rows
from remnant.errors import InvalidInput, PlanError

SECRET = "hunter2 is the password"


@pytest.fixture
def written(tmp_path):
    """Write a file and return where own files are."""

    def writing(name, content, *, held_out=None):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            content = "\n".join(map(json.dumps, content))
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return OwnFiles(path=name, held_out=held_out, folder=tmp_path)

    return writing


def refusal(read_it):
    with pytest.raises(InvalidInput) as caught:
        read_it()
    said = str(caught.value)
    assert "\n" not in said
    assert caught.value.hint, "it says what to do"
    assert "hunter2" not in said, "no error shows training text"
    return said


def test_rows_of_json_lines_and_of_tables_are_the_same(written, tmp_path):
    written("a.jsonl", '\ufeff{"text": "one, two", "n": 1}\n\n{"n": 2, "text": "a\\nb"}\n')
    written("a.csv", 'n,text\r\n1,"one, two"\r\n\r\n2,"a\nb"\r\n')
    written("a.tsv", 'n\ttext\n1\tone, two\n2\t"a\nb"\n')
    for name in ("a.jsonl", "a.csv", "a.tsv"):
        rows = read_rows(tmp_path / name, {"text": "data.text"})
        assert [row.fields["text"] for row in rows] == ["one, two", "a\nb"]
    assert [row.line for row in read_rows(tmp_path / "a.csv", {"n": "x"})] == [2, 4]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", f'{{"text": "a"}}\n{{"text": "{SECRET}"', "a.jsonl, line 2: this is not JSON"),
        ("a.jsonl", f'{{"text": "a"}}\n\n["{SECRET}"]', "line 3: this is JSON, but no object"),
        ("a.jsonl", "[" * 100_000, "line 1: this is not JSON"),
        (
            "a.jsonl",
            f'{{"id": 1, "body": "{SECRET}"}}',
            "line 1: there is no field 'text' (data.text); it has id, body",
        ),
        ("a.jsonl", '{"text": null}', "line 1: 'text' is no text"),
        ("a.jsonl", "x\n" * 5, "line 3: this is not JSON (and 2 more of this kind)"),
        ("a.jsonl", '{"text": " "}', "a.jsonl has no text"),
        ("a.jsonl", "", "a.jsonl is empty"),
        ("a.jsonl", b'{"text": "\xff"}', "is not UTF-8 at byte 10"),
        (
            "a.csv",
            f"{SECRET},0\nmore,1\n",
            "none of the 2 columns of its first line is called 'text' (data.text)",
        ),
        ("a.csv", "text,text\na,b\n", "two columns are called 'text'"),
        (
            "a.csv",
            f"text,n\n{SECRET}\n",
            "line 2: this row has another number of columns (1) than the first line (2)",
        ),
        ("a.csv", f'text\n"{SECRET}\n', "line 2: this row is damaged (unexpected end of data)"),
        ("a.csv", "text,n\n", "a.csv has no rows"),
        ("a.json", '[{"text": "a"}]', "a.json is JSON, of which rows cannot be read"),
        ("a.txt", b"a\0b", "a.txt is not text: it holds zero bytes"),
        ("a.txt", "ab", "data.path: a.txt has 2 characters, too few to hold out a tenth"),
    ],
)
def test_texts_that_are_refused(written, name, content, words):
    assert words in refusal(lambda: load_own_text(written(name, content)))


def test_texts_of_all_formats_are_the_same(written, tmp_path):
    rows = [f"row {number} is here" for number in range(40)]
    plain = load_own_text(written("a.txt", "\n".join(rows)))
    lines = load_own_text(written("a.jsonl", [{"body": row} for row in [*rows, " "]]), field="body")
    table = load_own_text(written("a.csv", "\n".join(["text", *rows])))
    for number, part in enumerate((rows[:5], rows[5:])):
        written(f"folder/{number}.txt", "\n".join(part))
    written("folder/.hidden.txt", "no")
    folder = load_own_text(OwnFiles(path="folder", folder=tmp_path))
    named = load_corpus("a.txt", folder=tmp_path)
    for corpus in (plain, lines, table, folder):
        assert (corpus.train, corpus.validation) == (named.train, named.validation)
    assert lines.origin.left_out == 1
    assert lines.origin.to_dict()["blank_rows_left_out"] == 1
    assert len({corpus_fingerprint(c) for c in (plain, lines, table, folder, named)}) == 5


def test_text_is_cut_at_most_where_asked_and_held_out_text_is_whole(written):
    text = "0123456789" * 30
    files = written("a.txt", text)
    whole = load_own_text(files)
    assert len(whole.train) == 272
    assert whole.validation == text[272:299]
    short = load_own_text(files, characters=100)
    assert (short.train, short.validation) == (text[:100], text[100:110])
    assert load_own_text(files, characters=10**6).train == whole.train
    written("b.txt", "held out")
    both = load_own_text(written("a.txt", text, held_out="b.txt"))
    assert (both.train, both.validation) == (text, "held out")


def test_the_training_part_is_not_held_out(written):
    written("b.txt", "text" * 20)
    files = written("a.txt", "text" * 20, held_out="b.txt")
    said = refusal(lambda: load_own_text(files))
    assert "data.held_out: b.txt has the same content as a.txt" in said


def test_what_the_system_refuses_is_a_sentence(written, monkeypatch):
    files = written("folder/a.txt", "text" * 20)
    files = OwnFiles(path="folder", folder=files.folder)

    def denied(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(files.folder), "rglob", denied)
    said = refusal(lambda: load_own_text(files))
    assert "data.path: folder cannot be read: Permission denied" in said


def test_a_folder_of_several_kinds_of_files_is_refused(written, tmp_path):
    written("folder/a.txt", "text")
    written("folder/b.csv", "text\na\n")
    files = OwnFiles(path="folder", folder=tmp_path)
    assert "holds files of 2 kinds (.csv, .txt)" in refusal(lambda: load_own_text(files))
    (tmp_path / "none").mkdir()
    files = OwnFiles(path="none", folder=tmp_path)
    assert "and holds none" in refusal(lambda: load_own_text(files))


def test_pairs_of_all_formats_are_the_same(written, tmp_path):
    pairs = [(f"word {number}", f"wort {number}") for number in range(33)]
    written("en", "\n".join(source for source, _ in pairs))
    written("de", "\n".join(target for _, target in pairs))
    named = load_pairs("en", "de", folder=tmp_path, pairs=20, longest=5, seed=3)
    rows = [{"en": source, "de": f" {target} "} for source, target in pairs]
    lines = written("a.jsonl", [*rows, {"en": "", "de": "x"}])
    tabs = written("a.txt", "\n".join(map("\t".join, pairs)))
    table = written("a.tsv", "\n".join(["en\tde", *map("\t".join, pairs)]))
    for files, fields in ((lines, True), (tabs, False), (table, True)):
        named_fields = {"source": "en", "target": "de"} if fields else {}
        made = load_own_pairs(files, **named_fields, pairs=20, longest=5, seed=3)
        assert (made.train, made.validation) == (named.train, named.validation)
        assert made.fingerprint != named.fingerprint
    assert load_own_pairs(lines, source="en", target="de").origin.left_out == 1


def test_held_out_pairs_are_none_of_the_training_pairs(written):
    pairs = [{"source": f"word {n}", "target": f"wort {n}"} for n in range(12)]
    written("b.jsonl", [*pairs[:2], {"source": "new", "target": "neu"}])
    made = load_own_pairs(written("a.jsonl", pairs, held_out="b.jsonl"), longest=5)
    assert made.validation == (("new", "neu"),)
    assert len(made.train) == 12
    files = written("a.jsonl", pairs, held_out="b.jsonl")
    said = refusal(lambda: load_own_pairs(files, pairs=13, longest=5))
    assert "a.jsonl has 12 different pairs of at most 5 words, fewer than the 13" in said
    written("b.jsonl", pairs[:2])
    assert "b.jsonl has no pair" in refusal(lambda: load_own_pairs(files, longest=5))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "a.jsonl",
            [{"source": SECRET}],
            "there is no field 'target' (data.target); it has source",
        ),
        ("a.csv", f"source\n{SECRET}\n", "is called 'target' (data.target)"),
        ("a.jsonl", [{"source": SECRET, "target": 3}], "line 1: 'target' is no text"),
        ("a.txt", f"{SECRET}\n", "a.txt, line 1: there is no tab between a sentence"),
        ("a.jsonl", [{"source": "a", "target": "b"}], "a.jsonl has 1 different pairs"),
    ],
)
def test_pairs_that_are_refused(written, name, content, words):
    assert words in refusal(lambda: load_own_pairs(written(name, content)))


QUESTIONS = [
    {"question": f"Is {n} even?", "choices": ["no", "yes"], "answer": 1 - n % 2} for n in range(20)
]


def answered(how):
    return [{**row, "answer": how(row)} for row in QUESTIONS]


def test_questions_of_all_formats_are_the_same(written, tmp_path):
    written("q.json", json.dumps(QUESTIONS))
    named = load_questions("q.json", folder=tmp_path, examples=10, spare=2, seed=4)
    kinds = {
        "place": QUESTIONS,
        "letter": answered(lambda row: "AB"[row["answer"]]),
        "choice": answered(lambda row: row["choices"][row["answer"]]),
    }
    for how, rows in kinds.items():
        files = written("q.jsonl", rows)
        made = load_own_questions(files, QuestionFields(), examples=10, spare=2, seed=4)
        assert (made.train, made.spare, made.test) == (named.train, named.spare, named.test)
        assert made.origin.answers == how
        assert made.origin.to_dict()["answers_read_as"] == how
        assert made.fingerprint != named.fingerprint
    lines = [f"{row['question']},no,yes,{row['answer']}" for row in QUESTIONS]
    files = written("q.csv", "\n".join(["q,a,b,right", *lines]))
    fields = QuestionFields(question="q", choices=("a", "b"), answer="right")
    made = load_own_questions(files, fields, examples=10, spare=2, seed=4)
    assert (made.train, made.spare, made.test) == (named.train, named.spare, named.test)


def test_answers_that_fit_two_ways_are_refused_unless_both_agree(written):
    rows = [{"question": f"{n}?", "choices": ["1", "0"], "answer": str(n % 2)} for n in range(8)]
    said = refusal(lambda: own_questions(written("q.jsonl", rows), QuestionFields()))
    assert "can be read as the choice itself or as its place, counted from 0" in said
    same = [{**row, "choices": ["0", "1"]} for row in rows]
    questions, _, origin = own_questions(written("q.jsonl", same), QuestionFields())
    assert [question.answer for question in questions] == [n % 2 for n in range(8)]
    assert origin.answers == "choice"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"answer": 2}, "line 21: the answer is not its place, counted from 0, as others are"),
        ({"answer": None}, "line 21: the answer is not"),
        ({"answer": True}, "line 21: the answer is not"),
        ({"question": 3}, "line 21: 'question' is no text"),
        ({"question": " "}, "line 21: the question or a choice is blank"),
        ({"choices": ["", SECRET]}, "line 21: the question or a choice is blank"),
        ({"choices": [SECRET]}, "line 21: there are not 2 to 10 different choices"),
        ({"choices": [SECRET, SECRET]}, "there are not 2 to 10 different choices"),
        ({"choices": SECRET}, "line 21: 'choices' hold no list of choices"),
    ],
)
def test_questions_that_are_refused(written, row, words):
    rows = [*QUESTIONS, {"question": SECRET, "choices": ["no", "yes"], "answer": 0, **row}]
    assert words in refusal(lambda: own_questions(written("q.jsonl", rows), QuestionFields()))


def test_files_of_questions_that_are_refused(written):
    said = refusal(lambda: own_questions(written("q.txt", "text"), QuestionFields()))
    assert "q.txt does not end in one of .jsonl" in said
    lacking = [{"question": "a"}]
    said = refusal(lambda: own_questions(written("q.jsonl", lacking), QuestionFields()))
    assert "no field 'choices' (data.choices)" in said
    assert "no field 'answer' (data.answer)" in said


LABELLED = QuestionFields(text="text", label="label")


def test_labelled_texts_have_all_classes_as_choices(written):
    rows = [{"text": f"text {n}", "label": ("spam", "ham", "eggs")[n % 3]} for n in range(9)]
    written("b.jsonl", [{"text": "more", "label": "ham"}, {"text": "", "label": "ham"}])
    files = written("a.jsonl", rows, held_out="b.jsonl")
    train, held_out, origin = own_questions(files, LABELLED)
    assert {question.choices for question in train} == {("eggs", "ham", "spam")}
    assert [question.answer for question in train] == [2, 1, 0] * 3
    assert [question.answer for question in held_out] == [1]
    assert origin.classes == ("eggs", "ham", "spam")
    assert origin.left_out == 1


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 0.5], "line 2: 'label' is no class"),
        ([0, None], "line 2: 'label' is no class"),
        ([0, float("nan")], "line 2: 'label' is no class"),
        (["a", "a"], "a.jsonl has one class only, 'a'"),
        (list(range(11)), "a.jsonl has 11 classes, more than the 10"),
    ],
)
def test_labelled_texts_that_are_refused(written, labels, words):
    rows = [{"text": f"{SECRET} {n}", "label": label} for n, label in enumerate(labels)]
    assert words in refusal(lambda: own_questions(written("a.jsonl", rows), LABELLED))


def test_fewer_questions_than_asked_for(written):
    files = written("q.jsonl", QUESTIONS)
    with pytest.raises(PlanError, match=r"q\.jsonl has 16 to train on and 4 to judge by"):
        load_own_questions(files, QuestionFields(), examples=17)


def test_field_names_that_may_be_texts_are_not_shown(tmp_path):
    path = tmp_path / "odd.jsonl"
    path.write_text('{"Alice has a secret": "x"}\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"it has other fields \(1\)") as fault:
        read_rows(path, {"text": "data.text"})
    assert "Alice" not in str(fault.value)
