"""Record -> view -> one self-contained HTML file, or a few lines for a terminal."""

from remnant.report.render import render_view, write_curve_page, write_report
from remnant.report.text import curve_text, summary_text
from remnant.report.view import View, read_view

__all__ = [
    "View",
    "curve_text",
    "read_view",
    "render_view",
    "summary_text",
    "write_curve_page",
    "write_report",
]
