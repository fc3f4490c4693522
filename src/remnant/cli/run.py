"""``remnant run``: carry out a recipe."""

from __future__ import annotations

import json
from pathlib import Path

import click

from remnant.cli.device import device_option
from remnant.cli.exit_codes import check_options, gate_options


@click.command(short_help="Carry out recipes; a run that was cut short goes on.")
@click.argument("recipes", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the record and the report.  [default: runs/NAME OF THE RECIPE]",
)
@click.option("--data", type=click.Path(path_type=Path), help="Folder that holds the data sets.")
@click.option("--scale", help="Use the recipe's table of this name, such as paper, for a GPU.")
@device_option
@click.option("--dry-run", is_flag=True, help="Print members, steps, memory and minutes only.")
@click.option("--compiled", is_flag=True, help="Compile convolutional models on a GPU.")
@click.option(
    "--checkpoint-seconds",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Least time between two checkpoints.",
)
@click.option(
    "--pool",
    type=click.Path(path_type=Path),
    help="Folder of the shadow pool, to share or to top up.  [default: pool in the run's folder]",
)
@click.option(
    "--pool-block",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="Shadow models that are trained and stored together.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@gate_options
def run(
    recipes: tuple[Path, ...],
    out: Path | None,
    data: Path | None,
    scale: str | None,
    device: str,
    dry_run: bool,
    compiled: bool,
    checkpoint_seconds: float,
    pool: Path | None,
    pool_block: int,
    as_json: bool,
    gate: bool,
    allow_inconclusive: bool,
) -> None:
    """Carry out RECIPES, TOML files: plan, data, canaries, model, training and attack.

    The same command again goes on where a killed run stopped. A folder that holds another plan is
    refused. Several recipes go into one report, each in a folder of its name.

    A run that ends well exits with 0, whatever its outcome, unless --gate is given.

    \b
    Example:
      remnant run recipes/fashion-mnist-inject.toml --data data --dry-run
      remnant run recipes/fashion-mnist-inject.toml --data data --out runs/fashion
      remnant run recipes/factor-*.toml --out runs/factors
    """
    from remnant.cli.carry_out import carry_out, naming_recipe
    from remnant.errors import InvalidInput
    from remnant.studies import Execution, estimate_study, read_recipe

    check_options(gate=gate, allow_inconclusive=allow_inconclusive)
    studies = {}
    for recipe in recipes:
        with naming_recipe(recipe, of=len(recipes)):
            studies[recipe.stem] = read_recipe(recipe, scale=scale)
    if len(studies) < len(recipes):
        raise InvalidInput("Two recipes have the same name.", hint="Run them one by one.")
    execution = Execution(
        device=device,
        data_folder=data,
        checkpoint_seconds=checkpoint_seconds,
        compiled=compiled,
        pool_folder=pool,
        pool_block=pool_block,
    )
    if not dry_run:
        folder = out or Path("runs")
        if len(studies) == 1:
            ((name, study),) = studies.items()
            studies, folder = {".": study}, out or Path("runs") / name
        carry_out(
            studies,
            folder,
            execution,
            as_json=as_json,
            gate=gate,
            allow_inconclusive=allow_inconclusive,
        )
        return
    found = {}
    for recipe, (name, study) in zip(recipes, studies.items(), strict=True):
        with naming_recipe(recipe, of=len(recipes)):
            found[name] = estimate_study(study, execution)
    if as_json:
        plain = found if len(found) > 1 else next(iter(found.values()))
        click.echo(json.dumps(plain, indent=2))
        return
    for name, one in found.items():
        if len(found) > 1:
            click.echo(name)
        click.echo(f"members  {one['members']}")
        click.echo(f"steps    {one['steps']}")
        click.echo(f"memory   {one['memory_mib']} MiB")
        most = " at most, since models stop early" if one.get("at_most") else ""
        click.echo(f"minutes  {one['minutes']}{most} (timed on a few steps on {device})")
