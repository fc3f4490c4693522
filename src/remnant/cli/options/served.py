"""A model that a server holds, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from remnant.cli.options import declared
from remnant.cli.options.naming import naming
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.integrations.served import ServedModel

Command = TypeVar("Command", bound=Callable[..., Any] | click.Command)
NAMES = ("served", "served_model", "served_token_env", "allow_remote")
_OPTIONS = (
    declared.path(
        "--model",
        help="Folder of a Remnant checkpoint, a Hugging Face model or a PEFT adapter.",
    ),
    click.option(
        "--served",
        metavar="URL",
        help="Instead of --model: a server with an OpenAI-compatible completions endpoint, such as "
        "http://127.0.0.1:8000.",
    ),
    click.option("--served-model", metavar="NAME", help="Name under which it serves the model."),
    click.option(
        "--served-token-env",
        metavar="NAME",
        help="Environment variable with its bearer token.  [default: REMNANT_SERVED_TOKEN, if set]",
    ),
    declared.flag("--allow-remote", help="Let texts be sent to a server on another machine."),
)


def served_options(command: Command) -> Command:
    """Declare ``--model`` and the options of a server, one of which has to be given."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_served(
    given: dict[str, Any],
    *,
    model: Path | None,
    unused: dict[str, Any],
    max_seconds: float | None,
) -> ServedModel | None:
    """Return the served model; None where ``--model`` names a folder.

    Args:
        given: The options of ``NAMES``.
        model: The value of ``--model``.
        unused: Options that need a folder, with their values.
        max_seconds: For all requests together; None for no limit.

    Raises:
        InvalidInput: Neither a folder nor a server is given, or both; options that do not belong
            together; a server that cannot be asked.
    """
    url = given["served"]
    if (model is None) == (url is None):
        both = "both" if url is not None else "neither"
        raise InvalidInput(f"--model and --served are {both} given.", hint="Pass one of them.")
    if url is None:
        for option in declared.given({name: given[name] for name in NAMES}):
            raise InvalidInput(f"{option} needs --served.", hint="Leave it out.")
        return None
    if not given["served_model"]:
        raise InvalidInput(
            "--served needs --served-model, the name of the model.",
            hint="A server lists its names at /v1/models.",
        )
    for option in declared.given({**unused, **_typed("device", "max_nodes", "memory")}):
        raise InvalidInput(f"{option} is not for --served.", hint="Leave it out.")
    from remnant.integrations.served import ServedModel

    names = {"url": "--served", "token_variable": "--served-token-env"}
    with naming(**names, allow_remote="--allow-remote", max_seconds="--max-seconds"):
        try:
            return ServedModel(
                url,
                given["served_model"],
                token_variable=given["served_token_env"],
                allow_remote=given["allow_remote"],
                max_seconds=max_seconds,
            )
        except InvalidInput as fault:
            if fault.hint is not None:
                fault.hint = fault.hint.replace("allow_remote=True", "--allow-remote")
            raise


def _typed(*names: str) -> dict[str, bool]:
    """Which parameters of the command were given, and are not at their default."""
    context = click.get_current_context()
    default = (ParameterSource.DEFAULT, None)
    return {name: context.get_parameter_source(name) not in default for name in names}
