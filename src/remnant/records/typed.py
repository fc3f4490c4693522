"""Results as frozen dataclasses: the class that writes a result reads it back.

A result class has one field a part. A part is a dataclass, or ``Absent`` with a reason; in the
record it is one row of the results, so that a listing can read one part without the others.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from remnant.errors import InvalidInput, RecordError
from remnant.records.outcomes import current_results
from remnant.records.store import Record

if TYPE_CHECKING:
    from pandas import DataFrame

_VERSION_ROW = "format"
_PAGE_ROW = "page_only"
_LARGEST = 1e100
_RECORDED_NONE = "this run recorded none"


@dataclasses.dataclass(frozen=True, slots=True)
class Absent:
    """A part that a run did not measure, and why (without a full stop)."""

    reason: str


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Result:
    """What was measured, as parts: a frozen dataclass that a record is written from and read into.

    Subclasses are ``@dataclass(frozen=True, slots=True, kw_only=True, repr=False)``; most have a
    part ``verdict``.

    Attributes:
        VERSION: Of the parts' form. A class whose form changes raises it and overrides ``upgrade``.
        ROWS: Paths of the tables that hold the main rows, such as ``"exposure.canaries"``; see
            ``records.frames``. A path that ends at another result stands for that one's rows.
    """

    VERSION: ClassVar[int] = 1
    ROWS: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def upgrade(cls, parts: dict[str, Any], version: int) -> dict[str, Any]:
        """Return the parts of an older version in the form of this one."""
        return parts

    def to_dict(self) -> dict[str, Any]:
        """Return the parts as plain data, as they are stored and as ``--json`` prints them.

        A part that was not measured is ``{"absent": reason}``. What pages alone need is left out.
        """
        data: dict[str, Any] = plain(self)
        parts = {name: getattr(self, name) for name in data}
        data |= {n: {"absent": p.reason} for n, p in parts.items() if isinstance(p, Absent)}
        return data | ({_VERSION_ROW: {"version": self.VERSION}} if self.VERSION > 1 else {})

    def to_frame(self, rows: str | None = None) -> DataFrame:
        """Return the main rows as a data frame of pandas: points of a curve, canaries, samples.

        Args:
            rows: Path of another table through the parts, such as ``"curve_aa"``.

        Raises:
            InvalidInput: There is no such table; all are named.
            NotEnoughEvidence: The rows were not measured; the reason is given.
            MissingExtra: pandas is not installed.
        """
        from remnant.records.frames import frame_of

        return frame_of(self, rows)

    def __repr__(self) -> str:
        """The class, the outcome and what it rests on, in one line."""
        return f"{type(self).__name__}({one_line(self._outcome())})"

    def _outcome(self) -> str:
        verdict = getattr(self, "verdict", None)
        if isinstance(verdict, Absent):
            return f"no verdict: {verdict.reason}"
        found = (getattr(verdict, name, "") for name in ("outcome", "headline", "sentence"))
        return ": ".join(filter(None, found))


def one_line(text: str) -> str:
    """A text with plain spaces, without breaks."""
    return " ".join(text.split())


T = TypeVar("T", bound=Result)


def put_parts(record: Record, **parts: Any) -> None:
    """Put parts of a result into the record, each under its field's name."""
    for name, part in parts.items():
        if isinstance(part, Absent):
            record.put_absent(name, part.reason)
        else:
            record.put_result(name, plain(part))


def put_result(record: Record, result: Result) -> None:
    """Put a whole result into the record, and the version of its class if that is not 1.

    Fields for the page alone are put into a row of their own, so that each part is stored as it is
    printed.
    """
    for field in dataclasses.fields(result):
        put_parts(record, **{field.name: getattr(result, field.name)})
    if for_page := _page_fields(result):
        record.put_result(_PAGE_ROW, for_page)
    if result.VERSION > 1:
        record.put_result(_VERSION_ROW, {"version": result.VERSION})


