"""The result of ``remnant predict``: which samples a model is predicted to memorise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from remnant.records.outcomes import finding_row
from remnant.records.typed import Result, optional
from remnant.report.numerals import plain_spaces
from remnant.studies.command_result import CommandResult
from remnant.studies.prediction.sentences import share_text
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.result_parts import Finding, Tested
from remnant.studies.shared.wording import counted

QUESTION = "early-prediction"
SAMPLES_FILE = "samples.csv"
"""Beside the record: one row a sample."""
SampleRow = dict[str, Any]
"""A row of the list: index, label, each predictor by its name, rank, and whether it is listed.

Values are texts, numbers and None.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotMeasured:
    """What was not measured, and why."""

    absent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What the hidden states of one layer give.

    Attributes:
        layer: Its name.
        features: How many numbers a hidden state has.
        smi: Sliced mutual information of hidden states and labels, in nats.
        psmi_at_most_0: Samples with a PSMI of 0 or less.
        mahalanobis_components: Principal components that the distance is measured in.
    """

    layer: str
    features: int
    smi: float
    psmi_at_most_0: int
    mahalanobis_components: int | NotMeasured


@dataclass(frozen=True, slots=True, kw_only=True)
class UncheckedMoment:
    """Why it is not known whether the model was read at the right moment.

    Attributes:
        median_loss: Of the training samples now; None where losses are not known.
    """

    absent: str
    median_loss: float | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Whether the training loss has dropped enough.

    Attributes:
        start_median_loss, median_loss: Before training, and now.
        dropped: Share by which it has dropped.
        drop: Share that is needed.
        reached: Whether it has dropped enough.
    """

    start_median_loss: float
    median_loss: float
    dropped: float
    drop: float
    reached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The prediction compared with the truth.

    Attributes:
        memorised: How many samples were memorised.
        auc, fpr_at_tpr: Of the risk; the second at the true-positive rate ``tpr``.
        confidence: Of all intervals, over samples.
        missed, miss_rate: Memorised samples that are not listed.
        listed_and_memorised: Listed samples that were memorised.
    """

    memorised: int
    auc: Estimate
    fpr_at_tpr: Estimate
    tpr: float
    confidence: float
    missed: int
    miss_rate: Estimate
    listed_and_memorised: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EarlyResult(Result):
    """Everything that ``remnant predict --json`` prints.

    Attributes:
        n, classes: Samples, and classes among them.
        accuracy: Share of samples that the model gives their label; None without logits.
        layers: The first one decides.
        stop: Whether the model was read at the right moment.
        by, rule: The predictor that decides, and how the list was made, in words.
        listed, share: Listed samples, and their share.
        riskiest: The first few samples by risk, whether listed or not.
        truth: How good the list is.
        miss_rate_unknown: True without the truth.
        warnings: What speaks against this prediction, in sentences.
        out: Path of ``--out``: the file with one row a sample, or the folder of the record.
    """

    ROWS: ClassVar[tuple[str, ...]] = ("riskiest",)

    n: int
    classes: int
    accuracy: float | None
    layers: tuple[Layer, ...]
    stop: Moment | UncheckedMoment
    by: str
    rule: str
    listed: int
    share: float
    riskiest: tuple[SampleRow, ...]
    truth: Truth | NotMeasured
    miss_rate_unknown: bool
    warnings: tuple[str, ...]
    out: str | None

    @property
    def shown(self) -> tuple[SampleRow, ...]:
        """The riskiest samples that are listed; where none is, the riskiest of all."""
        return self.riskiest[: self.listed or None]


EarlyCommand = CommandResult[Finding, EarlyResult]


def recorded(result: EarlyResult) -> EarlyCommand:
    """Return a result with its finding."""
    truth = result.truth
    not_tested = ["whether these samples are memorised: this is a prediction"]
    if isinstance(truth, NotMeasured):
        missed = ""
        not_tested.append("how many memorised samples the list misses")
    else:
        missed = f" It misses {truth.missed} of {counted(truth.memorised, 'memorised sample')}."
    return CommandResult(
        verdict=Finding(
            **finding_row(
                headline=f"{result.listed} of {counted(result.n, 'sample')} predicted to be "
                "memorised",
                sentence=plain_spaces(
                    f"The list holds {share_text(result.share)} of the samples: "
                    f"{result.rule}.{missed}"
                ),
                advice="Protect the samples on the list, or leave them out of the training.",
            )
        ),
        measured=result,
        scope=Tested(
            tested=(
                f"{counted(result.n, 'sample')} of {counted(result.classes, 'class', 'classes')}",
            ),
            not_tested=tuple(not_tested),
        ),
    )
