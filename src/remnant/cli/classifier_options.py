"""Options that name a classifier of somebody else's, for the commands that ask one."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import click

from remnant.cli.naming import naming
from remnant.errors import InvalidInput

Command = TypeVar("Command", bound=Callable[..., Any] | click.Command)
# The library's arguments, and the options that they come from.
NAMES = {
    "architecture": "--architecture",
    "maker": "--maker",
    "model": "--architecture",
    "device": "--device",
    "mean": "--mean",
    "std": "--std",
    "batch": "--batch",
}


def _numbers(
    context: click.Context, parameter: click.Parameter, given: str | None
) -> tuple[float, ...] | None:
    if given is None:
        return None
    try:
        return tuple(float(one) for one in given.split(","))
    except ValueError:
        raise InvalidInput(
            f"{parameter.opts[0]} {given} is not a list of numbers.", hint="Such as 0.49,0.48,0.45."
        ) from None


def _settings(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidInput(f"--option {one} is not of the form NAME=VALUE.")
        try:
            found[name] = json.loads(value)
        except ValueError:
            raise InvalidInput(
                f"--option {one}: {value} is no value.", hint="Such as 0.5, 3, true or false."
            ) from None
    return found


def path_option(name: str, *, help: str, required: bool = False) -> Callable[[Command], Command]:
    """Make an option that takes a path."""
    return click.option(name, type=click.Path(path_type=Path), required=required, help=help)


def numbers_option(name: str, *, help: str) -> Callable[[Command], Command]:
    """Make an option that takes numbers with commas between them."""
    return click.option(name, callback=_numbers, help=help)


def network_options(command: Command) -> Command:
    """Add the options that say which network weights belong to."""
    for add in (
        click.option("--maker", help="For weights: package.module:function that makes it."),
        click.option(
            "--option",
            "options",
            multiple=True,
            callback=_settings,
            help="Of the architecture: NAME=VALUE; may be repeated.",
        ),
        click.option("--architecture", help="For weights: a network of the recipes, such as cnn1."),
    ):
        command = add(command)
    return command


def normalisation_options(command: Command) -> Command:
    """Add the options that say how images were normalised in training."""
    for add in (
        numbers_option("--std", help="Images are divided by it, likewise."),
        numbers_option("--mean", help="Subtracted from images, with commas a channel."),
    ):
        command = add(command)
    return command


def naming_classifier(option: str, path: Path) -> AbstractContextManager[None]:
    """Let errors about the classifier of this option name options of the command line."""
    return naming(option, path, folder=option, **NAMES)
