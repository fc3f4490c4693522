"""A trained network and its vocabulary, which predicts the next token of many rows at once."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.models.sequence_module import SequenceModule, State, take
from remnant.models.shared_prefix import SharedPrefix
from remnant.models.vocabulary import Vocabulary

_AT_ONCE = {"cpu": 512, "cuda": 1 << 18}  # rows per pass: fits the CPU cache, the GPU memory


@dataclass(frozen=True, slots=True, eq=False)
class _Children:
    """Many rows of few parents; the parents' part of a step is computed once."""

    parents: State
    rows: Tensor


class LanguageModel:
    """A ``SequenceModel`` of a network of ours.

    Args:
        module: The network. It is copied: later training does not reach this model.
        vocabulary: The network's vocabulary; its size is the number of predicted tokens.
        device: Where it computes.
        dtype: float32 or float64; the network's own, if not given.

    Guarantees:
        * Log-probabilities are those of ``module.forward`` on the same tokens, to rounding, and
          add up to one. TF32, autocast and dropout are off.
        * After an empty prefix they are the network's after its token "begin".
        * No call changes a state. Work that rows of one parent share is done once, and keys and
          values of a common prefix are stored once.

    Raises:
        InvalidInput: The vocabulary has another size, or the device does not exist.
        UnsupportedModel: The network is neither in float32 nor in float64.

    Example:
        >>> from remnant.models import lstm
        >>> model = LanguageModel(lstm(3, units=4), Vocabulary.of_characters("abc"))
        >>> log_probs, state = model.start(model.encode("ab"))
        >>> log_probs, state = model.step(model.take(state, torch.tensor([0, 0])), [0, 2])
        >>> log_probs.shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        module: SequenceModule,
        vocabulary: Vocabulary,
        *,
        device: str | torch.device = "cpu",
        dtype: torch.dtype | None = None,
    ) -> None:
        if module.vocabulary_size != vocabulary.size:
            raise InvalidInput(
                f"the module predicts {module.vocabulary_size} tokens, and the vocabulary has "
                f"{vocabulary.size}.",
                hint="Use the vocabulary that the module was trained with.",
            )
        try:
            copied = copy.deepcopy(module).to(device=device, dtype=dtype)
        except (RuntimeError, AssertionError) as fault:
            raise InvalidInput(
                f"device={str(device)!r} is not there.", hint="Pass device='cpu'."
            ) from fault
        weight = next(copied.parameters())
        if weight.dtype not in (torch.float32, torch.float64):
            raise UnsupportedModel(
                f"The module computes in {weight.dtype}, too coarse to rank secrets by.",
                hint="Pass dtype=torch.float32.",
            )
        self.vocabulary = vocabulary
        self.device, self.dtype = weight.device, weight.dtype
        self._module = copied.eval().requires_grad_(False)
        self._wide: LanguageModel | None = None
        with self._exactly():
            self._module.fold()

    @property
    def tokens(self) -> tuple[str, ...]:
        """The texts that are one token, in the order of their tokens."""
        return self.vocabulary.symbols

    @property
    def module(self) -> SequenceModule:
        """The network, in evaluation mode; its weights must not be changed."""
        return self._module

    def encode(self, text: str) -> list[int]:
        """Return the tokens of ``text``; no special token is added."""
        return self.vocabulary.encode(text)

    def start(self, prefix_ids: Sequence[int]) -> tuple[Tensor, Any]:
        """Read a prefix, which may be empty; return ``(log_probs[1, V], state)``.

        Raises:
            InvalidInput: A token that the vocabulary does not have, or too many of them.
        """
        ids = [int(i) for i in prefix_ids]
        if ids and not 0 <= min(ids) <= max(ids) < self.vocabulary.size:
            raise InvalidInput(
                f"prefix_ids has a token outside 0 to {self.vocabulary.size - 1}.",
                hint="Use this model's encode.",
            )
        with self._exactly():
            state = self._module.initial(1)
            begin = [self._module.begin] if self._module.begins or not ids else []
            return self._read(state, [*begin, *ids])

    def read_on(self, state: Any, token_ids: Sequence[int]) -> tuple[Tensor, Any]:
        """Read one token or more after a state of one row, as ``start`` would have.

        Guarantees:
            * Reading a prefix in pieces gives the same bits as ``start`` on the whole of it.
        """
        with self._exactly():
            return self._read(
                state.whole() if isinstance(state, SharedPrefix) else state, token_ids
            )

    def _read(self, state: State, token_ids: Sequence[int]) -> tuple[Tensor, Any]:
        for token in token_ids:
            logits, state = self._module.advance(torch.tensor([token]).to(self.device), state)
        return logits.log_softmax(-1), self._module.shared(state)

    def step(self, state: Any, token_ids: Tensor | Sequence[int]) -> tuple[Tensor, Any]:
        """Read one token a row; return ``(log_probs[rows, V], state)``.

        Raises:
            InvalidInput: Not one token for each row of the state.
        """
        ids = torch.as_tensor(token_ids).to(self.device)
        rows = _rows_of(state)
        if ids.shape != (rows,):
            raise InvalidInput(
                f"token_ids has shape {tuple(ids.shape)} for a state of {rows} rows.",
                hint="Give one token a row.",
            )
        with self._exactly():
            if isinstance(state, SharedPrefix):
                return self._continued(ids, state)
            if isinstance(state, _Children):
                shared = self._module.prepare(state.parents)
                pieces = (take(shared, rows) for rows in state.rows.split(self._at_once))
            else:
                cut = zip(*(tensor.split(self._at_once) for tensor in state), strict=True)
                pieces = (self._module.prepare(piece) for piece in cut)
            return self._joined(ids, pieces)

    def take(self, state: Any, rows: Tensor | Sequence[int]) -> Any:
        """Return a state of these rows, in this order; a row may be taken many times."""
        rows = torch.as_tensor(rows).to(self.device)
        if isinstance(state, SharedPrefix):
            return state.take(rows)
        if isinstance(state, _Children):
            return self.take(state.parents, state.rows[rows])
        with torch.no_grad():
            # A search passes children of one parent side by side, so no sorting is needed.
            distinct, places = rows.unique_consecutive(return_inverse=True)
            if 2 * len(distinct) <= len(rows):
                return _Children(take(state, distinct), places)
            return take(state, rows)

    def in_float64(self) -> LanguageModel:
        """Return the same model in float64, made once."""
        if self.dtype == torch.float64:
            return self
        if self._wide is None:
            self._wide = LanguageModel(
                self._module, self.vocabulary, device=self.device, dtype=torch.float64
            )
        return self._wide

    @property
    def _at_once(self) -> int:
        return _AT_ONCE.get(self.device.type, _AT_ONCE["cpu"])

    def _continued(self, ids: Tensor, state: SharedPrefix) -> tuple[Tensor, SharedPrefix]:
        """Read piece by piece after a prefix that all rows share."""
        parts = []
        for at in range(0, max(len(ids), 1), self._at_once):
            some = slice(at, at + self._at_once)
            logits, after = self._module.read(ids[some], state.cut(some))
            parts.append((logits.log_softmax(-1), *after.levels[-1]))
        whole = [
            part[0] if len(part) == 1 else torch.cat(part) for part in zip(*parts, strict=True)
        ]
        return whole[0], state.grown(whole[1:])

    def _joined(self, ids: Tensor, pieces: Iterator[State]) -> tuple[Tensor, State]:
        """Read piece by piece, and write the results into tensors of all rows."""
        whole: list[Tensor] = []
        for at, piece in zip(range(0, max(len(ids), 1), self._at_once), pieces, strict=True):
            some = ids[at : at + self._at_once]
            logits, state = self._module.read(some, piece)
            answer = (logits.log_softmax(-1), *state)
            if len(some) == len(ids):
                return answer[0], answer[1:]
            if not whole:
                whole = [part.new_empty(len(ids), *part.shape[1:]) for part in answer]
            for all_rows, part in zip(whole, answer, strict=True):
                all_rows[at : at + len(some)] = part
        return whole[0], tuple(whole[1:])

    @contextmanager
    def _exactly(self) -> Iterator[None]:
        """Switch gradients, autocast and TF32 off; restore the settings on leaving."""
        matmul = torch.backends.cuda.matmul
        before = matmul.allow_tf32
        matmul.allow_tf32 = False
        try:
            with torch.no_grad(), torch.autocast(self.device.type, enabled=False):
                yield
        finally:
            matmul.allow_tf32 = before


def _rows_of(state: Any) -> int:
    if isinstance(state, SharedPrefix):
        return state.rows
    return len(state.rows if isinstance(state, _Children) else state[0])
