"""What ``remnant exposure`` and ``remnant extract`` measure of one model.

The plain data of a result are what the commands print as JSON. They hold secrets only if
these were requested. A number that is missing is None, and the field after it says why.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from remnant.measures.exposure.by_rank import NULL_MEAN_BITS
from remnant.records.typed import Result, optional, page_only
from remnant.studies.exposure.result import CanaryExposure, ExposureBits, RepeatsExposure
from remnant.studies.exposure.verdict import ExposureJudgement
from remnant.studies.shared.stated_numbers import NO_PROBABILITY, NO_REFERENCE, finite, whole

if TYPE_CHECKING:  # reading a record must not load PyTorch
    from remnant.canaries import CanarySet, Template
    from remnant.studies.exposure.canary_sets import SetExposure
    from remnant.studies.exposure.search import Leak, SecretSearch

Rename = Callable[[str], str]
"""Puts the words of a command, such as its options, in the place of the library's arguments."""
_LARGEST_WRITTEN = 10**30  # in a sentence


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


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCanary:
    """A canary or control of a file."""

    set: int
    name: str
    repeats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSecret:
    """A secret that a search returned.

    Attributes:
        bits: Its cost.
        probability: ``2**-bits``.
        secret: Only where secrets may be shown.
    """

    bits: float | None
    bits_reason: str | None = optional()
    probability: float
    secret: str | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSecret(FoundSecret):
    """The same compared with the canaries of a file; ``canary`` is None if it is none of them."""

    canary: KnownCanary | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriesToLeak:
    """How many queries give away the likeliest secret, for one decoding; see ``Leak``."""

    temperature: float
    top_k: int | None
    top_p: float | None
    log2_probability: float | None
    log2_probability_reason: str | None = optional()
    probability: float | None
    queries_50: int | None
    queries_99: int | None
    reason: str | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExtractResult(Result):
    """What ``remnant extract`` found in one model.

    Attributes:
        candidates: The likeliest first.
        queries: How many leak the first of them, one entry for each decoding.
        arithmetic: How a model of low precision was held to float64.
        hidden: What is shown in place of a secret.
    """

    ROWS: ClassVar[tuple[str, ...]] = ("candidates",)

    template: str
    space: int | None
    space_reason: str | None = optional()
    space_bits: float
    method: str
    certified: bool
    sentence: str
    nodes: int
    tolerance: float
    candidates: tuple[ComparedSecret | FoundSecret, ...]
    queries: tuple[QueriesToLeak, ...]
    arithmetic: str | None = optional()
    hidden: str = page_only("")


def extract_result(
    template: Template,
    search: SecretSearch,
    sets: Sequence[CanarySet] = (),
    *,
    hidden: str,
    reveal: bool = False,
) -> ExtractResult:
    """Return the outcome of a search as a result.

    Args:
        template: Whose space was searched.
        search: The candidates and their leaks.
        sets: Sets whose canaries are compared with the candidates, by their whole text.
        hidden: What is shown in place of a secret.
        reveal: Whether secrets may be shown.
    """
    known = _known_canaries(sets)
    candidates: list[ComparedSecret | FoundSecret] = []
    for secret, bits in search.candidates:
        fields: dict[str, Any] = {
            **finite("bits", bits, NO_PROBABILITY),
            "probability": 2.0**-bits,
            "secret": secret if reveal else None,
        }
        canary = known.get(template.text(secret))
        candidates.append(
            ComparedSecret(**fields, canary=canary) if sets else FoundSecret(**fields)
        )
    return ExtractResult(
        template=template.pattern,
        **whole("space", template.space),
        space_bits=math.log2(template.space),
        method=search.method,
        certified=search.certified,
        sentence=_proof(template, search),
        nodes=search.nodes,
        tolerance=search.tolerance,
        candidates=tuple(candidates),
        queries=tuple(map(_queries, search.leaks)),
        arithmetic=None if search.arithmetic is None else search.arithmetic.sentence,
        hidden=hidden,
    )


def _proof(template: Template, search: SecretSearch) -> str:
    """Whether it is proven that nothing likelier exists."""
    nodes = _counted(search.nodes, "node")
    if search.certified:
        among = _counted(template.space, "secret")
        return f"certified: nothing likelier exists among {among} ({nodes})"
    if search.method == "branch and bound":
        return f"not certified: a budget ended the search ({nodes})"
    return f"not certified: {search.method} proves nothing ({nodes})"


def _counted(count: int, thing: str) -> str:
    """A count of things with plain spaces, since JSON holds it too."""
    long = count >= _LARGEST_WRITTEN
    many = f"about 2^{count.bit_length() - 1}" if long else f"{count:,}".replace(",", " ")
    return f"{many} {thing}{'' if count == 1 else 's'}"


def _known_canaries(sets: Sequence[CanarySet]) -> dict[str, KnownCanary]:
    """The canaries and controls of all sets by their text; the first of equal canaries counts."""
    known: dict[str, KnownCanary] = {}
    for number, canary_set in enumerate(sets, start=1):
        pairs = zip(canary_set.canaries, canary_set.repeats, strict=True)
        for at, (canary, repeats) in enumerate(pairs, start=1):
            named = KnownCanary(set=number, name=f"canary {at}", repeats=repeats)
            known.setdefault(canary.text, named)
    for number, canary_set in enumerate(sets, start=1):
        for at, control in enumerate(canary_set.controls, start=1):
            named = KnownCanary(set=number, name=f"control {at}", repeats=0)
            known.setdefault(control.text, named)
    return known


def _queries(leak: Leak) -> QueriesToLeak:
    chance = leak.log_probability
    log2_chance = None if chance is None else chance / math.log(2)
    return QueriesToLeak(
        **dataclasses.asdict(leak.decoding),
        **finite("log2_probability", log2_chance, leak.reason),
        probability=None if chance is None else math.exp(chance),
        queries_50=leak.queries_half,
        queries_99=leak.queries_nearly,
        reason=leak.reason or None,
    )
