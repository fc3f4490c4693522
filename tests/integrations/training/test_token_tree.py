"""Trees of tokens hold exactly the rows that they were made of."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.integrations.training.scoring import token_trees


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 5), st.integers(1, 30), st.integers(1, 12), st.integers(0, 1000))
def test_every_row_sees_its_own_tokens_and_no_others(length, many, most, seed):
    rows = np.random.default_rng(seed).integers(0, 3, size=(many, length))
    trees = token_trees(rows, most=most)
    for row in range(many):
        tree, nodes = trees.tree[row], trees.nodes[row]
        assert trees.tokens[tree, nodes].tolist() == rows[row].tolist()
        assert trees.depths[tree, nodes].tolist() == list(range(length))
        for depth in range(length):
            seen = np.flatnonzero(trees.visible[tree, nodes[depth]])
            assert sorted(seen) == sorted(nodes[: depth + 1])
    assert trees.tokens.shape[1] <= max(most, length)


def test_shared_beginnings_are_held_once():
    rows = np.array([[1, 2, 3], [1, 2, 4], [1, 5, 3], [1, 2, 3]])
    trees = token_trees(rows)
    assert trees.tokens.shape == (1, 6)
    assert trees.saved == 0.5
