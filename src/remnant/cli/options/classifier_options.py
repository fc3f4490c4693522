"""Options that name a third-party classifier, for the commands that test one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.options.declared import Command, given, option_names
from remnant.cli.options.naming import naming
from remnant.cli.options.parameters import check_number
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from torch import nn

# The library's arguments, and the options that they come from.
NAMES = {
    **option_names("architecture", "maker", "device", "mean", "std", "batch"),
    "model": "--architecture",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkOptions:
    """The options that say which network weights belong to, and how images were normalised."""

    architecture: str | None
    options: Mapping[str, Any]
    maker: str | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    device: str

    def network_faults(self) -> list[str]:
        """Return which of these options contradict each other."""
        faults = []
        if (self.mean is None) != (self.std is None):
            faults.append("--mean and --std belong together")
        if self.architecture is not None and self.maker is not None:
            faults.append("--architecture and --maker are both given; pass one of them")
        return faults

    def load(self, path: Path, *, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Load a classifier; see ``load_classifier``."""
        from remnant.integrations.classifiers import load_classifier

        return load_classifier(
            path,
            shape=shape,
            classes=classes,
            architecture=self.architecture,
            options=self.options,
            maker=self.maker,
            device=self.device,
        )


def refuse_unused(kind: str, **values: object) -> None:
    """Refuse options that have no meaning for a kind of model.

    Raises:
        InvalidInput: One of them is given.
    """
    for option in given(values):
        raise InvalidInput(f"{option} is not for {kind}.", hint="Leave it out.")


def _numbers(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        numbers = tuple(float(number) for number in text.split(","))
    except ValueError:
        raise InvalidInput(
            f"{parameter.opts[0]} {text} is not a list of numbers.", hint="Such as 0.49,0.48,0.45."
        ) from None
    for number in numbers:
        check_number(parameter.opts[0], number)
    return numbers


def _settings(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidInput(f"--option {text} is not of the form NAME=VALUE.")
        try:
            settings[name] = json.loads(value)
        except ValueError:
            raise InvalidInput(
                f"--option {text}: {value} is no value.", hint="Such as 0.5, 3, true or false."
            ) from None
    return settings


def numbers_option(name: str, *, help: str) -> Callable[[Command], Command]:
    """Make an option that takes numbers separated by commas."""
    return click.option(name, callback=_numbers, help=help)


def network_options(command: Command) -> Command:
    """Add the options that say which network weights belong to."""
    maker = click.option("--maker", help="For weights: package.module:function that makes it.")
    option = click.option(
        "--option",
        "options",
        multiple=True,
        callback=_settings,
        help="Option of the architecture, NAME=VALUE. May be repeated.",
    )
    architecture = click.option(
        "--architecture", help="For weights: a network of the recipes, such as cnn1."
    )
    return architecture(option(maker(command)))


def normalisation_options(command: Command) -> Command:
    """Add the options that say how images were normalised in training."""
    std = numbers_option("--std", help="Divides images, one number per channel.")
    mean = numbers_option("--mean", help="Subtracted from images, one number per channel.")
    return mean(std(command))


def naming_classifier(option: str, path: Path) -> AbstractContextManager[None]:
    """Let errors about the classifier of this option name options."""
    return naming(option, path, folder=option, **NAMES)
