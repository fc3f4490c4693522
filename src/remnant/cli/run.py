"""``remnant run``: run a recipe, on the GPUs of this machine or on a Ray cluster."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remnant.cli.help.command import Command
from remnant.cli.options import declared
from remnant.cli.options.exit_codes import exit_by_gates, gate_options, require_gate
from remnant.cli.options.naming import blaming
from remnant.cli.output import amount, amount_options, page_text, screen
from remnant.cli.studies_bar import StudiesBar
from remnant.cli.terminal import resumable, show, show_now
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.studies import Execution, Study
    from remnant.studies.jobs.scheduling import Distributed


def _check_devices(
    context: click.Context, parameter: click.Parameter, devices: str
) -> tuple[str, ...]:
    """Return the devices one by one: ``cuda:0,1`` is ``cuda:0`` and ``cuda:1``.

    ``auto`` stays: ``devices_of`` replaces it, once the recipes are read.
    """
    if devices == declared.AUTO:
        return (devices,)
    match = re.fullmatch(r"cuda:(\d+(?:,\d+)+)", devices)
    if match is None:
        return (declared.check_device(context, parameter, devices),)
    named = [f"cuda:{int(number)}" for number in match[1].split(",")]
    if len(set(named)) < len(named):
        raise InvalidInput(
            f"--device {devices} names a GPU twice.", hint="Name each GPU once, as in cuda:0,1."
        )
    return tuple(declared.check_device(context, parameter, device) for device in named)


def worker_options(command: declared.Command) -> declared.Command:
    """Add the options of ``remnant run`` that say who trains."""
    options = (
        click.option(
            "--device",
            default=declared.AUTO,
            show_default=True,
            callback=_check_devices,
            help="cpu or cuda; cuda:0,1 trains groups of models on several GPUs. auto: cuda where "
            "there is one, else cpu.",
        ),
        click.option(
            "--on",
            "place",
            help="ray or ray:ADDRESS: train groups of models on a Ray cluster; without an address "
            "Ray is started on this machine.",
        ),
        click.option(
            "--workers",
            type=int,
            help="With --on: groups that are trained at a time.  [default: as many as there are "
            "processors or GPUs for]",
        ),
        click.option(
            "--gpus-per-task", type=float, help="With --on: GPUs of each group, such as 1 or 0.25."
        ),
        declared.threads(passed_on=True),
    )
    for option in reversed(options):
        command = option(command)
    return command


def devices_of(device: tuple[str, ...], place: str | None) -> tuple[str, ...]:
    """Return the devices of this process; with ``--on`` the groups have theirs."""
    if device != (declared.AUTO,):
        return device
    return ("cpu",) if place is not None else (declared.auto_device(),)


def check_workers(
    *,
    device: tuple[str, ...],
    place: str | None,
    workers: int | None,
    gpus_per_task: float | None,
) -> None:
    """Refuse options that contradict each other.

    Raises:
        InvalidInput: One sentence names them.
    """
    if place is None:
        given = declared.given({"workers": workers, "gpus_per_task": gpus_per_task})
        if given:
            raise InvalidInput(f"{given[0]} needs --on.", hint="Pass --on ray too.")
        return
    kind, colon, address = place.partition(":")
    if kind != "ray" or (colon and not address):
        raise InvalidInput(
            f"--on {place} is neither ray nor ray:ADDRESS.",
            hint="Pass --on ray, or --on ray:HOST:PORT for a cluster that runs.",
        )
    if address:
        from remnant.integrations.workers.ray_address import AUTO, host_and_port

        if address != AUTO:
            host_and_port(address)
    if device not in (("cpu",), (declared.AUTO,)):
        raise InvalidInput(
            f"--device {','.join(device)} and --on {place} are both given.",
            hint="With --on ray, pass --gpus-per-task 1 to train on GPUs.",
        )
    if workers is not None and workers < 1:
        raise InvalidInput(f"--workers {workers} is less than 1.", hint="Pass 1 or more.")
    if gpus_per_task is not None and not (
        0 < gpus_per_task <= 1 or (gpus_per_task > 1 and gpus_per_task.is_integer())
    ):
        raise InvalidInput(
            f"--gpus-per-task {gpus_per_task:g} is neither a share of a GPU nor a whole number.",
            hint="Pass 1, or a share such as 0.25 for four groups on one GPU.",
        )


def executor_for(
    *,
    device: tuple[str, ...],
    place: str | None,
    workers: int | None,
    gpus_per_task: float | None,
    threads: int | None,
) -> Distributed | None:
    """Return what runs the groups of studies; None: this process.

    Args:
        device: The devices, one or several.
        place: ``ray``, ``ray:ADDRESS`` or None.
        workers: Groups at a time.
        gpus_per_task: GPUs of a group.
        threads: Threads of each worker.

    Raises:
        MissingExtra: Ray is not installed.
        InvalidInput: A group needs a GPU of this machine, which has none.
    """
    if place is None and len(device) == 1:
        return None
    from remnant.studies.jobs.scheduling import Distributed, Workers

    own: Workers
    if place is None:
        from remnant.integrations.workers.device_workers import DeviceWorkers

        own = DeviceWorkers(device, threads=threads or _share(len(device)))
    else:
        from remnant.integrations.workers.ray_workers import RayWorkers, check_installed

        check_installed()
        address = place.partition(":")[2] or None
        if gpus_per_task and address is None:
            _check_gpus(gpus_per_task)
        own = RayWorkers(
            address,
            count=workers,
            threads=threads or (_share(workers or 1) if workers and address is None else 1),
            gpus=gpus_per_task or 0.0,
        )
    return Distributed(own)


def _check_gpus(per_task: float) -> None:
    """Refuse tasks that need more GPUs than this machine has."""
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if per_task > gpus:
        from remnant.studies.shared.wording import counted

        raise InvalidInput(
            f"--gpus-per-task {per_task:g} is more than this machine has: PyTorch sees "
            f"{counted(gpus, 'GPU')}.",
            hint="Leave it out, or name a cluster with --on ray:HOST:PORT.",
        )


def _share(workers: int) -> int:
    """The threads of each of some workers on this machine."""
    return max(1, (os.cpu_count() or 1) // workers)


@click.command(cls=Command, short_help="Run recipes; resumes interrupted runs.")
@click.argument("recipes", type=click.Path(path_type=Path), nargs=-1, required=True)
@declared.path(
    "--out",
    "-o",
    help="Folder for the record and the report.  [default: runs/NAME OF THE RECIPE]",
)
@declared.path("--data", help="Folder that holds the data sets, and your own files.")
@declared.path(
    "--trust",
    multiple=True,
    help="Python file whose code a recipe may run: your own network or data. May be repeated.",
)
@click.option("--scale", help="Use the recipe's table of this name, such as paper, for a GPU.")
@worker_options
@declared.flag("--dry-run", help="Print members, steps, memory and minutes; train nothing.")
@declared.flag("--compiled", help="Compile convolutional models on a GPU.")
@click.option(
    "--checkpoint-seconds",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds between two checkpoints, at least.",
)
@declared.path(
    "--pool",
    help="Folder of the shadow pool, to share or extend it.  [default: pool in the run's folder]",
)
@click.option(
    "--pool-block",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="Shadow models trained and stored together.",
)
@declared.flag(
    "--reveal",
    help="Let the report of speech-forgetting play three canaries; only its owner can read it.",
)
@declared.flag("--json", "as_json", help="Print the outcome as JSON.")
@amount_options
@gate_options
def run(
    recipes: tuple[Path, ...],
    out: Path | None,
    data: Path | None,
    trust: tuple[Path, ...],
    scale: str | None,
    device: tuple[str, ...],
    place: str | None,
    workers: int | None,
    gpus_per_task: float | None,
    threads: int | None,
    dry_run: bool,
    compiled: bool,
    checkpoint_seconds: float,
    pool: Path | None,
    pool_block: int,
    reveal: bool,
    as_json: bool,
    gate: bool,
    allow_inconclusive: bool,
) -> None:
    """Run RECIPES, TOML files: plan, data, canaries, model, training and attack.

    Run the same command again to resume an interrupted run. A folder that holds another plan or
    other data is refused. The recipe's own files (data.name = "files") are relative to --data, or
    to the recipe's folder without it.

    Several recipes share one report, and each has a folder of its name.

    With --on ray, groups of models are trained on the machines of a Ray cluster; the numbers are
    those of a run here, with as many threads.

    A completed run exits with 0, whatever its outcome, unless --gate is given.

    A recipe may name a function of your own (model.maker, data.maker). Its code runs only with
    --trust FILE, where FILE is the very file that holds it: read it first if it is not yours.

    \b
    Example:
      remnant run recipes/fashion-mnist-inject.toml --data data --dry-run
      remnant run recipes/fashion-mnist-inject.toml --data data --out runs/fashion
      remnant run recipes/factor-*.toml --out runs/factors
      remnant run recipes/fashion-mnist-inject.toml --data data --threads 1 --on ray --workers 2
      remnant run examples/own_network/resnet.toml --trust examples/own_network/networks.py
    """
    from remnant.cli.options.dry_run import print_dry_run
    from remnant.errors import InvalidInput
    from remnant.studies import Execution, read_recipe
    from remnant.studies.own_code import trusted_file
    from remnant.studies.required_extras import check_extras

    check_workers(device=device, place=place, workers=workers, gpus_per_task=gpus_per_task)
    studies, homes = {}, {}
    for recipe in recipes:
        with naming_recipe(recipe, of=len(recipes)):
            studies[recipe.stem] = read_recipe(recipe, scale=scale)
            homes[recipe.stem] = recipe.parent
    if len(studies) < len(recipes):
        raise InvalidInput("Two recipes have the same name.", hint="Run them one by one.")
    if reveal and any(study.QUESTION != "speech-forgetting" for study in studies.values()):
        raise InvalidInput(
            "--reveal applies to recipes with the question speech-forgetting.",
            hint="Leave --reveal out.",
        )
    declared.use_threads(threads)
    device = devices_of(device, place)
    executor = executor_for(
        device=device,
        place=place,
        workers=workers,
        gpus_per_task=gpus_per_task,
        threads=threads,
    )
    execution = Execution(
        device=device[0],
        data_folder=data,
        checkpoint_seconds=checkpoint_seconds,
        compiled=compiled,
        pool_folder=pool,
        pool_block=pool_block,
        executor=None if dry_run else executor,
        reveal=reveal,
        trusted=tuple(map(trusted_file, dict.fromkeys(trust))),
    )
    if trust or not dry_run:
        check_trust(studies, homes, execution)
    if not dry_run:
        folder = out or Path("runs")
        if len(studies) == 1:
            ((name, study),) = studies.items()
            studies, homes = {".": study}, {".": homes[name]}
            folder = out or Path("runs") / name
        run_studies(
            studies,
            folder,
            execution,
            as_json=as_json,
            gate=gate,
            allow_inconclusive=allow_inconclusive,
            recipe_folders=homes,
        )
        return
    check_extras(studies.values())
    print_dry_run(
        dict(zip(recipes, studies.values(), strict=True)), execution, executor, as_json=as_json
    )


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
    seconds: Mapping[str, float] | None = None,
) -> None:
    """Run each study in its folder under ``out``, write ``out/report.html``, print the outcomes.

    The outcome of each of several studies is printed as soon as it is stored. The last line counts
    them, and names the report. Exits with the gates' code where ``gate`` is set; with 0 otherwise.

    Args:
        studies: By folder; ``"."`` is ``out`` itself.
        out: Where the report goes.
        execution: How they are run.
        as_json: Whether the outcome is printed as JSON: the first study's summary, with those of
            the others under ``"runs"``, by folder.
        gate: Whether the exit code is that of the gates' outcome.
        allow_inconclusive: Whether INCONCLUSIVE exits with 0.
        recipe_folders: The folders of the recipes, by folder, where studies have recipes.
        seconds: What each takes on some machine, for the time left; they are then run quickest
            first. Without it they are run in the order given.

    Raises:
        InvalidInput: ``gate`` is set and no study has a limit; nothing is run.
        MissingExtra: A study needs a library that is not installed; nothing is run.
    """
    from remnant.studies.required_extras import check_extras

    questions = [study.to_dict()["question"] for study in studies.values()]
    if gate:
        require_gate(questions)
    check_extras(studies.values())
    workers = execution.executor or nullcontext()
    named = dict(zip(studies, questions, strict=True))
    order = list(studies) if seconds is None else sorted(studies, key=seconds.__getitem__)
    names = [named[folder] if folder == "." else folder for folder in order]
    expected = None if seconds is None else [seconds[folder] for folder in order]
    with resumable():
        with workers, StudiesBar(names, expected) as bar:
            for folder in order:
                bar.begin()
                with naming_recipe(out / folder, of=len(studies)):
                    home = (recipe_folders or {}).get(folder)
                    own = replace(execution, recipe_folder=home)
                    _run(studies[folder], out / folder, own, bar)
                bar.end()
                if len(studies) > 1 and not as_json:
                    _show_outcome(out / folder)
        _finish(list(studies), out, as_json=as_json, gate=gate, allowed=allow_inconclusive)


def _run(study: Study, folder: Path, execution: Execution, bar: StudiesBar) -> None:
    from remnant.studies import run_study

    run_study(study, folder, execution, progress=bar)


def _show_outcome(folder: Path) -> None:
    """Print the outcome of one of several studies as soon as it is stored."""
    from remnant.records import Record
    from remnant.studies.reporting import read_page

    if amount() != "quiet":
        show_now(page_text(read_page(Record.open(folder)), named=True) + "\n")


def _finish(folders: list[str], out: Path, *, as_json: bool, gate: bool, allowed: bool) -> None:
    """Write the report, print the outcomes that are not printed yet, and exit as they say."""
    from remnant.records import Record
    from remnant.report.terminal import counted_outcomes, painted
    from remnant.studies.reporting import read_page, write_report

    report = write_report(out)
    records = {folder: Record.open(out / folder) for folder in folders}
    if as_json:
        first, *others = ((folder, record.summary()) for folder, record in records.items())
        runs = {"runs": dict(others)} if others else {}
        click.echo(json.dumps(first[1] | runs, indent=2))
    else:
        pages = [read_page(record) for record in records.values()]
        if len(pages) == 1 and amount() != "quiet":
            show(page_text(pages[0]) + "\n")
        show(painted(f"{counted_outcomes(pages)}  →  {report}", screen()))
    if gate:
        exit_by_gates(records.values(), allow_inconclusive=allowed)
