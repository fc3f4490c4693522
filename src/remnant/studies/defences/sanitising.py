"""Sanitised training text: what the scan detects is replaced in every window."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import Template
from remnant.canaries.natural import redact
from remnant.canaries.natural.redacting import PLACEHOLDERS
from remnant.errors import PlanError
from remnant.studies.choices.prepared import PreparedVariant

Ids = NDArray[np.int64]


def placeholder_template() -> Template:
    """Return a template with the characters of all placeholders, for the vocabulary."""
    return Template(f"{' '.join(PLACEHOLDERS.values())} {{digits:1}}")


def sanitised(run: PreparedVariant) -> PreparedVariant:
    """Return a run whose windows have placeholders in place of what the scan detects.

    Clean windows are sanitised too, so that false alarms cost usefulness. Held-out text stays. A
    window that becomes shorter goes on with the text after it, one that becomes longer loses its
    end.

    Raises:
        PlanError: Tokens are words: the words of a sanitised text are not known beforehand.
        MissingExtra: A library of the extra ``scan`` is not installed.
    """
    planted, plan = run.planted, run.plan
    if run.study.text.level != "character":
        raise PlanError(
            "kind = 'sanitising' needs text.level = 'character'.",
            hint="Leave the remedy out, or train on characters.",
        )
    clean = planted.store[: planted.examples]
    places = [plan.places(examples=planted.examples, trial=trial) for trial in range(plan.trials)]
    after = np.concatenate([np.arange(planted.examples), *places]) + 1
    following = clean[after % planted.examples, 1:]
    rows = [
        _sanitised_window(run, row, more)
        for row, more in zip(planted.store, following, strict=True)
    ]
    return dataclasses.replace(run, planted=dataclasses.replace(planted, store=np.stack(rows)))


def _sanitised_window(run: PreparedVariant, row: Ids, more: Ids) -> Ids:
    vocabulary = run.planted.vocabulary
    text = vocabulary.decode(row.tolist())
    redacted = redact(text).text
    if redacted == text:
        return row
    ids = np.array(vocabulary.encode(redacted), dtype=np.int64)
    return np.concatenate([ids, more])[: len(row)]
