"""What each command asks of each parameter, and what records show of them.

Asked are plain paths, usable numbers and no repeated values; shown are paths, numbers and choices,
and dots for any other text.
"""

from __future__ import annotations

import errno
import math
import os
import shlex
import stat
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

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
_OUTPUTS = ("out", "into", "report")
_FOLDERS_OF_DATA = ("data", "pool")  # their contents have a fingerprint of their own
_SHOWN = ("device", "served_model", "limit")  # texts that are no secrets
_UNNAMED = ("scan",)  # names of the files that it reads may hold secrets
_AMOUNTS = ("verbose", "quiet")  # they change nothing that is recorded
_HIDDEN = "…"


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


def _option(param: click.Parameter | None) -> str:
    return f"{param.opts[0]} " if isinstance(param, click.Option) else ""


def noted(command: click.Command) -> click.Command:
    """Let a command, or the commands of a group, be named in the records that they write.

    Only commands with ``--out`` write any; the others, such as ``recipe list``, answer without
    loading what a record needs.
    """
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        noted(inner)
    writes = any(param.name == "out" for param in command.params)
    if not isinstance(command, click.Group) and command.callback is not None and writes:
        command.callback = _noting(command.callback)
    return command


def _noting(callback: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(callback)
    def run(*arguments: Any, **options: Any) -> Any:
        from remnant.records.provenance import Command, running

        context = click.get_current_context()
        named = context.command.name not in _UNNAMED
        command = Command(
            line=" ".join([context.command_path, *_words(context, named=named)]),
            inputs=_inputs(context),
            named=named,
        )
        with running(command):
            return callback(*arguments, **options)

    return run


def _given(context: click.Context) -> Iterator[tuple[click.Parameter, tuple[Any, ...]]]:
    """Each parameter on the command line with its values; a flag has none."""
    for param in context.command.params:
        name = param.name or ""
        value: Any = context.params.get(name, context.meta.get(name))
        if param.name in _AMOUNTS:
            continue
        if context.get_parameter_source(param.name or "") != ParameterSource.COMMANDLINE:
            continue
        if isinstance(param, click.Option) and param.is_flag:
            yield param, ()
        else:
            yield param, value if isinstance(value, tuple) else (value,)


def _words(context: click.Context, *, named: bool) -> Iterator[str]:
    arguments: list[str] = []
    for param, values in _given(context):
        words = [_word(param, value, named=named) for value in values]
        if isinstance(param, click.Argument):
            arguments += words
        elif not words:
            yield param.opts[0]
        for word in words if isinstance(param, click.Option) else ():
            yield f"{param.opts[0]} {word}"
    yield from arguments


def _word(param: click.Parameter, value: Any, *, named: bool) -> str:
    is_plain = isinstance(value, int | float) or isinstance(param.type, click.Choice)
    if isinstance(value, Path) and (named or isinstance(param, click.Option)):
        return shlex.quote(str(value))
    return shlex.quote(str(value)) if is_plain or param.name in _SHOWN else _HIDDEN


def _inputs(context: click.Context) -> dict[str, tuple[Path, ...]]:
    made: dict[str, tuple[Path, ...]] = {}
    for param, values in _given(context):
        paths = tuple(value for value in values if isinstance(value, Path))
        if paths and param.name not in (*_OUTPUTS, *_FOLDERS_OF_DATA):
            made[param.opts[0] if isinstance(param, click.Option) else param.name or ""] = paths
    return made
