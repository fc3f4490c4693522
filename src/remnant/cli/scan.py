"""``remnant scan``: secrets that nobody planted, in text and in a model that was trained on it."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import click

from remnant.cli.device import device_option
from remnant.cli.naming import naming
from remnant.cli.progress import ProgressBar
from remnant.cli.scan_models import load_models, measure_in
from remnant.cli.scan_out import check_out, write_out
from remnant.cli.terminal import one_line, show
from remnant.errors import InvalidInput, require

METHODS = ("auto", "exact", "sampled")
REFERENCES, MAX_NODES, AT_MOST = 1000, 200_000, 50
_ABOUT_MODELS = {
    "reference_models": (),
    "twin": None,
    "extract": False,
    "at_most": None,
    "method": None,
    "references": None,
    "max_nodes": None,
    "max_seconds": None,
}
_OPTIONS = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        *("kinds", "exclude", "region", "min_entropy", "latin_1", "context", "salt"),
        *("at_most", "method", "references", "max_nodes", "max_seconds"),
    )
}


@click.command(short_help="Find real secrets in text, and how exposed they are in a model.")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILES")
@click.option("--kinds", help="What to look for, with commas.  [default: all]")
@click.option("--exclude", multiple=True, help="Leave such names out, as *.log. May be repeated.")
@click.option("--region", default="US", show_default=True, help="Country of telephone numbers.")
@click.option(
    "--min-entropy",
    type=float,
    help="Bits a character of random strings.  [default: 3.0 for hex, 4.5 for base64]",
)
@click.option("--latin-1", is_flag=True, help="Read files that are not in UTF-8 as Latin-1.")
@click.option(
    "--context",
    type=int,
    default=64,
    show_default=True,
    help="Characters before a secret that a model is asked with.",
)
@click.option(
    "--salt",
    type=click.Path(path_type=Path),
    help="File whose bytes salt the fingerprints, to compare scans.  [default: a new salt]",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    help="Folder of a model to measure exposure in: of ours, or of Hugging Face's.",
)
@click.option(
    "--reference-model",
    "reference_models",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Folder of a model that never saw the text; calibrates the costs. May be repeated.",
)
@click.option(
    "--twin",
    type=click.Path(path_type=Path),
    help="Folder of a model trained alike on other text; asked the same, and compared.",
)
@click.option(
    "--twin-text",
    "twin_texts",
    type=click.Path(path_type=Path),
    multiple=True,
    help="What the twin was trained on: leaves out secrets that stand there. May be repeated.",
)
@click.option("--extract", is_flag=True, help="Also try to extract each secret from the model.")
@click.option(
    "--at-most",
    type=int,
    help=f"Measure so many secrets, the most frequent.  [default: {AT_MOST}]",
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
    "--max-nodes", type=int, help=f"Budget of each walk and search.  [default: {MAX_NODES}]"
)
@click.option(
    "--max-seconds",
    type=float,
    help="Budget of each walk and search, reading the text before the secret included.",
)
@device_option
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the references.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="JSON file of all that is found; redacted too, unless --reveal is given.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that is no scan.")
@click.option("--reveal", is_flag=True, help="Show the secrets, and write them to --out.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def scan(
    paths: tuple[Path, ...],
    kinds: str | None,
    exclude: tuple[str, ...],
    region: str,
    min_entropy: float | None,
    latin_1: bool,
    context: int,
    salt: Path | None,
    model: Path | None,
    reference_models: tuple[Path, ...],
    twin: Path | None,
    twin_texts: tuple[Path, ...],
    extract: bool,
    at_most: int | None,
    method: str | None,
    references: int | None,
    max_nodes: int | None,
    max_seconds: float | None,
    device: str,
    seed: int,
    out: Path | None,
    force: bool,
    reveal: bool,
    as_json: bool,
) -> None:
    """Find secrets that nobody planted: cards, SSNs, IBANs, addresses, telephone numbers, keys.

    Nothing of a secret is shown or written unless --reveal is given. With --model each one is
    ranked among all secrets of its form, after the text before it.

    \b
    Example:
      remnant scan mail/ --model checkpoint --extract
    """
    from remnant.canaries.natural import KINDS, scan_files
    from remnant.canaries.natural.files import files_of
    from remnant.cli.scan_told import Told, scan_json, scan_text

    given: dict[str, object] = {
        "reference_models": reference_models,
        "twin": twin,
        "extract": extract,
        "at_most": at_most,
        "method": method,
        "references": references,
        "max_nodes": max_nodes,
        "max_seconds": max_seconds,
    }
    require(_faults(given, model=model, twin_texts=twin_texts, seed=seed))
    if out is not None:
        check_out(out, force=force, inputs=paths)
    looked_for: dict[str, Any] = {
        "salt": secrets.token_bytes(16) if salt is None else _read_salt(salt),
        "kinds": KINDS if kinds is None else [one.strip() for one in kinds.split(",")],
        "exclude": exclude,
        "region": region,
        "min_entropy": min_entropy,
        "latin_1": latin_1,
        "context": context,
    }
    measured = compared = None
    with ProgressBar() as bar, naming(**_OPTIONS):
        for looked_at in filter(None, (paths, twin_texts)):
            files_of(looked_at, exclude=exclude)
        models = None if model is None else load_models(model, given, device=device)
        found = scan_files(paths, progress=bar, **looked_for)
        if models is not None:
            others = scan_files(twin_texts, progress=bar, **looked_for) if twin_texts else None
            measured, compared = measure_in(found, others, models, given, seed=seed, bar=bar)
    told = Told(found, measured, compared, model=model, twin=twin, context=context, region=region)
    if out is not None:
        write_out(out, scan_json(told, reveal=reveal))
    holding = " (it holds the secrets; only its owner can read it)" * reveal
    if as_json:
        click.echo(scan_json(told, reveal=reveal))
        if out is not None and reveal:
            show(f"written: {one_line(str(out))}{holding}", err=True)
    else:
        show(scan_text(told, reveal=reveal, extract=extract))
        if out is not None:
            show(f"written: {one_line(str(out))}{holding}")


def _faults(
    given: dict[str, object], *, model: Path | None, twin_texts: tuple[Path, ...], seed: int
) -> list[str]:
    faults = []
    if twin_texts and given["twin"] is None:
        faults.append("--twin-text is about --twin, which is not given")
    if given["twin"] is not None and given["reference_models"]:
        faults.append("--twin and --reference-model are both given; each compares in its own way")
    if model is None:
        names = {"reference_models": "--reference-model"}
        faults += [
            f"{names.get(name) or '--' + name.replace('_', '-')} is about --model, which is not "
            "given"
            for name, value in given.items()
            if value != _ABOUT_MODELS[name]
        ]
    for name in ("at_most", "references", "max_nodes"):
        value = given[name]
        if isinstance(value, int) and value < 1:
            faults.append(f"--{name.replace('_', '-')} {value} is less than 1")
    seconds = given["max_seconds"]
    if isinstance(seconds, float) and not seconds > 0:
        faults.append(f"--max-seconds {seconds:g} is not above 0")
    if given["method"] == "exact" and given["reference_models"]:
        faults.append("--reference-model calibrates sampled costs, and --method is exact")
    if seed < 0:
        faults.append(f"--seed {seed} is less than 0")
    return faults


def _read_salt(path: Path) -> bytes:
    try:
        found = path.read_bytes()
    except OSError as fault:
        raise InvalidInput(
            f"--salt {path} cannot be read: {fault.strerror}.",
            hint="Pass a file of 16 random bytes or more.",
        ) from None
    if len(found) < 16:
        raise InvalidInput(
            f"--salt {path} has {len(found)} bytes.", hint="Put 16 random bytes or more into it."
        )
    return found
