"""Canary sets on disk: JSON lines, a header and then one line a canary, checked when read.

The file holds the secrets. Only its owner may read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remnant.canaries.canary_set import KIND, VERSION, CanarySet, header, rows
from remnant.canaries.template import Canary, Template
from remnant.canaries.whole_file import writing_whole
from remnant.errors import InvalidInput

_OWNER_ONLY = 0o600
_COUNTS = {"seed": 0, "canaries": 0, "controls": 0, "set": 1, "sets": 1}  # and the least of each
_FIELDS = {"kind", "version", "pattern", "fingerprint", *_COUNTS}
_VOCABULARIES = {"words", "tokens"}
_OPTIONAL = {*_VOCABULARIES, "trial"}


def write_canary_sets(sets: Iterable[CanarySet], path: str | Path) -> None:
    """Write canary sets one after the other, whole or not at all; only the owner may read them.

    Raises:
        InvalidInput: There is no set, or the file cannot be written.
    """
    if isinstance(sets, CanarySet):
        raise InvalidInput("sets is one CanarySet, not several.", hint="Pass [canary_set].")
    many = list(sets)
    if not many:
        raise InvalidInput("sets is empty: there are no canaries to write.")
    with writing_whole(Path(path), mode=_OWNER_ONLY) as file:
        for number, canary_set in enumerate(many, start=1):
            place = {"set": number, "sets": len(many), "fingerprint": canary_set.fingerprint}
            for line in ({**header(canary_set), **place}, *rows(canary_set)):
                file.write(json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def read_canary_sets(path: str | Path) -> list[CanarySet]:
    """Read what ``write_canary_sets`` wrote, or several such files joined.

    Guarantees:
        * What is read equals what was written; a file that was cut or edited is refused.

    Raises:
        InvalidInput: The file cannot be read, or a line is not what it should be. The message
            names the line and repeats no secret.
    """
    lines = _Lines(Path(path))
    sets: list[CanarySet] = []
    done = expected = 0  # of the sets that were written together
    while lines.left:
        head = _read_header(lines)
        done += 1
        if head["set"] != done or (expected and head["sets"] != expected) or done > head["sets"]:
            raise lines.fault("a set is missing, or comes out of order, before this line")
        sets.append(_read_set(lines, head))
        expected = head["sets"]
        if done == expected:
            done = expected = 0
    if not sets:
        raise lines.fault("the file is empty")
    if expected:
        raise lines.fault(f"the file ends after set {done} of {expected}")
    return sets


class _Lines:
    """The lines of a file as JSON objects; knows which one was read last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
        self._lines = content.removesuffix(b"\n").split(b"\n") if content else []
        self.read = 0

    @property
    def left(self) -> int:
        return len(self._lines) - self.read

    def next(self, what: str) -> dict[str, Any]:
        if not self.left:
            raise self.fault(f"the file ends where {what} should follow")
        line = self._lines[self.read]
        self.read += 1
        try:
            # Some editors end lines with a carriage return; JSON takes it for a blank.
            fields = json.loads(line.decode())
        except (ValueError, RecursionError):
            # Without its cause: that holds the line.
            if self.read == 1 and not line.startswith(b"{"):
                raise self.foreign() from None
            raise self.fault("this is not a line of JSON in UTF-8") from None
        if not isinstance(fields, dict):
            if self.read == 1:
                raise self.foreign()
            raise self.fault(f"this is not {what}")
        return fields

    def foreign(self) -> InvalidInput:
        return InvalidInput(
            f'{self._path} is not a file of canaries: line 1 is no header of kind "{KIND}".',
            hint='Make one with remnant canaries "my pin is {digits:6}" --out FILE; it plants them '
            "in a text with --insert TEXT --into COPY.",
        )

    def fault(self, why: str, *, line: int | None = None) -> InvalidInput:
        return InvalidInput(
            f"{self._path}, line {line or max(self.read, 1)}: {why}.",
            hint="Restore the file from a copy, or make the canaries again from their seed.",
        )


def _read_header(lines: _Lines) -> dict[str, Any]:
    head = lines.next("a header")
    if head.get("kind") != KIND:
        if lines.read == 1:
            raise lines.foreign()
        raise lines.fault(f'this is no header of kind "{KIND}"')
    if not _is_count(head.get("version")) or head["version"] != VERSION:
        raise lines.fault(f"the header is not of version {VERSION}, the one known here")
    wrong = sorted(_FIELDS ^ (head.keys() - _OPTIONAL))
    wrong += [name for name, least in _COUNTS.items() if not _is_count(head.get(name), least)]
    wrong += [name for name in ("pattern", "fingerprint") if not isinstance(head.get(name), str)]
    wrong += [name for name in _VOCABULARIES & head.keys() if not _is_texts(head[name])]
    wrong += ["trial"] if "trial" in head and not _is_count(head["trial"], 1) else []
    if wrong:
        raise lines.fault(f"the header's field {wrong[0]!r} is missing, unknown or malformed")
    return head


def _read_set(lines: _Lines, head: dict[str, Any]) -> CanarySet:
    at = lines.read
    try:
        vocabularies = {name: head[name] for name in _VOCABULARIES & head.keys()}
        template = Template(head["pattern"], **vocabularies)
    except InvalidInput as fault:
        raise lines.fault(f"the header makes no template: {fault.message.rstrip('.')}") from None
    canaries = [_read_canary(lines, template, least=1) for _ in range(head["canaries"])]
    controls = [_read_canary(lines, template, least=0) for _ in range(head["controls"])]
    edited = "what follows does not match this header's fingerprint: the file was edited"
    try:
        canary_set = CanarySet(
            template=template,
            canaries=tuple(row.canary for row in canaries),
            repeats=tuple(row.repeats for row in canaries),
            controls=tuple(row.canary for row in controls),
            seed=head["seed"],
            trial=head.get("trial"),
        )
    except InvalidInput:
        raise lines.fault(edited, line=at) from None
    if canary_set.fingerprint != head["fingerprint"]:
        raise lines.fault(edited, line=at)
    return canary_set


@dataclass(frozen=True, slots=True)
class _Row:
    canary: Canary
    repeats: int


def _read_canary(lines: _Lines, template: Template, *, least: int) -> _Row:
    what = "a canary" if least else "a control"
    fields = lines.next(what)
    if fields.keys() != {"secret", "text", "repeats"}:
        raise lines.fault(f"this is not {what}")
    row = _Row(Canary(fields["text"], fields["secret"]), fields["repeats"])
    are_texts = isinstance(row.canary.text, str) and isinstance(row.canary.secret, str)
    if not are_texts or not _is_count(row.repeats, least) or (least == 0 and row.repeats != 0):
        raise lines.fault(f"this is not {what}")
    if row.canary.secret not in template:
        raise lines.fault("the secret is not in the template's space")
    if row.canary.text != template.text(row.canary.secret):
        raise lines.fault("the text is not the template with the line's secret")
    return row


def _is_count(given: object, least: int = 0) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= least


def _is_texts(given: object) -> bool:
    return isinstance(given, list) and all(isinstance(entry, str) for entry in given)
