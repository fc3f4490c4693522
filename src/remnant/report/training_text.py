"""A report about training choices in a few lines, for a terminal."""

from __future__ import annotations

from remnant.report.bars import interval_table
from remnant.report.curve import Curve, Point
from remnant.report.numerals import bits_number, pvalue_text
from remnant.report.run_view import NotMeasured
from remnant.report.training_view import Effect, Training, TrainingView
from remnant.report.training_words import (
    best_variant,
    difference_of,
    interval_number,
    share_text,
    signed_text,
)


def training_lines(view: TrainingView) -> list[str]:
    """Every variant: exposure, how far above the first, validation bits, extraction."""
    found = view.training
    if isinstance(found, NotMeasured):
        return [f"  training choices  not measured: {found.reason}"]
    lines = [f"  {found.title}: exposure in bits, and above {found.variants[0].label!r}"]
    width = max(len(one.label) for one in found.variants)
    for one in found.variants:
        line = f"    {one.label:<{width}}  {interval_number(one.exposure)}"
        gap = difference_of(view, one.label)
        if gap is not None:
            line += f"  {signed_text(gap.value)}, {_pvalue(gap.adjusted_p_value)}"
        line += f"  {bits_number(one.validation.value)} bits a {found.token}"
        if one.extracted is not None:
            line += f"  read out {share_text(one.extracted)}"
        lines.append(line)
    if len(found.front) > 1:
        lines.append(f"  Pareto front of the means: {', '.join(map(repr, found.front))}")
    elif (best := best_variant(found)) is not None:
        said = ("exposes least", "predicts best")
        words = [word for word, holds in zip(said, best[1:], strict=True) if holds]
        lines.append(f"  significantly best: {best[0]!r} {' and '.join(words)}")
    elif len(found.variants) > 1:
        lines.append("  no variant is significantly best")
    if found.effects:
        lines += [f"  each choice on its own, and above its first value, in {found.trials} trials"]
        lines += _effect_lines(found.effects)
    return lines


def _effect_lines(effects: tuple[Effect, ...]) -> list[str]:
    named = [
        f"{one.field} {one.value}" + (f" (with {', '.join(one.along)})" if one.along else "")
        for one in effects
    ]
    width = max(map(len, named))
    lines = []
    for name, one in zip(named, effects, strict=True):
        line = f"    {name:<{width}}  {interval_number(one.exposure)}"
        if one.difference is not None:
            line += f"  {signed_text(one.difference)}, {_pvalue(one.adjusted_p_value)}"
        lines.append(line)
    return lines


def _pvalue(value: float | None) -> str:
    shown = pvalue_text(value)
    return f"p {shown if shown[0] in '<–' else f'= {shown}'}"


def training_table(found: Training | NotMeasured) -> str:
    """Exposure of every variant with a bar; empty where it was not measured."""
    if isinstance(found, NotMeasured):
        return ""
    rows = [
        (
            (f"{one.label}, at least" if one.exposure.at_least else one.label,),
            Point(0.0, one.exposure.value, one.exposure.low, one.exposure.high),
        )
        for one in found.variants
    ]
    curve = Curve(
        success="exposure",
        points=tuple(point for _, point in rows),
        chance=found.null_mean,
        fpr=None,
        confidence=found.confidence if found.trials > 1 else None,
        trials=found.trials,
        n_seen=None,
        n_unseen=None,
        method=None,
        steps_to=(),
    )
    return "\n".join(interval_table(curve, ("variant",), rows))
