"""``remnant demo``: a complete audit on data that is already there."""

from __future__ import annotations

from pathlib import Path

import click

from remnant.cli.exit_codes import check_options, gate_options

RECIPES = {
    ".": "digits-inject.toml",
    "one-run": "digits-one-run.toml",
    "exposure": "stdlib-secret.toml",
    "training": "stdlib-training.toml",
    "prediction": "digits-prediction.toml",
    "features": "digits-features.toml",
}


@click.command(short_help="A complete audit on data that is already there, in about a minute.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder for the record and the report.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@gate_options
def demo(out: Path, as_json: bool, gate: bool, allow_inconclusive: bool) -> None:
    """Measure how classifiers forget, extract a secret, and predict what is memorised.

    Forgetting is measured twice, with twins and along a single run; a number is planted once, twice
    and four times, and watched while models learn it; prediction is held against 48 shadow models;
    a letter is planted on one image of each of 25 models; all go into one report. The digits are
    scikit-learn's; the text is Python's own standard library, with API keys planted in it.

    \b
    Example:
      remnant demo --out audit && open audit/report.html
    """
    check_options(gate=gate, allow_inconclusive=allow_inconclusive)
    from importlib.resources import files

    from remnant.cli.carry_out import carry_out
    from remnant.studies import Execution, read_recipe

    folder = files("remnant.studies") / "recipes"
    studies = {name: read_recipe(Path(str(folder / recipe))) for name, recipe in RECIPES.items()}
    carry_out(
        studies,
        out,
        Execution(),
        as_json=as_json,
        gate=gate,
        allow_inconclusive=allow_inconclusive,
    )
