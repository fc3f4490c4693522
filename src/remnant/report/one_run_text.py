"""A one-run report in a few lines, for a terminal."""

from __future__ import annotations

from remnant.report.bars import interval_table
from remnant.report.curve import lag_text
from remnant.report.numerals import count_text, counted, times_text
from remnant.report.one_run_view import OneRun, OneRunView
from remnant.report.one_run_words import windows_apart
from remnant.report.run_view import NotMeasured

_MOST_ROWS = 30
_ONE_RUN = (
    "  one run: intervals are over canaries, not over runs; what is not found may only be hidden"
)


def one_run_lines(view: OneRunView) -> list[str]:
    """Both ends of what was judged, beside chance, and how far it reaches."""
    found = view.one_run
    if isinstance(found, NotMeasured):
        return [f"  attack success  not measured: {found.reason}", _ONE_RUN]
    curve = found.curve
    start = count_text(found.first[0].start)
    lines = [
        f"  {curve.label} (chance {curve.show(curve.chance)}), canaries planted from step {start}"
    ]
    names = [f"planted {times_text(one.repeats)}" for one in found.first]
    for name, one in zip(names, found.first, strict=True):
        for point in (one.curve.start, one.curve.end):
            interval = curve.show_interval(point)
            lines.append(
                f"    {name:<{max(map(len, names))}}  lag {lag_text(round(point.lag)):>7}  "
                f"{curve.show(point.value)}{f'  [{interval}]' if interval else ''}"
            )
    lines.append(f"  {counted(found.n_unseen, 'control')} never planted")
    return [*lines, *_apart(found), _ONE_RUN]


def one_run_table(found: OneRun) -> str:
    """Some lags of every window and number of repeats, each with a bar."""
    each = max(2, _MOST_ROWS // len(found.cohorts))
    rows = [
        ((count_text(one.start), f"{count_text(one.repeats)}×", lag_text(round(p.lag))), p)
        for one in found.cohorts
        for p in one.curve.chosen(each)
    ]
    return "\n".join(interval_table(found.curve, ("from step", "planted", "lag"), rows))


def _apart(found: OneRun) -> list[str]:
    apart = windows_apart(found)
    if apart is None:
        return []
    later, first, show = apart.later, apart.first, found.curve.show
    return [
        f"  the windows disagree: planted {times_text(later.repeats)}, lag about "
        f"{lag_text(round(apart.later_point.lag))}: {show(apart.later_point.value)} from step "
        f"{count_text(later.start)}, {show(apart.first_point.value)} from step "
        f"{count_text(first.start)}"
    ]
