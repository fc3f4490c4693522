"""The command line as records show it: paths, numbers and choices, and dots for any other text."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

_OUTPUTS = ("out", "into", "report")
_FOLDERS_OF_DATA = ("data", "pool")  # their contents have a fingerprint of their own
_SHOWN = ("device", "served_model", "limit")  # texts that are no secrets
_UNNAMED = ("scan",)  # names of the files that it reads may hold secrets
_HIDDEN = "…"


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
        value: Any = context.params.get(param.name or "")
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
