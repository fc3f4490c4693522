"""``--out``: which files a command may overwrite, and how it writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from remnant.cli.options.naming import naming
from remnant.errors import InvalidInput

OWNER_ONLY = 0o600
# In the reports of this version, and of 0.1 and 0.2.
_IN_REPORTS = (b"<footer><p>Made by Remnant.", b'<p class="brand">Remnant</p>')
_HINT = "Name another file, or overwrite it with --force."


def check_place(option: str, path: Path) -> None:
    """Refuse a path where no file can be written.

    Raises:
        InvalidInput: It is a folder, or its folder does not exist.
    """
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInput(f"{option} {path} is not the path of a file in a folder that exists.")


def check_inputs(path: Path, inputs: Iterable[Path]) -> None:
    """Refuse to write ``--out`` over a file that the command reads.

    Raises:
        InvalidInput: It is one of ``inputs``.
    """
    if path.resolve() in {source.resolve() for source in inputs}:
        raise InvalidInput(f"--out {path} is one of the inputs.", hint="Choose another file.")


def check_old_file(path: Path, ours: Callable[[bytes], bool], *, kind: str, force: bool) -> None:
    """Refuse to overwrite a file that this command did not write.

    Args:
        path: Of ``--out``.
        ours: Whether a file with these bytes was written by this command.
        kind: What the command writes, in a word.
        force: Whether any file may be overwritten.

    Raises:
        InvalidInput: Another file exists, and ``force`` is not set; or it cannot be read.
    """
    if force or not path.is_file():
        return
    try:
        old = path.read_bytes()
    except OSError as fault:
        raise InvalidInput(f"--out {path} cannot be read: {fault.strerror}.") from None
    if old and not ours(old):
        raise InvalidInput(f"--out {path} exists already and is not a {kind}.", hint=_HINT)


def check_report(path: Path, *, force: bool) -> None:
    """Refuse to overwrite anything but a report of this package; see ``check_old_file``."""
    check_old_file(path, _is_report, kind="report", force=force)


def check_markdown(path: Path, *, force: bool) -> None:
    """Refuse to overwrite anything but Markdown of this package; see ``check_old_file``."""
    check_old_file(path, _is_markdown, kind="summary in Markdown", force=force)


def _is_markdown(old: bytes) -> bool:
    from remnant.report.markdown import MADE_BY

    return old.rstrip().rpartition(b"\n")[2].startswith(MADE_BY.encode())


def _is_report(old: bytes) -> bool:
    html = old.lstrip().startswith(b"<!doctype html>")
    return html and any(mark in old for mark in _IN_REPORTS)


def other_content(option: str, path: Path) -> InvalidInput:
    """Return the error for a file that exists and differs from what would be written."""
    return InvalidInput(f"{option} {path} exists already, with other content.", hint=_HINT)


def write_whole(option: str, path: Path, text: str, *, mode: int = OWNER_ONLY) -> None:
    """Write the whole file or nothing.

    Raises:
        InvalidInput: It cannot be written.
    """
    from remnant.canaries.whole_file import writing_whole

    with naming(option, path), writing_whole(path, mode=mode) as file:
        file.write(text.encode())
