"""``remnant exposure``: how exposed canaries are in a model."""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.cost import announce, sampled_is_cheaper
from remnant.cli.help.command import Command
from remnant.cli.options import declared, out_folder
from remnant.cli.options.canary_sets import read_sets, secrets_of, sets_to_measure
from remnant.cli.options.models import bases, naming_model, placed, refuse_the_same
from remnant.cli.options.naming import named, naming
from remnant.cli.options.served import read_served, served_options
from remnant.cli.output import amount, amount_options, command_page, page_text, print_json, screen
from remnant.cli.redaction import withheld
from remnant.cli.terminal import show
from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.progress import ProgressBar
from remnant.report.numerals import printable

if TYPE_CHECKING:
    from remnant.canaries import CanarySet
    from remnant.studies.exposure.audit_result import ExposureAuditResult

METHODS = ("auto", "exact", "sampled")
OPTIONS = declared.option_names("method", "references", "max_nodes", "max_seconds", "memory")


@click.command(
    cls=Command,
    one_of=(("model", "served"),),
    short_help="Measure how exposed canaries are in a model.",
)
@served_options
@declared.base
@declared.path("--canaries", "file", required=True, help="File of the canaries.")
@click.option(
    "--set",
    "only",
    type=int,
    multiple=True,
    help="Only this set. May be repeated.  [default: the model's own]",
)
@declared.choice("--method", METHODS, help="Rank among all secrets, or among sampled ones.")
@declared.number("--references", 10_000, help="Secrets to compare with.")
@declared.path(
    "--reference-model",
    "reference_models",
    multiple=True,
    help="Folder of a model that saw no canary; calibrates the costs. May be repeated.",
)
@declared.number("--max-nodes", 2_000_000, help="Node budget of an exact ranking.")
@click.option(
    "--max-seconds",
    type=float,
    help="Time budget of an exact ranking, and of reading the text before a secret; with --served, "
    "of all requests.",
)
@click.option("--memory", type=int, help="Memory budget of an exact ranking, in MiB.")
@declared.device
@declared.threads(passed_on=False)
@declared.device_map
@declared.precision
@declared.source
@declared.number("--seed", 0, help="Seed of the references.")
@click.option(
    "--limit",
    "wanted",
    metavar="BITS|auto",
    help="Gate: planted canaries must stay below this many bits. auto is the least that chance "
    "reaches in at most 1 %. Exit code 0 is PASS, 1 FAIL, 3 INCONCLUSIVE.",
)
@click.option(
    "--judged", type=int, help="Apply --limit only to canaries planted at most this many times."
)
@click.option(
    "--share",
    type=float,
    help="PASS if at most this share of such canaries reaches --limit (95 % confidence).",
)
@declared.flag("--allow-inconclusive", help="Exit with 0 instead of 3.")
@declared.flag("--extrapolate", help="Also fit a skew-normal law to the references.")
@out_folder.out
@declared.reveal
@amount_options
@declared.as_json
@click.pass_context
def exposure(
    context: click.Context,
    /,
    model: Path | None,
    base: Path | None,
    file: Path,
    only: tuple[int, ...],
    method: str,
    references: int,
    reference_models: tuple[Path, ...],
    max_nodes: int,
    max_seconds: float | None,
    memory: int | None,
    device: str,
    device_map: str | None,
    precision: str | None,
    source: str | None,
    seed: int,
    wanted: str | None,
    judged: int | None,
    share: float | None,
    allow_inconclusive: bool,
    extrapolate: bool,
    out: Path | None,
    reveal: bool,
    as_json: bool,
    **server: Any,
) -> None:
    """Rank each canary of a file among all secrets that its template could have given.

    The method auto ranks exactly where the budget allows it, and among sampled references
    otherwise. With --served, texts are sent to a server with an OpenAI-compatible completions
    endpoint, and references are sampled. With --limit the exit code gives the outcome. A PASS
    requires that planted canaries are detected: a model that never saw them is INCONCLUSIVE.

    \b
    Example:
      remnant exposure --model checkpoint --canaries canaries.jsonl --limit auto
    """
    import numpy as np

    from remnant.canaries import distinct_canaries
    from remnant.integrations import load_sequence_model
    from remnant.measures.exposure.by_rank import limit_for
    from remnant.records.outcomes import EXIT_CODES
    from remnant.studies.beside.exposure import of_sets
    from remnant.studies.exposure.audit_result import (
        QUESTION,
        ExposureAuditResult,
        audited_set,
        recorded,
    )
    from remnant.studies.exposure.canary_sets import judge_sets, measure_canaries, reference_fault
    from remnant.studies.exposure.cost_estimate import estimate_search
    from remnant.studies.exposure.result import ExposureGate
    from remnant.studies.exposure.verdict import canaries_needed

    limit = _read_limit(wanted)
    require(
        _method_faults(method, references, reference_models, extrapolate)
        + declared.too_small(
            references=(references, 0), max_nodes=(max_nodes, 1), memory=(memory, 1), seed=(seed, 0)
        )
        + declared.not_positive(max_seconds=max_seconds, limit=limit)
        + _gate_faults(limit, judged=judged, share=share, allow_inconclusive=allow_inconclusive)
    )
    unused = {"base": base, "source": source, "device_map": device_map, "precision": precision}
    served = read_served(
        server,
        model=model,
        unused={**unused, "reference_models": reference_models},
        max_seconds=max_seconds,
    )
    if served is not None and method == "exact":
        raise InvalidInput(
            "--method exact needs a model's next tokens, and a server gives costs of whole texts "
            "only.",
            hint="Leave it out, or pass --method sampled.",
        )
    record_folder = out_folder.out_folder(out)
    given = sets_to_measure(read_sets(file), only, file=file, model=model)
    distinct = distinct_canaries(given)
    sets = distinct.sets
    _check_judged(sets, judged)
    many = _judged_canaries(sets, judged)
    if wanted == "auto" and many:
        limit = limit_for(many)
    _check_limit(sets, limit)
    if share is not None and many < (needed := canaries_needed(share)):
        click.echo(
            f"--share {share:g} takes {needed} judged canaries for a PASS, and there "
            f"{'is' if many == 1 else 'are'} {many}: the outcome will be FAIL or INCONCLUSIVE.",
            err=True,
        )
    based: dict[Path, Path | None] = {}
    if model is not None:
        refuse_the_same(model, reference_models)
        based = bases(base, model, *reference_models)
    load = partial(
        load_sequence_model,
        device=device,
        source=source,
        placement=placed(device, device_map, precision),
    )
    with withheld(secrets_of(sets.values())), ProgressBar() as bar:
        audited_model: Any = served
        if model is not None:
            with naming_model("--model", model):
                audited_model = load(model, base=based[model])
        unplanted = []
        for folder in reference_models:
            with naming_model("--reference-model", folder):
                unplanted.append(load(folder, base=based[folder]))
        announce(
            _announced(sets),
            lambda: [
                estimate_search(
                    audited_model,
                    canary_set.template,
                    max_nodes=max_nodes,
                    references=references * (1 + len(unplanted)),
                    memory=None if memory is None else memory << 20,
                )
                for canary_set in (sets.values() if served is None else ())
            ],
            exact=method != "sampled" and not reference_models,
            max_seconds=max_seconds,
            cheaper=sampled_is_cheaper,
        )
        measure = partial(
            measure_canaries,
            audited_model,
            method=method,  # type: ignore[arg-type]
            references=references,
            reference_models=unplanted,
            fit=extrapolate,
            max_nodes=max_nodes,
            max_seconds=max_seconds if served is None else None,
            memory=None if memory is None else memory << 20,
            progress=bar,
        )
        with naming(**OPTIONS):
            exposures = {
                number: measure(canary_set, rng=np.random.default_rng([seed, number]))
                for number, canary_set in sets.items()
            }
    verdict = None
    if limit is not None:
        verdict = judge_sets(
            exposures,
            limit=limit,
            judged=judged,
            share=share,
            budget="--max-nodes" if served is None else "",
            judged_setting="--judged",
            remark=distinct.sentence,
        )
    audited = partial(audited_set, extrapolate=extrapolate, reveal=reveal, rename=_in_options)
    result = ExposureAuditResult(
        sets=tuple(
            dataclasses.replace(
                audited(number, sets[number], exposures[number]),
                fingerprint=given[number].fingerprint,
            )
            for number in sets
        ),
        verdict=verdict,
        reference_fault=reference_fault(exposures.values()) or None,
        equal=distinct.sentence or None,
    )
    if as_json:
        gate = None if verdict is None else ExposureGate(**verdict.row())
        print_json(result, checks=of_sets(result, gate))
    else:
        show(_text(result))
    out_folder.write_out(
        record_folder,
        as_json=as_json,
        reveal=reveal,
        question=QUESTION,
        plan={
            "model": out_folder.models(
                model, served=served, base=base, reference_models=reference_models
            ),
            "data": {"canaries": str(file), "sets": list(given)},
            "settings": {
                "method": method,
                "references": references,
                "extrapolate": extrapolate,
                "max_nodes": max_nodes,
                "max_seconds": max_seconds,
                "memory": memory,
                "limit": limit,
                "judged": judged,
                "share": share,
                "source_given": source is not None,
                "seed": seed,
                **declared.chosen(device_map=device_map, precision=precision),
            },
        },
        result=recorded(result),
        data=[canary_set.fingerprint for canary_set in given.values()],
        device=device,
        seeds={"references": seed},
    )
    if verdict is not None:
        allowed = allow_inconclusive and verdict.outcome == "INCONCLUSIVE"
        context.exit(0 if allowed else EXIT_CODES[verdict.outcome])


