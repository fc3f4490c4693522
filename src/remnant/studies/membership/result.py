"""What an audit of a finished model with two sets of records found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from remnant.measures import Success
from remnant.records.typed import Absent, optional
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.result_parts import Finding, Gate, Task, Tested

Side = Literal["seen", "unseen"]
AS_A_FIELD = "Write the text that the model was trained on into a field, and name it with --field."
NUMBERED = 10  # rows of a kind whose numbers are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackRow:
    """How well one attack distinguishes seen records from unseen ones.

    Attributes:
        name: Of the attack, such as ``"loss"``.
        description: What its score is, in words.
        named: Whether it is the one that was named before the run and that a gate judges.
        auc: With its two-sided interval.
        tpr: True-positive rate at the audit's false-positive rate, with its interval; None where
            there are too few unseen records for that rate.
        p_value: One-sided rank-sum test of seen against unseen scores.
        adjusted: The p-value, corrected by Holm for the attacks that were not named; the named
            attack's own is not corrected.
        judged_low: One-sided lower bound of the success that a gate judges, corrected for the
            number of attacks that were not named (Bonferroni); the named attack's is not corrected.
        judged_value: That success.
        auc_most: One-sided upper bound of the AUC, corrected for the number of attacks.
    """

    name: str
    description: str
    named: bool
    auc: Estimate
    tpr: Estimate | None
    p_value: float
    adjusted: float
    judged_value: float
    judged_low: float
    auc_most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacks:
    """All attacks, the named one first.

    Attributes:
        fpr: False-positive rate of the true-positive rates.
        confidence: Of the intervals.
        arithmetic: How scores in low precision compare with float64; None for float32.
    """

    fpr: float
    confidence: float
    rows: tuple[AttackRow, ...]
    arithmetic: str | None = optional()

    @property
    def named(self) -> AttackRow:
        """The attack that was named before the run."""
        return self.rows[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSuccess:
    """The success that is held against the limit: of the named attack.

    Attributes:
        success: Which rate.
        fpr: Its false-positive rate; None for AUC and accuracy.
        estimate: With its two-sided interval.
        low, high: One-sided bounds, each of ``confidence``.
        chance: What an attack without knowledge reaches.
        alike: Why scores most of which tie prove nothing; None where they may.
    """

    success: Success
    fpr: float | None
    estimate: Estimate
    low: float
    high: float
    chance: float
    confidence: float
    alike: str | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """The classifier that sees only the records, and no model.

    Attributes:
        auc: Out of fold, with its 95 % interval.
        low_bound, high_bound: One-sided 99 % bounds.
        void: Whether 0.5 is outside of them: the two sets were not drawn from the same source at
            random.
        seen, unseen: Records that it was tested on.
    """

    auc: Estimate
    low_bound: float
    high_bound: float
    void: bool
    seen: int
    unseen: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRows:
    """Rows of a file that the model's chat template gives no text for, for one reason.

    Attributes:
        side: ``"seen"``, ``"unseen"`` or ``"control"``.
        count, total: Such rows, and all rows of the file.
        rows: Numbers of the first ten, counted from 1.
        reason: What the template does, in words that hold nothing of the rows.
    """

    side: str
    count: int
    total: int
    rows: tuple[int, ...]
    reason: str

    @property
    def clause(self) -> str:
        """Which rows, how many, and why."""
        more = ", ..." if self.count > len(self.rows) else ""
        return (
            f"the chat template gives no text for {self.count} of {self.total} {self.side} rows "
            f"({', '.join(map(str, self.rows))}{more}), because it {self.reason}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Which records were used.

    Attributes:
        seen, unseen: Records that were scored.
        shared: Records that are in both sets; left out of both.
        repeated_seen, repeated_unseen: Further copies of a record within its set; left out.
        short: Records with no token to predict; left out.
        cut: Records longer than the model reads; only their beginning was scored.
        tokens: Scored tokens; None for classifiers.
        unscored: Tokens beyond what the model reads; None for classifiers.
        refused: Rows without a text, by file and reason; left out. None where there are none.
    """

    seen: int
    unseen: int
    shared: int
    repeated_seen: int
    repeated_unseen: int
    short: int
    cut: int
    tokens: int | None
    unscored: int | None = None
    refused: tuple[RefusedRows, ...] | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbatimRow:
    """Records of one side that come out verbatim, with windows of one length.

    Attributes:
        half: Tokens given, and as many that have to come out.
        rows: Records with at least one window.
        windows: Their windows.
        greedy: Records of which greedy decoding gives back a window's second half.
        sampled: Records of which the samples give one back with the stated probability.
        reference_greedy, reference_sampled: The same in the reference model; None without one.
        beyond: Records with a window that comes out, by either way, of the model and by neither
            way of the reference model; None without one.
        likeliest: Natural logarithm of the probability of the likeliest second half; None where
            there is no window.
    """

    half: int
    side: Side
    rows: int
    windows: int
    greedy: int
    sampled: int
    reference_greedy: int | None
    reference_sampled: int | None
    beyond: int | None
    likeliest: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbatimTest:
    """Whether more seen than unseen records come out verbatim.

    Attributes:
        seen_share, unseen_share: Shares of the records that count, each with an exact 95 %
            interval. With a reference model only records that do not come out of it count.
        p_value: Fisher's exact test, one-sided.
    """

    half: int
    seen_share: Estimate
    unseen_share: Estimate
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbatim:
    """What comes out verbatim.

    Attributes:
        samples, probability: A record counts as sampled where this many samples at temperature 1
            give a second half back with at least this probability.
        rows: By length and side.
        tests: By length.
    """

    samples: int
    probability: float
    rows: tuple[VerbatimRow, ...]
    tests: tuple[VerbatimTest, ...]

    def corrected(self, test: VerbatimTest) -> float:
        """The p-value of one of the tests, corrected for their number (Bonferroni)."""
        return min(1.0, test.p_value * len(self.tests))


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The positive control: records that were trained on for certain, and the same attack.

    Attributes:
        kind: ``"trained"``: held-out records that a copy of the model was trained on;
            ``"given"``: records that the user names.
        records: How many.
        passes: Passes over them after which they were found, or the most that were tried; None
            where they were given.
        low: Lower bound of the attack's success on them, corrected for the number of looks: of the
            AUC, or of the rate that is judged.
        needed: What it has to exceed: the limit where that rate is judged, else chance.
        found: Whether it does.
        sentence: The same in words.
    """

    kind: Literal["trained", "given"]
    records: int
    passes: int | None
    low: float
    needed: float
    found: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskRow:
    """One seen record; nothing of its text.

    Attributes:
        row: Its place in its file or list, counted from 1.
        score: Of the named attack.
        above: Share of unseen records that score as high or higher.
        verbatim: Whether a part of it comes out verbatim, and not of the reference model; None
            where that was not measured.
    """

    row: int
    score: float
    above: float
    verbatim: bool | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class Risks:
    """The seen records at the highest risk; the record's arrays hold all.

    Attributes:
        beyond: Seen records that score above every unseen one.
        rows: The highest scores first.
    """

    beyond: int
    rows: tuple[RiskRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MembershipResult(QuestionResult):
    """What an audit with two sets of records found.

    Attributes:
        verdict: A gate where a limit was set or the audit is void, else a finding.
        judged: What is held against the limit.
        attacks: All attacks.
        blind: The blind baseline.
        rows: Which records were used.
        verbatim: What comes out verbatim.
        control: The positive control.
        task: How well the model does what it was trained for, on unseen records.
        risks: The records at the highest risk.
        scope: What was tested and what was not.
    """

    ROWS: ClassVar[tuple[str, ...]] = ("attacks.rows",)

    verdict: Gate | Finding | Absent
    judged: JudgedSuccess | Absent
    attacks: Attacks | Absent
    blind: Blind | Absent
    rows: RowCounts | Absent
    verbatim: Verbatim | Absent
    control: Control | Absent
    task: Task | Absent
    risks: Risks | Absent
    scope: Tested | Absent
