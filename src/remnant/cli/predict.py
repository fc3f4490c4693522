"""``remnant predict``: which samples a model will memorise, and a list of those to protect."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.cost import announce_repeated
from remnant.cli.help.command import Command
from remnant.cli.options import declared, out_folder
from remnant.cli.options.classifier_options import network_options, normalisation_options
from remnant.cli.options.naming import naming
from remnant.cli.options.out_files import check_inputs, check_old_file, check_place, write_whole
from remnant.cli.options.predict_inputs import BATCH, TEXT_BATCH, InputOptions, read_answers
from remnant.cli.output import amount_options, command_page, print_json, print_page
from remnant.cli.terminal import one_line, show
from remnant.errors import InvalidInput, NotEnoughEvidence, require

if TYPE_CHECKING:
    from remnant.studies.prediction.early_measure import EarlyPrediction, SampleAnswers

_TIMED = 50  # projections on which PSMI is timed
DATA_SETS = ("digits", "framed-digits", "mnist", "fashion-mnist", "cifar10")
FIRST = "index,label,predicted,loss,logit_gap,psmi"


@click.command(cls=Command, short_help="Predict which samples a model will memorise.")
@declared.path("--model", help="Weights (.safetensors), a program (.pt2) or a Hugging Face folder.")
@network_options
@declared.path("--data", help="Training samples: .npz or .jsonl; a folder with --data-set.")
@click.option("--data-set", type=click.Choice(DATA_SETS), help="A data set that recipes name.")
@normalisation_options
@declared.path("--hidden", help="Instead of a model: npy file of hidden states, [n, d].")
@declared.path("--labels", help="With --hidden: npy file of labels, [n].")
@declared.path("--logits", help="With --hidden: npy file of logits, [n, classes].")
@click.option(
    "--layer",
    "layers",
    multiple=True,
    help="Layer of the hidden states. May be repeated; the list is made from the first.  "
    "[default: last]",
)
@declared.path("--start", help="The model before training: checks whether the loss has dropped.")
@declared.path("--memorised", help="npy file of booleans, the truth: evaluates the prediction.")
@declared.choice(
    "--by",
    declared.NamesIn("remnant.measures.prediction.predicted:PREDICTORS"),
    help="Predictor that orders the samples.",
    default="psmi",
)
@click.option("--protect", "share", type=float, help="List this share of samples, the riskiest.")
@click.option("--top", type=int, help="List this many samples, the riskiest.")
@declared.flag(
    "--list-small-classes",
    "list_alone",
    help="Also list samples that are alone in their class, which have no PSMI.",
)
@declared.number("--directions", 2000, help="Random projections of PSMI.")
@click.option(
    "--batch", type=int, help=f"Samples per batch.  [default: {BATCH}; texts: {TEXT_BATCH}]"
)
@declared.device
@declared.threads(passed_on=False)
@declared.number("--seed", 0, help="Seed of the directions.")
@declared.path(
    "--out",
    "-o",
    help="New folder for a record, a report and samples.csv, or a .csv or .json file: one row per "
    "sample.",
)
@declared.flag("--force", help="Overwrite a file that is not a prediction.")
@amount_options
@declared.as_json
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
    **given: Any,
) -> None:
    """Predict which training samples a model will memorise, from one early checkpoint.

    Use the checkpoint at which the median training loss has dropped by 95 %. Pass all training
    samples, prepared as in training (normalisation, tokens). Samples with a PSMI of 0 or less are
    listed, unless --protect or --top is given.

    \b
    Example:
      remnant predict --model early.safetensors --architecture cnn1 --data train.npz --out risks.csv
    """
    from remnant.studies.command_record import array_digests
    from remnant.studies.prediction import early_measure
    from remnant.studies.prediction.early_page import TITLE, early_blocks
    from remnant.studies.prediction.early_result import QUESTION, SAMPLES_FILE, recorded

    options = InputOptions(**given)
    faults = options.faults() + _faults(by, share, top, directions, seed, options.batch)
    if options.model is None and options.logits is None and by in ("loss", "logit_gap"):
        faults.append(f"--by {by} needs --logits")
    require(faults)
    record_folder = out_folder.out_folder(out, files=(".csv", ".json"))
    if out is not None and record_folder is None:
        inputs = (*options.inputs(), *([] if memorised is None else [memorised]))
        check_out(out, force=force, inputs=inputs)
    answers = read_answers(options)
    if not list_alone:
        _refuse_alone(answers)
    truth = None if memorised is None else _truth(memorised, len(answers.labels))
    few = min(directions, _TIMED)
    announce_repeated(
        f"PSMI with {directions} random projections",
        lambda: early_measure.layer_predictions(
            answers, directions=few, list_alone=list_alone, seed=seed
        ),
        times=directions / few,
        cheaper="Fewer --directions take less.",
    )
    with naming(hidden="--hidden", labels="--labels", directions="--directions"):
        layers = early_measure.layer_predictions(
            answers, directions=directions, list_alone=list_alone, seed=seed
        )
    rule = early_measure.ListRule(by=by, share=share, top=top)
    with naming(by="--by", share="--protect", top="--top", memorised="--memorised"):
        early = early_measure.early_prediction(answers, layers, rule, truth, seed=seed)
    if out is not None and record_folder is None:
        write_out(out, early)
    result = early_measure.early_result(early, out=out)
    if as_json:
        print_json(result)
    else:
        print_page(command_page(TITLE, early_blocks(result)))
        if out is not None and record_folder is None:
            show(f"written: {one_line(str(out))} (only its owner can read it)")
    if record_folder is None:
        return
    out_folder.write_out(
        record_folder,
        as_json=as_json,
        private=True,
        question=QUESTION,
        plan={
            **_named_inputs(options),
            "settings": {
                "by": by,
                "protect": share,
                "top": top,
                "list_small_classes": list_alone,
                "directions": directions,
                "layers": list(options.layers),
                "seed": seed,
            },
        },
        result=recorded(result),
        files={SAMPLES_FILE: csv_text(early)},
        data=array_digests(labels=answers.labels, hidden=answers.hidden[0]),
        device=options.device,
        seeds={"directions": seed},
    )


def _named_inputs(options: InputOptions) -> dict[str, Any]:
    """What the plan of a record says about the model and the samples."""
    if options.model is None:
        arrays = {"hidden": options.hidden, "labels": options.labels, "logits": options.logits}
        return {"data": {name: str(path) for name, path in arrays.items() if path is not None}}
    return {
        "model": {
            **out_folder.models(options.model, start=options.start),
            "architecture": options.architecture,
        },
        "data": {
            "samples": None if options.data is None else str(options.data),
            "data_set": options.data_set,
        },
    }


def _faults(
    by: str, share: float | None, top: int | None, directions: int, seed: int, batch: int | None
) -> list[str]:
    faults = declared.too_small(
        top=(top, 1), directions=(directions, 2), seed=(seed, 0), batch=(batch, 1)
    )
    faults += declared.not_fraction(protect=share)
    if share is not None and top is not None:
        faults.append("--protect and --top are both given; pass one of them")
    if by != "psmi" and share is None and top is None:
        faults.append(f"--by {by} has no threshold of its own; it needs --protect or --top")
    return faults


def _refuse_alone(answers: SampleAnswers) -> None:
    """Refuse samples that are alone in their class; other faults of labels are found later."""
    import numpy as np

    if answers.labels.ndim != 1 or answers.labels.size < 2:
        return
    classes, first, counts = np.unique(answers.labels, return_index=True, return_counts=True)
    alone = np.flatnonzero(counts == 1)
    if 0 < alone.size < classes.size:
        named = ", ".join(f"{answers.name(classes[at])} (sample {first[at]})" for at in alone[:5])
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


def check_out(path: Path, *, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse an output file that cannot or should not be written, before anything is computed.

    Raises:
        InvalidInput: It is neither CSV nor JSON, it is an input, its folder does not exist, or
            another file exists and ``force`` is not set.
    """
    if path.suffix not in (".csv", ".json"):
        raise InvalidInput(f"--out {path} is neither a .csv nor a .json file.")
    check_place("--out", path)
    check_inputs(path, inputs)
    check_old_file(path, _is_prediction, kind="prediction", force=force)


def _is_prediction(old: bytes) -> bool:
    return old.startswith(FIRST.encode()) or b'"remnant": "predict"' in old[:256]


def write_out(path: Path, early: EarlyPrediction) -> None:
    """Write the rows, the whole file or nothing; only its owner can read it.

    Raises:
        InvalidInput: It cannot be written.
    """
    from remnant.records.typed import plain
    from remnant.studies.prediction.early_measure import early_result, sample_rows

    if path.suffix == ".csv":
        written = csv_text(early)
    else:
        rows = sample_rows(early)
        fields = {"remnant": "predict", **plain(early_result(early, out=path)), "samples": rows}
        written = json.dumps(fields, indent=1, allow_nan=False) + "\n"
    write_whole("--out", path, written)


def csv_text(early: EarlyPrediction) -> str:
    """Return the rows as CSV."""
    from remnant.studies.prediction.early_measure import sample_rows

    rows = sample_rows(early)
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(rows[0])
    table.writerows([_cell(value) for value in row.values()] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return format(value, ".6g") if isinstance(value, float) else value
