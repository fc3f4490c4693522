"""Fast scoring gives the costs of the plain forward, and leaves the model alone."""

from __future__ import annotations

import copy
import math

import numpy as np
import peft
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from remnant.errors import InvalidInput
from remnant.integrations.training import scoring
from remnant.integrations.training.common_prefix_logits import FastForward, can_be_fast
from remnant.integrations.training.merged_view import merged_view
from remnant.integrations.training.processes import Processes
from remnant.integrations.training.scoring import ScoredRow, Shortcuts, score_rows

VOCABULARY = 40


def gpt2(seed=0):
    torch.manual_seed(seed)
    sizes = {"n_positions": 96, "n_embd": 32, "n_layer": 2, "n_head": 2, "initializer_range": 0.3}
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, **sizes))


def llama(seed=0):
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            initializer_range=0.3,
        )
    )


def adapted(model, **given):
    torch.manual_seed(1)
    targets = ["c_attn", "c_fc"] if isinstance(model, GPT2LMHeadModel) else ["q_proj", "up_proj"]
    settings = {"r": 4, "target_modules": targets, "lora_dropout": 0.1} | given
    made = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **settings))
    for name, weight in made.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.2)
    return made


def lora(**given):
    return adapted(gpt2(), fan_in_fan_out=True, **given)


MODELS = {
    "gpt2": gpt2,
    "llama": llama,
    "lora": lora,
    "dora": lambda: adapted(llama(), use_dora=True),
    "lora-llama": lambda: adapted(llama()),
}


def rows(count=30, *, beginning=12, lengths=(3, 5), seed=0):
    rng = np.random.default_rng(seed)
    shared = tuple(rng.integers(0, VOCABULARY, beginning).tolist())
    made = []
    for number in range(count):
        tail = rng.integers(0, VOCABULARY, lengths[number % len(lengths)]).tolist()
        made.append(ScoredRow((*shared, *tail), beginning))
    return made


def by_hand(model, made):
    """The definition: every row alone, through the whole forward, in float32."""
    model = copy.deepcopy(model).eval()
    costs = []
    with torch.no_grad():
        for row in made:
            logits = model(input_ids=torch.tensor([row.ids])).logits[0].double()
            bits = -logits.log_softmax(-1) / math.log(2.0)
            costs.append(sum(bits[i - 1, row.ids[i]] for i in range(row.start, len(row.ids))))
    return np.array(costs, dtype=float)


def score(model, made, **given):
    given = {"vocabulary": VOCABULARY, "processes": Processes()} | given
    return score_rows(model, made, **given)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"beginning": 1},
        {"beginning": 60, "count": 9},
        {"lengths": (1,)},
        {"lengths": (1, 2, 7)},
        {"count": 1},
    ],
    ids=["two lengths", "one token", "long", "one scored", "three lengths", "one row"],
)
def test_fast_scoring_is_the_definition(name, layout):
    model, made, shortcuts = MODELS[name](), rows(**layout), Shortcuts()
    costs = score(model, made, shortcuts=shortcuts)
    assert shortcuts.agree
    np.testing.assert_allclose(costs, by_hand(model, made), atol=1e-4)


def test_a_start_of_its_own_for_each_row():
    made = [ScoredRow(row.ids, row.start + i % 3) for i, row in enumerate(rows())]
    model = gpt2()
    np.testing.assert_allclose(score(model, made), by_hand(model, made), atol=1e-4)


def test_rows_may_differ_before_their_secrets():
    made = [*rows(5, seed=1), *rows(5, seed=2)]
    model, shortcuts = gpt2(), Shortcuts()
    np.testing.assert_allclose(
        score(model, made, shortcuts=shortcuts), by_hand(model, made), atol=1e-4
    )
    assert shortcuts.agree is False


def test_small_batches_change_nothing(monkeypatch):
    model, made = gpt2(), rows(50)
    whole = score(model, made)
    monkeypatch.setattr(scoring, "_MOST_TOKENS", 11)
    np.testing.assert_allclose(score(model, made), whole, atol=1e-4)


