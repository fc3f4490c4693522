"""Folders: local files only, safetensors only, no foreign code, no word on the terminal."""

from __future__ import annotations

import contextlib
import json
import socket
import sys

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from remnant.errors import InvalidInput, MissingExtra, UnsupportedModel
from remnant.integrations import load_causal_lm, load_tokenizer
from remnant.integrations.pretrained import quiet


def test_nothing_is_fetched_and_nothing_is_said(save, monkeypatch, capfd):
    folder = save("gpt2")
    capfd.readouterr()

    def refuse(*args, **options):
        raise AssertionError("a network was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    model = load_causal_lm(folder)
    model.step(model.start(model.encode("the "))[1], torch.tensor([5]))
    assert model.tokens
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("bars", [True, False])
def test_the_librarys_voice_is_put_back(bars):
    logging = transformers.utils.logging
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    try:
        logging.set_verbosity_info()
        (logging.enable_progress_bar if bars else logging.disable_progress_bar)()
        with contextlib.suppress(KeyError), quiet():
            assert logging.get_verbosity() == logging.ERROR
            assert not logging.is_progress_bar_enabled()
            raise KeyError
        assert logging.get_verbosity() == logging.INFO
        assert logging.is_progress_bar_enabled() == bars
    finally:
        logging.set_verbosity(before[0])
        (logging.enable_progress_bar if before[1] else logging.disable_progress_bar)()


def test_a_missing_folder_and_a_foreign_one_are_told_apart(tmp_path):
    with pytest.raises(InvalidInput, match=r"nowhere' is not a folder.*nothing is downloaded"):
        load_causal_lm(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match=r"holds no config\.json"):
        load_causal_lm(tmp_path)


def test_pickled_weights_are_never_read(save):
    folder = save("gpt2")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InvalidInput, match=r"no weights as safetensors, only pytorch_model\.bin"):
        load_causal_lm(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(InvalidInput, match=r"no weights as safetensors\. Write them"):
        load_causal_lm(folder)


def test_code_in_the_folder_is_never_run(save):
    folder = save("gpt2")
    config = json.loads((folder / "config.json").read_text())
    del config["architectures"]
    config |= {
        "model_type": "custom",
        "auto_map": {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    mark = folder / "ran"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()")
    with pytest.raises(InvalidInput, match="the configuration cannot be read"):
        load_causal_lm(folder)
    assert not mark.exists()


def test_weights_that_are_missing_are_not_made_up(save):
    folder = save("llama")
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InvalidInput, match="lacks 1 of the model's tensors"):
        load_causal_lm(folder)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("config.json", "is damaged: it is not JSON in UTF-8. Save it again"),
        ("model.safetensors", "is no file of safetensors, or damaged. Save it again"),
        ("tokenizer.json", "is damaged: it is not JSON in UTF-8. Write it again"),
    ],
)
def test_damaged_files_are_told_in_words_of_ours_with_advice(name, advice, save):
    folder = save("gpt2")
    (folder / name).write_bytes((folder / name).read_bytes()[:40])
    with pytest.raises(InvalidInput, match=f"{name} is ") as fault:
        load_causal_lm(folder)
    assert "\n" not in str(fault.value)
    assert f"{folder / name} {advice}" in str(fault.value)
    assert "Error" not in str(fault.value)
    assert fault.value.__cause__ is not None


def test_weights_of_another_shape_are_refused(save):
    folder = save("gpt2")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"n_embd": 16}))
    with pytest.raises(InvalidInput, match="the model cannot be read"):
        load_causal_lm(folder)


def test_a_device_that_is_not_there_and_a_coarse_type_are_refused(save):
    folder = save("gpt2")
    with pytest.raises(
        InvalidInput, match=r"device='nonsense' cannot be used\. Pass device='cpu' or device='cuda'"
    ):
        load_causal_lm(folder, device="nonsense")
    with pytest.raises(UnsupportedModel, match="weights are float16"):
        load_causal_lm(folder, dtype=torch.float16)


def test_without_the_library_the_extra_is_named(save, monkeypatch):
    folder = save("gpt2")
    monkeypatch.setitem(sys.modules, "transformers", None)
    for load in (load_causal_lm, load_tokenizer):
        with pytest.raises(MissingExtra, match=r"pip install -e '\.\[hf\]' in your clone"):
            load(folder)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_in_half_precision_are_widened_when_they_are_read(dtype, save):
    folder = save("gpt2")
    halves = {n: t.to(dtype) for n, t in load_file(folder / "model.safetensors").items()}
    save_file(halves, folder / "model.safetensors", metadata={"format": "pt"})
    model = load_causal_lm(folder)
    assert model.start([5])[0].dtype == torch.float32
