"""Why a found secret could not be measured, without any part of it; and a check of models.

An error of a vocabulary names a character that it lacks. That is harmless for a canary, whose
holes are known to be digits. The characters of a real secret are a part of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from remnant.canaries.natural import FoundSecret
from remnant.errors import InvalidInput, RemnantError
from remnant.models.protocols import SequenceModel
from remnant.probes import Asked
from remnant.search.tokens import encoded

CONTEXT = "the model's vocabulary does not have all of the text before it"
SECRET = "the model's vocabulary does not have all of it"
FORM = "the model's vocabulary does not have all that secrets of its form are made of"
OF_VOCABULARY = frozenset({CONTEXT, SECRET, FORM})
_WITHHELD = "the model cannot be tested on it"
_TOKEN = re.compile(r"\btoken [0-9]")  # it may be one of the text
_WATCHED = 8  # characters of the text before a secret that no reason may repeat


def reason_of(fault: RemnantError, secret: FoundSecret, models: Sequence[SequenceModel]) -> str:
    """Return why a secret was not measured.

    Args:
        fault: The error.
        secret: The secret.
        models: The model under audit, then the reference models.

    Guarantees:
        * The reason contains no character of the secret or of the text before it.
    """
    if isinstance(fault, InvalidInput):
        for number, model in enumerate(models):
            reason = _lacking(model, secret)
            if reason:
                return reason.replace("the model's", "a reference model's") if number else reason
    parts = [*secret.parts, secret.way.context[-_WATCHED:]]
    if _TOKEN.search(fault.message) or any(part and part in fault.message for part in parts):
        return _WITHHELD
    return fault.message.rstrip(".")


def check_answers(model: SequenceModel) -> None:
    """Refuse a model whose answers are not log-probabilities.

    Raises:
        UnsupportedModel: Its log-probabilities are NaN, not normalised, or of another shape.
    """
    Asked(model, [0])


def _lacking(model: SequenceModel, secret: FoundSecret) -> str:
    """Return what the vocabulary does not have; empty if it has everything."""
    if not _encodes(model, secret.way.context):
        return CONTEXT
    if not _encodes(model, secret.way.written):
        return SECRET
    choices = {choice for slot in secret.template.slots for choice in slot.choices}
    return "" if all(_encodes(model, choice) for choice in choices) else FORM


def _encodes(model: SequenceModel, text: str) -> bool:
    try:
        encoded(model.encode, text)
    except InvalidInput:
        return False
    return True
