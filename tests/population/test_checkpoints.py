"""A checkpoint survives a full disk and a kill, and damage to it is noticed."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from remnant.errors import RecordError, RemnantWarning
from remnant.population import Checkpoint, Population, remove_checkpoint
from remnant.population import checkpoint as files

INDICES = np.random.default_rng(0).integers(0, 60, (8, 2, 8))


class Killed(BaseException):
    pass


def train(toy, path, *, kill=None, steps=8):
    """Train two small models with a checkpoint after every step; return their weights."""
    population = Population(lambda: nn.Sequential(nn.Flatten(), nn.Linear(12, 5)), seeds=[0, 1])

    def on_step(step):
        if step == kill:
            raise Killed

    checkpoint = None if path is None else Checkpoint(path, seconds=0)
    population.fit(*toy, INDICES, lr=0.1, checkpoint=checkpoint, on_step=on_step)
    return [population.state_dict(member) for member in range(2)]


def assert_same(one, other):
    for mine, theirs in zip(one, other, strict=True):
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.fixture
def toy():
    rng = np.random.default_rng(1)
    return rng.normal(size=(60, 12)).astype(np.float32), rng.integers(0, 5, 60)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint.safetensors"


@pytest.fixture
def cut(toy, path):
    """A training that was killed after five steps, with two checkpoints."""
    with pytest.raises(Killed):
        train(toy, path, kill=5)
    assert sorted(one.name for one in path.parent.iterdir()) == [
        path.name,
        f"{path.name}.previous",
    ]
    return path


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << (at % 8)
    path.write_bytes(bytes(content))


def content_of(path):
    tensors, notes = files.load(path, torch.device("cpu"))
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}, notes


def test_a_flipped_bit_anywhere_is_noticed_or_changes_nothing(cut):
    whole = cut.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    before = content_of(cut)
    places = [*range(0, header, 7), *range(header, len(whole), max(1, len(whole) // 200))]
    noticed = 0
    for at in [*places, len(whole) - 1]:
        cut.write_bytes(whole)
        flip(cut, at)
        try:
            found = content_of(cut)
        except files.DamagedCheckpoint:
            noticed += 1
        else:
            assert found == before, f"byte {at} went unnoticed"
            assert at < header, f"byte {at}, in a tensor, went unnoticed"
    assert noticed > 0.9 * len(places)


@pytest.mark.parametrize("at", [0, 40, -1, -200])
def test_a_damaged_checkpoint_gives_way_to_the_one_before_it(toy, cut, at):
    flip(cut, at % cut.stat().st_size)
    with pytest.warns(RemnantWarning, match="was damaged; the training continues from the one"):
        resumed = train(toy, cut)
    assert_same(resumed, train(toy, None))


@pytest.mark.parametrize("size", [0, 5, 100, -1])
def test_a_checkpoint_cut_short_without_another_is_one_sentence_and_stays(toy, cut, size):
    files._previous(cut).unlink()
    cut.write_bytes(cut.read_bytes()[:size])
    left = cut.read_bytes()
    with pytest.raises(RecordError, match=r"is damaged\. Delete it and run the same command"):
        train(toy, cut)
    assert cut.read_bytes() == left


def test_two_damaged_checkpoints_are_one_sentence(toy, cut):
    for path in (cut, files._previous(cut)):
        flip(path, path.stat().st_size - 1)
    with pytest.raises(RecordError, match=r"checkpoint\.safetensors is damaged"):
        train(toy, cut)


def test_a_checkpoint_of_an_older_version_has_no_checksum_and_is_read(toy, cut):
    with_notes = files.load(cut, torch.device("cpu"))[1]
    save_file(load_file(cut), cut, metadata={"notes": json.dumps(with_notes)})
    assert_same(train(toy, cut), train(toy, None))


def _full(*_arguments, **_options):
    raise SafetensorError("Error while serializing: I/O error: No space left (os error 28)")


def _half(tensors, path, **_options):
    path.write_bytes(b"half")
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("refuse", [_full, _half])
def test_a_full_disk_keeps_the_checkpoint_and_the_same_call_continues(
    toy, cut, monkeypatch, refuse
):
    before = cut.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(files, "save_file", refuse)
        with pytest.raises(RecordError, match=r"the disk is full.*Free some space, then run the"):
            train(toy, cut)
    assert cut.read_bytes() == before
    assert not files._beside(cut).exists()
    assert_same(train(toy, cut), train(toy, None))


def test_where_two_checkpoints_fit_but_not_three_the_oldest_gives_way(toy, cut, monkeypatch):
    def refuse_third(tensors, path, **options):
        if files._previous(cut).exists() and cut.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        save_file(tensors, path, **options)

    monkeypatch.setattr(files, "save_file", refuse_third)
    assert_same(train(toy, cut), train(toy, None))


def test_the_checkpoint_before_a_damaged_one_never_gives_way(cut, monkeypatch):
    tensors, notes = files.load(cut, torch.device("cpu"))
    flip(cut, cut.stat().st_size - 1)
    before = files._previous(cut).read_bytes()
    monkeypatch.setattr(files, "save_file", _full)
    with pytest.raises(RecordError, match="the disk is full"):
        files.save(cut, tensors, notes)
    assert files._previous(cut).read_bytes() == before


def test_a_disk_that_refuses_otherwise_is_one_sentence(cut, monkeypatch):
    tensors, notes = files.load(cut, torch.device("cpu"))
    before = cut.read_bytes()

    def refuse(*_arguments):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files.os, "replace", refuse)
    with pytest.raises(RecordError, match=r"cannot be written: Permission denied\. Choose another"):
        files.save(cut, tensors, notes)
    assert cut.read_bytes() == before


@pytest.mark.parametrize("moment", [1, 2])
def test_a_kill_at_either_rename_leaves_a_training_that_continues(toy, cut, monkeypatch, moment):
    calls, replace = [], os.replace

    def kill(*arguments):
        calls.append(arguments)
        if len(calls) == moment:
            raise Killed
        replace(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", kill)
        with pytest.raises(Killed):
            train(toy, cut)
    assert_same(train(toy, cut), train(toy, None))


def test_removing_a_checkpoint_removes_the_one_before_it(cut):
    remove_checkpoint(cut)
    assert list(cut.parent.iterdir()) == []
    remove_checkpoint(cut)


def test_a_tensor_of_one_entry_is_saved_whatever_its_stride(path):
    one = torch.tensor(3.0, dtype=torch.float64).expand(1)
    assert one.stride() == (0,)
    files.save(path, {"one": one, "none": torch.zeros(0, 4)}, {})
    tensors, _ = files.load(path, torch.device("cpu"))
    assert tensors["one"].tolist() == [3.0]
    assert tensors["none"].shape == (0, 4)


def test_clipped_gradients_are_summed_in_the_same_order_after_a_kill(toy, path):
    def make():
        layers = [nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 5)]
        return nn.Sequential(nn.Flatten(), *layers)

    def clipped(checkpoint=None, kill=None):
        population = Population(make, seeds=[0, 1])

        def on_step(step):
            if step == kill:
                raise Killed

        rows = np.tile(INDICES, (8, 1, 1))
        population.fit(*toy, rows, lr=0.1, clip=0.1, checkpoint=checkpoint, on_step=on_step)
        return [population.state_dict(member) for member in range(2)]

    with pytest.raises(Killed):
        clipped(Checkpoint(path, seconds=0), kill=5)
    assert_same(clipped(Checkpoint(path, seconds=0)), clipped())
