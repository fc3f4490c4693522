"""The page of ``remnant predict``, and of its record."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from remnant.report.blocks import Block, Column, Table, Tile, Tiles, prose, section
from remnant.report.numerals import count_text, counted
from remnant.studies.beside.prediction import of_early
from remnant.studies.command_result import record_page
from remnant.studies.prediction.early_result import (
    EarlyCommand,
    EarlyResult,
    NotMeasured,
    Truth,
    UncheckedMoment,
)
from remnant.studies.prediction.sentences import share_text
from remnant.studies.shared.estimates import estimate_text
from remnant.studies.shared.pages import RunFacts

TITLE = "Samples predicted to be memorised"
UNKNOWN = (
    "How many of the samples that will be memorised are not on it is unknown without the truth "
    '(--memorised); a recipe with question = "prediction" measures it on shadow models.'
)


def early_blocks(result: EarlyResult) -> Iterator[Block]:
    """What was measured, the riskiest samples, and how good the list is."""
    for line in _lines(result):
        yield prose(line, depth="show")
    yield _samples(result)
    if isinstance(result.truth, NotMeasured):
        yield prose(UNKNOWN, depth="show")
    else:
        yield from _truth(result.truth)


def _lines(result: EarlyResult) -> Iterator[str]:
    right = ""
    if result.accuracy is not None:
        right = f"; the model gives {share_text(result.accuracy)} of them their label"
    yield f"{counted(result.n, 'sample')}, {result.classes} classes{right}"
    for layer in result.layers:
        yield f"{layer.layer}: {counted(layer.features, 'feature')}, SMI {layer.smi:.3f} nats"
    yield drop_sentence(result)
    for warning in result.warnings:
        yield f"warning, {warning}"
    yield (
        f"predicted to be memorised: {count_text(result.listed)} of {count_text(result.n)} "
        f"({share_text(result.share)}): {result.rule}"
    )


def drop_sentence(result: EarlyResult) -> str:
    """How far the training loss has dropped, or why that is not known."""
    stop = result.stop
    if isinstance(stop, UncheckedMoment):
        return f"whether the model was read at the right moment was not checked: {stop.absent}"
    return (
        f"the median training loss has dropped by {share_text(stop.dropped)} from the start "
        f"({stop.start_median_loss:.3g} to {stop.median_loss:.3g})"
    )


def _samples(result: EarlyResult) -> Table:
    return Table(
        caption="The riskiest samples",
        key="samples",
        rows=result.shown,
        columns=(
            Column("Rank", itemgetter("rank")),
            Column("Index", itemgetter("index")),
            Column("Label", itemgetter("label")),
            Column("Predicted", itemgetter("predicted")),
            Column("Loss", itemgetter("loss"), "{:.2f}".format),
            Column("Logit gap", itemgetter("logit_gap"), "{:.2f}".format),
            Column("PSMI", itemgetter("psmi"), "{:.2f}".format),
            Column("s.e.", itemgetter("psmi_standard_error"), "{:.3f}".format),
            Column("Mahalanobis", itemgetter("mahalanobis"), "{:.1f}".format),
        ),
        depth="show",
    )


def _truth(truth: Truth) -> Iterator[Block]:
    yield prose(
        f"compared with the truth ({counted(truth.memorised, 'memorised sample')}; "
        f"{share_text(truth.confidence)} intervals over samples):",
        depth="show",
    )
    missed = f"{count_text(truth.missed)} of {count_text(truth.memorised)}"
    yield Tiles(
        (
            Tile("AUC", estimate_text(truth.auc)),
            Tile(f"FPR at a TPR of {share_text(truth.tpr)}", estimate_text(truth.fpr_at_tpr)),
            Tile("missed by the list", estimate_text(truth.miss_rate), missed),
        ),
        depth="show",
    )


def page(result: EarlyCommand, run: RunFacts) -> Iterator[Block]:
    """Yield the page of a record."""
    yield from record_page(
        result,
        run,
        lambda measured: [section("The prediction", early_blocks(measured))],
        heading="The prediction",
        what="The prediction",
        checks=of_early(result),
    )
