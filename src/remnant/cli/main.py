"""``remnant``: the commands, and the one place where errors become a sentence and an exit code."""

from __future__ import annotations

import io
import sys

import click

from remnant import __version__
from remnant.cli.canaries import canaries
from remnant.cli.curve import curve
from remnant.cli.demo import demo
from remnant.cli.exposure import exposure
from remnant.cli.extract import extract
from remnant.cli.feature import feature
from remnant.cli.paths import plain_paths
from remnant.cli.predict import predict
from remnant.cli.report import report
from remnant.cli.run import run
from remnant.cli.runs import runs
from remnant.cli.scan import scan
from remnant.cli.show import show
from remnant.cli.showing import safe
from remnant.errors import RemnantError


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 a gate failed, 2 your move (the message says which), "
    "130 interrupted.",
)
@click.version_option(__version__, prog_name="remnant")
def commands() -> None:
    """Measure what a model still remembers of its training data, and how fast it forgets.

    \b
    Example:
      remnant demo --out audit
    """


_COMMANDS = (
    *(demo, run, runs, show, report, curve, canaries, exposure, extract, predict, feature),
    scan,
)
for _command in _COMMANDS:
    commands.add_command(plain_paths(_command))


def main() -> None:
    """Run a command; a fault that the user can mend is one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character shows its code
            stream.reconfigure(errors="backslashreplace")
    try:
        code = commands.main(standalone_mode=False)
    except RemnantError as fault:
        click.echo(f"remnant: {safe(str(fault))}", err=True)
        sys.exit(2)
    except click.exceptions.Abort as fault:
        click.echo(f"remnant: interrupted; {str(fault) or 'nothing was written'}.", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader has seen enough
        sys.stderr.close()
        sys.exit(0)
    except (OSError, MemoryError) as fault:
        click.echo(f"remnant: {safe(str(fault)) or 'out of memory'}.", err=True)
        sys.exit(2)
    except click.ClickException as fault:
        fault.show()
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)
