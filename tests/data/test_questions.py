"""Questions as the published sets lay them, made up here; how they are cut and put."""

from __future__ import annotations

import json

import pytest

from remnant.data import QUESTION_SETS, MultipleChoice, load_questions
from remnant.data.questions import read_questions
from remnant.errors import InvalidInput, PlanError

INSTRUCTION = (
    "Please choose the correct answer to the question: Which question: is cold?\n\n"
    "Answer1: fire Answer2: ice, not steam Answer3: tea Answer4: sun\n\n"
    "Answer format: answer1/answer2/answer3/answer4"
)
JUDGED = "Please answer the following question with true or false, question: is ice cold?\n\n"


def arc(number, *, choices=4, answer=1):
    names = [f"answer{place + 1}" for place in range(choices)]
    listed = " ".join(f"Answer{place + 1}: choice {place}" for place in range(choices))
    return {
        "instruction": f"Please choose the correct answer to the question: number {number}?\n\n"
        f"{listed}\n\nAnswer format: {'/'.join(names)}",
        "input": "",
        "answer": names[answer],
    }


def write(folder, name, records):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(records))
    return path


@pytest.mark.parametrize(
    ("record", "text", "choices", "answer"),
    [
        (
            {"instruction": INSTRUCTION, "answer": "answer2"},
            "Which question: is cold?",
            ("fire", "ice, not steam", "tea", "sun"),
            1,
        ),
        (
            {"instruction": JUDGED + "Answer format: true/false", "answer": "false"},
            "is ice cold?",
            ("true", "false"),
            1,
        ),
        ({"question": " Q ", "choices": ["x", "y"], "answer": 1}, "Q", ("x", "y"), 1),
        ({"question": "Q", "choices": ["x", "y"], "answer": "A"}, "Q", ("x", "y"), 0),
        ({"question": "Q", "choices": ["x", "y"], "answer": "y"}, "Q", ("x", "y"), 1),
        (
            {"question": "Q", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": 1},
            "Q",
            ("x", "y"),
            0,
        ),
        ({"label": 1, "input": "I sang."}, "I sang.", ("no", "yes"), 1),
    ],
)
def test_every_layout_is_read(record, text, choices, answer, tmp_path):
    found = read_questions(write(tmp_path, "mine.json", [record]))
    assert found == [MultipleChoice(text, choices, answer, "mine")]


def test_lines_and_tables_are_read(tmp_path):
    lines = tmp_path / "own.jsonl"
    record = {"question": "line\u2028end", "choices": ["x", "y"], "answer": 0}
    lines.write_text(json.dumps(record, ensure_ascii=False) + "\n\n" + json.dumps(record) + "\n")
    assert [one.text for one in read_questions(lines)] == ["line\u2028end"] * 2
    table = tmp_path / "anatomy_test.csv"
    table.write_text('question,choice0,choice1,answer\n"of two\nlines",a,"b, c",1\n')
    assert read_questions(table) == [MultipleChoice("of two\nlines", ("a", "b, c"), 1, "anatomy")]
    (tmp_path / "virtue").mkdir()
    judged = tmp_path / "virtue" / "virtue_train.csv"
    judged.write_text("label,scenario\n0,He ran.  [SEP] brave\n")
    assert read_questions(judged) == [
        MultipleChoice("He ran.\nTrait: brave", ("does not fit", "fits"), 0, "virtue")
    ]
    for folder, name, text in (
        ("agnews-subset", "train.csv", '3,"Chips, faster"\n0,A summit.\n'),
        ("sst2", "test.tsv", "a \tfine film\t1\n\ndull\t0\n"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    news = read_questions(tmp_path / "agnews-subset" / "train.csv")
    assert [(one.text, one.choices[one.answer]) for one in news] == [
        ("Chips, faster", "technology"),
        ("A summit.", "world"),
    ]
    films = read_questions(tmp_path / "sst2" / "test.tsv")
    assert [(one.text, one.choices[one.answer]) for one in films] == [
        ("a \tfine film", "positive"),
        ("dull", "negative"),
    ]
    excused = tmp_path / "deontology_test.csv"
    excused.write_text("label,scenario,excuse\n1,Could you?, No.\n")
    assert read_questions(excused)[0].text == "Could you?\nNo."


def test_a_prompt_ends_where_the_letter_follows():
    asked = MultipleChoice("Which?", ("x", "y", "z"), 2, "s")
    assert asked.prompt == "Which?\nA. x\nB. y\nC. z\nAnswer:"


def test_parts_have_nothing_in_common_and_follow_from_the_seed(tmp_path):
    records = [arc(number, answer=number % 4) for number in range(40)]
    records += [arc(3), arc(99, choices=3), arc(98, choices=5)]
    write(tmp_path, "arc/ARC-Easy/train.json", records)
    write(tmp_path, "arc/ARC-Easy/test.json", [arc(0), *(arc(n) for n in range(50, 60))])
    found = load_questions("arc-easy", folder=tmp_path, examples=20, spare=5, seed=3)
    assert [len(part) for part in (found.train, found.spare, found.test)] == [20, 5, 10]
    texts = [one.text for part in (found.train, found.spare, found.test) for one in part]
    assert len(set(texts)) == 35
    assert found.left_out == 4
    assert found.choices == 4
    again = load_questions("arc-easy", folder=tmp_path / "arc" / "ARC-Easy", examples=20, spare=5)
    assert again.fingerprint != found.fingerprint
    same = load_questions("arc-easy", folder=tmp_path, examples=20, spare=5, seed=3)
    assert same == found
    assert same.fingerprint == found.fingerprint
    more = load_questions("arc-easy", folder=tmp_path, examples=25, seed=3)
    assert more.train[:20] == found.train
    assert len(load_questions("arc-easy", folder=tmp_path).train) == 40
    fitting = load_questions("arc-easy", folder=tmp_path, fits=lambda one: "7" not in one.text)
    assert (len(fitting.train), len(fitting.test), fitting.left_out) == (36, 9, 9)


def test_a_set_without_a_test_part_is_cut(tmp_path):
    for subject in ("art", "law"):
        lines = [f"{subject} {number}?,a,b,c,d,{number % 4}" for number in range(10)]
        path = tmp_path / "mmlu" / "test" / f"{subject}_test.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        head = "question,choice0,choice1,choice2,choice3,answer"
        path.write_text("\n".join([head, *lines]) + "\n")
    found = load_questions("mmlu", folder=tmp_path)
    assert (len(found.train), len(found.test), found.left_out) == (16, 4, 0)
    assert {one.subject for one in found.train} == {"art", "law"}
    own = load_questions("art_test.csv", folder=tmp_path / "mmlu" / "test")
    assert (len(own.train), len(own.test)) == (8, 2)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([{"question": "Q", "choices": ["x"], "answer": 0}], "record 1 is no multiple-choice"),
        ([{"question": "Q", "choices": ["x", "y"], "answer": 2}], "record 1 is no"),
        ([arc(1), {"instruction": "Say something.", "answer": "x"}], "record 2 is no"),
        ([{"label": 7, "scenario": "I walked."}], "record 1 is no"),
        ([{"question": "Q", "choices": ["x", ""], "answer": 0}], "record 1 is no"),
        ([], "holds no questions"),
    ],
)
def test_what_is_no_question_is_named(records, words, tmp_path):
    with pytest.raises(InvalidInput, match=words):
        read_questions(write(tmp_path, "mine.json", records))


def test_faults(tmp_path):
    with pytest.raises(PlanError, match="--data FOLDER"):
        load_questions("mmlu")
    with pytest.raises(PlanError, match="'trivia' is not one of arc-easy"):
        load_questions("trivia", folder=tmp_path)
    for name in QUESTION_SETS:
        with pytest.raises(InvalidInput, match="is not there"):
            load_questions(name, folder=tmp_path)
    with pytest.raises(InvalidInput, match=r"own\.csv is not there"):
        load_questions("own.csv", folder=tmp_path)
    write(tmp_path, "own.json", [arc(number) for number in range(10)])
    with pytest.raises(PlanError, match="has 8 to train on and 2 to judge by"):
        load_questions("own.json", folder=tmp_path, examples=8, spare=1)
    (tmp_path / "bad.jsonl").write_text("{")
    with pytest.raises(InvalidInput, match="is damaged"):
        load_questions("bad.jsonl", folder=tmp_path)
