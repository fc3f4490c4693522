"""What stands beside an outcome: its controls, and what contradicts it.

Each question has one function ``beside(result)`` that returns its checks; see
``studies.registry``. Whether a check contradicts the outcome follows from intervals and tests that
the result holds, never from a value alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from remnant.records.outcomes import Outcome
from remnant.records.typed import Absent
from remnant.report.blocks import Check, Status
from remnant.report.numerals import lag_text, p_equals
from remnant.studies.residual_memory.result import ResidualMemory, Returning
from remnant.studies.shared.curve_blocks import control_count, control_holds
from remnant.studies.shared.curves import Curve, Point
from remnant.studies.shared.result_parts import (
    ClassifierTask,
    Finding,
    Gate,
    LanguageTask,
    SpeechTask,
)

M_co = TypeVar("M_co", covariant=True)
SIGNIFICANT = 0.05
"""A p-value at or under this, corrected where there are several, is one that counts."""


class Recorded(Protocol[M_co]):
    """What the record of a command holds: a verdict, and what was measured."""

    @property
    def verdict(self) -> Finding | Gate | Absent: ...  # noqa: D102
    @property
    def measured(self) -> M_co | Absent: ...  # noqa: D102


def outcome_of(verdict: Finding | Gate | Absent | Any) -> Outcome | None:
    """The outcome of a gate; None of a finding and where there is no verdict."""
    return verdict.outcome if isinstance(verdict, Gate) else None


def not_measured(name: str) -> Check:
    """A control or test that was not made, where that matters to the outcome."""
    return Check(name=name, status="not measured", text=f"{name} not measured")


def positive_control(
    found: bool | None, outcome: Outcome | None, *, where: str = "", name: str = "positive control"
) -> Check:
    """Whether the attack found what it must find.

    Where it did not, that contradicts a PASS, since an attack that sees nothing finds nothing, and
    a FAIL, since a test that should find something does not.

    Args:
        found: None where it was not measured.
        outcome: Of the gate.
        where: Where it was found, such as ``"at lag 1"``.
        name: Of the control.
    """
    if found is None:
        return not_measured(name)
    if found:
        return Check(name=name, status="found", text=f"{name} found {where}".strip())
    contradicts = outcome in ("PASS", "FAIL")
    return Check(name=name, status="not found", text=f"{name} not found", contradicts=contradicts)


def at_chance(name: str, holds: bool | None, *, text: str = "", contradicts: bool = False) -> Check:
    """Whether what cannot be memory is at chance.

    Args:
        name: Of the control.
        holds: None where it was not measured.
        text: After "at chance" or "not at chance", such as numbers.
        contradicts: Whether it contradicts the outcome where it is not at chance.
    """
    if holds is None:
        return not_measured(name)
    said = f"{name} {'at chance' if holds else 'not at chance'}{f' ({text})' if text else ''}"
    status: Status = "at chance" if holds else "not at chance"
    return Check(name=name, status=status, text=said, contradicts=contradicts and not holds)


def second_test(name: str, *, finds: bool, text: str, outcome: Outcome | None) -> Check:
    """A second test of what the outcome is about.

    It contradicts a PASS where it finds something, and a FAIL where it finds nothing.

    Args:
        name: Of the test.
        finds: Whether it finds memory, by its own interval or p-value.
        text: What it says.
        outcome: Of the gate; a second test contradicts no finding and no INCONCLUSIVE.
    """
    if outcome in ("PASS", "FAIL"):
        agrees = finds == (outcome == "FAIL")
        status: Status = "agrees" if agrees else "disagrees"
        return Check(name=name, status=status, text=text, contradicts=not agrees)
    return Check(name=name, status="found" if finds else "not found", text=text)


def another_attacker(
    name: str, *, finds: bool, success: str, outcome: Outcome | None, what: str = "canaries"
) -> Check:
    """An attacker beside the one that the outcome names; one that succeeds contradicts a PASS.

    Args:
        name: Of the attacker, such as ``"an attacker with the model alone"``.
        finds: Whether its success is shown to be above chance.
        success: In words.
        outcome: Of the gate.
        what: It finds.
    """
    said = "finds" if finds else "is not shown to find"
    status: Status = "found" if finds else "not found"
    return Check(
        name="another attacker",
        status=status,
        text=f"{name} {said} the {what} ({success})",
        contradicts=finds and outcome == "PASS",
    )


def harm(name: str, count: int, text: str, outcome: Outcome | None) -> Check:
    """How many secrets or records came out, which contradicts a PASS."""
    status: Status = "found" if count else "not found"
    return Check(name=name, status=status, text=text, contradicts=bool(count) and outcome == "PASS")


def attack_found(
    curve: Curve | None,
    outcome: Outcome | None,
    *,
    found: bool | None,
    found_at: float | None,
) -> Check:
    """The positive control of a curve.

    Args:
        curve: What was judged; None where it was not measured.
        outcome: Of the gate. Its rules give no PASS without the control, and a FAIL is a bound
            above a limit that is above chance. Where the last interval is above chance too, the
            attack found the canaries there, and nothing contradicts a FAIL.
        found: As the record holds it; None in older records.
        found_at: The first lag at which it was found.
    """
    if curve is None:
        return not_measured("positive control")
    if found is None:
        found = True if outcome in ("PASS", "FAIL") else _never_above(curve)
    if found is None:
        name = "positive control"
        return Check(name=name, status="not measured", text=f"{name} not in this record")
    if outcome == "FAIL" and not found and above(curve.end, curve.chance):
        text = "positive control found at the judged lag alone, uncorrected for the number of lags"
        return Check(name="positive control", status="found", text=text)
    where = "" if found_at is None else f"at lag {lag_text(found_at)}"
    return positive_control(found, outcome, where=where)


def _never_above(curve: Curve) -> bool | None:
    """False where no interval is above chance at a lag that counts; else not known."""
    counted = [point for point in curve.points if point.lag >= curve.start.lag]
    return None if any(above(point, curve.chance) for point in counted) else False


def above(point: Point, chance: float | None) -> bool:
    """Whether the whole interval of a point is above chance."""
    return chance is not None and point.low is not None and point.low > chance


def twins_at_chance(
    control: Curve | None, outcome: Outcome | None, *, name: str = "negative control"
) -> Check:
    """The A/A twins of a curve, of which neither saw a canary, at the lag that is judged.

    Twins that are distinguished there contradict a FAIL: it need not be memory. Where
    their interval excludes chance at more than a tenth of all lags, the text counts these.
    """
    if control is None:
        return not_measured(name)
    end = control.end
    if control.chance is None or end.low is None or end.high is None:
        return not_measured(name)
    holds = end.low <= control.chance <= end.high
    text = "" if holds else f"{_interval(control, end)} at lag {lag_text(end.lag)}"
    if holds and not control_holds(control):
        inside, lags = control_count(control)
        text = f"at lag {lag_text(end.lag)}, but at only {inside} of {lags} lags"
    return at_chance(
        name, holds, text=text, contradicts=outcome == "FAIL" and above(end, control.chance)
    )


def never_planted(
    planted: Curve | None, never: Curve | None, outcome: Outcome | None
) -> Check | None:
    """Canaries drawn the same way that were never planted, in the models that saw the others.

    They contradict an outcome where their interval is above chance and not below that of the
    planted ones: at the last lag for a FAIL, else at the first one, on which the positive control
    rests.
    """
    if planted is None or never is None:
        return None
    name = "never-planted canaries"
    own, other = (c.end if outcome == "FAIL" else c.start for c in (planted, never))
    if not above(other, never.chance):
        holds = None if other.low is None else True
        return at_chance(name, holds, text=f"lag {lag_text(other.lag)}")
    alike = own.low is not None and other.high is not None and other.high >= own.low
    text = (
        f"{name} are found {'as' if alike else 'less'} easily at lag {lag_text(other.lag)} "
        f"({never.show(other.value)}; planted {planted.show(own.value)})"
    )
    contradicts = alike and outcome in ("PASS", "FAIL")
    return Check(name=name, status="not at chance", text=text, contradicts=contradicts)


def still_detected(curve: Curve | None, outcome: Outcome | None) -> list[Check]:
    """What the gate judged, where it is within the limit and yet above chance; else nothing."""
    if curve is None or outcome != "PASS":
        return []
    return [check for check in other_measures([curve], outcome) if check.contradicts]


def other_measures(curves: Iterable[Curve], outcome: Outcome | None) -> list[Check]:
    """The same attack by other measures of success, at the last lag.

    One that is above chance contradicts a PASS; one that is not contradicts a FAIL. Those that
    agree share an entry.
    """
    agreeing, checks = [], []
    for curve in curves:
        end = curve.end
        if curve.chance is None or end.low is None or end.high is None:
            continue
        finds = above(end, curve.chance)
        where = "above chance" if finds else "not above chance"
        text = f"{curve.label} {where} at lag {lag_text(end.lag)} ({_interval(curve, end)})"
        check = second_test(curve.label, finds=finds, text=text, outcome=outcome)
        if check.contradicts:
            checks.append(check)
        else:
            agreeing.append(curve.label)
    if agreeing and outcome in ("PASS", "FAIL"):
        text = f"{', '.join(agreeing)} {'agrees' if len(agreeing) == 1 else 'agree'}"
        checks.insert(0, Check(name="other measures", status="agrees", text=text))
    return checks


def task_learnt(
    task: LanguageTask | ClassifierTask | SpeechTask | Absent, outcome: Outcome | None
) -> list[Check]:
    """A model that is worse than guessing, which contradicts a PASS; else nothing."""
    useless = ""
    if isinstance(task, LanguageTask) and task.useless:
        useless = "the model is worse than guessing blindly"
    elif isinstance(task, SpeechTask) and task.p_value > SIGNIFICANT:
        useless = "the model hears no better than chance"
    if not useless:
        return []
    return [
        Check(name="usefulness", status="not found", text=useless, contradicts=outcome == "PASS")
    ]


def _interval(curve: Curve, point: Point) -> str:
    return curve.show_interval(point) or curve.show(point.value)


def residual_memory(
    hidden: ResidualMemory | Absent, returning: Returning | Absent, outcome: Outcome | None
) -> list[Check]:
    """Whether disturbances or later checkpoints brought canaries back, which contradicts a PASS."""
    checks = []
    if isinstance(hidden, ResidualMemory):
        rows = hidden.disturbances
        found = sum(row.reading != "not found" for row in rows)
        text = f"canaries found after {found} of {len(rows)} disturbances"
        checks.append(harm("residual memory", found, text, outcome))
    elif outcome == "PASS":
        checks.append(not_measured("residual memory"))
    if isinstance(returning, Returning) and (returning.significant or outcome == "PASS"):
        back = returning.returned if returning.significant else 0
        text = (
            f"{returning.returned} of {returning.lost} lost canaries come back "
            f"({p_equals(returning.pvalue)})"
        )
        checks.append(harm("later checkpoints", back, text, outcome))
    return checks
