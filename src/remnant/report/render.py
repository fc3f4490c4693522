"""View -> one HTML file that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from remnant.errors import RecordError, RemnantWarning, write_error
from remnant.records import Record
from remnant.report import (
    control_words,
    decision_words,
    exposure_words,
    feature_audit_words,
    features_numerals,
    features_words,
    hidden_words,
    one_run_words,
    prediction_numerals,
    prediction_words,
    text_forgetting_words,
    training_words,
    words,
)
from remnant.report.curve import lag_text, percent, require_curve, short_percent
from remnant.report.exposure_figures import exposure_figures
from remnant.report.exposure_view import ExposureView
from remnant.report.feature_audit_view import FeatureAuditView
from remnant.report.feature_audit_words import audit_figure
from remnant.report.features_figures import by_mean, features_figures
from remnant.report.features_pictures import data_uri
from remnant.report.features_view import FeaturesView
from remnant.report.figures import (
    comparison_figure,
    curve_figure,
    main_figure,
    traditional_figures,
)
from remnant.report.numerals import bits_number, count_text, pvalue_text
from remnant.report.one_run_figures import one_run_figures
from remnant.report.one_run_view import OneRunView
from remnant.report.prediction_figures import prediction_figures
from remnant.report.prediction_view import PredictionView, lines_of
from remnant.report.run_view import NotMeasured
from remnant.report.text_forgetting_figures import text_forgetting_figures
from remnant.report.text_forgetting_view import TextForgettingView
from remnant.report.tiles import tiles_of
from remnant.report.training_figures import training_figures
from remnant.report.training_view import TrainingView
from remnant.report.view import DamagedRun, View, read_sound_views, read_view

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
    return render_views([view], name=view.name)


def render_views(views: Sequence[View], *, name: str, damaged: Sequence[DamagedRun] = ()) -> str:
    """The report of one run, or of several on one page with a table of contents.

    Args:
        views: In the order of the page.
        name: What the page is called if it holds several.
        damaged: Runs that could not be read, which the page names.
    """
    several = len(views) > 1
    runs = [
        _run(view, ident=f"run{i}-" if several else "", level=3 if several else 2)
        for i, view in enumerate(views, start=1)
    ]
    return (
        _environment().get_template("report.html.j2").render(runs=runs, name=name, damaged=damaged)
    )


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of a folder, by default as its ``report.html``.

    It covers the run in the folder, if there is one, and the runs directly under it. The file is
    the old one or the new one, never something between. Runs that cannot be read are named in the
    report, and each in a warning.

    Raises:
        RecordError: There is no run that can be read, or the file cannot be written.
    """
    path = Path(folder) / REPORT_FILE if out is None else Path(out)
    views, damaged = read_sound_views(folder)
    page = render_views(views, name=Path(folder).resolve().name, damaged=damaged)
    written = _write(path, page)
    for run in damaged:
        warnings.warn(
            f"The run {run.name} is not in the report: {run.fault}", RemnantWarning, stacklevel=2
        )
    return written


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


def _run(view: View, *, ident: str, level: int) -> dict[str, Any]:
    """What the templates show of one run; ``level`` is that of its headings."""
    shared = {"view": view, "tiles": tiles_of(view), "ident": ident, "level": level}
    shared["pictures"] = isinstance(view, FeaturesView | FeatureAuditView) and view.has_pictures
    if isinstance(view, ExposureView):
        return shared | {"body": "exposure.html.j2", "figures": exposure_figures(view, ident)}
    if isinstance(view, TrainingView):
        return shared | {"body": "training.html.j2", "figures": training_figures(view, ident)}
    if isinstance(view, OneRunView):
        return shared | {"body": "one_run.html.j2", "figures": one_run_figures(view, ident)}
    if isinstance(view, TextForgettingView):
        figures = text_forgetting_figures(view, ident)
        return shared | {"body": "text_forgetting.html.j2", "figures": figures}
    if isinstance(view, PredictionView):
        return shared | {"body": "prediction.html.j2", "figures": prediction_figures(view, ident)}
    if isinstance(view, FeaturesView):
        return shared | {"body": "features.html.j2", "figures": features_figures(view, ident)}
    if isinstance(view, FeatureAuditView):
        return shared | {
            "body": "feature_audit.html.j2",
            "figures": {"nulls": audit_figure(view, ident)},
        }
    figures = {
        "curve": main_figure(view, ident),
        "comparison": comparison_figure(view.comparison, ident),
        "traditional": traditional_figures(view.traditional, ident),
    }
    return shared | {"body": "forgetting.html.j2", "figures": figures}


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("remnant.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "lag": lag_text,
        "percent": percent,
        "short_percent": short_percent,
        "bits": bits_number,
        "count": count_text,
        "pvalue": pvalue_text,
        "lines_of": lines_of,
        "by_mean": by_mean,
        "data_uri": data_uri,
    }
    environment.globals |= {
        "words": words,
        "told": exposure_words,
        "control_words": control_words,
        "one_run_words": one_run_words,
        "decision_words": decision_words,
        "hidden_words": hidden_words,
        "text_words": text_forgetting_words,
        "prediction_words": prediction_words,
        "training_words": training_words,
        "prediction_numerals": prediction_numerals,
        "features_words": features_words,
        "feature_audit_words": feature_audit_words,
        "features_numerals": features_numerals,
    }
    environment.tests |= {"not_measured": lambda found: isinstance(found, NotMeasured)}
    return environment


def _write(path: Path, page: str) -> Path:
    if path.exists() and not path.is_file():
        raise RecordError(f"{path} is not a plain file.", hint="Choose another file with --out.")
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        temporary.write_text(page, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise write_error(path, error, hint="Choose another file with --out.") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return path
