"""A language model one can ask: the protocol, its numbers, what rows share."""

from __future__ import annotations

import pytest
import torch

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.models import SEQUENCE_MODELS, LanguageModel, Vocabulary, gpt, lstm
from remnant.models import language_model as internals
from remnant.models.protocols import SequenceModel
from remnant.models.shared_prefix import SharedPrefix

LETTERS = Vocabulary.of_characters("abcdef ")
V = LETTERS.size


def make(name, dtype=torch.float64, **options):
    torch.manual_seed(2)
    module = SEQUENCE_MODELS[name](V, units=8, **options)
    return module, LanguageModel(module, LETTERS, dtype=dtype)


def read_all(module, ids):
    """The slow definition: the whole text, from its beginning, by the network itself."""
    module = module.double().eval()
    read = ids if ids.shape[1] else torch.full((len(ids), 1), module.begin)
    with torch.no_grad():
        return module(read)[:, -1].log_softmax(-1)


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
def test_answers_are_the_networks_own_on_the_whole_text(name, monkeypatch):
    monkeypatch.setitem(internals._AT_ONCE, "cpu", 4)
    module, model = make(name)
    assert isinstance(model, SequenceModel)
    prefix = model.encode("face a")
    log_probs, state = model.start(prefix)
    text = torch.tensor([prefix])
    torch.testing.assert_close(log_probs, read_all(module, text), rtol=0, atol=1e-10)
    for rows in ([0, 0, 0], [2, 0, 1], [1, 1, 1, 0, 0, 0, 0, 2, 2, 2, 2], [10, 3, 0], [1, 2]):
        state = model.take(state, torch.tensor(rows))
        new = torch.arange(len(rows)) % V
        log_probs, state = model.step(state, new)
        text = torch.cat([text[rows], new[:, None]], 1)
        assert log_probs.shape == (len(rows), V)
        torch.testing.assert_close(log_probs, read_all(module, text), rtol=0, atol=1e-10)
        torch.testing.assert_close(log_probs.exp().sum(1), torch.ones(len(rows)).double())


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
def test_an_empty_prefix_is_answered_after_the_token_begin(name):
    module, model = make(name)
    log_probs, state = model.start([])
    expected = read_all(module, torch.empty(1, 0, dtype=torch.int64))
    torch.testing.assert_close(log_probs, expected, rtol=0, atol=1e-10)
    log_probs, _ = model.step(state, torch.tensor([3]))
    expected = read_all(module, torch.tensor([[module.begin, 3]]))
    torch.testing.assert_close(log_probs, expected, rtol=0, atol=1e-10)


def plain(state):
    """All tensors of a state, with nothing shared between rows."""
    return state.whole() if isinstance(state, SharedPrefix) else state


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
def test_one_parent_serves_many_children(name):
    _, model = make(name, torch.float32)
    _, state = model.start(model.encode("ab"))
    kept = [tensor.clone() for tensor in plain(state)]
    twice = model.take(state, torch.tensor([0, 0, 0, 0]))
    first, after = model.step(twice, torch.tensor([0, 1, 2, 1]))
    again, _ = model.step(twice, torch.tensor([0, 1, 2, 1]))
    alone, _ = model.step(state, torch.tensor([2]))
    assert torch.equal(first, again)
    assert torch.equal(first[1], first[3])
    torch.testing.assert_close(first[2:3], alone, rtol=0, atol=1e-6)
    assert all(torch.equal(a, b) for a, b in zip(plain(state), kept, strict=True))
    family = model.take(twice, torch.tensor([1, 3]))  # children that were never stepped
    torch.testing.assert_close(model.step(family, torch.tensor([1, 2]))[0], first[1:3])
    assert all(len(tensor) == 4 for tensor in plain(after))


