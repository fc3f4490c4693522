"""What a scan found, in words and as JSON; without secrets, unless they were asked for."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remnant.cli.counts import aligned, counted, grouped
from remnant.cli.redaction import printable
from remnant.cli.scan_exposure_told import exposure_fields, exposure_lines
from remnant.cli.scan_names import Names
from remnant.cli.scan_twin_told import twin_fields, twin_lines

if TYPE_CHECKING:
    from remnant.canaries.natural import FoundSecret, Scan
    from remnant.studies.found_exposure import FoundExposures
    from remnant.studies.found_twin import TwinComparison

_ROWS = 20


@dataclass(frozen=True, eq=False)
class Told:
    """A scan, what was measured of it, and what is needed to tell of it."""

    scan: Scan
    measured: FoundExposures | None
    compared: TwinComparison | None
    model: Path | None
    twin: Path | None
    context: int
    region: str

    def path(self, path: str, *, reveal: bool) -> str:
        """Return a file's path, with dots in the place of secrets."""
        return path if reveal else self._names.hidden(path)

    @cached_property
    def _names(self) -> Names:
        return Names(self.scan.found, region=self.region)


def scan_text(told: Told, *, reveal: bool, extract: bool) -> str:
    """Return how many secrets there are, where, and how exposed they are."""
    scan = told.scan
    characters = sum(one.characters for one in scan.files)
    empty = sum(one.characters == 0 for one in scan.files)
    told_of = [counted(len(scan.files), "file"), counted(characters, "character")]
    told_of += [f"{grouped(empty)} empty"] * bool(empty)
    told_of += [f"{grouped(len(scan.skipped))} skipped, which are no text"] * bool(scan.skipped)
    lines = [", ".join(told_of)]
    if not scan.found:
        return "\n".join([*lines, f"found nothing of {', '.join(scan.kinds)}"])
    lines += ["", *_kind_lines(scan), "", *_file_lines(told, reveal), ""]
    lines += [*_secret_lines(told, reveal), *_warnings(told, reveal)]
    if told.measured is not None:
        lines += [
            "",
            *exposure_lines(
                *(told.measured, told.compared, told.model, told.context),
                extract=extract,
                reveal=reveal,
            ),
        ]
        if told.compared is not None:
            lines += ["", *twin_lines(told.compared, told.twin, reveal=reveal)]
    return "\n".join(lines)


def _kind_lines(scan: Scan) -> list[str]:
    rows = [["kind", "secrets", "times", "files"]]
    for kind in scan.kinds:
        alike = [one for one in scan.found if one.kind == kind]
        inside = sum(kind in one.counts for one in scan.files)
        times = sum(one.count for one in alike)
        rows.append([kind, *map(grouped, (len(alike), times, inside))])
    return aligned(rows, left={0})


def _file_lines(told: Told, reveal: bool) -> list[str]:
    holding = [one for one in told.scan.files if one.counts]
    holding.sort(key=lambda one: -sum(one.counts.values()))
    present = [kind for kind in told.scan.kinds if any(kind in one.counts for one in holding)]
    rows = [["file", *present]]
    for one in holding[:_ROWS]:
        path = printable(told.path(one.path, reveal=reveal))
        rows.append([path, *(grouped(one.counts.get(kind, 0)) for kind in present)])
    return [*aligned(rows, left={0}), *_more(len(holding), "file")]


def _secret_lines(told: Told, reveal: bool) -> list[str]:
    rows = [["", "kind", "length", "bits", "times", "fingerprint", "first at"]]
    rows[0] += ["secret"] * reveal
    for number, one in enumerate(told.scan.found[:_ROWS], start=1):
        first = one.places[0]
        path = printable(told.path(first.path, reveal=reveal))
        rows.append(
            [
                *(str(number), one.kind, grouped(one.length), _bits_text(one)),
                *(grouped(one.count), one.fingerprint, f"{path}:{first.line}:{first.column}"),
                *[printable(one.way.written)] * reveal,
            ]
        )
    return [*aligned(rows, left={1, 5, 6, 7}), *_more(len(told.scan.found), "secret")]


def _bits_text(one: FoundSecret) -> str:
    return f"{one.bits:.1f}" + f" ({one.bits - one.check_bits:.1f})" * (one.check_bits > 0)


def _more(many: int, thing: str) -> list[str]:
    return [f"and {counted(many - _ROWS, thing)} more; --json has all"] * (many > _ROWS)


def _warnings(told: Told, reveal: bool) -> list[str]:
    lines = []
    if any(one.check_bits for one in told.scan.found):
        lines.append("bits in brackets: of those that pass the kind's check")
    for one in told.scan.files:
        for kind in one.crowded:
            lines.append(
                f"warning: {kind} takes up more than half of "
                f"{printable(told.path(one.path, reveal=reveal))}: a list of them, or numbers that "
                f"only look so; leave the file out with --exclude, or {kind} out of --kinds."
            )
    return lines


def scan_json(told: Told, *, reveal: bool) -> str:
    """Return all of it as JSON: exact integers, and null with a reason where there is none."""
    return json.dumps(_fields(told, reveal), indent=2, allow_nan=False)


def _fields(told: Told, reveal: bool) -> dict[str, Any]:
    scan, measured, compared = told.scan, told.measured, told.compared
    secrets = Counter(one.kind for one in scan.found)
    times: Counter[str] = Counter()
    for one in scan.found:
        times[one.kind] += one.count
    return {
        "remnant": "scan",
        "kinds": {k: {"secrets": secrets[k], "times": times[k]} for k in scan.kinds},
        "files": [
            {
                "path": told.path(one.path, reveal=reveal),
                "encoding": one.encoding,
                "characters": one.characters,
                "counts": one.counts,
                "crowded": list(one.crowded),
            }
            for one in scan.files
        ],
        "skipped": [
            {"path": told.path(one.path, reveal=reveal), "reason": one.reason}
            for one in scan.skipped
        ],
        "secrets": [_secret_fields(told, one, reveal) for one in scan.found],
        "exposure": None
        if measured is None
        else exposure_fields(measured, told.context, reveal=reveal),
        "twin": None if compared is None else twin_fields(compared, told.context, reveal=reveal),
    }


def _secret_fields(told: Told, one: FoundSecret, reveal: bool) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "fingerprint": one.fingerprint,
        "times": one.count,
        "length": one.length,
        "form": one.form,
        "space_bits": one.bits,
        "valid_bits": math.fsum([one.bits, -one.check_bits]),
        "places": [
            {
                "path": told.path(place.path, reveal=reveal),
                "line": place.line,
                "column": place.column,
            }
            for place in one.places
        ],
        **({"secret": one.way.written} if reveal else {}),
    }
