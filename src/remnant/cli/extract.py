"""``remnant extract``: the likeliest secrets of a model, with a proof."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remnant.cli.cost import announce
from remnant.cli.help.command import Command
from remnant.cli.options import declared, out_folder
from remnant.cli.options.canary_sets import check_template, read_sets, secrets_of
from remnant.cli.options.models import bases, naming_model, placed
from remnant.cli.options.naming import naming
from remnant.cli.options.served import read_served, served_options
from remnant.cli.options.templates import read_templates
from remnant.cli.output import amount_options, command_page, print_json, print_page
from remnant.cli.redaction import hidden, withheld
from remnant.errors import InvalidInput, require
from remnant.progress import ProgressBar

METHODS = ("certified", "brute-force", "greedy", "beam", "sample", "dijkstra")
OPTIONS = declared.option_names(
    *("method", "top", "max_nodes", "max_seconds", "memory", "beam", "queries"),
    *("temperature", "top_k", "top_p"),
)
MAX_NODES = 2_000_000
QUERIES = 1000


@click.command(
    cls=Command,
    one_of=(("model", "served"),),
    short_help="Find the likeliest secrets of a model, with a proof.",
)
@served_options
@declared.base
@click.option("--template", "pattern", required=True, help="Text with holes, such as {digits:4}.")
@declared.number("--top", 1, help="How many secrets to find.")
@declared.choice("--method", METHODS, help="certified and brute-force prove what they find.")
@click.option(
    "--max-nodes", type=int, help=f"Node budget of the certified search.  [default: {MAX_NODES}]"
)
@click.option(
    "--max-seconds",
    type=float,
    help="Time budget of the certified search, including the prefix; with --served, of all "
    "requests.",
)
@click.option(
    "--memory", type=int, help="Memory budget of the certified search and of samples, in MiB."
)
@declared.number("--beam", 64, help="Width of the beam search, with which certified starts too.")
@click.option(
    "--queries", type=int, help=f"Samples drawn by --method sample.  [default: {QUERIES}]"
)
@declared.words
@declared.path("--canaries", "file", help="File of canaries, to say which candidates are known.")
@click.option("--temperature", type=float, help="Of the decoding whose queries are counted.")
@click.option("--top-k", type=int, help="Of the decoding whose queries are counted.")
@click.option("--top-p", type=float, help="Of the decoding whose queries are counted.")
@declared.device
@declared.threads(passed_on=False)
@declared.device_map
@declared.precision
@declared.source
@declared.number("--seed", 0, help="Seed of the samples.")
@out_folder.out
@declared.reveal
@amount_options
@declared.as_json
def extract(
    model: Path | None,
    base: Path | None,
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
    device_map: str | None,
    precision: str | None,
    source: str | None,
    seed: int,
    out: Path | None,
    reveal: bool,
    as_json: bool,
    **server: Any,
) -> None:
    """Find the secrets to which a model gives the highest probability.

    The certified search proves that the template has no likelier secret, or says that its budget
    ended. {tokens:n} is filled with the model's own tokens.

    With --served, texts are sent to a server with an OpenAI-compatible completions endpoint, and
    --method beam or greedy is needed.

    The exit code is 0 whatever is found: this command does not judge.

    \b
    Example:
      remnant extract --model checkpoint --template "the random number is {digits:9}"
    """
    import numpy as np

    from remnant.integrations import load_sequence_model
    from remnant.studies.exposure.cost_estimate import estimate_search
    from remnant.studies.exposure.extract_page import TITLE, extract_page
    from remnant.studies.exposure.extract_result import QUESTION, extract_result, recorded
    from remnant.studies.exposure.search import Decoding, search_secrets
    from remnant.studies.shared.wording import about

    budgets = {"max_nodes": max_nodes, "max_seconds": max_seconds, "memory": memory}
    require(
        _method_faults(method, budgets, queries, served=server["served"] is not None)
        + _decoding_faults(temperature, top_k, top_p)
        + declared.too_small(top=(top, 1), beam=(beam, 1), seed=(seed, 0))
    )
    unused = {"base": base, "source": source, "device_map": device_map, "precision": precision}
    served = read_served(server, model=model, unused=unused, max_seconds=max_seconds)
    if served is not None and method not in ("greedy", "beam"):
        raise InvalidInput(
            f"--method {method} needs a model's next tokens, and a server gives costs of whole "
            "texts only.",
            hint="Pass --method beam, which proves nothing.",
        )
    record_folder = out_folder.out_folder(out)
    base = None if model is None else bases(base, model)[model]
    (template,) = read_templates(
        [pattern], words=words, model=model, base=base, option="--template"
    )
    sets = [] if file is None else read_sets(file)
    if file is not None:
        check_template(sets, template, file)
    decoding = Decoding(
        temperature=1.0 if temperature is None else temperature, top_k=top_k, top_p=top_p
    )
    with withheld(secrets_of(sets)), ProgressBar() as bar:
        searched_model: Any = served
        if model is not None:
            with naming_model("--model", model):
                searched_model = load_sequence_model(
                    model,
                    device=device,
                    source=source,
                    base=base,
                    placement=placed(device, device_map, precision),
                )
        if method == "certified":
            announce(
                f"Certified search among {about(template.space)} secrets",
                lambda: [
                    estimate_search(
                        searched_model,
                        template,
                        max_nodes=MAX_NODES if max_nodes is None else max_nodes,
                        memory=None if memory is None else memory << 20,
                    )
                ],
                max_seconds=max_seconds,
                cheaper=lambda _: (
                    "It ends sooner if a secret is much likelier than others. `--method beam` is "
                    "faster and proves nothing."
                ),
            )
        with naming(**OPTIONS):
            search = search_secrets(
                searched_model,
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
    result = extract_result(template, search, sets, hidden=hidden(template), reveal=reveal)
    if as_json:
        print_json(result)
    else:
        print_page(command_page(TITLE, extract_page(result)))
    out_folder.write_out(
        record_folder,
        as_json=as_json,
        reveal=reveal,
        question=QUESTION,
        plan={
            "model": out_folder.models(model, served=served, base=base),
            "data": {
                "template": template.pattern,
                "words": None if words is None else str(words),
                "canaries": None if file is None else str(file),
            },
            "settings": {
                "method": method,
                "top": top,
                "beam": beam,
                "queries": queries,
                **budgets,
                "temperature": temperature,
                "top_k": top_k,
                "top_p": top_p,
                "source_given": source is not None,
                "seed": seed,
                **declared.chosen(device_map=device_map, precision=precision),
            },
        },
        result=recorded(result),
        data=[template.pattern, *(canary_set.fingerprint for canary_set in sets)],
        device=device,
        seeds={"samples": seed},
    )


def _method_faults(
    method: str, budgets: dict[str, float | None], queries: int | None, *, served: bool
) -> list[str]:
    faults = declared.not_positive(**budgets)
    if served:  # its time budget is that of requests
        budgets = {name: value for name, value in budgets.items() if name != "max_seconds"}
    of_each = {"certified": budgets, "sample": {"memory": budgets["memory"], "queries": queries}}
    idle = dict.fromkeys(declared.given({**budgets, "queries": queries}))
    for option in declared.given(of_each.get(method, {})):
        idle.pop(option)
    faults += [f"{option} is not for --method {method}" for option in idle]
    return faults + declared.too_small(queries=(queries, 1))


def _decoding_faults(
    temperature: float | None, top_k: int | None, top_p: float | None
) -> list[str]:
    faults = declared.not_positive(temperature=temperature) + declared.too_small(top_k=(top_k, 1))
    if top_p is not None and not 0 < top_p <= 1:
        faults.append(f"--top-p {top_p:g} is not above 0 and at most 1")
    return faults
