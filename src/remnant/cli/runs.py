"""``remnant runs``: what runs there are."""

from __future__ import annotations

import json
from pathlib import Path

import click

from remnant.cli.terminal import one_line


@click.command(short_help="List the runs in a folder.")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("runs"))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def runs(folder: Path, as_json: bool) -> None:
    """List the runs in FOLDER (runs/, if not given), with their status and outcome.

    A FOLDER that is a run itself comes first. Pools of shadow models' scores are listed as such.

    \b
    Example:
      remnant runs runs
    """
    from remnant.records import list_runs
    from remnant.records.folder import RECORD_FILE
    from remnant.records.listing import SHADOW_POOL, summarise

    found = list_runs(folder)
    if (folder / RECORD_FILE).is_file():
        found.insert(0, summarise(folder))
    if as_json:
        click.echo(json.dumps([entry.as_dict() for entry in found], indent=2))
        return
    if not found:
        click.echo(f"No runs in {one_line(str(folder))}.")
    for entry in found:
        pool = entry.question == SHADOW_POOL
        finding = entry.headline and f"FINDING: {entry.headline}"
        shown = entry.fault or entry.verdict or finding
        shown = shown or ("no run" if pool else "no verdict yet")
        name = one_line(entry.folder.resolve().name)
        question = one_line(entry.question or "?")
        click.echo(f"{name:<28} {entry.status:<12} {question:<15} {one_line(shown)}")
