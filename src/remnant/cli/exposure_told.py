"""Exposure in words and as JSON; without secrets, unless they were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from remnant.cli.counts import (
    aligned,
    bits_between,
    counted,
    finite,
    grouped,
    often,
    rank_among,
    space_fields,
    space_text,
    whole,
)
from remnant.cli.naming import named
from remnant.cli.redaction import printable, shown

if TYPE_CHECKING:
    from remnant.canaries import CanarySet
    from remnant.studies.canary_exposure import CanaryExposure, RepeatsExposure, SetExposure
    from remnant.studies.exposure_verdict import ExposureJudgement

_CONTROLS_SHOWN = 10
_FAINT = "the model gives it no probability"


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A set of canaries, its number in the file, and what was measured."""

    number: int
    canaries: CanarySet
    found: SetExposure


def exposure_text(
    measured: Sequence[Measured],
    verdict: ExposureJudgement | None,
    *,
    extrapolate: bool,
    reveal: bool,
) -> str:
    """Return a table for each set, its means and tests, and the verdict."""
    parts = ["\n".join(_set_lines(one, extrapolate, reveal)) for one in measured]
    if verdict is not None:
        parts.append(f"{verdict.outcome}: {verdict.sentence}")
    return "\n\n".join(parts)


def _set_lines(one: Measured, extrapolate: bool, reveal: bool) -> list[str]:
    found, template = one.found, one.canaries.template
    lines = [
        f"set {one.number}: {printable(template.pattern)}",
        f"space: {space_text(template.space)}",
        f"{found.method}: {_why(found.reason)}",
    ]
    if found.method == "sampled":
        lines[-1] += f"; {counted(found.n_references, 'reference')}"
    if found.walked:
        lines.append(f"exact for {', '.join(found.walked)}: {_why(found.walked_reason)}")
    if found.calibrated:
        lines.append("costs and exposure are calibrated by reference models")
    secrets = [c.secret for c in (*one.canaries.canaries, *one.canaries.controls)]
    rows = [["", "repeats", "exposure", "rank, or 95 % interval", "cost"]]
    rows[0] += ["skew-normal"] * extrapolate + ["secret"] * reveal
    planted = len(one.canaries.canaries)
    kept = found.each[: planted + _CONTROLS_SHOWN]
    for each, secret in zip(kept, secrets, strict=False):
        row = [each.name, grouped(each.repeats), _bits(each), _standing(each, template.space)]
        row.append(f"{each.found.cost:.2f}")
        if extrapolate:
            guess = each.found.skew_normal_bits
            row.append("none" if guess is None else f"{guess:.2f}")
        rows.append(row + [shown(secret, template, reveal=True)] * reveal)
    lines += ["", *aligned(rows, left={0, 3, len(rows[0]) - 1 if reveal else 0})]
    if len(found.each) > len(kept):
        lines.append(f"and {counted(len(found.each) - len(kept), 'control')} more; --json has all")
    lines += ["", *_means(found), *_warnings(found, extrapolate)]
    return lines


def _why(reason: str) -> str:
    bare = reason.removeprefix("exact: ").removeprefix("sampled, because ").rstrip(".")
    return named(bare, method="--method")


def _untested(group: RepeatsExposure) -> str | None:
    return group.untested and named(group.untested, shared_references="--references")


def _bits(one: CanaryExposure) -> str:
    return f"{one.found.bits:.2f}" if one.at_least is None else f"at least {one.at_least:.2f}"


def _standing(one: CanaryExposure, space: int) -> str:
    found = one.found
    if found.rank is None:
        return bits_between(found.low, found.high)
    most = "at most " * (found.low < found.high)
    return rank_among(f"{most}{grouped(found.rank)}", space)


def _means(found: SetExposure) -> list[str]:
    from remnant.measures.exposure import NULL_MEAN_BITS

    rows = [_mean(group) for group in found.groups]
    title = f"mean exposure, {NULL_MEAN_BITS:.2f} bits where nothing is memorised:"
    return [title, *(f"  {line}" for line in aligned(rows, left={0, 2, 3}))]


def _mean(group: RepeatsExposure) -> list[str]:
    who = f"planted {often(group.repeats)}" if group.repeats else "controls"
    mean = f"{'at least ' * group.at_least}{group.mean_low:.2f}"
    tested = "not tested" if group.p_value is None else f"p = {group.p_value:.2g}"
    return [who, mean, f"({grouped(group.n)})", tested]


