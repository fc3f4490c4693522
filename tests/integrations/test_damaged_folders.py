"""Hugging Face folders with a fault in one field: they work, or give one sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from remnant.errors import InvalidInput, RemnantError
from remnant.integrations import load_sequence_model
from remnant.integrations.classifiers.asking import ask as ask_once
from remnant.integrations.classifiers.pretrained_images import load_image_model
from remnant.integrations.classifiers.text import load_text_model, read_text_rows, text_samples

BAD = [None, "x", -1, 0, 2**70, 1e308, True, [], {"a": [1]}, [[["x"]]], 7.5]
BROKEN = {
    "empty": b"",
    "cut short": b'{"model_type": "gp',
    "no object": b"[1, 2]",
    "null": b"null",
    "not UTF-8": b'{"model_type": "\xff\xfe"}',
    "nested": b'{"a":' * 100_000,
    "deep": b'{"a":' * 500 + b"1" + b"}" * 500,
    "not a number": b'{"model_type": "gpt2", "n_embd": NaN}',
}


def fields(found, place=()) -> Iterator[tuple]:
    """The places of all fields of an object, those of inner objects too; lists as a whole."""
    for name, value in found.items():
        yield (*place, name)
        if isinstance(value, dict) and name != "vocab":
            yield from fields(value, (*place, name))


def put(found, place, value):
    copied = json.loads(json.dumps(found))
    inner = copied
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return copied


def faults_of(file: Path, use, *, bad=BAD) -> list[str]:
    """Put every bad value into every field, and return what was raised and is not ours."""
    whole = file.read_bytes()
    found = json.loads(whole)
    mutations = {
        f"{place}={str(value)[:20]}": json.dumps(put(found, place, value)).encode()
        for place in fields(found)
        for value in bad
    }
    wrong = []
    for name, content in (mutations | BROKEN).items():
        file.write_bytes(content)
        try:
            use()
        except RemnantError as fault:
            if "\n" in str(fault):
                wrong.append(f"{name}: several lines")
        except Exception as fault:
            wrong.append(f"{name}: {type(fault).__name__}: {str(fault)[:80]}")
    file.write_bytes(whole)
    use()
    return wrong


def ask(folder):
    model = load_sequence_model(folder)
    ids = model.encode("the 1")
    log_probs, state = model.start(ids)
    model.step(model.take(state, torch.tensor([0, 0])), torch.tensor([3, 4]))
    model.start([])
    assert len(model.tokens) <= 60
    assert log_probs.shape[0] == 1


FILES = ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]


@pytest.mark.parametrize("name", FILES)
def test_a_bad_value_in_any_field_is_one_sentence(name, save):
    folder = save("gpt2")
    assert faults_of(folder / name, lambda: ask(folder)) == []


@pytest.mark.parametrize("name", ["special_tokens_map.json", "added_tokens.json", "vocab.json"])
def test_files_that_older_tokenizers_have_are_checked_too(name, save):
    folder = save("gpt2")
    content = {"bos_token": "<s>"} if name.startswith("special") else {"<s>": 1}
    (folder / name).write_text(json.dumps(content))
    assert faults_of(folder / name, lambda: ask(folder)) == []


@pytest.mark.parametrize(("kind", "source"), [("llama", None), ("bart", "the 2"), ("t5", "the 2")])
def test_other_architectures_give_one_sentence_too(kind, source, save):
    folder = save(kind)
    use = partial(load_sequence_model, folder, source=source)
    assert faults_of(folder / "config.json", use, bad=["x", -1, 2**70, {"a": [1]}]) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_layer", 2**70),
        ("n_layer", 10**5),
        ("num_labels", 10**9),
        ("n_positions", 2**40),
        ("n_positions", 2**24),
        ("vocab_size", 2**34),
        ("n_embd", 2**22),
        ("n_inner", 2**30),
    ],
)
def test_a_size_that_the_weights_do_not_have_is_refused_before_memory_is_given_to_it(
    name, value, save
):
    folder = save("gpt2")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {name: value}))
    with pytest.raises(InvalidInput) as fault:
        load_sequence_model(folder)
    assert "config.json" in str(fault.value)


@pytest.fixture
def sharded(save):
    """A folder whose weights are in two files, which an index names."""
    folder = save("gpt2")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    parts = {"a.safetensors": names[:5], "b.safetensors": names[5:]}
    for file, some in parts.items():
        save_file({n: weights[n] for n in some}, folder / file, metadata={"format": "pt"})
    where = {name: file for file, some in parts.items() for name in some}
    index = {"metadata": {"total_size": 1}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_a_bad_value_in_an_index_is_one_sentence(sharded):
    index = sharded / "model.safetensors.index.json"
    assert faults_of(index, lambda: ask(sharded), bad=[None, "x", 3, [], {"a": 1}]) == []


@pytest.mark.parametrize("name", ["x.bin", "../x.safetensors", "gone.safetensors", ["x"], "x"])
def test_an_index_that_names_anything_but_safetensors_of_the_folder_is_refused(sharded, name):
    index = json.loads((sharded / "model.safetensors.index.json").read_text())
    some = next(iter(index["weight_map"]))
    index["weight_map"][some] = name
    (sharded / "model.safetensors.index.json").write_text(json.dumps(index))
    torch.save({some: torch.zeros(1)}, sharded / "x.bin")
    shutil.copy(sharded / "a.safetensors", sharded.parent / "x.safetensors")
    with pytest.raises(InvalidInput, match=r"names a file .* Pickled weights are never read"):
        load_sequence_model(sharded)


@pytest.mark.parametrize("name", ["adapter_model.bin", "x.bin", "../x.safetensors", 5])
def test_a_configuration_that_names_other_weights_is_refused(save, name):
    folder = save("gpt2")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"transformers_weights": name}))
    torch.save({}, folder / "adapter_model.bin")
    with pytest.raises(InvalidInput, match="transformers_weights names no"):
        load_sequence_model(folder)


def test_an_adapter_beside_the_model_is_refused(save):
    folder = save("gpt2")
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(InvalidInput, match="holds an adapter beside the model"):
        load_sequence_model(folder)


def vit(folder):
    config = transformers.ViTConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        image_size=8,
        patch_size=4,
        num_labels=3,
    )
    transformers.ViTForImageClassification(config).save_pretrained(folder)
    about = {"size": {"height": 8, "width": 8}, "image_mean": [0.5], "image_std": [0.5]}
    (folder / "preprocessor_config.json").write_text(json.dumps({**about, "do_normalize": True}))


@pytest.mark.parametrize("name", ["config.json", "preprocessor_config.json"])
def test_image_classifiers_give_one_sentence_too(name, tmp_path):
    vit(tmp_path)

    def use():
        read = load_image_model(tmp_path)
        shape = read.shape or (3, 8, 8)
        ask_once(read.model, torch.rand(2, *shape), torch.tensor([0, 1]))

    bad = BAD if name.startswith("pre") else ["x", -1, 2**70, None, {"a": [1]}]
    assert faults_of(tmp_path / name, use, bad=bad) == []


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_text_classifiers_give_one_sentence_too(name, tmp_path, make_tokenizer):
    config = transformers.BertConfig(
        vocab_size=60,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=32,
        num_labels=2,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    data = tmp_path / "rows.jsonl"
    data.write_text('{"text": "the 1", "label": 0}\n{"text": "and 2", "label": 1}\n')

    def use():
        rows = read_text_rows(data)
        model, samples = load_text_model(tmp_path, rows), text_samples(tmp_path, rows)
        ask_once(model, samples.inputs, torch.from_numpy(samples.labels))

    assert faults_of(tmp_path / name, use, bad=["x", -1, 2**70, None, {"a": [1]}]) == []
