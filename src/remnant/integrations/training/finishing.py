"""Measures the model that a training ended with, judges it, and says how the audit ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.canaries import CanarySet, OwnTexts
from remnant.integrations.training.canary_costs import TextCosts, vocabulary_of
from remnant.integrations.training.planting import PlantedRows
from remnant.integrations.training.preflight import encode_text
from remnant.integrations.training.processes import Processes
from remnant.integrations.training.scoring import ScoredRow, score_rows
from remnant.integrations.training.state import AuditState
from remnant.integrations.training.trained_model import (
    ModelInContext,
    base_model,
    is_sharded,
    model_in_words,
    plain_model,
    unwrapped,
)
from remnant.integrations.training.watched_training import WatchedTraining
from remnant.records.outcomes import EXIT_CODES
from remnant.records.typed import Absent
from remnant.studies.exposure.audit import (
    ExposureAudit,
    ReadCosts,
    measure_costs,
    measure_exposure,
)
from remnant.studies.shared.result_parts import Gate
from remnant.studies.training_audit.claimed_epsilon import (
    differences,
    measured_epsilon,
    with_epsilon,
)
from remnant.studies.training_audit.measure import Measured, training_audit
from remnant.studies.training_audit.own_examples import MeasuredExamples, examples_audit
from remnant.studies.training_audit.result import (
    MeasuredEpsilon,
    Overhead,
    TrainingAuditResult,
)

MadeResult = Callable[[NDArray[np.int64], int], TrainingAuditResult]  # of uses, controls used
_DRAWN = 3  # the stream of random numbers that draws references


@dataclass(frozen=True, slots=True)
class AuditOutcome:
    """How an audit ended.

    Attributes:
        outcome: ``"PASS"``, ``"FAIL"`` or ``"INCONCLUSIVE"``; None where no limit was set.
        sentence: What was measured, and why that is the outcome.
        claim: The strongest statement that the evidence supports.
        exit_code: 0 for PASS and where no limit was set, 1 for FAIL, 3 for INCONCLUSIVE.
        report: The page, an HTML file.
        folder: The record.
        result: All numbers.
    """

    outcome: str | None
    sentence: str
    claim: str
    exit_code: int
    report: Path
    folder: Path
    result: TrainingAuditResult


def outcome_of(result: TrainingAuditResult, folder: Path, report: Path) -> AuditOutcome:
    """Return how an audit ended: its result, with the verdict in words."""
    verdict = result.verdict
    if isinstance(verdict, Gate):
        return AuditOutcome(
            outcome=verdict.outcome,
            sentence=verdict.sentence,
            claim=verdict.claim or "",
            exit_code=EXIT_CODES[verdict.outcome],
            report=report,
            folder=folder,
            result=result,
        )
    said = verdict.reason if isinstance(verdict, Absent) else verdict.sentence
    return AuditOutcome(
        outcome=None,
        sentence=said,
        claim="",
        exit_code=0,
        report=report,
        folder=folder,
        result=result,
    )


def data_in_words(planted: PlantedRows | None) -> str:
    """Return how many rows the data had before canaries were planted."""
    if planted is None or planted.rows is None:
        return "a stream of rows"
    return f"{planted.rows - planted.copies} rows"


def measure_secrets(
    training: WatchedTraining,
    model: nn.Module,
    overhead: Overhead,
    **settings: Any,
) -> MadeResult | None:
    """Measure a template's canaries; return what makes the result of their uses.

    Args:
        training: That was watched.
        model: The trained model.
        overhead: What scoring cost.
        settings: Of an exact ranking: see ``FinalMeasure``.

    Returns:
        None in all processes but the first.
    """
    gate, costs = training.settings, training.costs
    canary_set = gate.canaries
    if not isinstance(canary_set, CanarySet) or not isinstance(costs, TextCosts):
        raise TypeError("these are examples of one's own")
    measure = FinalMeasure(
        canary_set=canary_set,
        tokenizer=costs.tokenizer,
        context=costs.context,
        first=costs.first,
        start=costs.rows[0].start,
        vocabulary=vocabulary_of(model, costs.tokenizer),
        forward=costs.forward,
        **settings,
    )
    trained, base = measure.of(model)
    if trained is None:
        return None
    return lambda uses, controls: training_audit(
        Measured(
            canaries=canary_set,
            trained=trained,
            base=base,
            scores=training.scores,
            uses=uses,
            context=len(costs.context),
            overhead=overhead,
            data=data_in_words(training.planted),
            windows=None if gate.windows is None else gate.windows.window,
            controls_used=controls,
        ),
        limit=gate.limit,
        judged=gate.judged,
        share=gate.share,
    )


def measure_examples(
    training: WatchedTraining,
    state: AuditState,
    overhead: Overhead,
    reference_models: Iterable[nn.Module],
) -> MadeResult | None:
    """Measure examples of one's own; return what makes the result of their uses.

    Args:
        training: That was watched.
        state: The record, which takes the scores of reference models.
        overhead: What scoring cost.
        reference_models: Models that saw none of the examples.

    Returns:
        None in all processes but the first.
    """
    gate, examples = training.settings, training.settings.canaries
    if isinstance(examples, CanarySet):
        raise TypeError("these are canaries of a template")
    are_texts = isinstance(examples, OwnTexts)
    scored = [-training.costs.of(model, anew=True) for model in reference_models]
    references = np.stack(scored) if scored else None
    if not Processes.now().first:
        return None
    if references is not None:
        state.keep_references(references)
    return lambda uses, controls: examples_audit(
        MeasuredExamples(
            kind="texts" if are_texts else "images",
            repeats=np.array(examples.repeats, dtype=np.int64),
            controls=len(examples.controls),
            drawn=examples.drawn,
            scores={step: -costs for step, costs in training.scores.items()},
            score="minus its cost in bits a token" if are_texts else "the log-odds of its label",
            final=training.last_step,
            uses=uses,
            context=len(training.costs.context),
            overhead=overhead,
            data=data_in_words(training.planted),
            seed=examples.seed,
            windows=None if gate.windows is None else gate.windows.window,
            controls_used=controls,
            references=references,
        ),
        limit=gate.limit,
        judged=gate.judged,
    )


def measure_epsilon(
    training: WatchedTraining, *, claimed: float | None, delta: float
) -> MeasuredEpsilon:
    """Return the lower bound on the ε of a training whose canaries were planted by coins."""
    canaries = training.settings.canaries
    planted = len(canaries.canaries)
    risen, attacker = differences(
        training.scores, training.last_step, planted + len(canaries.controls)
    )
    return measured_epsilon(
        risen[:planted],
        risen[planted:],
        claimed=claimed,
        delta=delta,
        seed=canaries.seed,
        attacker=attacker,
    )


def end(
    training: WatchedTraining,
    state: AuditState,
    measured: MadeResult | None,
    epsilon: MeasuredEpsilon | None,
) -> AuditOutcome:
    """Judge what was measured, and write the record and the report in the first process.

    Returns:
        How the audit ended, in all processes.
    """
    processes = Processes.now()
    uses, controls = training.uses(), training.controls_used()
    outcome = None
    with processes.together():
        if measured is not None:
            result = measured(uses, controls)
            if epsilon is not None:
                result = with_epsilon(result, epsilon)
            report = state.finish(result, audited=_audited(training))
            outcome = outcome_of(result, state.folder, report)
    agreed = processes.agreed(outcome)
    processes.settle()
    if agreed is None:
        raise RuntimeError("the first process did not measure the model")
    return agreed


def _audited(training: WatchedTraining) -> dict[str, str]:
    """What was audited, in words: model, data and steps."""
    made = {} if training.model is None else {"Model": model_in_words(training.model)}
    data = data_in_words(training.planted)
    return made | ({"Data": data} if data else {}) | {"Steps": str(training.last_step)}


@dataclass(frozen=True, slots=True)
class FinalMeasure:
    """How canaries are measured in a trained model.

    Attributes:
        canary_set: Canaries and controls.
        tokenizer: That the training data was made with.
        context: Tokens before a canary in its training row.
        first: The first token of every canary where ``context`` holds it already, else None.
        start: Tokens of a row that come before its secret.
        vocabulary: How many tokens the model knows.
        forward: Returns logits, for models of an unusual kind.
        method, references, max_nodes, max_seconds: See ``measure_exposure``.
    """

    canary_set: CanarySet
    tokenizer: Any
    context: tuple[int, ...]
    first: int | None
    start: int
    vocabulary: int
    forward: Callable[[nn.Module, Tensor], Any] | None
    method: Literal["auto", "exact", "sampled"]
    references: int
    max_nodes: int
    max_seconds: float | None

    def of(self, model: nn.Module) -> tuple[ExposureAudit | None, ExposureAudit | None]:
        """Measure the trained model, and the model without its adapter where it has one.

        Returns:
            Both; None in all processes but the first, and where there is no adapter.
        """
        processes = Processes.now()
        if self.forward is not None or is_sharded(model) or not _is_of_transformers(model):
            return self._by_forward(model, processes), None
        trained, without_adapter = None, None
        with processes.together():
            if processes.first:
                trained = self._by_walk(plain_model(model))
                base = base_model(model)
                without_adapter = None if base is None else self._by_walk(base)
        return trained, without_adapter

    @property
    def secrets(self) -> list[str]:
        """The secrets of canaries and then of controls."""
        return [canary.secret for canary in (*self.canary_set.canaries, *self.canary_set.controls)]

    def _by_walk(self, model: nn.Module) -> ExposureAudit:
        """Rank canaries exactly where that can be afforded, else among references."""
        return measure_exposure(
            ModelInContext(model, self.tokenizer, context=self.context, first=self.first),
            self.canary_set.template,
            secrets=self.secrets,
            rng=self._rng(),
            method=self.method,
            references=self.references,
            max_nodes=self.max_nodes,
            max_seconds=self.max_seconds,
            fit=False,
        )

    def _by_forward(self, model: nn.Module, processes: Processes) -> ExposureAudit | None:
        """Rank canaries among references that go through the model's own forward."""
        template, secrets = self.canary_set.template, self.secrets
        room = min(self.references, template.space - len(secrets))
        drawn = template.sample(room, rng=self._rng(), exclude=secrets)
        texts = [template.text(secret) for secret in secrets] + [canary.text for canary in drawn]
        costs = score_rows(
            model,
            [self._row(text) for text in texts],
            vocabulary=self.vocabulary,
            processes=processes,
            forward=self.forward,
        )[:, None]
        if not processes.first:
            return None
        many = len(secrets)
        read = ReadCosts(
            automaton=None,  # type: ignore[arg-type]  # only a walk needs it
            secrets=costs[:many],
            references=costs[many:],
            nodes=len(texts),
        )
        return measure_costs(
            None,  # type: ignore[arg-type]  # all costs are known
            template,
            read,
            secrets=secrets,
            method="sampled",
            fit=False,
        )

    def _row(self, text: str) -> ScoredRow:
        ids: Sequence[int] = encode_text(self.tokenizer, text)
        return ScoredRow((*self.context, *ids[self.first is not None :]), self.start)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.canary_set.seed, _DRAWN])


def _is_of_transformers(model: nn.Module) -> bool:
    config = getattr(unwrapped(model), "config", None)
    return hasattr(config, "get_text_config")
