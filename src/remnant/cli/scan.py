"""``remnant scan``: secrets that nobody planted, in text and in a model trained on it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.cost import announce, sampled_is_cheaper
from remnant.cli.help.command import Command
from remnant.cli.options import declared, out_folder
from remnant.cli.options.exit_codes import exit_by_outcome, gate_options
from remnant.cli.options.models import bases, naming_model, placed, refuse_the_same
from remnant.cli.options.naming import blaming, naming
from remnant.cli.options.out_files import check_old_file, check_place, write_whole
from remnant.cli.output import amount_options, command_page, json_text, print_page
from remnant.cli.redaction import withheld
from remnant.cli.terminal import one_line, show
from remnant.errors import InvalidInput, UnsupportedModel, require
from remnant.progress import ProgressBar

if TYPE_CHECKING:
    from remnant.canaries.natural import FoundSecret, Scan
    from remnant.studies.exposure.cost_estimate import SearchCost
    from remnant.studies.found_secrets.measure import FoundExposures
    from remnant.studies.found_secrets.result import CleanedText
    from remnant.studies.found_secrets.twin import TwinComparison

METHODS = ("auto", "exact", "sampled")
REFERENCES, MAX_NODES, AT_MOST = 1000, 200_000, 50
_ABOUT_MODELS = (
    *("base", "reference_models", "twin", "extract", "at_most", "method", "references"),
    *("max_nodes", "max_seconds", "device_map", "precision"),
)
_OF_FOLDERS = ("base", "reference_models", "twin", "device_map", "precision")
_MEASURING = ("extract", "at_most", "method", "references", "max_nodes", "max_seconds")
_OPTIONS = declared.option_names(
    *("kinds", "exclude", "region", "min_entropy", "latin_1", "context", "salt"),
    *("at_most", "method", "references", "max_nodes", "max_seconds", "as_text"),
) | {"fields": "--field"}


@click.command(
    cls=Command,
    short_help="Find real secrets in text, and measure how exposed they are in a model.",
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILES")
@click.option("--kinds", help="Kinds of secrets to find, separated by commas.  [default: all]")
@click.option(
    "--exclude", multiple=True, help="Skip files with such names, as *.log. May be repeated."
)
@click.option("--region", default="US", show_default=True, help="Country of telephone numbers.")
@click.option(
    "--min-entropy",
    type=float,
    help="Least entropy of random strings, in bits per character.  [default: 3.0 for hex, 4.5 for "
    "base64]",
)
@declared.flag("--latin-1", help="Read files that are not UTF-8 as Latin-1.")
@click.option(
    "--field",
    "fields",
    multiple=True,
    help="Field of JSON and CSV files to scan, such as text or messages.content. May be repeated.  "
    "[default: all]",
)
@declared.flag("--as-text", help="Read JSON and CSV files as plain text.")
@declared.number("--context", 64, help="Characters before a secret that the model is given.")
@declared.path(
    "--salt",
    help="File whose bytes salt the fingerprints, to compare scans.  [default: a new salt]",
)
@declared.path(
    "--model",
    help="Folder of a model to measure exposure in: a Remnant checkpoint, a Hugging Face model or "
    "a PEFT adapter.",
)
@declared.base
@declared.path(
    "--reference-model",
    "reference_models",
    multiple=True,
    help="Folder of a model that never saw the text; calibrates the costs. May be repeated.",
)
@declared.path(
    "--twin",
    help="Folder of a model trained the same way on other text; tested on the same secrets.",
)
@declared.path(
    "--twin-text",
    "twin_texts",
    multiple=True,
    help="The twin's training text; secrets that occur in it are left out. May be repeated.",
)
@declared.flag("--extract", help="Also try to extract each secret from the model.")
@click.option(
    "--at-most",
    type=int,
    help=f"Measure this many secrets, the most frequent.  [default: {AT_MOST}]",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    help="Rank among all secrets of a form, or among sampled ones.  [default: auto]",
)
@click.option(
    "--references", type=int, help=f"Secrets to compare each with.  [default: {REFERENCES}]"
)
@click.option(
    "--max-nodes", type=int, help=f"Node budget of each ranking and search.  [default: {MAX_NODES}]"
)
@click.option(
    "--max-seconds",
    type=float,
    help="Time budget of each ranking and search, including the text before the secret.",
)
@declared.device
@declared.threads(passed_on=False)
@declared.device_map
@declared.precision
@declared.number("--seed", 0, help="Seed of the references.")
@declared.path(
    "--out",
    "-o",
    help="New folder for a record and a report, or a .json file for the result; without secrets, "
    "unless --reveal is given.",
)
@declared.path(
    "--redact",
    help="New or empty folder for a copy of each file in which placeholders such as [CARD] "
    "replace the secrets.",
)
@declared.flag("--force", help="Overwrite a file that is not a scan.")
@declared.flag("--reveal", help="Show the secrets, and write them to --out.")
@gate_options
@amount_options
@declared.as_json
def scan(
    paths: tuple[Path, ...],
    kinds: str | None,
    salt: Path | None,
    model: Path | None,
    twin_texts: tuple[Path, ...],
    device: str,
    seed: int,
    out: Path | None,
    redact: Path | None,
    force: bool,
    reveal: bool,
    gate: bool,
    allow_inconclusive: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Find secrets that nobody planted: cards, SSNs, IBANs, addresses, telephone numbers, keys.

    JSON and CSV files are read by field. No secret is shown or written unless --reveal is given.
    With --model, each secret is ranked among all secrets of its form, after the text before it.
    With --gate, a secret in the text is a FAIL (exit code 1), whatever the model exposes.
    With --redact, a copy of the files is written without the secrets that were found. Detectors
    miss secrets, so the copy may still hold some.

    \b
    Example:
      remnant scan mail/ --model checkpoint --extract
      remnant scan train.jsonl --field messages.content --kinds key,card --gate
      remnant scan mail/ --redact cleaned-mail
    """
    from remnant.canaries.natural import KINDS, scan_files
    from remnant.canaries.natural.files import files_of
    from remnant.canaries.natural.scanning import check_scan
    from remnant.studies.beside.found_secrets import of_scan
    from remnant.studies.found_secrets.page import TITLE, scan_page
    from remnant.studies.found_secrets.result import (
        QUESTION,
        compared_twin,
        model_exposure,
        recorded,
        scan_result,
    )
    from remnant.studies.found_secrets.verdict import judge_scan

    about_models = {name: given.pop(name) for name in _ABOUT_MODELS}
    require(_faults(about_models, model=model, twin_texts=twin_texts, seed=seed))
    record_folder = out_folder.out_folder(out, files=(".json",))
    if out is not None:
        _check_out(out, force=force, inputs=paths, is_file=record_folder is None)
    if redact is not None:
        _check_redact(redact, inputs=paths, out=out)
    looked_for: dict[str, Any] = {
        **given,
        "salt": secrets.token_bytes(16) if salt is None else _read_salt(salt),
        "kinds": KINDS if kinds is None else [kind.strip() for kind in kinds.split(",")],
    }
    exposure = comparison = None
    with ProgressBar() as bar, naming(**_OPTIONS):
        for looked_at in filter(None, (paths, twin_texts)):
            files_of(looked_at, exclude=given["exclude"])
        # A wrong setting and a missing library are found before a model is read.
        about = ("salt", "kinds", "region", "min_entropy", "context")
        check_scan(**{name: looked_for[name] for name in about})
        if gate:
            _refuse_blind_gate(looked_for)
        models = None if model is None else _load_models(model, about_models, device=device)
        scanned = scan_files(paths, progress=bar, **looked_for)
        if models is not None:
            others = scan_files(twin_texts, progress=bar, **looked_for) if twin_texts else None
            measured, compared = _measure(scanned, others, models, about_models, seed, bar)
            shown: dict[str, Any] = {
                "context": given["context"],
                "reveal": reveal,
                "extract": about_models["extract"],
            }
            exposure = model_exposure(measured, model=str(model), **shown)
            if compared is not None:
                comparison = compared_twin(compared, twin=str(about_models["twin"]), **shown)
        cleaned = None
        if redact is not None:
            cleaned = _write_cleaned(redact, scanned, paths, given, reveal=reveal, bar=bar)
    result = scan_result(
        scanned,
        region=given["region"],
        reveal=reveal,
        exposure=exposure,
        twin=comparison,
        verdict=judge_scan(scanned) if gate else None,
        cleaned=cleaned,
    )
    if out is not None and record_folder is None:
        write_whole("--out", out, json_text(result, checks=of_scan(result)) + "\n")
    if as_json:
        click.echo(json_text(result, checks=of_scan(result)))
    else:
        print_page(command_page(TITLE, scan_page(result)))
    if out is not None and record_folder is None and (reveal or not as_json):
        holding = " (it holds the secrets; only its owner can read it)" * reveal
        show(f"written: {one_line(str(out))}{holding}", err=as_json)
    out_folder.write_out(
        record_folder,
        as_json=as_json,
        private=True,
        reveal=reveal,
        question=QUESTION,
        plan={
            "text": {"files": len(result.files), "kinds": list(result.kinds)},
            **({} if model is None else {"model": _named_models(model, about_models)}),
            "settings": {
                **{name: given[name] for name in ("region", "min_entropy", "latin_1", "context")},
                **{name: about_models[name] for name in _MEASURING},
                **declared.chosen(
                    **{name: about_models[name] for name in ("device_map", "precision")}
                ),
                "seed": seed,
            },
        },
        result=recorded(result),
        data=[[file.path, file.characters] for file in result.files],
        device=device,
        seeds={"references": seed},
    )
    if result.verdict is not None:
        judged = any(file.characters for file in result.files)  # no text: nothing to allow
        exit_by_outcome(result.verdict.outcome, allow_inconclusive=allow_inconclusive and judged)


