"""``--out`` of a page: whether it may take the place of what is there."""

from __future__ import annotations

from pathlib import Path

from remnant.cli.planting import refuse_odd
from remnant.errors import InvalidInput

_BEGIN = b"<!doctype html>"
_BRAND = b'<p class="brand">Remnant</p>'


def check_page(path: Path, *, force: bool) -> None:
    """Refuse to overwrite anything but a page of this package.

    Raises:
        InvalidInput: Another file is there, and ``force`` is not set; or what is there is no plain
            file.
    """
    refuse_odd("--out", path)
    if force or not path.is_file():
        return
    try:
        there = path.read_bytes()
    except OSError as fault:
        raise InvalidInput(f"--out {path} cannot be read: {fault.strerror}.") from None
    if there and not (there.lstrip().startswith(_BEGIN) and _BRAND in there):
        raise InvalidInput(
            f"--out {path} is there already, and is no report.",
            hint="Name another file, or overwrite it with --force.",
        )
