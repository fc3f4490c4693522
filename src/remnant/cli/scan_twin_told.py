"""How found secrets fare in a model and in its twin, in words and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from remnant.cli.counts import aligned, counted, grouped
from remnant.cli.scan_exposure_told import exposure_fields, extraction_lines

if TYPE_CHECKING:
    from remnant.measures import SignFlipTest
    from remnant.studies.found_twin import KindComparison, MedianExposure, TwinComparison


def twin_lines(found: TwinComparison, twin: Path | None) -> list[str]:
    """Return how many are more exposed than in the twin, whether by chance, and what to mind."""
    lines = [f"compared with the twin {twin}, which was asked the same:"]
    if found.kinds:
        head = ["kind", "secrets", "more exposed", "less", "open", "median bits", "in the twin"]
        lines += ["", *aligned([head, *map(_row, found.kinds)], left={0})]
    if found.test is None:
        lines.append(f"not tested: {found.untested}.")
    else:
        lines.append(
            f"p = {found.test.p_value:.2g} that a coin would make as many more exposed, over "
            f"{counted(found.test.groups, 'file')} in which they first stand"
        )
    if any(one.extraction is not None for one in found.measured.each):
        lines += extraction_lines(found.measured, whence=" from the twin")
    if found.shared:
        stand = "stands" if found.shared == 1 else "stand"
        lines.append(
            f"not asked about: {counted(found.shared, 'secret')}, which {stand} in --twin-text too."
        )
    if found.unpaired:
        lines.append(f"not compared: {counted(found.unpaired, 'secret')}, measured in one only.")
    lines.append(
        "note: a twin that is the worse model altogether would look like this too. Ask the other "
        "way round: about the secrets of its own text."
    )
    return lines


def _row(one: KindComparison) -> list[str]:
    left_open = one.n - one.higher - one.lower
    counts = map(grouped, (one.n, one.higher, one.lower, left_open))
    return [one.kind, *counts, _median(one.model), _median(one.twin)]


def _median(one: MedianExposure) -> str:
    return f"{'at least ' * one.at_least}{one.bits:.2f}"


def twin_fields(found: TwinComparison, context: int) -> dict[str, Any]:
    """Return the same as plain data, with the exposure of each secret in the twin."""
    return {
        "kinds": [_kind_fields(one) for one in found.kinds],
        "in_twin_text": found.shared,
        "not_compared": found.unpaired,
        "test": _test_fields(found.test, found.untested),
        "exposure": exposure_fields(found.measured, context),
    }


def _kind_fields(one: KindComparison) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "n": one.n,
        "higher": one.higher,
        "lower": one.lower,
        "median_bits": one.model.bits,
        "median_at_least": one.model.at_least,
        "twin_median_bits": one.twin.bits,
        "twin_median_at_least": one.twin.at_least,
    }


def _test_fields(test: SignFlipTest | None, untested: str) -> dict[str, Any]:
    if test is None:
        return {"p_value": None, "p_value_reason": untested}
    return {"p_value": test.p_value, "files": test.groups, "method": test.method}
