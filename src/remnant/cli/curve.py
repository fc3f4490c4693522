"""``remnant curve``: a forgetting curve from arrays of any framework."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.help.command import Command
from remnant.cli.options import declared, out_folder
from remnant.cli.options.out_files import check_inputs, check_report
from remnant.cli.output import amount_options, command_page, print_page

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SUCCESSES = ("accuracy", "precision", "tpr", "auc")
HOLDS = {  # what the file of each option holds
    "--seen": "scores, [lags, trials, canaries]",
    "--unseen": "scores, [lags, trials, canaries]",
    "--lags": "the steps since last use, one number per lag",
}


@click.command(cls=Command, short_help="Draw a forgetting curve from arrays of any framework.")
@declared.path(
    "--seen",
    required=True,
    help="npy file, [lags, trials, seen canaries]: scores, higher = more likely seen.",
)
@declared.path("--unseen", required=True, help="npy file, [lags, trials, unseen canaries]: scores.")
@declared.path("--lags", required=True, help="npy file, [lags]: steps since last use.")
@click.option(
    "--success",
    type=click.Choice(SUCCESSES),
    default="precision",
    show_default=True,
    help="How attack success is measured.",
)
@declared.number("--fpr", 0.1, help="False-positive rate of the attack.")
@declared.number("--confidence", 0.95, help="Confidence of the intervals.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the bootstrap.",
)
@declared.path("--out", "-o", help="New folder for a record and a report, or an .html file.")
@declared.flag("--force", help="Overwrite a file that is not a report.")
@amount_options
@declared.as_json
def curve(
    seen: Path,
    unseen: Path,
    lags: Path,
    success: str,
    fpr: float,
    confidence: float,
    seed: int,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Draw attack success against lag, with intervals. An array with two axes is one trial.

    \b
    Example:
      remnant curve --seen seen.npy --unseen unseen.npy --lags lags.npy --out curve.html
    """
    import numpy as np

    from remnant.measures import forgetting_curve
    from remnant.records.typed import plain
    from remnant.report import html
    from remnant.studies.command_record import array_digests
    from remnant.studies.forgetting.curve_page import QUESTION, recorded
    from remnant.studies.shared.curve_blocks import curve_page
    from remnant.studies.shared.measured_curves import curve_result

    record_folder = out_folder.out_folder(out, files=(".html",))
    if out is not None and record_folder is None:
        check_inputs(out, (seen, unseen, lags))
        check_report(out, force=force)
    arrays = {
        "seen": _trials(_read("--seen", seen)),
        "unseen": _trials(_read("--unseen", unseen)),
        "lags": _read("--lags", lags),
    }
    result = curve_result(
        forgetting_curve(
            seen_scores=arrays["seen"],
            unseen_scores=arrays["unseen"],
            lags=arrays["lags"],
            success=success,  # type: ignore[arg-type]
            fpr=fpr,
            confidence=confidence,
            rng=np.random.default_rng(seed),
        )
    )
    page = command_page(f"{result.shown().label} against lag", curve_page(result))
    if out is not None and record_folder is None:
        html.write_page(out, html.render([page]))
    if as_json:
        click.echo(json.dumps(plain(result), indent=2))
    else:
        print_page(page)
    out_folder.write_out(
        record_folder,
        as_json=as_json,
        question=QUESTION,
        plan={
            "data": {"seen": str(seen), "unseen": str(unseen), "lags": str(lags)},
            "settings": {"success": success, "fpr": fpr, "confidence": confidence, "seed": seed},
        },
        result=recorded(result),
        arrays=arrays,
        data=array_digests(**arrays),
        seeds={"bootstrap": seed},
    )


def _read(option: str, path: Path) -> NDArray[Any]:
    from remnant.cli.options.arrays import read_npy

    return read_npy(option, path, holds=HOLDS[option])


def _trials(scores: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    return scores[:, None] if scores.ndim == 2 else scores
