"""How fast does a classifier forget examples that it saw? INJECT and POISON on images."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remnant.data import AuditData
from remnant.errors import NotEnoughEvidence, PlanError, require
from remnant.measures import unseen_needed
from remnant.plans import InjectPlan, PoisonPlan
from remnant.plans.fingerprint import fingerprint
from remnant.population import Checkpoint
from remnant.records import Record
from remnant.studies.classifiers import (
    ClassifierStudy,
    check_classifier,
    fit_classifiers,
    keep_training,
    load_data,
    plant_canaries,
    quick_planting,
    task_fields,
)
from remnant.studies.forgetting_results import measure_forgetting
from remnant.studies.image_canaries import Planting
from remnant.studies.lags import lag_grid
from remnant.studies.machine import StepClock
from remnant.studies.recording import carry_out
from remnant.studies.settings import AttackSettings, Execution

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class ForgettingStudy(ClassifierStudy):
    """One question, whole: the plan and all that changes its numbers.

    Attributes:
        plan: INJECT or POISON.
        compare_repeats: The same plan again with these repeats, for comparison.
    """

    plan: InjectPlan | PoisonPlan
    attack: AttackSettings = field(default_factory=AttackSettings)
    compare_repeats: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "compare_repeats", tuple(self.compare_repeats))
        faults = []
        by_others = isinstance(self.plan, PoisonPlan) and self.attack.calibration != "none"
        if by_others and self.plan.trials < 2:
            faults.append("POISON is calibrated by the other trials' twins and needs trials >= 2")
        if len({self.plan.repeats, *self.compare_repeats}) <= len(self.compare_repeats):
            faults.append(
                f"compare_repeats={list(self.compare_repeats)} holds the plan's own, or one twice"
            )
        require(faults, error=PlanError, hint="Mend the recipe.")
        needed = unseen_needed(self.attack.fpr)
        if self.attack.success in ("precision", "tpr") and self.plan.canaries < needed:
            raise NotEnoughEvidence(
                f"plan.canaries={self.plan.canaries} cannot place a threshold at "
                f"attack.fpr={self.attack.fpr:g}; it takes at least {needed}.",
                hint="Plant more canaries, or ask for a larger fpr.",
            )
        lag_grid(self.plan.watch_steps, self.attack.lags)
        self.parts()

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, one group a part."""
        made: dict[str, Any] = {"question": "forgetting", "plan": self.plan.to_dict()}
        for name in ("data", "canaries", "model", "training", "attack"):
            made[name] = dataclasses.asdict(getattr(self, name))
        made["attack"]["lags"] = list(self.attack.lags)
        made["compare_repeats"] = list(self.compare_repeats)
        return made

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        return fingerprint(self.to_dict())

    def parts(self) -> dict[str, InjectPlan | PoisonPlan]:
        """Return the populations to train, by name; the first is the study's own plan."""
        made = {"primary": self.plan}
        for repeats in self.compare_repeats:
            made[f"repeats{repeats}"] = dataclasses.replace(self.plan, repeats=repeats)
        return made


def run_forgetting(
    study: ForgettingStudy,
    folder: Path,
    execution: Execution,
    *,
    progress: Progress | None = None,
) -> None:
    """Carry out the study in ``folder``: train, probe, measure. A run that was cut short goes on.

    Raises:
        RemnantError: Anything the user can mend; the folder then holds nothing new.
    """
    data = load_data(study, execution)
    check_fit(study, data, execution)
    carry_out(
        study,
        folder,
        execution,
        data_fingerprint=data.fingerprint,
        seeds={"plan": study.plan.seed, "data": study.data.seed},
        work=lambda record: _carry_out(study, data, execution, record, progress),
    )


def _carry_out(
    study: ForgettingStudy,
    data: AuditData,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    planting = plant_canaries(study, data, execution, record)
    for name, plan in study.parts().items():
        if f"{name}.signals" not in record.array_names():
            _train(study, name, plan, planting, execution, record, progress)
    ledger = study.plan.ledger(examples=planting.examples)
    record.put_ledger(
        {name: getattr(ledger, name) for name in ("member", "canary", "step", "uses")}
    )
    record.put_result("task", task_fields(record.array("primary.test_accuracy"), planting))
    measure_forgetting(record, study)
    record.finish()


def estimate_forgetting(study: ForgettingStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take."""
    data = load_data(study, execution)
    check_fit(study, data, execution)
    planting = quick_planting(study, data, execution)
    seconds, steps, memory = 0.0, 0, 0
    for plan in study.parts().values():
        short = dataclasses.replace(plan, step=6, repeats=1, watch_steps=6)
        clock = StepClock()
        fit, _ = fit_classifiers(study, short, planting, execution, on_step=clock)
        gaps = [after - before for before, after in itertools.pairwise(clock.times)]
        first, later = sorted(gaps[:4])[1], sorted(gaps[-5:])[2]
        seconds += first * plan.checkpoint_step + later * (plan.steps - plan.checkpoint_step)
        steps += plan.steps
        memory = max(memory, fit.memory)
    return {
        "members": sum(plan.members for plan in study.parts().values()),
        "steps": steps,
        "memory_mib": round((memory + planting.store.images.nbytes) / 2**20, 1),
        "minutes": round(seconds / 60, 2),
    }


def check_fit(study: ForgettingStudy, data: AuditData, execution: Execution) -> None:
    """Refuse what cannot be planted or trained before anything is written."""
    check_classifier(study, data, execution)
    for plan in study.parts().values():
        plan.ledger(examples=len(data.clean))


def _train(
    study: ForgettingStudy,
    name: str,
    plan: InjectPlan | PoisonPlan,
    planting: Planting,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    """Train one population and put what its probes saw into the record."""
    path = record.folder / f"checkpoint-{name}.safetensors"
    lags = lag_grid(plan.watch_steps, study.attack.lags)
    fit, population = fit_classifiers(
        study,
        plan,
        planting,
        execution,
        probe_steps=(plan.checkpoint_step, *(plan.planted_until + lag for lag in lags)),
        checkpoint=Checkpoint(
            path,
            seconds=execution.checkpoint_seconds,
            key=f"{study.fingerprint}/{name}/{record.data_fingerprint}",
        ),
        on_step=None if progress is None else lambda done: progress(name, done, plan.steps),
    )
    keep_training(record, name, fit, population, planting)
    record.put_array(f"{name}.signals", fit.probes["signals"])
    path.unlink(missing_ok=True)
