"""Paths as they are given on the command line: files and folders, and nothing that hangs."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import click

from remnant.cli.terminal import one_line
from remnant.errors import InvalidInput

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class PlainPath(click.Path):
    """A path to a file or folder, which need not exist.

    Reading a FIFO, a socket or a device may never end, so that they are refused.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path.

        Raises:
            InvalidInput: There is something that is neither a file nor a folder.
        """
        found = super().convert(value, param, ctx)
        try:
            kind = _KINDS.get(stat.S_IFMT(os.stat(found).st_mode))
        except (OSError, ValueError):  # not there, or no path at all: the command says so
            return found
        if kind is not None:
            option = param.opts[0] + " " if isinstance(param, click.Option) else ""
            raise InvalidInput(
                f"{option}{one_line(str(found))} is {kind}, not a regular file.",
                hint="Pass a file or folder.",
            )
        return found


def plain_paths(command: click.Command) -> click.Command:
    """Let every path that a command takes be a ``PlainPath``."""
    for param in command.params:
        if isinstance(param.type, click.Path):
            param.type = PlainPath()
    return command
