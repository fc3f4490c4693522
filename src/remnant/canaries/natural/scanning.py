"""Looking for secrets that nobody planted: in files and folders, all kinds at once."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from remnant.canaries.natural.contacts import check_region, find_emails, find_phones
from remnant.canaries.natural.files import files_of
from remnant.canaries.natural.found import FoundSecret, Joining, Place
from remnant.canaries.natural.keys import find_keys, find_random
from remnant.canaries.natural.match import KINDS, LONGEST, Match, without_overlaps
from remnant.canaries.natural.numbers import find_cards, find_ibans, find_ssns
from remnant.canaries.natural.reading import BLOCK, Piece, encoding_of, pieces_of
from remnant.errors import InvalidInput, require

Finder = Callable[[str], Iterable[Match]]
Progress = Callable[[str, int, int], None]
LONGEST_CONTEXT = LONGEST
LEAST_SALT = 16  # bytes
_HALF = 0.5
_MANY = 20


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """What was found in one file.

    Attributes:
        path: As it was given, or under the folder that was given.
        encoding: ``"utf-8"`` or ``"latin-1"``.
        characters: How many it has; 0 for an empty file.
        counts: How often secrets of each kind stand there, kinds with none left out.
        crowded: Kinds that take up more than half of it, in 20 places or more: the pattern may not
            mean there what it means elsewhere.
    """

    path: str
    encoding: str
    characters: int
    counts: dict[str, int]
    crowded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file in a folder that could not be read as text, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """What was found in files.

    Attributes:
        found: Each secret once, the most frequent first.
        files: Those that were read, in order.
        skipped: Those in folders that are no text.
        kinds: What was looked for.
    """

    found: tuple[FoundSecret, ...]
    files: tuple[ScannedFile, ...]
    skipped: tuple[SkippedFile, ...]
    kinds: tuple[str, ...]


def scan_files(
    paths: Sequence[str | Path],
    *,
    salt: bytes,
    kinds: Sequence[str] = KINDS,
    exclude: Sequence[str] = (),
    region: str = "US",
    min_entropy: float | None = None,
    latin_1: bool = False,
    context: int = 64,
    block: int = BLOCK,
    progress: Progress | None = None,
) -> Scan:
    """Look for secrets in text files.

    Args:
        paths: Files, and folders with all files under them.
        salt: Of the fingerprints, 16 bytes or more; ``secrets.token_bytes(16)`` for a new one.
        kinds: Which of ``KINDS``.
        exclude: See ``files_of``.
        region: The country of telephone numbers without an international code.
        min_entropy: See ``find_random``.
        latin_1: See ``encoding_of``.
        context: So many characters before each secret are kept, for a model to be asked with.
        block: Characters read at once; changes nothing but memory and time.
        progress: Called with what is done, how many files, and of how many.

    Guarantees:
        * What is found of a kind does not depend on the other kinds that are looked for. Where two
          overlap, the one counts that comes first: key, IBAN, card, SSN, e-mail, telephone, random.
        * The same files give the same secrets, however they are cut into pieces.
        * No ``repr`` and no error holds a secret or a part of a file.

    Raises:
        InvalidInput: A setting out of range; a file that was named is no text; there are more than
            a million secrets; or see ``files_of``.
        MissingExtra: A library of the extra ``scan`` is not installed.
    """
    require(_faults(salt, kinds, min_entropy, context, block))
    if "phone" in kinds or "random" in kinds:
        check_region(region)
    finders = _finders(kinds, region, min_entropy)
    chosen = files_of(paths, exclude=exclude)
    joining = Joining(context=context)
    files, skipped = [], []
    for done, (path, named) in enumerate(chosen.items(), start=1):
        try:
            encoding = encoding_of(path, latin_1=latin_1)
        except InvalidInput as fault:
            if named:
                raise
            reason = fault.message.removeprefix(f"{path} ").rstrip(".")
            skipped.append(SkippedFile(str(path), reason))
        else:
            files.append(_scan(path, encoding, finders, set(kinds), joining, block))
        if progress is not None:
            progress("files", done, len(chosen))
    asked = tuple(kind for kind in KINDS if kind in kinds)
    return Scan(joining.joined(salt=salt), tuple(files), tuple(skipped), asked)


def find_secrets(text: str, *, region: str = "US", min_entropy: float | None = None) -> list[Match]:
    """Return the secrets of all kinds in one text, in the order in which they stand there.

    Example:
        >>> [one.kind for one in find_secrets("ann@uni.edu, 536-90-4399, (650) 253-0000")]
        ['email', 'ssn', 'phone']
    """
    return _found(text, _finders(KINDS, region, min_entropy))


def _finders(kinds: Sequence[str], region: str, min_entropy: float | None) -> list[Finder]:
    """Return the finders up to the last kind asked for: earlier ones take its overlaps away."""
    ordered: dict[str, Finder] = {
        "key": find_keys,
        "iban": find_ibans,
        "card": find_cards,
        "ssn": find_ssns,
        "email": find_emails,
        "phone": partial(find_phones, region=region),
        "random": partial(find_random, min_entropy=min_entropy),
    }
    last = max(list(ordered).index(kind) for kind in kinds)
    return list(ordered.values())[: last + 1]


def _found(text: str, finders: Iterable[Finder]) -> list[Match]:
    matches = [match for finder in finders for match in finder(text)]
    short = [match for match in matches if match.end - match.start <= LONGEST]
    return sorted(without_overlaps(short), key=lambda match: match.start)


def _scan(
    path: Path,
    encoding: str,
    finders: Sequence[Finder],
    kinds: set[str],
    joining: Joining,
    block: int,
) -> ScannedFile:
    counts: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    characters = 0
    for piece in pieces_of(path, encoding, block=block):
        characters += piece.until - piece.fresh
        fresh = {
            match: since
            for match, since in _with_the_last(_found(piece.text, finders))
            if match.kind in kinds and piece.fresh <= match.start < piece.until
        }
        places = _places(str(path), piece, list(fresh))
        for (match, since), place in zip(fresh.items(), places, strict=True):
            joining.add(match, piece.text, place, since=since)
            counts[match.kind] += 1
            taken[match.kind] += match.end - match.start
    crowded = tuple(
        kind for kind in KINDS if counts[kind] >= _MANY and taken[kind] > _HALF * characters
    )
    ordered = {kind: counts[kind] for kind in KINDS if counts[kind]}
    return ScannedFile(str(path), encoding.removesuffix("-sig"), characters, ordered, crowded)


def _with_the_last(matches: Iterable[Match]) -> Iterator[tuple[Match, int]]:
    """Yield each match with where the same secret ended the last time before it, else 0."""
    ended: dict[tuple[str, str], int] = {}
    for match in matches:
        yield match, ended.get((match.kind, match.value), 0)
        ended[match.kind, match.value] = match.end


def _places(path: str, piece: Piece, matches: Sequence[Match]) -> list[Place]:
    """Return the lines and columns of matches."""
    if not matches:
        return []
    begins = [0]
    while (ended := piece.text.find("\n", begins[-1])) >= 0:
        begins.append(ended + 1)
    found = []
    for match in matches:
        at = bisect_right(begins, match.start) - 1
        column = match.start - begins[at] + (piece.column if at == 0 else 1)
        found.append(Place(path, piece.line + at, column))
    return found


def _faults(
    salt: bytes, kinds: Sequence[str], min_entropy: float | None, context: int, block: int
) -> list[str]:
    faults = []
    if len(salt) < LEAST_SALT:
        faults.append(f"salt has {len(salt)} bytes, and {LEAST_SALT} are needed")
    wrong = [kind for kind in kinds if kind not in KINDS]
    if isinstance(kinds, str) or not kinds:
        faults.append("kinds is not a list of at least one kind")
    elif wrong:
        faults.append(f"kinds={wrong[0]!r} is not one of {', '.join(KINDS)}")
    if min_entropy is not None and not 0 <= min_entropy <= 8:
        faults.append(f"min_entropy={min_entropy:g} is not between 0 and 8 bits a character")
    if not 0 <= context <= LONGEST_CONTEXT:
        faults.append(f"context={context} is not between 0 and {LONGEST_CONTEXT} characters")
    if block < 1:
        faults.append(f"block={block} is less than 1")
    return faults
