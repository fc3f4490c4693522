"""``--out`` of a scan: a JSON file that only its owner can read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from remnant.cli.planting import refuse_odd
from remnant.errors import InvalidInput

MARK = '"remnant": "scan"'
_OWNER_ONLY = 0o600


def check_out(path: Path, *, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse a file that cannot or should not be written, before anything is read.

    Raises:
        InvalidInput: There is no folder for it, it is or lies in an input, or another file is there
            and ``force`` is not set.
    """
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInput(f"--out {path} is not the path of a file in a folder that exists.")
    refuse_odd("--out", path)
    resolved = path.resolve()
    for one in inputs:
        if resolved == one.resolve() or one.resolve() in resolved.parents:
            raise InvalidInput(
                f"--out {path} is one of the files that are looked at.",
                hint="Choose a file outside of them.",
            )
    if force or not path.is_file():
        return
    try:
        with path.open("rb") as file:
            begin = file.read(256)
    except OSError as fault:
        raise InvalidInput(f"--out {path} cannot be read: {fault.strerror}.") from None
    if begin and MARK.encode() not in begin:
        raise InvalidInput(
            f"--out {path} is there already, and is no scan.",
            hint="Name another file, or overwrite it with --force.",
        )


def write_out(path: Path, written: str) -> None:
    """Write the file whole or not at all; only its owner can read it.

    Raises:
        InvalidInput: It cannot be written.
    """
    from remnant.canaries.whole_file import writing_whole
    from remnant.cli.naming import naming

    with naming("--out", path), writing_whole(path, mode=_OWNER_ONLY) as file:
        file.write(written.encode() + b"\n")
