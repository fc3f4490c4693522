"""What ``demo`` and ``run`` share: run studies, write the report, print the outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remnant.cli.endings import resumable
from remnant.cli.options.exit_codes import exit_by_gates, require_gate
from remnant.cli.options.naming import blaming
from remnant.progress import ProgressBar

if TYPE_CHECKING:
    from remnant.studies import Execution, Study


def naming_recipe(recipe: Path, *, of: int) -> AbstractContextManager[None]:
    """Let errors name the recipe that they are in, if there are several.

    Args:
        recipe: Its file, or the folder of its run.
        of: How many recipes there are.
    """
    return blaming(str(recipe)) if of > 1 else nullcontext()


def check_trust(
    studies: Mapping[str, Study], recipe_folders: Mapping[str, Path], execution: Execution
) -> None:
    """Refuse code that is not trusted, and trusted files that no recipe names, before any run.

    Args:
        studies: By any name.
        recipe_folders: The folders of their recipes.
        execution: With the trusted files.

    Raises:
        PlanError: A recipe names code of a file that is not trusted, or not the one it pins.
        InvalidInput: A trusted file is not named.
    """
    from remnant.studies.own_code import check_unused, with_digests

    executions = {name: replace(execution, recipe_folder=recipe_folders[name]) for name in studies}
    for name, study in studies.items():
        with naming_recipe(Path(name), of=len(studies)):
            with_digests(study, executions[name])
    check_unused(studies, executions)


def run_studies(
    studies: Mapping[str, Study],
    out: Path,
    execution: Execution,
    *,
    as_json: bool,
    gate: bool = False,
    allow_inconclusive: bool = False,
    recipe_folders: Mapping[str, Path] | None = None,
) -> None:
    """Run each study in its folder under ``out``, write ``out/report.html``, print the outcome.

    Exits with the gates' code where ``gate`` is set; with 0 otherwise.

    Args:
        studies: By folder; ``"."`` is ``out`` itself.
        out: Where the report goes.
        execution: How they are run.
        as_json: Whether the outcome is printed as JSON: the first study's summary, with those of
            the others under ``"runs"``, by folder.
        gate: Whether the exit code is that of the gates' outcome.
        allow_inconclusive: Whether INCONCLUSIVE exits with 0.
        recipe_folders: The folders of the recipes, by folder, where studies have recipes.

    Raises:
        InvalidInput: ``gate`` is set and no study has a limit; nothing is run.
        MissingExtra: A study needs a library that is not installed; nothing is run.
    """
    from remnant.records import Record
    from remnant.report.terminal import summaries
    from remnant.studies import run_study
    from remnant.studies.reporting import read_page, write_report
    from remnant.studies.required_extras import check_extras

    if gate:
        require_gate(study.to_dict()["question"] for study in studies.values())
    check_extras(studies.values())
    workers = execution.executor or nullcontext()
    with resumable():
        with workers, ProgressBar() as bar:
            for folder, study in studies.items():
                with naming_recipe(out / folder, of=len(studies)):
                    home = (recipe_folders or {}).get(folder)
                    own = replace(execution, recipe_folder=home)
                    run_study(study, out / folder, own, progress=bar)
        report = write_report(out)
    records = {folder: Record.open(out / folder) for folder in studies}
    if as_json:
        first, *others = ((folder, record.summary()) for folder, record in records.items())
        runs = {"runs": dict(others)} if others else {}
        click.echo(json.dumps(first[1] | runs, indent=2))
    else:
        pages = [read_page(record) for record in records.values()]
        click.echo(summaries(pages, report=report))
    if gate:
        exit_by_gates(records.values(), allow_inconclusive=allow_inconclusive)
