"""``remnant predict``: which samples a model is predicted to memorise, and a list to protect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from remnant.cli.classifier_options import (
    network_options,
    normalisation_options,
    path_option,
)
from remnant.cli.device import device_option
from remnant.cli.naming import naming
from remnant.cli.predict_look import BATCH, TEXT_BATCH, Asked, Look, look
from remnant.cli.terminal import show
from remnant.errors import InvalidInput, NotEnoughEvidence, require

PREDICTORS = ("psmi", "loss", "logit_gap", "mahalanobis")
DATA_SETS = ("digits", "framed-digits", "mnist", "fashion-mnist", "cifar10")


@click.command(short_help="Predict which samples a model will memorise.")
@path_option("--model", help="Weights (.safetensors), a program (.pt2) or a Hugging Face folder.")
@network_options
@path_option("--data", help="The training samples: .npz or .jsonl; a folder with --data-set.")
@click.option("--data-set", type=click.Choice(DATA_SETS), help="A data set that recipes name.")
@normalisation_options
@path_option("--hidden", help="Instead of a model: npy file of hidden states, [n, d].")
@path_option("--labels", help="With --hidden: npy file of labels, [n].")
@path_option("--logits", help="With --hidden: npy file of logits, [n, classes].")
@click.option(
    "--layer",
    "layers",
    multiple=True,
    help="Whose hidden states; may be repeated, the first decides.  [default: last]",
)
@path_option("--start", help="The same model before training: checks whether it is time to look.")
@path_option("--memorised", help="npy file of booleans, the truth: says how good this is.")
@click.option(
    "--by", type=click.Choice(PREDICTORS), default="psmi", show_default=True, help="Predictor."
)
@click.option("--protect", "share", type=float, help="List the riskiest share, such as 0.1.")
@click.option("--top", type=int, help="List the riskiest so many.")
@click.option(
    "--list-small-classes",
    "list_alone",
    is_flag=True,
    help="Put samples that are alone in their class on the list, without a PSMI.",
)
@click.option(
    "--directions", type=int, default=2000, show_default=True, help="Of PSMI's projections."
)
@click.option(
    "--batch", type=int, help=f"Samples at once.  [default: {BATCH}; texts: {TEXT_BATCH}]"
)
@device_option
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the directions.")
@path_option("--out", help="Write one row a sample: .csv or .json.")
@click.option("--force", is_flag=True, help="Overwrite a file that is no prediction of ours.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def predict(
    memorised: Path | None,
    by: str,
    share: float | None,
    top: int | None,
    list_alone: bool,
    directions: int,
    seed: int,
    out: Path | None,
    force: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Predict which training samples a model will memorise, from one look at it.

    The model should be an early checkpoint: one at which the median training loss has dropped by
    95 %. Samples must be as in training (normalisation, tokens), and all of those it is trained on.
    Listed are samples with a PSMI at or under 0, unless --protect or --top says otherwise.

    \b
    Example:
      remnant predict --model early.safetensors --architecture cnn1 --data train.npz --out risks.csv
    """
    import numpy as np

    from remnant.cli.predict_file import check_out, write_out
    from remnant.cli.predict_told import Told, judged, predict_fields, predict_text
    from remnant.measures.predicted import predicted_memorisation

    wanted = Asked(**asked)
    faults = wanted.faults() + _faults(by, share, top, directions, seed, wanted.batch)
    if wanted.model is None and wanted.logits is None and by in ("loss", "logit_gap"):
        faults.append(f"--by {by} takes --logits")
    require(faults)
    if out is not None:
        inputs = (wanted.model, wanted.data, wanted.hidden, wanted.labels, wanted.logits, memorised)
        check_out(out, force=force, inputs=[path for path in inputs if path is not None])
    seen = look(wanted)
    if not list_alone:
        _refuse_alone(seen)
    truth = None if memorised is None else _truth(memorised, len(seen.labels))
    found = []
    for hidden in seen.hidden:
        with naming(hidden="--hidden", labels="--labels", directions="--directions"):
            found.append(
                predicted_memorisation(
                    hidden=hidden,
                    labels=seen.labels,
                    losses=seen.losses,
                    logit_gaps=seen.logit_gaps,
                    directions=directions,
                    list_alone=list_alone,
                    rng=np.random.default_rng(seed),
                )
            )
    with naming(by="--by", share="--protect", top="--top", memorised="--memorised"):
        listed = found[0].protect(share=share, top=top, by=by)
        told = Told(
            look=seen,
            found=tuple(found),
            listed=listed,
            by=by,
            share=share,
            top=top,
            truth=None if truth is None else judged(found[0], listed, truth, by, seed),
        )
    if out is not None:
        write_out(out, told)
    if as_json:
        click.echo(json.dumps(predict_fields(told, out), indent=2, allow_nan=False))
    else:
        show(predict_text(told, out))


def _faults(
    by: str, share: float | None, top: int | None, directions: int, seed: int, batch: int | None
) -> list[str]:
    faults = [
        f"--{name} {value} is less than {least}"
        for name, value, least in (
            ("top", top, 1),
            ("directions", directions, 2),
            ("seed", seed, 0),
            ("batch", batch, 1),
        )
        if value is not None and value < least
    ]
    if share is not None and not 0 < share < 1:
        faults.append(f"--protect {share:g} is not between 0 and 1")
    if share is not None and top is not None:
        faults.append("--protect and --top are both given; it takes one")
    if by != "psmi" and share is None and top is None:
        faults.append(f"--by {by} has no threshold of its own; it takes --protect or --top")
    return faults


def _refuse_alone(seen: Look) -> None:
    """Refuse samples that are alone in their class, unless nothing else is wrong with labels."""
    import numpy as np

    if seen.labels.ndim != 1 or seen.labels.size < 2:
        return
    classes, first, counts = np.unique(seen.labels, return_index=True, return_counts=True)
    alone = np.flatnonzero(counts == 1)
    if 0 < alone.size < classes.size:
        named = ", ".join(f"{seen.name(classes[at])} (sample {first[at]})" for at in alone[:5])
        more = f" and {alone.size - 5} more" if alone.size > 5 else ""
        raise NotEnoughEvidence(
            f"classes with a single sample have no PSMI: {named}{more}.",
            hint="Join classes, or put such samples on the list with --list-small-classes.",
        )


def _truth(path: Path, n: int) -> Any:
    import numpy as np

    from remnant.integrations.classifiers.samples import read_array

    with naming("--memorised", path):
        truth = read_array(path)
    if truth.shape != (n,) or truth.dtype.kind not in "biuf" or not np.isin(truth, [0, 1]).all():
        raise InvalidInput(
            f"--memorised {path} of shape {truth.shape} and type {truth.dtype} is not one boolean "
            f"for each of {n} samples.",
            hint="Such as LiRA's log ratio >= 4, in the order of the samples.",
        )
    return truth.astype(bool)