def _write_cleaned(
    folder: Path,
    scanned: Scan,
    paths: tuple[Path, ...],
    given: dict[str, Any],
    *,
    reveal: bool,
    bar: ProgressBar,
) -> CleanedText:
    """Write the cleaned copy; its file names hold no secret, with or without ``--reveal``."""
    from remnant.canaries.natural import write_cleaned
    from remnant.studies.found_secrets.redacted_paths import RedactedPaths
    from remnant.studies.found_secrets.result import cleaned_text

    redacted = RedactedPaths(scanned.found, region=given["region"]).redacted
    with naming("--redact", folder):
        copies = write_cleaned(
            paths,
            folder,
            scan=scanned,
            shown_path=redacted,
            progress=bar,
            **{name: given[name] for name in ("exclude", "region", "min_entropy", "fields")},
        )
    return cleaned_text(
        copies,
        folder=str(folder) if reveal else redacted(str(folder)),
        kinds=scanned.kinds,
        shown_path=str if reveal else redacted,
    )


def _check_redact(folder: Path, *, inputs: tuple[Path, ...], out: Path | None) -> None:
    """Refuse a folder for the cleaned copy, before anything is read.

    Raises:
        InvalidInput: See ``check_new_folder``; or ``--out`` is the same folder or one inside of
            the other.
    """
    from remnant.canaries.natural.cleaned_copies import check_new_folder

    with naming("--redact", folder):
        check_new_folder(folder, inputs)
    if out is None:
        return
    copies, results = folder.resolve(), out.resolve()
    if copies == results or copies in results.parents or results in copies.parents:
        raise InvalidInput(
            f"--redact {folder} and --out {out} are the same folder, or one is inside the other.",
            hint="Name two separate folders.",
        )


