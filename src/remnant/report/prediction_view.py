"""The view of a run that asked early which samples will be memorised."""

from __future__ import annotations

from dataclasses import dataclass

from remnant.report.run_view import NotMeasured, RunView

PREDICTORS = ("psmi", "loss", "logit_gap", "mahalanobis", "lt_iqr", "early_lira")
TRUTHS = ("lira", "counterfactual", "rmia")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with both ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Roc:
    """A predictor's operating points, from none flagged to all of them."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Quality:
    """One predictor, at one moment, held against what was memorised in the end.

    Attributes:
        predictor: One of ``PREDICTORS``.
        layer: Whose hidden states it read.
        step, epoch: The moment, in updates and in passes over the training half.
        threshold: LiRA's log ratio from which a sample counts as memorised.
        n_memorised, n_others: Samples on either side.
        base_rate: Share of memorised samples: the precision of one who knows nothing.
        k: How many of the riskiest samples ``precision_at_k`` is about.
        auc: The chance that a memorised sample has the higher risk.
        fpr_at_tpr: Share of the others flagged where a fixed share of the memorised ones is.
        precision_at_k: Share of memorised samples among the k riskiest.
        default_tpr, default_fpr: Shares flagged by the predictor's own threshold; None where it
            has none.
        others: AUC of the other targets.
        roc: All operating points; None where they were not kept.
    """

    predictor: str
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
    roc: Roc | None


@dataclass(frozen=True, slots=True)
class Stop:
    """When the first target was looked at, and how its median loss fell.

    Attributes:
        step, epoch: Of the stop.
        dropped: Share of the first median loss that was gone by then.
        drop: The share asked for.
        reached: Whether it ever was; if not, the stop is the moment that came closest.
        steps, epochs: Of the whole training.
        at_epoch, median_loss: At every moment, the first before any update.
    """

    step: int
    epoch: float
    dropped: float
    drop: float
    reached: bool
    steps: int
    epochs: float
    at_epoch: tuple[float, ...]
    median_loss: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Flagged:
    """Samples of one kind that the first target saw: memorised in the end, flagged early.

    The AUC takes them for the truth, against the clean samples; None for those.
    """

    kind: str
    n: int
    memorised: float
    flagged: float
    auc: Estimate | None


@dataclass(frozen=True, slots=True)
class Prediction:
    """How well the predictors did.

    Attributes:
        models: Of the pool.
        targets: How many of them were looked at early.
        layer: The main one.
        confidence: Of all intervals.
        tpr: At which the false-positive rate is read.
        smi: Mean of PSMI over the samples, in nats.
        quality: One row a predictor: the first target, at the stop, main layer and threshold.
        by_time: The early predictors at every moment after the start.
        by_layer: Those that read hidden states, at the stop, at every layer.
        by_threshold: At the stop, for several thresholds of LiRA.
        kinds: Planted kinds of samples and the clean ones.
        forward_passes: What rule and predictors cost, in passes over the training half; None
            where it was not counted.
    """

    models: int
    targets: int
    layer: str
    confidence: float
    tpr: float
    smi: float
    stop: Stop
    quality: tuple[Quality, ...]
    by_time: tuple[Quality, ...]
    by_layer: tuple[Quality, ...]
    by_threshold: tuple[Quality, ...]
    kinds: tuple[Flagged, ...]
    forward_passes: float | None

    @property
    def samples(self) -> int | None:
        """How many training samples the first target has; None where no row tells."""
        if not self.quality:
            return None
        return self.quality[0].n_memorised + self.quality[0].n_others

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that were compared, in their order."""
        return tuple(dict.fromkeys(row.layer for row in self.by_layer))


def lines_of(rows: tuple[Quality, ...]) -> dict[str, tuple[Quality, ...]]:
    """Rows by predictor, in the order in which the predictors first come."""
    found: dict[str, list[Quality]] = {}
    for row in rows:
        found.setdefault(row.predictor, []).append(row)
    return {predictor: tuple(mine) for predictor, mine in found.items()}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Spearman's correlation of two truths about the same samples."""

    first: str
    second: str
    value: Estimate


@dataclass(frozen=True, slots=True)
class KindTruth:
    """Mean truths about samples of one kind, whichever models saw them."""

    kind: str
    n: int
    lira: float
    counterfactual: float
    rmia: float


@dataclass(frozen=True, slots=True)
class Truth:
    """What was memorised in the end, and how far that can be relied on.

    Attributes:
        models, n: Of the pool, and samples.
        signal, convention: What LiRA read off the models, and how.
        threshold: The log ratio from which a sample counts as memorised.
        memorised_share: Of the first target's training samples.
        flip_rate: How often two models that saw a sample disagree whether it is memorised.
        persistence: How often what one model memorised is memorised by another that saw it too;
            None where it is not known.
        false_alarms: Of each target, the share of what it is said to have memorised that is to be
            taken for chance, going by samples that it never saw; empty where it is not known.
        false_alarm_limit: Up to which a target makes and checks the protect list.
        agreements: Between the truths.
        lira, counterfactual: Some samples: LiRA's success rate, counterfactual memorization.
        kinds: Planted kinds of samples and the clean ones.
    """

    models: int
    n: int
    signal: str
    convention: str
    threshold: float
    memorised_share: float
    flip_rate: Estimate
    persistence: float | None
    false_alarms: tuple[float, ...]
    false_alarm_limit: float
    agreements: tuple[Agreement, ...]
    lira: tuple[float, ...]
    counterfactual: tuple[float, ...]
    kinds: tuple[KindTruth, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """The list's rule on a run that had no part in making it.

    Attributes:
        model: Its number in the pool.
        memorised, missed: Samples, and how many of them the rule left out.
        rate: The same as a share.
        held: Whether the share was within the stated rate.
        chance: How likely a run like those that made the rule misses as many; None where it was
            not recorded.
        refuted: Whether that is too unlikely for chance.
    """

    model: int
    memorised: int
    missed: int
    rate: Estimate
    held: bool
    chance: float | None
    refuted: bool


@dataclass(frozen=True, slots=True)
class RiskySample:
    """One sample of the list.

    Attributes:
        example: Its number in the data.
        risk: By the list's predictor, higher = more likely memorised.
        memorised: Whether it was in the end.
    """

    example: int
    kind: str
    label: int
    risk: float
    memorised: bool


@dataclass(frozen=True, slots=True)
class Protect:
    """The samples to protect.

    Attributes:
        predictor: By whose risk the list is made.
        miss: Largest share of memorised samples that it may leave out.
        confidence: Of the stated rate.
        stated: The false-negative rate that is stated.
        share, listed, n: What is listed, of how many.
        runs: From how many runs the rule was made.
        check: On another run, or None where there was none to spare.
        samples: The riskiest, the first one first.
    """

    predictor: str
    miss: float
    confidence: float
    stated: float
    share: float
    listed: int
    n: int
    runs: int
    check: Check | None
    samples: tuple[RiskySample, ...]


@dataclass(frozen=True, slots=True)
class PredictionView(RunView):
    """Everything a report shows of a run that predicts memorisation."""

    prediction: Prediction | NotMeasured
    truth: Truth | NotMeasured
    protect: Protect | NotMeasured
