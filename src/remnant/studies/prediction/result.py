"""The result of a prediction study: what was memorised, how well it was predicted, the list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

from remnant.errors import require
from remnant.records.typed import Absent, optional
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.result_parts import ClassifierTask, Finding, Tested

Predictor = Literal["psmi", "loss", "logit_gap", "mahalanobis", "lt_iqr", "early_lira"]
PREDICTORS: tuple[Predictor, ...] = get_args(Predictor)
TruthMeasure = Literal["lira", "counterfactual", "rmia"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoints:
    """A predictor's false and true positive rates, from no sample flagged to all of them."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]

    def __post_init__(self) -> None:
        faults = _unequal(fpr=self.fpr, tpr=self.tpr)
        for name, column in (("fpr", self.fpr), ("tpr", self.tpr)):
            rises = all(later >= earlier for earlier, later in pairwise(column))
            if not rises or column[:1] != (0.0,) or column[-1:] != (1.0,):
                faults.append(f".{name} does not rise from 0 to 1")
        require(faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorQuality:
    """One predictor at one moment, compared with what was memorised in the end.

    Attributes:
        predictor: Which one.
        layer: Whose hidden states it used.
        step, epoch: The moment, in updates and in passes over the training half.
        threshold: LiRA's log ratio from which a sample counts as memorised.
        n_memorised, n_others: Samples on either side.
        base_rate: Share of memorised samples, which is the precision of random guessing.
        k: How many of the riskiest samples ``precision_at_k`` is about.
        auc: Probability that a memorised sample has a higher risk than another one.
        fpr_at_tpr: Share of the others flagged where a fixed share of the memorised ones is.
        precision_at_k: Share of memorised samples among the k riskiest.
        default_tpr, default_fpr: Shares flagged by the predictor's own threshold; None where it
            has none.
        others: AUC on the other targets.
        curve: All operating points; None where they were not kept.
    """

    predictor: Predictor
    layer: str
    step: int
    epoch: float
    threshold: float
    n_memorised: int
    n_others: int
    base_rate: float
    k: int
    auc: Estimate
    fpr_at_tpr: Estimate
    precision_at_k: Estimate
    default_tpr: Estimate | None
    default_fpr: Estimate | None
    others: tuple[float, ...]
    curve: OperatingPoints | None

    def __post_init__(self) -> None:
        rates = ("auc", "fpr_at_tpr", "precision_at_k", "default_tpr", "default_fpr")
        require(_no_shares(self, "base_rate", *rates))


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStop:
    """When the first target was examined, and how its median training loss fell.

    Attributes:
        step, epoch: Of the stop.
        dropped: Share of the initial median loss that was gone by then.
        drop: The share that the recipe demands.
        reached: Whether that share was reached; if not, the stop is the moment that came closest.
        steps, epochs: Of the whole training.
        at_step, at_epoch, median_loss, dropped_at: At every moment, the first before any update.
    """

    step: int
    epoch: float
    dropped: float
    drop: float
    reached: bool
    steps: int
    epochs: float
    at_step: tuple[int, ...]
    at_epoch: tuple[float, ...]
    median_loss: tuple[float, ...]
    dropped_at: tuple[float, ...]

    def __post_init__(self) -> None:
        faults = _no_shares(self, "drop")
        faults += _unequal(
            at_step=self.at_step,
            at_epoch=self.at_epoch,
            median_loss=self.median_loss,
            dropped_at=self.dropped_at,
        )
        if any(later <= earlier for earlier, later in pairwise(self.at_epoch)):
            faults.append(".at_epoch do not rise")
        require(faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlaggedKind:
    """Samples of one kind that the first target was trained on.

    Attributes:
        kind: ``clean``, or the kind of canary.
        n: How many there are.
        memorised: Share that was memorised in the end.
        flagged: Share with a PSMI of at most 0 at the stop.
        auc: Of PSMI, these samples against the clean ones; None for the clean ones.
    """

    kind: str
    n: int
    memorised: float
    flagged: float
    auc: Estimate | None

    def __post_init__(self) -> None:
        require(_no_shares(self, "memorised", "flagged", "auc"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorComparison:
    """How well the predictors did.

    Attributes:
        models: In the pool.
        targets: How many of them were examined early.
        layer: The main one.
        confidence: Of all intervals.
        tpr: At which the false-positive rate is given.
        smi: Mean PSMI over the samples at the stop, in nats.
        stop: When the first target was examined.
        quality: One row a predictor: the first target, at the stop, main layer and threshold.
        by_time: The early predictors at every moment after the start.
        by_layer: Those that use hidden states, at the stop, at every layer.
        by_threshold: At the stop, for several thresholds of LiRA.
        canaries: Planted kinds of samples and the clean ones.
    """

    models: int
    targets: int
    layer: str
    confidence: float
    tpr: float
    smi: float
    stop: EarlyStop
    quality: tuple[PredictorQuality, ...]
    by_time: tuple[PredictorQuality, ...]
    by_layer: tuple[PredictorQuality, ...]
    by_threshold: tuple[PredictorQuality, ...]
    canaries: tuple[FlaggedKind, ...]

    def __post_init__(self) -> None:
        require(_no_shares(self, "confidence", "tpr"))

    @property
    def at_stop(self) -> tuple[PredictorQuality, ...]:
        """The rows of ``quality`` in the order of ``PREDICTORS``."""
        return tuple(sorted(self.quality, key=_place))

    @property
    def first(self) -> PredictorQuality | None:
        """The first predictor at the stop; None where too few samples were memorised."""
        return next(iter(self.at_stop), None)

    @property
    def samples(self) -> int | None:
        """How many training samples the first target has; None where there is no row."""
        return None if self.first is None else self.first.n_memorised + self.first.n_others

    @property
    def moments(self) -> tuple[PredictorQuality, ...]:
        """The rows of ``by_time`` in the order of predictors, then of epochs."""
        return tuple(sorted(self.by_time, key=lambda row: (_place(row), row.epoch)))

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that were compared, in their order."""
        return tuple(dict.fromkeys(row.layer for row in sorted(self.by_layer, key=_place)))

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The thresholds of LiRA that were compared, the lowest first."""
        return tuple(sorted({row.threshold for row in self.by_threshold}))


def by_predictor(
    rows: tuple[PredictorQuality, ...],
) -> dict[Predictor, tuple[PredictorQuality, ...]]:
    """Rows of each predictor, in the order of ``PREDICTORS``."""
    return {
        name: mine
        for name in PREDICTORS
        if (mine := tuple(row for row in rows if row.predictor == name))
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthAgreement:
    """Spearman's correlation of two measures of memorisation, with its interval."""

    first: TruthMeasure
    second: TruthMeasure
    value: float
    low: float
    high: float

    @property
    def estimate(self) -> Estimate:
        """The correlation with the ends of its interval."""
        return Estimate(self.value, self.low, self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthScatter:
    """Some samples: LiRA's success rate and counterfactual memorization of each."""

    lira: tuple[float, ...]
    counterfactual: tuple[float, ...]

    def __post_init__(self) -> None:
        faults = _unequal(lira=self.lira, counterfactual=self.counterfactual)
        if any(not 0 <= rate <= 1 for rate in self.lira):
            faults.append(".lira has entries that are not between 0 and 1")
        require(faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class KindMemorisation:
    """Means over the samples of one kind, whichever models were trained on them."""

    kind: str
    n: int
    lira: float
    counterfactual: float
    rmia: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Memorisation:
    """What was memorised in the end, and how reliable that is.

    Attributes:
        models, n: Of the pool, and samples.
        signal, convention: What LiRA measured on the models, and how.
        threshold: The log ratio from which a sample counts as memorised.
        memorised_share: Of the first target's training samples.
        false_alarms: Of each target, the estimated share of false positives among the samples
            called memorised, from samples that it was not trained on; None in older records.
        false_alarm_limit: Above which a target neither makes nor checks the protect list; None in
            older records.
        flip_rate: How often two models that were trained on a sample disagree about it.
        persistence: How often what one model memorised is memorised by another one that was
            trained on it too; None where it is not known.
        agreement: Between the measures of memorisation.
        scatter: Two of the measures for some samples.
        by_kind: Planted kinds of samples and the clean ones.
    """

    models: int
    n: int
    signal: str
    convention: str
    threshold: float
    memorised_share: float
    false_alarms: tuple[float, ...] | None = optional()
    false_alarm_limit: float | None = optional()
    flip_rate: Estimate
    persistence: float | None
    agreement: tuple[TruthAgreement, ...]
    scatter: TruthScatter
    by_kind: tuple[KindMemorisation, ...]

    def __post_init__(self) -> None:
        shares = ("memorised_share", "flip_rate", "persistence", "false_alarm_limit")
        require(_no_shares(self, *shares))

    @property
    def unfit(self) -> int:
        """How many targets have too many false positives to make or check the list."""
        limit = self.false_alarm_limit
        if limit is None or self.false_alarms is None:
            return 0
        return sum(share > limit for share in self.false_alarms)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCheck:
    """The list's rule on a run that was not used to make it.

    Attributes:
        memorised, missed: Samples, and how many of them are not on the list.
        rate: The share missed.
        held: Whether it is within the stated rate.
        chance: Probability that a run like those that made the rule misses as many; None in
            older records.
        refuted: Whether that is too unlikely for chance.
        model: The run's number in the pool.
    """

    memorised: int
    missed: int
    rate: Estimate
    held: bool
    chance: float | None = optional()
    refuted: bool
    model: int

    def __post_init__(self) -> None:
        faults = _no_shares(self, "rate", "chance")
        if self.missed > self.memorised:
            faults.append(".missed is more than were memorised")
        require(faults)

    @property
    def outcome(self) -> str:
        """Whether the list kept to its stated rate, in a few words."""
        if self.held:
            return "held"
        return "not held" if self.refuted else "exceeded within chance"


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskySample:
    """One sample of the list.

    Attributes:
        example: Its number in the data.
        kind: ``clean``, or the kind of canary.
        label: Its class.
        risk: By the list's predictor; higher = more likely to be memorised.
        memorised: Whether it was in the end.
    """

    example: int
    kind: str
    label: int
    risk: float
    memorised: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectList:
    """The samples to protect.

    Attributes:
        predictor: By whose risk the list is made.
        miss: Largest share of memorised samples that it may leave out.
        confidence: Of the stated rate.
        stated: Bound on the share of memorised samples that it leaves out.
        share, listed, n: Share and number of samples on the list, of how many.
        runs: How many runs made the rule.
        missed: Share that it leaves out on each of them.
        unfit: Targets with too many false positives to make or check the rule; None in older
            records.
        check: On another run; None where there was none left.
        samples: The riskiest, the first one first.
    """

    predictor: Predictor
    miss: float
    confidence: float
    stated: float
    share: float
    listed: int
    n: int
    runs: int
    missed: tuple[float, ...]
    unfit: tuple[int, ...] | None = optional()
    check: ListCheck | None
    samples: tuple[RiskySample, ...]

    def __post_init__(self) -> None:
        require(_no_shares(self, "miss", "confidence", "stated", "share"))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictionResult(QuestionResult):
    """Everything that a study of predicting memorisation measures.

    Attributes:
        verdict: A finding, since a list of samples has no limit on harm.
        prediction: How well the predictors did.
        truth: What was memorised in the end.
        protect: The list.
        task: How useful the models are.
        scope: What was tested.
    """

    ROWS: ClassVar[tuple[str, ...]] = ("protect.samples",)

    verdict: Finding | Absent
    prediction: PredictorComparison | Absent
    truth: Memorisation | Absent
    protect: ProtectList | Absent
    task: ClassifierTask | Absent
    scope: Tested | Absent

    @classmethod
    def upgrade(cls, parts: dict[str, Any], version: int) -> dict[str, Any]:
        """Fill in what older records lack: a check that was not held counted as refuted."""
        protect = parts.get("protect")
        check = protect.get("check") if isinstance(protect, Mapping) else None
        if not isinstance(protect, Mapping) or not isinstance(check, Mapping):
            return parts
        if check.get("refuted") is not None or not isinstance(check.get("held"), bool):
            return parts
        known = {"check": {**check, "refuted": not check["held"]}}
        return {**parts, "protect": {**protect, **known}}


def _place(row: PredictorQuality) -> int:
    return PREDICTORS.index(row.predictor)


def _unequal(**columns: tuple[Any, ...]) -> list[str]:
    """A fault for every column that is not as long as the first."""
    (first, expected), *others = columns.items()
    return [
        f".{name} has {len(column)} entries for {len(expected)} {first}"
        for name, column in others
        if len(column) != len(expected)
    ]


def _no_shares(part: Any, *names: str) -> list[str]:
    """A fault for every number, or number with an interval, that is not between 0 and 1."""
    faults = []
    for name in names:
        value = getattr(part, name)
        if isinstance(value, Estimate):
            if not value.is_share:
                faults.append(f".{name} has entries that are not between 0 and 1")
        elif value is not None and not 0 <= value <= 1:
            faults.append(f".{name} is not between 0 and 1")
    return faults