def _refuse_blind_gate(looked_for: dict[str, Any]) -> None:
    """Refuse a gate whose settings find no secret of some kind, not even a known one.

    Raises:
        InvalidInput: The positive control of a kind is not found.
    """
    from remnant.canaries.natural.scanning import undetected_kinds

    settings = {name: looked_for[name] for name in ("region", "min_entropy")}
    unseen = undetected_kinds(looked_for["kinds"], **settings)
    if unseen:
        raise InvalidInput(
            f"--gate could not fail: with these settings a known secret of kind {unseen[0]} is not "
            "found.",
            hint="Lower --min-entropy, or leave the kind out of --kinds.",
        )


def _named_models(model: Path, given: dict[str, Any]) -> dict[str, Any]:
    """What the plan of a record says about the models."""
    others = {name: given[name] for name in ("base", "reference_models", "twin")}
    return out_folder.models(model, **others)


def _faults(
    given: dict[str, Any], *, model: Path | None, twin_texts: tuple[Path, ...], seed: int
) -> list[str]:
    faults = []
    if twin_texts and given["twin"] is None:
        faults.append("--twin-text needs --twin")
    if given["twin"] is not None and given["reference_models"]:
        faults.append("--twin and --reference-model are both given; pass one of them")
    if model is None:
        faults += [f"{option} needs --model" for option in declared.given(given)]
    faults += declared.too_small(
        **{name: (given[name], 1) for name in ("at_most", "references", "max_nodes")}
    )
    faults += declared.not_positive(max_seconds=given["max_seconds"])
    if given["method"] == "exact" and given["reference_models"]:
        faults.append("--reference-model calibrates sampled costs, and --method is exact")
    return faults + declared.too_small(seed=(seed, 0))


def _read_salt(path: Path) -> bytes:
    try:
        salt = path.read_bytes()
    except OSError as fault:
        raise InvalidInput(
            f"--salt {path} cannot be read: {fault.strerror}.",
            hint="Pass a file of 16 random bytes or more.",
        ) from None
    if len(salt) < 16:
        raise InvalidInput(
            f"--salt {path} has {len(salt)} bytes.", hint="Put 16 random bytes or more into it."
        )
    return salt


@dataclass(frozen=True, eq=False)
class _Models:
    """Models that were read and give valid answers.

    Attributes:
        tested: The model and its twin, where there is one, by option and folder.
        references: Those that calibrate.
    """

    tested: dict[str, Any]
    references: list[Any]


