"""``remnant run``: carry out a recipe."""

from __future__ import annotations

import json
from pathlib import Path

import click

from remnant.cli.device import device_option


@click.command(short_help="Carry out a recipe; a run that was cut short goes on.")
@click.argument("recipe", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the record and the report.  [default: runs/NAME OF THE RECIPE]",
)
@click.option("--data", type=click.Path(path_type=Path), help="Folder that holds the data sets.")
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
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def run(
    recipe: Path,
    out: Path | None,
    data: Path | None,
    device: str,
    dry_run: bool,
    compiled: bool,
    checkpoint_seconds: float,
    as_json: bool,
) -> None:
    """Carry out RECIPE, a TOML file: plan, data, canaries, model, training and attack.

    The same command again goes on where a killed run stopped. A folder that holds another plan is
    refused.

    It is no gate: a run that ends well exits with 0, whatever its verdict.

    \b
    Example:
      remnant run recipes/fashion-mnist-inject.toml --data data --dry-run
      remnant run recipes/fashion-mnist-inject.toml --data data --out runs/fashion
    """
    from remnant.cli.carry_out import carry_out
    from remnant.studies import Execution, estimate_study, read_recipe

    study = read_recipe(recipe)
    execution = Execution(
        device=device,
        data_folder=data,
        checkpoint_seconds=checkpoint_seconds,
        compiled=compiled,
    )
    if not dry_run:
        folder = out if out is not None else Path("runs") / recipe.stem
        carry_out({".": study}, folder, execution, as_json=as_json)
        return
    found = estimate_study(study, execution)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(f"members  {found['members']}")
    click.echo(f"steps    {found['steps']}")
    click.echo(f"memory   {found['memory_mib']} MiB")
    click.echo(f"minutes  {found['minutes']} (timed on a few steps on {device})")
