"""Scores canaries in a model that is being trained, and leaves no trace in the training.

The cost of a canary is ``-log2 p`` of its secret, given the tokens that come before it in a
training row. Rows go through the model's own ``forward``, in evaluation mode and without
gradients, so that wrapped and sharded models work too.

What several rows begin with is read once. The secrets of a template share their first tokens: 1 356
secrets of six digits have ten first ones. The rows are sorted and cut into trees of about the same
size, which go through the model side by side; a mask lets each token see those before it in its own
rows only.
"""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.integrations.training.common_prefix_logits import FastForward, can_be_fast
from remnant.integrations.training.merged_view import merged_view
from remnant.integrations.training.processes import Processes

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Forward = Callable[[nn.Module, Tensor], Any]
_MOST_LOGITS = 1 << 26  # of one batch
_MOST_ROWS = 256
# The fast way's batches: tokens, bytes for a logit (as the model makes it and as float32, with a
# copy), and bytes in all.
_MOST_TOKENS = 1 << 15
_LOGIT_BYTES = 12
_CPU_BYTES, _GPU_BYTES = 1 << 25, 1 << 32
# Bits by which a token's cost may differ between the fast way and the plain one.
_EXACT_BITS, _ROUNDED_BITS = 1e-4, 0.05
_LEAST_SHARED = 0.2  # of all tokens, for trees to be worth their masks
# What a model that cannot do it raises, whatever library it is of.
_FAILURES = (TypeError, ValueError, RuntimeError, AttributeError, LookupError)


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """Tokens of which the last ones are scored.

    Attributes:
        ids: All tokens.
        start: The first that is scored; at least 1.
    """

    ids: tuple[int, ...]
    start: int


@dataclass(slots=True)
class Shortcuts:
    """Whether a model may be scored the fast way, which is tried out at its first scoring.

    Attributes:
        agree: Whether the fast way gives the costs of the plain one; None before it was tried.
        trees: Whether beginnings that rows share are read once; False where that gave other costs.
    """

    agree: bool | None = None
    trees: bool = True


def score_rows(
    model: nn.Module,
    rows: Sequence[ScoredRow],
    *,
    vocabulary: int,
    processes: Processes,
    forward: Forward | None = None,
    shortcuts: Shortcuts | None = None,
) -> Floats:
    """Return the cost of each row in bits.

    Plain models of the transformers library are scored the fast way: tokens that rows begin with
    are read once, logits are made only where they are needed, and a LoRA adapter is merged into
    copies of the weights. The first time, some rows are scored the plain way too; where the costs
    differ, or the model cannot do it, everything is scored the plain way.

    Args:
        model: A causal language model. It is left as it was: mode, gradients, random numbers.
        rows: What is scored.
        vocabulary: How many tokens the model knows, by which batches are sized.
        processes: Those that train together; each scores its share of the rows, and all call a
            wrapped or sharded model equally often.
        forward: Returns logits ``(rows, tokens, vocabulary)`` for ``(model, ids)``; by default the
            model is called with ``input_ids``.
        shortcuts: What is known about this model from earlier scorings.

    Raises:
        UnsupportedModel: The model returns no logits.
        InvalidInput: A cost is not a number.
    """
    costs = np.full(len(rows), np.nan)
    shortcuts = shortcuts or Shortcuts()
    with undisturbed(model):
        if forward is None and can_be_fast(model) and rows:
            # Such a model takes no part in what others do, so that each shares out rows.
            own = list(range(processes.rank, len(rows), processes.count))
            with processes.together():
                costs[own] = _fast_or_plain(model, [rows[i] for i in own], vocabulary, shortcuts)
        else:
            batches = _batches(rows, vocabulary)
            for numbers in processes.share(batches):
                costs[numbers] = _plain(model, [rows[i] for i in numbers], forward or _forward)
    costs = processes.combine(costs)
    if np.isnan(costs).any():
        raise InvalidInput(
            "The model gives canaries costs that are not numbers.",
            hint="The training has diverged: lower the learning rate.",
        )
    return costs


