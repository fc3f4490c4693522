"""What ``demo`` and ``run`` share: carry out studies, write the report, say what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remnant.cli.exit_codes import exit_by_gates, require_gate
from remnant.cli.progress import ProgressBar
from remnant.errors import RemnantError

if TYPE_CHECKING:
    from remnant.studies import Execution, Study


@contextmanager
def naming_recipe(recipe: Path, *, of: int) -> Iterator[None]:
    """Let faults name the recipe that they are in, where it is one of several.

    Args:
        recipe: Its file, or the folder of its run.
        of: How many there are.
    """
    try:
        yield
    except RemnantError as fault:
        if of > 1 and str(recipe) not in fault.message:
            fault.message = f"{recipe}: {fault.message}"
        raise


def carry_out(
    studies: Mapping[str, Study],
    out: Path,
    execution: Execution,
    *,
    as_json: bool,
    gate: bool = False,
    allow_inconclusive: bool = False,
) -> None:
    """Run each study in its folder under ``out``, write ``out/report.html``, print the outcome.

    Exits with the gates' code where ``gate`` is set; with 0 otherwise.

    Args:
        studies: By folder; ``"."`` is ``out`` itself.
        out: Where the report goes.
        execution: How they are carried out.
        as_json: Whether the outcome is printed as JSON: the first study's summary, the others'
            under ``"runs"``, by folder.
        gate: Whether the exit code says the outcome of the gates.
        allow_inconclusive: Whether INCONCLUSIVE exits with 0.

    Raises:
        InvalidInput: ``gate`` is set and none of the studies has a limit to judge by; nothing runs.
    """
    from remnant.records import Record
    from remnant.report import read_view, summary_text, write_report
    from remnant.studies import run_study

    if gate:
        require_gate(study.to_dict()["question"] for study in studies.values())
    try:
        with ProgressBar() as bar:
            for folder, study in studies.items():
                with naming_recipe(out / folder, of=len(studies)):
                    run_study(study, out / folder, execution, progress=bar)
    except KeyboardInterrupt:
        raise click.exceptions.Abort("run the same command again to go on") from None
    page = write_report(out)
    records = {folder: Record.open(out / folder) for folder in studies}
    if as_json:
        first, *others = ((folder, record.summary()) for folder, record in records.items())
        runs = {"runs": dict(others)} if others else {}
        click.echo(json.dumps(first[1] | runs, indent=2))
    else:
        views = [read_view(record) for record in records.values()]
        click.echo(summary_text(views if len(views) > 1 else views[0], report=page))
    if gate:
        exit_by_gates(records.values(), allow_inconclusive=allow_inconclusive)
