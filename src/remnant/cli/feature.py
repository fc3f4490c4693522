"""``remnant feature``: does a model react to a patch more than to patches it never saw?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.cost import announce_images
from remnant.cli.help.command import Command
from remnant.cli.options import declared, out_folder
from remnant.cli.options.classifier_options import (
    network_options,
    normalisation_options,
    numbers_option,
)
from remnant.cli.options.feature_models import ModelOptions, read_inputs, read_shape
from remnant.cli.options.feature_patch import PatchOptions, ReadPatch, other_words, read_patch
from remnant.cli.options.naming import blaming, naming
from remnant.cli.output import amount_options, json_text, print_page
from remnant.cli.terminal import show
from remnant.errors import InvalidInput, RemnantError, require
from remnant.progress import ProgressBar

if TYPE_CHECKING:
    from torch import Tensor

    from remnant.canaries import Patch, Patches
    from remnant.studies.features.audit import PatchAudit
    from remnant.studies.features.audit_inputs import AuditInputs, Classifier, Scores, Settings

CONTROLS = ("uniform", "binary", "shuffled")
OUTPUTS = ("auto", "logits", "probabilities")
AGAINST = ("pixels", "words")
LEAST_CONFIDENCE = 0.9
_PATCH = ("patch", "text", "text_file", "size", "row", "column", "opacity", "ink", "paper")
_OPTIONS = declared.option_names(
    *("nulls", "control", "batch", "confidence", "label", "outputs", "mean", "std")
)
_SCORE = ("nulls", "control", "confidence", "significance", "limit", "batch")


class _Discreet(Command):
    """A command whose error about an extra word does not repeat it: it may be the secret text."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as fault:
            if "unexpected extra argument" not in fault.format_message():
                raise
            raise InvalidInput(
                "there is a word that belongs to no option.",
                hint="Put a text with blanks into quotes, or into a file for --text-file.",
            ) from None


@click.command(
    cls=_Discreet,
    one_of=(("patch", "text", "text_file"),),
    short_help="Test whether a model memorised a patch.",
)
@declared.path("--model", required=True, help="Weights, a program (.pt2) or a Hugging Face folder.")
@declared.path("--twin", help="The same model trained without the patch; scored beside it.")
@network_options
@declared.path("--patch", help="The patch: a .png picture, or an .npy array in [0, 1].")
@click.option("--text", help="Or the text on the patch: capitals, digits, blanks.")
@click.option("--text-file", help="Or a file with this text on one line; - is standard input.")
@declared.number("--size", 5, help="Height of the text, in pixels.")
@numbers_option("--ink", help="Colour of the text: grey level or RGB in [0, 1].  [default: 1]")
@numbers_option("--paper", help="Colour behind the text.  [default: 0]")
@declared.number("--row", 1, help="Row of the patch's top-left pixel, from 0.")
@declared.number("--column", 1, help="Column of the patch's top-left pixel, from 0.")
@declared.number("--opacity", 1.0, help="Opacity of the patch; 1 covers the image.")
@declared.path("--images", required=True, help="Any images: a folder, .npy, .npz, .safetensors.")
@click.option("--shape", callback=read_shape, help="Shape of an image: CHANNELSxHEIGHTxWIDTH.")
@declared.number("--count", 1000, help="Use at most this many images.")
@normalisation_options
@declared.choice("--outputs", OUTPUTS, help="What the model returns.")
@click.option("--label", type=int, help="Class it may be planted under: adds white-box scores.")
@declared.path("--label-images", help="Images of that class, if --images has no labels.")
@declared.path("--task-images", help="With --limit, labelled images, if --images has no labels.")
@declared.number("--nulls", 199, help="Never-planted patches to compare with.")
@declared.choice("--against", AGAINST, help="What these are: its shuffled pixels, or other words.")
@declared.choice("--control", CONTROLS, help="Distribution of the random patches in M.")
@declared.number("--confidence", 0.95, help="Confidence of the intervals.")
@declared.number("--significance", 0.05, help="Significance level of the test.")
@click.option(
    "--limit",
    type=float,
    help="Gate: PASS if nothing is detected, M stays below this many nats, the model learnt its "
    "task, and a copy trained on the patch shows it. Exit code 0 is PASS, 1 FAIL, 3 INCONCLUSIVE.",
)
@declared.flag("--allow-inconclusive", help="With --limit, exit with 0 instead of 3.")
@declared.number("--batch", 256, help="Images per batch.")
@declared.device
@declared.threads(passed_on=False)
@declared.number("--seed", 0, help="Seed of everything that is drawn.")
@declared.path("--out", "-o", help="Folder for a record and a report, which shows the patch.")
@amount_options
@declared.as_json
@click.pass_context
def feature(
    context: click.Context,
    /,
    out: Path | None,
    against: str,
    as_json: bool,
    allow_inconclusive: bool,
    **given: Any,
) -> None:
    """Test whether a model reacts to a patch more than to patches that it never saw.

    The patch, such as a name left on one training image, is put onto other images. The model's
    reaction is ranked among its reactions to patches that were never planted. The text on the
    patch is not printed.

    \b
    Example:
      remnant feature --model net.pt2 --text-file name.txt --images scans --twin twin.pt2
    """
    from remnant.studies.features.audit_inputs import Settings

    patch_options = PatchOptions(against=against, **{name: given.pop(name) for name in _PATCH})
    scored = {name: given.pop(name) for name in _SCORE}
    options = ModelOptions(**given)
    settings = Settings(against=against, label=options.label, seed=options.seed, **scored)
    _check(options, patch_options, settings, out)
    patch = read_patch(patch_options)
    nulls = _nulls(patch, patch_options, settings)
    inputs = read_inputs(options)
    _check_place(patch.patch, inputs.images)
    audit = _audit(inputs, patch, nulls, settings, options.file_names())
    _print(audit, options, out, as_json=as_json)
    if settings.limit is not None:
        from remnant.records import exit_code

        context.exit(exit_code([audit.outcome], allow_inconclusive=allow_inconclusive))


