"""Language models: windows of clean text, planted sequences behind them, and what these cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.canaries import Template, commonest_tokens, random_token_sequences
from remnant.data import Corpus, corpus_fingerprint, windows
from remnant.errors import PlanError
from remnant.models import Vocabulary
from remnant.models.protocols import LogitModels
from remnant.plans import InjectPlan, InsertPlan, PoisonPlan, StaggeredPlan
from remnant.plans.schedule import generator
from remnant.population import Fit, Population
from remnant.population.optimizers import make_optimizer
from remnant.probes import window_signals
from remnant.studies.shared.settings import Execution
from remnant.studies.shared.text_settings import (
    SequenceSettings,
    TextCanarySettings,
    TextFileSettings,
    TextSettings,
)
from remnant.studies.shared.wording import counted, times
from remnant.tasks.language_models import (
    LanguageModelStudy,
    fit_language_models,
    language_model_maker,
    load_text,
)
from remnant.tasks.planted_text import mean_token_bits, plant_text
from remnant.tasks.secrets import PlantedSecrets, SecretWords
from remnant.tasks.sequences import SequenceTask, drawn_of
from remnant.tasks.task import Floats, Lesson, Progress, ScopeWords, Source

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PlantedTokens:
    """What the population is trained on and asked about.

    Attributes:
        store: Windows of tokens, clean ones first, then canaries, ``(rows, window + 1)``.
        examples: How many of them are clean.
        validation: Windows that nobody is trained on.
        probed: The canaries of each trial, then its references, ``(trials, n, window + 1)``.
        tokens: How many at the end of a window are the canary.
        vocabulary: Of the text.
        neighbours: Of each trial, drawn like its references, neither planted nor probed, ``(trials,
            n, window + 1)``; none unless they were asked for.
    """

    store: Ids
    examples: int
    validation: Ids
    probed: Ids
    tokens: int
    vocabulary: Vocabulary
    neighbours: Ids


def plant_tokens(
    plan: InjectPlan | PoisonPlan | StaggeredPlan,
    settings: SequenceSettings | TextCanarySettings,
    text: TextSettings,
    corpus: Corpus,
    *,
    neighbours: int = 0,
) -> PlantedTokens:
    """Cut the text into windows and draw canaries and references alike, from the plan's seed.

    Passages of held-out text are taken from the validation windows, which lose them. A random
    canary of N tokens stands at the end of its window, after clean text from the beginning of a
    window drawn at random; that is one token where N is the window. References have a beginning of
    their own each, and each trial has its own references.

    Args:
        plan, settings, text, corpus: The study's own.
        neighbours: Of each trial: further sequences that are drawn the same way, neither planted
            nor probed. They leave canaries and references as they are without them.

    Raises:
        PlanError: The canary is longer than a window, or there are too few sequences.
        InvalidInput: The text is shorter than a window.
    """
    if text.level == "character":
        vocabulary = Vocabulary.of_characters(corpus.train + corpus.validation)
    else:
        vocabulary = Vocabulary.of_words(f"{corpus.train} {corpus.validation}")
    ids = vocabulary.encode_array(corpus.train)
    clean = windows(ids, length=text.window)
    validation = windows(vocabulary.encode_array(corpus.validation), length=text.window)
    tokens = text.window if settings.tokens is None else settings.tokens
    if tokens > text.window:
        raise PlanError(
            f"canaries.tokens={tokens} do not fit a window, of which {text.window} are learnt.",
            hint="Use a longer text.window or a shorter canary.",
        )
    key, sets, trials, references = drawn_of(plan, settings)
    count = sets * plan.canaries + trials * references
    extra = trials * neighbours
    if settings.kind == "text":
        made, validation = _passages(validation, count + extra, generator(*key))
        made, near = made[:count], made[count:]
    else:
        choices = commonest_tokens(
            ids, vocabulary_size=vocabulary.size, at_most=settings.commonest or vocabulary.size
        )
        made, near = _random_sequences(clean, choices, tokens, count, extra, key)
    canaries = made[: sets * plan.canaries].reshape(sets, plan.canaries, -1)
    others = made[sets * plan.canaries :].reshape(trials, references, text.window + 1)
    return PlantedTokens(
        store=np.concatenate([clean, *canaries]),
        examples=len(clean),
        validation=validation,
        probed=np.concatenate(
            [np.broadcast_to(canaries, (trials, *canaries.shape[1:])), others], axis=1
        ),
        tokens=tokens,
        vocabulary=vocabulary,
        neighbours=near.reshape(trials, neighbours, text.window + 1),
    )


class SequencePlanting(LanguageModelStudy, Protocol):
    """A study that plants sequences into the training of language models."""

    @property
    def plan(self) -> Any:
        """Who sees what, and when."""
        ...


class TextStudy(SequencePlanting, Protocol):
    """A study that plants sequences into a text: what training and scope need of it."""

    @property
    def data(self) -> TextFileSettings | None:
        """The user's own text, in place of ``text.name``."""
        ...

    @property
    def text(self) -> TextSettings:
        """Which text."""
        ...

    @property
    def canaries(self) -> SequenceSettings | TextCanarySettings:
        """Which sequences are planted."""
        ...

    @property
    def attack(self) -> Any:
        """Of one run, whether scores from before a window are subtracted, in ``calibrate``."""
        ...

    @property
    def neighbours(self) -> int:
        """Sequences of each trial to relearn from; none where no memory is searched for."""
        ...


