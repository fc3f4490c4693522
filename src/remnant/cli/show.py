"""``remnant show`` and ``remnant report``: the outcomes and the report of the runs in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.options import declared
from remnant.cli.options.exit_codes import exit_by_gates, gate_options, require_gated
from remnant.cli.options.out_files import check_markdown, check_place, check_report
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.records import Record


@click.command(short_help="Show the outcome of a run.")
@click.argument("run", type=click.Path(path_type=Path))
@declared.flag("--json", "as_json", help="Print the whole summary as JSON.")
@declared.flag("--md", "as_markdown", help="Print Markdown, for pipelines and model cards.")
@declared.path("--out", help="With --md, the file to write.")
@declared.flag("--force", help="Overwrite a file that --md did not write.")
@gate_options
def show(
    run: Path,
    as_json: bool,
    as_markdown: bool,
    out: Path | None,
    force: bool,
    gate: bool,
    allow_inconclusive: bool,
) -> None:
    """Show the outcome and the main numbers of RUN, a folder with a record.

    The runs directly under RUN are shown too, as in `remnant report`; a single run is shown with
    its tables. The exit code is 0 whatever the outcome; with --gate, that of the worst
    outcome.

    \b
    Example:
      remnant show runs/fashion
      remnant show runs/fashion --gate
      remnant show runs/fashion --md --out summary.md
    """
    if as_json and as_markdown:
        raise InvalidInput("--json and --md are two forms of one output.", hint="Pass one of them.")
    if (out is not None or force) and not as_markdown:
        raise InvalidInput("--out and --force are for --md.", hint="Pass --md, or leave them out.")
    if out is not None:
        check_place("--out", out)
        check_markdown(out, force=force)
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
    else:
        click.echo("\n\n".join(_text(record, alone=len(records) == 1) for record in records))
    if gate:
        exit_by_gates(records, allow_inconclusive=allow_inconclusive)


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
    """A run's summary, with its tables if it is the only run."""
    from remnant.records.listing import summarise
    from remnant.report.terminal import detail, summary
    from remnant.studies.reporting import read_page

    if summarise(record.folder).status == "interrupted":
        return f"interrupted; run the command that began {record.folder} again to go on."
    page = read_page(record)
    if not alone:
        return summary(page, named=True)
    more = detail(page)
    return summary(page) + (f"\n\n{more}" if more else "")


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
