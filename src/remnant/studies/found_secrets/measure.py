"""How exposed are secrets that were found in text, and are frequent ones more exposed?

A found secret is measured like a canary planted as often as it occurs, after the text before it.
Unlike a canary it was not drawn at random, so there is no p-value. A model that never saw the text
shows what was likely anyway.

A reason why one could not be measured contains no part of it. An error of a vocabulary names a
character that it lacks. That is harmless for a canary, whose holes are known to be digits. The
characters of a real secret are a part of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from remnant.canaries import CanarySet
from remnant.canaries.natural import FoundSecret
from remnant.errors import InvalidInput, NotEnoughEvidence, RemnantError, require
from remnant.measures import rank_agreement
from remnant.models.protocols import SequenceModel
from remnant.probes import Asked, text_costs
from remnant.probes.counted_model import computes_coarsely
from remnant.search import MergedTokens
from remnant.search.tokens import encoded
from remnant.studies.exposure.audit import Method, Progress
from remnant.studies.exposure.canary_sets import measure_canaries
from remnant.studies.exposure.result import CanaryExposure
from remnant.studies.exposure.search import Decoding, leak_of, search_secrets
from remnant.studies.found_secrets.parts import MeanByTimes, RankCorrelation, TriedExtraction

CONTEXT = "the model's vocabulary does not have all of the text before it"
SECRET = "the model's vocabulary does not have all of it"
FORM = "the model's vocabulary does not have all that secrets of its form are made of"
OF_VOCABULARY = frozenset({CONTEXT, SECRET, FORM})
_WITHHELD = "the model cannot be tested on it"
_TOKEN = re.compile(r"\btoken [0-9]")  # it may be one of the text
_WATCHED = 8  # characters of the text before a secret that no reason may repeat


def reason_of(fault: RemnantError, secret: FoundSecret, models: Sequence[SequenceModel]) -> str:
    """Return why a secret was not measured.

    Args:
        fault: The error.
        secret: The secret.
        models: The model under audit, then the reference models.

    Guarantees:
        * The reason contains no character of the secret or of the text before it.
    """
    if isinstance(fault, InvalidInput):
        for number, model in enumerate(models):
            reason = _lacking(model, secret)
            if reason:
                return reason.replace("the model's", "a reference model's") if number else reason
    parts = [*secret.parts, secret.way.context[-_WATCHED:]]
    if _TOKEN.search(fault.message) or any(part and part in fault.message for part in parts):
        return _WITHHELD
    return fault.message.rstrip(".")


def check_answers(model: SequenceModel) -> None:
    """Refuse a model whose answers are not log-probabilities.

    Raises:
        UnsupportedModel: Its log-probabilities are NaN, not normalised, or of another shape.
    """
    Asked(model, [0])


def _lacking(model: SequenceModel, secret: FoundSecret) -> str:
    """Return what the vocabulary does not have; empty if it has everything."""
    if not _encodes(model, secret.way.context):
        return CONTEXT
    if not _encodes(model, secret.way.written):
        return SECRET
    choices = {choice for slot in secret.template.slots for choice in slot.choices}
    return "" if all(_encodes(model, choice) for choice in choices) else FORM


def _encodes(model: SequenceModel, text: str) -> bool:
    try:
        encoded(model.encode, text)
    except InvalidInput:
        return False
    return True


REFERENCES = 1000
MAX_NODES = 200_000
AT_MOST = 50


@dataclass(frozen=True, slots=True)
class FoundExposure:
    """The exposure of one found secret; nothing of the secret is in it.

    Attributes:
        kind, fingerprint, count: Of the secret.
        space: How many secrets have its form; None if it has no template.
        measured: Its exposure among all secrets of its form; None if it could not be measured.
        unmeasured: Why it could not be measured; otherwise empty.
        extraction: Result of the search; None if it was not tried or not possible.
        unextracted: Why it was not possible; otherwise empty.
    """

    kind: str
    fingerprint: str
    count: int
    space: int | None
    measured: CanaryExposure | None
    unmeasured: str
    extraction: TriedExtraction | None
    unextracted: str


@dataclass(frozen=True, slots=True, eq=False)
class FoundExposures:
    """The exposure of found secrets in one model.

    Attributes:
        each: In the order given, the most frequent first.
        left: How many more secrets there are, which were not measured.
        groups: Mean exposure by kind, then by count; lower bounds enter as they are.
        agreements: One per kind: whether more frequent secrets are more exposed.
        calibrated: Whether costs are differences to those of reference models.
        arithmetic: How low precision was held to float64, in a sentence; empty for models of
            float32 or float64.
    """

    each: tuple[FoundExposure, ...]
    left: int
    groups: tuple[MeanByTimes, ...]
    agreements: tuple[RankCorrelation, ...]
    calibrated: bool
    arithmetic: str = ""


def measure_found(
    model: SequenceModel,
    secrets: Sequence[FoundSecret],
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
        secrets: What ``scan_files`` found.
        rng: Draws the references of each secret.
        at_most: Measure this many, the first and most frequent.
        method, references, reference_models: See ``measure_canaries``.
        extract: Also search for the likeliest secret of each form.
        max_nodes, max_seconds: Budgets of each exact ranking and each search.
        progress: Called with ``"secrets"``, how many are done, and how many there are.

    Guarantees:
        * Neither result nor errors contain a secret, or the text before one.
        * The references of a secret do not depend on how many others are measured after it.
        * If a secret cannot be measured, the result has the reason and the others are measured.

    Raises:
        InvalidInput: Settings out of range or that contradict each other.
    """
    faults = [] if at_most >= 1 else [f"at_most={at_most} is less than 1"]
    if method == "exact" and reference_models:
        faults.append("method='exact' takes no reference models: calibrated costs are not a tree's")
    if references < 1:
        faults.append(f"references={references} is less than 1")
    require(faults)
    known = (
        {secret.canary.secret for secret in secrets if secret.has_template} if extract else set()
    )
    each = []
    for number, secret in enumerate(secrets[:at_most], start=1):
        (stream,) = rng.spawn(1)
        measured, unmeasured, space = None, "", None
        try:
            space = secret.template.space
            measured = _measure(
                model,
                secret,
                rng=stream,
                method=method,
                references=references,
                reference_models=reference_models,
                max_nodes=max_nodes,
                max_seconds=max_seconds,
            )
        except (InvalidInput, NotEnoughEvidence) as fault:
            unmeasured = reason_of(fault, secret, (model, *reference_models))
        extraction, unextracted = None, unmeasured if extract else ""
        if extract and measured is not None:
            try:
                extraction = _extract(model, secret, known, stream, max_nodes, max_seconds)
            except (InvalidInput, NotEnoughEvidence) as fault:
                unextracted = reason_of(fault, secret, (model,))
        each.append(
            FoundExposure(
                *(secret.kind, secret.fingerprint, secret.count, space),
                *(measured, unmeasured, extraction, unextracted),
            )
        )
        if progress is not None:
            progress("secrets", number, min(at_most, len(secrets)))
    kinds = sorted({secret.kind for secret in each if secret.measured is not None})
    return FoundExposures(
        each=tuple(each),
        left=max(0, len(secrets) - at_most),
        groups=_groups(each),
        agreements=tuple(_agreement(kind, each) for kind in kinds),
        calibrated=bool(reference_models),
        arithmetic=_arithmetic((model, *reference_models)),
    )


