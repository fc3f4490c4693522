"""What probes and searches may ask of models: nothing but their outputs."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor


class LogitModels(Protocol):
    """One or many classifiers that answer together."""

    def logits(self, inputs: Any) -> Any:
        """Return the logits of every member, ``(members, n, classes)``."""
        ...


@runtime_checkable
class SequenceModel(Protocol):
    """A language model that can be asked for one more token, many rows at a time.

    Log-probabilities are natural and normalised over the vocabulary. No call changes the state it
    is given: one parent serves many children. A model may also have ``in_float64()``, which returns
    a model of the same protocol that computes in float64 from the same weights: the search settles
    close calls with it. And it may have ``read_on(state, ids)``, which reads many tokens after a
    state of one row: long prefixes are read with it under a time limit.
    """

    def encode(self, text: str) -> list[int]:
        """Return the tokens of ``text``; no special token is added."""
        ...

    def start(self, prefix_ids: list[int]) -> tuple[Tensor, Any]:
        """Read a prefix, which may be empty; return ``(log_probs[1, V], state)``."""
        ...

    def step(self, state: Any, token_ids: Tensor) -> tuple[Tensor, Any]:
        """Read one token a row; return ``(log_probs[rows, V], state)``."""
        ...

    def take(self, state: Any, rows: Tensor) -> Any:
        """Return a state of these rows, in this order; a row may be taken many times."""
        ...
