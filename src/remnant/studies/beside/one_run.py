"""What stands beside the outcome of one run with canaries planted along the way."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.outcomes import Outcome
from remnant.records.typed import Absent
from remnant.report.blocks import Check
from remnant.report.numerals import lag_text
from remnant.studies.beside.checks import (
    another_attacker,
    attack_found,
    not_measured,
    outcome_of,
    second_test,
    still_detected,
    task_learnt,
)
from remnant.studies.one_run.result import OneRunCurves, OneRunParts


def beside(result: OneRunParts) -> tuple[Check, ...]:
    """The controls of one run and what contradicts its outcome."""
    outcome, curves = outcome_of(result.verdict), result.one_run
    if isinstance(curves, Absent):
        return (not_measured("positive control"),)
    return (*curve_checks(curves, outcome), *task_learnt(result.task, outcome))


def curve_checks(
    curves: OneRunCurves, outcome: Outcome | None, *, found: bool | None = None
) -> Iterator[Check]:
    """The controls of the curves of one run.

    Args:
        curves: What was measured.
        outcome: Of the gate that judges them.
        found: Whether the attack found the canaries; of the curves if not given.
    """
    judged = curves.judged
    yield attack_found(
        judged.curve,
        outcome,
        found=curves.found if found is None else found,
        found_at=curves.found_at,
    )
    if outcome == "FAIL":
        yield not_measured("negative control")  # no second training without the canaries
    yield from still_detected(judged.curve, outcome)
    for other in curves.others or ():
        yield another_attacker(
            other.name,
            finds=other.low > curves.chance,
            success=f"{judged.curve.label} {judged.curve.show(other.success)}",
            outcome=outcome,
        )
    yield from _windows(curves, outcome)
    effect = judged.effect[-1]
    if effect.low is not None and outcome is not None:
        finds = effect.low > 0.0
        text = (
            f"mean score {'still' if finds else 'not shown to be'} raised at lag "
            f"{lag_text(round(effect.lag))}"
        )
        yield second_test("mean score", finds=finds, text=text, outcome=outcome)


def _windows(curves: OneRunCurves, outcome: Outcome | None) -> Iterator[Check]:
    """Whether a later window disagrees with the one that is judged, at about the same lag.

    It contradicts a PASS where its interval is higher, and a FAIL where it is lower.
    """
    apart = curves.disagreement
    if apart is None:
        if len(curves.starts) > 1:
            yield Check(name="windows", status="agrees", text="windows agree")
        return
    show, later, first = curves.curve.show, apart.later_point, apart.first_point
    higher = later.low is not None and first.high is not None and later.low > first.high
    text = (
        f"canaries planted from step {apart.later.start} on are found "
        f"{'more' if higher else 'less'} at lag {lag_text(round(later.lag))} "
        f"({show(later.value)}; first window {show(first.value)})"
    )
    contradicts = outcome == ("PASS" if higher else "FAIL")
    yield Check(name="windows", status="disagrees", text=text, contradicts=contradicts)
