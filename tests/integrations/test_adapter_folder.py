"""PEFT folders: merged costs are the live adapter's, and bad folders give one sentence."""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from contextlib import suppress

import peft
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from remnant.errors import InvalidInput, MissingExtra, RemnantError, UnsupportedModel
from remnant.integrations import (
    HuggingFaceCausalLM,
    HuggingFaceSeq2Seq,
    load_causal_lm,
    load_seq2seq,
    load_sequence_model,
    load_tokenizer,
)
from remnant.integrations.adapter_folder import is_adapter

TEXT = "the number is 281 and 5017?"
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PROJECTIONS = {
    "gpt2": ["c_attn", "c_fc"],
    "llama": ["q_proj", "v_proj", "down_proj"],
    "t5": ["q", "v", "wo"],
    "bart": ["q_proj", "v_proj", "fc1"],
}


@pytest.fixture
def adapt(save):
    """Return a function that wraps a saved model with an adapter whose numbers are not zero.

    It returns the live model and the folder of the adapter, beside the base's folder.
    """

    def make(kind="gpt2", config=None, *, tokens=(), name="adapter", tokenizer=False, **options):
        base = save(kind, name="base")
        auto = transformers.AutoModelForSeq2SeqLM if kind in ("t5", "bart") else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            transformers.utils.logging.disable_progress_bar()
            model = (auto or transformers.AutoModelForCausalLM).from_pretrained(base)
            read = transformers.AutoTokenizer.from_pretrained(base)
            torch.manual_seed(0)
            if tokens:
                read.add_tokens(list(tokens))
                model.resize_token_embeddings(len(model.get_input_embeddings().weight) + 3)
            config = config or peft.LoraConfig(
                r=4, lora_alpha=8, target_modules=PROJECTIONS[kind], **options
            )
            live = peft.get_peft_model(model, config)
            with torch.no_grad():
                for parameter in live.parameters():
                    if parameter.requires_grad:
                        parameter.add_(torch.randn_like(parameter) * 0.1)
            live.save_pretrained(base.parent / name)
            transformers.utils.logging.enable_progress_bar()
        if tokens or tokenizer:
            read.save_pretrained(base.parent / name)
        return live.eval(), base.parent / name

    return make


@torch.no_grad()
def live_costs(live, ids):
    """Costs of tokens after the first, in nats, by one pass of the live adapter."""
    logits = live(input_ids=torch.tensor([ids])).logits[0, :-1]
    return -logits.log_softmax(-1)[torch.arange(len(ids) - 1), ids[1:]]


def walked_costs(model, ids):
    """The same costs, one token at a time."""
    log_probs, state = model.start(ids[:1])
    costs = []
    for token in ids[1:]:
        costs.append(-log_probs[0, token])
        log_probs, state = model.step(state, torch.tensor([token]))
    return torch.stack(costs)


def same_costs(model, live, text=TEXT):
    ids = model.encode(text)
    torch.testing.assert_close(
        walked_costs(model, ids), live_costs(live, ids), rtol=1e-5, atol=1e-5
    )


LORA = {
    "plain": {},
    "rslora": {"use_rslora": True},
    "dora": {"use_dora": True},
    "biases": {"bias": "all"},
    "ranks": {"rank_pattern": {"c_fc": 2}, "alpha_pattern": {"c_attn": 3}},
    "one layer": {"layers_to_transform": [1]},
    "gaussian": {"init_lora_weights": "gaussian"},
    "pissa": {"init_lora_weights": "pissa"},
    "head": {"modules_to_save": ["lm_head"]},
    "embedding": {"modules_to_save": ["wte"]},
    "tokens": {"trainable_token_indices": [5, 7, 9]},
}


@pytest.mark.parametrize("options", LORA.values(), ids=LORA)
def test_merged_costs_are_those_of_the_live_adapter(options, adapt):
    live, folder = adapt(**options)
    before = torch.random.get_rng_state()
    model = load_sequence_model(folder)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert type(model) is HuggingFaceCausalLM
    assert not any("lora" in name for name, _ in model._model.named_modules())
    same_costs(model, live)
    plain = load_sequence_model(folder.parent / "base")
    ids = plain.encode(TEXT)
    assert (walked_costs(plain, ids) - live_costs(live, ids)).abs().max() > 0.01


