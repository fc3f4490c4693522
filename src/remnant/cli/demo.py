"""``remnant demo``: a complete audit on data that is already there."""

from __future__ import annotations

from pathlib import Path

import click

from remnant.cli.help.command import Command
from remnant.cli.options import declared
from remnant.cli.options.exit_codes import gate_options
from remnant.cli.output import amount_options

RECIPES = {
    ".": "digits-inject.toml",
    "one-run": "digits-one-run.toml",
    "exposure": "stdlib-secret.toml",
    "training": "stdlib-training.toml",
    "defences": "stdlib-defences.toml",
    "prediction": "digits-prediction.toml",
    "features": "digits-features.toml",
}
SECONDS = {
    "one-run": 3.2,
    "training": 4.2,
    "features": 5.5,
    "exposure": 6.4,
    "defences": 6.5,
    "prediction": 6.7,
    ".": 15.2,
}
"""What each takes on two cores; the quickest is run first."""


@click.command(
    cls=Command, short_help="A complete audit on data that is already there, in about a minute."
)
@declared.path(
    "--out",
    "-o",
    default=Path("demo"),
    show_default=True,
    help="Folder for the records and the report.",
)
@declared.threads(passed_on=False)
@declared.flag("--json", "as_json", help="Print the outcome as JSON.")
@amount_options
@gate_options
def demo(out: Path, as_json: bool, gate: bool, allow_inconclusive: bool) -> None:
    """Measure how classifiers forget, extract a secret, and predict what is memorised.

    Forgetting is measured with twins and along a single run. A number is planted once, twice and
    four times, and its exposure is measured during training. Three remedies for a planted address
    are compared with doing nothing. Predictions are compared with 48 shadow models. A letter is
    planted on one image of each of 25 models. All results are in one report. The images are
    scikit-learn's digits; the text is Python's standard library, with API keys planted in it.

    \b
    Example:
      remnant demo --out audit && open audit/report.html
    """
    from importlib.resources import files

    from remnant.cli.run import run_studies
    from remnant.studies import Execution, read_recipe

    folder = files("remnant.studies") / "recipes"
    studies = {name: read_recipe(Path(str(folder / recipe))) for name, recipe in RECIPES.items()}
    run_studies(
        studies,
        out,
        Execution(),
        as_json=as_json,
        gate=gate,
        allow_inconclusive=allow_inconclusive,
        seconds=SECONDS,
    )
