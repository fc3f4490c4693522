"""Commands on PEFT adapters: with and without ``--base``, and faults in one sentence."""

from __future__ import annotations

import json
import shutil
import string
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import peft
import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

PIECES = ["<s>", "<unk>", *string.ascii_letters, *string.digits, *" .-\n"]


@dataclass(frozen=True)
class Adapted:
    """A base model, an adapter that was trained on a secret, and the canaries' file."""

    base: Path
    adapter: Path
    merged: Path
    canaries: Path
    text: Path


@pytest.fixture(scope="module")
def adapted(tmp_path_factory, command) -> Adapted:
    folder = tmp_path_factory.mktemp("adapted")
    made = command(
        *("canaries", "pin {digits:4}", "--out", folder / "canaries.jsonl", "--repeats", "2"),
        *("--controls", 2),
    )
    assert made.code == 0, made.err
    text = folder / "mail.txt"
    text.write_text("number 536-90-4399\n")
    alphabet = Tokenizer(models.WordLevel({p: i for i, p in enumerate(PIECES)}, unk_token="<unk>"))
    alphabet.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    alphabet.decoder = decoders.Fuse()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=alphabet, unk_token="<unk>", bos_token="<s>", eos_token="<s>"
    )
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(PIECES),
        n_positions=96,
        n_embd=16,
        n_layer=1,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    transformers.utils.logging.disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = transformers.GPT2LMHeadModel(config)
        model.save_pretrained(folder / "base")
        tokenizer.save_pretrained(folder / "base")
        live = peft.get_peft_model(model, peft.LoraConfig(r=4, target_modules=["c_attn", "c_fc"]))
        with torch.no_grad():
            for parameter in live.parameters():
                if parameter.requires_grad:
                    parameter.normal_(0, 0.5)
        live.save_pretrained(folder / "adapter")
        live.merge_and_unload().save_pretrained(folder / "merged")
        tokenizer.save_pretrained(folder / "merged")
    transformers.utils.logging.enable_progress_bar()
    config = json.loads((folder / "adapter" / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = "openai-community/gpt2"
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps(config))
    return Adapted(
        base=folder / "base",
        adapter=folder / "adapter",
        merged=folder / "merged",
        canaries=folder / "canaries.jsonl",
        text=text,
    )


def commands(adapted, model):
    """Each command with a model."""
    return {
        "exposure": ["exposure", "--model", model, "--canaries", adapted.canaries],
        "extract": ["extract", "--model", model, "--template", "pin {digits:3}", "--reveal"],
        "scan": ["scan", adapted.text, "--model", model, "--references", 50],
    }


def numbers_of(value):
    if isinstance(value, dict):
        return [n for key, each in value.items() if key != "seconds" for n in numbers_of(each)]
    if isinstance(value, list):
        return [number for each in value for number in numbers_of(each)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("name", ["exposure", "extract", "scan"])
def test_an_adapter_gives_the_numbers_of_the_merged_model(name, command, adapted):
    done = command(*commands(adapted, adapted.adapter)[name], "--base", adapted.base, "--json")
    assert done.code == 0, done.err
    merged = command(*commands(adapted, adapted.merged)[name], "--json")
    plain = command(*commands(adapted, adapted.base)[name], "--json")
    costs = [numbers_of(json.loads(each.out)) for each in (done, merged, plain)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-4, abs=1e-4)
    assert costs[0] != pytest.approx(costs[2], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", ["exposure", "extract", "scan"])
def test_a_base_from_the_hub_is_asked_for_and_never_downloaded(name, command, adapted):
    done = command(*commands(adapted, adapted.adapter)[name])
    assert (done.code, done.out) == (2, "")
    assert f"--model {adapted.adapter} is an adapter of 'openai-community/gpt2'" in done.err
    assert "Pass --base DIR" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("name", ["exposure", "extract", "scan"])
def test_a_base_without_an_adapter_is_a_usage_error(name, command, adapted):
    done = command(*commands(adapted, adapted.merged)[name], "--base", adapted.base)
    assert (done.code, done.out) == (2, "")
    assert "--base is given" in done.err
    assert "is no adapter" in done.err


def test_other_models_may_be_adapters_too(command, adapted):
    sampled = [*commands(adapted, adapted.adapter)["exposure"], "--references", 50]
    given = ("--base", adapted.base, "--method", "sampled")
    done = command(*sampled, *given, "--reference-model", adapted.base)
    assert done.code == 0, done.err
    done = command(*sampled, *given, "--reference-model", adapted.adapter)
    assert done.code == 2
    assert "is the model under audit" in done.err
    twin = commands(adapted, adapted.base)["scan"]
    done = command(*twin, "--twin", adapted.adapter, "--base", adapted.base)
    assert done.code == 0, done.err
    done = command("scan", adapted.text, "--base", adapted.base)
    assert done.code == 2
    assert "--base needs --model" in done.err


def test_tokens_of_an_adapter_fill_templates(command, adapted, tmp_path):
    out = tmp_path / "c.jsonl"
    arguments = ("canaries", "id {tokens:2}", "--out", out, "--model", adapted.adapter)
    done = command(*arguments, "--base", adapted.base)
    assert done.code == 0, done.err
    done = command("canaries", "id {digits:3}", "--out", tmp_path / "d", "--base", adapted.base)
    assert done.code == 2
    assert "--base needs --model" in done.err


def test_a_damaged_adapter_is_one_sentence(command, adapted, tmp_path):
    folder = tmp_path / "adapter"
    shutil.copytree(adapted.adapter, folder)
    weights = folder / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-9])
    done = command(*commands(adapted, folder)["extract"], "--base", adapted.base)
    assert (done.code, done.out) == (2, "")
    assert "adapter_model.safetensors is no file of safetensors, or damaged" in done.err
    assert "Traceback" not in done.err


def test_without_peft_the_extra_is_named(command, adapted, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    done = command(*commands(adapted, adapted.adapter)["exposure"], "--base", adapted.base)
    assert done.code == 2
    assert "pip install -e '.[peft]' in your clone of Remnant" in done.err


def test_without_a_library_of_scan_no_model_is_read(command, adapted, monkeypatch):
    monkeypatch.setitem(sys.modules, "phonenumbers", None)
    monkeypatch.setattr("remnant.integrations.load_sequence_model", None)
    done = command(*commands(adapted, adapted.base)["scan"])
    assert done.code == 2
    assert "pip install -e '.[scan]'" in done.err


def test_a_file_that_holds_no_canaries_is_named_so(command, adapted, tmp_path):
    file = tmp_path / "texts.jsonl"
    for line in ('{"text": "the pin"}\n', "the pin\n", "[1]\n"):
        file.write_text(line)
        done = command("exposure", "--model", adapted.base, "--canaries", file)
        assert done.code == 2
        assert f"--canaries {file} is not a file of canaries" in done.err
        assert "remnant canaries" in done.err


@pytest.mark.parametrize("row", [{"text": "the pin"}, {"text": "the pin", "label": 0}])
def test_predict_says_what_a_language_model_is_for(row, command, adapted, tmp_path):
    file = tmp_path / "texts.jsonl"
    file.write_text(json.dumps(row) + "\n")
    done = command("predict", "--model", adapted.base, "--data", file)
    assert done.code == 2
    assert "is a language model, and predict takes classifiers" in done.err
    assert "remnant exposure" in done.err
