"""The exposure of found secrets, in words and as JSON; nothing of a secret is in either."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from remnant.cli.counts import aligned, counted, finite, grouped, often, space_fields
from remnant.cli.redaction import printable
from remnant.cli.scan_coarse import (
    ONLY_REVEALED,
    mean_text,
    told_exposure,
    told_mean,
    told_queries,
)

if TYPE_CHECKING:
    from remnant.studies.found_exposure import (
        CountAgreement,
        CountExposure,
        FoundExposure,
        FoundExposures,
        FoundExtraction,
    )
    from remnant.studies.found_twin import TwinComparison

_ROWS = 20
_FAINT = "the model gives it no probability"


def exposure_lines(
    found: FoundExposures,
    compared: TwinComparison | None,
    model: Path | None,
    context: int,
    *,
    extract: bool,
    reveal: bool,
) -> list[str]:
    """Return a table of the most exposed, means by how often they stand, and what to mind."""
    if found.each and not any(one.measured for one in found.each):
        return [f"not measured: {nothing_measured(found, model)}.", *_left_lines(found)]
    in_twin = () if compared is None else compared.measured.each
    beside = {one.fingerprint: one for one in in_twin if one.measured is not None}
    measured = [one for one in found.each if one.measured is not None]
    lines = [
        f"exposure in {printable(str(model))}, each among all secrets of its form, after the "
        f"{counted(context, 'character')} before it:"
    ]
    if found.calibrated:
        lines.append("costs and exposure are calibrated by reference models")
    measured.sort(key=_order)
    rows = [["fingerprint", "kind", "times", "exposure", "of", "rank, or 95 % interval"]]
    rows[0] += ["extracted"] * extract
    rows[0][4:4] = ["in the twin"] * bool(beside)
    for one in measured[:_ROWS]:
        row = _row(one, extract, reveal)
        row[4:4] = [_bits_text(beside.get(one.fingerprint), reveal)] if beside else []
        rows.append(row)
    if measured:
        last = len(rows[0])
        left = set(range(last - 1 - extract, last))
        lines += ["", *aligned(rows, left={0, 1} | left)]
        if len(measured) > _ROWS:
            lines.append(f"and {counted(len(measured) - _ROWS, 'secret')} more; --json has all")
        lines += ["", "mean exposure by how often a secret stands in the text:"]
        means = [_mean_row(group, reveal) for group in found.groups]
        lines += [f"  {line}" for line in aligned(means, left={0, 1, 3})]
        lines += [line for one in found.agreements for line in _agreement_lines(one)]
    lines += extraction_lines(found) * extract
    lines += [*unmeasured_lines(found), *_left_lines(found)]
    if not found.calibrated and compared is None:
        lines.append(
            "note: these were not drawn at random, as canaries are: names, area codes and issuers "
            "are likely before anything is memorised. Compare with --twin."
        )
    return lines


def unmeasured_lines(found: FoundExposures, *, where: str = "") -> list[str]:
    """Return how many could not be measured, by reason."""
    return [
        f"not measured{where}: {counted(many, 'secret')}: {reason}."
        for reason, many in _unmeasured(found).items()
    ]


def nothing_measured(found: FoundExposures, model: Path | None) -> str:
    """Return in one sentence why a model could be asked about none of the secrets."""
    from remnant.studies.found_reasons import OF_VOCABULARY

    reasons = _unmeasured(found)
    if reasons.keys() <= OF_VOCABULARY:
        lacking = "its characters or words do not make up these secrets and the text before them"
        return f"the vocabulary of {printable(str(model))} does not fit this text: {lacking}"
    told = [f"{reason} ({counted(many, 'secret')})" for reason, many in reasons.items()]
    return f"{printable(str(model))} could be asked about none: {'; '.join(told)}"


def _left_lines(found: FoundExposures) -> list[str]:
    if not found.left:
        return []
    return [f"not measured: {counted(found.left, 'secret')}, less frequent; see --at-most."]


def _order(one: FoundExposure) -> float:
    return 0.0 if one.measured is None else -one.measured.found.bits


def _row(one: FoundExposure, extract: bool, reveal: bool) -> list[str]:
    if one.measured is None or one.space is None:
        return []
    told = told_exposure(one.measured, one.space, reveal=reveal)
    of = f"{_bits_of(one.space):.1f}"
    row = [one.fingerprint, one.kind, grouped(one.count), told.bits_text, of, told.standing]
    return row + [_extracted(one, reveal)] * extract


def _bits_text(one: FoundExposure | None, reveal: bool) -> str:
    if one is None or one.measured is None or one.space is None:
        return "not measured"
    return told_exposure(one.measured, one.space, reveal=reveal).bits_text


def _bits_of(space: int) -> float:
    fields = space_fields(space)
    return float(fields["space_bits"])


def _extracted(one: FoundExposure, reveal: bool) -> str:
    tried = one.extraction
    if tried is None:
        return "not tried"
    proved = "" if tried.certified else ", not certified"
    if tried.extracted:
        return f"yes{proved}, {_queries(tried, reveal)}"
    return ("no: another found secret is likelier" if tried.another else "no") + proved


def _queries(tried: FoundExtraction, reveal: bool) -> str:
    queries = told_queries(tried.leak.queries_nearly, reveal=reveal)
    if queries is None:
        return tried.leak.reason
    return f"99 % within {counted(queries, 'sample')}"


def _mean_row(group: CountExposure, reveal: bool) -> list[str]:
    times = often(group.least)
    if group.most > group.least:
        times = f"{grouped(group.least)} to {grouped(group.most)} times"
    bits = mean_text(group.mean_bits, group.n, at_least=group.at_least, reveal=reveal)
    return [group.kind, times, bits, f"({grouped(group.n)})"]


def _agreement_lines(one: CountAgreement) -> list[str]:
    found = one.found
    if found is None:
        return []
    return [
        f"{one.kind}: rank correlation with it {found.value:.2f}, 95 % interval {found.low:.2f} to "
        f"{found.high:.2f} ({grouped(found.n)} secrets)"
    ]


def extraction_lines(found: FoundExposures, *, whence: str = "") -> list[str]:
    """Return how many came out, how many of them are proved likeliest, and what was not tried."""
    tried = [one.extraction for one in found.each if one.extraction is not None]
    out = [one for one in tried if one.extracted]
    proved = sum(one.certified for one in out)
    lines = [
        f"extracted{whence}: {grouped(len(out))} of {grouped(len(tried))} that were tried"
        + f", {grouped(proved)} with a certificate" * bool(out)
    ]
    reasons = sorted({one.unextracted for one in found.each if one.measured is not None} - {""})
    return lines + [f"not tried: {reason}." for reason in reasons]


def _unmeasured(found: FoundExposures) -> dict[str, int]:
    reasons: dict[str, int] = {}
    for one in found.each:
        if one.measured is None:
            reasons[one.unmeasured] = reasons.get(one.unmeasured, 0) + 1
    return reasons


def exposure_fields(found: FoundExposures, context: int, *, reveal: bool) -> dict[str, Any]:
    """Return the same as plain data, without a NaN."""
    return {
        "context": context,
        "calibrated": found.calibrated,
        "not_measured": found.left,
        "secrets": [_fields(one, reveal) for one in found.each],
        "means": [
            {
                "kind": group.kind,
                "times_least": group.least,
                "times_most": group.most,
                "n": group.n,
                "mean_bits": told_mean(
                    group.mean_bits, group.n, at_least=group.at_least, reveal=reveal
                ),
                "at_least": group.at_least,
            }
            for group in found.groups
        ],
        "rank_correlations": [_agreement_fields(one) for one in found.agreements],
    }


def _agreement_fields(one: CountAgreement) -> dict[str, Any]:
    if one.found is None:
        return {"kind": one.kind, "value": None, "value_reason": _untold(one)}
    found = one.found
    return {
        "kind": one.kind,
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "n": found.n,
    }


def _untold(one: CountAgreement) -> str:
    for name, words in (("first", "how often they stand there"), ("second", "their exposure")):
        if one.untold.startswith(f"{name} is the same"):
            return f"{words} is the same for all"
    return one.untold


def _fields(one: FoundExposure, reveal: bool) -> dict[str, Any]:
    about = {"kind": one.kind, "fingerprint": one.fingerprint, "times": one.count}
    if one.measured is None or one.space is None:
        return {**about, "bits": None, "bits_reason": one.unmeasured}
    told = told_exposure(one.measured, one.space, reveal=reveal)
    cost: dict[str, Any] = {"cost": None, "cost_reason": ONLY_REVEALED}
    return {
        **about,
        **space_fields(one.space),
        "method": one.measured.method,
        "exact": one.measured.exact,
        "bits": told.bits,
        "low": told.low,
        **finite("high", told.high, "no reference was as cheap"),
        **told.rank_fields,
        **(finite("cost", one.measured.found.cost, _FAINT) if reveal else cost),
        "saturated": one.measured.found.saturated,
        **_extraction_fields(one, reveal),
    }


def _extraction_fields(one: FoundExposure, reveal: bool) -> dict[str, Any]:
    tried = one.extraction
    if tried is None:
        return {"extraction": None, "extraction_reason": one.unextracted or "not asked for"}
    leak = tried.leak
    return {
        "extraction": {
            "extracted": tried.extracted,
            "another_found": tried.another,
            "certified": tried.certified,
            "nodes": tried.nodes,
            "queries_50": told_queries(leak.queries_half, reveal=reveal),
            "queries_99": told_queries(leak.queries_nearly, reveal=reveal),
            **({"reason": leak.reason} if leak.reason else {}),
        }
    }