def _print(audit: PatchAudit, options: ModelOptions, out: Path | None, *, as_json: bool) -> None:
    """Print what was measured, after its record is written."""
    from remnant.report.blocks import checks_json
    from remnant.studies.beside.features import of_audit
    from remnant.studies.features.audit import audit_result, feature_audit_result
    from remnant.studies.features.audit_page import unrecorded_page
    from remnant.studies.features.audit_record import write_record

    report = None
    if out is not None:
        report = write_record(
            out, audit, model=options.model, most_images=options.count, device=options.device
        )
    result = feature_audit_result(audit)
    if as_json:
        checks = checks_json(of_audit(result))
        click.echo(json_text(audit_result(audit, report=report), beside=checks))
        return
    print_page(unrecorded_page(result, audit.arrays()))
    if report is not None:
        show(f"report: {report} (it shows the patch)")


def _nulls(patch: ReadPatch, options: PatchOptions, settings: Settings) -> Patches | None:
    """Other words, if the patch is ranked among these."""
    import numpy as np

    if settings.against != "words":
        return None
    return other_words(patch, options, settings.nulls, np.random.default_rng([settings.seed, 1]))


def _audit(
    inputs: AuditInputs,
    named: ReadPatch,
    nulls: Patches | None,
    settings: Settings,
    files: dict[str, str],
) -> PatchAudit:
    """Score the model and the twin, and judge the scores."""
    from remnant.studies.features.audit import feature_audit, images_to_answer, patch_scores

    patch = named.patch
    announce_images(
        inputs.model,
        inputs.images[: settings.batch],
        images_to_answer(inputs, patch, settings),
        "Fewer images (--count) or patches (--nulls) take less; 99 patches can show p = 0.01.",
    )
    with ProgressBar() as bar:

        def scores(option: str, ask: Classifier) -> Scores:
            progress = partial(bar, f"asking {option}")
            with naming(**_OPTIONS):
                return patch_scores(ask, inputs, patch, nulls, settings, progress)

        model, twin = scores("--model", inputs.model), None
        if inputs.twin is not None:
            with blaming("--twin"):
                twin = scores("--twin", inputs.twin)
        with naming(**_OPTIONS):
            progress = partial(bar, "testing the patch's control")
            return feature_audit(
                *(inputs, model, twin, patch, nulls, settings, progress),
                what=named.what,
                files=files,
            )


def _check(
    options: ModelOptions, patch: PatchOptions, settings: Settings, out: Path | None
) -> None:
    """Refuse options that contradict each other, before anything is read."""
    faults = options.faults() + patch.faults() + _faults(settings, options.count)
    if options.task_images is not None and settings.limit is None:
        faults.append("--task-images needs --limit")
    require(faults)
    settings.check()
    out_folder.out_folder(out)
    options.check_extras()


def _faults(settings: Settings, count: int) -> list[str]:
    faults = declared.too_small(
        nulls=(settings.nulls, 19),
        batch=(settings.batch, 1),
        seed=(settings.seed, 0),
        count=(count, 20),
        label=(settings.label, 0),
    )
    faults += declared.not_fraction(
        confidence=settings.confidence, significance=settings.significance
    )
    if settings.limit is None:
        return faults
    return faults + _faults_of_a_gate(settings.limit, settings.confidence)


def _faults_of_a_gate(limit: float, confidence: float) -> list[str]:
    """Faults of a gate that would make a PASS meaningless."""
    from remnant.studies.features.audit import LARGEST_M

    faults = declared.not_positive(limit=limit)
    if limit >= LARGEST_M:
        faults.append(f"--limit {limit:g} is not under {LARGEST_M:.1f} nats, which M cannot exceed")
    if 0 < confidence < LEAST_CONFIDENCE:
        faults.append(
            f"--confidence {confidence:g} is less than {LEAST_CONFIDENCE:g}, the least "
            "that --limit takes"
        )
    return faults


def _check_place(patch: Patch, images: Tensor) -> None:
    try:
        patch.stamp(images[:1])
    except RemnantError as fault:
        fault.hint = (
            "Rows and columns count pixels of the image as the model takes it: move the patch with "
            "--row and --column, or make it smaller or grey."
        )
        raise
