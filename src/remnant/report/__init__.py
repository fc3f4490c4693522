"""Records -> views -> one self-contained HTML file, or a few lines for a terminal."""

from remnant.report.render import render_view, render_views, write_curve_page, write_report
from remnant.report.text import curve_text, detail_text, summary_text
from remnant.report.view import View, read_view, read_views

__all__ = [
    "View",
    "curve_text",
    "detail_text",
    "read_view",
    "read_views",
    "render_view",
    "render_views",
    "summary_text",
    "write_curve_page",
    "write_report",
]