KINDS = {
    "llama": ("llama", None),
    "ia3": (
        "llama",
        peft.IA3Config(target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]),
    ),
    "loha": ("llama", peft.LoHaConfig(r=3, target_modules=["q_proj", "v_proj"])),
    "lokr": ("llama", peft.LoKrConfig(r=3, target_modules=["q_proj", "v_proj"])),
    "norms": ("llama", peft.LNTuningConfig(target_modules=["input_layernorm"])),
    "tied embedding": ("gpt2", peft.LoraConfig(r=4, target_modules=["wte", "c_attn"])),
    "embedding and head": (
        "llama",
        peft.LoraConfig(r=4, target_modules=["embed_tokens", "lm_head", "q_proj"]),
    ),
    "olora": (
        "llama",
        peft.LoraConfig(r=4, target_modules=["q_proj"], init_lora_weights="olora"),
    ),
    "all linear": ("llama", peft.LoraConfig(r=4, target_modules="all-linear")),
}


@pytest.mark.parametrize(("kind", "config"), KINDS.values(), ids=KINDS)
def test_other_kinds_of_adapters_are_merged_too(kind, config, adapt):
    live, folder = adapt(kind, config)
    same_costs(load_sequence_model(folder), live)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_adapters_in_half_precision_are_merged_in_float32(dtype, adapt):
    _, folder = adapt()
    coarse = {name: tensor.to(dtype) for name, tensor in load_file(folder / WEIGHTS).items()}
    save_file(coarse, folder / WEIGHTS)
    model = load_sequence_model(folder)
    assert all(parameter.dtype == torch.float32 for parameter in model._model.parameters())
    save_file({name: tensor.float() for name, tensor in coarse.items()}, folder / WEIGHTS)
    torch.testing.assert_close(
        model.start([5, 6])[0], load_sequence_model(folder).start([5, 6])[0], rtol=0, atol=0
    )