class TextWithSecrets(LanguageModelStudy, Protocol):
    """A study of secrets in the text of language models."""

    @property
    def plan(self) -> InsertPlan:
        """Who sees what, and when."""
        ...

    @property
    def text(self) -> TextSettings:
        """Which text."""
        ...

    @property
    def secret(self) -> Any:
        """Which secrets are planted."""
        ...


def check_language_models(
    study: SequencePlanting, planted: PlantedTokens, execution: Execution
) -> None:
    """Refuse what cannot be planted or trained before anything is written."""
    make_optimizer(study.training.optimizer, members=1, options=study.training.options)
    alone = Population(language_model_maker(study, planted), seeds=[0], device=execution.device)
    alone.logits(planted.store[:1, :-1])
    study.plan.schedule(examples=planted.examples)  # refuses canaries that do not fit


def sequence_signals(models: LogitModels, planted: PlantedTokens, sequences: Ids) -> Tensor:
    """Return what some sequences cost each member; see ``window_signals``."""
    return window_signals(
        models, sequences, tokens=planted.tokens, vocabulary_size=planted.vocabulary.size
    )


def validation_bits(planted: PlantedTokens, models: LogitModels) -> NDArray[np.float64]:
    """Return what a validation token costs each member, in bits."""
    window = planted.validation.shape[1] - 1
    signals = window_signals(
        models, planted.validation, tokens=window, vocabulary_size=planted.vocabulary.size
    )
    bits: NDArray[np.float64] = signals[:, 0].mean(1).cpu().numpy() / window
    return bits