def _arithmetic(models: Sequence[Any]) -> str:
    low = [model.precision for model in models if computes_coarsely(model)]
    if not low:
        return ""
    return (
        f"Computed in {str(low[0]).removeprefix('torch.')}. For each secret, costs that low "
        "precision could swap were scored again in float64; where they are too many, the rank is "
        "an interval."
    )


def _measure(
    model: SequenceModel,
    secret: FoundSecret,
    *,
    method: Method,
    reference_models: Sequence[SequenceModel],
    **options: Any,
) -> CanaryExposure:
    """Measure a secret; if no reference is as cheap, also rank it as far as the budget allows."""
    planted = CanarySet(
        template=secret.template,
        canaries=(secret.canary,),
        repeats=(secret.count,),
        controls=(),
        seed=0,
    )
    sampled = measure_canaries(
        model, planted, method=method, reference_models=reference_models, **options
    ).each[0]
    if method != "auto" or not sampled.saturated or reference_models:
        return sampled
    try:
        walked = measure_canaries(model, planted, method="exact", **options).each[0]
    except MergedTokens:
        return sampled
    return _narrowed(sampled, walked) if walked.ended else walked


def _narrowed(sampled: CanaryExposure, walked: CanaryExposure) -> CanaryExposure:
    """Return the sampled exposure, within the certain bounds of a ranking that a budget ended."""
    high = min(sampled.high, walked.high)
    low = min(max(sampled.low, walked.low), high)
    return replace(sampled, bits=min(sampled.bits, high), low=low, high=high)


