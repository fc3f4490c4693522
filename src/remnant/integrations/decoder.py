"""The base class of causal models and encoder-decoders: reads a text token by token.

As many rows go through a model at once as fit, so that a step never runs out of memory.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.integrations.arithmetic import computing_device, full_precision
from remnant.integrations.key_values import (
    KeyValues,
    Windows,
    put_in,
    split_attention,
    taken_out,
    windows_of,
)
from remnant.integrations.pretrained import quiet
from remnant.integrations.tokenizer import HuggingFaceTokenizer
from remnant.models.shared_prefix import SharedPrefix
from remnant.population.memory import free_bytes

if TYPE_CHECKING:
    from typing_extensions import Self


State = SharedPrefix | Tensor
_CHECK_ROWS, _CHECK_TOKENS, _CHECK_START = 2, 8, 5
# Errors of rounding, as a share of how much the log-probabilities vary.
_ROUNDING = {torch.float32: 3e-4, torch.float64: 1e-10}
_LOWER = (torch.bfloat16, torch.float16)
# The errors of a model that does not take a cache of keys and values.
_NO_CACHE = (TypeError, ValueError, KeyError, IndexError, AttributeError, RuntimeError)


class HuggingFaceDecoder(ABC):
    """A model of the transformers library behind the protocol of sequence models.

    A state holds the keys and values of the tokens read so far, those of a common prefix once for
    all rows. If the model caches something else
    (a recurrent net), or its cached answers differ from the uncached ones, the state is the tokens
    themselves and every step reads all of them again: slower, but equally exact. A short artificial
    text decides this when the model is wrapped.

    Attributes:
        cached: Whether states hold keys and values.
        splits: Whether attention reads a common prefix in one copy. Otherwise each step makes the
            whole keys and values of its rows, which are dropped after it.
        tokens: The texts that are one token, in the order of the vocabulary.
        precision: In which it computes. Answers are in float32 where that is lower, and a search
            decides close calls by ``in_float64``.
    """

    cached: bool
    splits: bool = False

    def __init__(
        self,
        model: Any,
        tokenizer: HuggingFaceTokenizer,
        *,
        rows_at_once: int | None,
        own_precision: bool = False,
        widen: bool = False,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._rows_at_once = checked_rows_at_once(rows_at_once)
        self._weights = _checked_dtype(model, own_precision=own_precision)
        self._widen = widen
        self.precision: torch.dtype = torch.float64 if widen else self._weights
        self._dtype = torch.promote_types(self.precision, torch.float32)
        self._device = computing_device(model)
        self._knows = frozenset(inspect.signature(model.forward).parameters)
        config = model.config.get_text_config(decoder=True)
        longest = getattr(config, "max_position_embeddings", None)
        self._longest = longest if type(longest) is int and longest > 0 else None
        self._embedded: int = model.get_input_embeddings().weight.shape[0]
        self._windows: Windows = ()
        self._twin: Self | None = None

    @property
    def tokens(self) -> tuple[str, ...]:
        """The texts that are one token: they decode from it and encode to it, in its order."""
        return self._tokenizer.tokens

    def encode(self, text: str) -> list[int]:
        """Return the tokens of ``text``; no special token is added.

        Raises:
            InvalidInput: The tokenizer does not know a character. The text is not quoted.
        """
        return self._tokenizer.encode(text)

    def start(self, prefix_ids: Sequence[int]) -> tuple[Tensor, State]:
        """Read a prefix, which may be empty; return ``(log_probs[1, V], state)``.

        Raises:
            InvalidInput: A token that the model does not have, or too many of them.
        """
        begun = self._begun(prefix_ids)
        self._check_length(len(begun))
        if not 0 <= min(begun) <= max(begun) < self._embedded:
            raise InvalidInput(
                f"prefix_ids or what comes before has a token outside 0 to {self._embedded - 1}.",
                hint="Use the tokenizer that the model was trained with.",
            )
        ids = torch.tensor([begun], device=self._device)
        with self._arithmetic():
            return self._first(ids) if self.cached else (self._uncached(ids), ids)

    def step(self, state: State, token_ids: Tensor | Sequence[int]) -> tuple[Tensor, State]:
        """Read one token a row; return ``(log_probs[rows, V], state)``.

        Raises:
            InvalidInput: Not one token for each row of the state, or the text is too long.
        """
        ids = torch.as_tensor(token_ids).to(self._device).reshape(-1, 1)
        rows = state.rows if isinstance(state, SharedPrefix) else len(state)
        if len(ids) != rows:
            raise InvalidInput(
                f"token_ids has {len(ids)} rows, and the state {rows}.",
                hint="Take the rows of the state first: model.take(state, rows).",
            )
        with self._arithmetic():
            if isinstance(state, SharedPrefix):
                self._check_length(state.length + 1)
                return self._step_on(state, ids)
            ids = torch.cat([state, ids], 1)
            self._check_length(ids.shape[1])
            return self._step_again(ids), ids

    def read_on(self, state: State, token_ids: Sequence[int]) -> tuple[Tensor, State]:
        """Read one token or more after a state of one row; answers agree with ``start``'s.

        Raises:
            InvalidInput: The text is too long.
        """
        ids = torch.tensor([[int(token) for token in token_ids]], device=self._device)
        if isinstance(state, SharedPrefix) and any(width is not None for width in self._windows):
            for place in range(ids.shape[1]):
                self._check_length(state.length + 1)
                with self._arithmetic():
                    log_probs, grown = self._step_on(state, ids[:, place : place + 1])
                state = SharedPrefix.of(grown.whole(self._windows), length=grown.length)
            return log_probs, state
        with self._arithmetic():
            if isinstance(state, SharedPrefix):
                self._check_length(state.length + ids.shape[1])
                log_probs, after = self._next(state, ids)
                return log_probs, SharedPrefix.of(after.tensors, length=after.length)
            ids = torch.cat([state, ids], 1)
            self._check_length(ids.shape[1])
            return self._uncached(ids), ids

    def take(self, state: State, rows: Tensor | Sequence[int]) -> State:
        """Return a state of these rows, in this order; a row may be taken many times."""
        rows = torch.as_tensor(rows).to(self._device)
        return state.take(rows) if isinstance(state, SharedPrefix) else state.index_select(0, rows)

    def in_float64(self) -> Self:
        """Return the same model computing in float64 throughout, from the same weights.

        It is made once. Weights in float32 on one device are copied, and the copy does not follow
        later training. Others are shared, and cast when they are used.
        """
        if self._dtype == torch.float64:
            return self
        if self._twin is None:
            copied = self._weights == torch.float32 and not _placed(self._model)
            model = deepcopy(self._model).double() if copied else self._model
            self._twin = self._with(model, widen=not copied)
        return self._twin

    @abstractmethod
    def _with(self, model: Any, *, widen: bool) -> Self:
        """Wrap another model in the same way; ``widen`` computes in float64 from its weights."""

    def _arithmetic(self) -> AbstractContextManager[None]:
        return full_precision(self._model, widen=self._widen)

    def _log_probs(self, output: Any) -> Tensor:
        return torch.log_softmax(output.logits[:, -1].to(self._dtype), -1)

    @abstractmethod
    def _begun(self, prefix_ids: Sequence[int]) -> list[int]:
        """Put what every text begins with before the prefix."""

    @abstractmethod
    def _ask(self, ids: Tensor, *, cache: Any, length: int, keep: bool) -> Any:
        """Let the model read ``ids`` after ``length`` tokens in the cache; return its output."""

    def _remembered(self, cache: Any) -> Any:
        """Return the part of the model's own cache that grows with the text."""
        return cache

    def _cache(self, state: KeyValues) -> Any:
        """Return a fresh cache that the model reads on from."""
        return put_in(state, self._windows)

    def _uncached(self, ids: Tensor) -> Tensor:
        return self._log_probs(self._ask(ids, cache=None, length=0, keep=False))

    def _first(self, ids: Tensor) -> tuple[Tensor, SharedPrefix]:
        output = self._ask(ids, cache=None, length=0, keep=True)
        grown = taken_out(self._remembered(output.past_key_values), length=ids.shape[1])
        return self._log_probs(output), SharedPrefix.of(grown.tensors, length=grown.length)

    def _next(self, state: SharedPrefix, ids: Tensor) -> tuple[Tensor, KeyValues]:
        cache = self._cache(KeyValues(state.whole(self._windows), state.length))
        output = self._ask(ids, cache=cache, length=state.length, keep=True)
        length = state.length + ids.shape[1]
        return self._log_probs(output), taken_out(self._remembered(cache), length=length)

    def _step_whole(self, state: SharedPrefix, ids: Tensor) -> list[Tensor]:
        log_probs, after = self._next(state, ids)
        return [log_probs, *(tensor[:, :, -1:].clone() for tensor in after.tensors)]

    def _step_split(self, state: SharedPrefix, ids: Tensor) -> list[Tensor]:
        with split_attention(self._model, state) as cache:
            output = self._ask(ids, cache=cache, length=state.length, keep=True)
        made = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
        return [self._log_probs(output), *made]

    def _step_on(self, state: SharedPrefix, ids: Tensor) -> tuple[Tensor, SharedPrefix]:
        within = all(window is None or state.length < window for window in self._windows)
        step = self._step_split if self.splits and within else self._step_whole
        parts = [
            step(state.cut(rows), ids[rows]) for rows in slices(len(ids), self._at_once(state))
        ]
        none = (tensor[:0, :, :1] for tensor in state.prefix)
        log_probs, *made = joined(parts) if parts else [self._no_rows(), *none]
        return log_probs, state.grown(made)

    def _step_again(self, ids: Tensor) -> Tensor:
        at_once = self._at_once(ids)
        parts = [[self._uncached(ids[rows])] for rows in slices(len(ids), at_once)]
        return joined(parts)[0] if parts else self._no_rows()

    def _settle(self) -> None:
        """Find out whether the model can be cached, and how much memory a row takes."""
        count = _CHECK_ROWS * _CHECK_TOKENS
        ids = (torch.arange(count, device=self._device) * 7919 + 3) % self._embedded
        ids = ids.reshape(_CHECK_ROWS, _CHECK_TOKENS)
        ids[:, :_CHECK_START] = ids[0, :_CHECK_START]  # they begin alike, and then differ
        self.cached = False
        # Low precision would hide small errors of the cache, so it is checked in float64.
        widen = self._widen or self.precision in _LOWER
        with quiet(), self._arithmetic():
            self._widest = widest_output(
                self._model,
                lambda: self._uncached(ids),
                tokens=count,
                head=self._model.get_output_embeddings(),
            )
        with quiet(), full_precision(self._model, widen=widen):
            truth = [self._uncached(ids[:, :n]) for n in range(_CHECK_START, _CHECK_TOKENS + 1)]
            self._vocabulary = truth[0].shape[1]
            if "past_key_values" in self._knows:
                self.splits = True
                self.splits = self._agrees(ids, truth) and self._checked_split()
                self.cached = self.splits or self._agrees(ids, truth)

    def _agrees(self, ids: Tensor, truth: list[Tensor]) -> bool:
        """Compare cached answers, to rows that share a prefix and then differ, with ``truth``."""
        try:
            output = self._ask(ids[:1, :_CHECK_START], cache=None, length=0, keep=True)
            windows = windows_of(self._remembered(output.past_key_values))
            if windows is None:
                return False
            self._windows = windows
            log_probs, state = self._first(ids[:1, :_CHECK_START])
            answers = [log_probs.expand(len(ids), -1)]
            state = state.take(torch.zeros(len(ids), dtype=torch.int64))
            for place in range(_CHECK_START, _CHECK_TOKENS):
                log_probs, state = self._step_on(state, ids[:, place : place + 1])
                answers.append(log_probs)
        except _NO_CACHE:
            return False
        off = max(float((a - b).abs().max()) for a, b in zip(answers, truth, strict=True))
        spread, dtype = float(torch.stack(truth).std()), answers[0].dtype
        return off <= _ROUNDING[dtype] * spread + torch.finfo(dtype).eps * 16

    def _checked_split(self) -> bool:
        """Whether the check was short enough for sliding windows to play no part."""
        return all(window is None or window >= _CHECK_TOKENS for window in self._windows)

    def _no_rows(self) -> Tensor:
        return torch.empty(0, self._vocabulary, dtype=self._dtype, device=self._device)

    def _at_once(self, state: State) -> int:
        if self._rows_at_once is not None:
            return self._rows_at_once
        return fitting_rows(
            widest=self._widest,
            tokens=1 if isinstance(state, SharedPrefix) else state.shape[1],
            state_bytes=self._state_bytes(state),
            logit_bytes=self._vocabulary * self._dtype.itemsize,
            device=self._device,
        )

    def _state_bytes(self, state: State) -> int:
        """Bytes of one row's state while it is read on."""
        if not isinstance(state, SharedPrefix):
            return state.shape[1] * state.itemsize
        if self.splits:
            return state.row_bytes
        # Keys and values of all tokens, as they are put into the cache and as the model grows it.
        tokens = state.prefix[0].shape[2] + len(state.levels)
        return 2 * tokens * SharedPrefix.of(state.prefix, length=0).row_bytes

    def _check_length(self, length: int) -> None:
        if self._longest is not None and length > self._longest:
            raise InvalidInput(
                f"A text of {length} tokens is longer than the {self._longest} that the model "
                "can read.",
                hint="Shorten it.",
            )