def _passages(held_out: Ids, count: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """Draw windows of held-out text; return them and those that are left."""
    if count >= len(held_out):
        raise PlanError(
            f"The plan needs {count} passages, and the held-out text has {len(held_out)} windows.",
            hint="Use more text.characters, or fewer canaries, references and neighbours.",
        )
    order = rng.permutation(len(held_out))
    return held_out[order[:count]], held_out[np.sort(order[count:])]


def _random_sequences(
    clean: Ids, choices: Ids, tokens: int, count: int, extra: int, key: tuple[int, ...]
) -> tuple[Ids, Ids]:
    """Draw windows that begin with clean text and end with random tokens, none of them alike.

    Returns:
        The first ``count`` windows, and ``extra`` ones. The first do not depend on ``extra``.
    """
    if count + extra > len(choices) ** tokens:
        raise PlanError(
            f"The plan needs {count + extra} sequences of {tokens} tokens, and there are "
            f"{len(choices) ** tokens}.",
            hint="Raise canaries.tokens or canaries.commonest.",
        )

    def behind_text(drawn: Ids, rng: np.random.Generator) -> Ids:
        before = clean[rng.integers(len(clean), size=len(drawn)), : clean.shape[1] - tokens]
        return np.concatenate([before, drawn], axis=1)

    rng = generator(*key)
    drawn = random_token_sequences(count=count, tokens=tokens, choices=choices, rng=rng)
    # A longer draw from an equal generator begins with the shorter one.
    longer = random_token_sequences(
        count=count + extra, tokens=tokens, choices=choices, rng=generator(*key)
    )
    return behind_text(drawn, rng), behind_text(longer[count:], generator(*key, 1))


class LanguageModels(SequenceTask[TextStudy, PlantedTokens]):
    """Language models: minus what a sequence costs in bits is the score; see ``Task``."""

    USEFUL = "validation_bits"

    def load(
        self,
        study: TextStudy,
        execution: Execution,
        progress: Progress | None = None,
        *,
        imagined: bool = False,
    ) -> Source:
        """Read the text."""
        corpus = load_text(study.text, study.data, execution)
        return Source(corpus, corpus.origin)

    def plant(
        self,
        study: TextStudy,
        source: Source,
        execution: Execution,
        *,
        pool_losses: Floats | None = None,
    ) -> PlantedTokens:
        """Cut the text into windows and put the sequences behind them."""
        planted = plant_tokens(
            study.plan, study.canaries, study.text, source.data, neighbours=study.neighbours
        )
        check_language_models(study, planted, execution)
        return planted

    def fingerprint(self, source: Source, planted: PlantedTokens) -> str:
        """Return the digest of the text."""
        return corpus_fingerprint(source.data)

    def seeds(self, study: TextStudy) -> dict[str, int]:
        """Return the seeds of plan and text."""
        return {"plan": study.plan.seed, "text": study.text.seed}

    def judge(self, planted: PlantedTokens, models: Population) -> Floats:
        """Return what a validation token costs each member, in bits."""
        return validation_bits(planted, models)

    def useful(
        self, study: TextStudy, source: Source, planted: PlantedTokens, judged: Floats
    ) -> dict[str, Any]:
        """Return bits a validation token beside those of a uniform guess."""
        return {
            "validation_bits": float(judged.mean()),
            "validation_tokens": int(planted.validation[:, 1:].size),
            "token": study.text.level,
            "uniform_bits": math.log2(planted.vocabulary.size),
        }

    def scope(self, study: TextStudy) -> ScopeWords:
        """Return which sequences were planted, and which were not."""
        own, text = study.canaries, study.text
        tokens = text.window if own.tokens is None else own.tokens
        what = "random" if own.kind == "random" else "held-out"
        often = " or ".join(times(uses) for uses in study.plan.repeats)
        before = ", less its cost before the window" if study.attack.calibrate else ""
        others = {
            "random": "text that a model can predict: random tokens are learnt as such, by heart",
            "text": "text that no model can predict, such as passwords and numbers",
        }
        return ScopeWords(
            model=study.model.name,
            data=study.data.path if study.data else text.name,
            planted=f"canaries (sequences of {tokens} {what} {text.level}s) planted {often}",
            scored=(f"a sequence's cost given the text before it{before}",),
            untested=(
                others[own.kind],
                "extraction: a score among controls does not say that a canary can be extracted",
            ),
            others="other models and other text",
        )

    def held(self, planted: PlantedTokens) -> int:
        """Return the bytes of all windows."""
        return planted.store.nbytes + planted.probed.nbytes + planted.neighbours.nbytes

    def maker(self, study: TextStudy, planted: PlantedTokens) -> Callable[[], nn.Module]:
        """Return what makes a language model of the text's vocabulary."""
        make: Callable[[], nn.Module] = language_model_maker(study, planted)
        return make

    def fit(
        self,
        study: TextStudy,
        plan: Any,
        planted: PlantedTokens,
        execution: Execution,
        **choices: Any,
    ) -> tuple[Fit, Population]:
        """Train language models on the windows."""
        return fit_language_models(study, plan, planted, execution, **choices)

    def signals(self, planted: PlantedTokens, models: LogitModels, trial: int) -> Tensor:
        """Return ``WINDOW_SIGNALS`` of a trial's sequences."""
        return sequence_signals(models, planted, planted.probed[trial])

    def all_costs(self, planted: PlantedTokens, models: LogitModels) -> Tensor:
        """Return what the sequences of all trials cost, read at once."""
        every = planted.probed.reshape(-1, planted.probed.shape[2])
        signals = sequence_signals(models, planted, every)
        return signals[:, 0].reshape(len(signals), *planted.probed.shape[:2])

    def numbers(self, planted: PlantedTokens, models: Population) -> Floats:
        """Return what a validation token costs each member, in bits."""
        return validation_bits(planted, models)[:, None]

    def fields(self, numbers: Floats, task: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the task with these bits a validation token."""
        return {**task, "validation_bits": float(numbers.mean())}

    def lesson(self, study: TextStudy, planted: PlantedTokens) -> Lesson | None:
        """Return the neighbours' windows."""
        if not study.neighbours:
            return None
        near = planted.neighbours.reshape(-1, planted.store.shape[1])
        return Lesson(inputs=near[:, :-1], targets=near[:, 1:], each=study.neighbours)

    def secret_template(self, study: TextWithSecrets, source: Source) -> Template:
        """Return the template of the secrets; words in it are those of the text."""
        template: Template = study.secret.filled(source.data.train)
        return template

    def plant_secrets(
        self, study: TextWithSecrets, source: Source, execution: Execution
    ) -> PlantedSecrets:
        """Cut the text into windows and put secrets into some of them."""
        text, window = study.text, study.text.window
        template = self.secret_template(study, source)
        planted = plant_text(study.plan, template, source.data, level=text.level, window=window)
        return PlantedSecrets(
            architecture=study.model.name,
            options=study.model.options,
            make=language_model_maker(study, planted),
            train=lambda plan, **choices: fit_language_models(
                study, plan, planted, execution, **choices
            ),
            validation_bits=lambda population: mean_token_bits(population, planted.validation),
            validation_tokens=planted.validation[:, 1:].size,
            token=text.level,
            store_bytes=planted.store.nbytes,
            examples=planted.examples,
            sets=planted.sets,
            vocabulary=planted.vocabulary,
            words=SecretWords(
                data=f"{planted.examples} windows of {window} {text.level}s",
                canaries=counted(study.plan.canaries, "canary", "canaries"),
                place="text",
                unit="window",
            ),
        )


TASK = LanguageModels()