def test_processes_share_the_rows():
    model, made = gpt2(), rows(31)
    shares = []

    class Second(Processes):
        def combine(self, values):
            shares.append(values)
            return np.nan_to_num(values)

        def gathered(self, value):
            return [value]

    for rank in range(2):
        score(model, made, processes=Second(rank, 2))
    known = ~np.isnan(shares)
    assert (known.sum(0) == 1).all()
    np.testing.assert_allclose(np.nansum(shares, 0), score(model, made), atol=1e-4)


def state(model):
    return {name: (value, value.clone()) for name, value in model.state_dict().items()}


@pytest.mark.parametrize("name", ["lora", "dora"])
def test_scoring_leaves_an_adapted_model_as_it_was(name):
    model = MODELS[name]().train()
    before, modules = state(model), dict(model.named_modules())
    trained = [p.requires_grad for p in model.parameters()]
    score(model, rows())
    after = model.state_dict()
    assert dict(model.named_modules()) == modules
    assert [p.requires_grad for p in model.parameters()] == trained
    assert model.training
    for key, (value, copied) in before.items():
        assert torch.equal(after[key], copied)
        assert after[key].data_ptr() == value.data_ptr()
    assert not any(getattr(module, "merged_adapters", ()) for module in model.modules())


def test_a_merged_view_runs_no_adapter():
    model = lora().eval()
    calls = []
    for module in model.modules():
        if hasattr(module, "lora_A"):
            module.register_forward_hook(lambda *_: calls.append(1))
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad(), merged_view(model):
        inside = model(input_ids=ids).logits
    assert not calls
    torch.testing.assert_close(inside, model(input_ids=ids).logits, atol=1e-4, rtol=1e-4)
    assert calls


def test_a_failure_within_a_merged_view_puts_the_layers_back():
    model = lora()
    modules = dict(model.named_modules())
    with pytest.raises(KeyError), merged_view(model):
        raise KeyError
    assert dict(model.named_modules()) == modules


@pytest.mark.parametrize("name", ["bfloat16", "off", "merged"])
def test_adapters_that_are_better_left_alone(name):
    model = lora()
    if name == "bfloat16":
        model = model.to(torch.bfloat16)
    elif name == "off":
        model.base_model.disable_adapter_layers()
    else:
        model.merge_adapter()
    modules = dict(model.named_modules())
    with merged_view(model):
        assert dict(model.named_modules()) == modules


class Refusing(GPT2LMHeadModel):
    """Has no cache, whatever its arguments say."""

    def forward(self, input_ids=None, past_key_values=None, use_cache=None, logits_to_keep=0, **_):
        if use_cache:
            raise NotImplementedError("no cache")
        return super().forward(input_ids=input_ids, logits_to_keep=logits_to_keep)


def test_a_model_that_fails_with_a_cache_is_scored_the_plain_way():
    model, shortcuts = Refusing(gpt2().config), Shortcuts()
    model.load_state_dict(gpt2().state_dict())
    costs = score(model, rows(), shortcuts=shortcuts)
    assert shortcuts.agree is False
    np.testing.assert_allclose(costs, by_hand(gpt2(), rows()), atol=1e-4)


def test_a_cache_that_is_ignored_is_noticed(monkeypatch):
    def forgetful(self, tails):
        return self._first, self._model(input_ids=tails[:, :-1]).logits

    monkeypatch.setattr(FastForward, "logits", forgetful)
    model, shortcuts = gpt2(), Shortcuts()
    costs = score(model, rows(), shortcuts=shortcuts)
    assert shortcuts.agree is False
    np.testing.assert_allclose(costs, by_hand(model, rows()), atol=1e-4)


def test_which_models_can_be_fast():
    assert can_be_fast(gpt2())
    assert can_be_fast(lora())
    assert not can_be_fast(torch.nn.Linear(2, 2))
    assert not can_be_fast(torch.compile(gpt2(), backend="eager"))
    prompts = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    assert not can_be_fast(peft.get_peft_model(gpt2(), prompts))


def test_costs_that_are_not_numbers_are_refused():
    model = gpt2()
    shortcuts = Shortcuts()
    score(model, rows(), shortcuts=shortcuts)
    with torch.no_grad():
        model.transformer.ln_f.weight.fill_(float("nan"))
    with pytest.raises(InvalidInput, match="not numbers"):
        score(model, rows(), shortcuts=shortcuts)