def test_rows_of_one_parent_are_not_worked_out_anew(monkeypatch):
    _, model = make("lstm")
    seen = []
    prepare = model._module.prepare
    monkeypatch.setattr(
        model._module, "prepare", lambda state: seen.append(len(state[0])) or prepare(state)
    )
    _, state = model.start(model.encode("a"))
    _, state = model.step(model.take(state, torch.tensor([0, 0, 0])), torch.tensor([0, 1, 2]))
    model.step(model.take(state, torch.arange(3).repeat_interleave(7)), torch.arange(21) % V)
    assert seen == [1, 1, 3]


def test_no_rows_and_lists_are_fine():
    _, model = make("lstm")
    _, state = model.start([0])
    log_probs, state = model.step(model.take(state, [0, 0]), [1, 2])
    assert log_probs.shape == (2, V)
    log_probs, state = model.step(
        model.take(state, torch.empty(0, dtype=torch.int64)), torch.empty(0, dtype=torch.int64)
    )
    assert log_probs.shape == (0, V)
    assert all(len(tensor) == 0 for tensor in state)


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
def test_the_float64_model_has_the_same_weights_and_less_rounding(name):
    module, model = make(name, None)
    wide = model.in_float64()
    assert wide is model.in_float64()
    assert wide.in_float64() is wide
    ids = model.encode("deadbeef"[:6])
    exact = read_all(module, torch.tensor([ids]))
    assert model.start(ids)[0].dtype == torch.float32
    assert wide.start(ids)[0].dtype == torch.float64
    torch.testing.assert_close(wide.start(ids)[0], exact, rtol=0, atol=1e-12)
    torch.testing.assert_close(model.start(ids)[0].double(), exact, rtol=0, atol=1e-5)


def test_later_training_does_not_reach_it():
    module, model = make("lstm", None)
    before = model.start([0])[0]
    with torch.no_grad():
        module.head.weight.zero_()
    assert torch.equal(model.start([0])[0], before)
    assert module.training
    assert module.head.weight.requires_grad


def test_dropout_autocast_and_tf32_stay_out():
    _, quiet = make("lstm", torch.float32)
    _, model = make("lstm", torch.float32, dropout=0.5)
    expected = quiet.start([0, 1])[0]
    assert torch.equal(model.start([0, 1])[0], expected)
    matmul = torch.backends.cuda.matmul
    assert not matmul.allow_tf32
    matmul.allow_tf32 = True
    try:
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(model.start([0, 1])[0], expected)
        assert matmul.allow_tf32
    finally:
        matmul.allow_tf32 = False
    assert not model.start([0, 1])[0].requires_grad


def test_its_tokens_are_texts_of_one_token():
    words = Vocabulary.of_words("to be or not to be")
    model = LanguageModel(lstm(words.size, units=4), words)
    assert model.tokens == ("be", "to", "not", "or")
    assert [model.encode(text) for text in model.tokens] == [[0], [1], [2], [3]]


def test_what_does_not_fit_is_refused_in_words():
    module, model = make("lstm")
    with pytest.raises(InvalidInput, match="predicts 7 tokens, and the vocabulary has 2"):
        LanguageModel(module, Vocabulary.of_characters("ab"))
    with pytest.raises(InvalidInput, match="prefix_ids has a token outside 0 to 6"):
        model.start([0, 7])
    with pytest.raises(InvalidInput, match="has shape \\(2,\\) for a state of 1 rows"):
        model.step(model.start([0])[1], torch.tensor([0, 1]))
    with pytest.raises(InvalidInput, match="has shape \\(1,\\) for a state of 2 rows"):
        model.step(model.take(model.start([0])[1], [0, 0]), torch.tensor([0]))
    with pytest.raises(InvalidInput, match="device='cuda:77' is not there"):
        LanguageModel(module, LETTERS, device="cuda:77")
    with pytest.raises(UnsupportedModel, match=r"torch.bfloat16, too coarse"):
        LanguageModel(module, LETTERS, dtype=torch.bfloat16)
    short = LanguageModel(gpt(V, units=8, context=3), LETTERS)
    with pytest.raises(InvalidInput, match="4 tokens is longer than the model's context of 3"):
        short.start([0, 1, 2, 3])
