"""How fast does a classifier forget examples that it saw? INJECT and POISON on images."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from remnant.data import AuditData
from remnant.errors import NotEnoughEvidence, PlanError, require
from remnant.measures import unseen_needed
from remnant.plans import InjectPlan, PoisonPlan
from remnant.plans.fingerprint import fingerprint, lasting
from remnant.records import Record
from remnant.studies.classifiers import (
    ClassifierStudy,
    check_classifier,
    kept_losses,
    load_data,
    task_fields,
)
from remnant.studies.forgetting_results import measure_forgetting
from remnant.studies.grid import grids, runs_of, time_grid, train_grid
from remnant.studies.hidden_probe import check_neighbours
from remnant.studies.hidden_settings import HiddenSettings
from remnant.studies.lags import lag_grid
from remnant.studies.recording import carry_out
from remnant.studies.settings import AttackSettings, Execution
from remnant.studies.variants import Variant, difference, label_faults

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class ForgettingStudy(ClassifierStudy):
    """One question, whole: the plan and all that changes its numbers.

    Attributes:
        plan: INJECT or POISON.
        label: What the study itself is called beside its variants.
        title: Of the figure that shows them together.
        compare: Variants; those that are trained anew have no A/A twins of their own.
        hidden: How to ask whether what is not found is gone or only hidden; None asks by a scan of
            the checkpoints alone. Variants are not asked.
    """

    plan: InjectPlan | PoisonPlan
    attack: AttackSettings = field(default_factory=AttackSettings)
    label: str = "as planned"
    title: str = "The same study, varied"
    compare: tuple[Variant[ForgettingStudy], ...] = ()
    hidden: HiddenSettings | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "compare", tuple(self.compare))
        faults = label_faults([self.label, *(variant.label for variant in self.compare)])
        faults += [
            f"compare {variant.label!r} has other data; a variant has its study's"
            for variant in self.compare
            if variant.study.data != self.data
        ]
        by_others = self.attack.calibration == "twins" or (
            isinstance(self.plan, PoisonPlan) and self.attack.calibration != "none"
        )
        if by_others and self.plan.trials < 2:
            faults.append("calibration by the other trials' twins (POISON's) needs trials >= 2")
        if self.hidden is not None and self.plan.trials < 2:
            faults.append("[hidden] compares trials before and after and needs trials >= 2")
        require(faults, error=PlanError, hint="Mend the recipe.")
        needed = unseen_needed(self.attack.fpr)
        if self.attack.success in ("precision", "tpr") and self.plan.canaries < needed:
            raise NotEnoughEvidence(
                f"plan.canaries={self.plan.canaries} cannot place a threshold at "
                f"attack.fpr={self.attack.fpr:g}; it takes at least {needed}.",
                hint="Plant more canaries, or ask for a larger fpr.",
            )
        lag_grid(self.plan.watch_steps, self.attack.lags)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, one group a part."""
        made: dict[str, Any] = {"question": "forgetting", "plan": self.plan.to_dict()}
        for name in ("data", "canaries", "model", "training", "attack"):
            made[name] = dataclasses.asdict(getattr(self, name))
        made["attack"]["lags"] = list(self.attack.lags)
        if self.hidden is not None:
            made["hidden"] = self.hidden.to_dict()
        if self.compare:
            alone = dict(made)
            made |= {"label": self.label, "title": self.title}
            made["compare"] = [
                {"label": variant.label, **difference(alone, variant.study.to_dict())}
                for variant in self.compare
            ]
        return made

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        return fingerprint(lasting(self, self.to_dict()))

    def parts(self) -> dict[str, ForgettingStudy]:
        """Return the study alone and its variants, by name."""
        made = {"primary": dataclasses.replace(self, compare=())}
        for i, variant in enumerate(self.compare, start=1):
            part = dataclasses.replace(variant.study, compare=(), hidden=None)
            if runs_of({"own": made["primary"], "its": part})["its"] == "its":
                part = dataclasses.replace(part, plan=dataclasses.replace(part.plan, aa=False))
            made[f"variant{i}"] = part
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
    parts = study.parts()
    losses = kept_losses(study, data, execution, record, [part.canaries for part in parts.values()])
    for runs in grids({name: parts[name] for name in dict.fromkeys(runs_of(parts).values())}):
        first = next(iter(runs))
        if f"{first}.signals" not in record.array_names():
            train_grid(
                runs,
                data,
                losses,
                execution,
                record,
                key=f"{study.fingerprint}/{record.data_fingerprint}",
                on_step=None if progress is None else partial(progress, first),
            )
    ledger = study.plan.ledger(examples=len(data.clean))
    record.put_ledger(
        {name: getattr(ledger, name) for name in ("member", "canary", "step", "uses")}
    )
    record.put_result("task", task_fields(record.array("primary.test_accuracy"), data))
    measure_forgetting(record, study)
    record.finish()


def estimate_forgetting(study: ForgettingStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take."""
    data = load_data(study, execution)
    check_fit(study, data, execution)
    parts = study.parts()
    found = [
        time_grid(runs, data, execution)
        for runs in grids({name: parts[name] for name in dict.fromkeys(runs_of(parts).values())})
    ]
    return {
        "members": sum(int(one["members"]) for one in found),
        "steps": sum(int(one["steps"]) for one in found),
        "memory_mib": round(max(one["bytes"] for one in found) / 2**20, 1),
        "minutes": round(sum(one["seconds"] for one in found) / 60, 2),
    }


def check_fit(study: ForgettingStudy, data: AuditData, execution: Execution) -> None:
    """Refuse what cannot be planted or trained before anything is written."""
    for part in study.parts().values():
        check_classifier(part, data, execution)
        part.plan.schedule(examples=len(data.clean))  # refuses canaries that do not fit
    if study.hidden is not None:
        check_neighbours(study.plan, study.canaries, study.hidden, data)
