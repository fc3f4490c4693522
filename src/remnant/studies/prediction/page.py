"""The page of a prediction run: result -> blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import methodcaller

from remnant.records.typed import Absent
from remnant.report.blocks import (
    Bar,
    Beside,
    Block,
    Cell,
    Column,
    Figure,
    Missing,
    Reading,
    Section,
    Stack,
    Table,
    Terms,
    Tile,
    Tiles,
    prose,
    section,
)
from remnant.report.charts.shapes import Chart
from remnant.report.numerals import count_text, counted, epoch_text, percent, short_percent
from remnant.studies.beside.prediction import beside
from remnant.studies.prediction.charts import (
    CHANCE,
    layer_chart,
    loss_chart,
    low_fpr_sentence,
    roc_chart,
    scatter_chart,
    threshold_chart,
    time_chart,
)
from remnant.studies.prediction.result import (
    FlaggedKind,
    Memorisation,
    PredictionResult,
    PredictorComparison,
    PredictorQuality,
    ProtectList,
    by_predictor,
)
from remnant.studies.prediction.sentences import (
    NAMES,
    agreement_sentence,
    base_rate_sentence,
    between_text,
    convention_sentence,
    evidence_sentence,
    false_alarm_sentence,
    flip_sentence,
    in_plain_words,
    moment_sentence,
    name_of,
    needs_of,
    others_text,
    protect_sentence,
    reading_sentences,
    signed_text,
    stated_sentences,
    threshold_sentence,
    threshold_text,
    time_sentence,
)
from remnant.studies.shared.estimates import (
    Estimate,
    ends_text,
    estimate_cell,
    estimate_text,
    rate_cell,
    rate_ends,
)
from remnant.studies.shared.pages import RunFacts, closing, headline, scope_section, task_sentence

TITLE = "Prediction of memorisation"
TEXT_TITLE = "Prediction of memorisation of text"
_SQUARE, _FLAT, _LOW = 410, 240, 340  # heights of charts


def page(result: PredictionResult, run: RunFacts) -> Iterator[Block]:
    """The blocks of a prediction run's page."""
    prediction = result.prediction
    yield headline(result.verdict, {}, checks=beside(result), reading=headline_reading(result))
    if tiles := tuple(_tiles(result)):
        yield Tiles(tiles)
    words = [prose(sentence, tone="lead") for sentence in in_plain_words(result)]
    yield section("In plain words", [*words, prose(task_sentence(result.task), tone="lead")])
    yield section("How good each predictor is", _predictors(prediction))
    yield section("Which samples to protect", _protect(result.protect))
    if not isinstance(prediction, Absent):
        yield section("When to look", _moments(prediction))
        yield from _where(prediction)
    yield section("Is the truth stable?", _truth(result.truth, prediction))
    yield scope_section(result.scope)
    yield section("How to read this", [_terms(result.truth)])
    yield from closing(run, ledger=False)


def headline_reading(result: PredictionResult) -> Reading | None:
    """What the list missed on an independent run; without a check, the first predictor's AUC."""
    protect, prediction = result.protect, result.prediction
    first = None if isinstance(prediction, Absent) else prediction.first
    show: Callable[[float], str]
    if not isinstance(protect, Absent) and protect.check is not None:
        name = "Memorised samples that the list missed on an independent run"
        rate, show, lowest = protect.check.rate, percent, 0.0
        n = counted(protect.check.memorised, "memorised sample")
    elif first is not None:
        name = f"AUC of {name_of(first.predictor)}"
        rate, show = first.auc, _three_digits
        lowest = min(CHANCE, rate.value if rate.low is None else rate.low)
        n = f"{counted(first.n_memorised, 'memorised sample')}, {counted(first.n_others, 'other')}"
    else:
        return None
    return Reading(
        name=name, **rate._asdict(), limit=None, lowest=lowest, highest=1.0, show=show, n=n
    )


