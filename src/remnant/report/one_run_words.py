"""The sentences of a one-run report, for a reader who has never run an attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remnant.report.curve import Curve, Point, lag_text, percent, short_percent
from remnant.report.numerals import count_text, counted, times_text
from remnant.report.one_run_view import Cohort, OneRun, OneRunView
from remnant.report.run_view import NotMeasured
from remnant.report.words import point_text

ONE_RUN = (
    "This is one run: the intervals say how much other canaries would change these numbers, not "
    "how much another run would."
)
_WHAT = {
    "tpr": "the share of the planted canaries that the attacker finds",
    "precision": "the share of those the attacker names that had really been planted, with as many "
    "planted as never planted",
    "auc": "how often a planted canary looks more familiar to the model than one never planted",
    "accuracy": "the share of canaries that the attacker sorts rightly into planted and never "
    "planted, with as many of each",
}


@dataclass(frozen=True, slots=True)
class Apart:
    """Two windows whose intervals do not meet at about the same lag."""

    later: Cohort
    later_point: Point
    first: Cohort
    first_point: Point


def in_plain_words(view: OneRunView) -> str:
    """What was planted, what was left out, and what the attacker had to do."""
    found = view.one_run
    if isinstance(found, NotMeasured):
        return f"What an attacker finds in this run was not measured: {found.reason}."
    many = len(found.starts) > 1
    where = (
        f"in {len(found.starts)} windows of {counted(found.window, 'step')}, from steps "
        f"{_listed([count_text(start) for start in found.starts])} on"
        if many
        else f"in a window of {counted(found.window, 'step')}, from step "
        f"{count_text(found.starts[0])} on"
    )
    often = _listed([count_text(n) for n in found.repeats], "or")
    often = times_text(found.repeats[0]) if len(found.repeats) == 1 else f"{often} times"
    kept = " and kept a copy from before the window" if found.calibrated else ""
    return (
        f"{counted(found.planted, 'canary', 'canaries')} "
        f"{'was' if found.planted == 1 else 'were'} planted along one ordinary training run of "
        f"{counted(found.steps, 'step')}: {where}, a few in a batch, {often} each. Another "
        f"{count_text(found.n_unseen)}, drawn alike, {'was' if found.n_unseen == 1 else 'were'} "
        "never planted; chance alone decided which. At every later checkpoint an attacker who "
        f"holds the model{kept} had to say which canaries had been planted."
    )


def hidden_sentence(view: OneRunView) -> str:
    """What a success near chance does not mean."""
    listed = not isinstance(view.scope, NotMeasured) and view.scope.not_tested
    where = "; what was not run to look for it stands under “Not tested”" if listed else ""
    return (
        "What the attacker no longer finds may still be there and only be hidden from this "
        f"attack{where}."
    )


def what_was_found(found: OneRun) -> str:
    """What success is, and how it goes for the canaries planted first."""
    told = [
        f"Planted {times_text(one.repeats)}{_from(found, one)}: "
        f"{point_text(one.curve, one.curve.start)} {after_text(one.curve.start)}, "
        f"{point_text(one.curve, one.curve.end)} {after_text(one.curve.end)}."
        for one in found.first
    ]
    return " ".join([measure_sentence(found.curve), *told])


def measure_sentence(curve: Curve) -> str:
    """What the success is that is shown, and what guessing gives."""
    rate = _WHAT[curve.success]
    allowed = (
        ""
        if curve.fpr is None
        else f", while it wrongly names at most {short_percent(curve.fpr)} of those never planted"
    )
    return f"Success is {rate}{allowed}; guessing gives {curve.show(curve.chance)}."


def after_text(point: Point) -> str:
    """When a point was taken, such as ``1 703 steps after the last use``."""
    steps = round(point.lag)
    return f"{lag_text(steps)} step{'' if steps == 1 else 's'} after the last use"


def name_of(found: OneRun, one: Cohort) -> str:
    """A cohort in a few letters, such as ``16×, from 200``; the window only where it matters."""
    if len(found.starts) == 1:
        return f"{count_text(one.repeats)}×"
    return f"{count_text(one.repeats)}×, from {count_text(one.start)}"


def windows_apart(found: OneRun) -> Apart | None:
    """Of all windows that disagree with the first at about the same lag, the one furthest off.

    A later window's last point is compared with the first window's point of the nearest lag,
    planted as often. They disagree where their intervals do not meet.
    """
    furthest, most = None, 0.0
    for one in found.first:
        for later in found.cohorts:
            if later.repeats != one.repeats or later.window == one.window:
                continue
            end = later.curve.end
            near = min(one.curve.points, key=lambda point: abs(point.lag - end.lag))
            gap = _gap(end, near)
            if gap > most:
                furthest, most = Apart(later, end, one, near), gap
    return furthest


def apart_sentence(found: OneRun) -> str:
    """A warning where the windows disagree; else nothing."""
    apart = windows_apart(found)
    if apart is None:
        return ""
    later, first = apart.later, apart.first
    return (
        "The windows do not agree. Of canaries planted "
        f"{times_text(later.repeats)}, those from step {count_text(later.start)} on give "
        f"{point_text(later.curve, apart.later_point)} {after_text(apart.later_point)}; those from "
        f"step {count_text(first.start)} on give {point_text(first.curve, apart.first_point)} "
        f"{after_text(apart.first_point)}. So the lag alone does not tell how much is still found: "
        "it also matters when in the run something was planted, and the verdict judges the "
        "first window."
    )


def caption(found: OneRun) -> str:
    """What lines and bands of the first chart are."""
    later = (
        ""
        if len(found.starts) == 1
        else " of the first window, which is the one judged; those of the others are in the table. "
        "If only the lag mattered, lines of one colour would lie on each other"
    )
    return (
        f"Bands: {percent(found.curve.confidence, 0)} intervals over canaries{later}. "
        f"{counted(found.n_unseen, 'canary', 'canaries')} never planted; {found.curve.method}."
    )


def effect_sentence(found: OneRun) -> str:
    """What the second chart shows."""
    more = "" if len(found.starts) == 1 else " Bands are again those of the first window."
    return (
        "How much planting raised the model’s confidence in the canaries, on average: the rise in "
        "their log-odds since before the window, less the rise of those never planted. At 0 "
        "nothing is left of it on average, though single canaries may still stand out." + more
    )


def effect_text(point: Point) -> str:
    """An effect in nats with its interval; a dash where it was not measured."""
    if point.value is None:
        return "–"
    if point.low is None or point.high is None:
        return nats(point.value)
    return f"{nats(point.value)} ({nats(point.low)} to {nats(point.high)})"


def nats(value: float) -> str:
    """Nats without their unit, with a true minus sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def _gap(one: Point, other: Point) -> float:
    """How far two intervals are apart; not at all where one is not known."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return 0.0
    return max(one.low - other.high, other.low - one.high)


def _from(found: OneRun, one: Cohort) -> str:
    return "" if len(found.starts) == 1 else f" from step {count_text(one.start)} on"


def _listed(words: Sequence[str], joint: str = "and") -> str:
    *others, last = words
    return f"{', '.join(others)} {joint} {last}" if others else last
