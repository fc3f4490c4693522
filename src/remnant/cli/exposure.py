"""``remnant exposure``: how exposed canaries are in a model."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remnant.cli.canary_sets import read_sets, sets_to_measure
from remnant.cli.device import device_option
from remnant.cli.models import naming_model, refuse_the_same
from remnant.cli.naming import naming
from remnant.cli.progress import ProgressBar
from remnant.cli.redaction import withheld
from remnant.cli.terminal import show
from remnant.errors import InvalidInput, NotEnoughEvidence, require

if TYPE_CHECKING:
    from remnant.canaries import CanarySet

METHODS = ("auto", "exact", "sampled")
OPTIONS = {
    name: f"--{name.replace('_', '-')}"
    for name in ("method", "references", "max_nodes", "max_seconds", "memory")
}


@click.command(short_help="Measure how exposed canaries are in a model.")
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder of a checkpoint of ours, or of Hugging Face's.",
)
@click.option(
    "--canaries", "file", type=click.Path(path_type=Path), required=True, help="Their file."
)
@click.option(
    "--set",
    "only",
    type=int,
    multiple=True,
    help="Only this set; repeatable.  [default: the model's own]",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="auto",
    show_default=True,
    help="Rank among all secrets, or among sampled ones.",
)
@click.option(
    "--references", type=int, default=10_000, show_default=True, help="Secrets to compare with."
)
@click.option(
    "--reference-model",
    "reference_models",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Folder of a model that saw no canary; calibrates the costs. May be repeated.",
)
@click.option(
    "--max-nodes", type=int, default=2_000_000, show_default=True, help="Budget of a walk."
)
@click.option(
    "--max-seconds", type=float, help="Budget of a walk, and of reading the text before a secret."
)
@click.option("--memory", type=int, help="Budget of a walk, in MiB.")
@device_option
@click.option("--source", help="Source text, for an encoder-decoder.")
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the references.")
@click.option(
    "--limit",
    type=float,
    help="A gate: planted canaries have to stay under these bits. Exit code 0 is PASS, 1 FAIL, 3 "
    "INCONCLUSIVE.",
)
@click.option(
    "--judged", type=int, help="Apply --limit only to canaries planted at most this many times."
)
@click.option(
    "--share",
    type=float,
    help="PASS if at most this share of such canaries reaches --limit (95 % confidence).",
)
@click.option("--allow-inconclusive", is_flag=True, help="Exit with 0 instead of 3.")
@click.option("--extrapolate", is_flag=True, help="Also fit a skew-normal law to the references.")
@click.option("--reveal", is_flag=True, help="Show the secrets.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_context
def exposure(
    context: click.Context,
    model: Path,
    file: Path,
    only: tuple[int, ...],
    method: str,
    references: int,
    reference_models: tuple[Path, ...],
    max_nodes: int,
    max_seconds: float | None,
    memory: int | None,
    device: str,
    source: str | None,
    seed: int,
    limit: float | None,
    judged: int | None,
    share: float | None,
    allow_inconclusive: bool,
    extrapolate: bool,
    reveal: bool,
    as_json: bool,
) -> None:
    """Rank the canaries of a file among all secrets that they could have been.

    The method auto ranks exactly where that can be afforded, and among sampled references
    elsewhere. With --limit the exit code says the outcome. A PASS needs planted canaries to be
    found, so that a model that never saw them is INCONCLUSIVE.

    \b
    Example:
      remnant exposure --model checkpoint --canaries canaries.jsonl --limit 10
    """
    import numpy as np

    from remnant.cli.exposure_told import Measured, exposure_fields, exposure_text
    from remnant.cli.gate import judge
    from remnant.integrations import load_sequence_model
    from remnant.records.outcomes import EXIT_CODES
    from remnant.studies.canary_exposure import measure_canaries

    require(
        _method_faults(method, references, reference_models, extrapolate)
        + _least_faults(references=references, max_nodes=max_nodes, memory=memory, seed=seed)
        + _positive_faults(max_seconds=max_seconds, limit=limit)
        + _gate_faults(limit, judged=judged, share=share, allow_inconclusive=allow_inconclusive)
    )
    sets = sets_to_measure(read_sets(file), only, file=file, model=model)
    _check_limit(sets, limit)
    _check_judged(sets, judged)
    refuse_the_same(model, reference_models)
    every = [one for each in sets.values() for one in (*each.canaries, *each.controls)]
    with withheld(one.secret for one in every), ProgressBar() as bar:
        with naming_model("--model", model):
            asked = load_sequence_model(model, device=device, source=source)
        others = []
        for folder in reference_models:
            with naming_model("--reference-model", folder):
                others.append(load_sequence_model(folder, device=device, source=source))
        measured = []
        for number, one in sets.items():
            with naming(**OPTIONS):
                found = measure_canaries(
                    asked,
                    one,
                    rng=np.random.default_rng([seed, number]),
                    method=method,  # type: ignore[arg-type]
                    references=references,
                    reference_models=others,
                    fit=extrapolate,
                    max_nodes=max_nodes,
                    max_seconds=max_seconds,
                    memory=None if memory is None else memory << 20,
                    progress=bar,
                )
            measured.append(Measured(number, one, found))
    verdict = None if limit is None else judge(measured, limit, judged, share)
    if as_json:
        fields = exposure_fields(measured, verdict, extrapolate=extrapolate, reveal=reveal)
        click.echo(json.dumps(fields, indent=2, allow_nan=False))
    else:
        show(exposure_text(measured, verdict, extrapolate=extrapolate, reveal=reveal))
    if verdict is not None:
        allowed = allow_inconclusive and verdict.outcome == "INCONCLUSIVE"
        context.exit(0 if allowed else EXIT_CODES[verdict.outcome])


def _gate_faults(limit: float | None, *, share: float | None, **given: object) -> list[str]:
    faults = []
    if limit is None:
        faults += [
            f"--{name.replace('_', '-')} is about --limit, which is not given"
            for name, value in {**given, "share": share}.items()
            if value is not None and value is not False
        ]
    if share is not None and not 0 < share < 1:
        faults.append(f"--share {share:g} is not between 0 and 1")
    return faults


def _check_judged(sets: dict[int, CanarySet], judged: int | None) -> None:
    """Refuse a gate that judges no canary."""
    if judged is None:
        return
    least = min(repeats for one in sets.values() for repeats in one.repeats)
    if judged < least:
        raise InvalidInput(
            f"--judged {judged} judges no canary: every canary is planted {least} times or more.",
            hint=f"Pass {least} or more, or leave it out to judge all.",
        )


def _check_limit(sets: dict[int, CanarySet], limit: float | None) -> None:
    """Refuse a gate that could not fail."""
    if limit is None:
        return
    if not any(one.canaries for one in sets.values()):
        raise NotEnoughEvidence(
            "--limit is about planted canaries, and there are none.",
            hint="Plant some, or leave the limit out.",
        )
    for number, one in sets.items():
        most = math.log2(one.template.space)
        if limit > most:
            raise InvalidInput(
                f"--limit {limit:g} is above the {most:.1f} bits that a secret of set {number} can "
                "have, so that it could not be reached.",
                hint="Lower the limit, measure other sets with --set, or plant secrets of a larger "
                "space.",
            )


def _method_faults(
    method: str, references: int, reference_models: tuple[Path, ...], extrapolate: bool
) -> list[str]:
    faults = []
    if method == "exact" and reference_models:
        faults.append("--reference-model calibrates sampled costs, and --method is exact")
    if extrapolate and reference_models:
        faults.append("--extrapolate fits a law to plain costs, and --reference-model is given")
    if method == "sampled" and references == 0:
        faults.append("--references 0 leaves nothing to compare with, and --method is sampled")
    return faults


def _least_faults(**given: int | None) -> list[str]:
    least = {"references": 0, "max_nodes": 1, "memory": 1, "seed": 0}
    return [
        f"--{name.replace('_', '-')} {value} is less than {least[name]}"
        for name, value in given.items()
        if value is not None and value < least[name]
    ]


def _positive_faults(**given: float | None) -> list[str]:
    return [
        f"--{name.replace('_', '-')} {value:g} is not above 0"
        for name, value in given.items()
        if value is not None and not value > 0
    ]