def _tiles(result: PredictionResult) -> Iterator[Tile]:
    prediction, truth, protect = result.prediction, result.truth, result.protect
    comparison = None if isinstance(prediction, Absent) else prediction
    if comparison is not None:
        stop = comparison.stop
        remark = f"epochs; median loss down by {percent(stop.dropped)}"
        if not stop.reached:
            remark += f"; {short_percent(stop.drop)} was never reached"
        value = f"{epoch_text(stop.epoch)} of {epoch_text(stop.epochs)}"
        yield Tile("Known after", value, remark)
    if not isinstance(truth, Absent):
        n = None if comparison is None else comparison.samples
        remark = "of its training samples" if n is None else f"of {counted(n, 'training sample')}"
        yield Tile("Memorised in the end", percent(truth.memorised_share), remark)
        remark = (
            f"of the samples that both were trained on; {rate_ends(truth.flip_rate)}, "
            f"{counted(truth.models, 'model')}"
        )
        yield Tile("Two models disagree on", percent(truth.flip_rate.value), remark)
    first = None if comparison is None else comparison.first
    if first is not None:
        remark = f"{ends_text(first.auc)}; guessing gives {CHANCE:g}"
        yield Tile(f"AUC of {name_of(first.predictor)}", f"{first.auc.value:.3f}", remark)
    if not isinstance(protect, Absent):
        yield from _list_tiles(protect)


def _list_tiles(protect: ProtectList) -> Iterator[Tile]:
    remark = (
        f"{count_text(protect.listed)} of {counted(protect.n, 'sample')}; misses at most "
        f"{percent(protect.stated)} of the memorised ones, at {short_percent(protect.confidence)} "
        "confidence"
    )
    yield Tile("Protect", percent(protect.share), remark)
    check = protect.check
    if check is None:
        yield Tile("Missed on an independent run", "not checked", "no run was left")
        return
    remark = (
        f"{count_text(check.missed)} of {count_text(check.memorised)}; {rate_ends(check.rate)}; "
        f"{check.outcome}"
    )
    yield Tile("Missed on an independent run", percent(check.rate.value), remark)


def _predictors(prediction: PredictorComparison | Absent) -> Iterator[Block]:
    if isinstance(prediction, Absent):
        yield Missing("Prediction", prediction.reason, depth="summary")
        return
    first, chart = prediction.first, roc_chart(prediction)
    if first is None:
        yield Missing("Quality of the predictors", "too few samples were memorised")
        return
    if chart is not None:
        words = (
            prose(
                "Each line runs through all thresholds of a predictor: the more memorised samples "
                "it finds (up), the more of the others it flags (to the right). A good line is "
                "near the upper left corner; guessing gives the dotted line. Both axes are "
                f"logarithmic. {low_fpr_sentence(first)}"
            ),
            *(prose(sentence) for sentence in reading_sentences(prediction, first)),
            prose(evidence_sentence(first), tone="note"),
        )
        yield Beside((Figure(chart, key="roc", half=True, height=_SQUARE), Stack(words)))
    yield _quality_table(prediction, first)


def _quality_table(prediction: PredictorComparison, first: PredictorQuality) -> Table:
    return Table(
        caption=(
            f"Predictors at the stop, with {short_percent(prediction.confidence)} intervals over "
            "samples"
        ),
        key="predictors",
        rows=prediction.at_stop,
        columns=(
            Column("Predictor", "predictor", _predictor_cell, depth="summary"),
            Column("AUC", "auc", estimate_cell, strong=True, depth="summary"),
            Column(_fpr_head(prediction), "fpr_at_tpr", rate_cell, strong=True, depth="summary"),
            Column(
                f"Precision of the {count_text(first.k)} riskiest",
                "precision_at_k",
                rate_cell,
                strong=True,
                depth="page",
            ),
            *(
                Column(head, name, rate_cell, strong=True, optional=True, depth="page")
                for head, name in (
                    ("TPR at PSMI ≤ 0", "default_tpr"),
                    ("FPR at PSMI ≤ 0", "default_fpr"),
                )
            ),
            Column("AUC in other runs", _others, optional=True, depth="page"),
        ),
        bar=Bar(
            value="auc.value",
            low="auc.low",
            high="auc.high",
            show=_three_digits,
            mark=("guessing", CHANCE),
        ),
        note=base_rate_sentence(first),
        depth="summary",
    )


def _protect(protect: ProtectList | Absent) -> Iterator[Block]:
    if isinstance(protect, Absent):
        yield Missing("Protect list", protect.reason, depth="summary")
        return
    exceeded = protect.check is not None and not protect.check.held
    yield prose(protect_sentence(protect), tone="notice" if exceeded else "plain")
    yield Terms(stated_sentences(protect))
    if not protect.samples:
        return
    many = len(protect.samples)
    yield Table(
        caption=(
            f"The {'sample' if many == 1 else f'{many} samples'} of highest risk, by "
            f"{name_of(protect.predictor)} at the stop, and whether they were memorised in the end"
        ),
        key="riskiest",
        rows=protect.samples,
        columns=(
            Column("Example", "example"),
            Column("Kind", "kind"),
            Column("Label", "label"),
            Column("Risk", "risk", signed_text),
            Column("Memorised", "memorised", _yes_cell),
        ),
    )


