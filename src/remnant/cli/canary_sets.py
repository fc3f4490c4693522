"""``--canaries``: the sets of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from remnant.cli.naming import naming
from remnant.cli.redaction import printable
from remnant.errors import InvalidInput

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


def check_template(sets: list[CanarySet], template: Template, file: Path) -> None:
    """Refuse canaries none of which the template could give: all candidates would be strangers.

    Raises:
        InvalidInput: No set has this template, and no text of theirs is one of its texts.
    """
    if any(one.template.pattern == template.pattern or _fits(one, template) for one in sets):
        return
    held = ", ".join(dict.fromkeys(printable(one.template.pattern) for one in sets))
    raise InvalidInput(
        f"No set of --canaries {file} has the template {printable(template.pattern)}; it has: "
        f"{held}.",
        hint="Pass one of these as --template, or leave --canaries out.",
    )


def _fits(one: CanarySet, template: Template) -> bool:
    before, after = template.prefix, template.suffix
    return any(
        text.startswith(before)
        and text.endswith(after)
        and text[len(before) : len(text) - len(after)] in template
        for text in (canary.text for canary in (*one.canaries, *one.controls))
    )
