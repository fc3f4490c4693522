"""The ``verdict`` row of a record: the outcome of a gate, or a finding.

A *gate* holds a measurement against a limit on harm that was named before the run. It says PASS,
FAIL or INCONCLUSIVE. Whatever has no such limit is a *finding*: a headline and what to do.

The rules by which gates judge have a version. Rows that older rules wrote are never shown as PASS:
``current`` turns them into "not judged again".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Outcome = Literal["PASS", "FAIL", "INCONCLUSIVE"]
OUTCOMES: tuple[Outcome, ...] = ("PASS", "FAIL", "INCONCLUSIVE")
EXIT_CODES: dict[str, int] = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}
RULES = 2  # rows without a number were written by version 1


def gate_row(
    *, outcome: Outcome, sentence: str, claim: str, limit: float | None, lag: float | None = None
) -> dict[str, Any]:
    """The row of a gate.

    Args:
        outcome: What the gate says.
        sentence: What was measured and why that is the outcome.
        claim: The strongest statement the evidence supports: a bound with its n and confidence.
        limit: The harm that was allowed, in the units of the measurement.
        lag: The steps since planting at which it was judged, where there is such a number.
    """
    return {
        "outcome": outcome,
        "sentence": sentence,
        "claim": claim,
        "limit": limit,
        "lag": lag,
        "rules": RULES,
    }


def finding_row(*, headline: str, sentence: str, advice: str) -> dict[str, Any]:
    """The row of a finding: it has no outcome.

    Args:
        headline: A few words.
        sentence: What was found, with its numbers.
        advice: What to do about it.
    """
    return {"headline": headline, "sentence": sentence, "advice": advice, "rules": RULES}


def current(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row as today's rules allow it to be shown.

    An outcome that older rules wrote becomes INCONCLUSIVE, with a sentence that says so.
    """
    if "outcome" not in row or int(row.get("rules", 1)) >= RULES:
        return row
    sentence = (
        f"Not judged again: older rules, which could pass without evidence, said {row['outcome']}. "
        "Run the recipe again to judge the run by today's rules."
    )
    return {**row, "outcome": "INCONCLUSIVE", "sentence": sentence, "claim": sentence}
