"""``remnant show``: one run's outcome."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command(short_help="Show one run's outcome.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the whole summary as JSON.")
def show(run: Path, as_json: bool) -> None:
    """Show the verdict and the curve of RUN, a folder with a record.

    \b
    Example:
      remnant show runs/fashion
    """
    from remnant.records import Record
    from remnant.report import curve_text, read_view, summary_text

    record = Record.open(run)
    if as_json:
        click.echo(json.dumps(record.summary(), indent=2))
        return
    click.echo(summary_text(read_view(record)))
    curve = record.results().get("curve")
    if curve is not None and "absent" not in curve:
        click.echo("\n" + curve_text(curve))
