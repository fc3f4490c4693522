"""``remnant runs``: list the runs in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remnant.cli.help.command import Command
from remnant.cli.options import declared
from remnant.cli.terminal import one_line

if TYPE_CHECKING:
    from remnant.records import RunSummary


@click.command(cls=Command, hidden=True, short_help="List the runs in a folder.")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("runs"))
@declared.as_json
def runs(folder: Path, as_json: bool) -> None:
    """List the runs in FOLDER, as `remnant show --list` does.

    \b
    Example:
      remnant runs runs
    """
    print_runs(folder, as_json=as_json)


def print_runs(folder: Path, *, as_json: bool) -> None:
    """Print the runs in a folder, one a line, or as JSON.

    Raises:
        RecordError: The folder cannot be read.
    """
    from remnant.records import list_runs
    from remnant.records.folder import RECORD_FILE
    from remnant.records.listing import SHADOW_POOL, summarise

    entries = list_runs(folder)
    if (folder / RECORD_FILE).is_file():
        entries.insert(0, summarise(folder))
    if as_json:
        click.echo(json.dumps([entry.as_dict() for entry in entries], indent=2))
        return
    if not entries:
        click.echo(f"No runs in {one_line(str(folder))}.")
    for entry in entries:
        pool = entry.question == SHADOW_POOL
        finding = entry.headline and f"FINDING: {entry.headline}"
        shown = entry.fault or entry.verdict or finding
        shown = shown or ("no run" if pool else _so_far(entry))
        name = one_line(entry.folder.resolve().name)
        question = one_line(entry.question or "?")
        click.echo(f"{name:<28} {entry.status:<12} {question:<15} {one_line(shown)}")


def _so_far(entry: RunSummary) -> str:
    """How far a run without a verdict has come."""
    return "no verdict yet" if entry.groups is None else f"{entry.groups} groups trained"
