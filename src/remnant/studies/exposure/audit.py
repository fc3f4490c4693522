"""Exposure of secrets in one model: exact where the budget allows it, else sampled."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import Template
from remnant.errors import NotEnoughEvidence, require
from remnant.measures import ExtrapolatedExposure, exposure, extrapolated_exposure
from remnant.models.protocols import SequenceModel, TextScorer
from remnant.probes import text_costs
from remnant.probes.counted_model import TimeLimit, computes_coarsely
from remnant.progress import Progress as Progress
from remnant.search import Arithmetic, ExactExposures, MergedTokens, exact_exposure
from remnant.search.automaton import Automaton
from remnant.search.walk import Budget
from remnant.studies.exposure.coarse_costs import (
    Repeated,
    repeated_costs,
    score_texts,
    settled_costs,
)
from remnant.studies.exposure.cost_estimate import nodes_expected, nodes_under, total_costs
from remnant.studies.exposure.formats import WHOLE_TEXTS
from remnant.studies.exposure.result import CanaryExposure

Floats = NDArray[np.float64]
Method = Literal["auto", "exact", "sampled"]
MAX_NODES = 2_000_000
REFERENCES = 10_000
_NOT_A_CANARY: dict[str, Any] = {"trial": 0, "repeats": 0, "uses": 0, "twin_bits": None}
PILOT = 256  # references that show how much of the tree a walk visits


@dataclass(frozen=True, slots=True, eq=False)
class ExposureAudit:
    """The exposure of secrets of one template in one model.

    Attributes:
        method: ``"exact"`` or ``"sampled"``.
        reason: Why this method was used, in a sentence.
        each: The exposure of each secret, in the order given, named ``"secret 1"`` and so on.
        reference_costs: Costs of the sampled references, in bits; none where none were drawn.
        extrapolated: The skew-normal fit to them, where there are enough of them.
        calibrated: Whether the costs are differences to reference models'.
        space: Number of secrets.
        nodes: Rows passed to the model.
        tolerance: Bits within which two costs count as equal, by the exact method.
        complete: Whether no budget ended the walk; False where there was none.
        arithmetic: How low precision was held to float64, or how well a served model repeats its
            costs; None for models of float32 or float64.
        alone: The same without calibration, in the model and then in each reference model; empty
            where costs are not calibrated.
    """

    method: str
    reason: str
    each: tuple[CanaryExposure, ...]
    reference_costs: Floats
    extrapolated: ExtrapolatedExposure | None
    calibrated: bool
    space: int
    nodes: int
    tolerance: float | None
    complete: bool
    arithmetic: Arithmetic | Repeated | None = None
    alone: tuple[ExposureAudit, ...] = ()

    @property
    def bits(self) -> Floats:
        """Exposure of each secret."""
        return np.array([secret.bits for secret in self.each])


@dataclass(frozen=True, slots=True, eq=False)
class ReadCosts:
    """Costs of secrets and of references in one model, token by token.

    Attributes:
        automaton: Of the template's tokens, from whose start the costs count.
        secrets: ``(secrets, longest)``, in bits; 0 beyond the end of a shorter one.
        references: Of secrets that were sampled at random, likewise.
        nodes: Rows passed to the model for them.
    """

    automaton: Automaton
    secrets: Floats
    references: Floats
    nodes: int


def measure_exposure(
    model: SequenceModel | TextScorer,
    template: Template,
    *,
    secrets: Sequence[str],
    rng: np.random.Generator,
    method: Method = "auto",
    references: int = REFERENCES,
    reference_models: Sequence[SequenceModel | TextScorer] = (),
    max_nodes: int = MAX_NODES,
    max_seconds: float | None = None,
    memory: int | None = None,
    fit: bool = True,
    progress: Progress | None = None,
) -> ExposureAudit:
    """Measure the exposure of secrets, and say by which method.

    ``"auto"`` takes the exact walk where the model's tokenizer allows it and the walk is expected
    to take no more than ``max_nodes``: the share of sampled references that are still under the
    costliest secret, at each depth, says how much of the tree has to be visited. Where a budget
    ends the walk nevertheless, the references decide.

    Args:
        model: The model under audit. One that scores whole texts only, such as a served one, can
            only be sampled.
        template: From which the secrets come.
        secrets: To be measured.
        rng: Draws the references.
        method: ``"auto"``, ``"exact"`` or ``"sampled"``.
        references: How many secrets to sample; with the exact method they only make the histogram,
            and 0 draws none.
        reference_models: Calibrate by the mean cost under these models. Sampled only: a difference
            of costs does not grow along the tree.
        max_nodes, max_seconds, memory: Budgets of the walk. ``max_seconds`` also binds while
            texts are encoded and the prefix is read, by each model, and ``memory``, in bytes, also
            while references are scored; half of what is free, on a CPU at most 1 GiB.
        fit: Whether a skew-normal law is fitted to the references.
        progress: Called with what is being done, how much is done, and of how much.

    Raises:
        OutOfTime: ``max_seconds`` were over before the prefix was read.
        InvalidInput: Settings that contradict each other, or a secret outside the space.
        NotEnoughEvidence: No references where sampling needs them.

    Example:
        >>> import torch
        >>> from remnant.models import LanguageModel, Vocabulary, lstm
        >>> template = Template("the random number is {digits:4}")
        >>> vocabulary = Vocabulary.of_characters(template.prefix + "0123456789")
        >>> _ = torch.manual_seed(0)
        >>> model = LanguageModel(lstm(vocabulary.size, units=8), vocabulary)  # nothing learnt
        >>> rng = np.random.default_rng(0)
        >>> audit = measure_exposure(model, template, secrets=["2812"], rng=rng, references=100)
        >>> audit.method, audit.space, len(audit.each)
        ('exact', 10000, 1)
    """
    faults = []
    if method not in get_args(Method):
        faults.append(f"method={method!r} is not one of {', '.join(get_args(Method))}")
    if reference_models and method == "exact":
        faults.append("method='exact' takes no reference models: calibrated costs are not a tree's")
    served = isinstance(model, TextScorer)
    if served and method == "exact":
        faults.append("method='exact' needs a model's next tokens, and it scores whole texts only")
    if served and max_seconds is not None:
        faults.append("max_seconds= is for a walk, and the model scores whole texts only")
    if references < 0:
        faults.append(f"references={references} is less than 0")
    if isinstance(secrets, str) or len(secrets) == 0:
        faults.append("secrets is not a list of at least one secret")
    require(faults)
    room = template.space - len(set(secrets))
    drawn = template.sample(min(references, room), rng=rng, exclude=secrets)
    exact, reason = None, "costs calibrated by reference models can only be sampled"
    if isinstance(model, TextScorer):
        reason = f"sampled, because {WHOLE_TEXTS}"
    elif method != "auto" or not reference_models:
        few = [canary.secret for canary in drawn[:PILOT]]
        exact, reason = _exact(
            model,
            template,
            secrets,
            lambda: nodes_expected(
                model, template, secrets, few, limit=TimeLimit(max_seconds), memory=memory
            ),
            method,
            Budget(max_nodes=max_nodes, max_seconds=max_seconds, memory=memory),
            progress,
        )
    texts = [template.text(secret) for secret in secrets] + [canary.text for canary in drawn]
    models, many = (model, *reference_models), len(secrets)
    read = partial(text_costs, prefix=template.prefix, memory=memory, max_seconds=max_seconds)
    scored = score_texts(models, texts, partial(read, progress=progress))
    costs, arithmetic = scored.bits, None
    if any(map(computes_coarsely, models)):
        costs, arithmetic = settled_costs(scored, models, texts, read, secrets=many)
    repeated = None
    if any(isinstance(each, TextScorer) for each in models):
        repeated = repeated_costs(scored, models, texts, read)
    audit = _audit(
        template,
        costs[:many],
        costs[many:],
        exact,
        reason,
        scored.nodes,
        calibrated=bool(reference_models),
        fit=fit,
        arithmetic=arithmetic if repeated is None else repeated,
        tolerance=0.0 if repeated is None else repeated.tolerance,
    )
    if not reference_models:
        return audit
    alone = (_audit(template, c[:many], c[many:], None, "", 0, fit=False) for c in scored.alone)
    return replace(audit, alone=tuple(alone))


def measure_costs(
    model: SequenceModel,
    template: Template,
    costs: ReadCosts,
    *,
    secrets: Sequence[str],
    method: Method = "auto",
    max_nodes: int = MAX_NODES,
    fit: bool = True,
    progress: Progress | None = None,
) -> ExposureAudit:
    """Measure exposure as ``measure_exposure`` does where secrets and references were read before.

    Args:
        model: The model under audit; it is only called if the tree is walked.
        template: From which the secrets come.
        costs: Of the secrets, in their order, and of the references.
        secrets: To be measured.
        method: ``"auto"``, ``"exact"`` or ``"sampled"``.
        max_nodes: Budget of the walk.
        fit: Whether a skew-normal law is fitted to the references.
        progress: Called with what is being done, how much is done, and of how much.

    Raises:
        NotEnoughEvidence: No references where sampling needs them.
    """
    few = costs.references[:PILOT]
    exact, reason = _exact(
        model,
        template,
        secrets,
        lambda: nodes_under(costs.automaton, costs.secrets, few),
        method,
        Budget(max_nodes=max_nodes),
        progress,
    )
    own, drawn = total_costs(costs.secrets), total_costs(costs.references)
    return _audit(template, own, drawn, exact, reason, costs.nodes, fit=fit)


def _audit(
    template: Template,
    own: Floats,
    drawn: Floats,
    exact: ExactExposures | None,
    reason: str,
    nodes: int,
    *,
    calibrated: bool = False,
    fit: bool = True,
    arithmetic: Arithmetic | Repeated | None = None,
    tolerance: float = 0.0,
) -> ExposureAudit:
    law = _extrapolated(own, drawn) if fit else None
    guesses = [None] * len(own) if law is None else law.bits.tolist()
    if exact is not None:
        each = tuple(
            CanaryExposure(
                **_NOT_A_CANARY,
                name=f"secret {number}",
                bits=e.bits,
                low=e.low,
                high=e.high,
                rank=e.rank,
                rank_low=e.rank_low,
                cost=e.cost,
                saturated=False,
                skew_normal_bits=guess,
            )
            for number, (e, guess) in enumerate(zip(exact, guesses, strict=True), start=1)
        )
        nodes += exact.nodes
    else:
        if len(drawn) == 0:
            raise NotEnoughEvidence(
                "Sampled exposure needs references, and none were drawn.",
                hint="Pass references=10000.",
            )
        ranked = exposure(canary_losses=own, reference_losses=drawn, space=template.space)
        low, high = ranked.low, ranked.high
        if tolerance:  # costs that could be so far off give the ends of the interval
            ends = [
                exposure(canary_losses=own + off, reference_losses=drawn, space=template.space)
                for off in (tolerance, -tolerance)
            ]
            low, high = np.minimum(low, ends[0].low), np.maximum(high, ends[1].high)
        tied = 2 * ranked.tied > ranked.at_or_under
        columns = (ranked.bits, low, high, own, ranked.saturated, tied)
        rows = zip(*(column.tolist() for column in columns), guesses, strict=True)
        each = tuple(
            CanaryExposure(
                **_NOT_A_CANARY,
                name=f"secret {number}",
                bits=bits,
                low=least,
                high=most,
                rank=None,
                cost=cost,
                saturated=saturated,
                skew_normal_bits=guess,
                tied=mostly_tied or None,
            )
            for number, (bits, least, most, cost, saturated, mostly_tied, guess) in enumerate(
                rows, start=1
            )
        )
    return ExposureAudit(
        method="sampled" if exact is None else "exact",
        reason=reason,
        each=each,
        reference_costs=drawn,
        extrapolated=law,
        calibrated=calibrated,
        space=template.space,
        nodes=nodes,
        tolerance=None if exact is None else exact[0].tolerance,
        complete=exact is not None and exact.finished,
        arithmetic=arithmetic if exact is None else exact.arithmetic,
    )


def _extrapolated(own: Floats, drawn: Floats) -> ExtrapolatedExposure | None:
    finite = drawn[np.isfinite(drawn)]
    if len(finite) < len(drawn) or len(np.unique(finite)) < 50 or not np.isfinite(own).all():
        return None
    return extrapolated_exposure(canary_losses=own, reference_losses=drawn)


def _exact(
    model: SequenceModel,
    template: Template,
    secrets: Sequence[str],
    expect: Callable[[], float],
    method: Method,
    budget: Budget,
    progress: Progress | None,
) -> tuple[ExactExposures | None, str]:
    """Walk the tree if that is wanted and can be done; also say why, or why not.

    ``expect`` returns how many nodes the walk is expected to take.
    """
    reason = f"method={method!r} was asked for"
    if method == "sampled":
        return None, reason
    try:
        if method == "auto" and budget.max_nodes is not None:
            expected = expect()
            reason = (
                f"the walk was expected to take about {_in_words(expected)} nodes of "
                f"{_in_words(budget.max_nodes)} allowed"
            )
            if expected > budget.max_nodes:
                return None, f"sampled, because {reason}"
        exact = exact_exposure(
            model,
            template,
            secrets=secrets,
            max_nodes=budget.max_nodes,
            max_seconds=budget.max_seconds,
            memory=budget.memory,
            progress=progress,
        )
    except MergedTokens as fault:
        if method == "exact":
            raise
        return None, f"sampled, because the tree cannot be walked: {fault.message}"
    if exact.finished:
        return exact, f"exact: {reason}"
    ended = f"a budget ended the walk after {exact.nodes} nodes"
    if method == "auto":
        return None, f"sampled, because {ended}"
    return exact, f"{reason}, but {ended}: the ranks are bounds"


def _in_words(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ") if number < 1e12 else f"10^{math.log10(number):.0f}"
