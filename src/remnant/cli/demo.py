"""``remnant demo``: a complete audit on data that is already there."""

from __future__ import annotations

from pathlib import Path

import click

DEMO_RECIPE = "digits-inject.toml"


@click.command(short_help="A complete audit on scikit-learn's digits, in under a minute.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder for the record and the report.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def demo(out: Path, as_json: bool) -> None:
    """Train classifiers that saw canaries once, watch them forget, and write a report.

    \b
    Example:
      remnant demo --out audit && open audit/report.html
    """
    from importlib.resources import files

    from remnant.cli.carry_out import carry_out
    from remnant.studies import Execution, read_recipe

    recipe = files("remnant.studies") / "recipes" / DEMO_RECIPE
    carry_out(read_recipe(Path(str(recipe))), out, Execution(), as_json=as_json)
