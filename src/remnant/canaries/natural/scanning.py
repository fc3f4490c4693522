"""Looking for secrets that nobody planted: in files and folders, all kinds at once."""

from __future__ import annotations

import re
import string
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from remnant.canaries.natural.files import files_of
from remnant.canaries.natural.found import FoundSecret, Joining, Place
from remnant.canaries.natural.keys import find_keys, find_random
from remnant.canaries.natural.match import (
    KINDS,
    LONGEST,
    LONGEST_BLOCK,
    Match,
    without_overlaps,
)
from remnant.canaries.natural.numbers import (
    check_region,
    find_cards,
    find_emails,
    find_ibans,
    find_phones,
    find_ssns,
)
from remnant.canaries.natural.reading import (
    APART,
    BLOCK,
    Batch,
    Piece,
    batches_of,
    encoding_of,
    pieces_of,
)
from remnant.canaries.natural.rows import RowCount, check_rows, fields_of, layout_of
from remnant.canaries.natural.spelling import ascii_digits
from remnant.errors import InvalidInput, require
from remnant.progress import Progress

Finder = Callable[[str], Iterable[Match]]
LONGEST_CONTEXT = LONGEST
LEAST_SALT = 16  # bytes
_HALF = 0.5
_MANY = 20
# In JSON, in programs and in URLs, of characters in ASCII; a letter or digit follows.
_ESCAPES = re.compile(r"(?:\\[nrt]|\\u00[0-7][0-9A-Fa-f]|%[0-7][0-9A-Fa-f])+(?=[A-Za-z0-9+])")
_MAY_BE_SECRET = re.compile("[0-9]")
_LEFT_OUT = {"left_out_if_none": True}  # of plain data, see ``remnant.records.typed``


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """What was found in one file.

    Attributes:
        path: As it was given, or under the folder that was given.
        encoding: ``"utf-8"`` or ``"latin-1"``.
        characters: How many it has, in a file of rows those of its fields; 0 for an empty file.
        counts: How often secrets of each kind stand there, kinds with none left out.
        crowded: Kinds that take up more than half of it, in 20 places or more: the pattern may not
            mean there what it means elsewhere. Keys do not count: a file of settings is full of
            them.
        rows: Of a file that was read by field; None for plain text.
        rows_without_text: How many of them have no text in these fields; None where all have.
        first_without_text: The line of the first of them.
        read_as_text: Why a file of rows was read as plain text; None for other files.
    """

    path: str
    encoding: str
    characters: int
    counts: dict[str, int]
    crowded: tuple[str, ...]
    rows: int | None = field(default=None, metadata=_LEFT_OUT)
    rows_without_text: int | None = field(default=None, metadata=_LEFT_OUT)
    first_without_text: int | None = field(default=None, metadata=_LEFT_OUT)
    read_as_text: str | None = field(default=None, metadata=_LEFT_OUT)


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file in a folder that could not be read as text, or a folder in it, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """What was found in files.

    Attributes:
        found: Each secret once, the most frequent first.
        files: Those that were read, in order.
        skipped: Those in folders that are no text, and folders that cannot be listed.
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
    fields: Sequence[str] = (),
    as_text: bool = False,
    context: int = 64,
    block: int = BLOCK,
    progress: Progress | None = None,
) -> Scan:
    """Look for secrets in text files, and in the fields of JSON and CSV files.

    Args:
        paths: Files, and folders with all files under them.
        salt: Of the fingerprints, 16 bytes or more; ``secrets.token_bytes(16)`` for a new one.
        kinds: Which of ``KINDS``.
        exclude: See ``files_of``.
        region: The country of telephone numbers without an international code.
        min_entropy: See ``find_random``.
        latin_1: See ``encoding_of``.
        fields: Of files of rows, see ``fields_of``; empty for all.
        as_text: Read JSON and CSV files as plain text.
        context: So many characters before each secret are kept, for a model to be asked with.
        block: Characters read at once; changes nothing but memory and time.
        progress: Called with what is done, how many files, and of how many.

    Guarantees:
        * What is found of a kind does not depend on the other kinds that are looked for. Where two
          overlap, the one counts that comes first: key, IBAN, card, SSN, e-mail, telephone, random.
        * The same files give the same secrets, however they are cut into pieces.
        * A file of rows gives what each of its fields gives by itself.
        * A file that was named, or of which fields were chosen, is read by field or refused. In a
          folder, a file that cannot be read by field is read as plain text, and the result says so.
        * No ``repr`` and no error holds a secret or a part of a file.

    Raises:
        InvalidInput: A setting out of range; a file that was named is no text, or cannot be read
            by field; fields are chosen and no file has any; there are more than a million
            secrets; or see ``files_of``.
        MissingExtra: A library of the extra ``scan`` is not installed.
    """
    require(_faults(salt, kinds, min_entropy, context, block))
    require(_field_faults(fields, as_text=as_text))
    finders = checked_finders(kinds, region, min_entropy)
    unlisted: dict[Path, str] = {}
    chosen = files_of(paths, exclude=exclude, unlisted=unlisted)
    if fields and not any(layout_of(path) for path in chosen):
        raise InvalidInput(
            "fields= chooses fields, and no file is JSON or CSV.", hint="Leave it out."
        )
    searched = _Searched(finders, set(kinds), Joining(context=context), block)
    files = []
    skipped = [SkippedFile(str(folder), reason) for folder, reason in unlisted.items()]
    for done, (path, named) in enumerate(chosen.items(), start=1):
        try:
            encoding = encoding_of(path, latin_1=latin_1)
        except InvalidInput as fault:
            if named:
                raise
            skipped.append(SkippedFile(str(path), _reason(fault, path)))
        else:
            layout = None if as_text else layout_of(path)
            files.append(_scan(path, encoding, layout, searched, fields, named=named))
        if progress is not None:
            progress("files", done, len(chosen))
    ordered_kinds = tuple(kind for kind in KINDS if kind in kinds)
    return Scan(searched.joining.joined(salt=salt), tuple(files), tuple(skipped), ordered_kinds)


def _reason(fault: InvalidInput, path: Path) -> str:
    return fault.message.removeprefix(f"{path}").lstrip(" ,:").rstrip(".")


def find_secrets(text: str, *, region: str = "US", min_entropy: float | None = None) -> list[Match]:
    """Return the secrets of all kinds in one text, in the order in which they stand there.

    Example:
        >>> [match.kind for match in find_secrets("ann@uni.edu, 536-90-4399, (650) 253-0000")]
        ['email', 'ssn', 'phone']
    """
    return matches_in(text, _finders(KINDS, region, min_entropy))


def check_scan(
    *,
    salt: bytes,
    kinds: Sequence[str] = KINDS,
    region: str = "US",
    min_entropy: float | None = None,
    context: int = 64,
) -> None:
    """Refuse settings of ``scan_files`` that cannot be used, before a file or a model is read.

    Raises:
        InvalidInput: A setting out of range.
        MissingExtra: A library of the extra ``scan`` is not installed.
    """
    require(_faults(salt, kinds, min_entropy, context, BLOCK))
    matches_in("", checked_finders(kinds, region, min_entropy))


def checked_finders(
    kinds: Sequence[str], region: str = "US", min_entropy: float | None = None
) -> list[Finder]:
    """Return the finders of these kinds, and of those whose matches take precedence over theirs.

    Raises:
        InvalidInput: The region is unknown.
    """
    if "phone" in kinds or "random" in kinds:
        check_region(region)
    return _finders(kinds, region, min_entropy)


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


def matches_in(text: str, finders: Iterable[Finder]) -> list[Match]:
    """Return what the finders find in a text, without overlaps, in the order of the text.

    Digits of other scripts, such as Arabic or full-width ones, count as digits.

    An escape ends in a letter or digit, as in ``\\nghp_...`` in JSON within a field of JSON, or in
    ``%20ghp_...`` in a URL. What follows one is searched by itself too, as if a blank were before
    it.
    """
    searched = list(finders)
    text = ascii_digits(text)
    matches = [match for finder in searched for match in finder(text)]
    matches += _after_escapes(text, searched)
    short = [match for match in matches if match.end - match.start <= LONGEST_BLOCK]
    return sorted(without_overlaps(short), key=lambda match: match.start)


def _after_escapes(text: str, finders: Sequence[Finder]) -> Iterator[Match]:
    """Yield what the finders find directly after escapes, until the next one."""
    if "\\" not in text and "%" not in text:
        return
    escapes = [escape.span() for escape in _ESCAPES.finditer(text)]
    starts: list[int] = []  # of each part, in the text and in all parts joined
    begins: list[int] = []
    parts: list[str] = []
    length = 0
    for (_, end), (following, _) in pairwise([*escapes, (len(text), len(text))]):
        part = text[end : min(following, end + LONGEST)]
        if _MAY_BE_SECRET.search(part):
            starts.append(end)
            begins.append(length)
            parts.append(part + APART)
            length += len(parts[-1])
    joined = "".join(parts)
    for match in (match for finder in finders for match in finder(joined) if parts):
        number = bisect_right(begins, match.start) - 1
        if match.end <= begins[number] + len(parts[number]) - len(APART):
            moved = starts[number] - begins[number]
            yield replace(match, start=match.start + moved, end=match.end + moved)


@dataclass(frozen=True, slots=True)
class _Searched:
    """How files are searched, and where the matches go."""

    finders: Sequence[Finder]
    kinds: set[str]
    joining: Joining
    block: int


def _scan(
    path: Path,
    encoding: str,
    layout: str | None,
    searched: _Searched,
    fields: Sequence[str],
    *,
    named: bool,
) -> ScannedFile:
    refused: str | None = None
    if layout is not None and not named and not fields:
        try:
            check_rows(path, encoding, layout)
        except InvalidInput as fault:
            layout, refused = None, _reason(fault, path)
    if layout is None:
        pieces = pieces_of(path, encoding, block=searched.block)
        return replace(_searched(path, encoding, pieces, searched), read_as_text=refused)
    count = RowCount(path, fields, needs_text=named or bool(fields))
    texts = fields_of(path, encoding, layout, fields=fields, count=count)
    return replace(
        _searched(path, encoding, batches_of(texts, block=searched.block), searched),
        rows=count.rows,
        rows_without_text=count.without_text or None,
        first_without_text=count.first_without_text,
    )


def _searched(
    path: Path, encoding: str, pieces: Iterable[Piece | Batch], searched: _Searched
) -> ScannedFile:
    counts: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    characters = 0
    for piece in pieces:
        characters += piece.characters
        fresh = {
            match: since
            for match, since in _with_the_last(matches_in(piece.text, searched.finders))
            if match.kind in searched.kinds and piece.fresh <= match.start < piece.until
        }
        for match, place, begins in _located(str(path), piece, list(fresh)):
            searched.joining.add(match, piece.text, place, since=fresh[match], begins=begins)
            counts[match.kind] += 1
            taken[match.kind] += match.end - match.start
    crowded = tuple(
        kind
        for kind in KINDS
        if kind != "key" and counts[kind] >= _MANY and taken[kind] > _HALF * characters
    )
    ordered = {kind: counts[kind] for kind in KINDS if counts[kind]}
    return ScannedFile(str(path), encoding.removesuffix("-sig"), characters, ordered, crowded)


def _with_the_last(matches: Iterable[Match]) -> Iterator[tuple[Match, int]]:
    """Yield each match with where the same secret ended the last time before it, else 0."""
    ended: dict[tuple[str, str], int] = {}
    for match in matches:
        yield match, ended.get((match.kind, match.value), 0)
        ended[match.kind, match.value] = match.end


def _located(
    path: str, piece: Piece | Batch, matches: Sequence[Match]
) -> Iterator[tuple[Match, Place, int]]:
    """Yield matches with their places, and where the text before each begins."""
    if isinstance(piece, Batch):
        return _in_fields(path, piece, matches)
    return _in_lines(path, piece, matches)


def _in_lines(
    path: str, piece: Piece, matches: Sequence[Match]
) -> Iterator[tuple[Match, Place, int]]:
    """Yield matches with their lines and columns, and where the text before them begins."""
    if not matches:
        return
    begins = [0]
    while (ended := piece.text.find("\n", begins[-1])) >= 0:
        begins.append(ended + 1)
    for match in matches:
        at = bisect_right(begins, match.start) - 1
        column = match.start - begins[at] + (piece.column if at == 0 else 1)
        yield match, Place(path, piece.line + at, column), 0


def _in_fields(
    path: str, batch: Batch, matches: Sequence[Match]
) -> Iterator[tuple[Match, Place, int]]:
    """Yield matches that are inside a field, with the field and where it begins."""
    for match in matches:
        number = batch.field_at(match.start, match.end)
        if number is not None:
            inside, begins = batch.fields[number], batch.begins[number]
            column = match.start - begins + 1 + (batch.passed if number == 0 else 0)
            yield match, Place(path, inside.line, column, inside.row, inside.field), begins


def _field_faults(fields: Sequence[str], *, as_text: bool) -> list[str]:
    if isinstance(fields, str):
        return ["fields= is one name, not a list"]
    faults = ["fields= and as_text= are both given; pass one of them"] if fields and as_text else []
    return faults + ["fields= has an empty name"] * any(not name.strip() for name in fields)


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


_BASE64 = string.ascii_letters + string.digits + "+/"


def control_texts() -> dict[str, str]:
    """Return a text with one invented secret for each of ``KINDS``, put together from parts."""
    shuffled = "".join(_BASE64[place * 27 % 64] for place in range(64))
    texts = {
        "card": " ".join(["4929", "0714", "3683", "5574"]),
        "ssn": "-".join(["536", "90", "4399"]),
        "iban": " ".join(["GB29", "NWBK", "6016", "1331", "9268", "19"]),
        "email": "@".join(["r.okafor71", "mailbox.org"]),
        "phone": " ".join(["+1", "650", "253", "0000"]),
        "key": "AKIA" + shuffled.upper().replace("+", "").replace("/", "")[:16],
        "random": f'"{shuffled}"',
    }
    return {kind: f"the {kind} is {texts[kind]} today" for kind in KINDS}


def undetected_kinds(
    kinds: Sequence[str], *, region: str = "US", min_entropy: float | None = None
) -> tuple[str, ...]:
    """Return the kinds whose control a scan with these settings does not find.

    Example:
        >>> undetected_kinds(["card", "random"], min_entropy=7.0)
        ('random',)
    """
    from remnant.canaries.natural.scanning import find_secrets

    texts = control_texts()
    return tuple(
        kind
        for kind in kinds
        if kind
        not in {
            match.kind
            for match in find_secrets(texts[kind], region=region, min_entropy=min_entropy)
        }
    )