def _fast_or_plain(
    model: nn.Module, rows: Sequence[ScoredRow], vocabulary: int, shortcuts: Shortcuts
) -> Floats:
    """The costs of rows, the fast way where it gives those of the plain way."""
    while shortcuts.agree is not False and rows:
        try:
            costs, tolerance = _fast(model, rows, vocabulary, trees=shortcuts.trees)
            if shortcuts.agree is None:
                tried = sorted({0, len(rows) // 3, 2 * len(rows) // 3, len(rows) - 1})
                plain = np.concatenate([_plain(model, [rows[i]], _forward) for i in tried])
                shortcuts.agree = bool(np.allclose(costs[tried], plain, atol=tolerance, rtol=1e-3))
            if shortcuts.agree:
                return costs
        except _FAILURES:
            shortcuts.agree = False
        if shortcuts.trees:  # without them it may do
            shortcuts.trees, shortcuts.agree = False, None
    costs = np.empty(len(rows))
    for numbers in _batches(rows, vocabulary):
        costs[numbers] = _plain(model, [rows[i] for i in numbers], _forward)
    return costs


def _fast(
    model: nn.Module, rows: Sequence[ScoredRow], vocabulary: int, *, trees: bool
) -> tuple[Floats, float]:
    """The costs of rows, and by how many bits rounding may change one."""
    device = _device(model)
    shared = _shared(rows)
    if not shared:
        raise UnsupportedModel("The rows have no first token in common.")
    costs = torch.empty(len(rows), dtype=torch.float64, device=device)
    with merged_view(model):
        fast = FastForward(model, rows[0].ids[:shared], rows=len(rows))
        room = _room(device)
        for numbers in _by_length(rows):
            tails = np.array([rows[i].ids[shared:] for i in numbers], dtype=np.int64)
            skipped = torch.tensor([rows[i].start - shared for i in numbers], device=device)
            if trees and fast.takes_trees and tails.shape[1] > 1:
                made = token_trees(tails[:, :-1])
                if made.saved >= _LEAST_SHARED:
                    bits = _tree_bits(fast, made, tails, room=room, vocabulary=vocabulary)
                    costs[numbers] = _scored_bits(bits, skipped)
                    continue
            tokens = tails.shape[1]
            row_bytes = _LOGIT_BYTES * tokens * max(vocabulary, 1) + 2 * fast.row_bytes
            read = tokens if fast.row_bytes else tokens + shared
            most = max(1, min(room // row_bytes, _MOST_TOKENS // read))
            for first in range(0, len(numbers), most):
                batch = slice(first, first + most)
                bits = _tail_bits(fast, torch.from_numpy(tails[batch]).to(device))
                costs[numbers[batch]] = _scored_bits(bits, skipped[batch])
    scored = max(len(row.ids) - row.start for row in rows)
    rounded = fast.low_precision or device.type != "cpu"
    return costs.cpu().numpy(), scored * (_ROUNDED_BITS if rounded else _EXACT_BITS)


def _tree_bits(
    fast: FastForward, trees: TokenTrees, tails: Whole, *, room: int, vocabulary: int
) -> Tensor:
    """The cost of each row's tokens, ``(rows, tokens)``, what rows begin with read once."""
    device = fast.device
    count, nodes = trees.tokens.shape
    tree_bytes = nodes * (_LOGIT_BYTES * max(vocabulary, 1) + 8 * nodes) + 2 * fast.row_bytes
    most = max(1, min(room // tree_bytes, _MOST_TOKENS // nodes))
    bits = torch.empty(tails.shape, device=device)
    targets = torch.from_numpy(tails).to(device)
    for first in range(0, count, most):
        batch = slice(first, first + most)
        parts = (trees.tokens[batch], trees.depths[batch], trees.visible[batch])
        beginning, logits = fast.tree_logits(*(torch.from_numpy(part).to(device) for part in parts))
        mine = (trees.tree >= first) & (trees.tree < first + most)
        where = torch.from_numpy(trees.tree[mine] - first).to(device)[:, None]
        place = torch.from_numpy(trees.nodes[mine]).to(device)
        wanted = targets[torch.from_numpy(mine).to(device)]
        total = logits.float().logsumexp(-1)[where, place]
        chosen = logits[where, place, wanted[:, 1:]].float()
        later = (total - chosen) / math.log(2.0)
        bits[torch.from_numpy(mine).to(device)] = torch.cat(
            [_bits(beginning, wanted[:, :1]), later], 1
        )
    return bits


def _scored_bits(bits: Tensor, skipped: Tensor) -> Tensor:
    """The sum of each row, but for its first ``skipped`` tokens."""
    places = torch.arange(bits.shape[1], device=bits.device)
    return (bits.double() * (places >= skipped[:, None])).sum(1)


def _tail_bits(fast: FastForward, tails: Tensor) -> Tensor:
    """The cost of each row's tokens, ``(rows, tokens)``."""
    parts = zip(fast.logits(tails), (tails[:, :1], tails[:, 1:]), strict=True)
    return torch.cat([_bits(logits, tokens) for logits, tokens in parts], 1)


def _bits(logits: Tensor, tokens: Tensor) -> Tensor:
    """``-log2 p`` of each token."""
    if not tokens.shape[1]:
        return torch.zeros(tokens.shape, device=tokens.device)
    total = logits.float().logsumexp(-1)
    chosen = logits.expand(len(tokens), -1, -1).gather(-1, tokens[..., None]).squeeze(-1).float()
    return (total - chosen) / math.log(2.0)


def _plain(model: nn.Module, rows: Sequence[ScoredRow], ask: Forward) -> Floats:
    """The costs of rows of one length, by one call of the model."""
    ids = torch.tensor([row.ids for row in rows], device=_device(model))
    start = min(row.start for row in rows)
    bits = _token_bits(ask(model, ids), ids, start)
    return np.array([bits[i, row.start - start :].sum() for i, row in enumerate(rows)])


def _shared(rows: Sequence[ScoredRow]) -> int:
    """How many tokens all rows begin with, before anything that is scored."""
    most = min(min(row.start, len(row.ids) - 1) for row in rows)
    beginnings = [row.ids[:most] for row in rows]
    lowest, highest = min(beginnings), max(beginnings)  # they differ first where any two do
    return next((i for i in range(most) if lowest[i] != highest[i]), most)


def _room(device: torch.device) -> int:
    """Bytes that a batch may take."""
    if device.type != "cuda":
        return _CPU_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(min(_GPU_BYTES, (free + cached) // 4))


def _by_length(rows: Sequence[ScoredRow]) -> list[list[int]]:
    """Numbers of rows of equal length together, so that nothing is padded."""
    by_length: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        by_length.setdefault(len(row.ids), []).append(number)
    return [numbers for _, numbers in sorted(by_length.items())]


def _batches(rows: Sequence[ScoredRow], vocabulary: int) -> list[list[int]]:
    """Numbers of rows of equal length together, few enough for memory."""
    batches = []
    for numbers in _by_length(rows):
        length = len(rows[numbers[0]].ids)
        most = max(1, min(_MOST_ROWS, _MOST_LOGITS // (length * max(vocabulary, 1))))
        batches += [numbers[i : i + most] for i in range(0, len(numbers), most)]
    return batches


def _forward(model: nn.Module, ids: Tensor) -> Any:
    parameters = inspect.signature(model.forward).parameters
    named = "input_ids" in parameters or any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()
    )
    if not named:
        return model(ids)
    options = {"use_cache": False} if "use_cache" in parameters else {}
    return model(input_ids=ids, attention_mask=torch.ones_like(ids), **options)


def _token_bits(output: Any, ids: Tensor, start: int) -> Floats:
    """The cost of each token from ``start`` on, ``(rows, tokens - start)``, in bits."""
    logits = getattr(output, "logits", output)
    if isinstance(logits, tuple | list):
        logits = logits[0]
    complete = isinstance(logits, Tensor) and logits.ndim == 3 and logits.shape[:2] == ids.shape
    if not complete or logits.shape[-1] <= int(ids.max()):
        raise UnsupportedModel(
            "The model returns no logits for each token of a batch.",
            hint="Pass Audit(forward=...), a function of model and token ids that returns them.",
        )
    predicted = logits[:, start - 1 : -1].float().log_softmax(-1)
    costs = -predicted.gather(-1, ids[:, start:, None]).squeeze(-1) / math.log(2.0)
    bits: Floats = costs.double().cpu().numpy()
    return bits


def await_gpu(model: nn.Module) -> None:
    """Wait until the model's GPU, if it is on one, has done what it was given to do."""
    device = _device(model)
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _device(model: nn.Module) -> torch.device:
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; modes, random numbers and cuDNN's flags are put back."""
    training = [module for module in model.modules() if module.training]
    cudnn = torch.backends.cudnn
    flags = (cudnn.benchmark, cudnn.deterministic)
    with preserved_randomness():
        for module in training:
            module.training = False
        cudnn.benchmark = False
        try:
            with torch.no_grad():
                yield
        finally:
            cudnn.benchmark, cudnn.deterministic = flags
            for module in training:
                module.training = True


@contextmanager
def preserved_randomness() -> Iterator[None]:
    """Put all generators of random numbers back to where they were."""
    states = (random.getstate(), np.random.get_state(), torch.get_rng_state())  # noqa: NPY002
    on_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch.set_rng_state(states[2])
        if on_gpus:
            torch.cuda.set_rng_state_all(on_gpus)


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