def _read_limit(wanted: str | None) -> float | None:
    """``--limit`` as a number; one in place of ``auto``, which follows from the canaries."""
    if wanted is None or wanted == "auto":
        return None if wanted is None else 1.0
    try:
        return float(wanted)
    except ValueError:
        raise InvalidInput(
            f"--limit {printable(wanted)} is neither a number of bits nor auto.",
            hint="Pass --limit auto, or a number such as 10.",
        ) from None


def _judged_canaries(sets: dict[int, CanarySet], judged: int | None) -> int:
    most = math.inf if judged is None else judged
    return sum(often <= most for canary_set in sets.values() for often in canary_set.repeats)


def _announced(sets: dict[int, CanarySet]) -> str:
    """What is measured, in words."""
    from remnant.studies.shared.wording import about, counted

    secrets = sum(len(each.canaries) + len(each.controls) for each in sets.values())
    largest = max(each.template.space for each in sets.values())
    return (
        f"Ranking {counted(secrets, 'canary or control', 'canaries and controls')} among "
        f"{about(largest)} secrets"
    )


def _in_options(reason: str) -> str:
    """A reason with options instead of the library's arguments."""
    return named(reason, method="--method", shared_references="--references")


def _text(result: ExposureAuditResult) -> str:
    """The outcome where there is one; and the sets, separated by empty lines."""
    from remnant.report import terminal
    from remnant.studies.exposure.audit_page import TITLE, exposure_page

    page = command_page(TITLE, exposure_page(result))
    if amount() == "quiet" or (amount() == "outcome" and result.verdict is not None):
        return page_text(page)
    shown_on = screen()
    sets = [
        terminal.detail(dataclasses.replace(page, blocks=(block,)), shown_on)
        for block in page.blocks
    ]
    return "\n\n".join(part for part in (terminal.summary(page, shown_on), *sets) if part)


