"""How found secrets fare in a model and in its twin, in words and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from remnant.cli.counts import aligned, counted, grouped
from remnant.cli.redaction import printable
from remnant.cli.scan_coarse import mean_text, told_mean
from remnant.cli.scan_exposure_told import (
    exposure_fields,
    extraction_lines,
    nothing_measured,
    unmeasured_lines,
)

if TYPE_CHECKING:
    from remnant.measures import SignFlipTest
    from remnant.studies.found_twin import KindComparison, MedianExposure, TwinComparison


def twin_lines(found: TwinComparison, twin: Path | None, *, reveal: bool) -> list[str]:
    """Return how many are more exposed than in the twin, whether by chance, and what to mind."""
    asked = found.measured
    if asked.each and not any(one.measured for one in asked.each):
        reason = nothing_measured(asked, twin)
        return [f"not compared with the twin: {reason}.", *_left_out(found)]
    lines = [f"compared with the twin {printable(str(twin))}, which was asked the same:"]
    if found.kinds:
        head = ["kind", "secrets", "more exposed", "less", "open", "median bits", "in the twin"]
        rows = [_row(one, reveal) for one in found.kinds]
        lines += ["", *aligned([head, *rows], left={0})]
    if found.test is None:
        lines.append(f"not tested: {found.untested}.")
    else:
        lines.append(
            f"p = {found.test.p_value:.2g} that a coin would make as many more exposed, over "
            f"{counted(found.test.groups, 'file')} in which they first stand"
        )
    if any(one.extraction is not None for one in asked.each):
        lines += extraction_lines(asked, whence=" from the twin")
    lines += _left_out(found)
    lines += unmeasured_lines(asked, where=" in the twin")
    if found.unpaired:
        lines.append(f"not compared: {counted(found.unpaired, 'secret')}, measured in one only.")
    if found.kinds:
        lines.append(
            "note: a twin that is the worse model altogether would look like this too. Ask the "
            "other way round: about the secrets of its own text."
        )
    return lines


def _left_out(found: TwinComparison) -> list[str]:
    if not found.shared:
        return []
    stand = "stands" if found.shared == 1 else "stand"
    return [
        f"not asked about: {counted(found.shared, 'secret')}, which {stand} in --twin-text too."
    ]


def _row(one: KindComparison, reveal: bool) -> list[str]:
    left_open = one.n - one.higher - one.lower
    counts = map(grouped, (one.n, one.higher, one.lower, left_open))
    medians = [
        mean_text(median.bits, one.n, at_least=median.at_least, reveal=reveal)
        for median in (one.model, one.twin)
    ]
    return [one.kind, *counts, *medians]


def twin_fields(found: TwinComparison, context: int, *, reveal: bool) -> dict[str, Any]:
    """Return the same as plain data, with the exposure of each secret in the twin."""
    return {
        "kinds": [_kind_fields(one, reveal) for one in found.kinds],
        "in_twin_text": found.shared,
        "not_compared": found.unpaired,
        "test": _test_fields(found.test, found.untested),
        "exposure": exposure_fields(found.measured, context, reveal=reveal),
    }


def _kind_fields(one: KindComparison, reveal: bool) -> dict[str, Any]:
    def median(of: MedianExposure) -> float:
        return told_mean(of.bits, one.n, at_least=of.at_least, reveal=reveal)

    return {
        "kind": one.kind,
        "n": one.n,
        "higher": one.higher,
        "lower": one.lower,
        "median_bits": median(one.model),
        "median_at_least": one.model.at_least,
        "twin_median_bits": median(one.twin),
        "twin_median_at_least": one.twin.at_least,
    }


def _test_fields(test: SignFlipTest | None, untested: str) -> dict[str, Any]:
    if test is None:
        return {"p_value": None, "p_value_reason": untested}
    return {"p_value": test.p_value, "files": test.groups, "method": test.method}
