"""Step-wise costs of token sequences, in bits; what they have in common is read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.errors import InvalidInput
from remnant.models.protocols import SequenceModel
from remnant.probes.asking import BITS, Asked, check_tokens, nan_answer

Floats = NDArray[np.float64]
Ids = Sequence[int]
Progress = Callable[[str, int, int], None]
ROWS = 4096


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


def token_costs(
    asked: Asked, paths: Sequence[Ids], *, rows: int = ROWS, progress: Progress | None = None
) -> Floats:
    """Return ``-log2 p`` of every token of every path after the prefix, ``(paths, longest)``.

    Beyond the end of a shorter path the cost is 0. Paths are read in sorted order, and prefixes
    that several of them share are passed to the model once.

    Args:
        asked: The model, which has read the prefix.
        paths: Token sequences; each has at least one token.
        rows: At most so many paths at a time.
        progress: Called with what is done, how many paths, and of how many.
    """
    lengths = np.array([len(path) for path in paths], dtype=np.int64)
    if len(lengths) == 0 or lengths.max(initial=0) == 0:
        return np.zeros((len(lengths), 0))
    padded = np.full((len(paths), int(lengths.max())), -1, dtype=np.int64)
    for row, path in enumerate(paths):
        padded[row, : len(path)] = path
    check_tokens(padded[padded >= 0], asked.vocabulary)
    order = np.lexsort(padded.T[::-1])
    costs = np.zeros(padded.shape)
    for at in range(0, len(order), rows):
        chunk = order[at : at + rows]
        costs[chunk] = _sorted_costs(asked, padded[chunk], lengths[chunk])
        if progress is not None:
            progress("costs", min(at + rows, len(order)), len(order))
    return costs


def _sorted_costs(asked: Asked, paths: NDArray[np.int64], lengths: NDArray[np.int64]) -> Floats:
    costs = np.zeros(paths.shape)
    log_probs, state = asked.first, asked.first_state
    group = np.zeros(len(paths), dtype=np.int64)  # of each path, the row that holds its prefix
    for t in range(paths.shape[1]):
        active = np.flatnonzero(lengths > t)
        if t > 0:
            here = paths[active, :t]
            new = np.ones(len(active), dtype=bool)
            new[1:] = (here[1:] != here[:-1]).any(1)
            parents = torch.from_numpy(group[active[new]]).to(asked.device)
            tokens = torch.from_numpy(paths[active[new], t - 1]).to(asked.device)
            log_probs, state = asked.step(asked.take(state, parents), tokens)
            group[active] = np.cumsum(new) - 1
        found = log_probs[
            torch.from_numpy(group[active]).to(asked.device),
            torch.from_numpy(paths[active, t]).to(asked.device),
        ]
        costs[active, t] = -found.double().cpu().numpy() * BITS
    if np.isnan(costs).any():
        raise nan_answer()
    return np.maximum(costs, 0.0)  # rounding may leave a certain token at 1 + 1e-7


def text_costs(
    model: SequenceModel,
    *,
    prefix: str,
    texts: Sequence[str],
    rows: int = ROWS,
    progress: Progress | None = None,
) -> TextCosts:
    """Return the cost of whole texts from the end of ``prefix`` on, by any tokenizer.

    Where the tokenizer joins the end of the prefix with what follows in any of the texts, the cost
    begins at the first token that is not the same in all of them.

    Raises:
        InvalidInput: A text does not begin with the prefix.
    """
    if not all(text.startswith(prefix) for text in texts):
        raise InvalidInput("A text does not begin with the prefix.")
    encoded = [list(model.encode(text)) for text in texts]
    shared = list(model.encode(prefix))
    common = len(shared)
    for ids in encoded:
        while ids[:common] != shared[:common]:
            common -= 1
    asked = Asked(model, shared[:common])
    paths = [ids[common:] for ids in encoded]
    bits = token_costs(asked, paths, rows=rows, progress=progress).sum(1)
    return TextCosts(bits=bits, prefix_tokens=common, nodes=asked.nodes)
