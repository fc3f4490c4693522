"""The protocols of models that probes and searches use; they need only model outputs."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor


class LogitModels(Protocol):
    """One or several classifiers, evaluated together."""

    def logits(self, inputs: Any) -> Any:
        """Return the logits of every member, ``(members, n, classes)``."""
        ...


@runtime_checkable
class SequenceModel(Protocol):
    """A language model that predicts the next token of many rows at once.

    Log-probabilities are natural and normalised over the vocabulary. No call changes the state it
    is given, so one parent serves many children. Two methods are optional. ``in_float64()`` returns
    the same model in float64; the search uses it to decide between costs that are nearly equal. A
    model that computes in less than float32 says so by ``precision``, a dtype, and must have it.
    ``read_on(state, ids)`` reads several tokens after a state of one row; the search uses it to
    read long prefixes under a time limit. A state whose rows share tensors has ``row_bytes``, what
    one more row takes, and ``row_bytes_after(tokens)``, an upper bound of it.
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


@runtime_checkable
class TextScorer(Protocol):
    """A language model that says what whole texts cost, and nothing about next tokens."""

    def text_costs(
        self,
        *,
        prefix: str,
        texts: Any,
        prefix_tokens: int | None = None,
        progress: Any = None,
    ) -> Any:
        """Return the costs of texts from the end of ``prefix`` on, as ``probes.text_costs``."""
        ...


@runtime_checkable
class SpeechModel(Protocol):
    """A recogniser of speech that says how likely a transcript is, given a sound."""

    def transcript_costs(self, sounds: Any, transcripts: Any) -> Any:
        """Return what each transcript costs for each sound, in bits.

        Args:
            sounds: Samples between -1 and 1, 16 000 a second, one array each.
            transcripts: Texts.

        Returns:
            float64 ``(sounds, transcripts)``: the negative base-2 logarithm of the probability.
        """
        ...
