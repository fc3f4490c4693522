"""How fast does a language model forget sequences that it saw? INJECT and POISON on text."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

from remnant.data import Corpus, corpus_fingerprint
from remnant.records import Record
from remnant.studies.groups.estimating import planned_group
from remnant.studies.shared.language_models import fit_language_models, load_text
from remnant.studies.shared.machine import StepClock
from remnant.studies.shared.recording import (
    Progress,
    joint_fingerprint,
    put_ledger,
    run_in_record,
)
from remnant.studies.shared.settings import Execution
from remnant.studies.text_forgetting.disturbed_sequences import search_seconds
from remnant.studies.text_forgetting.measure import measure_text_forgetting
from remnant.studies.text_forgetting.planted_tokens import PlantedTokens, plant_tokens
from remnant.studies.text_forgetting.recipe import TextForgettingStudy
from remnant.studies.text_forgetting.training import (
    SEARCHED,
    ask_trials,
    check_language_models,
    part_groups,
    run_parts,
    text_search,
)


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
    members, steps, memory, groups = 0, 0, 0.0, []
    for name, part in study.parts().items():
        planted = _planted(part, load_text(part.text, part.data, execution))
        check_language_models(part, planted, execution)
        plan = part.plan
        short = dataclasses.replace(plan, step=6, repeats=1, watch_steps=6)
        clock = StepClock(execution.device)
        fit, population = fit_language_models(part, short, planted, execution, on_step=clock)
        gaps = [after - before for before, after in itertools.pairwise(clock.times)]
        first, later = sorted(gaps[:4])[1], sorted(gaps[-5:])[2]
        seconds = first * plan.checkpoint_step + later * (plan.steps - plan.checkpoint_step)
        clock(0)
        ask_trials(part, planted)(population)
        clock(0)
        seconds += (clock.times[-1] - clock.times[-2]) * len(part.lags())
        search = text_search(part, planted) if name == SEARCHED else None
        if search is not None:
            seconds += search_seconds(search, population, step_seconds=later, clock=clock)
        members, steps = members + plan.members, steps + plan.steps
        memory = max(memory, fit.memory + planted.store.nbytes + planted.neighbours.nbytes)
        twins, *references = part_groups(part, name, data_fingerprint="").values()
        groups.append(planned_group(twins, seconds=seconds))
        for group in references:
            members, steps = members + group.members, steps + group.steps
            seconds = later * group.steps * group.members / plan.members
            groups.append(planned_group(group, seconds=seconds))
    return {
        "members": members,
        "steps": steps,
        "memory_mib": round(memory / 2**20, 1),
        "minutes": round(sum(group["minutes"] for group in groups), 2),
        "groups": groups,
    }


def _planted(study: TextForgettingStudy, text: Corpus) -> PlantedTokens:
    return plant_tokens(study.plan, study.canaries, study.text, text, neighbours=study.neighbours)


def _work(
    study: TextForgettingStudy,
    planted: dict[str, PlantedTokens],
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    run_parts(study, planted, part_groups, execution, record, progress)
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
