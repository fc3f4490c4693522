"""``remnant``: the commands, and the place where errors become a sentence and an exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from remnant import __version__
from remnant.cli.audit import audit
from remnant.cli.canaries import canaries
from remnant.cli.curve import curve
from remnant.cli.demo import demo
from remnant.cli.doctor import doctor
from remnant.cli.exposure import exposure
from remnant.cli.extract import extract
from remnant.cli.feature import feature
from remnant.cli.help.command import Group
from remnant.cli.help.help_layout import COMMANDS
from remnant.cli.options.parameters import checked, noted
from remnant.cli.predict import predict
from remnant.cli.recipe import recipe
from remnant.cli.run import run
from remnant.cli.runs import runs
from remnant.cli.scan import scan
from remnant.cli.score import score
from remnant.cli.show import report, show
from remnant.cli.speech import speech
from remnant.cli.terminal import ending, escaped_streams, held_output, one_line, terminable
from remnant.errors import RemnantError, is_disk_full, is_out_of_memory, write_error


@click.group(
    cls=Group,
    sections=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine or PASS, 1 FAIL, 2 usage error (the message says which), "
    "3 INCONCLUSIVE, 130 interrupted, 143 terminated.",
)
@click.version_option(__version__, prog_name="remnant")
def commands() -> None:
    """Measure what a model still remembers of its training data, and how fast it forgets.

    \b
    Example:
      remnant demo --out audit
    """


TOO_LITTLE_MEMORY = (
    "There is too little memory. Close other programs, or use less data or a smaller model."
)
# A group without a command prints its help; click before 8.2 has no error for that.
_HELP: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
_COMMANDS = (
    *(demo, doctor, recipe, run, runs, show, report, curve, canaries, exposure, extract, predict),
    *(feature, scan, audit, score, speech),
)
for _command in _COMMANDS:
    commands.add_command(noted(checked(_command)))


def main() -> None:
    """Run a command; an error that the user can fix is one sentence and exit code 2."""
    with escaped_streams():
        _main()


def _main() -> None:
    try:
        with held_output(), terminable():
            code = commands.main(prog_name="remnant", standalone_mode=False)
    except RemnantError as fault:
        _stop(one_line(str(fault)))
    except click.exceptions.Abort as fault:
        sentence, code = ending(fault)
        _stop(sentence, code=code)
    except BrokenPipeError:  # the reader has seen enough
        sys.stderr.close()
        sys.exit(0)
    except (MemoryError, RuntimeError) as fault:
        if not is_out_of_memory(fault):
            raise
        _stop(TOO_LITTLE_MEMORY)
    except OSError as fault:
        _stop(_disk_words(fault))
    except _HELP as fault:
        fault.show()
        sys.exit(2)
    except click.ClickException as fault:
        _stop(one_line(_usage_words(fault)))
    sys.exit(code if isinstance(code, int) else 0)


def _stop(sentence: str, *, code: int = 2) -> NoReturn:
    click.echo(f"remnant: {sentence}", err=True)
    sys.exit(code)


def _usage_words(fault: click.ClickException) -> str:
    """Return what is wrong with the options and arguments, and where they are described."""
    said = " ".join(fault.format_message().split())
    said = said if said.endswith((".", "?", "?)")) else f"{said}."
    context = fault.ctx if isinstance(fault, click.UsageError) else None
    return f"{said} See: {'remnant' if context is None else context.command_path} --help"


def _disk_words(fault: OSError) -> str:
    if is_disk_full(fault):
        return str(write_error(Path(str(fault.filename or "A file")), fault))
    return f"{fault}."
