"""What ``remnant exposure`` measures of one model.

The plain data of a result are what the command prints as JSON. They hold secrets only if
these were requested. A number that is missing is None, and the field after it says why.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from remnant.measures.exposure.by_rank import NULL_MEAN_BITS
from remnant.records.outcomes import finding_row
from remnant.records.typed import Result, optional, page_only
from remnant.studies.command_result import CommandResult
from remnant.studies.exposure.formats import exposure_number
from remnant.studies.exposure.result import (
    CanaryExposure,
    ExposureBits,
    ExposureGate,
    RepeatsExposure,
)
from remnant.studies.exposure.verdict import ExposureJudgement
from remnant.studies.shared.result_parts import Finding, Tested
from remnant.studies.shared.wording import (
    NO_PROBABILITY,
    NO_REFERENCE,
    counted,
    finite,
    times,
    whole,
)

if TYPE_CHECKING:  # reading a record must not load PyTorch
    from remnant.canaries import CanarySet
    from remnant.studies.exposure.canary_sets import SetExposure

QUESTION = "exposure-audit"
Rename = Callable[[str], str]
"""Puts the words of a command, such as its options, in the place of the library's arguments."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """A rank among all secrets, and what it lies between; ``value`` is ``high``."""

    value: int
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCanary:
    """A canary or control as ``remnant exposure`` prints it: its ``CanaryExposure``, with reasons.

    Attributes:
        rank, rank_low, rank_high: Among all secrets; ``rank`` is ``rank_high``.
        secret: Only where secrets may be shown.
        skew_normal_bits: Extrapolated from the references, where that was requested.
    """

    name: str
    repeats: int
    method: str
    exact: bool
    bits: float
    low: float
    high: float | None
    high_reason: str | None = optional()
    rank: int | None
    rank_reason: str | None = optional()
    rank_low: int | None = optional()
    rank_low_reason: str | None = optional()
    rank_high: int | None = optional()
    rank_high_reason: str | None = optional()
    cost: float | None
    cost_reason: str | None = optional()
    saturated: bool
    secret: str | None = optional()
    skew_normal_bits: float | None = optional()
    skew_normal_bits_reason: str | None = optional()
    at_least: bool = page_only(False)

    @property
    def estimate(self) -> ExposureBits:
        """The exposure with its interval."""
        return ExposureBits(
            self.low if self.at_least else self.bits, self.low, self.high, self.at_least
        )

    @property
    def ranks(self) -> Ranks | None:
        """The rank with its bounds; None where it is not known, or too long to be written."""
        if self.rank is None or self.rank_low is None:
            return None
        return Ranks(self.rank, self.rank_low, self.rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedSet:
    """The exposure of one canary set; see ``SetExposure``.

    Attributes:
        set: Its number in the file.
        ranked_apart: Names of those ranked exactly because the references were saturated.
        ranked_apart_reason: Why that could be done.
        ended: Whether a budget ended a walk, so that ranks are bounds.
        arithmetic: How a model of low precision was held to float64.
    """

    set: int
    template: str
    space: int | None
    space_reason: str | None = optional()
    space_bits: float
    fingerprint: str
    method: str
    reason: str
    ranked_apart: tuple[str, ...]
    references: int
    calibrated: bool
    nodes: int
    null_mean_bits: float
    canaries: tuple[PrintedCanary, ...]
    controls: tuple[PrintedCanary, ...]
    means: tuple[RepeatsExposure, ...]
    arithmetic: str | None = optional()
    ranked_apart_reason: str = page_only("")
    ended: bool = page_only(False)

    @property
    def saturated(self) -> int:
        """How many exposures are lower bounds since no reference was as cheap."""
        return sum(row.saturated for row in (*self.canaries, *self.controls))

    @property
    def untested(self) -> list[str]:
        """Why means were not tested."""
        return sorted({mean.p_value_reason for mean in self.means if mean.p_value_reason})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtrapolatedSet(AuditedSet):
    """The same with the fit of a skew-normal law to the references."""

    ks_pvalue: float | None
    ks_pvalue_reason: str | None = optional()
    skew_normal_doubtful: bool | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExposureAuditResult(Result):
    """What ``remnant exposure`` measured of one model.

    Attributes:
        sets: Each canary set.
        verdict: None without a limit.
        reference_fault: Why the reference models cannot be used; None where they can.
        equal: How many canaries and controls were equal to others; None where none were.
    """

    ROWS: ClassVar[tuple[str, ...]] = ("sets.canaries", "sets.controls")

    sets: tuple[ExtrapolatedSet | AuditedSet, ...]
    verdict: ExposureJudgement | None
    reference_fault: str | None = optional()
    equal: str | None = optional()


ExposureCommand = CommandResult[Finding | ExposureGate, ExposureAuditResult]


def audited_set(
    number: int,
    canary_set: CanarySet,
    exposure: SetExposure,
    *,
    extrapolate: bool = False,
    reveal: bool = False,
    rename: Rename = str,
) -> AuditedSet:
    """Return the exposure of one set as a part of the result.

    Args:
        number: Of the set in its file.
        canary_set: The set.
        exposure: What was measured.
        extrapolate: Whether a skew-normal law was requested.
        reveal: Whether secrets may be shown.
        rename: Applied to the library's reasons.
    """
    secrets = [canary.secret for canary in (*canary_set.canaries, *canary_set.controls)]
    rows = tuple(
        _printed(canary, secret if reveal else None, extrapolate=extrapolate)
        for canary, secret in zip(exposure.each, secrets, strict=True)
    )
    planted = len(canary_set.canaries)
    fields: dict[str, Any] = {
        "set": number,
        "template": canary_set.template.pattern,
        **whole("space", canary_set.template.space),
        "space_bits": math.log2(canary_set.template.space),
        "fingerprint": canary_set.fingerprint,
        "method": exposure.method,
        "reason": _reason(exposure.reason, rename),
        "ranked_apart": exposure.walked,
        "references": exposure.n_references,
        "calibrated": exposure.calibrated,
        "nodes": exposure.nodes,
        "null_mean_bits": NULL_MEAN_BITS,
        "canaries": rows[:planted],
        "controls": rows[planted:],
        "means": tuple(
            dataclasses.replace(group, p_value_reason=rename(group.p_value_reason))
            if group.p_value_reason
            else group
            for group in exposure.groups
        ),
        "arithmetic": exposure.arithmetic or None,
        "ranked_apart_reason": _reason(exposure.walked_reason, rename),
        "ended": any(canary.ended for canary in exposure.each),
    }
    if not extrapolate:
        return AuditedSet(**fields)
    law = exposure.extrapolated
    return ExtrapolatedSet(
        **fields,
        **finite(
            "ks_pvalue",
            None if law is None else float(law.ks_pvalue),
            "too few references with different costs",
        ),
        skew_normal_doubtful=None if law is None else bool(law.doubtful),
    )


def _printed(canary: CanaryExposure, secret: str | None, *, extrapolate: bool) -> PrintedCanary:
    rank: dict[str, Any] = {"rank": None, "rank_reason": "sampled"}
    if canary.rank is not None:
        low = canary.rank if canary.rank_low is None else canary.rank_low
        rank = {
            **whole("rank", canary.rank),
            **whole("rank_low", low),
            **whole("rank_high", canary.rank),
        }
    law = finite("skew_normal_bits", canary.skew_normal_bits, "no law was fitted")
    return PrintedCanary(
        name=canary.name,
        repeats=canary.repeats,
        method=canary.method,
        exact=canary.exact,
        bits=canary.bits,
        low=canary.low,
        **finite("high", canary.high, NO_REFERENCE),
        **rank,
        **finite("cost", canary.cost, NO_PROBABILITY),
        saturated=canary.saturated,
        secret=secret,
        **(law if extrapolate else {}),
        at_least=canary.at_least is not None,
    )


def _reason(reason: str, rename: Rename) -> str:
    """Why a method was used, without its name."""
    return rename(reason.removeprefix("exact: ").removeprefix("sampled, because ").rstrip("."))


def recorded(result: ExposureAuditResult) -> ExposureCommand:
    """Return a result with its verdict, or with the finding of a measurement without a limit."""
    judged = result.verdict
    return CommandResult(
        verdict=_finding(result) if judged is None else ExposureGate(**judged.row()),
        measured=result,
        scope=Tested(tested=tuple(_tested(result)), not_tested=tuple(_not_tested(result))),
    )


def _finding(result: ExposureAuditResult) -> Finding:
    canaries = [canary for audited in result.sets for canary in audited.canaries]
    controls = [control for audited in result.sets for control in audited.controls]
    sentences = [_highest(canaries, "planted canary", "planted canaries")]
    sentences += [_highest(controls, "control", "controls")]
    sentence = " ".join(filter(None, sentences))
    highest = max((each.estimate for each in canaries), key=lambda bits: bits.value, default=None)
    title = "No canary was planted" if highest is None else _title(result, exposure_number(highest))
    return Finding(
        **finding_row(
            headline=title,
            sentence=sentence or "There is no canary and no control.",
            advice="Nothing was judged. Give a limit with --limit for PASS or FAIL.",
        )
    )


def _title(result: ExposureAuditResult, highest: str) -> str:
    most = max(audited.space_bits for audited in result.sets)
    return f"Highest exposure {highest} bits, of at most {most:.1f}"


def _highest(rows: list[PrintedCanary], one: str, many: str) -> str:
    if not rows:
        return ""
    top = max(rows, key=lambda row: row.estimate.value)
    planted = f", planted {times(top.repeats)}" if top.repeats else ""
    return (
        f"The highest exposure of {counted(len(rows), one, many)} is "
        f"{exposure_number(top.estimate)} bits ({top.name}{planted})."
    )


def _tested(result: ExposureAuditResult) -> Iterator[str]:
    for audited in result.sets:
        canaries = counted(len(audited.canaries), "canary", "canaries")
        among = "all secrets of the template"
        if audited.method == "sampled":
            among = counted(audited.references, "sampled reference")
        yield (
            f"set {audited.set}: {canaries} and {counted(len(audited.controls), 'control')}, "
            f"ranked among {among}"
        )


def _not_tested(result: ExposureAuditResult) -> Iterator[str]:
    yield "another training of the same recipe: this is one model"
    yield "secrets of another form, or in another place of the text"
    if any(audited.method == "sampled" for audited in result.sets):
        yield "exposure above what the references show: such values are lower bounds"
    yield "whether a secret can be extracted: remnant extract searches for it"
