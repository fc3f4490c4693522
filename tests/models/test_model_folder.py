"""A model on disk: what is written comes back, and what is damaged is said to be."""

from __future__ import annotations

import hashlib
import json
import os

import pytest
import torch
from safetensors.torch import save_file

from remnant.errors import InvalidInput, PlanError, RecordError
from remnant.models import (
    SEQUENCE_MODELS,
    LanguageModel,
    Vocabulary,
    load_language_model,
    save_language_model,
    sequence_model_maker,
)

LETTERS = Vocabulary.of_characters("abcdefé")
OPTIONS = {"units": 8, "layers": 1}


def write(folder, name="lstm", seed=0, dtype=torch.float32):
    torch.manual_seed(seed)
    module = sequence_model_maker(name, vocabulary_size=LETTERS.size, **OPTIONS)().to(dtype)
    save_language_model(
        folder,
        architecture=name,
        options=OPTIONS,
        state=module.state_dict(),
        vocabulary=LETTERS,
    )
    return LanguageModel(module, LETTERS).start([0, 1])[0]


def describe(folder, **changes):
    about = json.loads((folder / "remnant.json").read_text())
    (folder / "remnant.json").write_text(json.dumps(about | changes))


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_written_comes_back(name, dtype, tmp_path):
    expected = write(tmp_path / "deep" / "model", name, dtype=dtype)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    model = load_language_model(tmp_path / "deep" / "model")
    assert torch.equal(before, torch.get_rng_state())
    assert model.vocabulary == LETTERS
    assert model.dtype == dtype
    assert torch.equal(model.start([0, 1])[0], expected)
    assert sorted(os.listdir(tmp_path / "deep" / "model")) == ["model.safetensors", "remnant.json"]
    assert os.listdir(tmp_path / "deep") == ["model"]


def test_an_empty_folder_is_filled_and_a_model_of_ours_replaced(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    first = write(folder, seed=0)
    second = write(folder, seed=1)
    found = load_language_model(str(folder)).start([0, 1])[0]
    assert torch.equal(found, second)
    assert not torch.equal(found, first)
    assert os.listdir(tmp_path) == ["model"]


def test_what_is_not_ours_is_left_alone(tmp_path):
    for folder, file in (("notes", "diary.txt"), ("config", "remnant.json"), ("both", "extra")):
        (tmp_path / folder).mkdir()
        if folder == "both":
            write(tmp_path / folder)
        (tmp_path / folder / file).write_text("{}")
        with pytest.raises(RecordError, match=rf"{folder}.*({file}|does not describe a model)"):
            write(tmp_path / folder)
        assert (tmp_path / folder / file).read_text() == "{}"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RecordError, match="is a file, not a folder"):
        write(tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == ["both", "config", "file", "notes"]


def test_a_failed_move_leaves_the_old_model(tmp_path, monkeypatch):
    expected = write(tmp_path / "model")
    replace = os.replace

    def refuse(source, target):
        if str(source).endswith("new"):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(RecordError, match="cannot be written: No space left on device"):
        write(tmp_path / "model", seed=1)
    monkeypatch.undo()
    assert torch.equal(load_language_model(tmp_path / "model").start([0, 1])[0], expected)
    assert os.listdir(tmp_path) == ["model"]


def test_what_could_not_be_loaded_is_not_written(tmp_path):
    state = sequence_model_maker("lstm", vocabulary_size=7, **OPTIONS)().state_dict()
    good = {
        "architecture": "lstm",
        "options": OPTIONS,
        "state": state,
        "vocabulary": LETTERS,
    }
    for changes, error, words in (
        ({"architecture": "rnn"}, PlanError, "model='rnn' is not one of"),
        ({"options": {"width": 8}}, PlanError, "has no option width"),
        ({"options": {"vocabulary_size": 8}}, PlanError, "has no option vocabulary_size"),
        ({"options": {"units": 9, "layers": 1}}, InvalidInput, "has shape .* instead of"),
        ({"vocabulary": Vocabulary.of_characters("ab")}, InvalidInput, "head.weight has shape"),
        ({"state": {}}, InvalidInput, "head.weight is missing|is missing"),
        ({"state": {**state, "more": torch.zeros(1)}}, InvalidInput, "more is not one of its"),
    ):
        with pytest.raises(error, match=words):
            save_language_model(tmp_path / "model", **{**good, **changes})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 2}, "is of format 2; this version reads format 1"),
        ({"architecture": "rnn"}, "model='rnn' is not one of"),
        ({"architecture": None}, "it has no architecture"),
        ({"options": {"units": 9, "layers": 1}}, "has shape"),
        ({"options": {"units": 10**6, "layers": 1}}, "has shape"),  # and takes no memory
        ({"options": {"units": 10**12, "layers": 1}}, "do not make a lstm: Storage size"),
        ({"options": {"units": "many"}}, "units='many' is not a whole number"),
        ({"options": [], "sha256": 3}, "it has no options, sha256"),
        ({"vocabulary": {"kind": "words"}}, "list of symbols"),
        ({"vocabulary": {"kind": "characters", "symbols": ["a", "a"]}}, "twice"),
        ({"sha256": "0"}, "its SHA-256 is another"),
    ],
)
def test_a_description_that_does_not_fit_is_told(changes, words, tmp_path):
    write(tmp_path)
    describe(tmp_path, **changes)
    with pytest.raises(RecordError, match=words):
        load_language_model(tmp_path)


def test_a_folder_without_a_model_is_told(tmp_path):
    with pytest.raises(RecordError, match=r"remnant.json is missing. Pass a folder"):
        load_language_model(tmp_path / "nowhere")
    (tmp_path / "remnant.json").write_text("[")
    with pytest.raises(RecordError, match="it is no JSON"):
        load_language_model(tmp_path)
    (tmp_path / "remnant.json").write_text("[]")
    with pytest.raises(RecordError, match="does not describe a model"):
        load_language_model(tmp_path)
    (tmp_path / "remnant.json").unlink()
    write(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(RecordError, match=r"model.safetensors is missing"):
        load_language_model(tmp_path)


def test_weights_that_are_damaged_are_told(tmp_path):
    write(tmp_path)
    file = tmp_path / "model.safetensors"
    whole = file.read_bytes()
    for broken in (whole[:-4], whole[:-1] + bytes([whole[-1] ^ 1]), b""):
        file.write_bytes(broken)
        with pytest.raises(RecordError, match=r"model.safetensors is damaged"):
            load_language_model(tmp_path)
    file.write_bytes(b"junk")
    describe(tmp_path, sha256=hashlib.sha256(b"junk").hexdigest())
    with pytest.raises(RecordError, match=r"model.safetensors is damaged"):
        load_language_model(tmp_path)
    save_file({"head.bias": torch.zeros(7)}, file)
    describe(tmp_path, sha256=hashlib.sha256(file.read_bytes()).hexdigest())
    with pytest.raises(RecordError, match="is missing"):
        load_language_model(tmp_path)
