"""``remnant show`` and ``remnant report``: outcomes, lists and reports of the runs in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.help.command import Command
from remnant.cli.options import declared
from remnant.cli.options.exit_codes import exit_by_gates, gate_options, require_gated
from remnant.cli.options.out_files import check_markdown, check_place, check_report
from remnant.cli.output import amount, amount_options, page_text
from remnant.cli.runs import print_runs
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.records import Record


_HERE = Path("-")
"""The value of ``--html`` and ``--md`` without one: the usual place."""


def _file(name: str, *, help: str) -> Callable[[declared.Command], declared.Command]:
    """Make an option that takes a file, or stands alone."""
    return declared.path(name, is_flag=False, flag_value=str(_HERE), help=help)


@click.command(cls=Command, short_help="Show outcomes, list runs, write reports.")
@click.argument("run", type=click.Path(path_type=Path), required=False)
@declared.flag("--list", "listed", help="List the runs in RUN with their status and outcome.")
@_file("--html", help="Write the report: to this file, or alone to RUN/report.html.")
@_file("--md", help="Print Markdown, for pipelines and model cards, or write it to this file.")
@declared.path("--out", "-o", help="With --md or --html, the file to write.")
@declared.flag("--force", help="Overwrite a file that --md or --html did not write.")
@declared.flag("--json", "as_json", help="Print the whole summary as JSON.")
@amount_options
@gate_options
def show(
    run: Path | None,
    listed: bool,
    html: Path | None,
    md: Path | None,
    out: Path | None,
    force: bool,
    as_json: bool,
    gate: bool,
    allow_inconclusive: bool,
) -> None:
    """Show the outcome and the main numbers of RUN, a folder with a record.

    The runs directly under RUN are shown too, and are in its report. Without RUN, the runs in runs/
    are listed. The exit code is 0 whatever the outcome; with --gate, that of the worst
    outcome.

    \b
    Example:
      remnant show
      remnant show runs/fashion
      remnant show runs/fashion --gate
      remnant show runs/fashion --html fashion.html
      remnant show runs/fashion --md summary.md
    """
    if run is None:  # the option before RUN has taken it: `show --md RUN`
        given = [option for option in (md, html) if option is not None]
        if len(given) == 1 and given[0] != _HERE:
            run, md, html = given[0], md and _HERE, html and _HERE
    _check_forms(md=md, html=html, as_json=as_json, listed=listed)
    if run is None or listed:
        _refuse_for_lists(md=md, html=html, out=out, force=force, gate=gate)
        print_runs(run or Path("runs"), as_json=as_json)
        return
    if (out is not None or force) and md is None and html is None:
        raise InvalidInput(
            "--out and --force are for --md and --html.", hint="Pass one, or leave them out."
        )
    as_markdown = md is not None
    out = next((path for path in (md, html, out) if path is not None and path != _HERE), None)
    if out is not None and as_markdown:
        check_place("--out", out)
        check_markdown(out, force=force)
    if html is not None:
        _write_report(run, out, force=force)
        if not gate:
            return
    records = _records(run)
    if gate:
        require_gated(records)
    if as_json:
        first, *others = map(_json, records)
        names = [record.folder.name for record in records[1:]]
        runs = {"runs": dict(zip(names, others, strict=True))} if others else {}
        click.echo(json.dumps(first | runs, indent=2))
    elif as_markdown:
        _write_markdown(records, out)
    elif html is None:
        between = "\n" if amount() == "quiet" else "\n\n"
        click.echo(between.join(_text(record, alone=len(records) == 1) for record in records))
    if gate:
        exit_by_gates(records, allow_inconclusive=allow_inconclusive)


def _check_forms(**forms: object) -> None:
    """Refuse two forms of one output."""
    given = declared.given({"json": forms.pop("as_json"), "list": forms.pop("listed"), **forms})
    if len(given) > 1 and given != ["--json", "--list"]:
        raise InvalidInput(
            f"{given[0]} and {given[1]} are two forms of one output.", hint="Pass one of them."
        )


def _refuse_for_lists(**options: object) -> None:
    """Refuse options that have no meaning for a list of runs."""
    for option in declared.given(options):
        raise InvalidInput(f"{option} needs a run.", hint="Pass RUN, and leave --list out.")


def _records(run: Path) -> list[Record]:
    """The verified records that ``remnant report`` covers, without pools under the folder.

    Raises:
        RecordError: There is no run, or one of them is damaged.
    """
    from remnant.records import Record
    from remnant.records.folder import runs_covered
    from remnant.records.listing import SHADOW_POOL

    records = []
    for folder in runs_covered(run):
        record = Record.open(folder)
        if record.question != SHADOW_POOL or folder == run:
            record.verify()
            records.append(record)
    # If there are only pools, opening the folder itself raises the right error.
    return records or [Record.open(run)]


def _json(record: Record) -> dict[str, Any]:
    """A run's summary, with what stands beside its outcome."""
    from remnant.studies.reporting import checks_beside

    whole, beside = record.summary(), checks_beside(record)
    if beside is not None:
        whole["results"]["verdict"]["beside"] = beside
    return whole


def _text(record: Record, *, alone: bool) -> str:
    """A run's outcome; with its tables if these are wanted and it is the only run."""
    from remnant.records.listing import summarise
    from remnant.studies.reporting import read_page

    entry = summarise(record.folder)
    if entry.status == "interrupted":
        return f"interrupted; run the command that began {record.folder} again to go on."
    if entry.status == "running":
        done = "" if entry.groups is None else f", {entry.groups} groups trained"
        return f"running: a process is writing {record.folder}{done}."
    return page_text(read_page(record), named=not alone)


def _write_markdown(records: list[Record], out: Path | None) -> None:
    """Print the runs as Markdown, or write it and print the file's name."""
    from remnant.report.html import write_page
    from remnant.report.markdown import render
    from remnant.studies.reporting import read_page

    pages = [read_page(record) for record in records]
    document = render(pages)
    if out is None:
        click.echo(document, nl=False)
    else:
        click.echo(str(write_page(out, document, private=any(page.private for page in pages))))


@click.command(cls=Command, hidden=True, short_help="Write a run's report from its record.")
@click.argument("run", type=click.Path(path_type=Path))
@declared.path("--out", "-o", help="File to write.  [default: RUN/report.html]")
@declared.flag("--force", help="Overwrite a file that is not a report.")
def report(run: Path, out: Path | None, force: bool) -> None:
    """Write the report of RUN, and of the runs directly under it, as one HTML file.

    The file needs no network connection.

    \b
    Example:
      remnant report runs/fashion --out fashion.html
    """
    _write_report(run, out, force=force)


def _write_report(run: Path, out: Path | None, *, force: bool) -> None:
    """Write the report of a run and print its path."""
    from remnant.studies.reporting import write_report

    if out is not None:
        check_report(out, force=force)
    click.echo(str(write_report(run, out)))
