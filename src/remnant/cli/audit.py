"""``remnant audit``: training records against held-out ones, in a finished model."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from remnant.cli.help.command import Command
from remnant.cli.options import declared, out_folder
from remnant.cli.options.classifier_options import (
    naming_classifier,
    network_options,
    normalisation_options,
    refuse_unused,
)
from remnant.cli.options.feature_models import read_shape
from remnant.cli.options.models import bases, naming_model, placed, refuse_the_same
from remnant.cli.options.naming import naming
from remnant.cli.options.out_files import check_inputs, check_place, write_whole
from remnant.cli.output import amount_options, command_page, print_json, print_page
from remnant.cli.terminal import one_line, show
from remnant.errors import InvalidInput, require
from remnant.progress import ProgressBar

if TYPE_CHECKING:
    import numpy as np

    from remnant.integrations.membership.outcome import MembershipAudit
    from remnant.progress import ProgressBar

INCONCLUSIVE = 3
SUCCESSES = ("auc", "tpr", "precision", "accuracy")
Kind = Literal["language model", "text classifier", "image classifier"]
_FILES = (".safetensors", ".pt2", ".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".onnx")
_ENDINGS: dict[str, Kind] = {
    "ForSequenceClassification": "text classifier",
    "ForImageClassification": "image classifier",
}
_NAMES = declared.option_names(
    *("attack", "success", "fpr", "confidence", "limit", "samples", "probability", "field"),
    *("seen", "unseen", "control", "base", "device", "label_field", "shape", "mean", "std"),
    *("architecture", "maker"),
) | {"reference_model": "--reference-model", "model_dir": "--model"}
_OF_NETWORKS = ("architecture", "options", "maker", "mean", "std", "shape")


@click.command(
    cls=Command,
    one_of=(("model", "checkpoints"),),
    short_help="Compare a model's training records with held-out ones.",
)
@declared.path(
    "--model",
    help="Folder of a Hugging Face model, a PEFT adapter or a Remnant checkpoint; weights "
    "(.safetensors) or a program (.pt2) of an image classifier.",
)
@declared.base
@declared.path(
    "--seen",
    required=True,
    help="Records that the model was trained on: JSON lines, CSV, or a text file of one per line; "
    "images: a folder with one folder per class, or .npz.",
)
@declared.path(
    "--unseen", required=True, help="Records from the same source that it was not trained on."
)
@click.option(
    "--field",
    help="Field of the text.  [default: text, prompt and completion joined, or messages]",
)
@click.option("--label-field", help="Field of the label, for classifiers.  [default: label]")
@network_options
@normalisation_options
@click.option(
    "--shape",
    callback=read_shape,
    help="Shape of images, such as 3x224x224.  [default: the model's, or theirs]",
)
@click.option(
    "--checkpoints",
    help="Instead of --model: a pattern of folders, such as 'run/checkpoint-*', whose names end in "
    "the number of updates. Draws how fast the training forgot.",
)
@declared.path(
    "--ledger",
    help="With --checkpoints: CSV or JSON lines with step (of the update, from 0), row (of --seen, "
    "from 1) and count (optional).",
)
@click.option(
    "--group",
    help="Field that says which rows belong together, as those of one document: one row of each "
    "group is used.",
)
@declared.path(
    "--reference-model",
    help="Folder of a model that saw none of the records, such as the one that the training "
    "started from. A PASS needs one.  [default: the base of an adapter]",
)
@click.option(
    "--attack",
    type=declared.NamesIn("remnant.measures.membership.attacks:NAMES"),
    help="Attack that is judged; all of the kind of model are measured.  [default: ratio with a "
    "reference model, else loss]",
)
@click.option(
    "--limit",
    type=float,
    help="Gate: the attack's success must stay at or below this. Exit code 0 is PASS, 1 FAIL, 3 "
    "INCONCLUSIVE.",
)
@declared.choice("--success", SUCCESSES, help="Success that --limit applies to.")
@declared.number("--fpr", 0.1, help="False-positive rate of tpr and precision.")
@declared.number("--confidence", 0.95, help="Confidence of intervals and bounds.")
@declared.path(
    "--control",
    help="Records that the model is known to remember, as the positive control.  [default: train "
    "a copy of the model on a few unseen records]",
)
@declared.number("--samples", 1000, help="Samples that may give a part of a record back.")
@declared.number("--probability", 0.5, help="Probability with which they have to.")
@declared.device
@declared.threads(passed_on=False)
@declared.device_map
@declared.precision
@declared.number("--seed", 0, help="Seed of resamples, folds and the control.")
@declared.path(
    "--out",
    "-o",
    help="New folder for a record and a report, or a .csv file for the risk of each record.",
)
@declared.flag("--allow-inconclusive", help="Exit with 0 instead of 3.")
@amount_options
@declared.as_json
def audit(
    model: Path | None,
    checkpoints: str | None,
    ledger: Path | None,
    base: Path | None,
    seen: Path,
    unseen: Path,
    reference_model: Path | None,
    control: Path | None,
    seed: int,
    out: Path | None,
    allow_inconclusive: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Measure whether a model's training records can be distinguished from held-out ones.

    Both files must come from the same source: records are drawn at random, some are trained on, the
    others are not. A classifier that sees only the records checks this. Every record goes through
    the model once, and once through the reference model. Without --limit the result is a finding,
    and the exit code is 0, or 3 if the audit is void.

    With --checkpoints and --ledger instead of --model, every record is scored at every checkpoint,
    and the result is a forgetting curve: attack success against updates since the last use.

    \b
    Example:
      remnant audit --model tuned --reference-model base --seen train.jsonl --unseen heldout.jsonl
    """
    import numpy as np

    from remnant.studies.beside.membership import beside
    from remnant.studies.membership.page import TITLE, page

    require(
        declared.too_small(samples=(given["samples"], 1), seed=(seed, 0))
        + declared.not_fraction(
            fpr=given["fpr"], confidence=given["confidence"], probability=given["probability"]
        )
        + declared.not_positive(limit=given["limit"])
    )
    if seen.resolve() == unseen.resolve():
        raise InvalidInput(
            "--seen and --unseen are the same file.", hint="Pass records that were held out."
        )
    if model is None or checkpoints is not None or ledger is not None:
        from remnant.cli.audit_checkpoints import audit_checkpoints, need_one_kind

        pattern, uses = need_one_kind(model, checkpoints, ledger)
        paths = {"seen": seen, "unseen": unseen, "reference_model": reference_model, "base": base}
        code = audit_checkpoints(
            pattern, uses, paths, {**given, "control": control}, seed=seed, out=out, as_json=as_json
        )
        sys.exit(0 if code == INCONCLUSIVE and allow_inconclusive else code)
    folder = out_folder.out_folder(out, files=(".csv",))
    if out is not None and folder is None:
        check_inputs(out, tuple(path for path in (seen, unseen, control) if path is not None))
        check_place("--out", out)

    with ProgressBar() as bar:
        ended = audit_model(
            model,
            seen=seen,
            unseen=unseen,
            reference_model=reference_model,
            base=base,
            control=control,
            rng=np.random.default_rng(seed),
            progress=bar,
            given=given,
        )
    if as_json:
        print_json(ended.result, checks=beside(ended.result))
    else:
        print_page(command_page(TITLE, page(ended.result)))
    if folder is not None:
        paths = {"base": base, "reference_model": reference_model, "seen": seen, "unseen": unseen}
        _write_record(folder, ended, model, paths, seed, given, as_json)
    elif out is not None:
        write_whole("--out", out, risks_csv(ended))
        show(f"written: {one_line(str(out))}", err=as_json)
    if ended.exit_code and not (ended.outcome == "INCONCLUSIVE" and allow_inconclusive):
        sys.exit(ended.exit_code)


