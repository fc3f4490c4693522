"""Causal models: what they answer one token at a time is what they answer for the whole text."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.integrations import HuggingFaceCausalLM, load_causal_lm
from remnant.integrations.arithmetic import KeepFloat64
from remnant.models.protocols import SequenceModel

CACHED = ["gpt2", "llama", "mistral", "gemma", "bloom"]
ALL = [*CACHED, "mamba"]
TEXT = "the number is 281 and 5017?"  # longer than the sliding windows
WORDS = st.lists(st.integers(0, 50), min_size=1, max_size=14)


@pytest.fixture(scope="module")
def wrapped():
    return {}


@pytest.fixture
def wrap(make_model, make_tokenizer, wrapped):
    """Return a function from the name of a kind to the wrapped model, kept for the next test."""

    def one(kind, dtype=torch.float64):
        if (kind, dtype) not in wrapped:
            model, tokenizer = make_model(kind, dtype), make_tokenizer()
            wrapped[kind, dtype] = HuggingFaceCausalLM(model, tokenizer)
        return wrapped[kind, dtype]

    return one


@torch.no_grad()
def whole_text(model, ids):
    """The slow definition: one pass of the library's own model over the whole text."""
    with KeepFloat64():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].log_softmax(-1)


def one_by_one(model, ids, start):
    log_probs, state = model.start(ids[:start])
    found = [log_probs]
    for token in ids[start:]:
        log_probs, state = model.step(state, torch.tensor([token]))
        found.append(log_probs)
    return torch.cat(found), state


def tensors_of(state):
    return [state] if isinstance(state, torch.Tensor) else list(state.whole())


