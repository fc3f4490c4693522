"""Rows that share a prefix: the same answers as with a copy for each row, without the copies."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant import Template, exact_exposure, extract
from remnant.models import LanguageModel, Vocabulary, gpt
from remnant.models.decoder_only import Gpt
from remnant.models.encoder_decoder import transformer
from remnant.models.shared_prefix import SharedPrefix, attend_shared

TEMPLATE = Template("the pin is {digits:3} {choice:ab|ba}")
LETTERS = Vocabulary.of_characters("abcdefghijklmnopqrstuvwxyz 0123456789")


def random_tree(seed, *, layers, groups, prefix, depth, width=4):
    """A state after ``depth`` tokens of rows that split at random, and its rows one by one."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    shared = [draw(1, groups, prefix, width) for _ in range(2 * layers)]
    state = SharedPrefix.of(shared, length=prefix)
    alone = list(shared)  # the slow definition: every row has a copy of everything
    for _ in range(depth):
        many = int(torch.randint(1, 7, (1,), generator=generator))
        rows = torch.randint(0, state.rows, (many,), generator=generator)
        tokens = [draw(many, groups, 1, width) for _ in range(2 * layers)]
        state = state.take(rows).grown(tokens)
        alone = [torch.cat([old[rows], new], 2) for old, new in zip(alone, tokens, strict=True)]
    return state, alone, draw


@given(
    seed=st.integers(0, 10**6),
    groups=st.integers(1, 3),
    share=st.integers(1, 3),
    prefix=st.integers(1, 6),
    depth=st.integers(0, 5),
)
@settings(max_examples=60)
def test_attention_after_a_shared_prefix_is_ordinary_attention(seed, groups, share, prefix, depth):
    state, alone, draw = random_tree(seed, layers=2, groups=groups, prefix=prefix, depth=depth)
    for found, expected in zip(state.whole(), alone, strict=True):
        assert torch.equal(found, expected)
    queries, keys, values = (draw(state.rows, groups * n, 1, 4) for n in (share, 1, 1))
    for layer in (0, 1):
        found = attend_shared(queries, keys, values, state=state, layer=layer)
        every = [
            torch.cat([alone[2 * layer + i], new], 2).repeat_interleave(share, 1)
            for i, new in enumerate((keys, values))
        ]
        scores = queries @ every[0].transpose(2, 3) / math.sqrt(4)
        torch.testing.assert_close(found, scores.softmax(3) @ every[1], rtol=0, atol=1e-12)


def test_taking_children_copies_no_keys_and_no_values():
    state, _, _ = random_tree(3, layers=2, groups=2, prefix=50, depth=2)
    children = state.take(torch.zeros(1000, dtype=torch.int64))
    assert children.prefix is state.prefix
    assert children.levels is state.levels
    assert children.rows == 1000
    # A row takes its own token and some places, however long the prefix is.
    longer, _, _ = random_tree(3, layers=2, groups=2, prefix=500, depth=2)
    assert longer.row_bytes == state.row_bytes
    token = sum(tensor[:, :, :1].nbytes for tensor in state.prefix)
    assert token <= state.row_bytes < 8 * token
    assert state.row_bytes + 3 * token <= state.row_bytes_after(4)


def test_a_window_cuts_what_is_made_whole():
    state, alone, _ = random_tree(5, layers=2, groups=1, prefix=4, depth=3)
    found = state.whole([None, 3])
    assert [tensor.shape[2] for tensor in found] == [7, 7, 2, 2]
    assert torch.equal(found[2], alone[2][:, :, -2:])


class CopyingGpt(Gpt):
    """The slow twin: each row has a copy of everything that was read before it."""

    def shared(self, state):
        return state


def both_ways(dtype):
    torch.manual_seed(0)
    sizes = {"units": 16, "layers": 2, "heads": 2, "context": 40, "dropout": 0.0}
    module = gpt(LETTERS.size, **sizes)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    copying = CopyingGpt(LETTERS.size, **sizes)
    copying.load_state_dict(module.state_dict())
    return [LanguageModel(each, LETTERS, dtype=dtype) for each in (module, copying)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ranks_and_costs_are_those_of_a_copy_for_each_row(dtype):
    fast, slow = both_ways(dtype)
    assert isinstance(fast.start([1])[1], SharedPrefix)
    assert isinstance(slow.start([1])[1], tuple)
    secrets = ["281 ab", "000 ba", "999 ab"]
    found, expected = (exact_exposure(m, TEMPLATE, secrets=secrets) for m in (fast, slow))
    assert found.rank.tolist() == expected.rank.tolist()
    assert found.nodes == expected.nodes
    for one, other in zip(found, expected, strict=True):
        assert one.cost == pytest.approx(other.cost, abs=1e-9)
    best, slow_best = (extract(m, TEMPLATE, top=5) for m in (fast, slow))
    assert [s for s, _ in best.candidates] == [s for s, _ in slow_best.candidates]
    assert best.certified
    assert slow_best.certified


def test_little_memory_and_small_pieces_change_no_rank(monkeypatch):
    from remnant.models import language_model

    fast, _ = both_ways(torch.float64)
    expected = exact_exposure(fast, TEMPLATE, secrets=["281 ab", "404 ba"])
    monkeypatch.setitem(language_model._AT_ONCE, "cpu", 3)
    found = exact_exposure(fast, TEMPLATE, secrets=["281 ab", "404 ba"], memory=60_000)
    assert found.rank.tolist() == expected.rank.tolist()


def test_a_translator_shares_the_target_that_was_read():
    torch.manual_seed(0)
    module = transformer(LETTERS.size, units=8, source_length=6, context=9)
    model = LanguageModel(module.double().given([3, 4, 5]), LETTERS, dtype=torch.float64)
    _, state = model.start([1, 2])
    assert isinstance(state, SharedPrefix)
    _, state = model.step(model.take(state, [0, 0, 0]), [5, 6, 7])
    found, _ = model.step(model.take(state, [2, 0]), [8, 9])
    for row, ids in enumerate(([1, 2, 7, 8], [1, 2, 5, 9])):
        torch.testing.assert_close(found[row], model.start(ids)[0][0], rtol=0, atol=1e-12)
