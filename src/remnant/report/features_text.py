"""A report on unique features in a few lines, for a terminal."""

from __future__ import annotations

from remnant.report.bars import interval_table
from remnant.report.curve import Curve, Point, percent, short_percent
from remnant.report.features_numerals import (
    interval_text,
    number_text,
    points_ends,
    points_text,
)
from remnant.report.features_view import Features, FeaturesView, Half, Models, Variant
from remnant.report.numerals import counted
from remnant.report.prediction_numerals import rate_ends
from remnant.report.run_view import NotMeasured


def features_lines(view: FeaturesView) -> list[str]:
    """What was planted, and for every way to train who stands out and by how much."""
    found = view.features
    if isinstance(found, NotMeasured):
        return [f"  unique features  not measured: {found.reason}"]
    lines = [
        f"  {found.patch.what}, planted in one of {counted(found.canaries, 'image')} at a time, "
        f"{counted(found.seeds, 'seed')} each; asked about {counted(found.n_images, 'image')} "
        f"({found.images})"
    ]
    for variant in found.variants:
        lines += _variant(found, variant)
    return lines


def features_table(found: Features | NotMeasured) -> str:
    """Shares of models that stand out, planted and not, with bars; empty where there are none."""
    if isinstance(found, NotMeasured):
        return ""
    rows = []
    for variant in found.variants:
        for name, models in (("planted", variant.planted), ("none", variant.unplanted)):
            if models is not None:
                one = models.share_significant
                rows.append(((variant.name, name), Point(0.0, one.value, one.low, one.high)))
    if not rows:
        return ""
    curve = Curve(
        success="stands_out",
        points=tuple(point for _, point in rows),
        chance=found.significance,
        fpr=None,
        confidence=found.confidence,
        trials=None,
        n_seen=None,
        n_unseen=None,
        method=None,
        steps_to=(),
    )
    return "\n".join(interval_table(curve, ("training", "patch"), rows))


def _variant(found: Features, one: Variant) -> list[str]:
    if one.planted is None:
        return [f"  {one.name}: not measured"]
    lines = [
        f"  {one.name}: M stands out (p ≤ {short_percent(found.significance)}) in "
        f"{_models(one.planted)} planted"
    ]
    if one.unplanted is not None:
        lines[0] += f", in {_models(one.unplanted)} never planted"
    if one.beyond is not None:
        lines.append(f"    difference {points_text(one.beyond.value)} [{points_ends(one.beyond)}]")
    if one.beyond_m is not None:
        lines.append(
            f"    mean M less the twins’ {number_text(one.beyond_m.value)} nats "
            f"[{interval_text(one.beyond_m)}]"
        )
    if one.by_influence is not None:
        halves = (f"{name} influence: {_half(half)}" for name, half in one.by_influence.named)
        lines.append(f"    {'; '.join(halves)}")
    return lines


def _half(found: Half | NotMeasured) -> str:
    if isinstance(found, NotMeasured):
        return f"not measured: {found.reason}"
    share, beyond = found.share_significant, found.beyond_m
    return (
        f"stands out in {percent(share.value)} [{rate_ends(share)}] of {found.n}, mean M less the "
        f"twins’ {number_text(beyond.value)} nats [{interval_text(beyond)}]"
    )


def _models(found: Models) -> str:
    share = found.share_significant
    return f"{percent(share.value)} [{rate_ends(share)}] of {found.n}"
