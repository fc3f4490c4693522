"""How commands print a result: as JSON, as an outcome, or as a page with its tables."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

import click

from remnant.cli.options.declared import Command
from remnant.cli.terminal import show
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.report.blocks import Block, Check, Page
    from remnant.report.terminal import Screen

Amount = Literal["quiet", "outcome", "verbose"]
PIPED_WIDTH, LEAST_WIDTH = 80, 40
_AMOUNT = "remnant.amount"  # in a context's meta


def json_text(result: Any, *, checks: Iterable[Check] = (), **facts: Any) -> str:
    """Return a result, a dataclass, as JSON.

    Args:
        result: The result.
        checks: What stands beside its outcome; put under its verdict, where it has one.
        facts: What else to say, after the fields of the result.
    """
    from remnant.records.typed import plain
    from remnant.report.blocks import checks_json

    data = plain(result)
    if data.get("verdict") is not None and (beside := checks_json(checks)):
        data["verdict"]["beside"] = beside
    return json.dumps({**data, **facts}, indent=2, allow_nan=False)


def print_json(result: Any, *, checks: Iterable[Check] = ()) -> None:
    """Print a result, a dataclass, as JSON; see ``json_text``."""
    click.echo(json_text(result, checks=checks))


def command_page(title: str, blocks: Iterable[Block]) -> Page:
    """Return the page of a command's result, which belongs to no run."""
    from remnant.report.blocks import Page

    return Page(
        title=title, question="", name="", fingerprint="", complete=True, blocks=tuple(blocks)
    )


def amount_options(command: Command) -> Command:
    """Add ``-v`` and ``-q``, which say how much ``print_page`` prints."""
    verbose = _amount("--verbose", "-v", help="Also print the tables.")
    quiet = _amount("--quiet", "-q", help="Print one line.")
    return verbose(quiet(command))


def _amount(name: str, short: str, *, help: str) -> Callable[[Command], Command]:
    return click.option(
        name, short, is_flag=True, expose_value=False, callback=_note_amount, help=help
    )


def _note_amount(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    if not given:
        return
    if context.meta.setdefault(_AMOUNT, parameter.name) != parameter.name:
        raise InvalidInput("--verbose and --quiet are both given.", hint="Pass one of them.")


def amount() -> Amount:
    """Return how much the command prints."""
    context = click.get_current_context(silent=True)
    chosen: Amount = "outcome" if context is None else context.meta.get(_AMOUNT, "outcome")
    return chosen


def screen() -> Screen:
    """Return where standard output is shown: a terminal of some width, or a pipe of 80 columns."""
    from remnant.report.terminal import Screen

    if not sys.stdout.isatty():
        return Screen(PIPED_WIDTH)
    width = max(shutil.get_terminal_size((PIPED_WIDTH, 24)).columns, LEAST_WIDTH)
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return Screen(width, box=True, colour=not plain)


def page_text(page: Page, *, named: bool = False) -> str:
    """Return a page as text for standard output: as much as ``-v`` and ``-q`` say.

    A page without an outcome, such as what ``remnant extract`` finds, has its tables always.

    Args:
        page: Of a run or of a command.
        named: Whether it is one of several, which say their names and leave the tables out.
    """
    from remnant.report import terminal
    from remnant.report.first_screen import judged

    wanted, shown_on = amount(), screen()
    if not judged(page):
        text = terminal.detail(page, shown_on)
        return text.partition("\n")[0] if wanted == "quiet" else text
    if wanted == "quiet":
        return terminal.one_line(page, shown_on, named=named)
    if wanted == "outcome":
        return terminal.outcome(page, shown_on, named=named)
    whole = terminal.summary(page, shown_on, named=named)
    parts = (whole,) if named else (whole, terminal.detail(page, shown_on))
    return "\n\n".join(part for part in parts if part)


def print_page(page: Page) -> None:
    """Print a page, escaped; see ``page_text``."""
    show(page_text(page))
