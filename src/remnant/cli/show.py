"""``remnant show``: one run's outcome."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command(short_help="Show one run's outcome.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the whole summary as JSON.")
def show(run: Path, as_json: bool) -> None:
    """Show the verdict and the main numbers of RUN, a folder with a record.

    \b
    Example:
      remnant show runs/fashion
    """
    from remnant.records import Record
    from remnant.records.listing import summarise
    from remnant.report import detail_text, read_view, summary_text

    record = Record.open(run)
    record.verify()
    if as_json:
        click.echo(json.dumps(record.summary(), indent=2))
        return
    if summarise(run).status == "interrupted":
        click.echo(f"interrupted; run the command that began {run} again to go on.")
        return
    view = read_view(record)
    click.echo(summary_text(view))
    detail = detail_text(view)
    if detail:
        click.echo("\n" + detail)
