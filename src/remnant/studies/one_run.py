"""How fast does this training run forget? STAGGERED: canaries planted along one ordinary run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remnant.data import AuditData
from remnant.errors import NotEnoughEvidence
from remnant.measures import unseen_needed
from remnant.plans import StaggeredPlan
from remnant.plans.fingerprint import fingerprint, lasting
from remnant.population import Checkpoint, remove_checkpoint
from remnant.probes import SIGNALS
from remnant.records import Record
from remnant.studies.classifiers import (
    ClassifierStudy,
    Question,
    accuracy_of,
    check_classifier,
    check_converged,
    fit_classifiers,
    how_trained,
    kept_losses,
    load_data,
    members_of,
    task_fields,
)
from remnant.studies.image_canaries import Planting, draw_canaries, plant
from remnant.studies.machine import StepClock
from remnant.studies.one_run_results import measure_one_run
from remnant.studies.recording import carry_out
from remnant.studies.settings import Execution, OneRunSettings

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class OneRunStudy(ClassifierStudy):
    """One question, whole: the plan and all that changes its numbers."""

    plan: StaggeredPlan
    attack: OneRunSettings = field(default_factory=OneRunSettings)

    def __post_init__(self) -> None:
        needed = unseen_needed(self.attack.fpr)
        if self.attack.success in ("precision", "tpr") and self.plan.never < needed:
            raise NotEnoughEvidence(
                f"plan.never={self.plan.never} cannot place a threshold at "
                f"attack.fpr={self.attack.fpr:g}; it takes at least {needed}.",
                hint="Leave more canaries out of training, or ask for a larger fpr.",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, one group a part."""
        made: dict[str, Any] = {"question": "one-run", "plan": self.plan.to_dict()}
        for name in ("data", "canaries", "model", "training", "attack"):
            made[name] = dataclasses.asdict(getattr(self, name))
        return made

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        return fingerprint(lasting(self, self.to_dict()))

    def probe_steps(self) -> tuple[int, ...]:
        """Updates done at each checkpoint."""
        return self.plan.checkpoints(self.attack.checkpoints)


def run_one_run(
    study: OneRunStudy, folder: Path, execution: Execution, *, progress: Progress | None = None
) -> None:
    """Carry out the study in ``folder``: train, probe, measure. A run that was cut short goes on.

    Raises:
        RemnantError: Anything the user can mend; the folder then holds nothing new.
    """
    data = load_data(study, execution)
    check_classifier(study, data, execution)
    carry_out(
        study,
        folder,
        execution,
        data_fingerprint=data.fingerprint,
        seeds={"plan": study.plan.seed, "data": study.data.seed},
        work=lambda record: _carry_out(study, data, execution, record, progress),
    )


def _carry_out(
    study: OneRunStudy,
    data: AuditData,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    losses = kept_losses(study, data, execution, record, [study.canaries])
    planting = plant(data, [draw_canaries(study.plan, study.canaries, data, losses)])
    if "scores" not in record.array_names():
        _train(study, planting, execution, record, progress)
    ledger = study.plan.ledger()
    record.put_ledger(
        {name: getattr(ledger, name) for name in ("member", "canary", "step", "uses")}
    )
    record.put_result("task", task_fields(record.array("run.test_accuracy"), data))
    measure_one_run(record, study)
    record.finish()


def _train(
    study: OneRunStudy,
    planting: Planting,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    """Train the one model and keep the canaries' log-odds at every checkpoint."""
    path = record.folder / "checkpoint.safetensors"
    steps = study.plan.total_steps
    fit, population = fit_classifiers(
        study,
        members_of(study, study.plan, planting),
        planting,
        execution,
        ask={"signals": Question(slice(1), slice(None), study.probe_steps())},
        checkpoint=Checkpoint(
            path,
            seconds=execution.checkpoint_seconds,
            key=f"{study.fingerprint}/{record.data_fingerprint}",
        ),
        on_step=None if progress is None else lambda done: progress("run", done, steps),
    )
    check_converged(fit.probes["signals"], "run")
    record.put_array("run.test_accuracy", accuracy_of(population, planting))
    record.update_execution(how_trained("run", fit))
    record.put_array("scores", fit.probes["signals"][:, 0, SIGNALS.index("log_odds")])
    remove_checkpoint(path)


def estimate_one_run(study: OneRunStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take."""
    data = load_data(study, execution)
    check_classifier(study, data, execution)
    planting = plant(data, [draw_canaries(study.plan, study.canaries, data, None)])
    clock = StepClock(execution.device)
    short = dataclasses.replace(
        study.plan, starts=(0,), window=8, repeats=(1,), canaries=2, never=1, steps=16
    )
    members = members_of(study, short, planting)
    fit, _ = fit_classifiers(study, members, planting, execution, on_step=clock)
    return {
        "members": 1,
        "steps": study.plan.total_steps,
        "memory_mib": round((fit.memory + planting.store.images.nbytes) / 2**20, 1),
        "minutes": round(clock.typical * study.plan.total_steps / 60, 2),
    }
