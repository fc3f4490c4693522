"""Copies of scanned files in which placeholders replace the secrets."""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from remnant.canaries.natural.files import LINK, is_excluded
from remnant.canaries.natural.reading import BLOCK, Piece, batches_of, pieces_of
from remnant.canaries.natural.redacting import (
    MOST_ROUNDS,
    KnownSecrets,
    Span,
    in_order,
    joined_spans,
    replaced,
    spans_of_matches,
)
from remnant.canaries.natural.row_tokens import Token, tokens_of
from remnant.canaries.natural.rows import (
    LONG_NUMBER,
    FieldText,
    check_rows,
    layout_of,
    without_surrogates,
)
from remnant.canaries.natural.scanning import (
    Finder,
    Scan,
    ScannedFile,
    SkippedFile,
    checked_finders,
    matches_in,
)
from remnant.canaries.whole_file import folder_beside
from remnant.errors import InvalidInput, is_disk_full
from remnant.progress import Progress

_OWNER_ONLY = 0o700  # of folders
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class CleanedFile:
    """A copy of one file.

    Attributes:
        copy: Its path in the new folder.
        counts: Replacements by kind; kinds without any are left out.
        zeros: How many of them are numbers of a JSON file, which are 0 in the copy.
    """

    copy: str
    counts: dict[str, int]
    zeros: int


@dataclass(frozen=True, slots=True)
class CleanedCopies:
    """Copies of files, and the files without one.

    Attributes:
        files: In the order of the scan.
        not_copied: Files and folders that were not read, and links in folders, with the reason.
    """

    files: tuple[CleanedFile, ...]
    not_copied: tuple[SkippedFile, ...]


def check_new_folder(folder: Path, inputs: Sequence[Path]) -> None:
    """Refuse a folder for copies that is not empty, or is inside of what is copied.

    Raises:
        InvalidInput: It is no folder, holds something, or cannot be made there.
    """
    resolved = folder.resolve()
    if not resolved.parent.is_dir():
        raise InvalidInput(
            f"{folder} is not in a folder that exists.", hint="Make the folder above it first."
        )
    for source in inputs:
        if resolved == source.resolve() or source.resolve() in resolved.parents:
            raise InvalidInput(
                f"{folder} is one of the inputs, or inside one.",
                hint="Name a new folder outside of them.",
            )
    if resolved.exists() and not resolved.is_dir():
        raise InvalidInput(f"{folder} is a file.", hint="Name a new folder.")
    try:
        held = next(iter(sorted(os.listdir(resolved))), None) if resolved.is_dir() else None
    except OSError as fault:
        raise InvalidInput(f"{folder} cannot be listed: {fault.strerror}.") from None
    if held is not None:
        raise InvalidInput(f"{folder} is not empty.", hint="Name a new or an empty folder.")


def write_cleaned(
    paths: Sequence[str | Path],
    folder: Path,
    *,
    scan: Scan,
    shown_path: Callable[[str], str] = str,
    exclude: Sequence[str] = (),
    region: str = "US",
    min_entropy: float | None = None,
    fields: Sequence[str] = (),
    progress: Progress | None = None,
) -> CleanedCopies:
    """Write a copy of each scanned file in which placeholders replace the secrets.

    With one folder as input, names are relative to it. With several inputs, the files of each
    folder are in a folder of its name.

    Args:
        paths: What was scanned.
        folder: New or empty.
        scan: What was found there.
        shown_path: Removes secrets from the path of a copy.
        exclude, region, min_entropy, fields: As they were for the scan.
        progress: Called with what is done, how many files, and of how many.

    Guarantees:
        * Nothing that the scan finds is left in a copy, in the fields that were scanned. Secrets
          that were found anywhere are replaced in all files and all fields; see ``KnownSecrets``.
        * All other characters, the encoding, line ends and escapes stay. Files that were read by
          field have the same rows and fields; a number with a secret is 0.
        * All copies are written, or none. Only the owner can look into the folder; no copy has
          permissions that its source does not have.
        * What the finders miss stays: a copy is not proven free of secrets.

    Raises:
        InvalidInput: See ``check_new_folder``; two files would have the same name; or a copy cannot
            be written.
    """
    inputs = [Path(path) for path in paths]
    check_new_folder(folder, inputs)
    names = _copy_names([Path(file.path) for file in scan.files], inputs, shown_path)
    cleaner = _Cleaner(
        finders=checked_finders(scan.kinds, region, min_entropy),
        kinds=frozenset(scan.kinds),
        known=KnownSecrets.of_scan(scan.found),
        fields=tuple(fields),
    )
    cleaned = []
    try:
        with folder_beside(folder.resolve()) as unfinished:
            copies = unfinished / "copies"
            copies.mkdir(mode=_OWNER_ONLY)
            for done, (file, name) in enumerate(zip(scan.files, names, strict=True), start=1):
                cleaned.append(_copy(file, copies, name, cleaner))
                if progress is not None:
                    progress("copies", done, len(names))
            os.rename(copies, folder.resolve())
    except OSError as fault:
        if fault.filename in {file.path for file in scan.files}:
            said = f"{shown_path(str(fault.filename))} cannot be read: {fault.strerror}."
            raise InvalidInput(said, hint="No copy was written.") from None
        raise _not_written(folder, fault) from None
    skipped = {file.path for file in scan.skipped}
    links = (link for link in _links(inputs, exclude) if link.path not in skipped)
    return CleanedCopies(tuple(cleaned), (*scan.skipped, *links))


