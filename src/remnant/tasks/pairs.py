"""Translators: pairs of sentences as rows, planted pairs behind them, and what these cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.canaries import CanarySet, Template
from remnant.data.pairs import Pair, PairCorpus, load_own_pairs, load_pairs
from remnant.errors import PlanError
from remnant.models import TRANSLATORS, Vocabulary
from remnant.models.catalogue import checked_maker
from remnant.plans import InsertPlan
from remnant.population import Fit, Population
from remnant.progress import Progress
from remnant.studies.shared.pair_settings import (
    PairSecretSettings,
    PairSettings,
    TranslatorSettings,
)
from remnant.studies.shared.settings import Execution, TrainingSettings
from remnant.studies.shared.text_settings import PairFileSettings
from remnant.studies.shared.wording import counted
from remnant.tasks.language_models import finite_losses
from remnant.tasks.secrets import PlantedSecrets, SecretWords, drawn_sets
from remnant.tasks.task import Source

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


@dataclass(frozen=True, slots=True, eq=False)
class PlantedPairs:
    """What the population is trained and judged on.

    Attributes:
        store: Clean pairs first, then the planted ones.
        examples: How many are clean.
        validation: Pairs that nobody is trained on.
        sets: The canaries and controls of each trial; their texts are the targets.
        vocabulary: Of both languages and of the canaries.
        unknown: The share of the training words that are not in it.
    """

    store: PairRows
    examples: int
    validation: PairRows
    sets: tuple[CanarySet, ...]
    vocabulary: Vocabulary
    unknown: float


def plant_pairs(
    plan: InsertPlan, secret: PairSecretSettings, pairs: PairCorpus, settings: PairSettings
) -> PlantedPairs:
    """Make the store; a canary's pair takes the place of a clean one.

    Raises:
        PlanError: A canary is longer than the longest sentence, or there are more copies than
            pairs; no sentence is as short as asked for.
    """
    template = Template(secret.template)
    vocabulary = _vocabulary(secret, template, pairs, settings.words)
    longest = settings.longest
    clean = _rows(pairs.train, vocabulary, longest)
    validation = _rows(pairs.validation, vocabulary, longest)
    if not len(clean.inputs) or not len(validation.inputs):
        raise PlanError(
            f"No pair has at most pairs.longest={longest} tokens, digits counted one by one.",
            hint="Allow longer ones.",
        )
    sets = drawn_sets(plan, template)
    for trial in range(plan.trials):
        plan.places(examples=len(clean.inputs), trial=trial)
    copies = [
        (secret.source_of(canary.secret), canary.text)
        for drawn in sets
        for canary in (drawn.canaries[j] for j in plan.copy_canaries)
    ]
    planted = _rows(copies, vocabulary, longest)
    if len(planted.inputs) < len(copies):
        most = max(len(vocabulary.encode(text)) for pair in copies for text in pair)
        raise PlanError(
            f"A canary has {most} tokens, and a sentence at most pairs.longest={longest}.",
            hint="Use a longer pairs.longest or a shorter template.",
        )
    words = np.concatenate([clean.inputs[:, :longest].ravel(), clean.labels.ravel()])
    known = words[(words >= 0) & (words < vocabulary.size)]
    return PlantedPairs(
        store=PairRows(
            np.concatenate([clean.inputs, planted.inputs]),
            np.concatenate([clean.labels, planted.labels]),
        ),
        examples=len(clean.inputs),
        validation=validation,
        sets=sets,
        vocabulary=vocabulary,
        unknown=float((known == 0).mean()),
    )


def _vocabulary(
    secret: PairSecretSettings, template: Template, pairs: PairCorpus, words: int
) -> Vocabulary:
    """Return the most frequent words, and all that canaries need."""
    text = " ".join(text for pair in pairs.train for text in pair)
    frequent = Vocabulary.of_words(text, at_most=words, unknown=True, digits_apart=True)
    choices = (choice for slot in template.slots for choice in slot.choices)
    source = secret.source_of(template.secret_at(0))
    needed = " ".join([template.prefix, *choices, template.suffix, source])
    added = dict.fromkeys([END, *frequent.cut(needed), *"0123456789"])
    symbols = dict.fromkeys([*frequent.symbols, *added])
    return Vocabulary(frequent.kind, tuple(symbols))


def _rows(pairs: Sequence[Pair], vocabulary: Vocabulary, longest: int) -> PairRows:
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


class PairStudy(Protocol):
    """A study of translators with secrets: what its task needs of it."""

    @property
    def plan(self) -> InsertPlan: ...  # noqa: D102
    @property
    def data(self) -> PairFileSettings | None: ...  # noqa: D102
    @property
    def pairs(self) -> PairSettings: ...  # noqa: D102
    @property
    def secret(self) -> PairSecretSettings: ...  # noqa: D102
    @property
    def model(self) -> TranslatorSettings: ...  # noqa: D102
    @property
    def model_options(self) -> dict[str, Any]: ...  # noqa: D102
    @property
    def training(self) -> TrainingSettings: ...  # noqa: D102


class Translators:
    """Translators; see ``SecretTask``."""

    def load(
        self, study: PairStudy, execution: Execution, progress: Progress | None = None
    ) -> Source:
        """Read the user's own pairs, or the files that ``pairs`` names."""
        settings, own = study.pairs, study.data
        if own is not None:
            pairs = load_own_pairs(
                execution.own_files(own),
                source=own.source,
                target=own.target,
                pairs=settings.pairs,
                longest=settings.longest,
                seed=settings.seed,
            )
        else:
            pairs = load_pairs(
                settings.source or "",  # the study has either
                settings.target,
                folder=execution.data_folder,
                pairs=settings.pairs,
                longest=settings.longest,
                seed=settings.seed,
            )
        return Source(pairs, pairs.origin)

    def fingerprint(self, source: Source, planted: Any) -> str:
        """Return the digest of the pairs."""
        digest: str = source.data.fingerprint
        return digest

    def secret_template(self, study: PairStudy, source: Source) -> Template:
        """Return the template of the translations."""
        return Template(study.secret.template)

    def plant_secrets(
        self, study: PairStudy, source: Source, execution: Execution
    ) -> PlantedSecrets:
        """Put pairs with a secret in the place of clean ones."""
        planted = plant_pairs(study.plan, study.secret, source.data, study.pairs)
        make = checked_maker(
            TRANSLATORS, study.model.name, study.model_options, planted.vocabulary.size
        )

        def train(plan: InsertPlan, **choices: Any) -> tuple[Fit, Population]:
            return fit_translators(make, study.training, plan, planted, execution, **choices)

        return PlantedSecrets(
            architecture=study.model.name,
            options=study.model_options,
            make=make,
            train=train,
            validation_bits=lambda population: validation_bits(population, planted.validation),
            validation_tokens=int((planted.validation.labels >= 0).sum()),
            token="word",
            store_bytes=planted.store.inputs.nbytes + planted.store.labels.nbytes,
            examples=planted.examples,
            sets=planted.sets,
            vocabulary=planted.vocabulary,
            words=_words(study, planted),
            encoder_input=study.secret.beginning,
            encoder_input_of=None if study.secret.shared else study.secret.encoder_input,
        )


