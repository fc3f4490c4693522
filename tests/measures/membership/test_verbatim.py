"""Windows of texts: what greedy decoding and sampling give back."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from remnant.measures.membership.attacks import window_rows


def rows(lengths, width, seed=0, unpredicted=0):
    rng = np.random.default_rng(seed)
    shape = (len(lengths), width)
    return SimpleNamespace(
        log_probs=-rng.exponential(1.0, size=shape),
        standard=np.zeros(shape),
        correct=rng.random(shape) < 0.8,
        lengths=np.array(lengths) - unpredicted,
    )


@pytest.mark.parametrize("unpredicted", [0, 1])
@pytest.mark.parametrize("half", [1, 2, 5])
def test_windows_agree_with_their_definition(half, unpredicted):
    lengths = [0 + unpredicted, 1 + unpredicted, 2 * half, 2 * half - 1, 23]
    tokens = rows(lengths, 23, unpredicted=unpredicted)
    windows = window_rows(tokens, half, unpredicted=unpredicted)
    for i, length in enumerate(lengths):
        assert windows.counts[i] == length // (2 * half)
        for number in range(windows.log_probability.shape[1]):
            first = number * 2 * half + half - unpredicted
            place = slice(first, first + half)
            if number >= windows.counts[i]:
                assert windows.log_probability[i, number] == -np.inf
                assert not windows.greedy[i, number]
                continue
            wanted = tokens.log_probs[i, place].sum()
            assert windows.log_probability[i, number] == pytest.approx(wanted)
            assert windows.greedy[i, number] == tokens.correct[i, place].all()


def test_texts_that_are_too_short_have_no_window():
    windows = window_rows(rows([3, 4], 4), 32)
    assert windows.counts.tolist() == [0, 0]
    assert windows.greedy.shape == (2, 0)
