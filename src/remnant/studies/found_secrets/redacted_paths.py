"""Paths of files and folders, with dots instead of secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remnant.canaries.natural import FoundSecret

_BETWEEN_DIGITS = re.compile(r"(?<![0-9])[^0-9]|[^0-9](?![0-9])|[^0-9 .()+-]")


class RedactedPaths:
    """Removes secrets from paths: those that were found, and those that a scan of a name finds.

    Args:
        secrets: Found in the files.
        region: Of telephone numbers in names.

    Guarantees:
        * No path contains a secret that was found, whatever its case, and whatever signs, blanks or
          folders separate its letters and digits there. A secret of fewer than four letters and
          digits may be part of a word.
        * No name contains anything that the scan would find in it as a text.
    """

    def __init__(self, secrets: Iterable[FoundSecret], *, region: str) -> None:
        self._secrets = secrets
        self._region = region
        self._paths: dict[str, str] = {}
        self._names: dict[str, list[tuple[int, int]]] = {}

    def redacted(self, path: str) -> str:
        """Return a path with dots instead of secrets; folders stay separate."""
        if path not in self._paths:
            covered = [False] * len(path)
            for first, end in (*self._known(path), *self._scanned(path)):
                covered[first:end] = [True] * (end - first)
            shown = zip(path, covered, strict=True)
            kept = groupby(shown, key=lambda pair: pair[1] and pair[0] != "/")
            self._paths[path] = "".join(
                "…" if hide else "".join(letter for letter, _ in run) for hide, run in kept
            )
        return self._paths[path]

    def _known(self, path: str) -> Iterator[tuple[int, int]]:
        """Yield where found secrets occur in a path."""
        from remnant.canaries.natural.spelling import ANYWHERE, bare_with_places, stands_alone

        whole, places = bare_with_places(path)
        for at in range(len(whole)):
            for length in self._lengths.get(whole[at : at + 1], ()):
                if at + length > len(whole) or whole[at : at + length] not in self._spelt:
                    continue
                first, end = places[at], places[at + length - 1] + 1
                if length >= ANYWHERE or stands_alone(path, first, end):
                    yield first, end
        for signs in self._signs:
            yield from (match.span() for match in re.finditer(re.escape(signs), path))

    def _scanned(self, path: str) -> Iterator[tuple[int, int]]:
        """Yield where a name contains what the scan would find."""
        at = 0
        for name in path.split("/"):
            if name not in self._names:
                self._names[name] = list(_secret_spans(name, self._region))
            yield from ((at + first, at + end) for first, end in self._names[name])
            at += len(name) + 1

    @cached_property
    def _spelt(self) -> set[str]:
        """The secret part and the whole of each, in letters and digits alone."""
        from remnant.canaries.natural.spelling import bare

        spellings = set()
        for secret in self._secrets:
            part = bare(secret.way.secret)
            spellings |= {bare(secret.way.written), part}
            if secret.kind == "phone":
                spellings.add(part.lstrip("0"))  # an international code replaces the zero
        return spellings - {""}

    @cached_property
    def _lengths(self) -> dict[str, set[int]]:
        """Lengths of the secrets that begin with a character."""
        lengths: dict[str, set[int]] = {}
        for spelling in self._spelt:
            lengths.setdefault(spelling[0], set()).add(len(spelling))
        return lengths

    @cached_property
    def _signs(self) -> set[str]:
        """Secrets with hardly a letter or digit, as they are written."""
        from remnant.canaries.natural.spelling import ANYWHERE, bare

        parts = (secret.way.secret for secret in self._secrets)
        return {part for part in parts if len(part) >= ANYWHERE > len(bare(part))}


def _secret_spans(name: str, region: str) -> Iterator[tuple[int, int]]:
    """Yield the secret parts of what is found in a name, with or without letters beside digits."""
    from remnant.canaries.natural import find_secrets

    for text in (name, _BETWEEN_DIGITS.sub(" ", name)):
        for match in find_secrets(text, region=region):
            yield match.start + match.known, match.end - match.tail
