"""Options that several commands declare, and their names in messages."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from remnant.cli.terminal import show
from remnant.errors import InvalidInput

Command = TypeVar("Command", bound=Callable[..., Any] | click.Command)
_Choice: Any = click.Choice  # generic from click 8.2 on
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
AUTO = "auto"
_DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # NVIDIA, AMD, Windows' Linux
_MODELS = ("model", "checkpoints")
_SINGULAR = {
    "layers": "layer",
    "options": "option",
    "reference_models": "reference-model",
    "twin_texts": "twin-text",
}


def path(name: str, *aliases: str, help: str, **settings: Any) -> Callable[[Command], Command]:
    """Make an option that takes a path; ``settings`` are those of ``click.option``."""
    return click.option(name, *aliases, type=click.Path(path_type=Path), help=help, **settings)


def number(name: str, default: float, *, help: str) -> Callable[[Command], Command]:
    """Make an option that takes a number of the default's type, and shows the default."""
    return click.option(name, type=type(default), default=default, show_default=True, help=help)


class NamesIn(_Choice):  # type: ignore[misc]
    """A choice among the names of a table of the measures, which is imported when it is asked for.

    ``where`` is ``"module:name"``. Help of all commands loads no NumPy.
    """

    def __init__(self, where: str) -> None:
        self.where, self.case_sensitive = where, True

    def __getattr__(self, name: str) -> Any:
        if name != "choices":
            raise AttributeError(name)
        module, _, table = self.where.partition(":")
        self.choices = tuple(getattr(import_module(module), table))
        return self.choices


def choice(
    name: str, choices: Any, *, help: str, default: str = ""
) -> Callable[[Command], Command]:
    """Make an option that takes one of ``choices``, by default the first if they are at hand."""
    if not isinstance(choices, NamesIn):
        choices, default = click.Choice(choices), default or choices[0]
    return click.option(name, type=choices, default=default, show_default=True, help=help)


def flag(name: str, *aliases: str, help: str) -> Callable[[Command], Command]:
    """Make an option without a value."""
    return click.option(name, *aliases, is_flag=True, help=help)


def check_device(context: click.Context, parameter: click.Parameter, device: str) -> str:
    """Return the device, if it is there; of ``auto`` the one that it stands for.

    Raises:
        InvalidInput: It is no device, ranks cannot be settled on it, or PyTorch does not see it.
    """
    if device == AUTO:
        return auto_device(_reads_model(context))
    if re.fullmatch(r"mps(:\d+)?", device):
        raise InvalidInput(
            f"--device {device} is refused: ranks are settled in float64, which it lacks.",
            hint="Pass cpu.",
        )
    match = re.fullmatch(r"cpu|cuda(?::(\d+))?", device)
    if match is None:
        raise InvalidInput(f"--device {device} is neither cpu nor cuda.", hint="Pass cpu or cuda.")
    if device != "cpu":
        from remnant.studies.shared.wording import counted

        if int(match[1] or 0) >= (gpus := gpus_seen()):
            raise InvalidInput(
                f"--device {device} is not there: PyTorch sees {counted(gpus, 'GPU')}.",
                hint="Pass cpu, or a GPU that is there." if gpus else "Pass cpu.",
            )
    return device


def auto_device(wanted: bool = True) -> str:
    """Return ``cuda`` where PyTorch can use a GPU, and say so; ``cpu`` elsewhere.

    Args:
        wanted: Whether anything is going to be computed on it. PyTorch is not loaded otherwise.
    """
    if not wanted or not _may_have_gpus() or not gpus_seen():
        return "cpu"
    import torch

    try:
        torch.cuda.init()
    except RuntimeError as fault:
        show(f"The GPU cannot be used: {first_line(fault)}. Computing on the processor.", err=True)
        return "cpu"
    show("Computing on a GPU; --device cpu takes the processor.", err=True)
    return "cuda"


def first_line(fault: BaseException) -> str:
    """The first line of what an error of a library says."""
    return (str(fault).splitlines() or ["no reason is given"])[0].rstrip(".")


