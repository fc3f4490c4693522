"""``--canaries``: the sets of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from remnant.cli.options.naming import naming
from remnant.errors import InvalidInput
from remnant.report.numerals import printable

if TYPE_CHECKING:
    from remnant.canaries import CanarySet, Template


def read_sets(file: Path) -> list[CanarySet]:
    """Read the canary sets of a file.

    Raises:
        InvalidInput: See ``read_canary_sets``; or there is no such file.
    """
    from remnant.canaries import read_canary_sets

    if not file.is_file():
        raise InvalidInput(
            f"--canaries {file} is not a file.",
            hint="Make one with remnant canaries TEMPLATE --out FILE.",
        )
    with naming("--canaries", file):
        return read_canary_sets(file)


def secrets_of(sets: Iterable[CanarySet]) -> list[str]:
    """Return the secrets of all canaries and controls."""
    return [
        canary.secret
        for canary_set in sets
        for canary in (*canary_set.canaries, *canary_set.controls)
    ]


def sets_to_measure(
    sets: list[CanarySet], only: tuple[int, ...], *, file: Path, model: Path | None
) -> dict[int, CanarySet]:
    """Return the sets to measure in a model, by their number in the file, counted from 1.

    With ``--set``, the sets that it names. Otherwise, if each of several trials has its own set,
    the set of the trial at the end of the model's folder name, such as ``planted-2``. Otherwise
    all.

    Raises:
        InvalidInput: There is no such set, or the folder's name names no trial of the file.
    """
    numbered = dict(enumerate(sets, start=1))
    wrong = [number for number in only if number not in numbered]
    if wrong:
        raise InvalidInput(
            f"--set {wrong[0]} is not one of the {len(sets)} sets of {file}.",
            hint=f"Pass a number from 1 to {len(sets)}.",
        )
    if only:
        return {number: numbered[number] for number in numbered if number in only}
    trials = {canary_set.trial for canary_set in sets if canary_set.trial is not None}
    if len(trials) < 2:
        return numbered
    folder = "" if model is None else model.resolve().name
    named = re.fullmatch(r"(?:planted|twin)-([1-9]\d*)", folder)
    trial = int(named[1]) if named else None
    if trial not in trials:
        which = "a served model" if model is None else f"the name of --model {model}"
        raise InvalidInput(
            f"{file} has a set for each of {len(trials)} models, and {which} does not say which "
            "is its own.",
            hint="Pass --set 1 for planted-1 or twin-1, --set 2 for planted-2, and so on.",
        )
    return {number: own for number, own in numbered.items() if own.trial in (None, trial)}


def check_template(sets: list[CanarySet], template: Template, file: Path) -> None:
    """Refuse canaries none of which the template could give: no candidate could be a known one.

    Raises:
        InvalidInput: No set has this template, and none of their texts fits it.
    """
    if any(
        canary_set.template.pattern == template.pattern or _fits(canary_set, template)
        for canary_set in sets
    ):
        return
    held = ", ".join(dict.fromkeys(printable(own.template.pattern) for own in sets))
    raise InvalidInput(
        f"No set of --canaries {file} has the template {printable(template.pattern)}; it has: "
        f"{held}.",
        hint="Pass one of these as --template, or leave --canaries out.",
    )


def _fits(canary_set: CanarySet, template: Template) -> bool:
    before, after = template.prefix, template.suffix
    return any(
        text.startswith(before)
        and text.endswith(after)
        and text[len(before) : len(text) - len(after)] in template
        for text in (canary.text for canary in (*canary_set.canaries, *canary_set.controls))
    )
