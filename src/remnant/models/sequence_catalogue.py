"""The sequence models that a recipe or a folder can name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from remnant.models.catalogue import checked_maker
from remnant.models.gpt import gpt
from remnant.models.recurrent import gru, lstm
from remnant.models.sequence_module import SequenceModule
from remnant.models.wavenet import causal_cnn, wavenet

SEQUENCE_MODELS: dict[str, Callable[..., SequenceModule]] = {
    "lstm": lstm,
    "gru": gru,
    "causal_cnn": causal_cnn,
    "wavenet": wavenet,
    "gpt": gpt,
}


def sequence_model_maker(
    name: str, *, vocabulary_size: int, **options: Any
) -> Callable[[], SequenceModule]:
    """Return a function that makes the named model for a vocabulary of this size.

    Raises:
        PlanError: An unknown name or option; on making it, a value that its option does not allow.

    Example:
        >>> sequence_model_maker("gru", vocabulary_size=50, units=8)().vocabulary_size
        50
    """
    return checked_maker(SEQUENCE_MODELS, name, options, vocabulary_size)
