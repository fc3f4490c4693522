"""Asks a model for its next tokens: counts rows, checks answers, keeps TF32 out, limits time."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from remnant.errors import InvalidInput, NotEnoughEvidence, UnsupportedModel
from remnant.models.protocols import SequenceModel

Encode = Callable[[str], list[int]]
# What a usual template costs is always paid, so that a short limit ends the search and not its
# preparation.
_FREE_CHARACTERS = 1 << 20


class OutOfTime(NotEnoughEvidence):
    """A time limit ended before the prefix was read: nothing was scored."""


class TimeLimit:
    """Seconds that a search may take, counted from when this is made.

    Args:
        max_seconds: The limit; ``None`` for no limit.

    Attributes:
        max_seconds: The limit.
        since: When it began, by ``time.monotonic``.
    """

    def __init__(self, max_seconds: float | None) -> None:
        self.max_seconds = max_seconds
        self.since = time.monotonic()
        self._characters = 0

    def encode(self, encode: Encode) -> Encode:
        """Return the same function, which checks the clock once a million characters are encoded.

        Raises (when called):
            OutOfTime: The limit is over.
        """
        if self.max_seconds is None:
            return encode

        def limited(text: str) -> list[int]:
            self._characters += len(text)
            if self._characters > _FREE_CHARACTERS:
                self.check(f"{self._characters} characters were encoded")
            return encode(text)

        return limited

    def check(self, done: str) -> None:
        """Check the clock.

        Args:
            done: How far the preparation has come, for the message.

        Raises:
            OutOfTime: The limit is over.
        """
        limit = self.max_seconds
        if limit is not None and time.monotonic() - self.since >= limit:
            raise OutOfTime(
                f"The time limit of {limit:g} s ended before the text in front of the secret was "
                f"read: {done}.",
                hint="Shorten the text before the first hole, or allow more seconds.",
            )


BITS = 1.0 / math.log(2.0)
_CHECKED_ROWS = 64
_OFF_BY = 1e-3
_UNKNOWN_STATE = 65_536
CPU_MEMORY = 1 << 30
_READ_AT_ONCE = 512  # tokens of a prefix between two looks at the clock


class Asked:
    """A model that is being asked: its answers in bits, the rows so far, the size of a row.

    Args:
        model: Anything with ``encode``, ``start``, ``step`` and ``take``.
        prefix: The tokens that it reads first.
        limit: Under a time limit the prefix is read 512 tokens at a time, and the clock is checked
            in between; the answers are those of one reading, to rounding.

    Raises:
        UnsupportedModel: A method is missing, or the answer is not log-probabilities.
        OutOfTime: The limit ended while the prefix was read.

    Attributes:
        nodes: Rows passed to ``step`` so far.
        device: Where the model answers.
        devices: Where its state is: several devices, if its layers are.
        dtype: Of its log-probabilities.
        precision: In which it computes; lower than ``dtype`` where the model says so.
        vocabulary: Number of tokens it knows.
        row_bytes: The largest state of one row that was seen.
    """

    def __init__(
        self, model: SequenceModel, prefix: Sequence[int], *, limit: TimeLimit | None = None
    ) -> None:
        lacking = [n for n in ("encode", "start", "step", "take") if not hasattr(model, n)]
        if lacking:
            raise UnsupportedModel(
                f"The model has no {', '.join(lacking)}.",
                hint="Give it the methods of remnant.models.protocols.SequenceModel.",
            )
        self.model, self.nodes, self.row_bytes = model, 0, 0
        self._prefix = list(prefix)
        with full_precision():
            first, state = self._read_prefix(limit)
        self.first = checked(first, rows=1)
        self.first_state = state
        self.device, self.dtype = first.device, first.dtype
        self.precision: torch.dtype = getattr(model, "precision", first.dtype)
        self.devices = {tensor.device for tensor in _tensors(state)} | {first.device}
        self.vocabulary = int(first.shape[1])
        self._weigh(state, 1)
        self._first_bytes = self.row_bytes

    @property
    def coarse(self) -> bool:
        """Whether the model computes in less than float32, so that its answers need checking."""
        return computes_coarsely(self.model)

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        """Read one token a row; return natural log-probabilities ``[rows, V]`` and the state."""
        rows = len(tokens)
        self.nodes += rows
        with full_precision():
            log_probs, after = self.model.step(state, tokens)
        checked(log_probs, rows=rows, vocabulary=self.vocabulary)
        self._weigh(after, rows)
        return log_probs, after

    def take(self, state: Any, rows: Tensor) -> Any:
        """Return the state of these rows."""
        with torch.no_grad():
            return self.model.take(state, rows)

    def twin(self, *, limit: TimeLimit | None = None) -> Asked | None:
        """Return the same model in float64, if it offers one and is not that already.

        Raises:
            OutOfTime: The limit ended while the prefix was read.
        """
        if self.dtype == torch.float64 or not hasattr(self.model, "in_float64"):
            return None
        return Asked(self.model.in_float64(), self._prefix, limit=limit)

    def row_bytes_after(self, tokens: int) -> int:
        """Return an upper bound of the state of one row after more tokens.

        A state grows with each token at most by its share of what was read before, as keys and
        values do. A state whose rows share tensors says itself what a row takes.
        """
        read = max(len(self._prefix), 1)
        if hasattr(self.first_state, "row_bytes_after"):
            return max(self.row_bytes, int(self.first_state.row_bytes_after(tokens)))
        if self.row_bytes == _UNKNOWN_STATE:
            return self.row_bytes
        return max(self.row_bytes, self._first_bytes * (read + tokens) // read)

    def _read_prefix(self, limit: TimeLimit | None) -> tuple[Tensor, Any]:
        ids, model = self._prefix, self.model
        if limit is None or limit.max_seconds is None:
            return model.start(ids)
        log_probs, state = model.start(ids[:_READ_AT_ONCE])
        for at in range(_READ_AT_ONCE, len(ids), _READ_AT_ONCE):
            done = f"{at} of {len(ids)} tokens were read"
            limit.check(done)
            piece = ids[at : at + _READ_AT_ONCE]
            if hasattr(model, "read_on"):
                log_probs, state = model.read_on(state, piece)
                continue
            for token in piece:
                limit.check(done)
                log_probs, state = model.step(state, torch.tensor([token], device=log_probs.device))
        return log_probs, state

    def _weigh(self, state: Any, rows: int) -> None:
        if hasattr(state, "row_bytes"):
            self.row_bytes = max(self.row_bytes, int(state.row_bytes))
            return
        size = sum(tensor.numel() * tensor.element_size() for tensor in _tensors(state))
        self.row_bytes = max(self.row_bytes, size // max(rows, 1) or _UNKNOWN_STATE)


def computes_coarsely(model: Any) -> bool:
    """Return whether a model says that it computes in bfloat16 or float16."""
    return getattr(model, "precision", None) in (torch.bfloat16, torch.float16)


def memory_budget(devices: Iterable[torch.device], memory: int | None = None) -> int:
    """Return the bytes that rows may take: ``memory``, or the default of the devices.

    The default is half of what is free, and on a CPU at most 1 GiB. Of several devices, the one
    with the least decides.
    """
    if memory is not None:
        return memory
    return min(_default_memory(device) for device in devices)


def _default_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0]) // 2
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:  # no way to ask on this system
        return CPU_MEMORY
    free = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable")]
    return min([CPU_MEMORY, *(each // 2 for each in free)])


def checked(log_probs: Any, *, rows: int, vocabulary: int | None = None) -> Tensor:
    """Return the log-probabilities if they are ones; up to 127 rows are looked at closely.

    Raises:
        UnsupportedModel: Not a float32 or float64 tensor ``[rows, V]``, NaN, or not normalised.
    """
    if not isinstance(log_probs, Tensor) or log_probs.ndim != 2 or log_probs.shape[0] != rows:
        shape = tuple(log_probs.shape) if isinstance(log_probs, Tensor) else type(log_probs)
        raise UnsupportedModel(
            f"The model returned {shape} for {rows} rows.",
            hint="Return log-probabilities of shape (rows, vocabulary).",
        )
    if log_probs.dtype not in (torch.float32, torch.float64):
        raise UnsupportedModel(
            f"The model's log-probabilities are {log_probs.dtype}, too coarse to rank secrets by.",
            hint="Load it in float32.",
        )
    if vocabulary is not None and log_probs.shape[1] != vocabulary:
        raise UnsupportedModel(
            f"The model gave {vocabulary} log-probabilities at first and {log_probs.shape[1]} now."
        )
    off = log_probs[:: max(1, rows // _CHECKED_ROWS)].logsumexp(1).abs()
    worst = float(off.max()) if rows else 0.0
    if math.isnan(worst):
        raise nan_answer()
    if worst > _OFF_BY:
        raise UnsupportedModel(
            f"The model's log-probabilities are not normalised: a row adds up to exp({worst:.3g}) "
            "instead of 1.",
            hint="Return log_softmax of the logits, in natural logarithms.",
        )
    return log_probs


def nan_answer() -> UnsupportedModel:
    """Return the error of a model whose answer is not a number."""
    return UnsupportedModel(
        "The model returned NaN as a log-probability.",
        hint="Check its weights; a diverged training gives this.",
    )


def check_tokens(tokens: Any, vocabulary: int) -> None:
    """Refuse tokens that the model has no log-probability for."""
    if len(tokens) and (int(tokens.max()) >= vocabulary or int(tokens.min()) < 0):
        raise InvalidInput(
            f"The model encodes the template with token {int(tokens.max())}, and answers for "
            f"{vocabulary} tokens only.",
            hint="Use the tokenizer that the model was trained with.",
        )


@contextmanager
def full_precision() -> Iterator[None]:
    """Compute without gradients and without TF32; restore the switches on leaving."""
    with without_tf32(), torch.no_grad():
        yield


@contextmanager
def without_tf32() -> Iterator[None]:
    """Compute without TF32, whatever the process allows; restore the switches on leaving."""
    matmul, convolution = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (matmul.allow_tf32, convolution.allow_tf32)
    matmul.allow_tf32, convolution.allow_tf32 = False, False
    try:
        yield
    finally:
        matmul.allow_tf32, convolution.allow_tf32 = before


def _tensors(state: Any) -> Iterator[Tensor]:
    """All tensors of a state: of collections, dataclasses and objects too."""
    values: Iterable[Any] = ()
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, dict):
        values = state.values()
    elif isinstance(state, list | tuple):
        values = state
    elif dataclasses.is_dataclass(state):
        values = (getattr(state, field.name) for field in dataclasses.fields(state))
    elif hasattr(state, "__dict__"):
        values = (v for v in vars(state).values() if isinstance(v, Tensor | list | tuple | dict))
    for value in values:
        yield from _tensors(value)
