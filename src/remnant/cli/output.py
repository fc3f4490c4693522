"""How commands without a run folder print a result: as JSON, or as a page on the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from remnant.report.blocks import Block, Check, Page


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


def outcome_and_page_text(title: str, blocks: Iterable[Block]) -> str:
    """Return such a page as text for the terminal, after the outcome where it has one."""
    from remnant.report import terminal

    page = command_page(title, blocks)
    return "\n\n".join(part for part in (terminal.summary(page), terminal.detail(page)) if part)


def page_text(title: str, blocks: Iterable[Block]) -> str:
    """Return such a page as text for the terminal."""
    from remnant.report import terminal

    return terminal.detail(command_page(title, blocks))
