"""What the studies of translators share: their pairs, their models, training and costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.data.pairs import Pair, PairCorpus, load_own_pairs, load_pairs
from remnant.models import TRANSLATORS, Vocabulary
from remnant.models.catalogue import checked_maker
from remnant.models.encoder_decoder import EncoderDecoder
from remnant.models.protocols import LogitModels
from remnant.plans import InjectPlan, InsertPlan, PoisonPlan, ShadowPlan, StaggeredPlan
from remnant.population import Fit, Population
from remnant.studies.shared.pair_settings import TranslatorStudy
from remnant.studies.shared.settings import Execution
from remnant.tasks.language_models import finite_losses

Ids = NDArray[np.int64]
END = "</s>"
UNLABELLED = -1
_TOGETHER = 64


@dataclass(frozen=True, slots=True, eq=False)
class PairRows:
    """Pairs as a translator reads them.

    Attributes:
        inputs: The source, filled up; then ``begin`` and the target, filled up,
            ``(rows, longest + longest + 1)``.
        labels: The target and its end, ``(rows, longest + 1)``; -1 beyond it.
    """

    inputs: Ids
    labels: Ids

    def take(self, rows: Ids) -> PairRows:
        """Return some of the pairs."""
        return PairRows(self.inputs[rows], self.labels[rows])

    def followed_by(self, other: PairRows) -> PairRows:
        """Return these pairs and then others."""
        return PairRows(
            np.concatenate([self.inputs, other.inputs]),
            np.concatenate([self.labels, other.labels]),
        )


class PairStore(Protocol):
    """Pairs that translators are trained on, clean ones first."""

    @property
    def store(self) -> PairRows:
        """All pairs."""
        ...

    @property
    def examples(self) -> int:
        """How many of them are clean."""
        ...

    @property
    def vocabulary(self) -> Vocabulary:
        """Of both languages and of the canaries."""
        ...


def load_pairs_of(study: TranslatorStudy, execution: Execution) -> PairCorpus:
    """Return a study's pairs: the user's own, or those that ``pairs`` names."""
    settings, own = study.pairs, study.data
    if own is not None:
        return load_own_pairs(
            execution.own_files(own),
            source=own.source,
            target=own.target,
            pairs=settings.pairs,
            longest=settings.longest,
            seed=settings.seed,
        )
    return load_pairs(
        settings.source or "",  # the study has either
        settings.target,
        folder=execution.data_folder,
        pairs=settings.pairs,
        longest=settings.longest,
        seed=settings.seed,
    )


def pair_rows(pairs: Sequence[Pair], vocabulary: Vocabulary, longest: int) -> PairRows:
    """Encode the pairs that are not too long."""
    (end,) = vocabulary.encode(END)
    begin, pad = vocabulary.size, vocabulary.size + 1
    encoded = [tuple(vocabulary.encode(text) for text in pair) for pair in pairs]
    kept = [pair for pair in encoded if max(map(len, pair)) <= longest]
    inputs = np.full((len(kept), 2 * longest + 1), pad, dtype=np.int64)
    labels = np.full((len(kept), longest + 1), UNLABELLED, dtype=np.int64)
    inputs[:, longest] = begin
    for row, (source, target) in enumerate(kept):
        inputs[row, : len(source)] = source
        inputs[row, longest + 1 : longest + 1 + len(target)] = target
        labels[row, : len(target) + 1] = [*target, end]
    return PairRows(inputs, labels)


def translator_maker(study: TranslatorStudy, planted: PairStore) -> Callable[[], EncoderDecoder]:
    """Return a function that makes the study's model for this vocabulary."""
    return checked_maker(
        TRANSLATORS, study.model.name, study.model_options, planted.vocabulary.size
    )


def fit_translators(
    study: TranslatorStudy,
    plan: InsertPlan | InjectPlan | PoisonPlan | ShadowPlan | StaggeredPlan,
    planted: PairStore,
    execution: Execution,
    **choices: Any,
) -> tuple[Fit, Population]:
    """Train the members of a plan on the study's pairs, in the study's way."""
    population = Population(
        translator_maker(study, planted),
        seeds=plan.seeds,
        dropout_seeds=None if isinstance(plan, ShadowPlan) else plan.dropout_seeds,
        noise_seeds=plan.noise_seeds,
        device=execution.device,
        precision=plan.precision,
    )
    fit = population.fit(
        planted.store.inputs,
        planted.store.labels,
        plan.schedule(examples=planted.examples),
        optimizer=study.training.optimizer,
        loss=sentence_loss,
        learning_rate=study.training.rate(),
        clip=study.training.clip,
        compiled=execution.compiled,
        **choices,
        **study.training.options,
    )
    return fit, population


def token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return what each label costs, in nats; 0 where there is none. Any axes before them."""
    there = labels >= 0
    costs = -logits.log_softmax(-1).gather(-1, (labels * there)[..., None])[..., 0]
    return costs * there


def sentence_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return each example's cost as a share of the longest sentence: every token weighs the same.

    Args:
        logits: ``(batch, time, vocabulary)``.
        labels: ``(batch, time)``, -1 beyond a sentence's end.
    """
    return token_losses(logits, labels).sum(-1) / labels.shape[-1]


def target_signals(models: LogitModels, rows: PairRows) -> Tensor:
    """Return what each target costs given its source, and how much of it was guessed right.

    The cost is the sum of -log2 p over the target's tokens and its end. Right is the share of them
    that had the highest logit.

    Returns:
        float64 ``(members, 2, pairs)``: bits and right, in this order (``WINDOW_SIGNALS``).
    """
    made = []
    inputs, labels = torch.from_numpy(rows.inputs), torch.from_numpy(rows.labels)
    for some, theirs in zip(inputs.split(_TOGETHER), labels.split(_TOGETHER), strict=True):
        logits = torch.as_tensor(models.logits(some)).double()
        wanted = theirs.to(logits.device).expand(len(logits), -1, -1)
        bits = token_losses(logits, wanted).sum(-1) / math.log(2.0)
        there = wanted >= 0
        right = ((logits.argmax(-1) == wanted) & there).sum(-1).double() / there.sum(-1)
        made.append(torch.stack([bits, right], dim=1))
    return torch.cat(made, dim=-1)


def validation_bits(population: Population, rows: PairRows) -> NDArray[np.float64]:
    """Return each member's mean cost of a target's token given its source, in bits.

    Raises:
        InvalidInput: One of them is not finite.
    """
    total = torch.zeros(len(population), dtype=torch.float64)
    inputs, labels = torch.from_numpy(rows.inputs), torch.from_numpy(rows.labels)
    for some, theirs in zip(inputs.split(_TOGETHER), labels.split(_TOGETHER), strict=True):
        logits = population.logits(some).double()
        wanted = theirs.to(logits.device).expand(len(population), -1, -1)
        total += token_losses(logits, wanted).sum((1, 2)).cpu()
    bits = total / (int((labels >= 0).sum()) * math.log(2))
    return finite_losses(bits.numpy())
