"""How fast does a language model forget sequences that it saw? INJECT and POISON on text."""

from __future__ import annotations

import math
from typing import Any

from remnant.data import Corpus, corpus_fingerprint
from remnant.progress import Progress
from remnant.records import Record
from remnant.studies.pipeline import Prepared, joint_fingerprint
from remnant.studies.shared.settings import Execution
from remnant.studies.text_forgetting.estimate import TimedPart, sequence_estimate, shortened
from remnant.studies.text_forgetting.measure import measure_text_forgetting
from remnant.studies.text_forgetting.recipe import TextForgettingStudy
from remnant.studies.text_forgetting.training import (
    SEARCHED,
    ask_trials,
    part_jobs,
    run_parts,
    text_search,
)
from remnant.tasks.language_models import fit_language_models, load_text
from remnant.tasks.text import PlantedTokens, check_language_models, plant_tokens


def prepare(
    study: TextForgettingStudy, execution: Execution, progress: Progress | None
) -> Prepared:
    """Load and plant the texts; refuse what cannot be trained.

    The canaries follow from the plan's seed and are nowhere written down.
    """
    texts = {
        name: load_text(part.text, part.data, execution) for name, part in study.parts().items()
    }
    planted = {name: _planted(part, texts[name]) for name, part in study.parts().items()}
    for name, part in study.parts().items():
        check_language_models(part, planted[name], execution)
    return Prepared(
        data_fingerprint=joint_fingerprint(map(corpus_fingerprint, texts.values())),
        seeds={"plan": study.plan.seed, "text": study.text.seed},
        origins=[text.origin for text in texts.values()],
        work=lambda record: _work(study, planted, execution, record, progress),
        ledger=study.plan.ledger(examples=planted["primary"].examples),
    )


def estimate(study: TextForgettingStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps, write nothing, and return the time and memory of the whole run."""
    parts = (_timed(name, part, execution) for name, part in study.parts().items())
    return sequence_estimate(parts, device=execution.device)


def _timed(name: str, part: TextForgettingStudy, execution: Execution) -> TimedPart:
    planted = _planted(part, load_text(part.text, part.data, execution))
    check_language_models(part, planted, execution)
    short = shortened(part.plan)
    return TimedPart(
        plan=part.plan,
        short=short,
        fit=lambda clock: fit_language_models(part, short, planted, execution, on_step=clock),
        ask=ask_trials(part, planted),
        search=text_search(part, planted) if name == SEARCHED else None,
        jobs=part_jobs(part, name, data_fingerprint="").values(),
        lags=len(part.lags()),
        held=planted.store.nbytes + planted.neighbours.nbytes,
    )


def _planted(study: TextForgettingStudy, text: Corpus) -> PlantedTokens:
    return plant_tokens(study.plan, study.canaries, study.text, text, neighbours=study.neighbours)


def _work(
    study: TextForgettingStudy,
    planted: dict[str, PlantedTokens],
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    run_parts(study, planted, part_jobs, execution, record, progress)
    first = planted["primary"]
    bits = record.array("primary.validation_bits")
    record.put_result(
        "task",
        {
            "validation_bits": float(bits[study.plan.members_of("planted")].mean()),
            "validation_tokens": int(first.validation[:, 1:].size),
            "token": study.text.level,
            "uniform_bits": math.log2(first.vocabulary.size),
        },
    )
    measure_text_forgetting(record, study, examples=first.examples, tokens=first.tokens)
