"""How exposed is a secret that was in a translator's training pairs, given the source? INSERT."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from remnant.data.pairs import PairCorpus
from remnant.plans import InsertPlan
from remnant.population import Fit, Population
from remnant.progress import Progress
from remnant.studies.exposure.measure import insertion_scope
from remnant.studies.exposure.planted_run import PlantedRun
from remnant.studies.pipeline import Prepared
from remnant.studies.shared.result_parts import Tested
from remnant.studies.shared.settings import Execution
from remnant.studies.shared.wording import counted
from remnant.studies.translation.planted_pairs import PlantedPairs, plant_pairs
from remnant.studies.translation.recipe import TranslationStudy
from remnant.tasks.translators import (
    fit_translators,
    load_pairs_of,
    translator_maker,
    validation_bits,
)


def prepare(study: TranslationStudy, execution: Execution, progress: Progress | None) -> Prepared:
    """Load and plant the pairs; the work trains, measures and extracts.

    The folder also keeps the trained models (``models/``) and the canaries' targets with their
    secrets (``canaries.jsonl``, readable by its owner alone).
    """
    pairs = load_pairs_of(study, execution)
    return _planted_run(study, pairs, execution).prepared(
        data_fingerprint=pairs.fingerprint, origin=pairs.origin, progress=progress
    )


def estimate(study: TranslationStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take."""
    return _planted_run(study, load_pairs_of(study, execution), execution).estimate()


def _planted_run(study: TranslationStudy, pairs: PairCorpus, execution: Execution) -> PlantedRun:
    planted = plant_pairs(study.plan, study.secret, pairs, study.pairs)
    make = translator_maker(study, planted)

    def train(plan: InsertPlan, **choices: Any) -> tuple[Fit, Population]:
        return fit_translators(study, plan, planted, execution, **choices)

    return PlantedRun(
        study=study,
        execution=execution,
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
        scope=_scope(study, planted),
        source=study.secret.beginning,
        source_of=None if study.secret.shared else study.secret.encoder_input,
        rebuild=partial(_planted_run, study, pairs),
    )


def _scope(study: TranslationStudy, planted: PlantedPairs) -> Tested:
    given = "the whole source, with the secret in it"
    if study.secret.shared:
        given = "the beginning of the source, without the secret"
    return insertion_scope(
        study.plan,
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
