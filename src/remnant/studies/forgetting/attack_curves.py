"""The curves of a run: by the named attacker, by every other one, and beside its twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence
from remnant.measures import ForgettingCurve, InstanceScores, Success, forgetting_curve
from remnant.measures.forgetting.instance_scores import InstanceCalibration
from remnant.measures.forgetting.one_run_attackers import MODEL_ALONE, with_references
from remnant.plans import InjectPlan, PoisonPlan
from remnant.records import Record
from remnant.records.typed import Absent
from remnant.studies.forgetting.attack_scores import RunScores
from remnant.studies.forgetting.recipe import CALIBRATIONS, ForgettingStudy, never_planted
from remnant.studies.forgetting.result import AttackUsed
from remnant.studies.residual_memory.measured import or_absent
from remnant.studies.shared.image_canaries import columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_TWIN = "a comparison with the unplanted twin"
_OWN = "it is the study’s own"
_NEVER = "there are no canaries that were never planted"
_IMPOSSIBLE = {
    "references": "one trial has no other trials’ models",
    "checkpoint": "POISON has no checkpoint before planting",
}


@dataclass(frozen=True, slots=True, eq=False)
class OtherAttackers:
    """The attackers beside the named one.

    Attributes:
        by_calibration: The curve of each, or why there is none.
        names: Who they are, by calibration.
        lost: Why an attacker that the plan allows was not measured, by calibration.
    """

    by_calibration: dict[str, ForgettingCurve | Absent]
    names: dict[str, str]
    lost: dict[str, str]

    @property
    def curves(self) -> dict[str, ForgettingCurve]:
        """The curves that were measured, by who attacks."""
        return {
            self.names[name]: curve
            for name, curve in self.by_calibration.items()
            if not isinstance(curve, Absent)
        }


@dataclass(frozen=True, slots=True, eq=False)
class Attacks:
    """What can be computed of one run.

    Attributes:
        study: What was asked.
        scores: Of its models.
        used: The attack that the study is about.
    """

    study: ForgettingStudy
    scores: RunScores
    used: AttackUsed

    def curve(self, *, success: Success | None = None) -> ForgettingCurve:
        """Attack success by the study's own comparison.

        Args:
            success: The study's own measure, if not given.

        Raises:
            NotEnoughEvidence: There are too few never-planted examples.
        """
        name = self.study.attack.calibration
        if self.study.attack.against == "twin":
            return self._beside_twin(cast(str, name), success=success)
        return self._inside(cast(InstanceCalibration, name), success=success)

    def inside(self) -> InstanceScores | None:
        """The scores inside the planted models; None where the study compares with the twin."""
        if self.study.attack.against == "twin":
            return None
        return self.scores.instance(cast(InstanceCalibration, self.study.attack.calibration))

    def others(self) -> OtherAttackers:
        """Inside the planted models, all attackers that the plan allows but the study's own."""
        attack, plan = self.study.attack, self.study.plan
        made: dict[str, ForgettingCurve | Absent] = {}
        names, lost = {}, {}
        for name in CALIBRATIONS:
            if name not in possible(plan):
                made[name] = Absent(_IMPOSSIBLE[name])
            elif not never_planted(plan):
                made[name] = Absent(_NEVER)
            elif attack.against == "never-planted" and name == attack.calibration:
                made[name] = Absent(_OWN)
            else:
                curve = or_absent(self._inside, cast(InstanceCalibration, name))
                made[name] = curve
                if isinstance(curve, Absent):
                    lost[name] = curve.reason
                else:
                    names[name] = attacker(name, self._references(name))
        return OtherAttackers(made, names, lost)

    def control(self) -> ForgettingCurve:
        """The study's own comparison where nothing was planted.

        Raises:
            NotEnoughEvidence: There are no A/A twins, or too few never-planted examples.
        """
        if self.study.attack.against == "twin":
            if not self.study.plan.aa:
                raise NotEnoughEvidence("the plan has no A/A twins")
            return self._beside_twin(cast(str, self.study.attack.calibration), arm="aa")
        scores = self.scores.instance(cast(InstanceCalibration, self.study.attack.calibration))
        return self._instance_curve(scores, control=True)

    def influence(self) -> ForgettingCurve:
        """By scores less those of the trial's own twin, which no attacker has.

        Raises:
            NotEnoughEvidence: There are too few never-planted examples.
        """
        return self._inside("influence")

    def as_in_the_paper(self) -> ForgettingCurve:
        """Planted model against twin, on the canaries alone.

        Raises:
            NotEnoughEvidence: The study's own curve is that already, or there are too few canaries.
        """
        if self.study.attack.against == "twin":
            raise NotEnoughEvidence(_OWN)
        return self._beside_twin(self._papers())

    def kind(self) -> ForgettingCurve:
        """Planted model against twin, on examples that neither of them saw.

        Where trials have canaries of their own, these are the next trial's; else the controls.

        Raises:
            NotEnoughEvidence: There is no such example, or there are too few.
        """
        if not never_planted(self.study.plan):
            raise NotEnoughEvidence(_NEVER)
        return self._beside_twin(self._papers(), rows=self.never_planted_rows())

    def never_planted_rows(self) -> Ints:
        """Examples that each trial never planted: the next trial's canaries, or its controls."""
        plan = self.study.plan
        controls = not plan.fresh_canaries or plan.trials == 1
        trials = [t if controls else (t + 1) % plan.trials for t in range(plan.trials)]
        places = np.arange(self.scores.values.shape[2], dtype=np.int64)
        return np.stack([places[columns(plan, trial, controls=controls)] for trial in trials])

    def _references(self, calibration: str) -> int:
        if calibration != "references":
            return 0
        return self.scores.instance("references").references

    def _papers(self) -> str:
        plan = self.study.plan
        if isinstance(plan, InjectPlan):
            return "checkpoint"
        return "references" if plan.trials > 1 else "none"

    def _inside(
        self, calibration: InstanceCalibration, *, success: Success | None = None
    ) -> ForgettingCurve:
        return self._instance_curve(self.scores.instance(calibration), success=success)

    def _instance_curve(
        self, scores: InstanceScores, *, control: bool = False, success: Success | None = None
    ) -> ForgettingCurve:
        sides: tuple[Any, Any] = (scores.seen, scores.unseen)
        if control:
            sides = scores.control_seen, scores.control_unseen
        groups = tuple(self.scores.clusters(side) for side in scores.groups)
        return self._measured(*sides, success, groups=groups, control_at_zero=True)

    def _beside_twin(
        self,
        calibration: str,
        *,
        arm: str = "planted",
        rows: Ints | None = None,
        success: Success | None = None,
    ) -> ForgettingCurve:
        sides = self.scores.against_twin(calibration, arm=arm, rows=rows)
        poison = isinstance(self.study.plan, PoisonPlan)
        return self._measured(*sides, success, control_at_zero=poison)

    def _measured(
        self, seen: Floats, unseen: Floats, success: Success | None, **choices: Any
    ) -> ForgettingCurve:
        attack = self.study.attack
        return forgetting_curve(
            seen_scores=seen,
            unseen_scores=unseen,
            lags=self.study.lags(),
            success=success or cast(Success, attack.success),
            fpr=attack.fpr,
            confidence=attack.confidence,
            rng=np.random.default_rng([self.study.plan.seed, 2]),
            **choices,
        )


