"""The recipe of a forgetting study on images: INJECT or POISON, the attack, residual memory."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from remnant.errors import PlanError, RemnantWarning, require
from remnant.measures import SUCCESSES
from remnant.plans import InjectPlan, PoisonPlan
from remnant.plans.bounds import FromZero, Share, one_of
from remnant.plans.plan import fingerprint
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.settings import ClassifierStudy, Section, limit_faults
from remnant.studies.shared.study import Recipe
from remnant.studies.shared.variants import ComparedStudy, Variant, check_threshold, label_faults

AGAINST = ("never-planted", "twin")
CALIBRATIONS = ("references", "checkpoint", "none")
SIGNALS = ("log-odds", "loss")
# Spellings of version 0.2: calibration and signal.
_SPELLED = {
    "logit": ("checkpoint", "log-odds"),
    "loss": ("checkpoint", "loss"),
    "twins": ("references", "log-odds"),
}
_DECIDES = 3  # trials, from which on other trials' twins are references by default


@dataclass(frozen=True, kw_only=True)
class AttackSettings(Section, name="attack"):
    """How success is measured, and the limit that the verdict is about.

    Attributes:
        success: Measure of success, named before the run.
        fpr: False-positive rate at which precision and TPR are read.
        confidence: Confidence of the intervals.
        against: What planted examples are distinguished from. ``never-planted``: examples drawn
            the same way that the same model never saw; success is memory of single examples.
            ``twin``: the same examples in a model that skipped the planting, as in the paper;
            success is also what was learnt of their kind.
        calibration: What each score is compared with: ``references`` (the other trials' unplanted
            models at the same step), ``checkpoint`` (the model before planting) or ``none``. Not
            set: ``references``; ``checkpoint`` for INJECT with one or two trials or against the
            twin; ``none`` for POISON with one trial. Names of version 0.2: ``logit`` is
            ``checkpoint``, ``loss`` is ``checkpoint`` with ``signal = "loss"``, ``twins`` is
            ``references``; for POISON, ``logit`` and ``loss`` are ``references``.
        signal: What is read off a model: ``log-odds`` of the label, or its ``loss``.
        limit: Success at the last lag must be below this.
        lags: Lags to measure at, in steps. Empty: a grid up to the last step.
    """

    success: Annotated[str, one_of(SUCCESSES)] = "precision"
    fpr: Share = 0.1
    confidence: Share = 0.95
    against: Annotated[str, one_of(AGAINST)] = "never-planted"
    calibration: Annotated[str, one_of((*CALIBRATIONS, *_SPELLED))] | None = None
    signal: Annotated[str, one_of(SIGNALS)] = "log-odds"
    limit: Share = 0.7
    lags: tuple[FromZero, ...] = ()

    def _contradictions(self) -> list[str]:
        faults = limit_faults(self)
        implied = _SPELLED.get(self.calibration or "", ("", "log-odds"))[1]
        if self.calibration in _SPELLED and self.signal not in ("log-odds", implied):
            faults.append(
                f"attack.calibration={self.calibration!r} of version 0.2 reads {implied}, and "
                f"attack.signal={self.signal!r}: name one of {', '.join(CALIBRATIONS)}"
            )
        return faults

    def resolved(self, plan: InjectPlan | PoisonPlan) -> AttackSettings:
        """Return the settings with a calibration of this version, named for this plan."""
        poison = isinstance(plan, PoisonPlan)
        if self.calibration in _SPELLED:
            calibration, signal = _SPELLED[self.calibration]
            if poison and calibration == "checkpoint":
                calibration = "references"  # which version 0.2 did without saying so
            return dataclasses.replace(self, calibration=calibration, signal=signal)
        if self.calibration is not None:
            return self
        few = plan.trials < (2 if poison else _DECIDES)
        calibration = "references"
        if few or (self.against == "twin" and not poison):
            calibration = "none" if poison else "checkpoint"
        return dataclasses.replace(self, calibration=calibration)


@dataclass(frozen=True, kw_only=True)
class ForgettingStudy(ComparedStudy, ClassifierStudy):
    """A forgetting study on images: the plan and everything else that changes its numbers.

    Attributes:
        plan: INJECT or POISON.
        label: What the study itself is called beside its variants.
        title: Of the figure that shows them together.
        compare: Variants; each has its own twins. A/A twins are the study's choice for all of them
            (``plan.aa``), so that variants of as many trials have as many reference models.
        hidden: How to search for memory that the attack no longer finds; None scans the checkpoints
            only. Variants are not searched.
    """

    QUESTION: ClassVar[str] = "forgetting"
    SECTIONS: ClassVar[tuple[str, ...]] = (
        "data",
        "canaries",
        "model",
        "training",
        "attack",
        "hidden",
    )

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
        named = self.attack.calibration
        object.__setattr__(self, "attack", self.attack.resolved(self.plan))
        if named in _SPELLED and self.attack.against == "never-planted":
            warnings.warn(
                f"attack.calibration={named!r} is a name of version 0.2 and is read as "
                f"{self.attack.calibration!r}. This study distinguishes planted from never-planted "
                "examples inside one model; attack.against='twin' compares with the twin, as 0.2 "
                "did.",
                RemnantWarning,
                stacklevel=2,
            )
        faults += self._attack_faults()
        if self.hidden is not None and self.plan.trials < 2:
            faults.append("[hidden] compares trials before and after and needs trials >= 2")
        require(faults, error=PlanError, hint="Fix the recipe.")
        if self.attack.success in ("precision", "tpr"):
            self._check_threshold()
        self.lags()

    def _attack_faults(self) -> list[str]:
        plan, attack, faults = self.plan, self.attack, []
        if attack.calibration == "checkpoint" and isinstance(plan, PoisonPlan):
            faults.append(
                "attack.calibration='checkpoint' needs a checkpoint before planting, and POISON "
                "plants from the first step: use 'references' or 'none'"
            )
        if attack.calibration == "references" and plan.trials < 2:
            faults.append(
                "attack.calibration='references' is by the other trials' unplanted models and "
                "needs trials >= 2; with one trial use "
                + ("'none'" if isinstance(plan, PoisonPlan) else "'checkpoint' or 'none'")
            )
        if attack.against == "never-planted" and not never_planted(plan):
            faults.append(
                "attack.against='never-planted' needs examples that a trial never planted: give "
                "each trial its own canaries (plan.fresh_canaries = true, plan.trials = 8), or set "
                "plan.controls"
            )
        return faults

    def _check_threshold(self) -> None:
        plan, fpr = self.plan, self.attack.fpr
        if self.attack.against == "twin":
            check_threshold("plan.canaries", plan.canaries, fpr, more="Plant more canaries")
        else:
            self.check_unseen(never_planted(plan))

    def check_unseen(self, count: int) -> None:
        """Refuse too few never-planted examples for a threshold.

        Args:
            count: In the trial that has the fewest.

        Raises:
            NotEnoughEvidence: There are too few.
        """
        name = "the number of never-planted examples"
        check_threshold(name, count, self.attack.fpr, more="Set plan.controls")

    def parts(self) -> dict[str, ForgettingStudy]:
        """Return the study alone and its variants, by name."""
        made = {"primary": dataclasses.replace(self, compare=())}
        for i, variant in enumerate(self.compare, start=1):
            plan = dataclasses.replace(variant.study.plan, aa=self.plan.aa)
            part = dataclasses.replace(variant.study, plan=plan, compare=(), hidden=None)
            made[f"variant{i}"] = part
        return made


def never_planted(plan: InjectPlan | PoisonPlan) -> int:
    """How many examples each planted model is scored on that it never saw."""
    if not plan.fresh_canaries:
        return plan.controls
    return (plan.trials - 1) * plan.canaries + plan.trials * plan.controls


def controls_as_neighbours(plan: InjectPlan | PoisonPlan, settings: HiddenSettings) -> int:
    """How many of each trial's controls a disturbance trains on; 0 where others are drawn.

    Where trials share their canaries, controls are all that was never planted, so they are kept.
    """
    enough = plan.fresh_canaries and plan.controls >= settings.neighbours
    return settings.neighbours if settings.relearn_steps and enough else 0


def runs_of(parts: Mapping[str, ForgettingStudy]) -> dict[str, str]:
    """Return the run that each part reads: its own, or an earlier one trained the same way."""
    known: dict[str, str] = {}
    return {name: known.setdefault(_training(part), name) for name, part in parts.items()}


def _training(study: ForgettingStudy) -> str:
    plain = study.to_dict()
    names = ("plan", "canaries", "model", "training")
    return fingerprint([*(plain[name] for name in names), plain["attack"]["lags"]])


RECIPE = Recipe(
    study=ForgettingStudy,
    example={"plan": {"canaries": 32, "step": 100, "watch_steps": 600, "trials": 8}},
)
