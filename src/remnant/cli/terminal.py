"""What a command prints, and how it ends early.

Control characters are shown as their codes, never sent: labels, paths and file contents may contain
escape sequences, which a terminal would run. ``escaped_streams`` covers whatever a command prints.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import click

from remnant.errors import DISK_FULL_HINT, RemnantError, RemnantWarning, is_disk_full, write_error
from remnant.report.paint import NO_MARKS, SEQUENCES

# C0 but tab and line feed, delete, C1, line and paragraph separators, characters that turn the
# direction of writing, and lone surrogates: bytes of a name that is not UTF-8.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
INTERRUPTED, TERMINATED = 130, 143
_RESUMES = "run the same command again to go on"
_STARTS_OVER = "nothing was written; the same command starts over"


def escape(text: str) -> str:
    r"""Return the text with control characters as ``\uXXXX``, which JSON reads as the same.

    Tabs and line feeds stay.

    Example:
        >>> print(escape("a\x1b[31mb"))
        a\u001b[31mb
    """
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def one_line(text: str) -> str:
    r"""Return the text escaped, line feeds and tabs too, for a name inside a line.

    Example:
        >>> print(one_line("runs\nPASS"))
        runs\u000aPASS
    """
    return escape(text).replace("\n", r"\u000a").replace("\t", r"\u0009")


def show(text: str, *, err: bool = False) -> None:
    """Print lines of text, escaped."""
    click.echo(escape(text), err=err)


class EscapedStream:
    """A text stream that escapes what is written to it, and colours what is marked.

    Everything else is the stream's.
    """

    def __init__(self, stream: TextIO) -> None:
        self.unescaped = stream

    def write(self, text: str) -> int:
        """Write the text, escaped; marks of colours are the terminal's own sequences."""
        if not isinstance(text, str):
            raise TypeError(f"write() takes a text, not {type(text).__name__}")
        drawn = SEQUENCES if self.unescaped.isatty() else NO_MARKS
        return self.unescaped.write(escape(text).translate(drawn))

    def writelines(self, lines: Any) -> None:
        """Write all lines, escaped."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unescaped, name)


@contextmanager
def escaped_streams() -> Iterator[None]:
    """Escape what is printed, and print Remnant's warnings as one sentence."""
    before, show = (sys.stdout, sys.stderr), warnings.showwarning

    def show_ours(
        message: Warning | str, category: type[Warning], *where: Any, **more: Any
    ) -> None:
        if issubclass(category, RemnantWarning):
            print(f"remnant: {message}", file=sys.stderr)
        else:
            show(message, category, *where, **more)

    for stream in before:
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character shows its code
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = (EscapedStream(stream) for stream in before)
    warnings.showwarning = show_ours
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        warnings.showwarning = show


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


class _Held(io.StringIO):
    """What a command has printed so far, before anybody sees it."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.stream = stream

    def isatty(self) -> bool:
        """Whether it ends on a terminal."""
        return self.stream.isatty()

    def release(self) -> None:
        """Print what is held, and hold nothing."""
        self.stream.write(self.getvalue())
        self.stream.flush()
        self.seek(0)
        self.truncate()


@contextmanager
def held_output() -> Iterator[None]:
    """Print only what a command prints without an error: a write may fail after the result."""
    stream = sys.stdout
    sys.stdout = held = _Held(stream)
    try:
        yield
    except SystemExit:  # an outcome
        held.release()
        raise
    finally:
        sys.stdout = stream
    held.release()


def show_now(text: str) -> None:
    """Print lines of text that stay true if the command fails later, such as a stored outcome."""
    show(text)
    if isinstance(sys.stdout, _Held):
        sys.stdout.release()
