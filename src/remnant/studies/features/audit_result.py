"""The result of an audit of one model for one patch, as ``remnant feature --out`` stores it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from remnant.records.outcomes import Outcome
from remnant.records.typed import Absent, optional
from remnant.studies.features.result import PatchPlace, PictureRow, require_shares
from remnant.studies.features.sentences import nats_text
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.result_parts import Finding, Gate, Tested

QUESTION = "feature-audit"
Side = Literal["model", "twin"]
SIDES: tuple[Side, ...] = ("model", "twin")
SCORE_NAMES = ("black_box", "white_box", "gain")
NEVER_PLANTED = {
    "pixels": "patches of the same pixels that were never planted",
    "words": "other words that were never planted",
}
"""What a patch is ranked among, in words."""
NULL_VALUES = "{}_null_values"
"""Name of the array with M of the model, or of the twin, for each patch never planted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One score of one model.

    Attributes:
        value: With its interval over images.
        confidence: Of that interval.
        p_value: From the rank among patches never planted.
        rank, nulls: The rank, and the number of patches never planted.
        null_median, null_largest: Of the scores of those patches.
        t_test_p_value: The paper's test; None where all images give the same number.
        carried_by_few: Whether a few images make up most of the score.
        images: How many it was measured on.
        method, convention: How it was computed, in words.
    """

    value: Estimate
    confidence: float
    p_value: float
    rank: int
    nulls: int
    null_median: float
    null_largest: float
    t_test_p_value: float | None
    carried_by_few: bool
    images: int
    method: str
    convention: str

    def __post_init__(self) -> None:
        require_shares(confidence=(self.confidence,), p_value=(self.p_value,))
        if self.t_test_p_value is not None:
            require_shares(t_test_p_value=(self.t_test_p_value,))

    @property
    def place(self) -> str:
        """The rank, such as ``3 of 200``."""
        return f"{self.rank} of {self.nulls + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScores:
    """The scores of one model.

    Attributes:
        black_box: M on any images.
        white_box, gain: M_w, and what the patch adds to the label's probability; None where no
            label was given.
    """

    black_box: Score
    white_box: Score | None
    gain: Score | None


class ScoreRow(NamedTuple):
    """A row of the table of scores: of which model, which score."""

    side: Side
    name: str
    score: Score


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCheck:
    """Whether the model learnt its task, the positive control of a PASS.

    Attributes:
        images: Labelled images.
        right: Images of which the model names the label.
        low: Lower bound of that share.
        majority: Share of the commonest label.
        p_value: Share of renamings of the classes that would be right as often.
        learnt: Whether this is evidence that it learnt its task.
    """

    images: int
    right: int
    low: float
    majority: float
    p_value: float
    learnt: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchVariantScore:
    """How the model reacts to a variant of the patch.

    Attributes:
        name: The variant, in words.
        value: M, in nats.
        p_value: Its rank among the same variants of patches never planted.
        contrary: Whether it contradicts a PASS: p is at or under the significance after Holm's
            correction, or without it where M is not under the limit.
    """

    name: str
    value: float
    p_value: float
    contrary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchControl:
    """The controls of a patch.

    Attributes:
        untested: Why no copy was tested; empty where one was.
        trained: Images with the patch that the copy was trained on.
        passes: Over these images, and as many without it and with other patches.
        p_value: Of M of that copy; None where none was tested.
        level: At or under which it shows the patch.
        variants: Of the patch, tested on the model itself.
    """

    untested: str = ""
    trained: int = 0
    passes: int = 0
    p_value: float | None = None
    level: float
    variants: tuple[PatchVariantScore, ...]

    @property
    def found(self) -> bool:
        """Whether the gate finds the patch in a copy that was trained on it."""
        return self.p_value is not None and self.p_value <= self.level

    @property
    def reason(self) -> str:
        """Why there can be no PASS; empty where there can."""
        contrary = [variant for variant in self.variants if variant.contrary]
        if contrary:
            most = min(contrary, key=lambda variant: variant.p_value)
            return (
                f"The model reacts to the patch {most.name}: p = {most.p_value:.2g}, M is "
                f"{nats_text(most.value)} nats. Give the patch as it looked in the training images."
            )
        if self.untested:
            return f"It was not tested whether this patch can be found: {self.untested}."
        if not self.found:
            return (
                "The positive control failed: in a copy of the model that was trained on "
                f"{self.trained} images with this patch the same test does not find it "
                f"(p = {self.p_value:.2g}; {self.level:.2g} is needed), so a limit on M shows "
                "nothing. Check that the patch can be seen, or give more --nulls."
            )
        return ""

    @property
    def claim(self) -> str:
        """What a PASS says about its controls."""
        return (
            f"In a copy that was trained on {self.trained} images with the patch the same test "
            f"finds it (p = {self.p_value:.2g}); of {len(self.variants)} variants of the patch it "
            "finds none in the model."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What was asked and what was measured. It repeats verdict and scope, for scripts.

    Attributes:
        outcome, claim, limit: Of the gate; None without a limit.
        headline, advice: Of the finding; None with a limit.
        rules: Version of the rules that judged it; None in older records.
        p_values: Of the tested scores, corrected for their number.
        task: None without a limit or without labelled images.
        patch_control: None where no PASS depended on it, and in older records.
        files: Names of the files, by option.
        outputs: What the model's answers were taken for.
        images, shape: How many images, and the shape of one.
        label: Class that the patch may be planted under; None where none was given.
        against: Whether it is ranked among shuffled pixels or among other words.
        beyond_twin: M of the model less the twin's; None without a twin.
        report: Path of the report, in what the command prints.
        pictures: Where the record holds pictures; None in what the command prints.
    """

    outcome: Outcome | None = None
    headline: str | None = None
    advice: str | None = None
    claim: str | None = None
    sentence: str
    rules: int | None = optional()
    significance: float
    confidence: float
    limit: float | None = None
    p_values: tuple[float, ...]
    task: TaskCheck | None = None
    patch_control: PatchControl | None = optional()
    patch: PatchPlace
    files: dict[str, str]
    outputs: str
    images: int
    shape: tuple[int, ...]
    label: int | None
    control: str
    against: Literal["pixels", "words"]
    seed: int
    model: ModelScores
    twin: ModelScores | None
    beyond_twin: Estimate | None
    tested: tuple[str, ...]
    not_tested: tuple[str, ...]
    report: str | None = None
    pictures: tuple[PictureRow, ...] | None = optional()

    def __post_init__(self) -> None:
        require_shares(
            significance=(self.significance,),
            confidence=(self.confidence,),
            p_values=self.p_values,
        )

    @property
    def main(self) -> Score:
        """M of the model."""
        return self.model.black_box

    @property
    def scores(self) -> tuple[ScoreRow, ...]:
        """All scores: of the model, then of the twin."""
        return tuple(
            ScoreRow(side, name, score)
            for side in SIDES
            if (scores := getattr(self, side)) is not None
            for name in SCORE_NAMES
            if (score := getattr(scores, name)) is not None
        )

    @property
    def never_planted(self) -> str:
        """What the patch is ranked among, in words."""
        return NEVER_PLANTED[self.against]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedAudit(Audit):
    """An audit with a limit: its row has the fields of a gate's row; the lag is always None."""

    lag: float | None
    detected: bool | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FeatureAuditResult(QuestionResult):
    """What an audit of one patch stores."""

    ROWS: ClassVar[tuple[str, ...]] = ("audit.scores",)

    verdict: Finding | Gate | Absent
    scope: Tested | Absent
    audit: GatedAudit | Audit | Absent