def _gate_faults(limit: float | None, *, share: float | None, **given: Any) -> list[str]:
    faults = []
    if limit is None:
        faults += [
            f"{option} needs --limit" for option in declared.given({**given, "share": share})
        ]
    if share is not None and not 0 < share < 1:
        percents = 1 < share < 100
        write = f" (write {share / 100:g} for {share:g} %)" if percents else ""
        faults.append(f"--share {share:g} is not between 0 and 1{write}")
    return faults


def _check_judged(sets: dict[int, CanarySet], judged: int | None) -> None:
    """Refuse a gate that judges no canary."""
    if judged is None:
        return
    least = min(repeats for canary_set in sets.values() for repeats in canary_set.repeats)
    if judged < least:
        raise InvalidInput(
            f"--judged {judged} judges no canary: every canary is planted {least} times or more.",
            hint=f"Pass {least} or more, or leave it out to judge all.",
        )


def _check_limit(sets: dict[int, CanarySet], limit: float | None) -> None:
    """Refuse a gate that could not fail."""
    if limit is None:
        return
    if not any(canary_set.canaries for canary_set in sets.values()):
        raise NotEnoughEvidence(
            "--limit judges planted canaries, and there are none.",
            hint="Plant some, or leave the limit out.",
        )
    for number, canary_set in sets.items():
        most = math.log2(canary_set.template.space)
        if limit > most:
            raise InvalidInput(
                f"--limit {limit:g} is above {most:.1f} bits, the maximum exposure of set "
                f"{number}: no secret could reach it.",
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
