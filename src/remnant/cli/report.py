"""``remnant report``: write a run's report again from its record."""

from __future__ import annotations

from pathlib import Path

import click

from remnant.cli.pages import check_page


@click.command(short_help="Write a run's report from its record.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="Where to.  [default: RUN/report.html]"
)
@click.option("--force", is_flag=True, help="Overwrite a file that is no report.")
def report(run: Path, out: Path | None, force: bool) -> None:
    """Write the report of RUN, and of the runs directly under it, as one HTML file.

    It opens offline.

    \b
    Example:
      remnant report runs/fashion --out fashion.html
    """
    from remnant.report import write_report

    if out is not None:
        check_page(out, force=force)
    click.echo(str(write_report(run, out)))
