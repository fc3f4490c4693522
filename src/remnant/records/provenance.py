"""Where numbers come from: versions, machine, threads, seeds.

Versions are read from the installed packages' metadata, so nothing heavy is imported.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGES = ("torch", "numpy", "scipy")


def utc_now() -> str:
    """The time now, UTC, to the second, in ISO 8601."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


def is_utc(text: str) -> bool:
    """Whether a text is a time as ``utc_now`` writes it."""
    try:
        datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return False
    return True


def gather(*, device: str, threads: int, seeds: Mapping[str, int]) -> dict[str, Any]:
    """What a later reader needs to know of this process.

    The times and fingerprints of a run are not here: the record keeps them and adds them to
    ``Record.provenance``.

    Args:
        device: The device in words, such as ``"cpu"`` or ``"cuda: NVIDIA H200"``.
        threads: Threads used for arithmetic.
        seeds: Every seed by name.

    Example:
        >>> sorted(gather(device="cpu", threads=2, seeds={"plan": 0}))
        ['device', 'platform', 'processors', 'python', 'seeds', 'threads', 'versions']
    """
    import remnant  # not at the top: the package imports this module while it loads

    return {
        "python": platform.python_version(),
        "versions": {"remnant": remnant.__version__}
        | {package: _version(package) for package in _PACKAGES},
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "device": device,
        "threads": threads,
        "seeds": dict(seeds),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
