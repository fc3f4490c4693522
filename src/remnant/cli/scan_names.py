"""Names of files and folders, with dots in the place of secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remnant.canaries.natural import FoundSecret

_BETWEEN_DIGITS = re.compile(r"(?<![0-9])[^0-9]|[^0-9](?![0-9])|[^0-9 .()+-]")


class Names:
    """Leaves secrets out of paths: those that were found, and what would be found in a name.

    Args:
        found: In the files.
        region: Of telephone numbers in names.

    Guarantees:
        * No secret that was found is in a path, whatever its case, and whatever signs, blanks or
          folders part its letters and digits there. One of fewer than four letters and digits may
          be a part of a word.
        * Nothing is in a name that the scan would find there as a text.
    """

    def __init__(self, found: Iterable[FoundSecret], *, region: str) -> None:
        self._found = found
        self._region = region
        self._paths: dict[str, str] = {}
        self._names: dict[str, list[tuple[int, int]]] = {}

    def hidden(self, path: str) -> str:
        """Return a path with dots in the place of secrets; folders stay apart."""
        if path not in self._paths:
            covered = [False] * len(path)
            for first, end in (*self._known(path), *self._looking_so(path)):
                covered[first:end] = [True] * (end - first)
            shown = zip(path, covered, strict=True)
            kept = groupby(shown, key=lambda pair: pair[1] and pair[0] != "/")
            self._paths[path] = "".join(
                "…" if hide else "".join(one for one, _ in many) for hide, many in kept
            )
        return self._paths[path]

    def _known(self, path: str) -> Iterator[tuple[int, int]]:
        """Yield where secrets that were found stand in a path."""
        from remnant.canaries.natural.spelling import ANYWHERE, bare_with_places, stands_alone

        whole, places = bare_with_places(path)
        for at in range(len(whole)):
            for length in self._lengths.get(whole[at : at + 1], ()):
                if whole[at : at + length] not in self._spelt:
                    continue
                first, end = places[at], places[at + length - 1] + 1
                if length >= ANYWHERE or stands_alone(path, first, end):
                    yield first, end
        for signs in self._signs:
            yield from (found.span() for found in re.finditer(re.escape(signs), path))

    def _looking_so(self, path: str) -> Iterator[tuple[int, int]]:
        """Yield where a name holds what the scan would find."""
        at = 0
        for name in path.split("/"):
            if name not in self._names:
                self._names[name] = list(_secret_spans(name, self._region))
            yield from ((at + first, at + end) for first, end in self._names[name])
            at += len(name) + 1

    @cached_property
    def _spelt(self) -> set[str]:
        """What is secret of each, and the whole of it, in letters and digits alone."""
        from remnant.canaries.natural.spelling import bare

        found = set()
        for one in self._found:
            secret = bare(one.way.secret)
            found |= {bare(one.way.written), secret}
            if one.kind == "phone":
                found.add(secret.lstrip("0"))  # an international code takes the place of the zero
        return found - {""}

    @cached_property
    def _lengths(self) -> dict[str, set[int]]:
        """How long secrets are that begin so."""
        found: dict[str, set[int]] = {}
        for one in self._spelt:
            found.setdefault(one[0], set()).add(len(one))
        return found

    @cached_property
    def _signs(self) -> set[str]:
        """Secrets with hardly a letter or digit, as they are written."""
        from remnant.canaries.natural.spelling import ANYWHERE, bare

        secrets = (one.way.secret for one in self._found)
        return {one for one in secrets if len(one) >= ANYWHERE > len(bare(one))}


def _secret_spans(name: str, region: str) -> Iterator[tuple[int, int]]:
    """Yield what is secret of what is found in a name, letters next to its digits or not."""
    from remnant.canaries.natural import find_secrets

    for text in (name, _BETWEEN_DIGITS.sub(" ", name)):
        for match in find_secrets(text, region=region):
            yield match.start + match.known, match.end - match.tail
