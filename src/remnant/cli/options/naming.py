"""Errors with options of the command line instead of the library's arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from remnant.errors import RemnantError


def named(text: str, **options: str) -> str:
    """Replace arguments of the library by options in a text.

    Example:
        >>> named("folder='nope' is not a folder.", folder="--model")
        '--model nope is not a folder.'
        >>> named("repeats[0]=0 is too few; words= is empty.", repeats="--repeats", words="--words")
        '--repeats 0 is too few; --words is empty.'
        >>> named("pattern has no hole.", pattern="--template")
        '--template has no hole.'
    """
    for name, option in options.items():
        given = rf"(?<![\w-]){name}(?:\[\d+\])?="
        text = re.sub(rf"{given}'([^']*)'", rf"{option} \1", text)
        text = re.sub(rf"{given}(?=[\s;,]|\.\s|\.?$)", option, text)
        text = re.sub(given, f"{option} ", text)
        text = re.sub(rf"(^|; ){name}(?= (?:has|holds|is) )", rf"\1{option}", text)
    return text


@contextmanager
def naming(option: str = "", path: Path | None = None, /, **options: str) -> Iterator[None]:
    """Let errors of the library name options instead of arguments.

    Args:
        option: The option whose value is ``path``; put before a message that begins with the path.
        path: A file or folder.
        options: For each argument of the library, the option that it comes from.
    """
    try:
        yield
    except RemnantError as fault:
        message = named(fault.message, **options)
        if path is not None and message.startswith(str(path)):
            message = f"{option} {message}"
        fault.message = message
        fault.hint = None if fault.hint is None else named(fault.hint, **options)
        raise


@contextmanager
def blaming(name: str, error: type[RemnantError] = RemnantError) -> Iterator[None]:
    """Put ``name`` before the message of an error that does not contain it.

    Args:
        name: The option, file or model that an error is about.
        error: The errors that this applies to.
    """
    try:
        yield
    except error as fault:
        if name not in fault.message:
            fault.message = f"{name}: {fault.message}"
        raise
