"""The parts that every study's result has: its verdict, how useful the models are, its scope."""

from __future__ import annotations

from dataclasses import dataclass

from remnant.records.outcomes import Outcome
from remnant.records.typed import optional


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The outcome of a gate; see ``records.outcomes.gate_row``.

    Attributes:
        limit: In the units of the measurement; None where the row has none.
        lag: Steps since planting at which it was judged; None where there is no such number.
        rules: Version of the rules that judged it; None in older records.
        detected: Whether memory is detected where it was judged, whatever the outcome: the lower
            bound is above chance, or a search of the same run found it. A PASS beside which it is
            True has to be looked at. None where the gate does not say, and in older records.
    """

    outcome: Outcome
    sentence: str
    claim: str | None = None
    limit: float | None = None
    lag: float | None = None
    rules: int | None = optional()
    detected: bool | None = optional()

    @property
    def claim_apart(self) -> str:
        """The claim, where the sentence does not say it already."""
        claim = self.claim or ""
        return "" if claim in self.sentence else claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A headline and what to do: the question has no limit on harm."""

    headline: str
    sentence: str
    advice: str | None = None
    rules: int | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageTask:
    """How useful a language model is: bits a token on held-out text.

    Attributes:
        token: What a token is, such as ``"character"``.
        uniform_bits: What guessing blindly needs; None where it is not known.
    """

    validation_bits: float
    validation_tokens: int
    token: str = "token"
    uniform_bits: float | None = None

    @property
    def useless(self) -> bool:
        """Whether the model predicts worse than guessing blindly."""
        return self.uniform_bits is not None and self.validation_bits > self.uniform_bits


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierTask:
    """How useful a classifier is: its test accuracy beside the commonest class's share."""

    test_accuracy: float
    test_examples: int
    majority: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechTask:
    """How useful a recogniser of speech is: its error rates on utterances it was not trained on.

    Attributes:
        character_error_rate, word_error_rate: Edits a character or word that was said.
        swapped_error_rate: Character error rate if each utterance had been another one.
        utterances: How many were recognised.
        p_value: Of the sign test that what is heard of two utterances with equally long
            transcripts is nearer to what was said than if it were exchanged.
        pairs: How many such pairs there are; None in older records, whose test was another.
    """

    character_error_rate: float
    word_error_rate: float
    swapped_error_rate: float
    utterances: int
    p_value: float
    pairs: int | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What was tested and what was not, in sentences."""

    tested: tuple[str, ...] = ()
    not_tested: tuple[str, ...] = ()


Verdict = Finding | Gate
Task = LanguageTask | ClassifierTask | SpeechTask
