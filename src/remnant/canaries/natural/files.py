"""Which files are looked at: those that were named, and those in folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from remnant.errors import InvalidInput


def files_of(paths: Sequence[str | Path], *, exclude: Sequence[str] = ()) -> dict[Path, bool]:
    """Return the files to look at, in order, and whether each was named itself.

    Folders are walked in alphabetical order; links in them are not followed, and only plain files
    are taken. A file is taken once.

    Args:
        paths: Files and folders.
        exclude: Patterns such as ``*.log`` or ``old/*``: of the name of a file or folder, or of its
            path as it is written.

    Raises:
        InvalidInput: A path is neither a file nor a folder, or nothing is left.
    """
    if isinstance(paths, str | Path):
        raise InvalidInput("paths is one path, not several.", hint="Pass a list.")
    found: dict[Path, bool] = {}
    seen: set[Path] = set()
    for path in map(Path, paths):
        if path.is_dir():
            inside = _walk(path, exclude)
        elif path.is_file():
            inside = [] if _left_out(path, exclude) else [path]
        else:
            raise InvalidInput(f"{path} is neither a file nor a folder.", hint="Name one.")
        for one in inside:
            resolved = one.resolve()
            if resolved not in seen:
                seen.add(resolved)
                found[one] = one == path
    if not found:
        raise InvalidInput(
            "There is no file to look at.", hint="Name a file or folder, or leave fewer out."
        )
    return found


def files_under(folder: Path, enter: Callable[[Path], bool] = lambda _: True) -> Iterator[Path]:
    """Yield what is in a folder and in those under it, however deep, in the order of names.

    Links to folders are not followed; folders that cannot be listed are passed over.

    Args:
        folder: Where to begin.
        enter: Whether to look into a folder under it.
    """
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        folders = []
        try:
            with os.scandir(here) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in inside:
            path = here / entry.name
            if not entry.is_dir():
                yield path
            elif not entry.is_symlink() and enter(path):
                folders.append(path)
        waiting.extend(reversed(folders))


def _walk(folder: Path, exclude: Sequence[str]) -> list[Path]:
    return [
        path
        for path in files_under(folder, lambda inner: not _left_out(inner, exclude))
        if path.is_file() and not path.is_symlink() and not _left_out(path, exclude)
    ]


def _left_out(path: Path, exclude: Sequence[str]) -> bool:
    return any(fnmatch(path.name, one) or fnmatch(str(path), one) for one in exclude)