def _warnings(found: SetExposure, extrapolate: bool) -> list[str]:
    lines = []
    saturated = sum(one.found.saturated for one in found.each)
    if saturated:
        walk = "" if found.calibrated else "; a walk with more --max-nodes ranks exactly"
        lines.append(
            f"warning: {counted(saturated, 'value')} saturated, no reference was as cheap: the "
            'lower end of the interval is shown as "at least". Each further bit takes twice the '
            f"references{walk}."
        )
    if any(one.ended for one in found.each):
        lines.append(
            "warning: a budget ended the walk, so that ranks and exposure are bounds; raise "
            "--max-nodes, --max-seconds or --memory, or take --method sampled."
        )
    for reason in sorted({_untested(group) or "" for group in found.groups} - {""}):
        lines.append(f"warning: not tested: {reason.rstrip('.')}.")
    if extrapolate:
        law = found.extrapolated
        if law is None:
            lines.append("warning: no skew-normal law: too few references with different costs.")
        elif law.doubtful:
            lines.append(
                f"warning: the skew-normal law is doubtful, KS p = {law.ks_pvalue:.2g}: do not "
                "read its bits as exposure."
            )
        else:
            lines.append(f"skew-normal law: KS p = {law.ks_pvalue:.2g}, an extrapolation.")
    return lines


def exposure_fields(
    measured: Sequence[Measured],
    verdict: ExposureJudgement | None,
    *,
    extrapolate: bool,
    reveal: bool,
) -> dict[str, Any]:
    """Return the same as plain data: no NaN, and ranks as exact integers."""
    return {
        "sets": [_set_fields(one, extrapolate, reveal) for one in measured],
        "verdict": None if verdict is None else asdict(verdict),
    }


def _set_fields(one: Measured, extrapolate: bool, reveal: bool) -> dict[str, Any]:
    from remnant.measures.exposure import NULL_MEAN_BITS

    found, drawn = one.found, one.canaries
    rows = [
        {
            **_secret_fields(each, extrapolate),
            **({"secret": canary.secret} if reveal else {}),
        }
        for each, canary in zip(found.each, (*drawn.canaries, *drawn.controls), strict=True)
    ]
    fields = {
        "set": one.number,
        "template": drawn.template.pattern,
        **space_fields(drawn.template.space),
        "fingerprint": drawn.fingerprint,
        "method": found.method,
        "reason": _why(found.reason),
        "ranked_apart": list(found.walked),
        "references": found.n_references,
        "calibrated": found.calibrated,
        "nodes": found.nodes,
        "null_mean_bits": NULL_MEAN_BITS,
        "canaries": rows[: len(drawn.canaries)],
        "controls": rows[len(drawn.canaries) :],
        "means": [
            {
                "repeats": group.repeats,
                "n": group.n,
                "mean_bits": group.mean_bits,
                "at_least": group.at_least,
                "mean_low": group.mean_low,
                **finite("p_value", group.p_value, _untested(group) or "not tested"),
            }
            for group in found.groups
        ],
    }
    if extrapolate:
        law = found.extrapolated
        few = "too few references with different costs"
        fields |= finite("ks_pvalue", None if law is None else float(law.ks_pvalue), few)
        fields["skew_normal_doubtful"] = None if law is None else bool(law.doubtful)
    return fields


def _secret_fields(one: CanaryExposure, extrapolate: bool) -> dict[str, Any]:
    found = one.found
    rank = (
        {"rank": None, "rank_reason": "sampled"}
        if found.rank is None
        else _ranks(found.rank, found.rank_low)
    )
    guess = finite("skew_normal_bits", found.skew_normal_bits, "no law was fitted")
    return {
        "name": one.name,
        "repeats": one.repeats,
        "method": one.method,
        "exact": one.exact,
        "bits": found.bits,
        "low": found.low,
        **finite("high", found.high, "no reference was as cheap"),
        **rank,
        **finite("cost", found.cost, _FAINT),
        "saturated": found.saturated,
        **(guess if extrapolate else {}),
    }


def _ranks(rank: int, rank_low: int | None) -> dict[str, Any]:
    """Return the rank and what it lies between; the rank itself is the higher end."""
    low = rank if rank_low is None else rank_low
    return {**whole("rank", rank), **whole("rank_low", low), **whole("rank_high", rank)}
