"""Which files are looked at: those that were named, and those in folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from remnant.errors import InvalidInput

LINK = "is a link, which is not followed"


def files_of(
    paths: Sequence[str | Path],
    *,
    exclude: Sequence[str] = (),
    unlisted: dict[Path, str] | None = None,
) -> dict[Path, bool]:
    """Return the files to look at, in order, and whether each was named itself.

    Folders are walked in alphabetical order; links in them are not followed, and only plain files
    are taken. A file is taken once.

    Args:
        paths: Files and folders.
        exclude: Patterns such as ``*.log`` or ``old/*``: of the name of a file or folder, or of its
            path as it is written.
        unlisted: Is given the folders whose files cannot be listed, and links to what is not looked
            at either, and why.

    Raises:
        InvalidInput: A path is neither a file nor a folder, or nothing is left.
    """
    if isinstance(paths, str | Path):
        raise InvalidInput("paths is one path, not several.", hint="Pass a list.")
    named: dict[Path, bool] = {}
    seen: set[Path] = set()
    passed_over: dict[Path, str] = {}
    for path in map(Path, paths):
        if path.is_dir():
            inside = _walk(path, exclude, passed_over)
        elif path.is_file():
            inside = [] if is_excluded(path, exclude) else [path]
        else:
            raise InvalidInput(f"{path} is neither a file nor a folder.", hint="Name one.")
        for file in inside:
            resolved = file.resolve()
            if resolved not in seen:
                seen.add(resolved)
                named[file] = file == path
    if not named:
        raise InvalidInput(
            "There is no file to look at.", hint="Name a file or folder, or leave fewer out."
        )
    if unlisted is not None:
        walked = [path.resolve() for path in map(Path, paths) if path.is_dir()]
        for path, why in passed_over.items():
            target = Path(os.path.realpath(path))  # resolve() raises at a loop of links
            known = target in seen or any(folder in (target, *target.parents) for folder in walked)
            if not (why == LINK and known):
                unlisted[path] = why
    return named


def files_under(
    folder: Path,
    enter: Callable[[Path], bool] = lambda _: True,
    unlisted: dict[Path, str] | None = None,
) -> Iterator[Path]:
    """Yield what is in a folder and in those under it, however deep, in the order of names.

    Links to folders are not followed; folders that cannot be listed are passed over.

    Args:
        folder: Where to begin.
        enter: Whether to look into a folder under it.
        unlisted: Is given the folders that were passed over, links among them, and why.
    """
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        folders = []
        try:
            with os.scandir(here) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError as fault:
            if unlisted is not None:
                unlisted[here] = f"cannot be listed: {fault.strerror}"
            continue
        for entry in inside:
            path = here / entry.name
            try:
                is_folder = entry.is_dir()
            except OSError as fault:  # a loop of links
                if unlisted is not None:
                    unlisted[path] = f"cannot be read: {fault.strerror}"
                continue
            if not is_folder:
                yield path
            elif not enter(path):
                continue
            elif not entry.is_symlink():
                folders.append(path)
            elif unlisted is not None:
                unlisted[path] = LINK
        waiting.extend(reversed(folders))


def _walk(folder: Path, exclude: Sequence[str], unlisted: dict[Path, str]) -> list[Path]:
    files = []
    for path in files_under(folder, lambda inner: not is_excluded(inner, exclude), unlisted):
        if not path.is_file() or is_excluded(path, exclude):
            continue
        if path.is_symlink():
            unlisted[path] = LINK
        else:
            files.append(path)
    return files


def is_excluded(path: Path, exclude: Sequence[str]) -> bool:
    """Whether a pattern is that of the path, or of the last name in it."""
    return any(fnmatch(path.name, pattern) or fnmatch(str(path), pattern) for pattern in exclude)