def _not_written(folder: Path, fault: OSError) -> InvalidInput:
    if is_disk_full(fault):
        return InvalidInput(
            f"{folder} cannot be written: the disk is full.",
            hint="No copy was written. Free some space, then run the same command again.",
        )
    said = "it is not empty" if fault.errno == errno.ENOTEMPTY else fault.strerror
    return InvalidInput(f"{folder} cannot be written: {said}.", hint="No copy was written.")


def _copy_names(
    files: Sequence[Path], inputs: Sequence[Path], shown_path: Callable[[str], str]
) -> list[str]:
    """Return the path of each copy in the new folder, without secrets, each once.

    Raises:
        InvalidInput: Two files have the same name.
    """
    names = [_relative(file, inputs) for file in files]
    twice = [names.index(name) for name, many in Counter(names).items() if many > 1]
    if twice:
        raise InvalidInput(
            f"{shown_path(str(files[twice[0]]))} and another file would have the same copy.",
            hint="Copy them in separate runs, or name the folders that hold them.",
        )
    taken: set[str] = set()
    unique = []
    for name in names:
        path = PurePath(shown_path(name))
        number, numbered = 1, path
        while str(numbered) in taken:
            number += 1
            numbered = path.with_name(f"{path.stem} {number}{path.suffix}")
        taken.add(str(numbered))
        unique.append(str(numbered))
    return unique


def _relative(file: Path, inputs: Sequence[Path]) -> str:
    for source in inputs:
        if source == file:
            return file.name
        if source in file.parents:
            inside = file.relative_to(source)
            own = source.resolve().name
            return str(inside if len(inputs) == 1 else PurePath(own, inside))
    return file.name


def _links(inputs: Sequence[Path], exclude: Sequence[str]) -> Iterator[SkippedFile]:
    """Yield what is in the folders and is neither a folder nor a plain file."""
    for source in inputs:
        for above, folders, files in os.walk(source):
            here = Path(above)
            folders[:] = [name for name in sorted(folders) if not is_excluded(here / name, exclude)]
            inside = [here / name for name in sorted([*folders, *files])]
            for path in (path for path in inside if not is_excluded(path, exclude)):
                if path.is_symlink():
                    yield SkippedFile(str(path), LINK)
                elif not path.is_dir() and not path.is_file():
                    yield SkippedFile(str(path), "is not a regular file")


def _copy(file: ScannedFile, copies: Path, name: str, cleaner: _Cleaner) -> CleanedFile:
    source, target = Path(file.path), copies / name
    layout = layout_of(source) if file.rows is not None else None
    encoding = "latin-1" if file.encoding == "latin-1" else "utf-8"
    mode = source.stat().st_mode & 0o777
    counts: Counter[str] = Counter()
    zeros = 0
    read = source
    for number in range(MOST_ROUNDS):
        ending = "" if layout is None else source.suffix  # the separator of a table depends on it
        written = copies.parent / f"round {number % 2}{ending}"
        replacements = cleaner.copy(read, written, encoding=encoding, layout=layout)
        counts.update(replacements.counts)
        zeros += replacements.zeros
        read = written
        if not replacements.counts:
            break
    else:
        raise InvalidInput(
            "A file still has secrets after all rounds of replacing them.",
            hint="Leave it out with exclude=, or leave a kind out with kinds=.",
        )
    if layout is not None:
        check_rows(read, f"{encoding}-sig" if encoding == "utf-8" else encoding, layout)
    for above in reversed(PurePath(name).parents):
        (copies / above).mkdir(mode=_OWNER_ONLY, exist_ok=True)
    os.chmod(read, mode)
    shutil.move(read, target)
    return CleanedFile(name, in_order(counts), zeros)


@dataclass(slots=True)
class _Replacements:
    """What was replaced in one file; see ``CleanedFile``."""

    counts: Counter[str]
    zeros: int = 0


