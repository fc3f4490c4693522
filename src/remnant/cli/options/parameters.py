"""What each command asks of each parameter: plain paths, usable numbers, no repeated values."""

from __future__ import annotations

import errno
import math
import os
import stat
from collections import Counter
from collections.abc import Callable
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
_UNUSABLE = {
    errno.ELOOP: "is a loop of links",
    errno.ENAMETOOLONG: "is a longer name than the file system allows",
}
LARGEST = 10**12
LARGEST_SEED = 2**63 - 1
LARGEST_OF = {
    "--threads": 1024,
    **dict.fromkeys(("--seed", "--place-seed"), LARGEST_SEED),
    **dict.fromkeys(("--directions", "--repeats", "--per-repeat", "--controls"), 10**6),
}
SMALLEST = 1e-9
_NUMBERS = (click.types.IntParamType, click.types.FloatParamType)


class PlainPath(click.Path):
    """A path to a file or folder, which need not exist.

    A FIFO, a socket or a device is refused, because reading it may never end; and a loop of links,
    which leads nowhere.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path.

        Raises:
            InvalidInput: It is neither a file nor a folder, nor can it become one.
        """
        path = super().convert(value, param, ctx)
        try:
            kind = _KINDS.get(stat.S_IFMT(os.stat(path).st_mode))
            fault = None if kind is None else f"is {kind}, not a regular file"
        except ValueError:
            fault = "holds a null character"
        except OSError as error:  # no such file: the command says so
            fault = _UNUSABLE.get(error.errno or 0)
        if fault is not None:
            raise InvalidInput(
                f"{_option(param)}{one_line(str(path))} {fault}.", hint="Pass a file or folder."
            )
        return path


def checked(command: click.Command) -> click.Command:
    """Check every parameter of a command, and of the commands of a group.

    Each path is a ``PlainPath``. A number is no larger than ``LARGEST_OF`` its option or
    ``LARGEST``, and no closer to zero than ``SMALLEST``. An option that takes one value is given
    once.
    """
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        checked(inner)
    for param in command.params:
        if isinstance(param.type, click.Path):
            param.type = PlainPath()
        elif isinstance(param.type, _NUMBERS):
            param.callback = _within_limits(param.callback)
    return command


def _within_limits(
    callback: Callable[[click.Context, click.Parameter, Any], Any] | None,
) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def check(context: click.Context, param: click.Parameter, value: Any) -> Any:
        for number in value if isinstance(value, tuple) else (value,):
            if number is not None:
                check_number(param.opts[0], number)
        return value if callback is None else callback(context, param, value)

    return check


def check_number(option: str, number: float) -> None:
    """Refuse a number that no computation here can use.

    Raises:
        InvalidInput: It is too large, or too close to zero.
    """
    largest = LARGEST_OF.get(option, LARGEST)
    if math.isfinite(number) and abs(number) > largest:
        limit = f"{largest:,}".replace(",", " ")
        raise InvalidInput(
            f"{option} {_digits(number)} is too large.", hint=f"Pass at most {limit}."
        )
    if 0 < abs(number) < SMALLEST:
        raise InvalidInput(
            f"{option} {number:g} is too close to 0.", hint=f"Pass {SMALLEST:g} or more."
        )


def _digits(number: float) -> str:
    return f"{float(number):g}" if abs(number) < 1e300 else "of more than 300 digits"


class OnceOnly(click.Group):
    """A group whose commands refuse an option of one value that is given twice."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command and its arguments.

        Raises:
            InvalidInput: An option that takes one value is given twice.
        """
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group):
            inner = click.Context(command, info_name=name, parent=ctx, resilient_parsing=True)
            try:
                _, _, order = command.make_parser(inner).parse_args(list(rest))
            except click.UsageError:  # the command says so
                order = []
            for param, times in Counter(order).items():
                if isinstance(param, click.Option) and times > 1 and _takes_one(param):
                    raise InvalidInput(
                        f"{param.opts[0]} is given {times} times and takes one value.",
                        hint="Give it once.",
                    )
        return name, command, rest


def _takes_one(option: click.Option) -> bool:
    return not (option.multiple or option.is_flag or option.count)


def _option(param: click.Parameter | None) -> str:
    return f"{param.opts[0]} " if isinstance(param, click.Option) else ""
