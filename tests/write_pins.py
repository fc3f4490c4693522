"""Print ``constraints.txt`` for the environment that runs this; ``make pins`` calls it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

HEADER = """\
# What was tested together: all that .[dev] installs. Renew it with make pins.
# The torch pin lets pip find a CPU build. There are no hashes: with them, pip installs nothing
# editable. Python 3.10 needs older versions of some packages, and a few more; they are not pinned.
"""
OURS = {"remnant", "pip"}
OLDEST = ("3.10", "3.11", "3.12")


def pin(found: Distribution) -> str:
    """The line of a package, with the Pythons that it runs on where these are not all."""
    allowed = SpecifierSet(found.metadata.get("Requires-Python") or "")
    first = next(version for version in OLDEST if allowed.contains(f"{version}.99"))
    marker = "" if first == OLDEST[0] else f'; python_version >= "{first}"'
    return f"{canonicalize_name(found.name)}=={found.version.partition('+')[0]}{marker}"


def pinned(text: str) -> set[str]:
    """The names in such a file."""
    return {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}


def required(name: str, extra: str = "", seen: set[tuple[str, str]] | None = None) -> Iterator[str]:
    """The names of all packages that one needs here, without itself."""
    seen = set() if seen is None else seen
    for line in distribution(name).requires or ():
        needed = Requirement(line)
        if needed.marker is not None and not needed.marker.evaluate({"extra": extra}):
            continue
        for inner in ("", *needed.extras):
            key = (canonicalize_name(needed.name), inner)
            if key not in seen:
                seen.add(key)
                yield key[0]
                yield from required(key[0], inner, seen)


if __name__ == "__main__":
    lines = {pin(found) for found in distributions() if canonicalize_name(found.name) not in OURS}
    print(HEADER + "\n".join(sorted(lines)))
