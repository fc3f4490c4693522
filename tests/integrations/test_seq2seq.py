"""Encoder-decoders: the cost of a target is the model's own loss with it as labels."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.integrations import HuggingFaceSeq2Seq, load_seq2seq
from remnant.integrations.arithmetic import KeepFloat64
from remnant.models.protocols import SequenceModel

KINDS = ["t5", "bart"]
SOURCE = "the number is 42."
TEXT = "and 281 is the number"
WORDS = st.lists(st.integers(4, 50), min_size=1, max_size=12)


@pytest.fixture
def wrap(make_model, make_tokenizer):
    """BART's tokenizer puts a BOS before a text, T5's does not; both end it."""

    def one(kind, dtype=torch.float64, **options):
        tokenizer = make_tokenizer(bos=kind == "bart", eos=True)
        options = {"source": SOURCE, **options}
        return HuggingFaceSeq2Seq(make_model(kind, dtype), tokenizer, **options)

    return one


def cost(model, ids):
    log_probs, state = model.start([])
    total = 0.0
    for token in ids:
        total -= float(log_probs[0, token])
        log_probs, state = model.step(state, torch.tensor([token]))
    return total


@torch.no_grad()
def own_loss(kind, plain, source_ids, ids):
    """The slow definition; the loss counts BART's BOS, which the prefix takes as given."""
    labels = [1, *ids] if kind == "bart" else ids
    with KeepFloat64():
        out = plain(input_ids=torch.tensor([source_ids]), labels=torch.tensor([labels]))
        counted = out.loss * len(labels)
        if kind == "bart":
            counted += out.logits[0, 0].log_softmax(-1)[1]
    return float(counted)


@pytest.mark.parametrize("kind", KINDS)
def test_the_cost_is_the_models_own_loss(kind, wrap, make_model):
    model, plain = wrap(kind), make_model(kind)
    assert isinstance(model, SequenceModel)
    assert model.cached
    source_ids = [*[1] * (kind == "bart"), *model.encode(SOURCE), 2]

    @given(ids=WORDS)
    @settings(max_examples=12)
    def agree(ids):
        assert cost(model, ids) == pytest.approx(own_loss(kind, plain, source_ids, ids), abs=1e-9)

    agree()


@pytest.mark.parametrize("kind", KINDS)
def test_the_source_matters_and_may_be_given_as_tokens(kind, wrap):
    model = wrap(kind)
    ids = model.encode(TEXT)
    same = wrap(kind, source=None, source_ids=[*[1] * (kind == "bart"), *model.encode(SOURCE), 2])
    assert cost(same, ids) == cost(model, ids)
    assert abs(cost(wrap(kind, source="an?"), ids) - cost(model, ids)) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows_at_once", [1, 2, None])
def test_rows_share_the_source_and_no_call_changes_a_state(kind, rows_at_once, wrap):
    model = wrap(kind, rows_at_once=rows_at_once)
    prefix = model.encode(TEXT)
    _, state = model.start(prefix)
    assert sum(tensor.shape[2] for tensor in state.whole()) == 4 * state.length  # no source inside
    state = model.take(state, torch.tensor([0, 0, 0]))
    _, state = model.step(state, torch.tensor([5, 6, 7]))
    before = state.whole()
    rows, tokens = [2, 0, 2, 1], [9, 10, 11, 12]
    found, _ = model.step(model.take(state, torch.tensor(rows)), torch.tensor(tokens))
    assert all(torch.equal(a, b) for a, b in zip(before, state.whole(), strict=True))
    for place, (row, token) in enumerate(zip(rows, tokens, strict=True)):
        truth, _ = model.start([*prefix, [5, 6, 7][row], token])
        torch.testing.assert_close(found[place], truth[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_source_is_read_once(kind, make_model, make_tokenizer):
    plain = make_model(kind)
    model = HuggingFaceSeq2Seq(plain, make_tokenizer(), source=SOURCE)
    _, state = model.start([5])
    name = {"t5": "EncDecAttention.k", "bart": "encoder_attn.k_proj"}[kind]
    readers = [module for place, module in plain.named_modules() if place.endswith(name)]
    calls = []
    for module in [plain.get_encoder(), *readers]:
        module.register_forward_hook(lambda *args: calls.append(args))
    model.step(state, torch.tensor([6]))
    assert len(readers) == 2
    assert not calls


@pytest.mark.parametrize("kind", KINDS)
def test_the_twin_is_the_same_model_in_float64(kind, wrap):
    single = wrap(kind, torch.float32)
    twin = single.in_float64()
    ids = single.encode(TEXT)
    assert twin.start([])[0].dtype == torch.float64
    assert cost(twin, ids) == pytest.approx(cost(wrap(kind), ids), abs=1e-5)
    assert cost(single, ids) == pytest.approx(cost(twin, ids), abs=1e-3)


def test_begin_id_overrides_what_comes_before_the_target(wrap):
    model, other = wrap("bart"), wrap("bart", begin_id=2)
    torch.testing.assert_close(other.start([1, 5])[0], model.start([5])[0], rtol=0, atol=1e-12)


def test_a_decoder_without_a_start_token_is_refused(make_model, make_tokenizer):
    plain = make_model("t5")
    plain.config.decoder_start_token_id = plain.generation_config.decoder_start_token_id = None
    with pytest.raises(UnsupportedModel, match=r"start token.*begin_id"):
        HuggingFaceSeq2Seq(plain, make_tokenizer(), source="a")
    plain.generation_config.decoder_start_token_id = 0
    model = HuggingFaceSeq2Seq(plain, make_tokenizer(), source="a")
    given_it = HuggingFaceSeq2Seq(plain, make_tokenizer(), source="a", begin_id=0)
    assert torch.equal(model.start([])[0], given_it.start([])[0])


def test_the_source_must_be_given_once_and_hold_something(wrap, make_model, make_tokenizer):
    with pytest.raises(InvalidInput, match="needs one source: none was given"):
        wrap("t5", source=None)
    with pytest.raises(InvalidInput, match="both source and source_ids"):
        wrap("t5", source_ids=[5])
    with pytest.raises(InvalidInput, match="source has no token"):
        HuggingFaceSeq2Seq(make_model("t5"), make_tokenizer(), source="")
    with pytest.raises(InvalidInput, match="65 tokens is longer than the 64"):
        wrap("bart", source=None, source_ids=[5] * 65)


def test_a_folder_gives_the_model_that_was_saved(save, wrap):
    folder = save("bart", bos=True, eos=True)
    model = load_seq2seq(folder, source=SOURCE, dtype=torch.float64)
    ids = model.encode(TEXT)
    assert cost(model, ids) == pytest.approx(cost(wrap("bart"), ids), abs=1e-9)


def test_a_causal_model_has_no_source(save):
    with pytest.raises(UnsupportedModel, match=r"no encoder-decoder.*load_causal_lm"):
        load_seq2seq(save("gpt2"), source=SOURCE)