@dataclass(frozen=True, slots=True)
class _Cleaner:
    """Which secrets are replaced.

    Attributes:
        finders: Those of the scan.
        kinds: The kinds that are replaced, of those that the finders find.
        known: Secrets that were found in any file.
        fields: Of files of rows, those that were scanned; empty for all.
    """

    finders: Sequence[Finder]
    kinds: frozenset[str]
    known: KnownSecrets
    fields: tuple[str, ...]

    def copy(
        self, source: Path, target: Path, *, encoding: str, layout: str | None
    ) -> _Replacements:
        """Copy a file with placeholders in place of secrets."""
        replacements = _Replacements(Counter())
        with source.open("rb") as file:
            marked = encoding == "utf-8" and file.read(len(_MARK)) == _MARK
        reading = "utf-8-sig" if encoding == "utf-8" else encoding
        writing = "utf-8-sig" if marked else encoding
        with target.open("w", encoding=writing, newline="") as out:
            if layout is None:
                pieces = pieces_of(source, reading)
                out.writelines(self._plain_text(pieces, replacements))
                return replacements
            try:
                with source.open(encoding=reading, newline="") as rows:
                    tokens = tokens_of(source, rows, layout)
                    out.writelines(self._rows(tokens, replacements))
            except UnicodeDecodeError:
                raise InvalidInput(
                    f"{source} changed while it was read.", hint="Try again."
                ) from None
        return replacements

    def _spans(self, text: str) -> list[Span]:
        """Return what the finders find in a text, in order."""
        matches = matches_in(text, self.finders)
        return list(spans_of_matches(match for match in matches if match.kind in self.kinds))

    def _plain_text(self, pieces: Iterable[Piece], replacements: _Replacements) -> Iterator[str]:
        ended = 0  # where the last span of the piece before ends, after its new part
        for piece in pieces:
            spans = [*self._spans(piece.text), *self.known.spans(piece.text)]
            begin = piece.fresh + ended
            fresh = [span for span in joined_spans(spans) if begin <= span.start < piece.until]
            end = max([piece.until, begin, *(span.end for span in fresh)])
            ended = end - piece.until
            replacements.counts.update(span.kind for span in fresh)
            moved = (Span(span.start - begin, span.end - begin, span.kind) for span in fresh)
            yield replaced(piece.text[begin:end], moved)

    def _rows(self, tokens: Iterable[Token], replacements: _Replacements) -> Iterator[str]:
        gathered: list[Token] = []
        length = 0
        numbered: Counter[tuple[int, str]] = Counter()  # names of fields that became the same
        for token in tokens:
            gathered.append(token)
            length += len(token.raw)
            if length >= BLOCK:
                yield from self._tokens(gathered, replacements, numbered)
                gathered, length = [], 0
        yield from self._tokens(gathered, replacements, numbered)

    def _tokens(
        self,
        tokens: Sequence[Token],
        replacements: _Replacements,
        numbered: Counter[tuple[int, str]],
    ) -> Iterator[str]:
        detected = self._detected(tokens)
        for number, token in enumerate(tokens):
            if token.text is None:
                yield token.raw
                continue
            known = self.known.spans(without_surrogates(token.text))
            spans = joined_spans([*detected.get(number, ()), *known])
            replacements.counts.update(span.kind for span in spans)
            if not spans:
                yield token.raw
            elif token.form == "number":
                replacements.zeros += 1
                yield "0" if token.raw.lstrip("-").isdigit() else "0.0"
            else:
                characters = replaced(token.characters, spans)
                if token.form == "name":
                    numbered[token.place, characters] += 1
                    same = numbered[token.place, characters]
                    characters += f" {same}" if same > 1 else ""
                yield token.written(characters)

    def _detected(self, tokens: Sequence[Token]) -> dict[int, list[Span]]:
        """Return what the finders find in the fields that are scanned, by number of the token."""
        fields = (
            FieldText(without_surrogates(token.text), 0, number, _field_name(token))
            for number, token in enumerate(tokens)
            if token.text and self._is_scanned(token)
        )
        detected: dict[int, list[Span]] = {}
        for batch in batches_of(fields):
            for start, end, kind in self._spans(batch.text):
                number = batch.field_at(start, end)
                if number is None or not batch.fresh <= start < batch.until:
                    continue
                before = batch.begins[number] - (batch.passed if number == 0 else 0)
                span = Span(start - before, end - before, kind)
                detected.setdefault(batch.fields[number].row, []).append(span)
        return detected

    def _is_scanned(self, token: Token) -> bool:
        if token.form == "number":
            digits = token.raw.lstrip("-")
            if len(digits) < LONG_NUMBER or not digits.isdigit():
                return False
        names = token.names
        return not self.fields or any(
            names[:1] == (field,) or names[: field.count(".") + 1] == tuple(field.split("."))
            for field in self.fields
        )


def _field_name(token: Token) -> str:
    return "(name of a field)" if token.form == "name" else ".".join(token.names)
