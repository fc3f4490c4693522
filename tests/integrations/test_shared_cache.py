"""A Hugging Face model reads a common prefix in one copy, and its answers stay the same."""

from __future__ import annotations

import pytest
import torch
import transformers
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from remnant import Template, exact_exposure, extract
from remnant.integrations import HuggingFaceCausalLM, HuggingFaceSeq2Seq
from remnant.integrations.key_values import split_attention
from remnant.models.shared_prefix import SharedPrefix
from remnant.probes import Asked

TEMPLATE = Template("the pin is {digits:3}")
SECRETS = ["281", "000", "999"]


class Copying(HuggingFaceCausalLM):
    """The slow twin: every step makes the whole keys and values of its rows."""

    def _checked_split(self):
        return False


class Uncached(HuggingFaceCausalLM):
    """The slowest twin: every step reads the whole text again."""

    def _agrees(self, ids, truth):
        return False


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bloom", "mistral"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ranks_and_costs_are_those_of_a_copy_for_each_row(kind, dtype, make_model, make_tokenizer):
    network, tokenizer = make_model(kind, dtype), make_tokenizer()
    made = [make(network, tokenizer) for make in (HuggingFaceCausalLM, Copying, Uncached)]
    # Bloom does not use the attention interface; the window of 5 tokens is shorter than the check.
    assert [model.splits for model in made] == [kind in ("gpt2", "llama"), False, False]
    assert [model.cached for model in made] == [True, True, False]
    found, *twins = (exact_exposure(model, TEMPLATE, secrets=SECRETS) for model in made)
    best, *twins_best = (extract(model, TEMPLATE, top=4) for model in made)
    for expected, other in zip(twins, twins_best, strict=True):
        assert found.rank.tolist() == expected.rank.tolist()
        assert found.nodes == expected.nodes
        for one, same in zip(found, expected, strict=True):
            assert one.cost == pytest.approx(same.cost, abs=1e-9)
        assert [s for s, _ in best.candidates] == [s for s, _ in other.candidates]


def test_a_window_that_is_longer_than_the_text_plays_no_part(make_tokenizer):
    torch.manual_seed(0)
    config = transformers.MistralConfig(
        vocab_size=60,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=14,
        initializer_range=0.4,
    )
    network = transformers.MistralForCausalLM(config).double().eval()
    model, slow = (
        HuggingFaceCausalLM(network, make_tokenizer()),
        Uncached(network, make_tokenizer()),
    )
    assert model.splits
    ids = [4 + 5 * n % 40 for n in range(20)]
    (_, state), (_, all_ids) = model.start(ids[:9]), slow.start(ids[:9])
    for token in ids[9:]:  # within the window, then beyond it
        found, state = model.step(model.take(state, [0]), [token])
        expected, all_ids = slow.step(all_ids, [token])
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_attention_that_is_computed_otherwise_is_left_to_the_model(make_tokenizer):
    torch.manual_seed(0)
    config = transformers.Gemma2Config(
        vocab_size=60,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=4,
        sliding_window=40,
        attn_logit_softcapping=2.0,
        initializer_range=0.4,
    )
    network = transformers.Gemma2ForCausalLM(config).double().eval()
    model, slow = (
        HuggingFaceCausalLM(network, make_tokenizer()),
        Uncached(network, make_tokenizer()),
    )
    assert (model.splits, model.cached) == (False, True)
    found, expected = (exact_exposure(m, TEMPLATE, secrets=["281"]) for m in (model, slow))
    assert found[0].cost == pytest.approx(expected[0].cost, abs=1e-9)


def test_the_network_is_left_as_it_was(make_model, make_tokenizer):
    network = make_model("llama", torch.float32)
    names = list(ALL_ATTENTION_FUNCTIONS.valid_keys())
    before = network.config._attn_implementation
    model = HuggingFaceCausalLM(network, make_tokenizer())
    _, state = model.start([5, 6])
    model.step(state, [7])
    assert network.config._attn_implementation == before
    ids, mask = torch.tensor([[7]]), torch.zeros(1, 1, 1, 3)
    with split_attention(network, state) as cache, pytest.raises(NotImplementedError, match="mask"):
        network(input_ids=ids, past_key_values=cache, attention_mask=mask)
    assert network.config._attn_implementation == before
    assert list(ALL_ATTENTION_FUNCTIONS.valid_keys()) == names


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_an_encoder_decoder_shares_its_prefix_too(kind, make_model, make_tokenizer):
    model = HuggingFaceSeq2Seq(make_model(kind), make_tokenizer(), source="the number is 7")
    assert (model.splits, model.cached) == (False, True)
    assert isinstance(model.start([5])[1], SharedPrefix)


def test_a_row_of_the_walk_takes_the_memory_of_one_token(make_model, make_tokenizer):
    """So that the same memory budget holds many more rows than with a copy for each."""
    model = HuggingFaceCausalLM(make_model("llama", torch.float32), make_tokenizer())
    asked = Asked(model, model.encode("the pin of the account is "))
    _, state = asked.step(asked.take(asked.first_state, torch.tensor([0, 0])), torch.tensor([5, 6]))
    copied = sum(tensor.nbytes for tensor in state.whole()) // 2
    assert asked.row_bytes < copied / 5
