"""Measures the exposure of canaries in the model that a training ended with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from torch import Tensor, nn

from remnant.canaries import CanarySet
from remnant.integrations.training.preflight import encode_text
from remnant.integrations.training.processes import Processes
from remnant.integrations.training.scoring import ScoredRow, score_rows
from remnant.integrations.training.trained_model import (
    ModelInContext,
    base_model,
    is_sharded,
    plain_model,
    unwrapped,
)
from remnant.studies.exposure.audit import (
    ExposureAudit,
    ReadCosts,
    measure_costs,
    measure_exposure,
)

_DRAWN = 3  # the stream of random numbers that draws references


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
