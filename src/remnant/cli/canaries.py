"""``remnant canaries``: make canary sets, and plant them in a text file."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.counts import counted, grouped, often, space_fields, space_text
from remnant.cli.naming import naming
from remnant.cli.planting import Lines, planting, refuse_odd, taken
from remnant.cli.redaction import printable, shown, withheld
from remnant.cli.templates import read_templates
from remnant.cli.terminal import one_line, show
from remnant.errors import InvalidInput, require

if TYPE_CHECKING:
    from remnant.canaries import CanarySet

_LINES_SHOWN = 8
OPTIONS = {
    name: f"--{name.replace('_', '-')}" for name in ("repeats", "per_repeat", "controls", "seed")
}


@click.command(short_help="Make canaries from templates, and plant them in a text file.")
@click.argument("templates", metavar="TEMPLATE...", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="File for the canaries, secrets included; only its owner can read it.",
)
@click.option(
    "--repeats", default="1,4,16", show_default=True, help="How often to plant, with commas."
)
@click.option(
    "--per-repeat", type=int, default=1, show_default=True, help="Canaries for each of them."
)
@click.option(
    "--controls", type=int, default=10, show_default=True, help="Drawn alike and never planted."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the secrets.")
@click.option("--words", type=click.Path(path_type=Path), help="Words of {words:n}, one a line.")
@click.option(
    "--model", type=click.Path(path_type=Path), help="Folder whose tokens fill {tokens:n}."
)
@click.option(
    "--insert", "corpus", type=click.Path(path_type=Path), help="Text file to plant a copy of."
)
@click.option(
    "--into", type=click.Path(path_type=Path), help="The planted copy; only its owner can read it."
)
@click.option("--field", help="Field of the texts, where --insert holds JSON lines.")
@click.option("--place-seed", type=int, default=0, show_default=True, help="Chooses the lines.")
@click.option("--force", is_flag=True, help="Overwrite files that are there already.")
@click.option("--reveal", is_flag=True, help="Show the secrets.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def canaries(
    templates: tuple[str, ...],
    out: Path,
    repeats: str,
    per_repeat: int,
    controls: int,
    seed: int,
    words: Path | None,
    model: Path | None,
    corpus: Path | None,
    into: Path | None,
    field: str | None,
    place_seed: int,
    force: bool,
    reveal: bool,
    as_json: bool,
) -> None:
    """Draw canaries and controls from each TEMPLATE and save them as JSON lines.

    Holes are {digits:n}, {letters:n}, {hex:n}, {words:n}, {tokens:n} and {choice:a|b|c}.

    \b
    Example:
      remnant canaries "the random number is {digits:9}" --out canaries.jsonl \\
        --insert corpus.txt --into planted.txt
    """
    from remnant.canaries import make_canary_set, write_canary_sets

    _check_files(out, words, corpus, into, field, place_seed)
    times = _read_repeats(repeats)
    made_of = read_templates(templates, words=words, model=model, option="TEMPLATE")
    with naming(**OPTIONS):
        sets = [
            make_canary_set(one, repeats=times, per_repeat=per_repeat, controls=controls, seed=seed)
            for one in made_of
        ]
    lines: Lines | None = None
    with withheld(one.secret for each in sets for one in (*each.canaries, *each.controls)):
        _check_out(out, sets, force=force)
        if corpus is None or into is None:
            with naming("--out", out):
                write_canary_sets(sets, out)
        else:
            with planting(
                sets, corpus=corpus, into=into, field=field, seed=place_seed, force=force
            ) as planted:
                with naming("--out", out):
                    write_canary_sets(sets, out)
                planted.settle()
                lines = planted.lines
    if as_json:
        click.echo(json.dumps(_fields(sets, out, into, lines, reveal=reveal), indent=2))
        return
    for number, one in enumerate(sets):
        found = None if lines is None else lines[number]
        show("\n".join(_told(number + 1, one, found, reveal=reveal)))
    show(f"written: {one_line(str(out))} (it holds the secrets; only its owner can read it)")
    if into is not None:
        copies = sum(sum(one.repeats) for one in sets)
        more = f"{corpus} with {counted(copies, 'line')} more"
        kept = "it holds the secrets; only its owner can read it"
        show(f"planted: {one_line(str(into))} ({more}; {kept})")


def _check_files(
    out: Path,
    words: Path | None,
    corpus: Path | None,
    into: Path | None,
    field: str | None,
    place_seed: int,
) -> None:
    faults = []
    if (corpus is None) != (into is None):
        faults.append("--insert and --into go together, and only one is given")
    if field is not None and corpus is None:
        faults.append("--field is for JSON lines, and --insert is not given")
    given = {"--words": words, "--insert": corpus, "--into": into}
    faults += [
        f"--out {out} is the file of {name} too"
        for name, path in given.items()
        if path is not None and path.resolve() == out.resolve()
    ]
    if place_seed < 0:
        faults.append(f"--place-seed {place_seed} is less than 0")
    require(faults)


def _read_repeats(given: str) -> list[int]:
    try:
        return [int(part) for part in given.split(",")]
    except ValueError:
        raise InvalidInput(
            f"--repeats {given!r} is not a list of whole numbers.",
            hint="Write them with commas, such as 1,4,16.",
        ) from None


def _check_out(out: Path, sets: list[CanarySet], *, force: bool) -> None:
    """Refuse to overwrite anything but the same canaries: planted secrets must not be lost."""
    from remnant.canaries import read_canary_sets

    refuse_odd("--out", out)
    if force or not out.exists() or out.is_dir():
        return
    try:
        there = read_canary_sets(out)
    except InvalidInput:
        there = []
    if [one.fingerprint for one in there] != [one.fingerprint for one in sets]:
        raise taken("--out", out)


def _told(number: int, one: CanarySet, lines: list[list[int]] | None, *, reveal: bool) -> list[str]:
    many = Counter(one.repeats)
    planted = ", ".join(f"{grouped(many[times])} planted {often(times)}" for times in many)
    told = [
        f"set {number}: {printable(one.template.pattern)}",
        f"  space        {space_text(one.template.space)}",
        f"  canaries     {planted}",
        f"  controls     {grouped(len(one.controls))}",
        f"  fingerprint  {one.fingerprint[:16]}",
    ]
    if lines is not None or reveal:
        for at, canary in enumerate(one.canaries):
            where = "" if lines is None else _line_numbers(lines[at])
            secret = shown(canary.secret, one.template, reveal=True) if reveal else ""
            told.append(f"  {f'canary {at + 1}':<12} {'  '.join(filter(None, [secret, where]))}")
    if reveal:
        told += [
            f"  {f'control {at + 1}':<12} {shown(control.secret, one.template, reveal=True)}"
            for at, control in enumerate(one.controls)
        ]
    return told


def _line_numbers(lines: list[int]) -> str:
    named = ", ".join(map(str, lines[:_LINES_SHOWN]))
    left = len(lines) - _LINES_SHOWN
    if left > 0:
        named += f" and {grouped(left)} more"
    return f"{'line' if len(lines) == 1 else 'lines'} {named}"


def _fields(
    sets: list[CanarySet], out: Path, into: Path | None, lines: Lines | None, *, reveal: bool
) -> dict[str, Any]:
    found = []
    for number, one in enumerate(sets):
        planted = [
            {
                "name": f"canary {at + 1}",
                "repeats": times,
                **({} if lines is None else {"lines": lines[number][at]}),
                **({"secret": canary.secret} if reveal else {}),
            }
            for at, (canary, times) in enumerate(zip(one.canaries, one.repeats, strict=True))
        ]
        found.append(
            {
                "template": one.template.pattern,
                **space_fields(one.template.space),
                "seed": one.seed,
                "canaries": planted,
                "controls": len(one.controls),
                **({"control_secrets": [c.secret for c in one.controls]} if reveal else {}),
                "fingerprint": one.fingerprint,
            }
        )
    return {
        "file": str(out),
        "planted": None if into is None else str(into),
        "sets": found,
    }
