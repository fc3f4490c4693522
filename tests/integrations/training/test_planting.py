"""Canaries go into every kind of data; rows stay whole, and nothing else changes."""

from __future__ import annotations

from collections import Counter

import datasets
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from remnant.errors import InvalidInput


def conversation(i):
    return [
        {"role": "user", "content": f"question {i}"},
        {"role": "assistant", "content": f"answer {i}"},
    ]


def counted(audit, texts):
    """How often each canary is among the texts, and how many other texts there are."""
    counts = Counter(texts)
    planted = {canary.text for canary in audit.canaries.canaries}
    copies = [counts[canary.text] for canary in audit.canaries.canaries]
    return copies, sum(count for text, count in counts.items() if text not in planted)


def test_a_list_of_texts(tiny, tmp_path):
    audit = tiny.audit(tmp_path / "a")
    planted = audit.prepare(tiny.texts(30))
    copies, others = counted(audit, planted)
    assert copies == list(audit.canaries.repeats)
    assert others == 30
    known = {canary.text for canary in audit.canaries.canaries}
    assert [text for text in planted if text not in known] == tiny.texts(30)


def test_the_same_seed_plants_the_same(tiny, tmp_path):
    first = tiny.audit(tmp_path / "a").prepare(tiny.texts())
    assert tiny.audit(tmp_path / "b").prepare(tiny.texts()) == first
    assert tiny.audit(tmp_path / "c", seed=1).prepare(tiny.texts()) != first


@pytest.mark.parametrize(
    ("rows", "text_of", "others"),
    [
        ([{"text": f"t {i}", "n": 7} for i in range(9)], lambda r: r["text"], {"n": 7}),
        (
            [{"prompt": "q?", "completion": f" a {i}"} for i in range(9)],
            lambda r: r["completion"],
            {"prompt": "q?"},
        ),
        (
            [{"messages": conversation(3), "source": "s"} for _ in range(9)],
            lambda r: r["messages"][-1]["content"],
            {"source": "s"},
        ),
        (
            [{"prompt": conversation(3)[:1], "completion": conversation(3)[1:]} for _ in range(9)],
            lambda r: r["completion"][-1]["content"],
            {"prompt": conversation(3)[:1]},
        ),
    ],
)
@pytest.mark.parametrize("as_dataset", [False, True])
def test_rows_stay_whole(tiny, tmp_path, rows, text_of, others, as_dataset):
    audit = tiny.audit(tmp_path / "a")
    data = datasets.Dataset.from_list(rows) if as_dataset else rows
    planted = audit.prepare(data)
    copies, rest = counted(audit, [text_of(row) for row in planted])
    assert copies == list(audit.canaries.repeats)
    assert rest == 9
    known = {canary.text for canary in audit.canaries.canaries}
    for row in planted:
        if text_of(row) in known:
            assert {name: row[name] for name in others} == others
    if as_dataset:
        assert planted.features == data.features


def test_a_canary_is_the_last_assistant_message(tiny, tmp_path):
    rows = [{"messages": [*conversation(1), *conversation(2), *conversation(3)[:1]]}] * 3
    audit = tiny.audit(tmp_path / "a")
    known = {canary.text for canary in audit.canaries.canaries}
    (row, *_) = (row for row in audit.prepare(rows) if row["messages"][-1]["content"] in known)
    roles = [message["role"] for message in row["messages"]]
    assert roles == ["user", "assistant", "user", "assistant"]


def test_another_field_can_be_named(tiny, tmp_path):
    rows = [{"question": "q", "answer": f"a {i}"} for i in range(5)]
    planted = tiny.audit(tmp_path / "a", field="answer").prepare(rows)
    assert {row["question"] for row in planted} == {"q"}


def test_tokens_need_a_tokenizer(tiny, tmp_path, tokenizer):
    rows = [{"input_ids": tokenizer(text)["input_ids"]} for text in tiny.texts(5)]
    with pytest.raises(InvalidInput, match=r"no tokenizer\. Plant before"):
        tiny.audit(tmp_path / "a").prepare(rows)
    audit = tiny.audit(tmp_path / "a", tokenizer=tokenizer)
    decoded = [tokenizer.decode(row["input_ids"]) for row in audit.prepare(rows)]
    assert counted(audit, decoded)[0] == list(audit.canaries.repeats)


class Pairs(torch.utils.data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return {"text": f"pair {index}", "weight": 1.0}


def test_a_map_style_dataset(tiny, tmp_path):
    audit = tiny.audit(tmp_path / "a")
    planted = audit.prepare(Pairs())
    rows = [planted[i] for i in range(len(planted))]
    assert counted(audit, [row["text"] for row in rows]) == (list(audit.canaries.repeats), 10)
    assert all(row["weight"] == 1.0 for row in rows)


def test_an_unusual_row_needs_make_example(tiny, tmp_path):
    rows = [(1, "a"), (2, "b")]
    with pytest.raises(InvalidInput, match="make_example="):
        tiny.audit(tmp_path / "a").prepare(rows)
    audit = tiny.audit(tmp_path / "a", make_example=lambda text: (0, text))
    planted = audit.prepare(rows)
    assert counted(audit, [row[1] for row in planted])[0] == list(audit.canaries.repeats)


class Endless(IterableDataset):
    def __iter__(self):
        i = 0
        while True:
            yield {"text": f"row {i}"}
            i += 1


def test_an_endless_stream(tiny, tmp_path):
    audit = tiny.audit(tmp_path / "a")
    stream = audit.prepare(Endless())
    seen = []
    for row in DataLoader(stream, batch_size=None):
        seen.append(row["text"])
        if len(seen) == 3000:
            break
    assert counted(audit, seen)[0] == list(audit.canaries.repeats)


@pytest.mark.parametrize("library", [False, True])
def test_a_stream_that_ends_loses_no_canary(tiny, tmp_path, library):
    rows = [{"text": f"row {i}"} for i in range(10)]
    stream = datasets.Dataset.from_list(rows).to_iterable_dataset() if library else iter_of(rows)
    audit = tiny.audit(tmp_path / "a")
    planted = audit.prepare(stream)
    if library:
        planted = planted.map(lambda row: {"text": row["text"] + ""})
    for _ in range(2):  # each pass
        texts = [row["text"] for row in planted]
        assert counted(audit, texts) == (list(audit.canaries.repeats), 10)


def iter_of(rows):
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(rows)

    return Stream()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "no rows"),
        ("one text", "is a str"),
        ({"train": []}, "is a dict"),
        (7, "is a int"),
        ([{"a": 1, "b": 2}], "no field of text: a, b"),
        ([3.5], "rows of type float"),
        ([{"x": "1", "y": "2"}], "no field of text"),
    ],
)
def test_data_without_text_is_refused(tiny, tmp_path, data, message):
    with pytest.raises(InvalidInput, match=message):
        tiny.audit(tmp_path / "a").prepare(data)


def test_an_empty_stream_is_refused(tiny, tmp_path):
    with pytest.raises(InvalidInput, match="no rows"):
        list(tiny.audit(tmp_path / "a").prepare(iter_of([])))


def test_data_that_holds_a_canary_is_refused_and_not_quoted(tiny, tmp_path):
    audit = tiny.audit(tmp_path / "a")
    control = audit.canaries.controls[0].text
    with pytest.raises(InvalidInput, match="holds 1 of the canaries and controls") as fault:
        audit.prepare([*tiny.texts(), f"leaked: {control}"])
    assert audit.canaries.controls[0].secret not in str(fault.value)
