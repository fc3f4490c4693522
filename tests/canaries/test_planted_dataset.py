"""Map-style datasets with canaries in them, through a real loader."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from remnant.canaries import PlantedDataset, Template, make_canary_set
from remnant.errors import InvalidInput

PINS = Template("my pin is {digits:5}")


def rng(seed=0):
    return np.random.default_rng(seed)


def made(*repeats):
    return make_canary_set(PINS, repeats=repeats, controls=3, seed=0)


def as_tensor(text):
    return (torch.tensor([ord(letter) for letter in text[-5:]]),)


@pytest.mark.parametrize("seed", range(5))
def test_a_loader_sees_every_example_once_and_each_canary_as_often_as_planted(seed):
    canary_set = made(2, 1, 3)
    clean = torch.arange(50).reshape(10, 5)
    planted = PlantedDataset(
        TensorDataset(clean), canary_set, make_example=as_tensor, rng=rng(seed)
    )
    assert len(planted) == 16
    rows = torch.cat([batch for (batch,) in DataLoader(planted, batch_size=3)])
    places = dict(planted.where.tolist())
    assert len(places) == 6
    for position, canary in places.items():
        (expected,) = as_tensor(canary_set.canaries[canary].text)
        assert torch.equal(rows[position], expected)
    kept = [at for at in range(16) if at not in places]
    assert torch.equal(rows[kept], clean)
    assert np.bincount(planted.where[:, 1]).tolist() == [2, 1, 3]
    shuffled = torch.cat([b for (b,) in DataLoader(planted, batch_size=4, shuffle=True)])
    assert sorted(map(tuple, shuffled.tolist())) == sorted(map(tuple, rows.tolist()))


def test_workers_see_the_same():
    planted = PlantedDataset(
        TensorDataset(torch.arange(20).reshape(4, 5)), made(2), make_example=as_tensor, rng=rng()
    )
    alone = torch.cat([b for (b,) in DataLoader(planted, batch_size=2)])
    loader = DataLoader(planted, batch_size=2, num_workers=1, multiprocessing_context="fork")
    assert torch.equal(torch.cat([b for (b,) in loader]), alone)


def test_examples_go_where_they_are_sent_and_indices_are_those_of_a_list():
    planted = PlantedDataset(
        ["a", "b"], made(2, 1), make_example=lambda text: text, positions=[2, 0, 1]
    )
    first, second = (canary.text for canary in made(2, 1).canaries)
    expected = [first, "a", second, "b", first]
    assert list(planted) == expected
    assert [planted[index] for index in range(-5, 0)] == expected
    assert planted[np.int64(1)] == planted[torch.tensor(1)] == "a"
    assert planted.where.tolist() == [[0, 0], [2, 1], [4, 0]]
    for index in (5, -6):
        with pytest.raises(IndexError, match=f"index {index} is outside a dataset of 5 examples"):
            planted[index]
    with pytest.raises(TypeError):
        planted["a"]


def test_an_example_is_made_each_time_it_is_asked_for():
    asked = []
    planted = PlantedDataset(["a"], made(1), make_example=asked.append, positions=[0])
    assert asked == []
    assert planted[0] is planted[0] is None
    assert asked == [made(1).canaries[0].text] * 2


class Stream(IterableDataset):
    def __iter__(self):
        return iter([1, 2])

    def __len__(self):
        return 2


class NoLength(Dataset):
    def __getitem__(self, index):
        return index


@pytest.mark.parametrize("dataset", [Stream(), NoLength(), iter([1]), 5])
def test_what_is_not_map_style_is_refused(dataset):
    message = f"dataset is a {type(dataset).__name__}, which is not map-style"
    with pytest.raises(InvalidInput, match=message):
        PlantedDataset(dataset, made(1), make_example=str, rng=rng())


def test_other_faults_are_explained():
    with pytest.raises(InvalidInput, match="make_example is a int, not a function"):
        PlantedDataset([1], made(1), make_example=5, rng=rng())
    with pytest.raises(InvalidInput, match="Give exactly one of rng and positions"):
        PlantedDataset([1], made(1), make_example=str)


def test_nothing_secret_shows():
    planted = PlantedDataset([1, 2], made(2, 1), make_example=str, rng=rng())
    assert repr(planted) == "PlantedDataset(<2 examples, 3 copies>)"


def test_the_room_imports_lightly():
    code = (
        "import sys, remnant.canaries as c\n"
        "p = c.PlantedDataset([1], c.make_canary_set(c.Template('{hex:4}'), repeats=[1], "
        "controls=0, seed=0), make_example=len, positions=[0])\n"
        "print(list(p), {'torch', 'datasets', 'transformers', 'scipy'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[4, 1] set()\n"
