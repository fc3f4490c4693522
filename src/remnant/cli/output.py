"""How commands without a run folder print a result: as JSON, or as a page on the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from remnant.report.blocks import Block, Page


def json_text(result: Any, **facts: Any) -> str:
    """Return a result, a dataclass, as JSON.

    Args:
        result: The result.
        facts: What else to say, after the fields of the result.
    """
    from remnant.records.typed import plain

    return json.dumps({**plain(result), **facts}, indent=2, allow_nan=False)


def print_json(result: Any) -> None:
    """Print a result, a dataclass, as JSON."""
    click.echo(json_text(result))


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