def _write_record(
    folder: Path,
    ended: MembershipAudit,
    model: Path,
    paths: dict[str, Path | None],
    seed: int,
    given: dict[str, Any],
    as_json: bool,
) -> None:
    from remnant.studies.command_record import write_command_record

    settings = {name: value for name, value in given.items() if value not in (None, {})}
    settings.pop("device")
    beside = paths["reference_model"] or _base_of(model, paths["base"])
    reference = {} if beside is None else {"reference": str(beside)}
    arrays: dict[str, Any] = {
        f"{side}_{name}": scores
        for side, by_attack in zip(("seen", "unseen"), ended.scores, strict=True)
        for name, scores in by_attack.items()
    }
    arrays |= {"seen_rows": ended.places[0], "unseen_rows": ended.places[1]}
    if ended.verbatim is not None:
        arrays["seen_verbatim"] = ended.verbatim
    report = write_command_record(
        folder,
        question="membership-audit",
        plan={
            "model": {"folder": str(model), **reference},
            "data": {"seen": str(paths["seen"]), "unseen": str(paths["unseen"])},
            "settings": {**settings, "seed": seed},
        },
        result=ended.result,
        arrays=arrays,
        device=given["device"],
        seeds={"audit": seed},
        private=True,
    )
    write_whole("--out", folder / "risks.csv", risks_csv(ended))
    out_folder.show_written(report, private=True, err=as_json)


