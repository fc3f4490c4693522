"""How a command ends early, and what it has printed by then."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TextIO

import click

from remnant.errors import DISK_FULL_HINT, RemnantError, is_disk_full, write_error

INTERRUPTED, TERMINATED = 130, 143
_RESUMES = "run the same command again to go on"
_STARTS_OVER = "nothing was written; the same command starts over"


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM unwind the command, so that unfinished files are removed; a second one kills."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    owner = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() != owner:  # a fork
            os.kill(os.getpid(), number)
        raise _Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def ending(fault: click.exceptions.Abort) -> tuple[str, int]:
    """Return the sentence and the exit code of a command that Ctrl-C or SIGTERM ended."""
    terminated = isinstance(fault.__cause__ or fault.__context__, _Terminated)
    word, code = ("terminated", TERMINATED) if terminated else ("interrupted", INTERRUPTED)
    return f"{word}; {str(fault) or _STARTS_OVER}.", code


@contextmanager
def resumable() -> Iterator[None]:
    """Say that the same command goes on from what is stored, if it is ended or the disk is full."""
    try:
        yield
    except KeyboardInterrupt as fault:
        raise click.exceptions.Abort(_RESUMES) from fault
    except OSError as fault:
        if not isinstance(fault, RemnantError):
            if not is_disk_full(fault):
                raise
            fault = write_error(Path(str(fault.filename or "A file")), fault)
        if fault.hint == DISK_FULL_HINT:
            fault.hint = DISK_FULL_HINT.removesuffix(".") + ": it continues from what is stored."
        raise fault from None


@contextmanager
def held_output() -> Iterator[None]:
    """Print only what a command prints without an error: a write may fail after the result."""
    stream, held = sys.stdout, io.StringIO()
    sys.stdout = held
    try:
        yield
    except SystemExit:  # an outcome
        _release(stream, held)
        raise
    finally:
        sys.stdout = stream
    _release(stream, held)


def _release(stream: TextIO, held: io.StringIO) -> None:
    stream.write(held.getvalue())
    stream.flush()
