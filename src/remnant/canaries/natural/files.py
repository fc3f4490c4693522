"""Which files are looked at: those that were named, and those in folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
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


def _walk(folder: Path, exclude: Sequence[str]) -> list[Path]:
    """Return the files of a folder, then those of the folders in it, however deep they are."""
    found = []
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        files, folders = [], []
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_symlink() or _left_out(here / entry.name, exclude):
                        continue
                    if entry.is_dir():
                        folders.append(entry.name)
                    elif entry.is_file():
                        files.append(entry.name)
        except OSError:  # as in a folder that only somebody else may read
            continue
        found += [here / name for name in sorted(files)]
        waiting += [here / name for name in sorted(folders, reverse=True)]
    return found


def _left_out(path: Path, exclude: Sequence[str]) -> bool:
    return any(fnmatch(path.name, one) or fnmatch(str(path), one) for one in exclude)
