"""Rows of tokens as trees, so that what several rows begin with is read once.

The secrets of a template share their first tokens: 1 356 secrets of six digits have ten first ones.
The rows are sorted and cut into trees of about the same size, which go through the model side by
side; a mask lets each token see those before it in its own rows only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
NODES = 64  # of one tree; more of them share more, and look at more of each other


@dataclass(frozen=True, slots=True, eq=False)
class TokenTrees:
    """The tokens of rows of one length, each beginning that rows share once.

    Attributes:
        tokens: Of each node, shape ``(trees, nodes)``; 0 where a tree has fewer.
        depths: How many tokens come before it, in the same shape.
        visible: Which nodes each one sees: itself and those before it, shape
            ``(trees, nodes, nodes)``.
        tree: The tree of each row, shape ``(rows,)``.
        nodes: The node of each of a row's tokens in it, shape ``(rows, tokens)``.
    """

    tokens: Whole
    depths: Whole
    visible: NDArray[np.bool_]
    tree: Whole
    nodes: Whole

    @property
    def saved(self) -> float:
        """The share of all tokens that need not be read."""
        return 1.0 - self.tokens.size / self.nodes.size


def token_trees(rows: Whole, *, most: int = NODES) -> TokenTrees:
    """Make trees of rows.

    Args:
        rows: Shape ``(rows, tokens)``, both at least 1.
        most: Nodes of a tree, unless one row has more tokens.

    Guarantees:
        * The tokens of row r are ``tokens[tree[r], nodes[r]]``.
        * Each of them sees exactly those of the row up to itself.

    Example:
        >>> trees = token_trees(np.array([[1, 2], [1, 3], [4, 2]]))
        >>> trees.tokens.shape, trees.tokens[trees.tree, trees.nodes.T].T.tolist()
        ((1, 5), [[1, 2], [1, 3], [4, 2]])
    """
    many, length = rows.shape
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    fresh = np.ones((many, length), dtype=bool)
    fresh[1:] = np.logical_or.accumulate(ordered[1:] != ordered[:-1], axis=1)
    added = fresh.sum(1)
    tree, size = np.zeros(many, dtype=np.int64), 0
    for row, more in enumerate(added.tolist()):
        if row and size + more > max(most, length):
            tree[row:] += 1
            size, more = 0, length
            fresh[row] = True
        size += more
    # A node's number is how many were new in its tree up to it, those of its own row by depth.
    running = np.cumsum(fresh.reshape(-1)).reshape(many, length) - 1
    begins = running[np.searchsorted(tree, tree), 0]
    number = np.where(fresh, running - begins[:, None], 0)
    nodes = np.empty_like(number)
    for depth in range(length):
        last = np.maximum.accumulate(np.where(fresh[:, depth], np.arange(many), 0))
        nodes[:, depth] = number[last, depth]
    trees, widest = int(tree[-1]) + 1, int(nodes.max()) + 1
    tokens = np.zeros((trees, widest), dtype=np.int64)
    depths = np.zeros((trees, widest), dtype=np.int64)
    visible = np.zeros((trees, widest, widest), dtype=bool)
    visible[:, np.arange(widest), np.arange(widest)] = True
    tokens[tree[:, None], nodes] = ordered
    depths[tree[:, None], nodes] = np.arange(length)
    for depth in range(length):
        visible[tree[:, None], nodes[:, depth, None], nodes[:, : depth + 1]] = True
    back = np.empty(many, dtype=np.int64)
    back[order] = np.arange(many)
    return TokenTrees(tokens, depths, visible, tree[back], nodes[back])
