"""What stands beside the outcome of an audit with two sets of records."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.outcomes import Outcome
from remnant.records.typed import Absent
from remnant.report.blocks import Check
from remnant.report.numerals import counted, p_equals
from remnant.studies.beside.checks import (
    SIGNIFICANT,
    at_chance,
    harm,
    not_measured,
    outcome_of,
    positive_control,
    second_test,
    task_learnt,
)
from remnant.studies.membership.result import Attacks, MembershipResult, Verbatim


def beside(result: MembershipResult) -> tuple[Check, ...]:
    """The controls of an audit and what contradicts its outcome."""
    return tuple(_checks(result, outcome_of(result.verdict)))


def _checks(result: MembershipResult, outcome: Outcome | None) -> Iterator[Check]:
    control, blind = result.control, result.blind
    if not isinstance(control, Absent):
        yield positive_control(control.found, outcome)
    elif outcome != "FAIL":  # which is a bound above the limit, with or without a control
        yield not_measured("positive control")
    if isinstance(blind, Absent):
        yield not_measured("blind baseline")
    else:
        text = f"AUC {blind.auc.value:.3f}"
        contradicts = outcome in ("PASS", "FAIL")
        yield at_chance("blind baseline", not blind.void, text=text, contradicts=contradicts)
    if isinstance(result.attacks, Attacks):
        yield from _attacks(result.attacks, outcome)
    if isinstance(result.verbatim, Verbatim):
        yield from _verbatim(result.verbatim, outcome)
    elif outcome == "PASS":
        yield not_measured("verbatim extraction")
    yield from task_learnt(result.task, outcome)


def _attacks(attacks: Attacks, outcome: Outcome | None) -> Iterator[Check]:
    """The rank-sum test of the named attack, and the attacks that were not named."""
    named, others = attacks.named, attacks.rows[1:]
    finds = named.p_value <= SIGNIFICANT
    if outcome is not None and finds != (outcome == "FAIL"):
        said = "distinguishes" if finds else "does not distinguish"
        text = f"{named.name} {said} seen from unseen records ({p_equals(named.p_value)})"
        yield second_test("rank-sum test", finds=finds, text=text, outcome=outcome)
    detected = [row for row in others if row.adjusted <= SIGNIFICANT]
    if others and outcome is not None:
        text = f"{len(detected) or 'none'} of {counted(len(others), 'other attack')} "
        text += f"distinguish{'es' if len(detected) == 1 else ''} the records"
        if detected:
            text += f" ({', '.join(row.name for row in detected)})"
        yield second_test("other attacks", finds=bool(detected), text=text, outcome=outcome)


def _verbatim(verbatim: Verbatim, outcome: Outcome | None) -> Iterator[Check]:
    """Records that come out verbatim: more of the seen than of the unseen, by the test."""
    seen = [row for row in verbatim.rows if row.side == "seen" and row.rows]
    if not seen:
        return
    counts = {
        row.half: max(row.greedy, row.sampled) if row.beyond is None else row.beyond for row in seen
    }
    most = max(seen, key=lambda row: counts[row.half])
    out = counts[most.half]
    significant = [test for test in verbatim.tests if verbatim.corrected(test) <= SIGNIFICANT]
    text = f"{out or 'none'} of {most.rows} seen records come out verbatim"
    if out and not significant:
        text += ", not shown to be more than of unseen ones"
    check = harm("verbatim extraction", out, text, outcome)
    yield (
        check
        if significant or not out
        else Check(name=check.name, status=check.status, text=check.text)
    )