def _moments(prediction: PredictorComparison) -> Iterator[Block]:
    yield prose(time_sentence(prediction.stop))
    yield from _figure(loss_chart(prediction.stop), "loss", height=_FLAT)
    caption = (
        f"Bands: {short_percent(prediction.confidence)} intervals over samples, for each moment "
        f"separately. {moment_sentence(prediction)}"
    ).rstrip()
    yield from _figure(time_chart(prediction), "by-time", height=_LOW, caption=caption)
    if not prediction.by_time:
        return
    yield Table(
        caption="Every early predictor at every moment",
        key="moments",
        rows=prediction.moments,
        columns=(
            Column("Predictor", "predictor", NAMES.__getitem__),
            Column("Epoch", "epoch", epoch_text),
            Column("Step", "step", count_text),
            Column("AUC", "auc", estimate_cell, strong=True),
            Column(_fpr_head(prediction), "fpr_at_tpr", rate_cell, strong=True),
        ),
        fold=f"Every moment ({len(prediction.by_time)} rows)",
    )


def _where(prediction: PredictorComparison) -> Iterator[Section]:
    """Other layers and other thresholds; nothing where there was one of each."""
    layers = len(prediction.layers) > 1
    title = "Where to look, and what counts as memorised" if layers else "What counts as memorised"
    blocks = [*(_by_layer(prediction) if layers else ()), *_by_threshold(prediction)]
    if blocks:
        yield section(title, blocks)


@dataclass(frozen=True, slots=True)
class _Compared:
    """A row of a table with one predictor a column: a layer, or a threshold of LiRA."""

    place: str | float
    rows: tuple[PredictorQuality, ...]

    @property
    def first(self) -> PredictorQuality:
        """Any row says how many samples count as memorised here."""
        return self.rows[0]

    def auc(self, predictor: str) -> Estimate | None:
        """The predictor's AUC here; None where it was not measured."""
        return next((row.auc for row in self.rows if row.predictor == predictor), None)


def _auc_columns(rows: tuple[PredictorQuality, ...]) -> tuple[Column, ...]:
    return tuple(
        Column(NAMES[predictor], methodcaller("auc", predictor), estimate_cell, strong=True)
        for predictor in by_predictor(rows)
    )


def _by_layer(prediction: PredictorComparison) -> Iterator[Block]:
    yield prose(
        "PSMI and the Mahalanobis distance use hidden states, and some layers are more informative "
        f"than others. The rest of this page uses the layer “{prediction.layer}”."
    )
    yield from _figure(layer_chart(prediction), "by-layer", height=_LOW)
    yield Table(
        caption="AUC at the stop, by layer",
        key="layers",
        rows=[
            _Compared(layer, tuple(row for row in prediction.by_layer if row.layer == layer))
            for layer in prediction.layers
        ],
        columns=(Column("Layer", "place"), *_auc_columns(prediction.by_layer)),
    )


def _by_threshold(prediction: PredictorComparison) -> Iterator[Block]:
    if not prediction.by_threshold:
        return
    yield prose(threshold_sentence(prediction))
    yield from _figure(threshold_chart(prediction), "by-threshold", height=_LOW)
    yield Table(
        caption="AUC at the stop, by LiRA’s threshold",
        key="thresholds",
        rows=[
            _Compared(
                threshold,
                tuple(row for row in prediction.by_threshold if row.threshold == threshold),
            )
            for threshold in prediction.thresholds
        ],
        columns=(
            Column("Threshold", "place", threshold_text),
            Column("Memorised", "first.n_memorised", count_text),
            Column("Share", "first.base_rate", percent),
            *_auc_columns(prediction.by_threshold),
        ),
    )


def _truth(
    truth: Memorisation | Absent, prediction: PredictorComparison | Absent
) -> Iterator[Block]:
    if isinstance(truth, Absent):
        yield Missing("What was memorised in the end", truth.reason)
    else:
        figure = _figure(scatter_chart(truth), "scatter", half=True, height=_SQUARE)
        yield Beside((*figure, Stack(tuple(_stability(truth)))))
        if truth.by_kind:
            yield _kinds_table(truth)
    if not isinstance(prediction, Absent) and prediction.canaries:
        yield _flagged_table(prediction.canaries)


