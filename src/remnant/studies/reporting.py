"""Record -> result -> page -> report, whichever question a run asked.

Nothing here loads PyTorch, and a question's modules are imported when a record needs them.
"""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path
from typing import Any

from remnant.errors import RecordError, RemnantWarning
from remnant.records import Record
from remnant.records.folder import runs_covered
from remnant.records.listing import SHADOW_POOL
from remnant.records.typed import read_result
from remnant.report.blocks import Block, Headline, Page, Tiles, checks_json, prose
from remnant.report.html import DamagedRun, render, write_page
from remnant.studies.recipe_form.toml import recipe_text
from remnant.studies.registry import QUESTIONS, load, question_of
from remnant.studies.shared.pages import RunFacts, read_run

REPORT_FILE = "report.html"
PRIVATE, REVEALED = "private", "reveal"
"""Entries of a record's execution: only the owner may read its files; its result shows secrets."""
AUDITED = "audited"
"""Entry of a record's execution: what an audit of a training was of, in words by name."""
_SECRETS_SHOWN = "This report shows secrets (--reveal). Do not pass it on."
_SEEDS_LEFT_OUT = (
    "# Put in the seeds that are not 0: the record has them. A report must not have them, because\n"
    "# template and seed give the secrets back.\n"
)
_AUDITED = ("Model", "Data", "Text", "Pairs", "Questions")  # groups of a plan


def read_page(record: Record) -> Page:
    """Read a record into the page of its question.

    Raises:
        RecordError: The question is not one of ours, or a result is there but not in the form it
            should have.
    """
    question, run = question_of(record), read_run(record)
    result = read_result(record, load(question.result))
    execution = record.execution
    blocks = tuple(load(question.page)(result, run))
    if execution.get(REVEALED) is True:
        blocks = _with_notice(blocks, _SECRETS_SHOWN)
    options = _options(record)
    words = [shlex.quote(f"{run.name}.toml"), options, "--out", shlex.quote(run.name)]
    command = " ".join(["remnant run", *filter(None, words)])
    return Page(
        title=load(question.heading),
        question=run.question,
        name=run.name,
        fingerprint=run.fingerprint,
        complete=run.complete,
        blocks=blocks,
        audited=(*_audited(run), *_made(record)),
        command=command if question.repeatable else _own_command(record),
        options=options if question.repeatable else "",
        recipe=_recipe(record, run) if question.repeatable else "",
        private=execution.get(PRIVATE) is True,
        data_fingerprint=record.data_fingerprint,
    )


def checks_beside(record: Record) -> list[dict[str, Any]] | None:
    """The controls beside a record's outcome and what contradicts it, as plain data.

    None where the record has no outcome, or asks a question that is not one of ours.
    """
    question, row = QUESTIONS.get(record.question), record.results().get("verdict", {})
    if question is None or not {"outcome", "headline"} & row.keys():
        return None
    result = read_result(record, load(question.result))
    return checks_json(load(question.beside)(result))


def read_pages(folder: str | Path) -> tuple[Page, ...]:
    """Read the run in a folder, if there is one, and then the runs directly under it, by name.

    A shadow pool under it is no run and is passed over.

    Raises:
        RecordError: There is no run at all, or one of them cannot be read.
    """
    pages = [_verified_page(run, own=run == Path(folder)) for run in runs_covered(folder)]
    # With pools alone under it the folder itself is opened, for the error that it gives.
    return tuple(filter(None, pages)) or (read_page(Record.open(folder)),)


def read_sound_pages(folder: str | Path) -> tuple[tuple[Page, ...], tuple[DamagedRun, ...]]:
    """Read the runs that ``read_pages`` reads, and name those that cannot be read.

    Raises:
        RecordError: There is no run at all, or none that can be read.
    """
    pages: list[Page] = []
    damaged, first = [], None
    for run in runs_covered(folder):
        try:
            page = _verified_page(run, own=run == Path(folder))
        except RecordError as fault:
            first = first or fault
            damaged.append(DamagedRun(run.resolve().name, str(fault)))
            continue
        pages += [] if page is None else [page]
    if not pages and first is not None:
        raise first
    return tuple(pages) or (read_page(Record.open(folder)),), tuple(damaged)


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of a folder, by default as its ``report.html``.

    It covers the run in the folder, if there is one, and the runs directly under it. The file is
    the old one or the new one, never something between. Only its owner can read it where that holds
    for one of the records. Runs that cannot be read are named in the report, and each in a warning.

    Raises:
        RecordError: There is no run that can be read, or the file cannot be written.
    """
    path = Path(folder) / REPORT_FILE if out is None else Path(out)
    pages, damaged = read_sound_pages(folder)
    document = render(pages, name=Path(folder).resolve().name, damaged=damaged)
    written = write_page(path, document, private=any(page.private for page in pages))
    for run in damaged:
        warnings.warn(
            f"The run {run.name} is not in the report: {run.fault}", RemnantWarning, stacklevel=2
        )
    return written


def _recipe(record: Record, run: RunFacts) -> str:
    """The recipe as TOML; one without its seeds says so."""
    hidden = _SEEDS_LEFT_OUT if run.recipe != record.plan else ""
    return hidden + recipe_text(run.recipe)


def _verified_page(folder: Path, *, own: bool) -> Page | None:
    """Read a run whose arrays are all as they were stored; None for a pool under the folder."""
    record = Record.open(folder)
    if record.question == SHADOW_POOL and not own:
        return None
    record.verify()
    return read_page(record)


def _with_notice(blocks: tuple[Block, ...], notice: str) -> tuple[Block, ...]:
    """The blocks with a notice after the headline and the tiles."""
    first = 0
    while first < len(blocks) and isinstance(blocks[first], Headline | Tiles):
        first += 1
    return (*blocks[:first], prose(notice, tone="notice", depth="summary"), *blocks[first:])


def _audited(run: RunFacts) -> list[tuple[str, str]]:
    """Model and data, each in a line, without the fields that are not set."""
    named = run.execution.get(AUDITED)
    trained = named.items() if isinstance(named, dict) else ()
    return [(str(name), str(value)) for name, value in trained] + [
        (
            group.title,
            ", ".join(
                value if name == "name" else f"{name} {value}"
                for name, value in group.rows
                if value not in ("", "no", "none", name)
            ),
        )
        for group in run.groups
        if group.title in _AUDITED
    ]


def _own_command(record: Record) -> str:
    """The command that wrote a record without a recipe; empty where the record does not say."""
    command = record.provenance.get("command")
    return command if isinstance(command, str) else ""


def _options(record: Record) -> str:
    """The options of ``remnant run`` that change numbers, as the run was made.

    Who runs the groups (``--on``, ``--workers``) changes none at equal threads.
    """
    execution, threads = record.execution, record.provenance.get("threads")
    device = str(execution.get("device", "cpu")).replace(", cuda:", ",")
    words = [] if re.fullmatch(r"cuda(:\d+(,\d+)*)?", device) is None else ["--device", device]
    words += ["--compiled"] if execution.get("compiled") is True else []
    words += ["--threads", str(threads)] if type(threads) is int else []
    return " ".join(words)


def _made(record: Record) -> list[tuple[str, str]]:
    """When, and with which version."""
    version = (record.provenance.get("versions") or {}).get("remnant")
    rows = [("Date", f"{record.started[:10]} (UTC)")]
    return [*rows, ("Remnant", version)] if version else rows