def _placed(model: Any) -> bool:
    """Whether a model's weights are on several devices, or not in memory."""
    return len({parameter.device for parameter in model.parameters()}) > 1 or any(
        parameter.device.type == "meta" for parameter in model.parameters()
    )


def _checked_dtype(model: Any, *, own_precision: bool) -> torch.dtype:
    dtypes: set[torch.dtype] = {p.dtype for p in model.parameters() if p.is_floating_point()}
    if own_precision and dtypes and dtypes <= {*_LOWER, torch.float32}:
        return min(dtypes, key=lambda dtype: -torch.finfo(dtype).eps)  # the coarsest
    if len(dtypes) != 1 or not dtypes <= _ROUNDING.keys():
        names = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
        raise UnsupportedModel(
            f"The model's weights are {names or 'not numbers'}; costs are computed in float32 or "
            "float64, since coarser ones blur them.",
            hint="Call model.float(), or pass own_precision=True.",
        )
    return dtypes.pop()


_MOST = 4096  # more rows at once gain nothing
_SHARE = 0.25  # of what is free: the answers of all rows, and the caller's states, need room too
_IN_FLIGHT = 6  # outputs as wide as the widest that a layer holds at the same time
_LOGITS = 3  # the logits, their log-softmax, and what it needs on the way


