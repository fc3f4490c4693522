"""``remnant curve``: a forgetting curve from arrays of any framework."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.pages import check_page

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SUCCESSES = ("accuracy", "precision", "tpr", "auc")


@click.command(short_help="Draw a forgetting curve from arrays of any framework.")
@click.option(
    "--seen",
    type=click.Path(path_type=Path),
    required=True,
    help="npy file, [lags, trials, seen canaries]: scores, higher = more likely seen.",
)
@click.option(
    "--unseen",
    type=click.Path(path_type=Path),
    required=True,
    help="npy file, [lags, trials, unseen canaries].",
)
@click.option(
    "--lags", type=click.Path(path_type=Path), required=True, help="npy file, [lags]: steps."
)
@click.option("--success", type=click.Choice(SUCCESSES), default="precision", show_default=True)
@click.option("--fpr", type=float, default=0.1, show_default=True, help="False-positive rate.")
@click.option("--confidence", type=float, default=0.95, show_default=True)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the bootstrap."
)
@click.option("--out", type=click.Path(path_type=Path), help="Also write the picture as HTML.")
@click.option("--force", is_flag=True, help="Overwrite a file that is no page of ours.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
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
    """Draw attack success against lag, with intervals. Two axes in an array mean one trial.

    \b
    Example:
      remnant curve --seen seen.npy --unseen unseen.npy --lags lags.npy --out curve.html
    """
    import numpy as np

    from remnant.errors import InvalidInput
    from remnant.measures import forgetting_curve
    from remnant.report import curve_text, write_curve_page
    from remnant.studies.forgetting_results import curve_fields

    if out is not None and out.resolve() in {p.resolve() for p in (seen, unseen, lags)}:
        raise InvalidInput(f"--out {out} is one of the inputs.", hint="Choose another file.")
    if out is not None:
        check_page(out, force=force)
    found = curve_fields(
        forgetting_curve(
            seen_scores=_trials(_read(seen)),
            unseen_scores=_trials(_read(unseen)),
            lags=_read(lags),
            success=success,  # type: ignore[arg-type]
            fpr=fpr,
            confidence=confidence,
            rng=np.random.default_rng(seed),
        )
    )
    if out is not None:
        write_curve_page(found, out)
    click.echo(json.dumps(found, indent=2) if as_json else curve_text(found))


def _read(path: Path) -> NDArray[Any]:
    from tokenize import TokenError

    import numpy as np

    from remnant.errors import InvalidInput

    try:
        found = np.load(path, allow_pickle=False)
    except FileNotFoundError as fault:
        raise InvalidInput(f"{path} is not there.", hint="Check its path.") from fault
    except (OSError, ValueError, EOFError, MemoryError, SyntaxError, TokenError) as fault:
        raise InvalidInput(
            f"{path} is not a plain npy file.", hint="Write it with numpy.save."
        ) from fault
    if not isinstance(found, np.ndarray):
        raise InvalidInput(f"{path} holds several arrays.", hint="Write one with numpy.save.")
    if found.dtype.kind == "c":
        raise InvalidInput(f"{path} holds complex numbers.", hint="Save real scores.")
    return found


def _trials(scores: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    return scores[:, None] if scores.ndim == 2 else scores