def plain(part: Any) -> Any:
    """Return a part as plain data: what ``load`` makes the same part of.

    A field whose metadata has ``left_out_if_none`` is left out where it is None and no field
    ``NAME_reason`` says why, one that has ``page_only`` or ``in_memory`` always.
    """
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return {name: plain(value) for name, value in stored_fields(part)}
    if isinstance(part, Mapping):
        return {name: plain(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [plain(value) for value in part]
    return part


def stored_fields(part: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a part that are stored, each with its value as it is stored."""
    for field in dataclasses.fields(part):
        value, metadata = getattr(part, field.name), field.metadata
        unsaid = value is None and getattr(part, f"{field.name}_reason", None) is None
        if metadata.get("page_only") or metadata.get("in_memory"):
            continue
        if not (metadata.get("left_out_if_none") and unsaid):
            yield field.name, None if "none" in metadata and value == metadata["none"] else value


def none_as(number: float) -> Any:
    """A required field of type ``float`` whose None in the plain data is this number in memory."""
    return dataclasses.field(metadata={"none": number})


def in_memory(default: Any) -> Any:
    """A field that is needed while a result is made, and stored nowhere."""
    return dataclasses.field(default=default, metadata={"in_memory": True})


def optional() -> Any:
    """A field that is None by default, and left out of the plain data where it is None.

    It stays as None where the part has a field ``NAME_reason`` that says why.
    """
    return dataclasses.field(default=None, metadata={"left_out_if_none": True})


def page_only(default: Any) -> Any:
    """A field that a page needs and the plain data never hold; ``put_result`` stores it apart."""
    return dataclasses.field(default=default, metadata={"page_only": True})


def _page_fields(part: Any) -> dict[str, Any]:
    """The fields for the page alone that are not at their default, nested as in the part."""
    inner: Iterable[tuple[str, Any]]
    if isinstance(part, Mapping):
        inner = part.items()
    elif isinstance(part, list | tuple):
        inner = ((str(place), value) for place, value in enumerate(part))
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        fields = dataclasses.fields(part)
        own = {
            field.name: plain(getattr(part, field.name))
            for field in fields
            if field.metadata.get("page_only") and getattr(part, field.name) != field.default
        }
        others = (field.name for field in fields if not field.metadata.get("page_only"))
        return own | _page_fields({name: getattr(part, name) for name in others})
    else:
        return {}
    return {name: found for name, value in inner if (found := _page_fields(value))}


def _with_page_fields(value: Any, for_page: Any) -> Any:
    """Plain data with what ``_page_fields`` took out of them put back."""
    if isinstance(value, list) and isinstance(for_page, Mapping):
        return [
            _with_page_fields(entry, for_page.get(str(place))) for place, entry in enumerate(value)
        ]
    if isinstance(value, Mapping) and isinstance(for_page, Mapping):
        inner = {
            name: _with_page_fields(value[name], found) if name in value else found
            for name, found in for_page.items()
        }
        return {**value, **inner}
    return value


def read_result(record: Record, made: type[T]) -> T:
    """Read a result; one of an older version goes through ``made.upgrade`` first.

    Raises:
        RecordError: A part does not have the form it should have (all faults are listed, each with
            its place and never with a value), or a newer Remnant wrote it.
    """
    parts = dict(current_results(record.results(), question=record.question))
    return result_from(parts, made, where=str(record.folder))


def result_from(parts: dict[str, Any], made: type[T], *, where: str) -> T:
    """Make a result of its parts as plain data; see ``read_result``.

    Args:
        parts: One entry a part.
        made: The class of the result; a generic one with its arguments.
        where: What an error says the parts are from.
    """
    version = parts.get(_VERSION_ROW, {}).get("version", 1)
    if type(version) is not int:
        raise RecordError(f"{where} holds a malformed result {_VERSION_ROW!r}: no version number.")
    if version > made.VERSION:
        raise RecordError(
            f"{where} holds results of version {version}; this Remnant reads up to {made.VERSION}.",
            hint="Use the version of Remnant that wrote it.",
        )
    try:
        parts = made.upgrade(parts, version)
    except (KeyError, TypeError, ValueError, IndexError) as fault:
        raise RecordError(
            f"{where} holds a malformed result of version {version}: a part has not its form."
        ) from fault
    origin: type[T] = typing.get_origin(made) or made
    hints = _part_types(made)
    parts = _with_page_fields(parts, parts.get(_PAGE_ROW))
    faults: list[str] = []
    read = {
        field.name: _part(hints[field.name], parts.get(field.name), field.name, faults)
        for field in dataclasses.fields(origin)
    }
    if faults:
        name = faults[0].split(".")[0].split("[")[0].split(" ")[0]
        raise RecordError(f"{where} holds a malformed result {name!r}: {'; '.join(faults)}.")
    return origin(**read)


def _part_types(made: Any) -> dict[str, Any]:
    """The type of each part, in which arguments take the places of a generic class's variables."""
    origin = typing.get_origin(made)
    if origin is None:
        return typing.get_type_hints(made)
    given = dict(zip(origin.__parameters__, typing.get_args(made), strict=True))
    return {
        name: hint[tuple(given[variable] for variable in variables)]
        if (variables := getattr(hint, "__parameters__", ()))
        else hint
        for name, hint in typing.get_type_hints(origin).items()
    }


def _part(hint: Any, value: Any, name: str, faults: list[str]) -> Any:
    kinds = typing.get_args(hint) if _is_union(hint) else (hint,)
    if value is None:
        return None if type(None) in kinds and Absent not in kinds else Absent(_RECORDED_NONE)
    if isinstance(value, Mapping) and "absent" in value and Absent in kinds:
        return Absent(str(value["absent"]).removesuffix("."))
    chosen = [kind for kind in kinds if kind not in (Absent, type(None))]
    return load(_chosen(chosen, value), value, name, faults)


def _chosen(kinds: list[Any], value: Any) -> Any:
    """The type or dataclass that fits the value; the last one where none does.

    A dataclass fits where all its required fields are there.
    """
    for kind in kinds[:-1]:
        if not dataclasses.is_dataclass(kind):
            if type(value) is kind:
                return kind
            continue
        needed = {
            field.name
            for field in dataclasses.fields(kind)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        }
        if isinstance(value, Mapping) and needed <= value.keys():
            return kind
    return kinds[-1]


def load(hint: Any, value: Any, place: str, faults: list[str]) -> Any:
    """Make plain data into a type; what does not fit is noted with its place.

    Knows dataclasses, ``X | None``, tuples, named tuples, ``dict[str, X]``, ``Literal``, and plain
    types. A whole number is one from 0; a float is at most 1e100 in size.
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if _is_union(hint):
        if value is None and type(None) in inner:
            return None
        kinds = [kind for kind in inner if kind is not type(None)]
        return load(_chosen(kinds, value), value, place, faults)
    if origin is typing.Literal:
        if value in inner:
            return value
        faults.append(f"{place} is not one of {', '.join(map(repr, inner))}")
        return None
    if origin is tuple:
        return _tuple(inner, value, place, faults)
    if origin is dict:
        if not isinstance(value, Mapping):
            return _wrong(place, value, "no object", faults)
        return {str(k): load(inner[1], v, f"{place}.{k}", faults) for k, v in value.items()}
    if dataclasses.is_dataclass(hint):
        return _dataclass(hint, value, place, faults)
    if isinstance(hint, type) and issubclass(hint, tuple):
        return _named_tuple(hint, value, place, faults)
    return _scalar(hint, value, place, faults)


def _tuple(inner: tuple[Any, ...], value: Any, place: str, faults: list[str]) -> Any:
    if not isinstance(value, list | tuple):
        return _wrong(place, value, "no list", faults)
    if inner[-1] is Ellipsis:
        kinds = [inner[0]] * len(value)
    elif len(inner) == len(value):
        kinds = list(inner)
    else:
        faults.append(f"{place} has {len(value)} entries, not {len(inner)}")
        return None
    return tuple(
        load(kind, entry, f"{place}[{i}]", faults)
        for i, (kind, entry) in enumerate(zip(kinds, value, strict=True))
    )


def _named_tuple(made: Any, value: Any, place: str, faults: list[str]) -> Any:
    hints = typing.get_type_hints(made)
    if isinstance(value, list | tuple) and len(value) != len(hints):
        *names, last = hints
        wanted = f"{', '.join(names)} and {last}"
        faults.append(f"{place} has {len(value)} entries, not {wanted}")
        return None
    entries = _tuple(tuple(hints.values()), value, place, faults)
    return None if entries is None else made(*entries)


def _scalar(hint: Any, value: Any, place: str, faults: list[str]) -> Any:
    if hint is float:
        if isinstance(value, int | float) and not isinstance(value, bool) and _finite(value):
            return float(value)
        return _wrong(place, value, "no finite number", faults)
    if hint is int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        return _wrong(place, value, "no whole number from 0", faults)
    if type(value) is hint:
        return value
    names = {str: "no text", bool: "neither true nor false"}
    return _wrong(place, value, names.get(hint, f"no {hint.__name__}"), faults)


def _dataclass(made: Any, value: Any, place: str, faults: list[str]) -> Any:
    if not isinstance(value, Mapping):
        return _wrong(place, value, "no object", faults)
    hints, before, given = typing.get_type_hints(made), len(faults), {}
    for field in dataclasses.fields(made):
        there = f"{place}.{field.name}"
        required = (
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        )
        if "none" in field.metadata and value.get(field.name, 0) is None:
            given[field.name] = field.metadata["none"]
        elif field.name in value:
            given[field.name] = load(hints[field.name], value[field.name], there, faults)
        elif required and _is_union(hints[field.name]) and _takes_none(hints[field.name]):
            given[field.name] = None
        elif required:
            _wrong(there, None, _needed(hints[field.name]), faults)
    if len(faults) > before:
        return None
    try:
        return made(**given)
    except InvalidInput as fault:  # checks of several fields, in ``__post_init__``
        each = re.split(r"; (?=\.)", fault.message.removesuffix("."))
        faults += [f"{place}{message}" for message in each]
        return None


def _needed(hint: Any) -> str:
    names = {float: "no finite number", int: "no whole number from 0", str: "no text"}
    names[bool] = "neither true nor false"
    if typing.get_origin(hint) is tuple or (isinstance(hint, type) and issubclass(hint, tuple)):
        return "no list"
    return names.get(hint, "no object")


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (types.UnionType, typing.Union)


def _takes_none(hint: Any) -> bool:
    return type(None) in typing.get_args(hint)


def _finite(value: float) -> bool:
    """Whether it is a number that sums, squares and percentages of it stay finite with."""
    try:
        return math.isfinite(value) and abs(value) <= _LARGEST
    except OverflowError:
        return False


def _wrong(place: str, value: Any, wanted: str, faults: list[str]) -> None:
    """Note a fault: the place and the type that was found there, never the value."""
    name = type(value).__name__
    kind = "missing" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
    faults.append(f"{place} is {kind}, {wanted}")
