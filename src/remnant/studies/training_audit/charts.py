"""The chart of an audit of one's own training."""

from __future__ import annotations

from remnant.report.charts.shapes import Chart, Line, Rule
from remnant.report.numerals import bits_number, bits_text, count_text, times_text
from remnant.studies.training_audit.result import Course, DetectedExamples

_TONES = ("main", "second", "third")


def course_chart(course: Course) -> Chart:
    """Mean exposure against steps, one line for each number of times planted."""
    levels = sorted({row.repeats for row in course.rows}, reverse=True)
    lines = []
    for place, repeats in enumerate(levels):
        rows = course.level(repeats)
        tone = "chance" if repeats == 0 else _TONES[place % len(_TONES)]
        lines.append(
            Line(
                level_text(repeats),
                tone,
                tuple(float(row.step) for row in rows),
                tuple(row.mean_bits for row in rows),
            )
        )
    most = level_text(levels[0]).lower()
    ends = course.level(levels[0])
    return Chart(
        title="Mean exposure during the training",
        description=(
            f"Mean exposure of the canaries {most}: {bits_text(ends[0].mean_bits)} after "
            f"{count_text(ends[0].step)} steps and {bits_text(ends[-1].mean_bits)} after "
            f"{count_text(ends[-1].step)}."
        ),
        x_label="Steps",
        y_label="Mean exposure (bits)",
        lines=tuple(lines),
        rules=(
            Rule(
                f"Most that references show {bits_number(course.ceiling_bits)}",
                "ceiling",
                course.ceiling_bits,
            ),
        ),
    )


def detection_chart(detected: DetectedExamples, limit: float | None) -> Chart:
    """AUC against steps, one line for each number of times planted."""
    levels = sorted({row.repeats for row in detected.course}, reverse=True)
    lines = []
    for place, repeats in enumerate(levels):
        rows = [row for row in detected.course if row.repeats == repeats]
        lines.append(
            Line(
                level_text(repeats),
                _TONES[place % len(_TONES)],
                tuple(float(row.step) for row in rows),
                tuple(row.auc for row in rows),
            )
        )
    rules = [Rule("Chance 0.5", "chance", 0.5)]
    if limit is not None:
        rules.append(Rule(f"Limit {limit:g}", "limit", limit))
    start, end = lines[0].y[0], lines[0].y[-1]
    return Chart(
        title="Attack success during the training",
        description=(
            f"AUC on {detected.kind} {lines[0].label.lower()}: {start:.3f} after "
            f"{count_text(int(lines[0].x[0]))} steps and {end:.3f} after "
            f"{count_text(int(lines[0].x[-1]))}."
        ),
        x_label="Steps",
        y_label="AUC",
        lines=tuple(lines),
        rules=tuple(rules),
    )


def level_text(repeats: int) -> str:
    """How often canaries were planted: ``Planted 16 times``."""
    return f"Planted {times_text(repeats)}" if repeats else "Never planted"
