"""What ``remnant extract`` finds in one model.

The plain data of a result are what the command prints as JSON. They hold secrets only if
these were requested. A number that is missing is None, and the field after it says why.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from remnant.records.outcomes import finding_row
from remnant.records.typed import Result, optional, page_only
from remnant.report.numerals import times_text
from remnant.studies.command_result import CommandResult
from remnant.studies.shared.result_parts import Finding, Tested
from remnant.studies.shared.wording import NO_PROBABILITY, finite, whole

if TYPE_CHECKING:  # reading a record must not load PyTorch
    from remnant.canaries import CanarySet, Template
    from remnant.studies.exposure.search import Leak, SecretSearch

QUESTION = "extraction"
_LARGEST_WRITTEN = 10**30  # in a sentence


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


ExtractCommand = CommandResult[Finding, ExtractResult]


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


def recorded(result: ExtractResult) -> ExtractCommand:
    """Return a result with its finding."""
    first = result.candidates[0]
    proof = result.sentence[:1].upper() + result.sentence[1:]
    title = "The likeliest secret" if result.certified else "The likeliest secret found"
    return CommandResult(
        verdict=Finding(
            **finding_row(
                headline=f"{title} costs {_cost(first)} of {result.space_bits:.1f} bits",
                sentence=f"{proof}.{_known(first)}{_leak(result)}",
                advice="If it is a real secret, do not release this model as it is. "
                "How exposed a known secret is, remnant exposure measures.",
            )
        ),
        measured=result,
        scope=Tested(
            tested=(f"{result.method}, {len(result.candidates)} of the likeliest secrets",),
            not_tested=(
                "secrets of another form, or after another text",
                "whether a likely secret was in the training data: likely is not memorised",
            ),
        ),
    )


def known_as(candidate: FoundSecret) -> str | None:
    """Which canary a candidate is; None where it was not compared with a file of canaries."""
    if not isinstance(candidate, ComparedSecret):
        return None
    canary = candidate.canary
    if canary is None:
        return "no canary"
    often = f"planted {times_text(canary.repeats)}" if canary.repeats else "never planted"
    return f"{canary.name} of set {canary.set}, {often}"


def _cost(secret: FoundSecret) -> str:
    return "more than all" if secret.bits is None else f"{secret.bits:.1f}"


def _known(secret: FoundSecret) -> str:
    name = known_as(secret)
    return "" if name is None else f" It is {name}."


def _leak(result: ExtractResult) -> str:
    first = result.queries[0] if result.queries else None
    if first is None or first.queries_99 is None:
        return ""
    return f" It comes out within {first.queries_99} samples with a probability of 99 %."
