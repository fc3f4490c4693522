"""What an audit of one's own training found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from remnant.measures.forgetting.one_run_attackers import MODEL_ALONE, TWO_CHECKPOINTS
from remnant.records.typed import Absent, optional
from remnant.studies.exposure.result import (
    ExposureByRepeats,
    ExposureGate,
    Exposures,
    ReferenceCosts,
)
from remnant.studies.one_run.result import AttackerAtEnd, OneRunCurves
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.result_parts import Finding, Tested

NO_COINS = Absent("canaries were not included by coins, or no delta was given")
NO_EXAMPLES = Absent("the canaries are of a template, or nothing was planted")


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelAtStep:
    """Canaries planted equally often, at one step.

    Attributes:
        step: How many updates the model had.
        repeats: How often they were planted; 0 for the controls.
        n: How many they are.
        mean_bits: Mean exposure among the references; saturated values enter with what the
            references can show.
        saturated: How many of them no reference was as cheap as.
    """

    step: int
    repeats: int
    n: int
    mean_bits: float
    saturated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Exposure along the training, ranked among a few references.

    Attributes:
        references: Secrets that canaries were ranked among.
        ceiling_bits: The most that they can show.
        rows: By step, then by how often planted.
    """

    references: int
    ceiling_bits: float
    rows: tuple[LevelAtStep, ...]

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps at which canaries were scored."""
        return tuple(dict.fromkeys(row.step for row in self.rows))

    def level(self, repeats: int) -> tuple[LevelAtStep, ...]:
        """The canaries planted so often, step by step."""
        return tuple(row for row in self.rows if row.repeats == repeats)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """Which canaries were really in training batches.

    Attributes:
        planted: Canaries that were planted.
        seen: How many of them were in at least one batch.
        uses: How often canaries were in batches, all together.
        fewest, most: Uses of one planted canary.
        first_step, last_step: The updates of the first and the last use; None where there was none.
        context: Tokens before the canary's own in a training row.
        controls: Controls that were in a batch, where none may be; None where there were none.
    """

    planted: int
    seen: int
    uses: int
    fewest: int
    most: int
    first_step: int | None
    last_step: int | None
    context: int
    controls: int | None = optional()

    @property
    def trained_controls(self) -> str:
        """Why there is no claim where controls were in batches; empty where none was."""
        if not self.controls:
            return ""
        those = "control was" if self.controls == 1 else "controls were"
        return f"{self.controls} {those} in batches that were trained on, where no control may be."


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """What scoring cost the training.

    Attributes:
        scored: Steps at which canaries were scored.
        skipped: Steps that were left out to stay within the budget.
        scoring_seconds, training_seconds: Training includes the scoring.
        allowed: The share of training time that scoring may take; None for any.
    """

    scored: int
    skipped: int
    scoring_seconds: float
    training_seconds: float
    allowed: float | None

    @property
    def share(self) -> float | None:
        """Scoring's share of the training time."""
        return self.scoring_seconds / self.training_seconds if self.training_seconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """How fast the training forgets canaries after their last use.

    Attributes:
        curves: Attack success against steps since the last use, by window of last use.
        control: Whether the attack found the canaries at any checkpoint, in a sentence.
        found: Whether it did; where it did not, a success near chance says nothing.
        fewest, most: Uses of one canary.
    """

    curves: OneRunCurves
    control: str
    found: bool
    fewest: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedLevel:
    """Attack success on examples planted equally often.

    Attributes:
        repeats: How often they were planted.
        n: How many they are.
        auc, auc_low, auc_high: AUC against the controls, with its interval.
        tpr, tpr_low, tpr_high: The share of them flagged at the false-positive rate, with its
            interval.
        p_value: Of a rank-sum test against the controls, corrected for the number of tests.
    """

    repeats: int
    n: int
    auc: float
    auc_low: float
    auc_high: float
    tpr: float
    tpr_low: float
    tpr_high: float
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedExample:
    """One planted example among the controls.

    Attributes:
        number: Of the example, in the order of the audit's file of canaries, from 1.
        repeats: How often it was planted.
        uses: How often it was in a batch.
        bits: ``log2(controls + 1)`` less the log of its rank among the controls.
        low: Lower end of its interval.
        high: Upper end; None where no control scores as high.
        saturated: True where no control scores as high: read ``bits`` as "at least".
    """

    number: int
    repeats: int
    uses: int
    bits: float
    low: float
    high: float | None
    saturated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AucAtStep:
    """AUC against the controls at one step, of examples planted equally often."""

    step: int
    repeats: int
    n: int
    auc: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedExamples:
    """Attack success on planted examples of one's own, against controls.

    Attributes:
        kind: What the examples are.
        levels: By how often they were planted.
        examples: Each planted example.
        course: AUC by step, then by how often planted.
        controls: How many there are.
        controls_drawn: Whether they were drawn at random from one pool with the planted ones.
        score: What the attack compares, in words.
        calibrated: Whether each example's score before training was subtracted.
        attacker: Whose success it is, in words; None in older records.
        references: Reference models that scores are compared with.
        others: Other attackers on the examples that are judged; None in older records.
        fpr: The false-positive rate of the TPR.
        ceiling_bits: The most bits that a rank among the controls can show.
        found: Whether the attack found a group of planted examples (the positive control).
        control: The same in a sentence.
        confidence: Of the intervals.
        method: The intervals' construction, in words.
    """

    kind: Literal["texts", "images"]
    levels: tuple[DetectedLevel, ...]
    examples: tuple[RankedExample, ...]
    course: tuple[AucAtStep, ...]
    controls: int
    controls_drawn: bool
    score: str
    calibrated: bool
    fpr: float
    ceiling_bits: float
    found: bool
    control: str
    confidence: float
    method: str
    attacker: str | None = optional()
    references: int | None = optional()
    others: tuple[AttackerAtEnd, ...] | None = optional()

    @property
    def who(self) -> str:
        """Whose success it is, in words."""
        return self.attacker or (TWO_CHECKPOINTS if self.calibrated else MODEL_ALONE)

    @property
    def less(self) -> str:
        """What the attack takes from a score, to be put after the score; empty for nothing."""
        if self.references:
            return ", compared with the same in models that did not see it"
        return ", less the same before training" if self.calibrated else ""

    @property
    def saturated(self) -> int:
        """Planted examples that no control scores as high as."""
        return sum(example.saturated for example in self.examples)

    @property
    def highest(self) -> DetectedLevel:
        """The level with the highest AUC."""
        return max(self.levels, key=lambda level: level.auc)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEpsilon:
    """A lower bound on the training's ε, from canaries that fair coins put into it or left out.

    Attributes:
        value: The bound; 0 where the guesses show no leak.
        claimed: The ε that the training claims; None where it claims none.
        delta: The δ of both.
        confidence: One-sided, of the bound.
        largest: The highest bound that so many canaries can show.
        guesses: Canaries about which the attack guessed, of those numbers tried the best.
        correct: Correct guesses.
        canaries: Canaries that had a coin.
        included: How many of them were planted.
        attacker: Who made the guesses, in words; None in older records.
        needed: How many canaries it takes to exceed the claim if every guess is correct; None where
            there were enough, or there is no claim, or more than 20 000 would be needed.
    """

    value: float
    claimed: float | None
    delta: float
    confidence: float
    largest: float
    guesses: int
    correct: int
    canaries: int
    included: int
    needed: int | None = None
    attacker: str | None = optional()

    @property
    def could_exceed(self) -> bool:
        """Whether so many canaries can show more than the claimed ε."""
        return self.claimed is None or self.largest > self.claimed

    @property
    def exceeds(self) -> bool:
        """Whether the bound is above the claimed ε."""
        return self.claimed is not None and self.value > self.claimed


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TrainingAuditResult(QuestionResult):
    """What an audit of one training found.

    Attributes:
        verdict: A gate where a limit was set, else a finding.
        exposure: Of every canary and control in the trained model.
        repeats: Mean exposure by how often canaries were planted.
        costs: Of the references.
        course: Exposure along the training.
        forgetting: Attack success by steps since the last use.
        sightings: Which canaries were in batches.
        overhead: What scoring cost.
        detection: Attack success on examples of one's own, which have no exposure.
        epsilon: A lower bound on the training's ε.
    """

    ROWS: ClassVar[tuple[str, ...]] = (
        "exposure.canaries",
        "exposure.controls",
        "detection.examples",
    )

    verdict: ExposureGate | Finding | Absent
    exposure: Exposures | Absent
    repeats: ExposureByRepeats | Absent
    costs: ReferenceCosts | Absent
    course: Course | Absent
    forgetting: Forgetting | Absent
    sightings: Sightings | Absent
    overhead: Overhead | Absent
    scope: Tested | Absent
    detection: DetectedExamples | Absent = NO_EXAMPLES
    epsilon: MeasuredEpsilon | Absent = NO_COINS

    @property
    def exposure_gate(self) -> ExposureGate | None:
        """The verdict where it is about exposure."""
        verdict = self.verdict
        return verdict if isinstance(verdict, ExposureGate) and not self.claim_is_broken else None

    @property
    def claim_is_broken(self) -> bool:
        """Whether the measured ε exceeds the claimed one, which the verdict is then about."""
        return isinstance(self.epsilon, MeasuredEpsilon) and self.epsilon.exceeds