def gpus_seen() -> int:
    """Return how many GPUs PyTorch sees."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _may_have_gpus() -> bool:
    """Whether a GPU can be there: loading PyTorch to find none takes seconds."""
    return sys.platform != "linux" or any(map(os.path.exists, _DRIVERS))


def _reads_model(context: click.Context) -> bool:
    """Whether the command computes on a device of its own choice.

    What is given is read before the default of ``--device`` is.
    """
    given = context.params
    if context.get_parameter_source("device") == ParameterSource.COMMANDLINE:
        return True
    return given.get("device_map") is None and any(given.get(name) for name in _MODELS)


device = click.option(
    "--device",
    default=AUTO,
    show_default=True,
    callback=check_device,
    help="cpu or cuda. auto: cuda where there is one, else cpu.",
)
device_map = click.option(
    "--device-map",
    type=click.Choice(("auto", "balanced", "balanced_low_0", "sequential")),
    help="Place a Hugging Face model on all GPUs, then memory, then disk, by Accelerate.",
)
precision = click.option(
    "--precision",
    type=click.Choice(("float32", "own")),
    help="Compute in float32, or in the precision of the weights; close calls are then decided in "
    "float64.  [default: own with --device-map, else float32]",
)
as_json = flag("--json", "as_json", help="Print as JSON.")
reveal = flag("--reveal", help="Show the secrets.")
model = path(
    "--model",
    required=True,
    help="Folder of a Remnant checkpoint, a Hugging Face model or a PEFT adapter.",
)
base = path(
    "--base",
    help="Folder of the base model of a PEFT adapter.  [default: the folder that the adapter's "
    "configuration names]",
)
source = click.option("--source", help="Source text, for an encoder-decoder.")
words = path("--words", help="Text file with the words of {words:n}, one per line.")


def option_name(name: str) -> str:
    """Return the option that an argument of a command comes from.

    Example:
        >>> option_name("max_nodes"), option_name("reference_models")
        ('--max-nodes', '--reference-model')
    """
    return f"--{_SINGULAR.get(name, name).replace('_', '-')}"


def option_names(*names: str) -> dict[str, str]:
    """Return the options of several arguments, for ``naming``."""
    return {name: option_name(name) for name in names}


def given(values: Mapping[str, object]) -> list[str]:
    """Return the options that have a value: not None, not False and not empty.

    Example:
        >>> given({"top": 0, "layers": (), "reveal": False, "twin_texts": ("a",)})
        ['--top', '--twin-text']
    """
    return [
        option_name(name)
        for name, value in values.items()
        if value is not None and value is not False and value not in ((), {})
    ]


def chosen(**values: object) -> dict[str, object]:
    """Return the values that are given, for the plan of a record.

    Example:
        >>> chosen(device_map="auto", precision=None)
        {'device_map': 'auto'}
    """
    return {name: value for name, value in values.items() if value is not None}


def too_small(**values: tuple[float | None, int]) -> list[str]:
    """Return a fault for each option below its minimum.

    Args:
        values: The value, None where it is not given, and the minimum of each option.

    Example:
        >>> too_small(max_nodes=(0, 1), seed=(0, 0))
        ['--max-nodes 0 is less than 1']
    """
    return [
        f"{option_name(name)} {value} is less than {least}"
        for name, (value, least) in values.items()
        if value is not None and value < least
    ]


def not_positive(**values: float | None) -> list[str]:
    """Return a fault for each option that is given and not above 0.

    Example:
        >>> not_positive(max_seconds=0.0, limit=None)
        ['--max-seconds 0 is not above 0']
    """
    return [
        f"{option_name(name)} {value:g} is not above 0"
        for name, value in values.items()
        if value is not None and not value > 0
    ]


def not_fraction(**values: float | None) -> list[str]:
    """Return a fault for each option that is given and not between 0 and 1.

    Example:
        >>> not_fraction(confidence=1.0, protect=0.1)
        ['--confidence 1 is not between 0 and 1']
    """
    return [
        f"{option_name(name)} {value:g} is not between 0 and 1"
        for name, value in values.items()
        if value is not None and not 0 < value < 1
    ]


def _use_threads(
    context: click.Context, parameter: click.Parameter, threads: int | None
) -> int | None:
    """Compute with so many threads from here on; libraries that are loaded later too."""
    use_threads(_check_threads(context, parameter, threads))
    return threads


def _check_threads(
    context: click.Context, parameter: click.Parameter, threads: int | None
) -> int | None:
    """Return the number, and let libraries that are loaded later compute with it."""
    if threads is not None:
        if threads < 1:
            raise InvalidInput(f"--threads {threads} is less than 1.", hint="Pass 1 or more.")
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
        context.meta["threads"] = threads  # for the command line in the record
    return threads


def use_threads(threads: int | None) -> None:
    """Let PyTorch compute with so many threads; None leaves it as it is."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def threads(*, passed_on: bool) -> Callable[[Command], Command]:
    """Make the option ``--threads``.

    Args:
        passed_on: Whether the command gets the number and calls ``use_threads`` itself, once its
            arguments are checked.
    """
    return click.option(
        "--threads",
        type=int,
        callback=_check_threads if passed_on else _use_threads,
        expose_value=passed_on,
        help="Threads to compute with, of each worker.  [default: all processors]",
    )
