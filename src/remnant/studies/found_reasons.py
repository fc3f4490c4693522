"""Why a found secret could not be measured, told without anything of it; and models that answer.

An error of a vocabulary names a character that it lacks. Of a canary everybody may know that its
holes are digits; of a real secret, which characters it has is a part of it.
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
_UNTOLD = "the model cannot be asked about it"
_TOKEN = re.compile(r"\btoken [0-9]")  # it may be one of the text
_WATCHED = 8  # characters of the text before a secret that no reason may repeat


def reason_of(fault: RemnantError, one: FoundSecret, models: Sequence[SequenceModel]) -> str:
    """Return why a secret was not measured.

    Args:
        fault: What was raised.
        one: The secret.
        models: The model that was asked, and the reference models.

    Guarantees:
        * Nothing of the secret, or of the text before it, is in the reason: not a character.
    """
    if isinstance(fault, InvalidInput):
        for number, model in enumerate(models):
            reason = _lacking(model, one)
            if reason:
                return reason.replace("the model's", "a reference model's") if number else reason
    parts = [*one.parts, one.way.context[-_WATCHED:]]
    if _TOKEN.search(fault.message) or any(part and part in fault.message for part in parts):
        return _UNTOLD
    return fault.message.rstrip(".")


def check_answers(model: SequenceModel) -> None:
    """Refuse a model that answers nonsense, before anything else is done for it.

    Raises:
        UnsupportedModel: Its log-probabilities are NaN, not normalised, or of another shape.
    """
    Asked(model, [0])


def _lacking(model: SequenceModel, one: FoundSecret) -> str:
    """Return what the vocabulary does not have; empty where it has everything."""
    if not _encodes(model, one.way.context):
        return CONTEXT
    if not _encodes(model, one.way.written):
        return SECRET
    choices = {choice for slot in one.template.slots for choice in slot.choices}
    return "" if all(_encodes(model, choice) for choice in choices) else FORM


def _encodes(model: SequenceModel, text: str) -> bool:
    try:
        encoded(model.encode, text)
    except InvalidInput:
        return False
    return True
