"""What the studies of language models share: their text, their models and their training."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from remnant.data import Corpus, load_corpus
from remnant.data.corpus import load_own_text
from remnant.errors import InvalidInput
from remnant.models import Vocabulary, sequence_model_maker
from remnant.plans import InjectPlan, InsertPlan, PoisonPlan, ShadowPlan, StaggeredPlan
from remnant.population import Fit, Population
from remnant.studies.shared.settings import Execution, TrainingSettings
from remnant.studies.shared.text_settings import (
    LanguageModelSettings,
    TextFileSettings,
    TextSettings,
)


def finite_losses(losses: NDArray[np.float64], *, where: str = "") -> NDArray[np.float64]:
    """Return models' losses.

    Raises:
        InvalidInput: Training diverged.
    """
    if not np.isfinite(losses).all():
        raise InvalidInput(
            f"Training diverged: a model's loss is not finite{where}.",
            hint="Lower training.options.lr, or clip the gradient.",
        )
    return losses


class LanguageModelStudy(Protocol):
    """A study that trains language models: what all of them have."""

    @property
    def model(self) -> LanguageModelSettings:
        """Which model."""
        ...

    @property
    def training(self) -> TrainingSettings:
        """How it is trained."""
        ...


class TextStore(Protocol):
    """Windows of tokens, clean ones first."""

    @property
    def store(self) -> NDArray[np.int64]:
        """Shape ``(rows, window + 1)``."""
        ...

    @property
    def examples(self) -> int:
        """How many of them are clean."""
        ...

    @property
    def vocabulary(self) -> Vocabulary:
        """Of text and canaries."""
        ...


def load_text(text: TextSettings, data: TextFileSettings | None, execution: Execution) -> Corpus:
    """Return a study's text: the user's own, or the one that ``text`` names."""
    if data is not None:
        return load_own_text(
            execution.own_files(data),
            field=data.text,
            characters=text.characters,
            deduplicate=text.deduplicate,
        )
    return load_corpus(
        text.name,
        folder=execution.data_folder,
        characters=text.characters,
        seed=text.seed,
        deduplicate=text.deduplicate,
    )


def language_model_maker(study: LanguageModelStudy, planted: TextStore) -> Any:
    """Return a function that makes the study's model for this vocabulary."""
    return sequence_model_maker(
        study.model.name, vocabulary_size=planted.vocabulary.size, **study.model.options
    )


def fit_language_models(
    study: LanguageModelStudy,
    plan: InsertPlan | InjectPlan | PoisonPlan | ShadowPlan | StaggeredPlan,
    planted: TextStore,
    execution: Execution,
    **choices: Any,
) -> tuple[Fit, Population]:
    """Train the members of a plan on the study's text, in the study's way."""
    population = Population(
        language_model_maker(study, planted),
        seeds=plan.seeds,
        dropout_seeds=None if isinstance(plan, ShadowPlan) else plan.dropout_seeds,
        noise_seeds=plan.noise_seeds,
        device=execution.device,
        precision=plan.precision,
    )
    fit = population.fit(
        planted.store[:, :-1],
        planted.store[:, 1:],
        plan.schedule(examples=planted.examples),
        optimizer=study.training.optimizer,
        learning_rate=study.training.rate(),
        clip=study.training.clip,
        compiled=execution.compiled,
        **choices,
        **study.training.options,
    )
    return fit, population
