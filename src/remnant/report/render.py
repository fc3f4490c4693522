"""View -> one HTML file that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from remnant.errors import RecordError
from remnant.records import Record
from remnant.report import words
from remnant.report.curve import Curve, lag_text, percent, require_curve
from remnant.report.figures import (
    comparison_figure,
    curve_figure,
    main_figure,
    traditional_figures,
)
from remnant.report.view import NotMeasured, View, read_view

REPORT_FILE = "report.html"


def render(record: Record) -> str:
    """The report of a run as HTML.

    Guarantees:
        * Every text from the record is escaped.
        * The page refers to nothing outside itself, and its content policy forbids it to.
        * The same record gives the same page.
    """
    return render_view(read_view(record))


def render_view(view: View) -> str:
    """The report of a view as HTML."""
    template = _environment().get_template("report.html.j2")
    return template.render(
        view=view,
        figure=main_figure(view),
        comparison=comparison_figure(view.comparison),
        traditional=traditional_figures(view.traditional),
        tiles=_tiles(view),
    )


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of the run in a folder, by default as its ``report.html``.

    The file is the old one or the new one, never something between.

    Raises:
        RecordError: The record cannot be read, or the file cannot be written.
    """
    path = Path(folder) / REPORT_FILE if out is None else Path(out)
    return _write(path, render(Record.open(folder)))


def write_curve_page(
    curve: Mapping[str, Any], path: str | Path, *, title: str | None = None
) -> Path:
    """Write a page with one curve, its chart and its numbers.

    Args:
        curve: The JSON form of a curve: ``lags``, ``value``, ``low``, ``high``, ``success``, ….
        path: The HTML file to write.
        title: Heading; by default what the curve shows.

    Raises:
        InvalidInput: The curve is malformed.
        RecordError: The file cannot be written.
    """
    found = require_curve(curve)
    heading = title or f"{found.label} against lag"
    template = _environment().get_template("curve.html.j2")
    figure = curve_figure(found, title=heading, label="Attack success")
    page = template.render(title=heading, curve=found, figure=figure)
    return _write(Path(path), page)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("remnant.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"lag": lag_text, "percent": percent}
    environment.globals |= {"words": words}
    environment.tests |= {"not_measured": lambda found: isinstance(found, NotMeasured)}
    return environment


def _tiles(view: View) -> list[tuple[str, str, str]]:
    """The few numbers under the verdict: name, value, remark."""
    tiles = []
    curve, control = view.curve, view.control
    if isinstance(curve, Curve):
        for point, name in (
            (curve.start, "Right after planting" if curve.start.lag <= 1 else None),
            (curve.end, None),
        ):
            tiles.append(
                (
                    name or f"After {lag_text(point.lag)} steps",
                    curve.show(point.value),
                    curve.show_interval(point),
                )
            )
    if isinstance(control, Curve):
        tiles.append(
            (
                "A/A twins, at the end",
                control.show(control.end.value),
                control.show_interval(control.end),
            )
        )
    if isinstance(curve, Curve) and not isinstance(view.verdict, NotMeasured):
        limit, lag = view.verdict.limit, view.verdict.lag
        if limit is not None:
            remark = "" if lag is None else f"at lag {lag_text(lag)}"
            tiles.append(("Limit", curve.show(limit), remark))
    return tiles


def _write(path: Path, page: str) -> Path:
    if path.exists() and not path.is_file():
        raise RecordError(f"{path} is not a plain file.", hint="Choose another file with --out.")
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        temporary.write_text(page, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise RecordError(
            f"{path} cannot be written: {error.strerror}.", hint="Choose another file with --out."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return path
