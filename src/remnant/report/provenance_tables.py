"""What was run: a plan's groups, the machine and the ledger as rows of words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.records import Record
from remnant.records.provenance import gives_secrets


@dataclass(frozen=True, slots=True)
class Group:
    """A small table: a title and rows of name and value."""

    title: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """Canaries that were used alike.

    Attributes:
        canaries: Their numbers, counted from 1, runs written as ``1–32``.
        count: How many they are.
        members: How many members used each.
        uses: Uses of one canary by one member, fewest and most.
        first_step, last_step: Of the first and the last use.
    """

    canaries: str
    count: int
    members: int
    uses: tuple[int, int]
    first_step: int
    last_step: int


def plan_groups(plan: Mapping[str, Any]) -> tuple[Group, ...]:
    """One group per part of the plan; fields outside any part come first, under "plan"."""
    loose = {key: value for key, value in plan.items() if not isinstance(value, Mapping)}
    parts = {key: value for key, value in plan.items() if isinstance(value, Mapping)}
    groups = [Group("Plan", _rows(loose))] if loose else []
    groups += [Group(_words(key).capitalize(), _rows(part)) for key, part in parts.items()]
    return tuple(groups)


def machine_group(record: Record) -> Group:
    """Fingerprints, times, execution, versions and seeds."""
    provenance = record.provenance
    resumed = len(record.attempts()) - 1
    versions = {
        "python": provenance.pop("python", None),
        **(provenance.pop("versions", None) or {}),
    }
    started, finished = provenance.pop("started"), provenance.pop("finished")
    plan, data = provenance.pop("plan_fingerprint"), provenance.pop("data_fingerprint")
    seeds = provenance.pop("seeds", None)
    if gives_secrets(record.plan):
        seeds = "in the record alone: template and seed give the secrets back"
    facts: dict[str, Any] = {"question": record.question}
    facts |= record.execution | {k: v for k, v in provenance.items() if v is not None}
    if seeds:
        facts["seeds"] = seeds
    facts["started"] = started
    facts["finished"] = finished or "not finished"
    if finished:
        facts["duration"] = _duration(started, finished)
    if resumed:
        facts["resumed"] = f"{resumed} time{'s' if resumed > 1 else ''}"
    facts["versions"] = {name: version for name, version in versions.items() if version}
    facts |= {"plan fingerprint": plan, "data fingerprint": data}
    facts |= {"digests": "none (older record)"} if record.version == 1 else {}
    return Group("Execution and provenance", _rows(facts))


def ledger_rows(ledger: Mapping[str, NDArray[np.int64]]) -> tuple[LedgerRow, ...]:
    """The ledger by canary, canaries that were used alike in one row."""
    alike: dict[tuple[int, int, int, int, int], list[int]] = {}
    for canary in np.unique(ledger["canary"]).tolist():
        mine = ledger["canary"] == canary
        members, place = np.unique(ledger["member"][mine], return_inverse=True)
        uses = np.bincount(place, weights=ledger["uses"][mine]).astype(int)
        steps = ledger["step"][mine]
        key = (len(members), int(uses.min()), int(uses.max()), int(steps.min()), int(steps.max()))
        alike.setdefault(key, []).append(canary + 1)  # as they are counted elsewhere
    return tuple(
        LedgerRow(_runs(canaries), len(canaries), members, (fewest, most), first, last)
        for (members, fewest, most, first, last), canaries in sorted(
            alike.items(), key=lambda item: (item[0][3], item[1])
        )
    )


def _rows(fields: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((_words(key), _value(value)) for key, value in fields.items())


def _words(key: str) -> str:
    return key.replace("_", " ")


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping) and all(
        not isinstance(v, Mapping | list) for v in value.values()
    ):
        return ", ".join(f"{_words(str(key))} {_value(inner)}" for key, inner in value.items())
    if isinstance(value, list) and all(not isinstance(v, Mapping | list) for v in value):
        return ", ".join(_value(inner) for inner in value) if value else "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _runs(numbers: list[int]) -> str:
    """Sorted whole numbers with runs joined, such as ``1–3, 7``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("–".join(map(str, run)) for run in runs)


def _duration(started: str, finished: str) -> str:
    begin, end = (datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (started, finished))
    seconds = max(0, int((end - begin).total_seconds()))
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"
