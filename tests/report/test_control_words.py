"""What a report says where the controls are more exposed than chance explains."""

from __future__ import annotations

import pytest

from remnant.report import control_words as told
from remnant.report.curve import SPACE
from remnant.report.exposure_view import Level
from remnant.report.run_view import NotMeasured


def levels(p_value, control_pvalue=None):
    return (
        Level(0, 16, 3.0, None, p_value),
        Level(4, 3, 9.0, None, 1e-9, control_pvalue=control_pvalue),
    )


def test_controls_beyond_chance_are_a_warning():
    assert "p < 0.001" in told.control_warning(levels(1e-5)).replace(SPACE, " ")
    assert "read the exposures with caution" in told.control_warning(levels(0.01))
    assert [told.control_warning(levels(p)) for p in (0.011, 0.5, None)] == ["", "", ""]
    assert told.control_warning(levels(0.5)[1:]) == ""
    assert told.control_warning(NotMeasured("none")) == ""


@pytest.mark.parametrize(
    ("p_value", "control_pvalue", "against", "told_p"),
    [
        (0.5, 0.02, "chance", 1e-9),
        (1e-5, 0.02, "controls", 0.02),
        (1e-5, None, "chance", 1e-9),
    ],
)
def test_canaries_are_held_against_controls_that_are_exposed(
    p_value, control_pvalue, against, told_p
):
    controls, canaries = rows = levels(p_value, control_pvalue)
    assert told.held_against(rows) == against
    assert told.level_pvalue(canaries, against) == told_p
    assert told.level_pvalue(controls, against) == p_value
