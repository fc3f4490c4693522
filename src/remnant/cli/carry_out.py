"""What ``demo`` and ``run`` share: carry out a study, write its report, say what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remnant.cli.progress import ProgressBar

if TYPE_CHECKING:
    from remnant.studies import Execution, ForgettingStudy


def carry_out(study: ForgettingStudy, out: Path, execution: Execution, *, as_json: bool) -> None:
    """Run the study in ``out``, write ``out/report.html`` and print the outcome."""
    from remnant.records import Record
    from remnant.report import read_view, summary_text, write_report
    from remnant.studies import run_forgetting

    with ProgressBar() as bar:
        run_forgetting(study, out, execution, progress=bar)
    page = write_report(out)
    record = Record.open(out)
    if as_json:
        click.echo(json.dumps(record.summary(), indent=2))
    else:
        click.echo(summary_text(read_view(record), report=page))
