"""``remnant feature``: does a model react to a patch more than to patches it never saw?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.classifier_options import (
    network_options,
    normalisation_options,
    numbers_option,
    path_option,
)
from remnant.cli.device import device_option
from remnant.cli.feature_look import AskedModel, look, read_shape
from remnant.cli.feature_patch import AskedPatch, other_words, read_patch
from remnant.cli.progress import ProgressBar
from remnant.cli.terminal import show
from remnant.errors import InvalidInput, RemnantError, require

if TYPE_CHECKING:
    from torch import Tensor

    from remnant.canaries import Patch

CONTROLS = ("uniform", "binary", "shuffled")
OUTPUTS = ("auto", "logits", "probabilities")
AGAINST = ("pixels", "words")
LEAST_CONFIDENCE = 0.9
_PATCH = ("patch", "text", "text_file", "size", "row", "column", "opacity", "ink", "paper")
_SCORE = ("nulls", "control", "confidence", "significance", "limit", "batch")


class _Discreet(click.Command):
    """A command whose complaint about a word too many does not repeat it: it may be the name."""

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


@click.command(cls=_Discreet, short_help="Ask whether a model memorised a patch.")
@path_option("--model", required=True, help="Weights, a program (.pt2) or a Hugging Face folder.")
@path_option("--twin", help="The same trained without the patch; scored beside it.")
@network_options
@path_option("--patch", help="The patch: a .png picture, or an .npy array in [0, 1].")
@click.option("--text", help="Or what is written on it: capitals, figures, blanks.")
@click.option("--text-file", help="Or a file that holds this text in one line; - reads it.")
@click.option("--size", type=int, default=5, show_default=True, help="Height of the text.")
@numbers_option("--ink", help="Of the text: grey level or colour in [0, 1].  [default: 1]")
@numbers_option("--paper", help="Behind the text, likewise.  [default: 0]")
@click.option("--row", type=int, default=1, show_default=True, help="Of its top-left pixel.")
@click.option("--column", type=int, default=1, show_default=True, help="Likewise, from 0.")
@click.option("--opacity", type=float, default=1.0, show_default=True, help="1 hides all below.")
@path_option("--images", required=True, help="Any images: a folder, .npy, .npz, .safetensors.")
@click.option("--shape", callback=read_shape, help="Of an image: CHANNELSxHEIGHTxWIDTH.")
@click.option("--count", type=int, default=1000, show_default=True, help="The most images to ask.")
@normalisation_options
@click.option(
    "--outputs",
    type=click.Choice(OUTPUTS),
    default="auto",
    show_default=True,
    help="What the model returns.",
)
@click.option("--label", type=int, help="Class it may be planted under: adds white-box scores.")
@path_option("--label-images", help="Images of that class, where --images has no labels.")
@path_option("--task-images", help="With --limit, labelled images, where --images has no labels.")
@click.option(
    "--nulls", type=int, default=199, show_default=True, help="Patches that were never planted."
)
@click.option(
    "--against",
    type=click.Choice(AGAINST),
    default="pixels",
    show_default=True,
    help="What those are: its pixels shuffled, or other words.",
)
@click.option(
    "--control",
    type=click.Choice(CONTROLS),
    default="uniform",
    show_default=True,
    help="Law of the random patches in M.",
)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of intervals.")
@click.option(
    "--significance", type=float, default=0.05, show_default=True, help="From which p on it counts."
)
@click.option(
    "--limit",
    type=float,
    help="Judge: PASS if nothing is found, M stays under these nats and the model learnt its "
    "task. Exit 0, 1 FAIL, 3 else.",
)
@click.option(
    "--allow-inconclusive", is_flag=True, help="With --limit, exit with 0 where it is INCONCLUSIVE."
)
@click.option("--batch", type=int, default=256, show_default=True, help="Images at once.")
@device_option
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything drawn.")
@path_option("--out", help="Folder for a record and a report, which shows the patch.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
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
    """Ask whether a model reacts to a patch more than to patches that it never saw.

    The patch, such as a name that was left on one training image, is put onto any images. What the
    model then says is ranked among what it says with patches that were never planted. What is
    written on the patch is not printed.

    \b
    Example:
      remnant feature --model net.pt2 --text-file name.txt --images scans --twin twin.pt2
    """
    from remnant.cli.feature_audit import Settings, feature_audit
    from remnant.cli.feature_told import Told, feature_fields, feature_text

    asked_patch = AskedPatch(against=against, **{name: given.pop(name) for name in _PATCH})
    scored = {name: given.pop(name) for name in _SCORE}
    asked = AskedModel(**given)
    settings = Settings(against=against, label=asked.label, seed=asked.seed, **scored)
    faults = asked.faults() + asked_patch.faults() + _faults(settings, asked.count)
    if asked.task_images is not None and settings.limit is None:
        faults.append("--task-images is for a PASS; it takes --limit")
    require(faults)
    settings.check()
    _check_out(out)
    patch = read_patch(asked_patch)
    nulls = None
    if against == "words":
        import numpy as np

        nulls = other_words(
            patch, asked_patch, settings.nulls, np.random.default_rng([asked.seed, 1])
        )
    found = look(asked)
    _check_place(patch.patch, found.images)
    with ProgressBar() as bar:
        judged = feature_audit(found, patch.patch, nulls, settings, bar)
    files = {"model": asked.model.name, "images": asked.images.name}
    if asked.twin is not None:
        files["twin"] = asked.twin.name
    if asked.task_images is not None:
        files["task_images"] = asked.task_images.name
    told = Told(judged, settings, patch.patch, patch.what, found, files)
    page = None
    if out is not None:
        from remnant.cli.feature_record import write_record

        page = write_record(out, told, asked)
    if as_json:
        click.echo(json.dumps(feature_fields(told, page), indent=2, allow_nan=False))
    else:
        show(feature_text(told, page))
    if settings.limit is not None:
        from remnant.records import exit_code

        context.exit(exit_code([judged.outcome], allow_inconclusive=allow_inconclusive))


def _faults(settings: Any, count: int) -> list[str]:
    faults = [
        f"--{name} {value} is less than {least}"
        for name, value, least in (
            ("nulls", settings.nulls, 19),
            ("batch", settings.batch, 1),
            ("seed", settings.seed, 0),
            ("count", count, 20),
            ("label", settings.label, 0),
        )
        if value is not None and value < least
    ]
    for name in ("confidence", "significance"):
        if not 0 < getattr(settings, name) < 1:
            faults.append(f"--{name} {getattr(settings, name):g} is not between 0 and 1")
    return faults + ([] if settings.limit is None else _faults_of_a_gate(settings))


def _faults_of_a_gate(settings: Any) -> list[str]:
    """What would make a PASS mean nothing."""
    from remnant.cli.feature_audit import LARGEST_M

    faults = []
    if not settings.limit > 0:
        faults.append(f"--limit {settings.limit:g} is not above 0")
    if settings.limit >= LARGEST_M:
        faults.append(
            f"--limit {settings.limit:g} is not under {LARGEST_M:.1f} nats, which M cannot exceed"
        )
    if 0 < settings.confidence < LEAST_CONFIDENCE:
        faults.append(
            f"--confidence {settings.confidence:g} is less than {LEAST_CONFIDENCE:g}, the least "
            "that --limit takes"
        )
    return faults


def _check_out(out: Path | None) -> None:
    if out is None or not out.exists():
        return
    if not out.is_dir() or any(out.iterdir()):
        raise InvalidInput(
            f"--out {out} is there already, and no empty folder.", hint="Name another folder."
        )


def _check_place(patch: Patch, images: Tensor) -> None:
    try:
        patch.stamp(images[:1])
    except RemnantError as fault:
        fault.hint = (
            "Rows and columns count pixels of the image as the model takes it: move the patch with "
            "--row and --column, or make it smaller or grey."
        )
        raise
