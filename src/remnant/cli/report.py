"""``remnant report``: write a run's report again from its record."""

from __future__ import annotations

from pathlib import Path

import click

from remnant.cli.options import declared
from remnant.cli.options.out_files import check_report


@click.command(short_help="Write a run's report from its record.")
@click.argument("run", type=click.Path(path_type=Path))
@declared.path("--out", help="File to write.  [default: RUN/report.html]")
@declared.flag("--force", help="Overwrite a file that is not a report.")
def report(run: Path, out: Path | None, force: bool) -> None:
    """Write the report of RUN, and of the runs directly under it, as one HTML file.

    The file needs no network connection.

    \b
    Example:
      remnant report runs/fashion --out fashion.html
    """
    from remnant.studies.reporting import write_report

    if out is not None:
        check_report(out, force=force)
    click.echo(str(write_report(run, out)))
