"""Keeps the secrets of an audit out of folders that are published."""

from __future__ import annotations

from pathlib import Path

from remnant.errors import InvalidInput


def refuse_published(out: Path, published: Path, *, name: str) -> None:
    """Refuse a folder for the audit that a trainer may upload.

    Args:
        out: The folder of the audit.
        published: The folder that the trainer writes and uploads.
        name: What the trainer calls it.

    Raises:
        InvalidInput: ``out`` is that folder, or is in it.
    """
    audit, theirs = out.resolve(), published.resolve()
    if audit == theirs or theirs in audit.parents:
        raise InvalidInput(
            f"out={str(out)!r} is in the trainer's {name} ({str(published)!r}), which may be "
            "uploaded; the audit holds secrets.",
            hint=f"Choose a folder for the audit that is not in {name}.",
        )
