"""``remnant extract``: the likeliest secrets of a model, with a proof."""

from __future__ import annotations

import json
from pathlib import Path

import click

from remnant.cli.canary_sets import check_template, read_sets
from remnant.cli.device import device_option
from remnant.cli.models import naming_model
from remnant.cli.naming import naming
from remnant.cli.progress import ProgressBar
from remnant.cli.redaction import withheld
from remnant.cli.templates import read_templates
from remnant.cli.terminal import show
from remnant.errors import require

METHODS = ("certified", "brute-force", "greedy", "beam", "sample", "dijkstra")
OPTIONS = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        *("method", "top", "max_nodes", "max_seconds", "memory", "beam", "queries"),
        *("temperature", "top_k", "top_p"),
    )
}
MAX_NODES = 2_000_000
QUERIES = 1000


@click.command(short_help="Find the likeliest secrets of a model, with a proof.")
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder of a checkpoint of ours, or of Hugging Face's.",
)
@click.option("--template", "pattern", required=True, help="A text with holes.")
@click.option("--top", type=int, default=1, show_default=True, help="How many secrets.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="certified",
    show_default=True,
    help="certified and brute-force prove what they find.",
)
@click.option(
    "--max-nodes", type=int, help=f"Budget of the certified search.  [default: {MAX_NODES}]"
)
@click.option(
    "--max-seconds",
    type=float,
    help="Budget of the certified search, reading the prefix included.",
)
@click.option("--memory", type=int, help="Budget of the certified search, in MiB.")
@click.option(
    "--beam", type=int, default=64, show_default=True, help="Width of beam; certified starts so."
)
@click.option("--queries", type=int, help=f"Samples of sample.  [default: {QUERIES}]")
@click.option("--words", type=click.Path(path_type=Path), help="Words of {words:n}, one a line.")
@click.option(
    "--canaries",
    "file",
    type=click.Path(path_type=Path),
    help="Canaries' file: says which candidates are known.",
)
@click.option("--temperature", type=float, help="Of the decoding whose queries are counted.")
@click.option("--top-k", type=int, help="Of the decoding whose queries are counted.")
@click.option("--top-p", type=float, help="Of the decoding whose queries are counted.")
@device_option
@click.option("--source", help="Source text, for an encoder-decoder.")
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the samples.")
@click.option("--reveal", is_flag=True, help="Show the secrets.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def extract(
    model: Path,
    pattern: str,
    top: int,
    method: str,
    max_nodes: int | None,
    max_seconds: float | None,
    memory: int | None,
    beam: int,
    queries: int | None,
    words: Path | None,
    file: Path | None,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    device: str,
    source: str | None,
    seed: int,
    reveal: bool,
    as_json: bool,
) -> None:
    """Find the secrets to which a model gives the highest probability.

    The certified search proves that nothing likelier exists in the template's space, or says that a
    budget ended it. {tokens:n} is filled with the model's own tokens.

    The exit code is 0 whatever was found: this command does not judge.

    \b
    Example:
      remnant extract --model checkpoint --template "the random number is {digits:9}"
    """
    import numpy as np

    from remnant.cli.extract_told import Found, extract_fields, extract_text
    from remnant.integrations import load_sequence_model
    from remnant.studies.secret_search import Decoding, search_secrets

    budgets = {"max-nodes": max_nodes, "max-seconds": max_seconds, "memory": memory}
    faults = _budget_faults(method, budgets, queries)
    faults += _decoding_faults(temperature, top_k, top_p)
    faults += [
        f"--{name} {value} is less than {least}"
        for name, value, least in (("top", top, 1), ("beam", beam, 1), ("seed", seed, 0))
        if value < least
    ]
    require(faults)
    template = read_templates([pattern], words=words, model=model, option="--template")[0]
    sets = [] if file is None else read_sets(file)
    if file is not None:
        check_template(sets, template, file)
    decoding = Decoding(
        temperature=1.0 if temperature is None else temperature, top_k=top_k, top_p=top_p
    )
    known = [one.secret for each in sets for one in (*each.canaries, *each.controls)]
    with withheld(known), ProgressBar() as bar:
        with naming_model("--model", model):
            asked = load_sequence_model(model, device=device, source=source)
        with naming(**OPTIONS):
            found = search_secrets(
                asked,
                template,
                rng=np.random.default_rng(seed),
                method=method,  # type: ignore[arg-type]
                top=top,
                max_nodes=MAX_NODES if max_nodes is None else max_nodes,
                max_seconds=max_seconds,
                memory=None if memory is None else memory << 20,
                beam=beam,
                queries=QUERIES if queries is None else queries,
                decodings=list(dict.fromkeys([Decoding(), decoding])),
                progress=bar,
            )
    told = Found(template, found, sets)
    if as_json:
        click.echo(json.dumps(extract_fields(told, reveal=reveal), indent=2, allow_nan=False))
    else:
        show(extract_text(told, reveal=reveal))


def _budget_faults(method: str, budgets: dict[str, float | None], queries: int | None) -> list[str]:
    given = {name: value for name, value in budgets.items() if value is not None}
    faults = [
        f"--{name} {value:g} is not above 0" for name, value in given.items() if not value > 0
    ]
    if method != "certified":
        faults += [f"--{name} is not for --method {method}" for name in given]
    if queries is not None and method != "sample":
        faults.append(f"--queries is not for --method {method}")
    if queries is not None and queries < 1:
        faults.append(f"--queries {queries} is less than 1")
    return faults


def _decoding_faults(
    temperature: float | None, top_k: int | None, top_p: float | None
) -> list[str]:
    faults = []
    if temperature is not None and not temperature > 0:
        faults.append(f"--temperature {temperature:g} is not above 0")
    if top_k is not None and top_k < 1:
        faults.append(f"--top-k {top_k} is less than 1")
    if top_p is not None and not 0 < top_p <= 1:
        faults.append(f"--top-p {top_p:g} is not above 0 and at most 1")
    return faults
