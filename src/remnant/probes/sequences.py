"""Step-wise costs of token sequences, in bits; what they have in common is read once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import InvalidInput
from remnant.models.protocols import SequenceModel, TextScorer
from remnant.probes.counted_model import (
    BITS,
    Asked,
    TimeLimit,
    check_tokens,
    memory_budget,
    nan_answer,
)
from remnant.progress import Progress

Floats = NDArray[np.float64]
Ids = Sequence[int]
ROWS = 4096
_ANSWERS, _STATES = 5, 4  # as wide as the vocabulary, and states, that a row holds at its peak


@dataclass(frozen=True, slots=True, eq=False)
class TextCosts:
    """What a model pays for texts that begin alike.

    Attributes:
        bits: Cost of each text from the first token that is not shared with the prefix, ``(n,)``.
        prefix_tokens: How many tokens were read before that.
        nodes: Rows passed to ``step``.
    """

    bits: Floats
    prefix_tokens: int
    nodes: int


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """One place of sorted paths: what is read to get there, and what is asked there.

    Attributes:
        parents, tokens: Which rows of the level before are read on, and with which token; none at
            the first level.
        paths: Those that have this place, by their number.
        rows, wanted: Of each, the row that holds its prefix, and the token that it has here.
    """

    parents: Tensor
    tokens: Tensor
    paths: Tensor
    rows: Tensor
    wanted: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class PathTree:
    """Token sequences laid out to be read, by any number of models: sorted, what they share once.

    Attributes:
        shape: Number of paths, and tokens of the longest.
        ends: The smallest and the largest token.
        rows: So many paths are read at a time.
    """

    shape: tuple[int, int]
    ends: NDArray[np.int64]
    rows: int
    _chunks: Iterable[tuple[_Level, ...]]

    def costs(self, asked: Asked, *, progress: Progress | None = None) -> Floats:
        """Return ``-log2 p`` of every token of every path, ``(paths, longest)``.

        Beyond the end of a shorter path the cost is 0.

        Args:
            asked: The model, which has read the prefix.
            progress: Called with what is done, how many paths, and of how many.
        """
        check_tokens(self.ends, asked.vocabulary)
        bits = torch.zeros(self.shape, dtype=torch.float64, device=asked.device)
        for done, levels in enumerate(self._chunks, start=1):
            log_probs, state = asked.first, asked.first_state
            for place, level in enumerate(levels):
                paths, rows, wanted = (
                    tensor.to(asked.device) for tensor in (level.paths, level.rows, level.wanted)
                )
                if place:
                    parents, tokens = level.parents.to(asked.device), level.tokens.to(asked.device)
                    log_probs, state = asked.step(asked.take(state, parents), tokens)
                bits[paths, place] = -log_probs[rows, wanted].double() * BITS
            if progress is not None:
                progress("costs", min(done * self.rows, self.shape[0]), self.shape[0])
        costs: Floats = bits.cpu().numpy()
        if np.isnan(costs).any():
            raise nan_answer()
        return np.maximum(costs, 0.0)  # rounding may leave a certain token at 1 + 1e-7


def lay_out(paths: Sequence[Ids], *, rows: int = ROWS) -> PathTree:
    """Sort token sequences, and note which prefixes they share.

    Args:
        paths: Token sequences, from 0 tokens on.
        rows: At most so many paths are read at a time.

    Example:
        >>> lay_out([[5, 1], [5, 2], [4]]).shape
        (3, 2)
    """
    once = _laid_out(paths, rows)
    return dataclasses.replace(once, _chunks=tuple(once._chunks))


def _laid_out(paths: Sequence[Ids], rows: int) -> PathTree:
    """Lay paths out to be read once: what is noted of them is made as it is needed."""
    lengths = np.array([len(path) for path in paths], dtype=np.int64)
    padded = np.full((len(paths), int(lengths.max(initial=0))), -1, dtype=np.int64)
    for row, path in enumerate(paths):
        padded[row, : len(path)] = path
    tokens = padded[np.arange(padded.shape[1]) < lengths[:, None]]
    order = np.lexsort(padded.T[::-1]) if padded.size else np.arange(0)
    chunks = [order[at : at + rows] for at in range(0, len(order), rows)]
    return PathTree(
        shape=(padded.shape[0], padded.shape[1]),
        ends=np.array([tokens.min(), tokens.max()] if len(tokens) else [], dtype=np.int64),
        rows=rows,
        _chunks=(_levels(chunk, padded[chunk], lengths[chunk]) for chunk in chunks),
    )


def _levels(
    numbers: NDArray[np.int64], paths: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[_Level, ...]:
    group = np.zeros(len(paths), dtype=np.int64)  # of each path, the row that holds its prefix
    levels = []
    for place in range(int(lengths.max())):
        here = np.flatnonzero(lengths > place)
        parents = tokens = np.zeros(0, dtype=np.int64)
        if place:
            before = paths[here, :place]
            new = np.ones(len(here), dtype=bool)
            new[1:] = (before[1:] != before[:-1]).any(1)
            parents, tokens = group[here[new]], paths[here[new], place - 1]
            group[here] = np.cumsum(new) - 1
        noted = (parents, tokens, numbers[here], group[here], paths[here, place])
        levels.append(_Level(*map(torch.from_numpy, noted)))
    return tuple(levels)


def rows_within(asked: Asked, *, tokens: int, memory: int | None = None, most: int = ROWS) -> int:
    """Return how many paths may be read at a time within a memory budget; at least one.

    A row has its answer before and after a step, the logits and what their softmax needs, and its
    state before the step, as it was taken, and after it.

    Args:
        asked: The model, which has read the prefix.
        tokens: Of the longest path.
        memory: Bytes; see ``memory_budget``.
        most: No more than this.
    """
    state = asked.row_bytes_after(tokens)
    each = _ANSWERS * asked.vocabulary * asked.dtype.itemsize + _STATES * state
    return max(1, min(most, memory_budget(asked.devices, memory) // each))


def token_costs(
    asked: Asked,
    paths: Sequence[Ids],
    *,
    rows: int = ROWS,
    memory: int | None = None,
    progress: Progress | None = None,
) -> Floats:
    """Return ``-log2 p`` of every token of every path after the prefix, ``(paths, longest)``.

    Beyond the end of a shorter path the cost is 0. Paths are read in sorted order, and prefixes
    that several of them share are passed to the model once.

    Args:
        asked: The model, which has read the prefix.
        paths: Token sequences; each has at least one token.
        rows: At most so many paths at a time.
        memory: Bytes that may be held; see ``memory_budget``.
        progress: Called with what is done, how many paths, and of how many.
    """
    longest = max(map(len, paths), default=0)
    rows = rows_within(asked, tokens=longest, memory=memory, most=rows)
    return _laid_out(paths, rows).costs(asked, progress=progress)


def text_costs(
    model: SequenceModel | TextScorer,
    *,
    prefix: str,
    texts: Sequence[str],
    rows: int = ROWS,
    memory: int | None = None,
    max_seconds: float | None = None,
    prefix_tokens: int | None = None,
    progress: Progress | None = None,
) -> TextCosts:
    """Return the cost of whole texts from the end of ``prefix`` on, by any tokenizer.

    Where the tokenizer joins the end of the prefix with what follows in any of the texts, the cost
    begins at the first token that is not the same in all of them.

    Args:
        model: Anything with ``encode``, ``start``, ``step`` and ``take``, or that has
            ``text_costs`` itself.
        prefix: What all texts begin with.
        texts: Whole texts.
        rows: At most so many texts are scored at a time.
        memory: Bytes that may be held; half of what is free, on a CPU at most 1 GiB.
        max_seconds: For encoding the texts and reading the prefix; scoring is not limited.
        prefix_tokens: Read at most so many tokens before the costs begin: as many as in an earlier
            call with more texts, whose costs are then comparable.
        progress: Called with what is done, how many texts, and of how many.

    Raises:
        InvalidInput: A text does not begin with the prefix.
        OutOfTime: ``max_seconds`` were over before the prefix was read.
    """
    if not all(text.startswith(prefix) for text in texts):
        raise InvalidInput("A text does not begin with the prefix.")
    if isinstance(model, TextScorer):
        scored: TextCosts = model.text_costs(
            prefix=prefix, texts=texts, prefix_tokens=prefix_tokens, progress=progress
        )
        return scored
    limit = TimeLimit(max_seconds)
    encode = limit.encode(model.encode)
    encoded = [list(encode(text)) for text in texts]
    shared = list(encode(prefix))
    common = len(shared)
    for ids in encoded:
        while ids[:common] != shared[:common]:
            common -= 1
    if prefix_tokens is not None:
        common = min(common, prefix_tokens)
    asked = Asked(model, shared[:common], limit=limit)
    paths = [ids[common:] for ids in encoded]
    bits = token_costs(asked, paths, rows=rows, memory=memory, progress=progress).sum(1)
    return TextCosts(bits=bits, prefix_tokens=common, nodes=asked.nodes)