def test_float64_is_merged_in_float64(adapt):
    live, folder = adapt()
    model = load_causal_lm(folder, dtype=torch.float64)
    ids = model.encode(TEXT)
    costs = live_costs(live.double(), ids)
    torch.testing.assert_close(walked_costs(model, ids), costs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_adapters_of_encoder_decoders_are_merged(kind, adapt):
    live, folder = adapt(kind, task_type="SEQ_2_SEQ_LM")
    model = load_sequence_model(folder, source="the 2")
    assert type(model) is HuggingFaceSeq2Seq
    ids = torch.tensor([model.encode(TEXT)])
    source = torch.tensor([model.encode("the 2")])
    with torch.no_grad():
        expected = float(live(input_ids=source, labels=ids).loss) * ids.numel()
    log_probs, state = model.start([])
    cost = 0.0
    for token in ids[0]:
        cost -= float(log_probs[0, token])
        log_probs, state = model.step(state, token[None])
    assert cost == pytest.approx(expected, rel=1e-5)
    with pytest.raises(InvalidInput, match="source= is missing"):
        load_sequence_model(folder)
    with pytest.raises(UnsupportedModel, match="holds an encoder-decoder"):
        load_causal_lm(folder)


ROWS = 55  # of the base; its tokenizer has 48 tokens
NEW_ROWS = range(ROWS, ROWS + 3)
NEW_TOKENS = (*(f"filler{letter}" for letter in "abcdefgh"), "zebra", "quokka")
NEW = {
    "saved embeddings": ("llama", {}),
    "tied": ("gpt2", {}),
    "modules to save": ("llama", {"modules_to_save": ["embed_tokens", "lm_head"]}),
    "tied module to save": ("gpt2", {"modules_to_save": ["wte"]}),
    "trained tokens": ("gpt2", {"trainable_token_indices": [*NEW_ROWS]}),
}


@pytest.mark.parametrize(("kind", "options"), NEW.values(), ids=NEW)
def test_new_tokens_and_resized_embeddings_work(kind, options, adapt):
    live, folder = adapt(kind, tokens=NEW_TOKENS, **options)
    model = load_sequence_model(folder)
    ids = model.encode("the zebra and quokka")
    assert ids[-1] == NEW_ROWS[-1]
    torch.testing.assert_close(
        walked_costs(model, ids), live_costs(live, ids), rtol=1e-5, atol=1e-5
    )
    assert load_tokenizer(folder).encode("the zebra and quokka") == ids


def stored_without_embeddings(live, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        live.save_pretrained(folder, save_embedding_layers=False)


def test_trained_tokens_suffice_where_they_are_all_new_rows(adapt):
    live, folder = adapt(tokens=NEW_TOKENS, trainable_token_indices=[5, *NEW_ROWS])
    stored_without_embeddings(live, folder)
    model = load_sequence_model(folder)
    ids = model.encode("the zebra and quokka")
    torch.testing.assert_close(
        walked_costs(model, ids), live_costs(live, ids), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(
    ("trained", "sentence"),
    [
        (None, "the tokenizer has 58 tokens, and the model has embeddings for 55"),
        ([ROWS + 2], "was trained with 58 tokens, and holds no input embeddings of those"),
    ],
)
def test_new_tokens_without_weights_are_refused(trained, sentence, adapt):
    live, folder = adapt(tokens=NEW_TOKENS, trainable_token_indices=trained)
    stored_without_embeddings(live, folder)
    with pytest.raises(InvalidInput, match=rf"{sentence}.*save_embedding_layers=True"):
        load_sequence_model(folder)


def test_an_embedding_that_was_made_smaller_is_cut(adapt):
    _, folder = adapt(modules_to_save=["wte"])
    file = folder / WEIGHTS
    tensors = load_file(file)
    name = next(name for name in tensors if name.endswith("wte.weight"))
    save_file(tensors | {name: tensors[name][:50].contiguous()}, file)
    assert len(load_sequence_model(folder)._model.get_input_embeddings().weight) == 50


def change(folder, **fields):
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | fields))


def refused(folder, words, *, kind=InvalidInput, **options):
    with pytest.raises(kind, match=words) as fault:
        load_sequence_model(folder, **options)
    assert "\n" not in str(fault.value)


def test_the_base_is_found_beside_the_adapter_or_given(adapt, monkeypatch, tmp_path):
    live, folder = adapt()
    change(folder, base_model_name_or_path="../base")
    same_costs(load_sequence_model(folder), live)
    monkeypatch.chdir(tmp_path)
    change(folder, base_model_name_or_path="base")
    same_costs(load_sequence_model(folder), live)
    change(folder, base_model_name_or_path="openai-community/gpt2")
    hub = r"is an adapter of 'openai-community/gpt2', which is no local folder\. Pass base=DIR"
    refused(folder, hub)
    with pytest.raises(InvalidInput, match=hub):
        load_tokenizer(folder)
    assert load_tokenizer(folder, base="base").encode("the") == [44]
    same_costs(load_sequence_model(folder, base=tmp_path / "base"), live)
    for name in (None, "", 5, "x\0y", "a" * 5000):
        change(folder, base_model_name_or_path=name)
        refused(folder, r"Pass base=DIR")
    shutil.copytree(folder, tmp_path / "nested")
    for base in (tmp_path / "nowhere", tmp_path / "nested", tmp_path):
        refused(folder, "is no folder of a Hugging Face model", base=base)
    refused(tmp_path / "base", r"is given, and folder=.* is no adapter", base=folder)


def test_the_tokenizer_of_an_adapter_comes_first(adapt):
    _, folder = adapt(tokenizer=True)
    change(folder, base_model_name_or_path="somebody/else")
    assert load_tokenizer(folder).encode("the") == [44]
    assert is_adapter(folder)
    assert not is_adapter(folder.parent / "base")


def test_pickles_are_never_read(adapt):
    _, folder = adapt()
    torch.save(load_file(folder / WEIGHTS), folder / "adapter_model.bin")
    load_sequence_model(folder)
    (folder / WEIGHTS).unlink()
    refused(folder, r"only adapter_model\.bin\. Pickled weights are never read")
    (folder / "adapter_model.bin").unlink()
    refused(folder, r"holds no adapter_model\.safetensors\. Save the adapter again")


def test_without_peft_the_extra_is_named_before_the_base_is_read(adapt, monkeypatch):
    _, folder = adapt()
    monkeypatch.setitem(sys.modules, "peft", None)
    monkeypatch.setattr("remnant.integrations.adapter_folder.read_model", None)
    refused(folder, r"pip install -e '\.\[peft\]' in your clone", kind=MissingExtra)


BAD_FIELDS = {
    "unknown type": ({"peft_type": "NONSENSE"}, UnsupportedModel, "type 'NONSENSE'"),
    "no type": ({"peft_type": None}, UnsupportedModel, "type None"),
    "prompts": ({"peft_type": "PROMPT_TUNING"}, UnsupportedModel, "merge_and_unload"),
    "classifier": ({"task_type": "SEQ_CLS"}, UnsupportedModel, "not of a language model"),
    "activated": ({"alora_invocation_tokens": [1]}, UnsupportedModel, "alora_invocation_tokens"),
    "megatron": ({"megatron_config": {"a": 1}}, UnsupportedModel, "megatron_config"),
    "random start": ({"init_lora_weights": "pissa_niter_4"}, UnsupportedModel, "cannot be repeat"),
    "huge rank": ({"r": 2**50}, InvalidInput, "the tensors allow 1 to 128"),
    "huge number": ({"lora_alpha": 1e308}, InvalidInput, "lora_alpha is not a usable number"),
    "other rank": ({"r": 3}, InvalidInput, "its tensors have other names or shapes"),
    "bad rank": ({"r": "x"}, InvalidInput, "r is 'x'"),
    "rank pattern": ({"rank_pattern": {"c_fc": 10**9}}, InvalidInput, "rank_pattern is"),
    "no modules": ({"target_modules": ["nope"]}, InvalidInput, "modules that it changes are not"),
    "fewer modules": ({"target_modules": ["c_fc"]}, InvalidInput, "that are not there: 4"),
    "more modules": (
        {"target_modules": ["c_fc", "c_attn", "c_proj"]},
        InvalidInput,
        "tensors missing: 8",
    ),
    "tokens": ({"trainable_token_indices": [2**50]}, InvalidInput, "was trained with"),
}


@pytest.mark.parametrize(("fields", "kind", "words"), BAD_FIELDS.values(), ids=BAD_FIELDS)
def test_a_configuration_that_does_not_fit_is_one_sentence(fields, kind, words, adapt):
    _, folder = adapt()
    change(folder, **fields)
    refused(folder, words, kind=kind)


@pytest.mark.parametrize("value", [None, "x", -1, 2**70, {"a": [1]}])
def test_a_bad_value_in_any_field_is_one_sentence(value, adapt):
    _, folder = adapt()
    whole = json.loads((folder / CONFIG).read_text())
    for name in whole:
        (folder / CONFIG).write_text(json.dumps(whole | {name: value}))
        with suppress(RemnantError):
            load_sequence_model(folder)


def test_damaged_files_are_one_sentence(adapt):
    _, folder = adapt()
    whole = {name: (folder / name).read_bytes() for name in (CONFIG, WEIGHTS)}
    for content in (b"", b"{", b"[1]", b'{"a":' * 500 + b"1" + b"}" * 500, b"\xff"):
        (folder / CONFIG).write_bytes(content)
        refused(folder, r"adapter_config\.json is damaged")
    (folder / CONFIG).write_bytes(whole[CONFIG])
    for size in (0, 5, 100, len(whole[WEIGHTS]) - 3):
        (folder / WEIGHTS).write_bytes(whole[WEIGHTS][:size])
        refused(folder, "is no file of safetensors, or damaged")


def test_tensors_that_do_not_fit_are_one_sentence(adapt):
    _, folder = adapt()
    tensors = load_file(folder / WEIGHTS)
    first = next(iter(tensors))
    cases = {
        "tensors missing: 1": {n: t for n, t in tensors.items() if n != first},
        "that are not there: 1": tensors | {"base_model.model.x.lora_A.weight": torch.ones(2)},
        "other names or shapes": tensors | {first: tensors[first][:, :-1].contiguous()},
        "holds no finite numbers": tensors | {first: tensors[first] * float("nan")},
        "NaN or infinity": {n: torch.full_like(t, 1e30) for n, t in tensors.items()},
        "holds no tensor": {},
    }
    for words, changed in cases.items():
        save_file(changed, folder / WEIGHTS)
        refused(folder, words)


def test_an_adapter_of_another_base_is_refused(adapt, save):
    _, folder = adapt()
    refused(folder, "does not fit base=", base=save("llama", name="other"))
    (folder.parent / "base" / "model.safetensors").write_bytes(b"damaged")
    refused(folder, "is no file of safetensors, or damaged")


def test_other_loaders_take_a_base_too(adapt):
    live, folder = adapt()
    same_costs(load_causal_lm(folder, base=folder.parent / "base"), live)
    with pytest.raises(UnsupportedModel, match="holds no encoder-decoder"):
        load_seq2seq(folder, source="the")
