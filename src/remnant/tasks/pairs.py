"""Translators: pairs of sentences, planted pairs behind them, and what the targets cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from remnant.canaries import Template, commonest_tokens, random_token_sequences
from remnant.data.pairs import Pair, PairCorpus
from remnant.errors import PlanError
from remnant.models import Vocabulary
from remnant.models.protocols import LogitModels
from remnant.plans import InsertPlan, StaggeredPlan
from remnant.plans.schedule import generator
from remnant.population import Fit, Population
from remnant.population.optimizers import make_optimizer
from remnant.studies.shared.pair_settings import (
    PairPlantingStudy,
    PairsWithSecretsStudy,
)
from remnant.studies.shared.settings import Execution
from remnant.studies.shared.wording import counted, times
from remnant.tasks.planted_pairs import PairsWithSecrets, plant_pairs
from remnant.tasks.secrets import PlantedSecrets, SecretWords
from remnant.tasks.sequences import SequenceTask, drawn_of
from remnant.tasks.task import Floats, Lesson, Progress, ScopeWords, Source
from remnant.tasks.translators import (
    END,
    PairRows,
    fit_translators,
    load_pairs_of,
    pair_rows,
    sentence_loss,
    target_signals,
    translator_maker,
    validation_bits,
)


@dataclass(frozen=True, slots=True, eq=False)
class PlantedPairs:
    """What translators are trained on and asked about.

    Attributes:
        store: Clean pairs, then the canaries of each set.
        examples: How many of them are clean.
        validation: Pairs that nobody is trained on.
        probed: Of each trial, its canaries, then its references.
        neighbours: Pairs to relearn from, trial by trial.
        vocabulary: Of both languages.
        tokens: Of a canary's target with its end, on average.
    """

    store: PairRows
    examples: int
    validation: PairRows
    probed: tuple[PairRows, ...]
    neighbours: PairRows
    vocabulary: Vocabulary
    tokens: float


def plant_drawn_pairs(study: PairPlantingStudy, pairs: PairCorpus) -> PlantedPairs:
    """Draw canaries, references and neighbours the same way, from the plan's seed.

    Held-out pairs are taken from the validation pairs, which lose them. Neighbours are drawn last:
    canaries and references are those without them.

    Raises:
        PlanError: The canaries are longer than the longest sentence, or there are too few pairs.
    """
    plan, own, longest = study.plan, study.canaries, study.pairs.longest
    text = " ".join(side for pair in pairs.train for side in pair)
    frequent = Vocabulary.of_words(text, at_most=study.pairs.words, unknown=True, digits_apart=True)
    vocabulary = Vocabulary(frequent.kind, tuple(dict.fromkeys([*frequent.symbols, END])))
    clean = pair_rows(pairs.train, vocabulary, longest)
    held_out = pair_rows(pairs.validation, vocabulary, longest)
    key, sets, trials, references = drawn_of(plan, own)
    canaries = sets * plan.canaries
    count = canaries + trials * references
    needed = count + trials * study.neighbours
    rng = generator(*key)
    if own.kind == "random":
        if own.tokens > longest:
            raise PlanError(
                f"canaries.tokens={own.tokens} are more than pairs.longest={longest}.",
                hint="Use a longer pairs.longest or a shorter canary.",
            )
        drawn = _random_pairs(vocabulary, frequent.encode(text), own, needed, longest, rng)
    else:
        if needed >= len(held_out.inputs):
            raise PlanError(
                f"The plan needs {needed} pairs, and {len(held_out.inputs)} are held out.",
                hint="Use more pairs.pairs, or fewer canaries, references and neighbours.",
            )
        order = rng.permutation(len(held_out.inputs))
        drawn = held_out.take(order[:needed])
        held_out = held_out.take(np.sort(order[needed:]))
    planted = drawn.take(np.arange(canaries))
    return PlantedPairs(
        store=clean.followed_by(planted),
        examples=len(clean.inputs),
        validation=held_out,
        probed=tuple(
            drawn.take(
                np.r_[
                    np.arange(plan.canaries) + trial % sets * plan.canaries,
                    np.arange(references) + canaries + trial * references,
                ]
            )
            for trial in range(trials)
        ),
        neighbours=drawn.take(np.arange(count, needed)),
        vocabulary=vocabulary,
        tokens=float((planted.labels >= 0).sum(axis=1).mean()),
    )


def _random_pairs(
    vocabulary: Vocabulary,
    ids: Any,
    settings: Any,
    count: int,
    longest: int,
    rng: np.random.Generator,
) -> PairRows:
    """Draw pairs whose sides are random words, so that no source says what its target is."""
    choices = commonest_tokens(ids, vocabulary_size=vocabulary.size)
    choices = choices[(choices != 0) & (choices != vocabulary.encode(END)[0])]
    choices = choices[: settings.commonest]
    if count > len(choices) ** settings.tokens:
        raise PlanError(
            f"The plan needs {count} sequences of {settings.tokens} tokens, and there are "
            f"{len(choices) ** settings.tokens}.",
            hint="Raise canaries.tokens or canaries.commonest.",
        )
    sides = [
        random_token_sequences(count=count, tokens=settings.tokens, choices=choices, rng=side)
        for side in rng.spawn(2)
    ]
    texts: list[Pair] = [
        (vocabulary.decode(source), vocabulary.decode(target))
        for source, target in zip(*(side.tolist() for side in sides), strict=True)
    ]
    return pair_rows(texts, vocabulary, longest)


class Translators(SequenceTask[PairPlantingStudy, PlantedPairs]):
    """Translators: minus what a target costs given its source is the score; see ``Task``."""

    USEFUL = "validation_bits"

    def load(
        self,
        study: PairPlantingStudy,
        execution: Execution,
        progress: Progress | None = None,
        *,
        imagined: bool = False,
    ) -> Source:
        """Read the pairs."""
        pairs = load_pairs_of(study, execution)
        return Source(pairs, pairs.origin)

    def plant(
        self,
        study: PairPlantingStudy,
        source: Source,
        execution: Execution,
        *,
        pool_losses: Floats | None = None,
    ) -> PlantedPairs:
        """Draw pairs and put them behind the clean ones."""
        planted = plant_drawn_pairs(study, source.data)
        make_optimizer(study.training.optimizer, members=1, options=study.training.options)
        alone = Population(translator_maker(study, planted), seeds=[0], device=execution.device)
        alone.logits(planted.store.inputs[:1])
        study.plan.schedule(examples=planted.examples)  # refuses canaries that do not fit
        return planted

    def fingerprint(self, source: Source, planted: PlantedPairs) -> str:
        """Return the digest of the pairs."""
        digest: str = source.data.fingerprint
        return digest

    def seeds(self, study: PairPlantingStudy) -> dict[str, int]:
        """Return the seeds of plan and pairs."""
        return {"plan": study.plan.seed, "pairs": study.pairs.seed}

    def maker(self, study: PairPlantingStudy, planted: PlantedPairs) -> Callable[[], nn.Module]:
        """Return what makes a translator of the vocabulary."""
        return translator_maker(study, planted)

    def fit(
        self,
        study: PairPlantingStudy,
        plan: Any,
        planted: PlantedPairs,
        execution: Execution,
        **choices: Any,
    ) -> tuple[Fit, Population]:
        """Train translators on the pairs."""
        return fit_translators(study, plan, planted, execution, **choices)

    def signals(self, planted: PlantedPairs, models: LogitModels, trial: int) -> Tensor:
        """Return ``target_signals`` of a trial's pairs."""
        return target_signals(models, planted.probed[trial])

    def judge(self, planted: PlantedPairs, models: Population) -> Floats:
        """Return what a token of a validation target costs each member, in bits."""
        return validation_bits(models, planted.validation)

    def useful(
        self, study: PairPlantingStudy, source: Source, planted: PlantedPairs, judged: Floats
    ) -> dict[str, Any]:
        """Return bits a validation token beside those of a uniform guess."""
        return {
            "validation_bits": float(judged.mean()),
            "validation_tokens": int((planted.validation.labels >= 0).sum()),
            "token": "word",
            "uniform_bits": math.log2(planted.vocabulary.size),
        }

    def numbers(self, planted: PlantedPairs, models: Population) -> Floats:
        """Return what a token of a validation target costs each member, in bits."""
        return validation_bits(models, planted.validation)[:, None]

    def fields(self, numbers: Floats, task: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the task with these bits a validation token."""
        return {**task, "validation_bits": float(numbers.mean())}

    def lesson(self, study: PairPlantingStudy, planted: PlantedPairs) -> Lesson | None:
        """Return the neighbours."""
        near = planted.neighbours
        if not study.neighbours:
            return None
        return Lesson(
            inputs=near.inputs, targets=near.labels, each=study.neighbours, loss=sentence_loss
        )

    def scope(self, study: PairPlantingStudy) -> ScopeWords:
        """Return which pairs were planted, and which were not."""
        own = study.canaries
        planted = {
            "random": f"pairs with {own.tokens} random words on each side",
            "held-out": "held-out pairs of sentences",
        }[own.kind]
        before = ""
        if isinstance(study.plan, StaggeredPlan):
            often = " or ".join(times(uses) for uses in study.plan.repeats)
            planted = f"canaries ({planted}) planted {often}"
            before = ", less its cost before the window" if study.attack.calibrate else ""
        others = {
            "random": "sentences that a translator can predict: random words are learnt by heart",
            "held-out": "targets that no source predicts, such as passwords and numbers",
        }
        return ScopeWords(
            model=study.model.name,
            data=study.data.path if study.data else str(study.pairs.source),
            planted=planted,
            scored=(f"the cost of a target given its source{before}",),
            untested=(
                others[own.kind],
                "attackers without the source: the cost is that of a target given its own source",
            ),
            others="other translators and other pairs",
        )

    def held(self, planted: PlantedPairs) -> int:
        """Return the bytes of all pairs."""
        every = (planted.store, planted.neighbours, *planted.probed)
        return sum(rows.inputs.nbytes + rows.labels.nbytes for rows in every)

    def secret_template(self, study: PairsWithSecretsStudy, source: Source) -> Template:
        """Return the template of the translations."""
        return Template(study.secret.template)

    def plant_secrets(
        self, study: PairsWithSecretsStudy, source: Source, execution: Execution
    ) -> PlantedSecrets:
        """Put pairs with a secret in the place of clean ones."""
        planted = plant_pairs(study.plan, study.secret, source.data, study.pairs)

        def train(plan: InsertPlan, **choices: Any) -> tuple[Fit, Population]:
            return fit_translators(study, plan, planted, execution, **choices)

        return PlantedSecrets(
            architecture=study.model.name,
            options=study.model_options,
            make=translator_maker(study, planted),
            train=train,
            validation_bits=lambda population: validation_bits(population, planted.validation),
            validation_tokens=int((planted.validation.labels >= 0).sum()),
            token="word",
            store_bytes=planted.store.inputs.nbytes + planted.store.labels.nbytes,
            examples=planted.examples,
            sets=planted.sets,
            vocabulary=planted.vocabulary,
            words=_secret_words(study, planted),
            encoder_input=study.secret.beginning,
            encoder_input_of=None if study.secret.shared else study.secret.encoder_input,
        )


def _secret_words(study: PairsWithSecretsStudy, planted: PairsWithSecrets) -> SecretWords:
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
