"""How fast does a language model forget sequences that it saw? INJECT and POISON on text."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from remnant.data import Corpus, corpus_fingerprint
from remnant.records import Record
from remnant.studies.shared.recording import (
    Progress,
    joint_fingerprint,
    put_ledger,
    run_in_record,
)
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


def run_text_forgetting(
    study: TextForgettingStudy,
    folder: Path,
    execution: Execution,
    *,
    progress: Progress | None = None,
) -> None:
    """Run the study in ``folder``: train, probe, measure. Resumes an interrupted run.

    The canaries follow from the plan's seed and are nowhere written down.

    Raises:
        RemnantError: Anything the user can fix; the folder then holds nothing new.
    """
    texts = {
        name: load_text(part.text, part.data, execution) for name, part in study.parts().items()
    }
    planted = {name: _planted(part, texts[name]) for name, part in study.parts().items()}
    for name, part in study.parts().items():
        check_language_models(part, planted[name], execution)
    run_in_record(
        study,
        folder,
        execution,
        data_fingerprint=joint_fingerprint(map(corpus_fingerprint, texts.values())),
        seeds={"plan": study.plan.seed, "text": study.text.seed},
        work=lambda record: _work(study, planted, execution, record, progress),
        origins=[text.origin for text in texts.values()],
    )


def estimate_text_forgetting(study: TextForgettingStudy, execution: Execution) -> dict[str, Any]:
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
    put_ledger(record, study.plan.ledger(examples=first.examples))
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
    record.finish()
