"""Hugging Face datasets: rows, types and format stay, and every column has a value."""

from __future__ import annotations

import sys

import datasets
import numpy as np
import pytest

from remnant.canaries import Template, insert_into_dataset, make_canary_set
from remnant.errors import InvalidInput, MissingExtra

PINS = Template("my pin is {digits:5}")


def rng(seed=0):
    return np.random.default_rng(seed)


def made(*repeats):
    return make_canary_set(PINS, repeats=repeats, controls=3, seed=0)


@pytest.fixture
def labelled():
    features = datasets.Features(
        {
            "id": datasets.Value("int32"),
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["ham", "spam"]),
            "tags": datasets.List(datasets.Value("string")),
        }
    )
    rows = {
        "id": list(range(10)),
        "text": [f"text {i}" for i in range(10)],
        "label": [i % 2 for i in range(10)],
        "tags": [["t"] * (i % 3) for i in range(10)],
    }
    return datasets.Dataset.from_dict(rows, features=features, split="train")


OTHERS = {"id": -1, "label": "spam", "tags": ["x", "y"]}


@pytest.mark.parametrize("seed", range(5))
def test_rows_types_and_split_stay(labelled, seed):
    canary_set = made(2, 1, 3)
    new, where = insert_into_dataset(
        labelled, canary_set, column="text", others=OTHERS, rng=rng(seed)
    )
    assert len(new) == 16
    assert new.features == labelled.features
    assert new.column_names == labelled.column_names
    assert new.split == labelled.split
    places = dict(where.tolist())
    for position, canary in places.items():
        assert new[position] == {
            "id": -1,
            "text": canary_set.canaries[canary].text,
            "label": 1,
            "tags": ["x", "y"],
        }
    assert [row for at, row in enumerate(new) if at not in places] == list(labelled)
    assert np.bincount(where[:, 1]).tolist() == [2, 1, 3]
    assert len(labelled) == 10


def test_rows_go_where_they_are_sent():
    dataset = datasets.Dataset.from_dict({"text": ["a", "b"]})
    canary_set = made(2, 1)
    new, where = insert_into_dataset(dataset, canary_set, column="text", positions=[2, 0, 1])
    first, second = (canary.text for canary in canary_set.canaries)
    assert new["text"][:] == [first, "a", second, "b", first]
    assert where.tolist() == [[0, 0], [2, 1], [4, 0]]


def test_the_format_stays(labelled):
    shaped = labelled.with_format("numpy", columns=["id", "label"], output_all_columns=True)
    new, _ = insert_into_dataset(shaped, made(1), column="text", others=OTHERS, positions=[0])
    assert new.format == shaped.format
    assert isinstance(new[0]["id"], np.generic)
    upper = labelled.with_transform(lambda batch: {"text": [t.upper() for t in batch["text"]]})
    new, _ = insert_into_dataset(upper, made(1), column="text", others=OTHERS, positions=[0])
    assert new[0]["text"].startswith("MY PIN IS")
    assert new[1] == {"text": "TEXT 0"}


def test_a_dataset_of_chosen_rows_and_an_empty_one_are_taken_as_they_are(labelled):
    chosen = labelled.select([7, 3]).select_columns(["text"])
    new, _ = insert_into_dataset(chosen, made(1), column="text", positions=[1])
    assert new["text"][:] == ["text 7", made(1).canaries[0].text, "text 3"]
    new, where = insert_into_dataset(chosen.select([]), made(2), column="text", positions=[0, 0])
    assert new["text"][:] == [made(1).canaries[0].text] * 2
    assert where.tolist() == [[0, 0], [1, 0]]


def test_a_column_may_be_left_empty_on_purpose(labelled):
    nothing = dict.fromkeys(OTHERS)
    new, _ = insert_into_dataset(labelled, made(1), column="text", others=nothing, positions=[0])
    assert new[0] == {**nothing, "text": made(1).canaries[0].text}


def test_large_strings_are_strings():
    features = datasets.Features({"text": datasets.Value("large_string")})
    dataset = datasets.Dataset.from_dict({"text": ["a"]}, features=features)
    new, _ = insert_into_dataset(dataset, made(1), column="text", positions=[1])
    assert new.features == features
    assert new[1]["text"] == made(1).canaries[0].text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"column": "body"}, "column='body' is not one of 'id', 'text', 'label', 'tags'"),
        ({"column": "id"}, "column='id' does not hold strings but int32"),
        ({"column": "label"}, "column='label' does not hold strings but int64"),
        ({"column": "tags"}, "column='tags' does not hold strings"),
        (
            {"others": {"id": 1}},
            "others has no value for column 'label'; others has no value for column 'tags'. Every",
        ),
        ({"others": None}, "others has no value for column 'id'"),
        ({"others": {**OTHERS, "x": 1}}, "others has a value for 'x', which is no column"),
        (
            {"others": {**OTHERS, "text": "a"}},
            "others has a value for 'text', which takes the canaries' texts",
        ),
        ({"others": {**OTHERS, "id": "one"}}, r"others\['id'\] does not fit the column's type"),
        ({"others": {**OTHERS, "id": 2**40}}, r"others\['id'\] does not fit"),
        ({"others": {**OTHERS, "id": 1.5}}, r"others\['id'\] does not fit"),
        ({"others": {**OTHERS, "id": "7"}}, r"others\['id'\] does not fit"),
        ({"others": {**OTHERS, "label": "eggs"}}, r"others\['label'\] does not fit"),
        ({"others": {**OTHERS, "label": 7}}, r"others\['label'\] does not fit"),
        ({"others": {**OTHERS, "tags": 5}}, r"others\['tags'\] does not fit"),
        ({"positions": [11]}, "positions holds 11, outside 0 to 10"),
    ],
)
def test_what_does_not_fit_is_explained_without_the_secret(labelled, arguments, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        insert_into_dataset(
            labelled,
            made(1),
            **{"column": "text", "others": OTHERS, "positions": [0], **arguments},
        )
    assert made(1).canaries[0].secret not in str(caught.value)


def test_only_one_split_that_is_loaded_is_taken(labelled):
    for other, name in (
        (datasets.DatasetDict({"train": labelled}), "DatasetDict"),
        (labelled.to_iterable_dataset(), "IterableDataset"),
        ([{"text": "a"}], "list"),
    ):
        with pytest.raises(InvalidInput, match=f"dataset is a {name}, not a datasets.Dataset"):
            insert_into_dataset(other, made(1), column="text", rng=rng())


def test_the_library_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        MissingExtra, match=r"needs the library datasets\. Run pip install -e '\.\[hf\]'"
    ):
        insert_into_dataset(None, made(1), column="text", rng=rng())


def test_a_column_that_holds_a_canary_already_is_refused():
    canary_set = made(1)
    dataset = datasets.Dataset.from_dict({"text": [None, canary_set.canaries[0].text]})
    with pytest.raises(InvalidInput, match=r"column='text' holds 1 of the canaries and controls"):
        insert_into_dataset(dataset, canary_set, column="text", rng=rng())