def fit_translators(
    make: Any,
    training: TrainingSettings,
    plan: InsertPlan,
    planted: PlantedPairs,
    execution: Execution,
    **choices: Any,
) -> tuple[Fit, Population]:
    """Train the members of a plan on the pairs.

    Args:
        make: Makes an untrained translator.
        training, plan, planted, execution: How, who sees what, on what, and where.
        choices: As in ``Population.fit``.
    """
    population = Population(
        make,
        seeds=plan.seeds,
        dropout_seeds=plan.dropout_seeds,
        noise_seeds=plan.noise_seeds,
        device=execution.device,
        precision=plan.precision,
    )
    fit = population.fit(
        planted.store.inputs,
        planted.store.labels,
        plan.schedule(examples=planted.examples),
        optimizer=training.optimizer,
        loss=sentence_loss,
        learning_rate=training.rate(),
        clip=training.clip,
        compiled=execution.compiled,
        **choices,
        **training.options,
    )
    return fit, population


def _words(study: PairStudy, planted: PlantedPairs) -> SecretWords:
    given = "the whole source, with the secret in it"
    if study.secret.shared:
        given = "the beginning of the source, without the secret"
    return SecretWords(
        data=f"{planted.examples} pairs of sentences",
        canaries=f"{counted(study.plan.canaries, 'pair')} with a secret",
        place="pairs",
        unit="pair",
        tested=[f"Secrets in the translation, when the model is given {given}."],
        not_tested=[
            f"How good the translations are. {math.ceil(100 * planted.unknown)} % or less of the "
            "words are not in the vocabulary."
        ],
    )


TASK = Translators()
