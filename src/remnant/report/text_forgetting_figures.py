"""Which charts a report on forgetting of text has."""

from __future__ import annotations

from typing import Any

from remnant.report.figures import comparison_figure, curve_figure, traditional_figures
from remnant.report.run_view import NotMeasured, Verdict
from remnant.report.text_forgetting_view import TextForgettingView


def text_forgetting_figures(view: TextForgettingView, ident: str = "") -> dict[str, Any]:
    """All charts of the view by name, None where there is nothing to draw."""
    found, control = view.exposure, view.control
    return {
        "curve": None
        if isinstance(found, NotMeasured)
        else curve_figure(
            found.curve,
            control=None if isinstance(control, NotMeasured) else control.curve,
            limit=view.verdict.limit if isinstance(view.verdict, Verdict) else None,
            title="Mean exposure against steps since planting",
            label="Planted",
            ident=ident,
        ),
        "by_uses": comparison_figure(view.by_uses, f"{ident}uses-"),
        "comparison": comparison_figure(view.comparison, ident),
        "traditional": traditional_figures(view.traditional, ident),
    }
