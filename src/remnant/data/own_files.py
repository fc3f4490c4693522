"""The user's own files: where they are, what they hold by digest, and faults of several at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from remnant.errors import InvalidInput, MissingField, require

FILES = "files"  # the name of a data set that is read from the user's own files
TENSORS = "tensors"  # the same, handed to models as they are
_SHOWN = 3  # faults of one kind that are listed
_CHUNK = 1 << 20

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Origin:
    """What a record says of the files that data were read from.

    Attributes:
        files: The paths as the recipe has them, each with the SHA-256 of what was read.
        classes: The names of the classes in the order of their numbers; empty without classes.
        answers: How answers were read: ``"choice"``, ``"letter"`` or ``"place"``; None without.
        left_out: Rows that were left out because a text was blank.
    """

    files: tuple[tuple[str, str], ...]
    classes: tuple[str, ...] = ()
    answers: str | None = None
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the origin as plain data, without what does not apply."""
        made: dict[str, Any] = {"data_files": dict(self.files)}
        if self.classes:
            made["classes"] = {str(number): name for number, name in enumerate(self.classes)}
        if self.answers is not None:
            made["answers_read_as"] = self.answers
        if self.left_out:
            made["blank_rows_left_out"] = self.left_out
        return made


def with_origin(values: str, origin: Origin | None) -> str:
    """Return the fingerprint of data: of their values and, for the user's files, of every byte.

    Args:
        values: A digest of the values.
        origin: None for data that are not from the user's files; the digest is then the values'.

    Example:
        >>> with_origin("3f9c", None)
        '3f9c'
    """
    if origin is None:
        return values
    digests = "".join(digest for _, digest in origin.files)
    return hashlib.sha256(f"{values}/{digests}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFiles:
    """Where the files of a recipe are.

    Attributes:
        path: File or folder with what models are trained on.
        held_out: File or folder with what is held out; None where it is cut from ``path``.
        folder: What relative paths are relative to; None for the working directory.
    """

    path: str
    held_out: str | None = None
    folder: Path | None = None

    def read(self, read: Callable[[Path], tuple[P, Sequence[Path]]]) -> tuple[P, P | None, Origin]:
        """Read both parts.

        Args:
            read: Reads a part and returns it with the files that it was read from.

        Returns:
            The part to train on, the held-out part or None, and the digests of their files.

        Raises:
            InvalidInput: A part cannot be read; the faults of both are listed, each with its field.
                Or both parts are the same.
            MissingField: The parts can be read, and lack a field that the recipe names.
        """
        parts: list[P] = []
        digests: list[tuple[str, str]] = []
        faults, hints = [], []
        kinds: set[type[InvalidInput]] = set()
        for field, given in (("data.path", self.path), ("data.held_out", self.held_out)):
            if given is None:
                continue
            try:
                place = self.place(given)
                part, files = read(place)
                parts.append(part)
                digests.append((given, _digest(place, files)))
            except InvalidInput as fault:
                kinds.add(type(fault))
                faults += [f"{field}: {said}" for said in fault.faults]
                hints += [] if fault.hint is None or fault.hint in hints else [fault.hint]
            except OSError as fault:
                kinds.add(InvalidInput)
                faults.append(f"{field}: {given} cannot be read: {fault.strerror}")
        require(
            faults,
            error=MissingField if kinds == {MissingField} else InvalidInput,
            hint=" ".join(hints) or "Check its path and permissions.",
        )
        if len({digest for _, digest in digests}) < len(digests):
            raise InvalidInput(
                f"data.held_out: {self.held_out} has the same content as {self.path}.",
                hint="Hold out data that no model is trained on, or leave data.held_out out.",
            )
        return parts[0], parts[1] if len(parts) > 1 else None, Origin(tuple(digests))

    def place(self, given: str) -> Path:
        """Return where a file or folder is.

        Raises:
            InvalidInput: It is not there.
        """
        path = (self.folder or Path()) / Path(given).expanduser()
        if not path.exists():
            raise InvalidInput(
                f"{path} is not there.",
                hint="A relative path starts at --data, or at the recipe's folder without --data.",
            )
        return path


def data_files(path: Path, endings: Sequence[str]) -> list[Path]:
    """Return the files of a folder that have one of the endings, in the order of their names.

    Hidden files are passed over. A path of a file is returned alone, whatever its ending.

    Raises:
        InvalidInput: The folder has none, or files with several of the endings.
    """
    if not path.is_dir():
        return [path]
    inner = sorted(file for file in path.rglob("*") if file.is_file() and not hidden(file, path))
    files = [file for file in inner if file.suffix.lower() in endings]
    kinds = sorted({file.suffix.lower() for file in files})
    if len(kinds) != 1:
        what = f"files of {len(kinds)} kinds ({', '.join(kinds)})" if kinds else "none"
        raise InvalidInput(
            f"{path} is a folder that should hold files of one kind of {', '.join(endings)}, and "
            f"holds {what}.",
            hint="Name one file, or a folder with files of one kind.",
        )
    return files


def hidden(file: Path, folder: Path) -> bool:
    """Whether a file, or a folder on the way to it, is hidden."""
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def listed(faults: Iterable[str]) -> list[str]:
    """Return the first faults, and how many more there are."""
    given = list(faults)
    if len(given) <= _SHOWN:
        return given
    *first, last = given[:_SHOWN]
    return [*first, f"{last} (and {len(given) - _SHOWN} more of this kind)"]


def numbered_classes(names: Iterable[str]) -> tuple[str, ...]:
    """Return the different names in the order in which they are numbered.

    Whole numbers are in the order of their values, other names in that of the alphabet.

    Example:
        >>> numbered_classes(["10", "2", "2"]), numbered_classes(["dog", "cat", "10"])
        (('2', '10'), ('10', 'cat', 'dog'))
    """
    different = sorted(set(names))
    whole = all(name.lstrip("-").isdecimal() for name in different)
    return tuple(sorted(different, key=int) if whole else different)


def class_numbers(
    names: Sequence[str], held_out: Sequence[str] | None, origin: Origin
) -> tuple[list[int], list[int] | None, Origin]:
    """Return the numbers of the classes of both parts, and the origin with their names.

    Raises:
        InvalidInput: There is one class only, or the held-out part has others.
    """
    classes = numbered_classes(names)
    number = {name: place for place, name in enumerate(classes)}
    faults = []
    if len(classes) < 2:
        faults.append(f"data.path: {origin.files[0][0]} has one class only, {classes[0]!r}")
    strange = numbered_classes(name for name in held_out or () if name not in number)
    if strange:
        faults.append(
            f"data.held_out: {origin.files[-1][0]} has classes that data.path has not: "
            f"{', '.join(map(repr, strange[:_SHOWN]))}"
        )
    require(faults, hint="Give examples of two classes or more, the same ones in both parts.")
    later = None if held_out is None else [number[name] for name in held_out]
    return [number[name] for name in names], later, replace(origin, classes=classes)


def _digest(place: Path, files: Sequence[Path]) -> str:
    """SHA-256 of a file, or of the names and contents of a folder's files."""
    if not place.is_dir():
        return _file_digest(place).hexdigest()
    digest = hashlib.sha256()
    for file in files:
        name = file.relative_to(place).as_posix().encode()
        digest.update(len(name).to_bytes(8, "big") + name + _file_digest(file).digest())
    return digest.hexdigest()


def _file_digest(path: Path) -> hashlib._Hash:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}.") from fault
    return digest
