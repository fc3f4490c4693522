"""The recipe of a prediction study: when targets are examined, and what counts as memorised."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from remnant.errors import PlanError
from remnant.plans import ShadowPlan
from remnant.plans.bounds import (
    Count,
    FromZero,
    Positive,
    Share,
    ShareOrAll,
    at_least,
    distinct_texts,
    one_of,
)
from remnant.studies.shared.settings import Classifiers, Section
from remnant.studies.shared.study import Recipe

EARLY = ("psmi", "loss", "logit_gap", "mahalanobis")  # one model, one pass
CENTRES = ("mean", "median")
VARIANCES = ("per_example", "pooled", "global")
TRUTH_SIGNALS = ("log_odds", "logit_gap")

_DENSE = (0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
_GROWTH = 1.2  # of the epochs between later moments


@dataclass(frozen=True, kw_only=True)
class PredictSettings(Section, name="predict"):
    """When and where the targets are examined, and what the protect list must achieve.

    Attributes:
        targets: Models that are examined early: members 0, 2, 4, ... of the plan. All but the last
            determine the rule of the protect list; the last one checks it.
        moments: Epochs at which they are examined. Empty: a grid that becomes sparser.
        drop: Drop of the median loss, as a share of its first value, at which prediction stops.
        layers: Names of the layers whose hidden states are used; ``last`` is the input of the last
            dense layer, and of your own network the output of ``model.options.hidden``. The first
            one is the main one.
        directions: Random directions of PSMI.
        components: Largest number of principal components of the Mahalanobis distance.
        predictor: Predictor that makes the protect list.
        miss: Largest share of memorised samples that the list may miss.
        limit: Largest share of samples that the list may hold.
        tpr: True-positive rate at which the false-positive rate is read.
        confidence: Confidence of the intervals.
        list_confidence: Confidence that the list of the next run keeps the stated miss rate.
    """

    targets: Count = 4
    moments: tuple[Positive, ...] = ()
    drop: Share = 0.95
    layers: Annotated[tuple[str, ...], distinct_texts("names of layers")] = ("last",)
    directions: Annotated[int, at_least(2)] = 2000
    components: Count = 500
    predictor: Annotated[str, one_of(EARLY)] = "psmi"
    miss: Share = 0.2
    limit: Share = 0.5
    tpr: Share = 0.75
    confidence: Share = 0.95
    list_confidence: Share = 0.9

    def steps(self, *, epoch: float, last: int) -> tuple[int, ...]:
        """Return after how many updates targets are looked at: 0 first, ``last`` last.

        Args:
            epoch: Updates in an epoch.
            last: Updates of the whole training.

        Raises:
            PlanError: A moment lies beyond the end.

        Example:
            >>> PredictSettings().steps(epoch=10, last=60)
            (0, 2, 4, 6, 8, 10, 15, 20, 30, 40, 50, 60)
        """
        if beyond := [moment for moment in self.moments if round(moment * epoch) > last]:
            raise PlanError(
                f"predict.moments={beyond} are beyond the {last / epoch:g} epochs of training.",
                hint="Raise the plan's steps or drop these moments.",
            )
        wanted = list(self.moments)
        if not wanted:
            wanted = list(_DENSE)
            while wanted[-1] * _GROWTH * epoch < last:  # 9.6, 11.5, 13.8, ...
                wanted.append(wanted[-1] * _GROWTH)
        grid = {round(moment * epoch) for moment in wanted} | {0, last}
        return tuple(sorted(step for step in grid if step <= last))


@dataclass(frozen=True, kw_only=True)
class PlantedSettings(Section, name="canaries"):
    """How many canaries of each kind are added; half of the models see each.

    Attributes:
        mislabelled: Images with a wrong label.
        odd: Images of blocks of random brightness, with random labels.
        blank: Images of one random colour, with random labels.
    """

    mislabelled: FromZero = 0
    odd: FromZero = 0
    blank: FromZero = 0

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind."""
        return {"mislabelled": self.mislabelled, "odd": self.odd, "blank": self.blank}


@dataclass(frozen=True, kw_only=True)
class TruthSettings(Section, name="truth"):
    """What counts as memorised at the end.

    Attributes:
        signal: Score of the models that LiRA and counterfactual memorisation use.
        centre: Centre of local LiRA; the global one always uses means.
        variance: Variance of local LiRA; the global one always uses per-example variances. One
            variance for all samples is the default: with about fifty models those of single samples
            are so uncertain that some samples look memorised by chance.
        threshold: A sample is memorised where the log ratio of local LiRA is at least this.
        thresholds: Further thresholds for which prediction is compared with the truth.
        false_alarms: Largest share of estimated false positives among the memorised samples of a
            target, estimated from samples that it never saw. Targets above it neither determine nor
            check the rule.
    """

    signal: Annotated[str, one_of(TRUTH_SIGNALS)] = "logit_gap"
    centre: Annotated[str, one_of(CENTRES)] = "mean"
    variance: Annotated[str, one_of(VARIANCES)] = "pooled"
    threshold: float = 4.0
    thresholds: tuple[float, ...] = (0.0, 2.0, 4.0, 6.0, 8.0)
    false_alarms: ShareOrAll = 0.2


@dataclass(frozen=True, kw_only=True)
class PredictionStudy(Classifiers):
    """One question, whole: the plan and all that changes its numbers."""

    QUESTION: ClassVar[str] = "prediction"
    SECTIONS: ClassVar[tuple[str, ...]] = (
        "data",
        "canaries",
        "model",
        "training",
        "predict",
        "truth",
    )

    plan: ShadowPlan
    canaries: PlantedSettings = field(default_factory=PlantedSettings)
    predict: PredictSettings = field(default_factory=PredictSettings)
    truth: TruthSettings = field(default_factory=TruthSettings)

    def __post_init__(self) -> None:
        if self.model.maker is not None and self.model.hidden is None:
            raise PlanError(
                f"model.maker={self.model.maker!r}: prediction reads hidden states, and the recipe "
                "does not say which layer gives them.",
                hint='Name a submodule of the network, such as options = { hidden = "body.norm" }.',
            )
        check_shadow_study(self.plan, self.predict)


def check_shadow_study(plan: ShadowPlan, predict: PredictSettings) -> None:
    """Refuse a plan that cannot be judged.

    Raises:
        PlanError: Too few models for the truth or the targets, or no halves.
    """
    least = max(8, 2 * predict.targets)
    if plan.models < least or plan.models % 2:
        raise PlanError(
            f"plan.models={plan.models} is not an even number of at least {least}, which the "
            f"truth about {predict.targets} targets takes.",
            hint="Train more models, or look at fewer targets.",
        )
    if plan.fraction != 0.5:
        raise PlanError(
            f"plan.fraction={plan.fraction} is not 0.5: prediction is judged on pairs of halves.",
            hint="Leave fraction out.",
        )


RECIPE = Recipe(study=PredictionStudy, example={"plan": {"models": 48, "steps": 500}})
