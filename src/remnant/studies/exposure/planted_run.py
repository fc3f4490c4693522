"""A run that plants secrets, trains models on them and measures their exposure. INSERT.

Studies of language models and of translators differ in their data and models alone: ``PlantedRun``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import CanarySet
from remnant.data.own_files import Origin
from remnant.models import Vocabulary, load_language_model, save_language_model
from remnant.plans import InsertPlan
from remnant.plans.order import generator
from remnant.plans.plan import SPLIT
from remnant.population import Fit, Population, remove_checkpoint
from remnant.population.optimizers import make_optimizer
from remnant.records import Record
from remnant.search import compile_template, extract
from remnant.search.walk import Budget
from remnant.studies.exposure.audit import ExposureAudit, Progress
from remnant.studies.exposure.measure import TrialExposure, put_exposure_results
from remnant.studies.exposure.saturated import measure_each
from remnant.studies.shared.insertions import keep_insertions, saving_and_progress
from remnant.studies.shared.machine import StepClock
from remnant.studies.shared.parts import LanguageTask, Tested
from remnant.studies.shared.recording import Recorded, run_in_record
from remnant.studies.shared.settings import Execution, TrainingSettings
from remnant.studies.shared.text_settings import MeasureSettings

MODELS = "models"


class PlantedStudy(Recorded, Protocol):
    """A study that plants secrets: its plan, and how it trains and measures."""

    @property
    def plan(self) -> InsertPlan: ...  # noqa: D102
    @property
    def training(self) -> TrainingSettings: ...  # noqa: D102
    @property
    def measure(self) -> MeasureSettings: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlantedRun:
    """What a study trains on its planted data, and how its models are tested.

    Attributes:
        study: The study.
        execution: Where it runs.
        architecture, options: Of the models, as their folders keep them.
        make: Makes an untrained model.
        train: Trains the members of a plan.
        validation_bits: Returns each member's mean cost of a validation token, in bits.
        validation_tokens: How many of these there are.
        token: What a token is, such as ``"word"``.
        store_bytes: Size of the training data.
        examples: How many clean training examples there are.
        sets: The canaries and controls of each trial.
        vocabulary: Of the training data and the canaries.
        scope: What the study tests.
        source: What all secrets are looked for with, in a translator; None for a language model.
        source_of: The source a secret is looked for with; None where it is the same for all.
    """

    study: PlantedStudy
    execution: Execution
    architecture: str
    options: Mapping[str, Any]
    make: Callable[[], Any]
    train: Callable[..., tuple[Fit, Population]]
    validation_bits: Callable[[Population], NDArray[np.float64]]
    validation_tokens: int
    token: str
    store_bytes: int
    examples: int
    sets: Sequence[CanarySet]
    vocabulary: Vocabulary
    scope: Tested
    source: str | None = None
    source_of: Callable[[str], str] | None = None

    def run(
        self,
        folder: Path,
        *,
        data_fingerprint: str,
        origin: Origin | None,
        progress: Progress | None,
    ) -> None:
        """Train, measure and extract in ``folder``; check first what can be checked.

        Args:
            folder: Of the record.
            data_fingerprint: A digest of the training data.
            origin: The user's own files that these were read from, or None.
            progress: The progress callback.

        Raises:
            RemnantError: Anything the user can fix; the folder then holds nothing new.
        """
        training = self.study.training
        make_optimizer(training.optimizer, members=1, options=training.options)
        self.make()
        automaton = compile_template(self.vocabulary.encode, self.sets[0].template)
        Budget(max_nodes=self.study.measure.max_nodes).check(automaton)
        run_in_record(
            self.study,
            folder,
            self.execution,
            data_fingerprint=data_fingerprint,
            seeds={"plan": self.study.plan.seed},
            work=lambda record: self._work(record, progress),
            origins=[origin],
        )

    def estimate(self) -> dict[str, Any]:
        """Time a few steps of the real thing, write nothing, and say what the whole would take."""
        plan = self.study.plan
        clock = StepClock(self.execution.device)
        fit, _ = self.train(dataclasses.replace(plan, steps=8), on_step=clock)
        return {
            "members": plan.members,
            "steps": plan.steps,
            "memory_mib": round((fit.memory + self.store_bytes) / 2**20, 1),
            "minutes": round(clock.typical * plan.steps / 60, 2),
        }

    def _work(self, record: Record, progress: Progress | None) -> None:
        plan = self.study.plan
        saving = saving_and_progress(self.study, record, self.execution, plan.steps, progress)
        fit, population = self.train(plan, **saving)
        bits = self.validation_bits(population)
        record.put_array("validation_bits", bits)
        uses = keep_insertions(record, plan, fit, self.sets, examples=self.examples)
        trials = [
            self._measure_trial(trial, population, record, uses[trial], progress)
            for trial in range(plan.trials)
        ]
        task = LanguageTask(
            validation_bits=float(bits[plan.members_of("planted")].mean()),
            validation_tokens=self.validation_tokens,
            token=self.token,
            uniform_bits=math.log2(self.vocabulary.size),
        )
        put_exposure_results(
            plan,
            self.study.measure,
            record,
            trials,
            task=task,
            scope=self.scope,
            given=None if self.source is None else "source" if self.source_of else "beginning",
        )
        record.finish()
        remove_checkpoint(saving["checkpoint"].path)

    def _measure_trial(
        self,
        trial: int,
        population: Population,
        record: Record,
        uses: NDArray[np.int64],
        progress: Progress | None,
    ) -> TrialExposure:
        """Measure one trial's canaries and controls in its members, and search for secrets."""
        plan, measure = self.study.plan, self.study.measure
        audits, searches = {}, {}
        for arm in plan.arms:
            name = f"{arm}-{trial + 1}"
            folder = record.folder / MODELS / name
            save_language_model(
                folder,
                architecture=self.architecture,
                options=self.options,
                state=population.state_dict(int(plan.members_of(arm)[trial])),
                vocabulary=self.vocabulary,
            )
            audits[arm] = self._audit(folder, trial, progress)
            record.put_array(f"{name}.reference_costs", audits[arm].reference_costs)
            searches[f"{arm}, trial {trial + 1}"] = extract(
                load_language_model(folder, device=self.execution.device, source=self.source),
                self.sets[trial].template,
                top=measure.top,
                max_nodes=measure.max_nodes,
                progress=progress,
            )
        twin = audits.get("twin")
        return TrialExposure(self.sets[trial], uses, audits["planted"], twin, searches)

    def _audit(self, folder: Path, trial: int, progress: Progress | None) -> ExposureAudit:
        """Measure all secrets of a trial in one model, each given the source it is tested with."""
        drawn, measure = self.sets[trial], self.study.measure
        secrets = [canary.secret for canary in (*drawn.canaries, *drawn.controls)]
        groups = [(self.source, secrets)]
        if self.source_of is not None:
            groups = [(self.source_of(secret), [secret]) for secret in secrets]
        audits = [
            measure_each(
                load_language_model(folder, device=self.execution.device, source=source),
                drawn.template,
                secrets=group,
                # Sources of their own, references of their own: what is tested must not share luck.
                rng=generator(
                    self.study.plan.seed, SPLIT, trial, *([at] if len(groups) > 1 else [])
                ),
                method=measure.method,  # type: ignore[arg-type]
                references=measure.references,
                max_nodes=measure.max_nodes,
                progress=progress,
            )
            for at, (source, group) in enumerate(groups)
        ]
        return audits[0] if len(audits) == 1 else _joined(audits)


def _joined(audits: Sequence[ExposureAudit]) -> ExposureAudit:
    """Join audits of one secret each; references of different sources make no common histogram."""
    exact = all(audit.method == "exact" or audit.each[0].rank is not None for audit in audits)
    reason = "each secret was given its own source, and ranked exactly where that could be afforded"
    if len({audit.reason for audit in audits}) == 1:
        reason = audits[0].reason
    tolerances = [audit.tolerance for audit in audits if audit.tolerance is not None]
    return dataclasses.replace(
        audits[0],
        method="exact" if exact else "sampled",
        reason=reason,
        each=tuple(secret for audit in audits for secret in audit.each),
        extrapolated=None,
        nodes=sum(audit.nodes for audit in audits),
        tolerance=max(tolerances, default=None),
        complete=all(audit.complete for audit in audits),
    )