def widest_output(model: nn.Module, run: Callable[[], Any], *, tokens: int, head: Any) -> int:
    """Run a pass and return the bytes a token of the widest output of any layer but the head."""
    widest = 0

    def look(module: nn.Module, inputs: Any, output: Any) -> None:
        nonlocal widest
        if isinstance(output, Tensor) and module is not head:
            widest = max(widest, output.nbytes // tokens)

    leaves = [module for module in model.modules() if not any(module.children())]
    hooks = [module.register_forward_hook(look) for module in leaves]
    try:
        run()
    finally:
        for hook in hooks:
            hook.remove()
    return widest


def fitting_rows(
    *, widest: int, tokens: int, state_bytes: int, logit_bytes: int, device: torch.device
) -> int:
    """Return how many rows fit: a power of two, at most 4 096, at least one.

    Args:
        widest: Bytes of the widest layer output, per token read.
        tokens: Tokens read per row.
        state_bytes: Bytes of one row's state.
        logit_bytes: Bytes of one row's logits.
        device: Where there must be room.
    """
    free = free_bytes(device)
    if device.type == "cuda":  # what the allocator keeps for later is free to us
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    each = _IN_FLIGHT * widest * tokens + state_bytes + _LOGITS * logit_bytes
    fitting = max(1, min(_MOST, int(_SHARE * free // max(each, 1))))
    return 1 << (fitting.bit_length() - 1)


def checked_rows_at_once(rows_at_once: int | None) -> int | None:
    """Return the argument if it is a number of rows, or ``None``."""
    if rows_at_once is not None and rows_at_once < 1:
        raise InvalidInput(
            f"rows_at_once={rows_at_once} is not at least 1.",
            hint="Leave it out to let free memory decide.",
        )
    return rows_at_once


def slices(rows: int, at_once: int) -> Iterator[slice]:
    """Yield neighbouring slices that cover all rows.

    Example:
        >>> list(slices(5, 2))
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, rows, at_once):
        yield slice(start, min(start + at_once, rows))


def joined(parts: list[list[Tensor]]) -> list[Tensor]:
    """Join the tensors of all parts, place by place, and let each go once it is joined."""
    if len(parts) == 1:
        return parts[0]
    whole = []
    for _ in range(len(parts[0])):
        whole.append(torch.cat([part.pop(0) for part in parts]))
    return whole
