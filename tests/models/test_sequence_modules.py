"""Our sequence models against torch's own layers, and one token at a time against all at once."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from remnant.errors import InvalidInput, PlanError
from remnant.models import (
    SEQUENCE_MODELS,
    causal_cnn,
    gpt,
    gru,
    lstm,
    sequence_model_maker,
    wavenet,
)
from remnant.models.causal_convolution import CausalConvolution
from remnant.models.sequence_module import take

V = 11
SMALL = {
    "lstm": lambda **o: lstm(V, units=7, layers=2, **o),
    "lstm-embedded": lambda **o: lstm(V, units=7, layers=3, embedding=5, **o),
    "gru": lambda **o: gru(V, units=7, layers=2, **o),
    "gru-embedded": lambda **o: gru(V, units=6, layers=1, embedding=4, **o),
    "causal_cnn": lambda **o: causal_cnn(V, units=6, layers=2, taps=3, **o),
    "wavenet": lambda **o: wavenet(V, units=6, layers=3, stacks=2, taps=2, **o),
    "wavenet-3-taps": lambda **o: wavenet(V, units=4, layers=2, stacks=1, taps=3, **o),
    "gpt": lambda **o: gpt(V, units=8, layers=2, heads=2, context=20, **o),
}
SEES = {"causal_cnn": 5, "wavenet": 15, "wavenet-3-taps": 7}


def small(name, **options):
    torch.manual_seed(3)
    module = SMALL[name](**options).double().eval()
    for parameter in module.parameters():  # a start close to zero would hide what is not read
        nn.init.normal_(parameter, std=0.4)
    return module


def tokens(*shape, most=V):
    return torch.randint(0, most, shape, generator=torch.Generator().manual_seed(1))


def one_by_one(module, ids):
    state, found = module.initial(len(ids)), []
    for column in ids.unbind(1):
        logits, state = module.advance(column, state)
        found.append(logits)
    return torch.stack(found, 1)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("folded", [False, True])
def test_one_token_at_a_time_equals_all_at_once(name, folded):
    module = small(name)
    if folded:
        module.fold()
    for shape in ((4, 18), (1, 3), (2, 1)):
        ids = tokens(*shape)
        whole = module(ids)
        assert whole.shape == (*shape, V)
        torch.testing.assert_close(one_by_one(module, ids), whole, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", SMALL)
def test_hooks_on_layers_change_nothing_and_see_every_text_by_itself(name):
    """A layer that is watched takes no shortcut; with one text the calls are its own."""
    module, ids = small(name), tokens(3, 18)
    expected, shapes = module(ids), {}
    for path, layer in module.named_modules():
        if path and any(True for _ in layer.parameters(recurse=False)):
            layer.register_forward_hook(
                lambda _, given, made, path=path: shapes.setdefault(path, []).append(made.shape)
            )
    torch.testing.assert_close(module(ids), expected, rtol=0, atol=1e-12)
    owners = {n.rpartition(".")[0] for n, _ in module.named_parameters()}
    assert shapes.keys() == owners
    for calls in shapes.values():
        assert all(3 in shape[:2] for shape in calls)


@pytest.mark.parametrize("name", SMALL)
def test_no_place_sees_what_comes_after_it(name):
    module, ids = small(name), tokens(3, 18)
    for place in (0, 5, 16):
        changed = ids.clone()
        changed[:, place + 1 :] = (changed[:, place + 1 :] + 1) % V
        whole, other = module(ids), module(changed)
        torch.testing.assert_close(whole[:, : place + 1], other[:, : place + 1], rtol=0, atol=0)
        assert (whole[:, place + 1 :] != other[:, place + 1 :]).any(-1).all()


@pytest.mark.parametrize("name", SMALL)
def test_it_sees_back_as_far_as_it_says(name):
    module, ids = small(name), tokens(3, 18)
    last = module(ids)[:, -1]
    for back in range(1, 18):
        changed = ids.clone()
        changed[:, -1 - back] = (changed[:, -1 - back] + 1) % V
        differs = bool((module(changed)[:, -1] != last).any())
        assert differs == (back < SEES.get(name, 18))


@pytest.mark.parametrize("name", SMALL)
def test_the_token_begin_is_read_and_never_predicted(name):
    module = small(name)
    assert module.begin == V
    ids = torch.cat([torch.full((2, 1), module.begin), tokens(2, 5)], 1)
    found = module(ids)
    assert found.shape == (2, 6, V)
    torch.testing.assert_close(one_by_one(module, ids), found, rtol=0, atol=1e-10)
    assert (found[:, 0] != module(tokens(2, 1))[:, 0]).any()


@pytest.mark.parametrize("name", SMALL)
def test_no_call_changes_a_state(name):
    module = small(name)
    state = module.initial(3)
    for step in range(4):
        kept = [tensor.clone() for tensor in state]
        prepared = module.prepare(state)
        also = [tensor.clone() for tensor in prepared]
        one, after = module.read(tokens(3) + 0 * step, prepared)
        other, again = module.read(tokens(3), prepared)
        assert torch.equal(one, other)
        assert all(torch.equal(a, b) for a, b in zip(after, again, strict=True))
        assert all(torch.equal(a, b) for a, b in zip(state, kept, strict=True))
        assert all(torch.equal(a, b) for a, b in zip(prepared, also, strict=True))
        state = after


@pytest.mark.parametrize("name", SMALL)
def test_rows_are_taken_in_any_order_and_many_times(name):
    module, ids, rows = small(name), tokens(3, 9), torch.tensor([2, 0, 0, 2, 1])
    state = module.initial(3)
    for column in ids[:, :5].unbind(1):
        _, state = module.advance(column, state)
    assert all(len(tensor) == 3 for tensor in state)
    state, shuffled = take(state, rows), ids[rows]
    for place in range(5, 9):
        logits, state = module.advance(shuffled[:, place], state)
    torch.testing.assert_close(logits, module(shuffled)[:, -1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("embedding", [None, 5])
@pytest.mark.parametrize(("make", "torchs"), [(lstm, nn.LSTM), (gru, nn.GRU)])
@pytest.mark.parametrize("shape", [(4, 12), (1, 2)])  # more tokens than symbols, and fewer
def test_recurrent_layers_equal_torchs_with_the_same_weights(make, torchs, embedding, shape):
    torch.manual_seed(0)
    ours = make(V, units=7, layers=2, embedding=embedding).double()
    theirs = torchs(embedding or V + 1, 7, 2, batch_first=True).double()
    copied = {
        f"{name}_l{place}": weight
        for place, layer in enumerate(ours.layers)
        for name, weight in layer.state_dict().items()
    }
    theirs.load_state_dict(copied)
    ids = tokens(*shape, most=V + 1)
    read = F.one_hot(ids, V + 1).double() if embedding is None else ours.embedding(ids)
    expected = F.linear(theirs(read)[0], ours.head.weight, ours.head.bias)
    found = ours(ids)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    loss = found.square().sum()
    own = torch.autograd.grad(loss, [p for layer in ours.layers for p in layer.parameters()])
    other = torch.autograd.grad(expected.square().sum(), list(theirs.parameters()))
    for a, b in zip(own, other, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("make", "torchs"), [(lstm, nn.LSTM), (gru, nn.GRU)])
def test_recurrent_layers_start_as_torchs_do(make, torchs):
    torch.manual_seed(5)
    ours = make(V, units=16, layers=1).layers[0]
    torch.manual_seed(5)
    theirs = torchs(V + 1, 16)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(("taps", "dilation"), [(2, 1), (2, 4), (3, 2), (5, 1)])
def test_a_causal_convolution_equals_torchs_on_padded_inputs(taps, dilation):
    torch.manual_seed(0)
    ours = CausalConvolution(3, 4, taps=taps, dilation=dilation).double()
    theirs = nn.Conv1d(3, 4, taps, dilation=dilation).double()
    with torch.no_grad():
        theirs.weight.copy_(ours.weight.unflatten(1, (taps, 3)).transpose(1, 2))
        theirs.bias.copy_(ours.bias)
    inputs = torch.randn(2, 9, 3, dtype=torch.float64)
    padded = F.pad(inputs.transpose(1, 2), ((taps - 1) * dilation, 0))
    expected = theirs(padded).transpose(1, 2)
    torch.testing.assert_close(ours(inputs), expected, rtol=0, atol=1e-12)


def test_an_attention_block_equals_torchs_with_the_same_weights():
    module = small("gpt")
    ids = tokens(3, 10)
    hidden = module.embedding(ids) + module.positions.weight[:10]
    for block in module.blocks:
        theirs = nn.TransformerEncoderLayer(
            8, 2, 32, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        ).double()
        names = {
            "self_attn.in_proj_weight": block.attention.weight,
            "self_attn.in_proj_bias": block.attention.bias,
            "self_attn.out_proj.weight": block.project.weight,
            "self_attn.out_proj.bias": block.project.bias,
            "linear1.weight": block.widen.weight,
            "linear1.bias": block.widen.bias,
            "linear2.weight": block.narrow.weight,
            "linear2.bias": block.narrow.bias,
            "norm1.weight": block.norm1.weight,
            "norm1.bias": block.norm1.bias,
            "norm2.weight": block.norm2.weight,
            "norm2.bias": block.norm2.bias,
        }
        theirs.load_state_dict(names)
        mask = nn.Transformer.generate_square_subsequent_mask(10, dtype=torch.float64)
        hidden = theirs(hidden, src_mask=mask, is_causal=True)
    expected = module.head(module.norm(hidden))
    torch.testing.assert_close(module(ids), expected, rtol=0, atol=1e-10)


def test_a_text_longer_than_the_context_is_refused():
    module = small("gpt")
    assert module(tokens(1, 20)).shape == (1, 20, V)
    with pytest.raises(InvalidInput, match="21 tokens is longer than the model's context of 20"):
        module(tokens(1, 21))
    with pytest.raises(InvalidInput, match="21 tokens is longer"):
        one_by_one(module, tokens(1, 21))


@pytest.mark.parametrize("name", SMALL)
def test_one_step_reaches_every_parameter(name):
    module = small(name, dropout=0.2).train()
    ids = tokens(8, 19)
    inputs = ids[:, :-1].clone()
    inputs[0, 0] = module.begin
    torch.manual_seed(0)
    F.cross_entropy(module(inputs).flatten(0, 1), ids[:, 1:].flatten()).backward()
    for key, parameter in module.named_parameters():
        assert (parameter.grad != 0).any(), key
    table = module.layers[0].weight_ih if name in ("lstm", "gru") else module.embedding.weight
    last = table.grad[:, -1] if name in ("lstm", "gru") else table.grad[-1]
    assert (last != 0).any()


@pytest.mark.parametrize(
    ("name", "places"),
    [("lstm", 2), ("gru", 2), ("causal_cnn", 2), ("wavenet", 6), ("gpt", 5)],
)
def test_dropout_stands_where_it_is_asked_for_and_only_while_training(name, places):
    def rates(module):
        return [layer.p for layer in module.modules() if isinstance(layer, nn.Dropout)]

    assert rates(small(name)) == []
    module = small(name, dropout=0.5)
    assert rates(module) == [0.5] * places
    assert torch.equal(module(tokens(2, 6)), small(name)(tokens(2, 6)))
    torch.manual_seed(0)
    assert (module.train()(tokens(2, 6)) != module(tokens(2, 6))).any()


def test_sizes_are_those_of_the_paper():
    counts = {
        name: sum(p.numel() for p in make(50).parameters())
        for name, make in SEQUENCE_MODELS.items()
    }
    assert counts["lstm"] == 4 * 200 * (51 + 200 + 2) + 4 * 200 * (400 + 2) + 50 * 201
    assert counts["gru"] == 3 * 230 * (51 + 230 + 2) + 3 * 230 * (460 + 2) + 50 * 231
    assert all(500_000 < counts[name] < 700_000 for name in counts.keys() - {"gpt"})


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
def test_the_catalogue_makes_each_with_its_options(name):
    module = sequence_model_maker(name, vocabulary_size=V, units=8, dropout=0.1)()
    assert module.vocabulary_size == V
    assert module(tokens(2, 4)).shape == (2, 4, V)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("rnn", {}, "model='rnn' is not one of lstm, gru, causal_cnn, wavenet, gpt"),
        ("lstm", {"unit": 3}, "lstm has no option unit. It has: units, layers, embedding, dropout"),
        ("gpt", {"units": 10, "heads": 4}, "units=10 cannot be cut into heads=4 equal parts"),
        ("lstm", {"units": 0}, "units=0 is not a whole number from 1 on.$"),
        ("gru", {"embedding": -2, "layers": 1.5}, "layers=1.5 .*; embedding=-2 is not"),
        ("wavenet", {"dropout": 1.0}, "dropout=1.0 is not a rate"),
        ("causal_cnn", {"taps": 1}, "taps=1 is less than 2"),
        ("gpt", {"context": True}, "context=True is not a whole number"),
    ],
)
def test_what_cannot_be_made_is_refused_in_words(name, options, words):
    with pytest.raises(PlanError, match=words):
        sequence_model_maker(name, vocabulary_size=V, **options)()


def test_each_factory_takes_no_other_arguments():
    for one, other in itertools.pairwise(SEQUENCE_MODELS.values()):
        assert one.options.keys() & other.options.keys() >= {"units", "layers"}
        with pytest.raises(TypeError):
            one(V, 8)
