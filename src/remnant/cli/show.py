"""``remnant show``: one run's outcome."""

from __future__ import annotations

import json
from pathlib import Path

import click

from remnant.cli.exit_codes import check_options, exit_by_gates, gate_options, require_gate


@click.command(short_help="Show one run's outcome.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the whole summary as JSON.")
@gate_options
def show(run: Path, as_json: bool, gate: bool, allow_inconclusive: bool) -> None:
    """Show the outcome and the main numbers of RUN, a folder with a record.

    It exits with 0 whatever the outcome, unless --gate is given.

    \b
    Example:
      remnant show runs/fashion
      remnant show runs/fashion --gate
    """
    from remnant.records import Record
    from remnant.records.listing import summarise
    from remnant.report import detail_text, read_view, summary_text

    check_options(gate=gate, allow_inconclusive=allow_inconclusive)
    record = Record.open(run)
    record.verify()
    if gate:
        require_gate([record.question])
    if as_json:
        click.echo(json.dumps(record.summary(), indent=2))
    elif summarise(run).status == "interrupted":
        click.echo(f"interrupted; run the command that began {run} again to go on.")
    else:
        view = read_view(record)
        click.echo(summary_text(view))
        detail = detail_text(view)
        if detail:
            click.echo("\n" + detail)
    if gate:
        exit_by_gates([record], allow_inconclusive=allow_inconclusive)
