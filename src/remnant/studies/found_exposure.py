"""How exposed are secrets that were found in text, and does it grow with how often they stand?

A found secret is asked about as a canary that was planted as often as it stands there, after the
text before it. Unlike a canary it was not drawn at random, so that chance has no law for it: no
p-value is given. A model that never saw the text tells what was likely anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from remnant.canaries import CanarySet
from remnant.canaries.natural import FoundSecret
from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures import RankAgreement, rank_agreement
from remnant.models.protocols import SequenceModel
from remnant.probes import text_costs
from remnant.search import MergedTokens
from remnant.studies.canary_exposure import CanaryExposure, measure_canaries
from remnant.studies.exposure_audit import Method, Progress
from remnant.studies.found_reasons import reason_of
from remnant.studies.secret_search import Decoding, Leak, leak_of, search_secrets

REFERENCES = 1000
MAX_NODES = 200_000
AT_MOST = 50


@dataclass(frozen=True, slots=True)
class FoundExtraction:
    """Whether a secret comes out of a model that is asked for the likeliest of its form.

    Attributes:
        extracted: The likeliest is this one.
        another: The likeliest is another one that was found.
        certified: It is proved that nothing likelier exists.
        nodes: Rows passed to the model.
        leak: How soon this one comes out of a model that is asked again and again.
    """

    extracted: bool
    another: bool
    certified: bool
    nodes: int
    leak: Leak


@dataclass(frozen=True, slots=True)
class FoundExposure:
    """The exposure of one found secret; nothing of the secret is in it.

    Attributes:
        kind, fingerprint, count: The secret's.
        space: How many secrets have its form; None where it has no template.
        measured: Its exposure among all secrets of its form; None where it could not be measured.
        unmeasured: Then, why; else empty.
        extraction: What came of trying; None where it was not tried, or not possible.
        unextracted: Where it was not possible, why; else empty.
    """

    kind: str
    fingerprint: str
    count: int
    space: int | None
    measured: CanaryExposure | None
    unmeasured: str
    extraction: FoundExtraction | None
    unextracted: str


@dataclass(frozen=True, slots=True)
class CountExposure:
    """Secrets of one kind that stand about equally often in the text.

    Attributes:
        kind: Of all of them.
        least, most: How often they stand there: 1, 2 to 3, 4 to 7, and so on.
        n: How many they are.
        mean_bits: Their mean exposure; bounds enter as what is proved.
        at_least: Some of them are bounds.
    """

    kind: str
    least: int
    most: int
    n: int
    mean_bits: float
    at_least: bool


@dataclass(frozen=True, slots=True)
class CountAgreement:
    """Whether secrets of a kind that stand there more often are more exposed.

    Attributes:
        kind: Of the secrets.
        found: Spearman's correlation of count and exposure; None where it cannot be said.
        untold: Then, why; else empty.
    """

    kind: str
    found: RankAgreement | None
    untold: str


@dataclass(frozen=True, slots=True, eq=False)
class FoundExposures:
    """The exposure of found secrets in one model.

    Attributes:
        each: In the order given, the most frequent first.
        left: How many more there are that were not asked about.
        groups: By kind, then by count.
        agreements: One a kind.
        calibrated: Whether costs are differences to reference models'.
    """

    each: tuple[FoundExposure, ...]
    left: int
    groups: tuple[CountExposure, ...]
    agreements: tuple[CountAgreement, ...]
    calibrated: bool


def measure_found(
    model: SequenceModel,
    found: Sequence[FoundSecret],
    *,
    rng: np.random.Generator,
    at_most: int = AT_MOST,
    method: Method = "auto",
    references: int = REFERENCES,
    reference_models: Sequence[SequenceModel] = (),
    extract: bool = False,
    max_nodes: int = MAX_NODES,
    max_seconds: float | None = None,
    progress: Progress | None = None,
) -> FoundExposures:
    """Measure the exposure of found secrets, each among all secrets of its own form.

    Args:
        model: The model under audit.
        found: What ``scan_files`` found.
        rng: Draws the references of each.
        at_most: Ask about so many, the first ones: those that stand there most often.
        method, references, reference_models: See ``measure_canaries``.
        extract: Also search for the likeliest secret of each form.
        max_nodes, max_seconds: Budgets of each walk and of each search.
        progress: Called with what is done, how many secrets, and of how many.

    Guarantees:
        * Neither result nor error holds a secret, or the text before one.
        * The references of a secret do not depend on how many others are measured after it.
        * A secret that the model cannot be asked about is told with its reason, and others go on.

    Raises:
        InvalidInput: Settings out of range or that contradict each other.
    """
    faults = [] if at_most >= 1 else [f"at_most={at_most} is less than 1"]
    if method == "exact" and reference_models:
        faults.append("method='exact' takes no reference models: calibrated costs are not a tree's")
    if references < 1:
        faults.append(f"references={references} is less than 1")
    require(faults)
    known = {one.canary.secret for one in found if one.has_template} if extract else set()
    each = []
    for number, one in enumerate(found[:at_most], start=1):
        (stream,) = rng.spawn(1)
        measured, unmeasured, space = None, "", None
        try:
            space = one.template.space
            measured = _measure(
                model,
                one,
                rng=stream,
                method=method,
                references=references,
                reference_models=reference_models,
                max_nodes=max_nodes,
                max_seconds=max_seconds,
            )
        except (InvalidInput, NotEnoughEvidence) as fault:
            unmeasured = reason_of(fault, one, (model, *reference_models))
        extraction, unextracted = None, unmeasured if extract else ""
        if extract and measured is not None:
            try:
                extraction = _extract(model, one, known, stream, max_nodes, max_seconds)
            except (InvalidInput, NotEnoughEvidence) as fault:
                unextracted = reason_of(fault, one, (model,))
        each.append(
            FoundExposure(
                *(one.kind, one.fingerprint, one.count, space),
                *(measured, unmeasured, extraction, unextracted),
            )
        )
        if progress is not None:
            progress("secrets", number, min(at_most, len(found)))
    return FoundExposures(
        each=tuple(each),
        left=max(0, len(found) - at_most),
        groups=_groups(each),
        agreements=_agreements(each),
        calibrated=bool(reference_models),
    )


def _measure(
    model: SequenceModel,
    one: FoundSecret,
    *,
    method: Method,
    reference_models: Sequence[SequenceModel],
    **options: Any,
) -> CanaryExposure:
    """Measure one; what no reference is as cheap as is walked as far as the budget goes."""
    planted = _as_planted(one)
    found = measure_canaries(
        model, planted, method=method, reference_models=reference_models, **options
    ).each[0]
    if method == "auto" and found.found.saturated and not reference_models:
        try:
            walked = measure_canaries(model, planted, method="exact", **options).each[0]
        except MergedTokens:
            return found
        return _narrowed(found, walked) if walked.ended else walked
    return found


def _narrowed(sampled: CanaryExposure, walked: CanaryExposure) -> CanaryExposure:
    """Return what was sampled, within the certain bounds of a walk that a budget ended."""
    found, bounds = sampled.found, walked.found
    high = min(found.high, bounds.high)
    low = min(max(found.low, bounds.low), high)
    return replace(sampled, found=replace(found, bits=min(found.bits, high), low=low, high=high))


def _as_planted(one: FoundSecret) -> CanarySet:
    return CanarySet(
        template=one.template, canaries=(one.canary,), repeats=(one.count,), controls=(), seed=0
    )


def _extract(
    model: SequenceModel,
    one: FoundSecret,
    known: set[str],
    rng: np.random.Generator,
    max_nodes: int,
    max_seconds: float | None,
) -> FoundExtraction:
    template, secret = one.template, one.canary.secret
    search = search_secrets(
        model, template, rng=rng, max_nodes=max_nodes, max_seconds=max_seconds, decodings=()
    )
    likeliest = search.candidates[0][0]
    text = one.canary.text
    costs = text_costs(model, prefix=template.prefix, texts=[text], max_seconds=max_seconds)
    leak = leak_of(model, template, secret, costs.bits.item(), decoding=Decoding())
    return FoundExtraction(
        extracted=likeliest == secret,
        another=likeliest != secret and likeliest in known,
        certified=search.certified,
        nodes=search.nodes,
        leak=leak,
    )


def _bits(one: CanaryExposure) -> float:
    return one.found.bits if one.at_least is None else one.at_least


def _groups(each: Sequence[FoundExposure]) -> tuple[CountExposure, ...]:
    groups: dict[tuple[str, int], list[CanaryExposure]] = {}
    for one in each:
        if one.measured is not None:
            groups.setdefault((one.kind, one.count.bit_length()), []).append(one.measured)
    return tuple(
        CountExposure(
            kind=kind,
            least=1 << (doublings - 1),
            most=(1 << doublings) - 1,
            n=len(alike),
            mean_bits=float(np.mean([_bits(one) for one in alike])),
            at_least=any(one.at_least is not None for one in alike),
        )
        for (kind, doublings), alike in sorted(groups.items())
    )


def _agreements(each: Sequence[FoundExposure]) -> tuple[CountAgreement, ...]:
    kinds = sorted({one.kind for one in each if one.measured is not None})
    return tuple(_agreement(kind, each) for kind in kinds)


def _agreement(kind: str, each: Sequence[FoundExposure]) -> CountAgreement:
    alike = [one for one in each if one.kind == kind and one.measured is not None]
    bits = [_bits(one.measured) for one in alike if one.measured is not None]
    try:
        found = rank_agreement(first=[one.count for one in alike], second=bits)
    except (InvalidInput, NotEnoughEvidence) as fault:
        return CountAgreement(kind, None, fault.message.rstrip("."))
    return CountAgreement(kind, found, "")
