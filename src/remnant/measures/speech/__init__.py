"""How well speech is recognised."""

from remnant.measures.speech.error_rate import ErrorRate, character_error_rate, word_error_rate

__all__ = ["ErrorRate", "character_error_rate", "word_error_rate"]