def _stability(truth: Memorisation) -> Iterator[Block]:
    sentences = (flip_sentence(truth), false_alarm_sentence(truth), agreement_sentence(truth))
    yield from (prose(sentence) for sentence in sentences if sentence)
    if truth.agreement:
        yield Table(
            caption=f"Do the measures rank {count_text(truth.n)} samples alike? (Spearman)",
            key="agreement",
            rows=truth.agreement,
            columns=(
                Column("Between", between_text),
                Column("Correlation", "estimate", _correlation_cell, strong=True),
            ),
        )
    yield prose(convention_sentence(truth), tone="note")


def _kinds_table(truth: Memorisation) -> Table:
    return Table(
        caption="Means by kind of sample, over all models",
        key="kinds",
        rows=truth.by_kind,
        columns=(
            Column("Kind", "kind"),
            Column("Samples", "n", count_text),
            Column("LiRA’s success rate", "lira", percent),
            Column("Counterfactual memorization", "counterfactual", signed_text),
            Column("RMIA", "rmia", _three_digits),
        ),
    )


def _flagged_table(kinds: tuple[FlaggedKind, ...]) -> Table:
    return Table(
        caption="Training samples of the first model examined, by kind",
        key="flagged",
        rows=kinds,
        columns=(
            Column("Kind", "kind"),
            Column("Samples", "n", count_text),
            Column("Memorised in the end", "memorised", percent),
            Column("Flagged at the stop (PSMI ≤ 0)", "flagged", percent),
            Column("PSMI’s AUC against clean ones", "auc", estimate_text),
        ),
    )


def _terms(truth: Memorisation | Absent) -> Terms:
    threshold = "a threshold" if isinstance(truth, Absent) else threshold_text(truth.threshold)
    return Terms(
        (
            (
                "Memorised",
                "A sample that LiRA detects: the trained model’s output on it fits models that "
                "were trained on it far better than models that were not. LiRA fits a normal "
                "distribution to either group; the log of their likelihood ratio must be at least "
                f"{threshold}. Only samples that the model was trained on are judged.",
            ),
            (
                "PSMI",
                "How well a sample’s hidden state fits its label, in nats, averaged over random "
                "directions. At or below 0 the state fits its own class no better than any other; "
                "the model has yet to learn such a sample by heart. The risk is PSMI with its sign "
                "changed.",
            ),
            (
                "Loss, logit gap, Mahalanobis distance",
                "Baselines of the same cost: the loss on the label, the lead of the right answer "
                "over the next one (low is risky), and the distance of the hidden state from the "
                "others.",
            ),
            (
                "LT-IQR and early LiRA",
                "For comparison. LT-IQR is the spread of a sample’s loss along the run, known only "
                "at the end of the run. Early LiRA is the attack itself at the stop and needs all "
                "models.",
            ),
            (
                "AUC, TPR, FPR",
                "AUC is the probability that a memorised sample has a higher risk than another "
                "one. TPR is the share of the memorised samples that is flagged, FPR that of the "
                "others. A miss is worse than a false alarm, so the FPR is given at a high TPR.",
            ),
            (
                "The interval",
                "How much a number would change with other samples. Variation between training "
                "runs is not included; the column of other runs shows it.",
            ),
            (
                "A finding",
                "A list of samples to protect has no limit on harm, so there is no PASS or FAIL: "
                "the page says how many samples to protect, what the list may miss, and what an "
                "independent run showed.",
            ),
        )
    )


def _figure(
    chart: Chart | None, key: str, *, height: int, half: bool = False, caption: str = ""
) -> Iterator[Figure]:
    """A chart, where there is something to draw."""
    if chart is not None:
        yield Figure(chart, key=key, caption=caption, half=half, height=height)


def _fpr_head(prediction: PredictorComparison) -> str:
    return f"FPR at TPR {short_percent(prediction.tpr)}"


def _others(row: PredictorQuality) -> str | None:
    return others_text(row.others) if row.others else None


def _predictor_cell(predictor: str) -> Cell:
    return Cell(NAMES[predictor], needs_of(predictor))


def _correlation_cell(correlation: Estimate) -> Cell:
    ends = f"{signed_text(correlation.low)} to {signed_text(correlation.high)}"
    return Cell(signed_text(correlation.value), ends)


def _yes_cell(flag: bool) -> Cell:
    return Cell("yes", strong=True) if flag else Cell("no")


def _three_digits(value: float) -> str:
    return f"{value:.3f}"