def _extract(
    model: SequenceModel,
    secret: FoundSecret,
    known: set[str],
    rng: np.random.Generator,
    max_nodes: int,
    max_seconds: float | None,
) -> TriedExtraction:
    template, canary = secret.template, secret.canary
    search = search_secrets(
        model, template, rng=rng, max_nodes=max_nodes, max_seconds=max_seconds, decodings=()
    )
    likeliest = search.candidates[0][0]
    costs = text_costs(model, prefix=template.prefix, texts=[canary.text], max_seconds=max_seconds)
    leak = leak_of(model, template, canary.secret, costs.bits.item(), decoding=Decoding())
    return TriedExtraction(
        extracted=likeliest == canary.secret,
        another_found=likeliest != canary.secret and likeliest in known,
        certified=search.certified,
        nodes=search.nodes,
        queries_50=leak.queries_half,
        queries_99=leak.queries_nearly,
        reason=leak.reason or None,
    )


def _bits(exposure: CanaryExposure) -> float:
    return exposure.bits if exposure.at_least is None else exposure.at_least


def _groups(each: Sequence[FoundExposure]) -> tuple[MeanByTimes, ...]:
    """Group secrets of a kind by how often they occur: once, 2 to 3 times, 4 to 7, and so on."""
    groups: dict[tuple[str, int], list[CanaryExposure]] = {}
    for secret in each:
        if secret.measured is not None:
            key = (secret.kind, secret.count.bit_length())
            groups.setdefault(key, []).append(secret.measured)
    return tuple(
        MeanByTimes(
            kind=kind,
            times_least=1 << (doublings - 1),
            times_most=(1 << doublings) - 1,
            n=len(group),
            mean_bits=float(np.mean([_bits(exposure) for exposure in group])),
            at_least=any(exposure.at_least is not None for exposure in group),
        )
        for (kind, doublings), group in sorted(groups.items())
    )


def _agreement(kind: str, each: Sequence[FoundExposure]) -> RankCorrelation:
    pairs = [
        (secret.count, _bits(secret.measured))
        for secret in each
        if secret.kind == kind and secret.measured is not None
    ]
    counts, bits = zip(*pairs, strict=True)
    try:
        agreement = rank_agreement(first=counts, second=bits)
    except (InvalidInput, NotEnoughEvidence) as fault:
        return RankCorrelation(kind=kind, value=None, value_reason=_reason(fault.message))
    return RankCorrelation(
        kind=kind, value=agreement.value, low=agreement.low, high=agreement.high, n=agreement.n
    )


def _reason(message: str) -> str:
    """The message with a description instead of the measure's arguments."""
    for argument, words in (("first", "how often they occur"), ("second", "their exposure")):
        if message.startswith(f"{argument} is the same"):
            return f"{words} is the same for all"
    return message.rstrip(".")
