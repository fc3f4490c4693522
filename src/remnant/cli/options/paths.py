"""Paths on the command line: files and folders, but no devices or pipes."""

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

    A FIFO, a socket or a device is refused, because reading it may never end.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path.

        Raises:
            InvalidInput: It is neither a file nor a folder.
        """
        path = super().convert(value, param, ctx)
        try:
            kind = _KINDS.get(stat.S_IFMT(os.stat(path).st_mode))
        except (OSError, ValueError):  # no such file: the command says so
            return path
        if kind is not None:
            option = param.opts[0] + " " if isinstance(param, click.Option) else ""
            raise InvalidInput(
                f"{option}{one_line(str(path))} is {kind}, not a regular file.",
                hint="Pass a file or folder.",
            )
        return path


def plain_paths(command: click.Command) -> click.Command:
    """Let every path that a command, or a command of a group, takes be a ``PlainPath``."""
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        plain_paths(inner)
    for param in command.params:
        if isinstance(param.type, click.Path):
            param.type = PlainPath()
    return command
