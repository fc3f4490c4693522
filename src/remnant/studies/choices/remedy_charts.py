"""The charts of a page about defences."""

from __future__ import annotations

from remnant.report.charts.shapes import Chart, Dot, Dots, Line, Rule
from remnant.report.numerals import bits_number
from remnant.studies.choices.charts import axis_digits
from remnant.studies.choices.formats import interval_bits
from remnant.studies.choices.result import Defences, MeasuredRemedy

_GROUPS = (
    ("As planned", "second", ("as planned",)),
    ("Holds the limit", "main", ("holds",)),
    ("Does not, or is not shown to", "control", ("fails", "not shown")),
    ("Useless model", "chance", ("useless model",)),
)


def front_chart(defences: Defences) -> Chart:
    """Exposure against usefulness, one dot a remedy with both intervals, and the Pareto front."""
    groups = []
    for label, tone, statuses in _GROUPS:
        dots = tuple(
            _dot(defences, remedy, number)
            for number, remedy in enumerate(defences.remedies, start=1)
            if remedy.status in statuses
        )
        groups += [Dots(label, tone, dots)] if dots else []
    named = {remedy.label: remedy for remedy in defences.remedies}
    front = [named[label] for label in defences.pareto]
    line = Line(
        "The front",
        "main",
        tuple(remedy.validation_bits[0] for remedy in front),
        tuple(remedy.exposure[0] for remedy in front),
        places="none",
    )
    ends = [
        end for remedy in defences.remedies for end in remedy.validation_bits if end is not None
    ]
    return Chart(
        title="Exposure against usefulness",
        description=" ".join(f"{_words(defences, remedy)}." for remedy in front),
        x_label=f"Bits a {defences.token} of held-out text: fewer are more useful",
        y_label="Exposure (bits)",
        lines=(line,) if len(front) > 1 else (),
        rules=(
            Rule(f"Limit {bits_number(defences.limit)}", "limit", defences.limit),
            Rule(
                f"Chance {bits_number(defences.null_mean_bits)}", "chance", defences.null_mean_bits
            ),
        ),
        dots=tuple(groups),
        x_form="number",
        x_digits=axis_digits(ends),
        x_word="validation bits",
        unnamed=("The front",),
    )


def _dot(defences: Defences, remedy: MeasuredRemedy, number: int) -> Dot:
    cost, left, right = remedy.validation_bits
    bits, low, high = remedy.exposure
    words = f"{number}. {_words(defences, remedy)}"
    return Dot(cost, bits, words, low, high, left=left, right=right, mark=number)


def _words(defences: Defences, remedy: MeasuredRemedy) -> str:
    return (
        f"{remedy.label}: {interval_bits(remedy.validation)} a {defences.token}, exposure "
        f"{interval_bits(remedy.mean_exposure)}"
    )
