"""Which samples a model is predicted to memorise, from its answers at one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.measures import prediction_quality, stopping_point
from remnant.measures.prediction.predicted import PredictedMemorisation, predicted_memorisation
from remnant.measures.prediction.quality import miss_rate
from remnant.report.numerals import count_text, plain_spaces
from remnant.studies.prediction.early_result import (
    EarlyResult,
    Layer,
    Moment,
    NotMeasured,
    Truth,
    UncheckedMoment,
)
from remnant.studies.prediction.sentences import share_text, short_name_of
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.wording import counted

DROP, TPR, CONFIDENCE = 0.95, 0.75, 0.95
SHOWN = 10
# Under this share of samples that are given another class, wrong labels have been learnt as well.
LATE = 0.005


@dataclass(frozen=True, slots=True, eq=False)
class SampleAnswers:
    """What a model makes of the samples.

    Attributes:
        labels: One a sample.
        hidden: Hidden states of each layer, the first of which decides.
        layers: Their names.
        predicted, losses, logit_gaps: The model's answers; None where they are not known.
        start_losses: Of the model before training; None where they are not known.
        name: The name of a label.
    """

    labels: NDArray[Any]
    hidden: tuple[NDArray[Any], ...]
    layers: tuple[str, ...]
    predicted: NDArray[Any] | None
    losses: NDArray[Any] | None
    logit_gaps: NDArray[Any] | None
    start_losses: NDArray[Any] | None
    name: Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRule:
    """How the list is made: by which predictor, and how long; without a length, PSMI of 0 or less.

    Attributes:
        by: The predictor.
        share, top: The riskiest share, or the riskiest so many; None where not given.
    """

    by: str
    share: float | None = None
    top: int | None = None

    @property
    def text(self) -> str:
        """The rule in words."""
        name = short_name_of(self.by)
        if self.share is not None:
            return f"the riskiest {share_text(self.share)} by {name}"
        if self.top:
            return f"the riskiest {plain_spaces(count_text(self.top))} by {name}"
        return "PSMI at or under 0"


@dataclass(frozen=True, slots=True, eq=False)
class EarlyPrediction:
    """A prediction with everything that its result says.

    Attributes:
        answers: Of the model.
        layers: The prediction from each layer; the first decides.
        rule: How the list is made.
        listed: Samples on the list, the riskiest first.
        truth: The prediction compared with the truth; None where that was not given.
    """

    answers: SampleAnswers
    layers: tuple[PredictedMemorisation, ...]
    rule: ListRule
    listed: NDArray[np.int64]
    truth: Truth | None

    @property
    def main(self) -> PredictedMemorisation:
        """The prediction that decides."""
        return self.layers[0]


def layer_predictions(
    answers: SampleAnswers, *, directions: int, list_alone: bool, seed: int
) -> tuple[PredictedMemorisation, ...]:
    """Predict from each layer, along the same random directions.

    Args:
        answers: Of the model.
        directions: How many directions PSMI projects on.
        list_alone: Whether samples that are alone in their class are listed without a PSMI.
        seed: Draws the directions.

    Raises:
        InvalidInput, NotEnoughEvidence: Of ``predicted_memorisation``.
    """
    return tuple(
        predicted_memorisation(
            hidden=hidden,
            labels=answers.labels,
            losses=answers.losses,
            logit_gaps=answers.logit_gaps,
            directions=directions,
            list_alone=list_alone,
            rng=np.random.default_rng(seed),
        )
        for hidden in answers.hidden
    )


def early_prediction(
    answers: SampleAnswers,
    layers: tuple[PredictedMemorisation, ...],
    rule: ListRule,
    memorised: NDArray[np.bool_] | None,
    *,
    seed: int,
) -> EarlyPrediction:
    """Make the list, and compare it with the truth.

    Args:
        answers: Of the model.
        layers: What ``layer_predictions`` gives.
        rule: How the list is made.
        memorised: The truth, one a sample; None where it is not known.
        seed: Of the bootstrap.

    Raises:
        InvalidInput, NotEnoughEvidence: The rule does not fit, or there are fewer than four
            memorised samples, or no other.
    """
    listed = layers[0].protect(share=rule.share, top=rule.top, by=rule.by)
    truth = None if memorised is None else _truth(layers[0], listed, memorised, rule.by, seed)
    return EarlyPrediction(answers, layers, rule, listed, truth)


def _truth(
    prediction: PredictedMemorisation,
    listed: NDArray[np.int64],
    memorised: NDArray[np.bool_],
    by: str,
    seed: int,
) -> Truth:
    kept = ~prediction.alone if by == "psmi" else np.ones(prediction.n, dtype=np.bool_)
    quality = prediction_quality(
        risk=prediction.psmi.risk if by == "psmi" else prediction.risk(by),
        memorised=memorised[kept],
        threshold=0.0 if by == "psmi" else None,
        tpr=TPR,
        confidence=CONFIDENCE,
        rng=np.random.default_rng(seed),
    )
    on_list = np.isin(np.arange(prediction.n), listed)
    return Truth(
        memorised=int(memorised.sum()),
        auc=Estimate.of(quality.auc),
        fpr_at_tpr=Estimate.of(quality.fpr_at_tpr),
        tpr=TPR,
        confidence=CONFIDENCE,
        missed=int(np.sum(memorised & ~on_list)),
        miss_rate=Estimate.of(
            miss_rate(listed=on_list, memorised=memorised, confidence=CONFIDENCE)
        ),
        listed_and_memorised=int(np.sum(memorised & on_list)),
    )


def sample_rows(early: EarlyPrediction) -> list[dict[str, Any]]:
    """Return one row a sample, in their order; None where there is no number."""
    answers, n = early.answers, early.main.n
    columns: dict[str, list[Any]] = {"index": list(range(n))}
    columns["label"] = [answers.name(label) for label in answers.labels]
    columns["predicted"] = [
        None if label is None else answers.name(label) for label in _column(answers.predicted, n)
    ]
    columns["loss"] = _column(answers.losses, n)
    columns["logit_gap"] = _column(answers.logit_gaps, n)
    for number, (layer, name) in enumerate(zip(early.layers, answers.layers, strict=True)):
        end = f":{name}" if number else ""
        columns[f"psmi{end}"] = _filled(layer, layer.psmi.values)
        columns[f"psmi_standard_error{end}"] = _filled(layer, layer.psmi.standard_error)
        far = None if layer.mahalanobis is None else layer.mahalanobis.distances
        columns[f"mahalanobis{end}"] = _column(far, n)
    ranks = np.empty(n, dtype=np.int64)
    ranks[early.main.order(early.rule.by)] = np.arange(1, n + 1)
    columns["rank"] = ranks.tolist()
    columns["listed"] = np.isin(np.arange(n), early.listed).astype(int).tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def early_result(early: EarlyPrediction, *, out: Path | None = None) -> EarlyResult:
    """Return the result; ``out`` is the path of the file with one row a sample."""
    answers, main = early.answers, early.main
    rows = sample_rows(early)
    right = None if answers.predicted is None else answers.predicted == answers.labels
    moment = _moment(answers)
    return EarlyResult(
        n=main.n,
        classes=len(np.unique(answers.labels)),
        accuracy=None if right is None else float(np.mean(right)),
        layers=tuple(map(_layer, answers.layers, answers.hidden, early.layers)),
        stop=moment,
        by=early.rule.by,
        rule=early.rule.text,
        listed=len(early.listed),
        share=len(early.listed) / main.n,
        riskiest=tuple(rows[at] for at in main.order(early.rule.by)[:SHOWN].tolist()),
        truth=early.truth or NotMeasured(absent="no --memorised was given"),
        miss_rate_unknown=early.truth is None,
        warnings=tuple(_warnings(early, moment)),
        out=None if out is None else str(out),
    )


def _layer(name: str, hidden: NDArray[Any], prediction: PredictedMemorisation) -> Layer:
    distances = prediction.mahalanobis
    return Layer(
        layer=name,
        features=int(hidden.shape[1]),
        smi=prediction.psmi.smi,
        psmi_at_most_0=int(np.sum(prediction.psmi.values <= 0.0)),
        mahalanobis_components=NotMeasured(absent=prediction.no_mahalanobis)
        if distances is None
        else distances.components,
    )


def _moment(answers: SampleAnswers) -> Moment | UncheckedMoment:
    """Whether the training loss has dropped enough, or why that is not known."""
    now, start = answers.losses, answers.start_losses
    if now is None:
        return UncheckedMoment(absent="losses are not known without logits")
    if start is None:
        return UncheckedMoment(absent="no --start was given", median_loss=float(np.median(now)))
    first, last = float(np.median(start)), float(np.median(now))
    dropped = float(stopping_point(losses=[first, last], drop=DROP).dropped[1])
    return Moment(
        start_median_loss=first,
        median_loss=last,
        dropped=dropped,
        drop=DROP,
        reached=dropped >= DROP - 1e-12,
    )


def _warnings(early: EarlyPrediction, moment: Moment | UncheckedMoment) -> Iterator[str]:
    """What speaks against this prediction."""
    answers = early.answers
    if isinstance(moment, Moment) and not moment.reached:
        yield (
            f"too early: the median training loss has dropped by {share_text(moment.dropped)}, and "
            f"the rule asks for {share_text(DROP)}. Train on, and look again."
        )
    if answers.predicted is not None:
        wrong = float(np.mean(answers.predicted != answers.labels))
        if wrong < LATE:
            yield (
                f"late: the model gives {share_text(1 - wrong)} of the samples their label, so "
                "that much of what was to be predicted has happened; loss and logit gap say "
                "little now. Take an earlier checkpoint."
            )
    alone = int(early.main.alone.sum())
    if alone:
        yield (f"{counted(alone, 'sample')} alone in the class: listed first, without a PSMI.")


def _column(values: NDArray[Any] | None, n: int) -> list[Any]:
    return [None] * n if values is None else values.tolist()


def _filled(prediction: PredictedMemorisation, values: NDArray[Any]) -> list[Any]:
    """Values of the samples that have one, None for those that are alone in their class."""
    given = iter(values.tolist())
    return [None if alone else next(given) for alone in prediction.alone]
