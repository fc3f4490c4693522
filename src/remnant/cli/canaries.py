"""``remnant canaries``: make canary sets, and plant them in a text file."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.help.command import Command
from remnant.cli.options import declared
from remnant.cli.options.canary_sets import secrets_of
from remnant.cli.options.naming import naming
from remnant.cli.options.out_files import other_content
from remnant.cli.options.parameters import check_number
from remnant.cli.options.planting import Lines, planting
from remnant.cli.options.templates import read_templates
from remnant.cli.redaction import withheld
from remnant.cli.terminal import one_line, show
from remnant.errors import InvalidInput, require
from remnant.report.numerals import printable

if TYPE_CHECKING:
    from remnant.canaries import CanarySet

_LINES_SHOWN = 8
_LARGEST_SHOWN = 10**30
_PRIVATE = "it holds the secrets; only its owner can read it"
OPTIONS = declared.option_names("repeats", "per_repeat", "controls", "seed")


@click.command(
    cls=Command, short_help="Make canaries from templates, and plant them in a text file."
)
@click.argument("templates", metavar="TEMPLATE...", nargs=-1, required=True)
@declared.path(
    "--out",
    "-o",
    required=True,
    help="File for the canaries and their secrets; only its owner can read it.",
)
@click.option(
    "--repeats",
    default="1,4,16",
    show_default=True,
    help="How often to plant a canary, separated by commas.",
)
@declared.number("--per-repeat", 1, help="Canaries for each number in --repeats.")
@declared.number("--controls", 10, help="Secrets drawn the same way and never planted.")
@click.option("--seed", type=int, help="Seed of the secrets; by default random, kept in --out.")
@declared.words
@declared.path("--model", help="Folder of the model whose tokens fill {tokens:n}.")
@declared.base
@declared.path("--insert", "corpus", help="Text file into a copy of which canaries are planted.")
@declared.path("--into", help="File for that copy; only its owner can read it.")
@click.option("--field", help="Field that holds the text, if --insert is JSON lines.")
@declared.number("--place-seed", 0, help="Seed of the lines where canaries are planted.")
@declared.flag("--force", help="Overwrite files that exist.")
@declared.reveal
@declared.as_json
def canaries(
    templates: tuple[str, ...],
    out: Path,
    repeats: str,
    per_repeat: int,
    controls: int,
    seed: int | None,
    words: Path | None,
    model: Path | None,
    base: Path | None,
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
    from remnant.canaries.whole_file import one_writer

    _check_files(out, words, corpus, into, field, place_seed)
    times = _read_repeats(repeats)
    if base is not None and model is None:
        raise InvalidInput("--base needs --model.", hint="Pass --model DIR, or leave it out.")
    made_of = read_templates(templates, words=words, model=model, option="TEMPLATE", base=base)
    drawn_with = _drawn_with(out, force=force) if seed is None else seed
    with naming(**OPTIONS):
        sets = [
            make_canary_set(
                template, repeats=times, per_repeat=per_repeat, controls=controls, seed=drawn_with
            )
            for template in made_of
        ]
    _check_distinct(sets)
    lines: Lines | None = None
    with withheld(secrets_of(sets)):
        _check_out(out, sets, force=force)
        if corpus is None or into is None:
            with one_writer(out), naming("--out", out):
                _check_out(out, sets, force=force)
                write_canary_sets(sets, out)
        else:
            with (
                planting(
                    sets, corpus=corpus, into=into, field=field, seed=place_seed, force=force
                ) as planted,
                one_writer(out, into),
            ):
                _check_out(out, sets, force=force)
                planted.check()
                with naming("--out", out):
                    write_canary_sets(sets, out)
                planted.settle()
                lines = planted.lines
    if as_json:
        click.echo(json.dumps(_fields(sets, out, into, lines, reveal=reveal), indent=2))
        return
    for number, canary_set in enumerate(sets):
        own_lines = None if lines is None else lines[number]
        show("\n".join(_text(number + 1, canary_set, own_lines, reveal=reveal)))
    show(f"written: {one_line(str(out))} ({_PRIVATE})")
    if into is not None:
        copies = sum(sum(canary_set.repeats) for canary_set in sets)
        more = f"{corpus} with {_grouped(copies)} line{'' if copies == 1 else 's'} more"
        show(f"planted: {one_line(str(into))} ({more}; {_PRIVATE})")


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
        faults.append("--insert and --into belong together, and only one is given")
    if field is not None and corpus is None:
        faults.append("--field needs --insert")
    given = {"--words": words, "--insert": corpus, "--into": into}
    faults += [
        f"--out {out} is also the file of {name}"
        for name, path in given.items()
        if path is not None and path.resolve() == out.resolve()
    ]
    require(faults + declared.too_small(place_seed=(place_seed, 0)))


def _check_distinct(sets: list[CanarySet]) -> None:
    """Refuse templates that give equal canaries: these would be counted once."""
    from remnant.canaries import distinct_canaries

    distinct = distinct_canaries(dict(enumerate(sets)))
    if distinct.canaries or distinct.controls:
        raise InvalidInput(
            f"{distinct.canaries} canaries and {distinct.controls} controls of these templates are "
            "equal to others: the same text, but for case and white space, or a part of it.",
            hint="Leave one of the templates out, or use templates that differ in their words.",
        )


def _read_repeats(given: str) -> list[int]:
    try:
        times = [int(part) for part in given.split(",")]
    except ValueError:
        raise InvalidInput(
            f"--repeats {given!r} is not a list of whole numbers.",
            hint="Separate them by commas, such as 1,4,16.",
        ) from None
    for number in times:
        check_number("--repeats", number)
    return times


def _drawn_with(out: Path, *, force: bool) -> int:
    """The seed of the canaries that are there, so that the same command gives the same; or one."""
    from remnant.canaries.canary_set import random_seed

    there = [] if force else _sets_there(out)
    return there[0].seed if there else random_seed()


def _sets_there(out: Path) -> list[CanarySet]:
    """The sets of a file of canaries; none where it is no such file."""
    from remnant.canaries import read_canary_sets

    try:
        return read_canary_sets(out) if out.is_file() else []
    except InvalidInput:
        return []


def _check_out(out: Path, sets: list[CanarySet], *, force: bool) -> None:
    """Refuse to overwrite anything but the same canaries: planted secrets must not be lost."""
    if force or not out.exists() or out.is_dir():
        return
    there = _sets_there(out)
    if [old.fingerprint for old in there] != [new.fingerprint for new in sets]:
        raise other_content("--out", out)


def _text(
    number: int, canary_set: CanarySet, lines: list[list[int]] | None, *, reveal: bool
) -> list[str]:
    """The lines that are printed for a set."""
    template, controls = canary_set.template, canary_set.controls
    space = template.space
    many = Counter(canary_set.repeats)
    planted = ", ".join(f"{_grouped(many[times])} planted {_often(times)}" for times in many)
    secrets = "secret" if space == 1 else "secrets"
    text = [
        f"set {number}: {printable(template.pattern)}",
        f"  space        {_grouped(space)} {secrets} ({math.log2(space):.1f} bits)",
        f"  canaries     {planted}",
        f"  controls     {_grouped(len(controls))}",
        f"  fingerprint  {canary_set.fingerprint[:16]}",
    ]
    if lines is not None or reveal:
        for at, canary in enumerate(canary_set.canaries):
            where = "" if lines is None else _line_numbers(lines[at])
            secret = printable(canary.secret) if reveal else ""
            text.append(f"  {f'canary {at + 1}':<12} {'  '.join(filter(None, [secret, where]))}")
    if reveal:
        text += [
            f"  {f'control {at}':<12} {printable(control.secret)}"
            for at, control in enumerate(controls, start=1)
        ]
    return text


def _line_numbers(lines: list[int]) -> str:
    text = ", ".join(map(str, lines[:_LINES_SHOWN]))
    left = len(lines) - _LINES_SHOWN
    if left > 0:
        text += f" and {_grouped(left)} more"
    return f"{'line' if len(lines) == 1 else 'lines'} {text}"


def _grouped(number: int) -> str:
    """A whole number with its digits in groups of three, or its power of two."""
    if number >= _LARGEST_SHOWN:
        return f"about 2^{number.bit_length() - 1}"
    return f"{number:,}".replace(",", " ")


def _often(repeats: int) -> str:
    return {0: "never", 1: "once"}.get(repeats, f"{_grouped(repeats)} times")


def _fields(
    sets: list[CanarySet], out: Path, into: Path | None, lines: Lines | None, *, reveal: bool
) -> dict[str, Any]:
    """The plain data that ``--json`` prints."""
    from remnant.studies.shared.wording import whole

    rows = []
    for number, canary_set in enumerate(sets):
        planted = [
            {
                "name": f"canary {at + 1}",
                "repeats": times,
                **({} if lines is None else {"lines": lines[number][at]}),
                **({"secret": canary.secret} if reveal else {}),
            }
            for at, (canary, times) in enumerate(
                zip(canary_set.canaries, canary_set.repeats, strict=True)
            )
        ]
        controls = [control.secret for control in canary_set.controls]
        space = canary_set.template.space
        rows.append(
            {
                "template": canary_set.template.pattern,
                **whole("space", space),
                "space_bits": math.log2(space),
                **({"seed": canary_set.seed} if reveal else {}),
                "canaries": planted,
                "controls": len(controls),
                **({"control_secrets": controls} if reveal else {}),
                "fingerprint": canary_set.fingerprint,
            }
        )
    return {"file": str(out), "planted": None if into is None else str(into), "sets": rows}