def attacks_of(record: Record, name: str, study: ForgettingStudy) -> Attacks:
    """Read what a record holds of one run.

    Args:
        record: Holds its arrays.
        name: Of the run.
        study: What is asked of it.
    """
    attack = study.attack
    scores = RunScores.of(
        study.plan,
        record.array(f"{name}.signals"),
        attack.signal,
        record.array(f"{name}.near_copies"),
    )
    references, who = 0, _TWIN
    if attack.against == "never-planted":
        if attack.calibration == "references":
            references = scores.instance("references").references
        who = attacker(cast(str, attack.calibration), references)
    elif attack.calibration == "references":
        references = study.plan.trials - 1
    used = AttackUsed(
        against=attack.against,
        calibration=cast(str, attack.calibration),
        signal=attack.signal,
        references=references,
        attacker=who,
    )
    return Attacks(study, scores, used)


def possible(plan: InjectPlan | PoisonPlan) -> tuple[str, ...]:
    """The calibrations that a plan allows."""
    names = ("references",) if plan.trials > 1 else ()
    return (*names, *(("checkpoint",) if isinstance(plan, InjectPlan) else ()), "none")


def attacker(calibration: str, references: int) -> str:
    """Who attacks, by what the scores are compared with."""
    if calibration == "references":
        return with_references(references)
    if calibration == "checkpoint":
        return "an attacker with the checkpoint before planting"
    return MODEL_ALONE
