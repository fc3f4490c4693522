"""What a search found, in words and as JSON; without secrets, unless they were asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from remnant.cli.counts import aligned, counted, finite, grouped, often, space_fields, space_text
from remnant.cli.redaction import printable, shown

if TYPE_CHECKING:
    from remnant.canaries import CanarySet, Template
    from remnant.studies.secret_search import Decoding, Leak, SecretSearch

_FAINT = "the model gives it no probability"


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A search of a template's space, and the sets whose canaries are known."""

    template: Template
    search: SecretSearch
    sets: Sequence[CanarySet]


@dataclass(frozen=True, slots=True)
class Known:
    """A canary or control of a file."""

    set: int
    name: str
    repeats: int


def extract_text(found: Found, *, reveal: bool) -> str:
    """Return whether it is proved, the candidates, and how soon the first comes out."""
    known = _known(found)
    rows = [["", "bits", "probability", "secret"] + ["known as"] * bool(found.sets)]
    for place, (secret, bits) in enumerate(found.search.candidates, start=1):
        row = [str(place), f"{bits:.2f}", _probability(bits)]
        row.append(shown(secret, found.template, reveal=reveal))
        if found.sets:
            row.append(_known_text(known[place - 1]))
        rows.append(row)
    return "\n".join(
        [
            f"{printable(found.template.pattern)}: {space_text(found.template.space)}",
            _sentence(found),
            "",
            *aligned(rows, left={3, 4}),
            "",
            "queries until the first comes out with probability 50 % and 99 %:",
            *(
                f"  {line}"
                for line in aligned(list(map(_leak_row, found.search.leaks)), left={0, 1})
            ),
        ]
    )


def _sentence(found: Found) -> str:
    search = found.search
    nodes = counted(search.nodes, "node")
    if search.certified:
        among = counted(found.template.space, "secret")
        return f"certified: nothing likelier exists among {among} ({nodes})"
    if search.method == "branch and bound":
        return f"not certified: a budget ended the search ({nodes})"
    return f"not certified: {search.method} proves nothing ({nodes})"


def _probability(bits: float) -> str:
    return f"{2.0**-bits:.2g}" if bits < 1000 else f"2^-{bits:.0f}"


def _known(found: Found) -> list[Known | None]:
    """Return which canary each candidate is, if any; whole texts are compared."""
    texts: dict[str, Known] = {}
    for number, one in enumerate(found.sets, start=1):
        for at, (canary, times) in enumerate(zip(one.canaries, one.repeats, strict=True), start=1):
            texts.setdefault(canary.text, Known(number, f"canary {at}", times))
        for at, control in enumerate(one.controls, start=1):
            texts.setdefault(control.text, Known(number, f"control {at}", 0))
    return [texts.get(found.template.text(secret)) for secret, _ in found.search.candidates]


def _known_text(known: Known | None) -> str:
    if known is None:
        return "no canary"
    return f"{known.name} of set {known.set}, planted {often(known.repeats)}"


def _leak_row(leak: Leak) -> list[str]:
    who = _decoding_text(leak.decoding)
    if leak.reason:
        return [f"{who}:", leak.reason]
    half, nearly = (
        "" if number is None else grouped(number)
        for number in (leak.queries_half, leak.queries_nearly)
    )
    return [f"{who}:", f"{half} and {nearly}"]


def _decoding_text(decoding: Decoding) -> str:
    given = [
        f"{name.replace('_', '-')} {value:g}" for name, value in asdict(decoding).items() if value
    ]
    return ", ".join(given)


def extract_fields(found: Found, *, reveal: bool) -> dict[str, Any]:
    """Return the same as plain data, without NaN."""
    search = found.search
    candidates = []
    for (secret, bits), known in zip(search.candidates, _known(found), strict=True):
        candidates.append(
            {
                **finite("bits", bits, _FAINT),
                "probability": 2.0**-bits,
                **({"canary": None if known is None else asdict(known)} if found.sets else {}),
                **({"secret": secret} if reveal else {}),
            }
        )
    return {
        "template": found.template.pattern,
        **space_fields(found.template.space),
        "method": search.method,
        "certified": search.certified,
        "sentence": _sentence(found),
        "nodes": search.nodes,
        "tolerance": search.tolerance,
        "candidates": candidates,
        "queries": [_leak_fields(leak) for leak in search.leaks],
    }


def _leak_fields(leak: Leak) -> dict[str, Any]:
    chance = leak.log_probability
    return {
        **asdict(leak.decoding),
        **finite("log2_probability", None if chance is None else chance / math.log(2), leak.reason),
        "probability": None if chance is None else math.exp(chance),
        "queries_50": leak.queries_half,
        "queries_99": leak.queries_nearly,
        **({"reason": leak.reason} if leak.reason else {}),
    }
