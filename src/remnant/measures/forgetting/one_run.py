"""A forgetting curve from one ordinary training run whose canaries were planted in cohorts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.forgetting.attackers import hold_for_all
from remnant.measures.forgetting.control import ERROR, Control
from remnant.measures.forgetting.one_run_attackers import (
    MODEL_ALONE,
    TWO_CHECKPOINTS,
    OtherAttacker,
    ReferenceFault,
    ReferenceScores,
    check_references,
    read_references,
    reference_scores,
    with_references,
)
from remnant.measures.forgetting.safe_after import check_claim
from remnant.measures.forgetting.verdict import (
    CHECK_SIGN,
    PLANT_MORE,
    REVERSED,
    Outcome,
    Verdict,
    cannot_exclude,
    percent,
    rounded_down,
    rounded_up,
)
from remnant.measures.statistics.checks import (
    NAMES,
    Success,
    chance_level,
    check_attack,
    out_of_reach,
    read_floats,
    unseen_needed,
)
from remnant.measures.statistics.evidence_faults import alike_fault, tied_pairs
from remnant.measures.statistics.rank_sum import rank_p_values
from remnant.measures.statistics.resampling import NO_GROUPS, GroupPair, Groups, read_groups
from remnant.measures.statistics.trial_interval import Measured, measure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
OTHER_REFERENCES = "Pass reference models that never saw these examples, or none."
_RANKED = ("scores", "rise in score since before planting", "scores less those of reference models")


@dataclass(frozen=True, slots=True, eq=False)
class OneRunForgetting:
    """Attack success at many lags of one run; one row per cohort and later checkpoint.

    A cohort is what was planted in one window with one number of repeats. Every array has the shape
    ``(rows,)``; rows are ordered by cohort, repeats and checkpoint.

    Attributes:
        lags: Mean over the cohort's canaries of the steps since each one's own last use.
        success: Attack success against the never planted canaries at the same checkpoint.
        low, high: Interval of ``success`` over canaries like these; it always holds ``success``.
        effect: Difference in differences of the mean score: how much the cohort's rose since the
            last checkpoint before its window, less how much the controls' did. NaN where there is
            no such checkpoint.
        effect_low, effect_high: Interval of ``effect``.
        cohort: Number of the window, counted from 0 along the run.
        planted_from: The step at which the cohort's window begins: the first use of its canaries;
            where first uses were not given, the first of their last uses.
        repeats: How often the cohort's canaries were used.
        checkpoint: The step after which the row was scored.
        n_seen: Canaries of the cohort.
        n_unseen: Never planted canaries.
        rate: Which success: "accuracy", "precision", "tpr" or "auc".
        fpr: Of precision and tpr; None otherwise.
        chance: What an attack without knowledge reaches.
        calibrated: Whether each canary's score before the window was subtracted.
        attacker: Whose success it is, in words: what the attacker has.
        references: Reference models that scores are compared with; 0 for none.
        confidence: Of each interval, for its row alone.
        method: The intervals' construction, in words.
        evidence: What bounds of another confidence are made of.
    """

    lags: Floats
    success: Floats
    low: Floats
    high: Floats
    effect: Floats
    effect_low: Floats
    effect_high: Floats
    cohort: Ints
    planted_from: Floats
    repeats: Ints
    checkpoint: Floats
    n_seen: Ints
    n_unseen: int
    rate: Success
    fpr: float | None
    chance: float
    calibrated: bool
    attacker: str
    references: int
    confidence: float
    method: str
    evidence: OneRunEvidence = field(repr=False)

    def positive_control(self) -> Control:
        """Whether the attack found the canaries that were planted first, at some checkpoint.

        It did where they score higher than the controls, by themselves or against reference
        models, or rose by more since the last checkpoint before their window, by a rank-sum test at
        any row of the first window. Which canaries were
        planted was drawn at random, so the test is valid whatever the law of the scores
        (``rank_sum_p_value``). Each test
        is corrected for the number of all of them: an attack that sees nothing is taken to have
        found the canaries with a probability of 2.5 % at most.
        """
        first = np.flatnonzero(self.cohort == self.cohort.min())
        p_values = self.evidence.rank_p_values[:, first]
        tests = int(np.isfinite(p_values).sum())
        adjusted = np.minimum(np.nanmin(p_values, axis=0) * tests, 1.0)
        found = adjusted <= ERROR
        if not found.any():
            return Control(
                None,
                "The attack did not find the canaries at any checkpoint, so not finding them at "
                "the end says nothing.",
            )
        at = int(np.flatnonzero(found)[np.argmin(self.lags[first[found]])])
        lag = float(self.lags[first[at]])
        of = _RANKED[int(np.nanargmin(p_values[:, at]))]
        return Control(
            lag,
            f"The attack found the canaries at lag {lag:.0f}: a rank-sum test of their {of} "
            f"against the controls gives p = {adjusted[at]:.2g}, corrected for {tests} tests.",
        )

    def verdict(self, limit: float) -> Verdict:
        """Judge the canaries planted first, at the last checkpoint: the longest lag of the run.

        Where they were planted more or less often, all of them have to be within the limit. PASS
        where every one-sided upper bound is at or under ``limit``, of ``attacker`` and of each
        other one whose scores are known (two checkpoints, the model alone) and are not all one
        number, none of these bounds is below chance, the attack found the canaries at some
        checkpoint (``positive_control``), most scores that are judged do not tie, reference models
        do not seem to have seen the examples, and no later window at half that lag or more is still
        beyond the limit at the end. FAIL where a lower bound of ``attacker``,
        corrected for their number, is above the limit. Otherwise INCONCLUSIVE. The
        claim names the attacker, the window that was judged, and how many later windows are not
        shown to be within the limit at the end of the run.

        Args:
            limit: In the units of ``rate``, above chance.

        Raises:
            InvalidInput: ``limit`` is at or under chance or not under 1, or the curve's confidence
                is under 0.8.
        """
        check_claim(
            self.lags,
            limit=limit,
            chance=self.chance,
            success=self.rate,
            confidence=self.confidence,
        )
        first = self.cohort == self.cohort.min()
        end = self.checkpoint == self.checkpoint.max()
        judged = np.flatnonzero(first & end)
        upper = self.evidence.upper(self.confidence)
        lower = self.evidence.lower(1.0 - (1.0 - self.confidence) / judged.size)
        worst = int(judged[np.argmax(upper[judged])])
        alike = end & ~first & (self.lags >= self.lags[worst] / 2.0)
        still = np.flatnonzero(alike & (lower > limit))
        control = self.positive_control()
        sure = f"one-sided {percent(self.confidence)}"

        def made(outcome: Outcome, sentence: str, claim: str) -> Verdict:
            lag = float(self.lags[worst])
            detected = bool(lower[judged].max() > self.chance)
            return Verdict(outcome, _capital(sentence), _capital(claim), limit, lag, detected)

        fault = self.evidence.reference_fault
        if lower[judged].max() > limit:
            row = int(judged[np.argmax(lower[judged])])
            said = f"{self._row_in_words(row)}, at least {rounded_down(lower[row])} ({sure} bound)"
            if fault.of_controls:
                sentence = f"{said}; but {fault.reason}. {OTHER_REFERENCES}"
                return made("INCONCLUSIVE", sentence, f"No claim: {fault.reason}.")
            return made("FAIL", f"{said}: above the limit of {limit:g}.", f"{said}.")
        said = f"{self._row_in_words(worst)}, at most {rounded_up(upper[worst])} ({sure} bound)"
        later = self._later_windows(upper, end & ~first, limit)
        claim = f"{said}{later}; {cannot_exclude(1)}."
        if upper[worst] > limit:
            sentence = f"{said}: not under the limit of {limit:g}. Plant more canaries."
            return made("INCONCLUSIVE", sentence, claim)
        under = f"{said}: under the limit of {limit:g}"
        doubt = alike_fault(self.evidence.tied_pairs[judged].max(axis=0), " at the end")
        doubt = doubt or self.evidence.doubt or out_of_reach(limit, self.rate, self.fpr)
        advice = ""
        if not doubt and fault.reason:
            doubt, advice = fault.reason, f" {OTHER_REFERENCES}"
        if not doubt and upper[judged].min() < self.chance:
            doubt, advice = REVERSED, f" {CHECK_SIGN}"
        if doubt:
            sentence = f"{under}; but {doubt}.{advice}"
            return made("INCONCLUSIVE", sentence, f"No claim: {doubt}.")
        if not control.found:
            none = f"No claim: {control.reason[0].lower()}{control.reason[1:]}"
            return made("INCONCLUSIVE", f"{under}. {control.reason} {PLANT_MORE}", none)
        if still.size:
            row = int(still[-1])
            other = f"{self._row_in_words(row)}, at least {rounded_down(lower[row])}"
            sentence = f"{under}; but {other}, so the lag alone does not decide."
            return made("INCONCLUSIVE", sentence, f"No claim: {other}, above the limit.")
        at = "" if self.fpr is None else f" at FPR {self.fpr:g}"
        others = self.evidence.others
        return hold_for_all(
            made("PASS", f"{under}. {control.reason}", claim),
            {other.name: float(other.upper(self.confidence).max()) for other in others},
            what=f"attack {NAMES[self.rate]}{at}",
            confidence=self.confidence,
            doubts={other.name: other.doubt(self.confidence, self.chance) for other in others},
        )

    def _later_windows(self, upper: Floats, ends: NDArray[np.bool_], limit: float) -> str:
        """How many later windows end with an upper bound above the limit; empty where none do."""
        over = np.flatnonzero(ends & (upper > limit))
        if not over.size:
            return ""
        windows, some = np.unique(self.cohort[ends]).size, np.unique(self.cohort[over]).size
        worst = int(over[np.argmax(upper[over])])
        return (
            f"; {some} of {windows} later {'window' if windows == 1 else 'windows'} "
            f"{'is' if some == 1 else 'are'} not shown to be under the limit at the end of the run "
            f"(planted from step {self.planted_from[worst]:.0f}: at most "
            f"{rounded_up(upper[worst])}, {self.lags[worst]:.0f} steps after their last use)"
        )

    def _row_in_words(self, row: int) -> str:
        at = "" if self.fpr is None else f" at FPR {self.fpr:g}"
        uses, canaries = int(self.repeats[row]), int(self.n_seen[row])
        often = "once" if uses == 1 else f"{uses} times"
        return (
            f"{self.lags[row]:.0f} steps after their last use, the {NAMES[self.rate]}{at} of "
            f"{self.attacker} is {self.success[row]:.3f} on {canaries} "
            f"{'canary' if canaries == 1 else 'canaries'} planted {often} from step "
            f"{self.planted_from[row]:.0f}"
        )


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


@dataclass(frozen=True, slots=True, eq=False)
class OneRunEvidence:
    """What the bounds of any confidence are made of.

    Attributes:
        measured: The success of each cohort, in the order of the rows.
        rank_p_values: One-sided rank-sum tests of each row, shape ``(3, rows)``: of the scores, of
            their rise since the last checkpoint before the window, and of scores against reference
            models; NaN where there is none.
        tied_pairs: How far the scores of the cohort and of the controls are alike (see
            ``tied_pairs``), calibrated or not, whichever is more; shape ``(rows, 3)``.
        others: Other attackers on what is judged.
        reference_fault: Why reference models cannot be used.
    """

    measured: tuple[Measured, ...]
    rank_p_values: Floats
    tied_pairs: Floats
    others: tuple[OtherAttacker, ...]
    reference_fault: ReferenceFault

    @property
    def doubt(self) -> str:
        """Why canaries seem to come in clusters that were not given; or empty."""
        return next((cohort.doubt for cohort in self.measured if cohort.doubt), "")

    def lower(self, confidence: float) -> Floats:
        """The one-sided lower bound of success at each row."""
        return np.concatenate([cohort.lower(confidence) for cohort in self.measured])

    def upper(self, confidence: float) -> Floats:
        """The one-sided upper bound of success at each row."""
        return np.concatenate([cohort.upper(confidence) for cohort in self.measured])


def one_run_forgetting(
    *,
    scores: ArrayLike,
    checkpoints: ArrayLike,
    last_seen: ArrayLike,
    repeats: ArrayLike,
    fpr: float = 0.1,
    confidence: float = 0.95,
    rng: np.random.Generator,
    success: Success = "tpr",
    calibrate: bool = False,
    first_seen: ArrayLike | None = None,
    cohorts: ArrayLike | None = None,
    draws: int = 400,
    groups: Any = None,
    references: ArrayLike | None = None,
) -> OneRunForgetting:
    """Measure forgetting in one run from the scores of its canaries at its checkpoints.

    Because canaries were assigned at random (``StaggeredPlan``), those never planted are the
    controls of every cohort at every checkpoint, and what happens to both between two checkpoints
    is the effect of planting. The intervals are over canaries: one run says nothing of how runs
    differ.

    Args:
        scores: Shape ``(checkpoints, canaries)``, higher = more likely seen.
        checkpoints: The step after which each row was scored, on the clock of ``last_seen``,
            strictly increasing.
        last_seen: The step of each canary's last use; -1 for never.
        repeats: How often each canary was used; not read where it never was.
        fpr: The false-positive rate of tpr and precision.
        confidence: Of each interval.
        rng: Draws the canary resamples.
        success: Which rate to measure.
        calibrate: Subtract from each score the canary's own at the last checkpoint before the
            window, as an attacker with two checkpoints would.
        first_seen: The step of each canary's first use, -1 for never. Without it a window is taken
            to begin with the first of its canaries' last uses.
        cohorts: A number for each canary's window, -1 for never. Without it windows are separated
            by the last uses: where two in a row have a checkpoint between them and are further
            apart than a tenth of the widest such gap.
        draws: Canary resamples behind each success interval.
        groups: One label a canary, where canaries come in clusters (several of one author, one
            template, one speaker). Whole clusters are then resampled.
        references: The same scores in models that were trained the same way without any of the
            canaries, planted or not: shape ``(models, canaries)``, or ``(checkpoints, models,
            canaries)``. A score is then compared with them, as an attacker with models of his own
            would: less their mean, and from four models on divided by their deviation.
            ``calibrate`` is not read.

    Guarantees:
        * A constant added to a canary's score in the run and in all references changes no
          ``success`` against references.
        * A row uses only canaries whose uses are all over at its checkpoint.
        * The order of canaries within a cohort does not matter to ``success`` and ``effect``.
        * A constant added to all scores of a checkpoint changes nothing.

    Raises:
        InvalidInput: Faults in arrays or settings, all listed at once; a cohort without any later
            checkpoint; ``calibrate`` without an earlier one.
        NotEnoughEvidence: Fewer than 1/fpr canaries were never planted.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> last = np.repeat([-1, 10], 200)
        >>> scores = rng.normal(size=(3, 400)) + np.array([0, 3, 1])[:, None] * (last == 10)
        >>> out = one_run_forgetting(scores=scores, checkpoints=[5, 10, 40], last_seen=last,
        ...                          repeats=np.ones(400), rng=rng)
        >>> out.lags.tolist(), out.success.round(1).tolist(), out.effect.round(0).tolist()
        ([0.0, 30.0], [0.9, 0.6], [3.0, 1.0])

        Canaries differ more than planting adds; eight models without them show what is usual:

        >>> usual = rng.normal(scale=9.0, size=400)
        >>> models = usual + rng.normal(size=(8, 400))
        >>> out = one_run_forgetting(scores=scores + usual, checkpoints=[5, 10, 40], last_seen=last,
        ...                          repeats=np.ones(400), references=models, rng=rng)
        >>> out.attacker, out.success.round(1).tolist()
        ('an attacker with 8 reference models trained without these examples', [0.9, 0.5])
    """
    faults: list[str] = []
    given = _read(scores, checkpoints, last_seen, repeats, first_seen, cohorts, faults)
    clusters = None
    trained = None
    if given is not None and references is not None:
        trained = read_references(references, given.scores, faults)
    if given is not None and groups is not None:
        clusters = read_groups("groups", groups, given.scores.shape[1], faults)
    check_attack(success, fpr=fpr, confidence=confidence, rng=rng, draws=draws, faults=faults)
    require(faults)
    if given is None:
        raise InvalidInput("scores, checkpoints, last_seen and repeats must be arrays of numbers.")
    controls = np.flatnonzero(given.cohort == -1)
    at_fpr = success in ("precision", "tpr")
    needed = unseen_needed(fpr) if at_fpr else 1
    if controls.size < needed:
        raise NotEnoughEvidence(
            f"{controls.size} canaries were never planted; a threshold at FPR {fpr:g} takes at "
            f"least {needed}."
            if at_fpr
            else "There are no controls: every canary was planted.",
            hint="Leave more canaries out of training, or ask for a larger fpr.",
        )
    compared = None if trained is None else reference_scores(given.scores, trained)
    bootstrap = partial(measure, success=success, fpr=float(fpr), draws=draws, rng=rng)
    cells = given.cells()
    rows, ranks, measured, ends = [], [], [], []
    for number, uses in cells:
        cohort = _cohort(given, number, uses, controls, calibrate, clusters, compared)
        result = bootstrap(**cohort.named)
        rows.append(cohort.rows(result, confidence))
        ranks.append(cohort.ranks)
        measured.append(result)
        if number == cells[0][0]:
            attacker = cohort.attacker
            ends.append(cohort.end_of_others())
    joined = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    evidence = OneRunEvidence(
        tuple(measured),
        np.concatenate(ranks, axis=1),
        joined.pop("tied"),
        others=tuple(
            OtherAttacker(
                name,
                np.array([uses for _, uses in cells[: len(ends)]]),
                tuple(bootstrap(**end[name]) for end in ends),
            )
            for name in ends[0]
        ),
        reference_fault=(
            ReferenceFault()
            if trained is None
            else _reference_fault(given, trained, controls, clusters)
        ),
    )
    what = "canary" if clusters is None else "cluster"
    return OneRunForgetting(
        **{name: joined[name] for name in joined if name not in ("cohort", "repeats", "n_seen")},
        evidence=evidence,
        cohort=joined["cohort"].astype(np.int64),
        repeats=joined["repeats"].astype(np.int64),
        n_seen=joined["n_seen"].astype(np.int64),
        n_unseen=controls.size,
        rate=success,
        fpr=float(fpr) if at_fpr else None,
        chance=chance_level(success, float(fpr)),
        calibrated=attacker == TWO_CHECKPOINTS,
        attacker=attacker,
        references=0 if compared is None else compared.models,
        confidence=float(confidence),
        method=(
            f"{what} bootstrap of both sides ({draws} draws, the same at all checkpoints), "
            f"Clopper-Pearson ends at the effective size; effect by Welch's t over "
            f"{'canaries' if clusters is None else 'clusters'}; one run carries no between-model "
            "error"
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    scores: Floats
    checkpoints: Floats
    last_seen: Floats
    first_seen: Floats | None
    repeats: Floats
    cohort: Ints

    def cells(self) -> list[tuple[int, int]]:
        planted = self.cohort >= 0
        pairs = zip(self.cohort[planted].tolist(), self.repeats[planted].tolist(), strict=True)
        return sorted({(number, int(uses)) for number, uses in pairs})

    def begins(self, number: int) -> float:
        seen = self.last_seen if self.first_seen is None else self.first_seen
        return float(seen[self.cohort == number].min())


@dataclass(frozen=True, slots=True, eq=False)
class _Cohort:
    """A cohort's scores and those of the controls, at each checkpoint after its window.

    Attributes:
        number, uses: Window and repeats.
        columns: Of its rows, what needs no bootstrap.
        ranks: Rank-sum tests, shape ``(3, rows)``; see ``OneRunEvidence``.
        effect: The difference in differences, its error and its degrees of freedom.
        sides: Scores of cohort and controls by attacker, the named one first, ``(rows, canaries)``.
        tied: How far scores are alike (see ``tied_pairs``), shape ``(rows, 3)``.
        groups: The clusters of both sides.
    """

    number: int
    uses: int
    columns: dict[str, Floats]
    ranks: Floats
    effect: Floats
    sides: dict[str, tuple[Floats, Floats]]
    tied: Floats
    groups: GroupPair

    @property
    def attacker(self) -> str:
        """The named one."""
        return next(iter(self.sides))

    @property
    def named(self) -> dict[str, Any]:
        """What is measured for the named attacker; the axis of one trial is added."""
        seen, unseen = self.sides[self.attacker]
        return {"seen": seen[:, None], "unseen": unseen[:, None], "groups": self.groups}

    def end_of_others(self) -> dict[str, dict[str, Any]]:
        """The same for the other attackers, at the last checkpoint."""
        return {
            name: {
                "seen": seen[-1:, None].copy(),
                "unseen": unseen[-1:, None].copy(),
                "groups": self.groups,
            }
            for name, (seen, unseen) in self.sides.items()
            if name != self.attacker
        }

    def rows(self, measured: Measured, confidence: float) -> dict[str, Floats]:
        """The columns, with the success that was measured."""
        low, high = measured.ends(confidence)
        value, error, freedom = self.effect
        reach = stats.t.isf((1.0 - confidence) / 2.0, freedom) * error
        return self.columns | {
            "success": measured.evidence.value[:, 0],
            "low": low,
            "high": high,
            "effect": value,
            "effect_low": value - reach,
            "effect_high": value + reach,
            "tied": np.maximum(self.tied, measured.tied_pairs),
        }


def _cohort(
    given: _Given,
    number: int,
    uses: int,
    controls: Ints,
    calibrate: bool,
    clusters: Groups | None,
    compared: ReferenceScores | None,
) -> _Cohort:
    mine = np.flatnonzero((given.cohort == number) & (given.repeats == uses))
    last = given.last_seen[mine]
    after = np.flatnonzero(given.checkpoints >= last.max())
    before = np.flatnonzero(given.checkpoints < given.begins(number))
    if after.size == 0:
        raise InvalidInput(
            f"the canaries last used at step {last.max():g} have no checkpoint after it.",
            hint="Score the canaries at or after that step as well.",
        )
    if calibrate and compared is None and before.size == 0:
        raise InvalidInput(
            f"the canaries planted from step {given.begins(number):g} on have no checkpoint "
            "before it, so their scores cannot be calibrated.",
            hint="Score the canaries once before the first window, or pass calibrate=False.",
        )

    def of(table: Floats) -> tuple[Floats, Floats]:
        return table[np.ix_(after, mine)], table[np.ix_(after, controls)]

    groups = NO_GROUPS
    if clusters is not None:
        groups = _numbered(clusters[mine]), _numbered(clusters[controls])
    effect = np.full((3, after.size), np.nan)
    ranks = np.full((len(_RANKED), after.size), np.nan)
    seen, unseen = of(given.scores)
    sides = {MODEL_ALONE: (seen, unseen)}
    ranks[0] = rank_p_values(seen, unseen, groups)
    if before.size:
        risen, drifted = of(given.scores - given.scores[before[-1]])
        sides[TWO_CHECKPOINTS] = risen, drifted
        effect = _difference(risen, drifted, groups)
        ranks[1] = rank_p_values(risen, drifted, groups)
    attacker = TWO_CHECKPOINTS if calibrate else MODEL_ALONE
    if compared is not None:
        attacker = with_references(compared.models)
        sides[attacker] = of(compared.scores)
        ranks[2] = rank_p_values(*sides[attacker], groups)
    same = np.ones(after.size)
    return _Cohort(
        number,
        uses,
        {
            "lags": given.checkpoints[after] - last.mean(),
            "checkpoint": given.checkpoints[after],
            "cohort": number * same,
            "planted_from": given.begins(number) * same,
            "repeats": uses * same,
            "n_seen": mine.size * same,
        },
        ranks,
        effect,
        {attacker: sides.pop(attacker), **sides},
        tied_pairs(seen, unseen),
        groups,
    )


def _reference_fault(
    given: _Given, references: Floats, controls: Ints, clusters: Groups | None
) -> ReferenceFault:
    """Whether reference models saw the canaries, or the controls."""
    planted = np.flatnonzero(given.cohort >= 0)
    before = given.checkpoints < given.begins(int(given.cohort[planted].min()))
    groups = NO_GROUPS
    if clusters is not None:
        groups = _numbered(clusters[planted]), _numbered(clusters[controls])
    return check_references(
        references,
        planted=planted,
        controls=controls,
        before=given.scores[before][-1] if before.any() else None,
        groups=groups,
    )


def _numbered(labels: Groups) -> Groups:
    """Clusters numbered from 0 among those that occur."""
    return np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _difference(risen: Floats, drifted: Floats, groups: GroupPair) -> Floats:
    """The difference of the means of each row, its standard error, and Welch's degrees of freedom.

    The error is infinite where a side has one canary, or one cluster, only.
    """
    (own, n), (other, m) = (
        _error_of_mean(side, group) for side, group in zip((risen, drifted), groups, strict=True)
    )
    value = risen.mean(axis=1) - drifted.mean(axis=1)
    if min(n, m) < 2:
        return np.stack([value, np.full(value.shape, np.inf), np.ones(value.shape)])
    total = own + other
    freedom = np.full(value.shape, float(n + m - 2))
    spread = own**2 / (n - 1) + other**2 / (m - 1)
    np.divide(total**2, spread, out=freedom, where=spread > 0.0)
    return np.stack([value, np.sqrt(total), freedom])


def _error_of_mean(side: Floats, groups: Groups | None) -> tuple[Floats, int]:
    """The variance of the mean of each row, by canary or by cluster, and how many there are."""
    n = side.shape[1]
    if groups is None:
        return (np.full(len(side), np.nan) if n < 2 else side.var(axis=1, ddof=1) / n), n
    apart = side - side.mean(axis=1, keepdims=True)
    units = int(groups.max()) + 1
    sums = np.stack([np.bincount(groups, row, minlength=units) for row in apart])
    factor = units / (units - 1.0) if units > 1 else np.nan
    return (sums**2).sum(axis=1) / n**2 * factor, units


def _read(
    scores: ArrayLike,
    checkpoints: ArrayLike,
    last_seen: ArrayLike,
    repeats: ArrayLike,
    first_seen: ArrayLike | None,
    cohorts: ArrayLike | None,
    faults: list[str],
) -> _Given | None:
    table = read_floats("scores", scores, 2, faults)
    steps = read_floats("checkpoints", checkpoints, 1, faults)
    rows = {"last_seen": last_seen, "repeats": repeats}
    rows |= {} if first_seen is None else {"first_seen": first_seen}
    rows |= {} if cohorts is None else {"cohorts": cohorts}
    read = {name: read_floats(name, row, 1, faults) for name, row in rows.items()}
    if table is None or steps is None or any(row is None for row in read.values()):
        return None
    if steps.size != table.shape[0]:
        faults.append(f"checkpoints has {steps.size} entries for {table.shape[0]} rows of scores")
    if np.any(np.diff(steps) <= 0):
        faults.append("checkpoints are not strictly increasing")
    whole = {name: row for name, row in read.items() if row is not None}
    for name, row in whole.items():
        if row.size != table.shape[1]:
            faults.append(f"{name} has {row.size} entries for {table.shape[1]} canaries of scores")
        elif np.any(row != np.round(row)) or np.any(row < -1):
            faults.append(f"{name} holds numbers that are neither whole nor -1 for never")
    if faults:
        return None
    last = whole["last_seen"]
    planted = last >= 0
    for name in ("first_seen", "cohorts"):
        if name in whole and not np.array_equal(whole[name] >= 0, planted):
            faults.append(f"{name} and last_seen disagree on who was never planted")
    if "first_seen" in whole and np.any(whole["first_seen"] > last):
        faults.append("first_seen lies after last_seen")
    if np.any(whole["repeats"][planted] < 1):
        faults.append("repeats is under 1 for canaries that were planted")
    if not planted.any():
        faults.append("last_seen is -1 for all canaries: nothing was planted")
    if faults:
        return None
    cohort = whole["cohorts"].astype(np.int64) if cohorts is not None else _windows(last, steps)
    return _Given(table, steps, last, whole.get("first_seen"), whole["repeats"], cohort)


def _windows(last: Floats, checkpoints: Floats) -> Ints:
    """The number of each canary's window, from the gaps between last uses."""
    uses = np.unique(last[last >= 0])
    gaps = np.diff(uses)
    parted = np.searchsorted(checkpoints, uses[1:]) > np.searchsorted(checkpoints, uses[:-1])
    wide = parted & (gaps > 0.1 * np.max(gaps[parted], initial=0.0))
    number = np.concatenate([[0], np.cumsum(wide)])
    return np.where(last >= 0, number[np.searchsorted(uses, np.maximum(last, uses[0]))], -1)