@pytest.mark.parametrize("kind", ALL)
def test_a_prefix_that_is_read_on_in_pieces_gives_the_answers_of_one_reading(kind, wrap):
    model = wrap(kind)
    ids = [4 + 7 * n % 40 for n in range(20)]
    expected, _ = model.start(ids)
    found, state = model.start(ids[:6])
    for piece in (ids[6:7], ids[7:15], ids[15:]):
        found, state = model.read_on(state, piece)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
    after = model.step(state, [5])[0]
    torch.testing.assert_close(after, model.start([*ids, 5])[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ALL)
def test_token_by_token_answers_are_those_of_the_whole_text(kind, wrap, make_model):
    model, plain = wrap(kind), make_model(kind)
    assert isinstance(model, SequenceModel)
    assert model.cached == (kind != "mamba")

    @given(ids=WORDS, cut=st.floats(0, 1))
    @settings(max_examples=8)
    def agree(ids, cut):
        start = 1 + int(cut * (len(ids) - 1))
        found, _ = one_by_one(model, ids, start)
        torch.testing.assert_close(found, whole_text(plain, ids)[start - 1 :], rtol=0, atol=1e-9)

    agree()


@pytest.mark.parametrize("kind", ALL)
def test_log_probabilities_add_up_to_one_and_depend_on_the_first_token(kind, wrap):
    model = wrap(kind)
    found, _ = one_by_one(model, model.encode(TEXT), 1)
    torch.testing.assert_close(found.exp().sum(1), torch.ones(len(found), dtype=found.dtype))
    first = [model.step(model.start([token])[1], torch.tensor([9]))[0] for token in (5, 6)]
    assert (first[0] - first[1]).abs().max() > 1e-3  # or the comparisons here could not fail


@pytest.mark.parametrize("kind", ALL)
def test_no_call_changes_a_state(kind, wrap):
    model = wrap(kind)
    _, state = one_by_one(model, model.encode(TEXT)[:9], 4)
    state = model.take(state, torch.tensor([0, 0, 0]))
    before = [tensor.clone() for tensor in tensors_of(state)]
    first, _ = model.step(state, torch.tensor([5, 6, 7]))
    model.step(state, torch.tensor([8, 9, 10]))
    model.take(state, torch.tensor([2, 1]))
    again, _ = model.step(state, torch.tensor([5, 6, 7]))
    assert all(torch.equal(a, b) for a, b in zip(before, tensors_of(state), strict=True))
    assert torch.equal(first, again)


@pytest.mark.parametrize("kind", ALL)
def test_rows_are_taken_in_any_order_and_many_times(kind, wrap, make_model):
    model, plain = wrap(kind), make_model(kind)
    prefix = model.encode("the numb")
    texts = [[*prefix, token] for token in (5, 31, 12)]
    _, state = model.start(prefix)
    state = model.take(state, torch.tensor([0, 0, 0]))
    _, state = model.step(state, torch.tensor([text[-1] for text in texts]))
    rows, tokens = [2, 0, 0, 1, 2], [7, 8, 9, 7, 7]
    found, after = model.step(model.take(state, torch.tensor(rows)), torch.tensor(tokens))
    for place, (row, token) in enumerate(zip(rows, tokens, strict=True)):
        truth = whole_text(plain, [*texts[row], token])[-1]
        torch.testing.assert_close(found[place], truth, rtol=0, atol=1e-9)
    assert len(tensors_of(after)[0]) == 5


@pytest.mark.parametrize("kind", ["llama", "mistral", "mamba"])
@pytest.mark.parametrize("rows_at_once", [1, 3, 100])
def test_how_many_rows_go_at_once_changes_nothing(
    kind, rows_at_once, wrap, make_model, make_tokenizer
):
    split = HuggingFaceCausalLM(make_model(kind), make_tokenizer(), rows_at_once=rows_at_once)
    answers = []
    for model in (wrap(kind), split):
        _, state = model.start(model.encode(TEXT))
        state = model.take(state, torch.zeros(8, dtype=torch.long))
        _, state = model.step(state, torch.arange(8) + 4)
        answers.append(model.step(state, torch.arange(8) + 20))
    torch.testing.assert_close(answers[0][0], answers[1][0], rtol=0, atol=1e-12)
    for a, b in zip(tensors_of(answers[0][1]), tensors_of(answers[1][1]), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["llama", "mamba"])
def test_a_step_of_no_rows_has_no_answers(kind, wrap):
    model = wrap(kind)
    _, state = model.start([5, 6])
    nothing = torch.empty(0, dtype=torch.long)
    log_probs, state = model.step(model.take(state, nothing), nothing)
    assert log_probs.shape == (0, model.start([5])[0].shape[1])
    assert model.step(state, nothing)[0].shape == log_probs.shape


class FloatsMade(TorchDispatchMode):
    """Collects the types of all floating tensors that are computed inside it."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for one in out if isinstance(out, tuple | list) else [out]:
            if isinstance(one, torch.Tensor) and one.is_floating_point() and one.ndim:
                self.found.add(one.dtype)
        return out


@pytest.mark.parametrize("kind", CACHED)
def test_the_twin_computes_in_float64_throughout_from_the_same_weights(kind, wrap):
    model = wrap(kind, torch.float32)
    twin = model.in_float64()
    assert model.in_float64() is twin
    assert twin.in_float64() is twin
    ids = model.encode(TEXT)
    single, _ = one_by_one(model, ids, 3)
    with FloatsMade() as made:
        double, _ = one_by_one(twin, ids, 3)
    assert single.dtype == torch.float32
    assert made.found == {torch.float64}
    torch.testing.assert_close(single.double(), double, rtol=0, atol=1e-4)
    torch.testing.assert_close(double, one_by_one(wrap(kind), ids, 3)[0], rtol=0, atol=1e-6)


def test_without_care_a_float64_llama_rounds_to_float32(make_model):
    with FloatsMade() as made, torch.no_grad():
        make_model("llama")(input_ids=torch.tensor([[5, 6, 7]]))
    assert torch.float32 in made.found  # what the twin is protected from


@pytest.mark.parametrize(("bos", "begin_id"), [(True, None), (False, 3), (True, 4), (False, None)])
def test_what_comes_before_the_prefix(bos, begin_id, make_model, make_tokenizer):
    model = HuggingFaceCausalLM(
        make_model("llama"), make_tokenizer(bos=bos, eos=True), begin_id=begin_id
    )
    begin = [begin_id] if begin_id is not None else [1] * bos
    prefix = model.encode("an")
    assert prefix == [45]
    plain = make_model("llama")
    for ids, read in ((prefix, [*begin, *prefix]), ([], begin or [1])):
        torch.testing.assert_close(model.start(ids)[0], whole_text(plain, read)[-1:])
    twin = HuggingFaceCausalLM(plain.float(), make_tokenizer(bos=bos), begin_id=begin_id)
    torch.testing.assert_close(
        twin.in_float64().start([])[0], model.start([])[0], rtol=0, atol=1e-6
    )


def test_without_bos_a_document_starts_with_eos(make_model, make_tokenizer):
    model = HuggingFaceCausalLM(make_model("gpt2"), make_tokenizer(bos_token=None))
    torch.testing.assert_close(model.start([])[0], whole_text(make_model("gpt2"), [2])[-1:])


def test_without_bos_and_eos_only_the_empty_prefix_fails(make_model, make_tokenizer):
    plain = make_model("gpt2")
    plain.config.bos_token_id, plain.config.eos_token_id = None, []
    model = HuggingFaceCausalLM(plain, make_tokenizer(bos_token=None, eos_token=None))
    assert model.start([5])[0].shape[0] == 1
    with pytest.raises(UnsupportedModel, match=r"prefix is empty, .* Pass begin_id"):
        model.start([])
    plain.config.eos_token_id = [7, 8]
    torch.testing.assert_close(model.start([])[0], whole_text(plain, [7])[-1:])


class Forgetful(transformers.GPT2LMHeadModel):
    """Puts every token that is read on from a cache at the first place."""

    def forward(self, input_ids, past_key_values=None, use_cache=None):
        places = None if past_key_values is None else torch.zeros_like(input_ids)
        return super().forward(
            input_ids, past_key_values=past_key_values, use_cache=use_cache, position_ids=places
        )


class Faulty(transformers.GPT2LMHeadModel):
    """Cannot read on from a cache at all."""

    def forward(self, input_ids, past_key_values=None, use_cache=None):
        if past_key_values is not None:
            raise ValueError("no cache, please")
        return super().forward(input_ids, use_cache=use_cache)


@pytest.mark.parametrize("kind", [Forgetful, Faulty])
def test_a_cache_that_is_not_exact_is_not_used(kind, make_model, make_tokenizer):
    honest = make_model("gpt2")
    model = kind(honest.config).double().eval()
    model.load_state_dict(honest.state_dict())
    wrapped = HuggingFaceCausalLM(model, make_tokenizer())
    assert not wrapped.cached
    ids = wrapped.encode(TEXT)
    found, state = one_by_one(wrapped, ids, 4)
    torch.testing.assert_close(found, whole_text(honest, ids)[3:], rtol=0, atol=1e-9)
    assert state.tolist() == [ids]


def test_a_sliding_window_keeps_no_more_than_it_needs(wrap):
    model = wrap("gemma")
    ids = model.encode(TEXT)
    _, state = model.start(ids)
    expected = [4, 4, len(ids), len(ids), 4, 4]
    assert [tensor.shape[2] for tensor in state.prefix] == expected
    _, state = model.read_on(state, [5, 6])  # what is read on is folded into the prefix
    expected = [4, 4, len(ids) + 2, len(ids) + 2, 4, 4]
    assert [tensor.shape[2] for tensor in state.prefix] == expected
    assert state.levels == ()


def test_autocast_and_training_mode_have_no_say_and_are_put_back(make_model, make_tokenizer):
    plain = make_model("gpt2", torch.float32).train()  # with dropout
    plain.transformer.h[0].eval()
    before = [module.training for module in plain.modules()]
    model = HuggingFaceCausalLM(plain, make_tokenizer())
    found, _ = one_by_one(model, model.encode(TEXT), 2)
    with torch.autocast("cpu", torch.bfloat16):
        again, _ = one_by_one(model, model.encode(TEXT), 2)
    assert torch.equal(found, again)
    assert [module.training for module in plain.modules()] == before
    assert not found.requires_grad
    found -= 1.0  # the answer is the caller's to change


def test_a_text_that_is_too_long_is_refused_before_it_is_read(wrap):
    model = wrap("gpt2")
    with pytest.raises(InvalidInput, match="65 tokens is longer than the 64"):
        model.start([5] * 65)
    _, state = model.start([5] * 64)
    with pytest.raises(InvalidInput, match="65 tokens is longer"):
        model.step(state, torch.tensor([5]))


@pytest.mark.parametrize("token", [-1, 56])
def test_tokens_that_the_model_does_not_have_are_refused(token, wrap):
    with pytest.raises(InvalidInput, match="a token outside 0 to 54"):
        wrap("gpt2").start([5, token])


def test_plain_lists_will_do(wrap):
    model = wrap("llama")
    _, state = model.start((5, 6))
    found, _ = model.step(model.take(state, [0, 0]), [7, 8])
    again, _ = model.step(model.take(state, torch.tensor([0, 0])), torch.tensor([7, 8]))
    assert torch.equal(found, again)


def test_rows_that_do_not_match_are_refused(wrap):
    for kind in ("gpt2", "mamba"):
        model = wrap(kind)
        with pytest.raises(InvalidInput, match="token_ids has 2 rows, and the state 1"):
            model.step(model.start([5])[1], torch.tensor([5, 6]))


def test_coarse_weights_and_no_rows_are_refused(make_model, make_tokenizer):
    with pytest.raises(UnsupportedModel, match=r"weights are bfloat16; .*model\.float"):
        HuggingFaceCausalLM(make_model("gpt2", torch.bfloat16), make_tokenizer())
    with pytest.raises(InvalidInput, match="rows_at_once=0 is not at least 1"):
        HuggingFaceCausalLM(make_model("gpt2"), make_tokenizer(), rows_at_once=0)


def test_a_folder_gives_the_model_that_was_saved(save, make_model):
    folder = save("llama", bos=True)
    model = load_causal_lm(folder, dtype=torch.float64, rows_at_once=2)
    ids = model.encode(TEXT)
    found, _ = one_by_one(model, ids, 2)
    truth = whole_text(make_model("llama"), [1, *ids])[2:]
    torch.testing.assert_close(found, truth, rtol=0, atol=1e-9)
    assert load_causal_lm(folder).start(ids)[0].dtype == torch.float32
    np.testing.assert_array_equal(model.tokens[:3], ["a", "b", "c"])


def test_an_encoder_decoder_is_no_causal_model(save):
    with pytest.raises(UnsupportedModel, match=r"encoder-decoder.*load_seq2seq"):
        load_causal_lm(save("t5"))
