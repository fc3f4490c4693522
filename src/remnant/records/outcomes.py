"""The ``verdict`` row of a record: the outcome of a gate, or a finding.

A *gate* holds a measurement against a limit on harm that was named before the run. It says PASS,
FAIL or INCONCLUSIVE. Whatever has no such limit is a *finding*: a headline and what to do.

The rules by which gates judge have a version. Rows that older rules wrote are never shown as PASS:
``current`` turns them into "not judged again", and those of questions that are findings today into
findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

Outcome = Literal["PASS", "FAIL", "INCONCLUSIVE"]
OUTCOMES: tuple[Outcome, ...] = ("PASS", "FAIL", "INCONCLUSIVE")
EXIT_CODES: dict[str, int] = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}
RULES = 3  # rows without a number were written by version 1
FINDINGS: dict[str, str] = {  # questions without a limit on harm, and the headline of older rows
    "exposure-training": "Training choices, compared by older rules",
    "prediction": "Protect list, checked by older rules",
    "text-prediction": "Protect list, checked by older rules",
}

NOT_JUDGED_AGAIN = "not judged again"  # why a decision of older rules is absent

_OF_A_GATE = ("outcome", "claim", "limit", "lag", "detected")


def gate_row(
    *,
    outcome: Outcome,
    sentence: str,
    claim: str,
    limit: float | None,
    lag: float | None = None,
    detected: bool | None = None,
) -> dict[str, Any]:
    """The row of a gate.

    Args:
        outcome: What the gate says.
        sentence: What was measured and why that is the outcome.
        claim: The strongest statement the evidence supports: a bound with its n and confidence.
        limit: The harm that was allowed, in the units of the measurement.
        lag: The steps since planting at which it was judged, where there is such a number.
        detected: Whether memory is detected where it was judged, whatever the outcome; None where
            the gate does not say, and the row then lacks the field.
    """
    return {
        "outcome": outcome,
        "sentence": sentence,
        "claim": claim,
        "limit": limit,
        "lag": lag,
        "rules": RULES,
        **({} if detected is None else {"detected": detected}),
    }


def finding_row(*, headline: str, sentence: str, advice: str) -> dict[str, Any]:
    """The row of a finding: it has no outcome.

    Args:
        headline: A few words.
        sentence: What was found, with its numbers.
        advice: What to do about it.
    """
    return {"headline": headline, "sentence": sentence, "advice": advice, "rules": RULES}


def current(row: Mapping[str, Any], *, question: str = "") -> Mapping[str, Any]:
    """A row as today's rules allow it to be shown.

    An outcome that older rules wrote becomes INCONCLUSIVE, with a sentence that says so. Where the
    question has no limit on harm, the row becomes a finding with its old sentence.

    Args:
        row: As the record holds it. A row that says why there is no verdict, or one that is
            malformed, is returned as it is.
        question: The record's.
    """
    if row.get("outcome") not in OUTCOMES:
        return row
    if question in FINDINGS:
        kept = {name: value for name, value in row.items() if name not in _OF_A_GATE}
        return kept | {
            "headline": FINDINGS[question],
            "advice": "Run the recipe again in a new folder for what to do by today's rules.",
        }
    if not _of_older_rules(row):
        return row
    sentence = (
        f"Not judged again: older rules, which could pass without evidence, said {row['outcome']}. "
        "Run the recipe again in a new folder to judge it by today's rules."
    )
    return {**row, "outcome": "INCONCLUSIVE", "sentence": sentence, "claim": sentence}


def current_results(
    results: Mapping[str, Mapping[str, Any]], *, question: str
) -> dict[str, Mapping[str, Any]]:
    """All results of a record as today's rules allow them to be shown.

    The verdict is that of ``current``. Where older rules wrote it, ``decision`` and every
    ``safe_after`` within a result are ``{"absent": "not judged again"}``: they rest on the same
    rules.

    Args:
        results: As the record holds them; they are not changed.
        question: The record's.
    """
    shown = dict(results)
    if "verdict" not in shown:
        return shown
    verdict = shown["verdict"]
    if verdict.get("outcome") in OUTCOMES and _of_older_rules(verdict):
        shown = {name: _without_safe_after(result) for name, result in shown.items()}
        if "absent" not in shown.get("decision", {"absent": ""}):
            shown["decision"] = {"absent": NOT_JUDGED_AGAIN}
    shown["verdict"] = dict(current(verdict, question=question))
    return shown


def _of_older_rules(row: Mapping[str, Any]) -> bool:
    rules = row.get("rules")
    return not isinstance(rules, int) or rules < RULES


def _without_safe_after(value: Any) -> Any:
    """The value with every ``safe_after`` in it, at any depth, absent."""
    if isinstance(value, Mapping):
        return {
            name: {"absent": NOT_JUDGED_AGAIN}
            if name == "safe_after"
            else _without_safe_after(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_without_safe_after(inner) for inner in value]
    return value


def exit_code(outcomes: Iterable[str], *, allow_inconclusive: bool = False) -> int:
    """The exit code of several gates: 1 if any says FAIL, else 3 if any says INCONCLUSIVE, else 0.

    Args:
        outcomes: One a gate; findings have none.
        allow_inconclusive: Exit with 0 instead of 3.

    Example:
        >>> exit_code(["PASS", "INCONCLUSIVE", "FAIL"]), exit_code(["PASS", "INCONCLUSIVE"])
        (1, 3)
    """
    codes = {EXIT_CODES[outcome] for outcome in outcomes}
    for outcome in ("FAIL", "INCONCLUSIVE"):
        if EXIT_CODES[outcome] in codes and not (outcome == "INCONCLUSIVE" and allow_inconclusive):
            return EXIT_CODES[outcome]
    return 0
