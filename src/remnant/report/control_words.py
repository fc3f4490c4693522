"""What controls say of an exposure: secrets that were drawn alike and never planted."""

from __future__ import annotations

from remnant.measures.exposure import is_found
from remnant.report.exposure_view import Exposure, Level
from remnant.report.numerals import bits_text, counted, p_equals
from remnant.report.run_view import NotMeasured


def controls_sentence(found: Exposure) -> str:
    """What the never-planted controls say about the measurement itself."""
    mean = found.controls_mean
    chance = f"chance alone gives {bits_text(found.null_mean)}"
    if mean is None:
        return f"There were no controls to compare with; {chance}, and two bits is noise."
    one = len(found.controls) == 1
    least = "at least " if found.controls_at_least else ""
    who = "The control" if one else f"The {counted(len(found.controls), 'control')}"
    return (
        f"{who}, drawn alike and never planted, {'has' if one else 'have'} {least}"
        f"{bits_text(mean)} on average; {chance}, and two bits is noise."
    )


def control_warning(levels: tuple[Level, ...] | NotMeasured) -> str:
    """A warning where the controls are more exposed than chance explains; else nothing."""
    controls = _exposed_controls(levels)
    if controls is None:
        return ""
    return (
        "The controls were never planted, and yet they are more exposed than chance "
        f"explains ({p_equals(controls.pooled_pvalue)}): something other than memory makes these "
        "secrets likely, so read the exposures with caution."
    )


def held_against(levels: tuple[Level, ...]) -> str:
    """What p-values of canaries are against: chance, or controls that have more than that."""
    compared = any(level.control_pvalue is not None for level in levels)
    return "controls" if compared and _exposed_controls(levels) is not None else "chance"


def level_pvalue(level: Level, against: str) -> float | None:
    """The p-value of a level's canaries against chance or controls; of controls, chance."""
    if against == "controls" and level.repeats:
        return level.control_pvalue
    return level.pooled_pvalue


def _exposed_controls(levels: tuple[Level, ...] | NotMeasured) -> Level | None:
    """The controls, where they are more exposed than chance explains."""
    for level in () if isinstance(levels, NotMeasured) else levels:
        if level.repeats == 0 and is_found(level.pooled_pvalue):
            return level
    return None