def _base_of(model: Path, base: Path | None) -> Path | None:
    """The base of an adapter, which is its reference model; None for a whole model."""
    from remnant.integrations.adapter_folder import is_adapter, model_parts

    return model_parts(model, base=base).model if is_adapter(model) else None


def risks_csv(ended: MembershipAudit) -> str:
    """The risk of each seen record as CSV: its row, its scores, and held-out records above it."""
    above = ended.shares_above
    columns = ended.scores[0]
    named = [ended.attack, *(name for name in columns if name != ended.attack)]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    verbatim = ["verbatim"] if ended.verbatim is not None else []
    writer.writerow(["row", "share_of_unseen_above", *named, *verbatim])
    for i, row in enumerate(ended.places[0].tolist()):
        numbers = [f"{float(columns[name][i]):.9g}" for name in named]
        comes_out = [] if ended.verbatim is None else [int(ended.verbatim[i])]
        writer.writerow([row, f"{float(above[row - 1]):.9g}", *numbers, *comes_out])
    return file.getvalue()


def model_kind(path: Path) -> Kind:
    """Return the kind of a model, by its file or by what its folder says.

    Raises:
        InvalidInput: It is a file of another kind, or its configuration cannot be read.
    """
    if path.is_file() and path.suffix not in _FILES:
        raise InvalidInput(
            f"--model {path} is not a model.",
            hint="Pass a folder that save_pretrained wrote, weights (.safetensors) or a program "
            "(.pt2).",
        )
    if path.is_file() or (not path.exists() and path.suffix in _FILES):
        return "image classifier"
    config = path / "config.json"
    if config.is_file() and not (path / "remnant.json").is_file():
        from remnant.integrations.folder_checks import read_object

        names = read_object(config).get("architectures")
        for name in names if isinstance(names, list) else []:
            for ending, kind in _ENDINGS.items():
                if str(name).endswith(ending):
                    return kind
    return "language model"


def audit_model(
    model: Path,
    *,
    seen: Path,
    unseen: Path,
    reference_model: Path | None,
    base: Path | None,
    control: Path | None,
    rng: np.random.Generator,
    progress: ProgressBar,
    given: dict[str, Any],
) -> MembershipAudit:
    """Audit a model of any kind.

    Args:
        model: Folder or file.
        seen, unseen, control: Records.
        reference_model, base: Folders or files.
        rng, progress: See ``audit_texts``.
        given: The other options by name; those of other kinds of models must not be given.

    Raises:
        RemnantError: Anything that the user can fix; errors name options.
    """
    kind = model_kind(model)
    others = () if reference_model is None else (reference_model,)
    refuse_the_same(model, others)
    settings = {name: given[name] for name in ("attack", "limit", "success", "fpr", "confidence")}
    settings |= {"control": control, "device": given["device"], "rng": rng, "progress": progress}
    paths: dict[str, Any] = {"seen": seen, "unseen": unseen, "reference_model": reference_model}
    of_networks = {name: given[name] for name in _OF_NETWORKS}
    if kind != "language model":
        unused = {name: given[name] for name in ("group", "device_map", "precision")}
        refuse_unused(f"a {kind}", base=base, **unused)
    if kind == "image classifier":
        from remnant.integrations.membership.images import Network, audit_images

        refuse_unused("images", field=given["field"], label_field=given["label_field"])
        require(_network_faults(of_networks))
        with (
            naming("--seen", seen),
            naming("--unseen", unseen),
            naming_classifier("--model", model),
            naming(**_NAMES),
        ):
            return audit_images(model, **paths, network=Network(**of_networks), **settings)
    refuse_unused("texts", **of_networks)
    if kind == "text classifier":
        from remnant.integrations.membership.labelled_texts import audit_text_classifier

        label = given["label_field"] or "label"
        bases(None, model, *others)
        with naming_model("--model", model), naming(**_NAMES):
            return audit_text_classifier(
                model, **paths, field=given["field"], label_field=label, **settings
            )
    from remnant.cli.cost import announce_passes
    from remnant.integrations.membership.texts import audit_texts

    refuse_unused("a language model", label_field=given["label_field"])
    settings |= {name: given[name] for name in ("samples", "probability", "field", "group")}
    based = bases(base, model, *others)
    placement = placed(given["device"], given["device_map"], given["precision"])
    with naming_model("--model", model), naming(**_NAMES):
        return audit_texts(
            model,
            **paths,
            base=based[model],
            announce=announce_passes,
            placement=placement,
            **settings,
        )


def _network_faults(options: dict[str, Any]) -> list[str]:
    faults = []
    if (options["mean"] is None) != (options["std"] is None):
        faults.append("--mean and --std belong together")
    if options["architecture"] is not None and options["maker"] is not None:
        faults.append("--architecture and --maker are both given; pass one of them")
    return faults