def _load_models(model: Path, given: dict[str, Any], *, device: str) -> _Models:
    """Read all models and check that each gives valid answers, before any file is read.

    Args:
        model: The folder of ``--model``.
        given: The options about models.
        device: Where they run.

    Raises:
        InvalidInput: A folder holds no model, or the same model as ``--model``.
        RecordError: A model is damaged.
        UnsupportedModel: It returns NaN, or no log-probabilities.
    """
    from remnant.integrations import load_sequence_model
    from remnant.studies.found_secrets.measure import check_answers

    placement = placed(device, given["device_map"], given["precision"])
    refuse_the_same(model, given["reference_models"])
    twins = () if given["twin"] is None else (given["twin"],)
    refuse_the_same(model, twins, option="--twin")
    based = bases(given["base"], model, *given["reference_models"], *twins)

    def load(option: str, folder: Path) -> Any:
        with naming_model(option, folder), blaming(f"{option} {folder}", UnsupportedModel):
            loaded = load_sequence_model(
                folder, device=device, base=based[folder], placement=placement
            )
            check_answers(loaded)
        return loaded

    tested = {f"--model {model}": load("--model", model)}
    references = [load("--reference-model", folder) for folder in given["reference_models"]]
    tested |= {f"--twin {folder}": load("--twin", folder) for folder in twins}
    return _Models(tested, references)


def _measure(
    scan: Scan,
    in_twins_text: Scan | None,
    models: _Models,
    given: dict[str, Any],
    seed: int,
    bar: ProgressBar,
) -> tuple[FoundExposures, TwinComparison | None]:
    """Measure found secrets in the model and in its twin; no error contains a secret."""
    import numpy as np

    from remnant.studies.found_secrets.measure import measure_found
    from remnant.studies.found_secrets.twin import compare_with_twin, unseen_by_twin

    secrets = scan.found
    if in_twins_text is not None:
        secrets = unseen_by_twin(secrets, in_twins_text.found)
    chosen = {
        name: value
        for name, value in given.items()
        if value is not None and name not in _OF_FOLDERS
    }
    watched = {part for secret in scan.found for part in secret.parts}
    _announce(secrets, models, given)
    measured = []
    for name, model in models.tested.items():
        blame = nullcontext() if models.references else blaming(name, UnsupportedModel)
        with withheld(watched), blame:
            # Equal generators: both models get the same references.
            measured.append(
                measure_found(
                    model,
                    secrets,
                    rng=np.random.default_rng(seed),
                    reference_models=models.references,
                    progress=bar,
                    **chosen,
                )
            )
    if len(measured) == 1:
        return measured[0], None
    in_model, in_twin = measured
    shared = len(scan.found) - len(secrets)
    return in_model, compare_with_twin(secrets, in_model=in_model, in_twin=in_twin, shared=shared)


def _announce(secrets: Sequence[FoundSecret], models: _Models, given: dict[str, Any]) -> None:
    """Print what measuring may cost, timed on the most frequent secret."""
    from remnant.studies.exposure.cost_estimate import estimate_search
    from remnant.studies.shared.wording import counted

    chosen = secrets[: AT_MOST if given["at_most"] is None else given["at_most"]]
    references = REFERENCES if given["references"] is None else given["references"]

    def costs() -> list[SearchCost]:
        return [
            estimate_search(
                model,
                chosen[0].template,
                max_nodes=MAX_NODES if given["max_nodes"] is None else given["max_nodes"],
                references=references * (1 + len(models.references)),
            )
            for model in (models.tested.values() if chosen else ())
        ] * len(chosen)

    announce(
        f"Measuring {counted(len(chosen), 'secret')} in {counted(len(models.tested), 'model')}",
        costs,
        exact=given["method"] != "sampled" and not models.references,
        max_seconds=given["max_seconds"],
        cheaper=sampled_is_cheaper,
    )


def _check_out(path: Path, *, force: bool, inputs: tuple[Path, ...], is_file: bool) -> None:
    """Refuse an output that cannot or should not be written, before anything is read.

    Raises:
        InvalidInput: Its folder does not exist, it is an input or inside one, or another file
            exists and ``force`` is not set.
    """
    if is_file:
        check_place("--out", path)
    resolved = path.resolve()
    for source in inputs:
        if resolved == source.resolve() or source.resolve() in resolved.parents:
            raise InvalidInput(
                f"--out {path} is one of the files that are scanned.",
                hint="Choose a file outside of them.",
            )
    if is_file:
        ours = b'"remnant": "scan"'
        check_old_file(path, lambda old: ours in old[:256], kind="scan", force=force)
