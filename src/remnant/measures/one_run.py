"""A forgetting curve from one ordinary training run whose canaries were planted in cohorts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.checks import (
    read_floats,
    unseen_needed,
)
from remnant.measures.success import Success, chance_level, check_attack
from remnant.measures.trial_interval import measure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
        repeats: How often the cohort's canaries were used.
        checkpoint: The step after which the row was scored.
        n_seen: Canaries of the cohort.
        n_unseen: Never planted canaries.
        rate: Which success: "accuracy", "precision", "tpr" or "auc".
        fpr: Of precision and tpr; None otherwise.
        chance: What an attack without knowledge reaches.
        calibrated: Whether each canary's score before the window was subtracted.
        confidence: Of each interval, for its row alone.
        method: The intervals' construction, in words.
    """

    lags: Floats
    success: Floats
    low: Floats
    high: Floats
    effect: Floats
    effect_low: Floats
    effect_high: Floats
    cohort: Ints
    repeats: Ints
    checkpoint: Floats
    n_seen: Ints
    n_unseen: int
    rate: Success
    fpr: float | None
    chance: float
    calibrated: bool
    confidence: float
    method: str


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
        cohorts: A number for each canary's window, -1 for never. Without it windows are told apart
            by the last uses: where two in a row have a checkpoint between them and are further
            apart than a tenth of the widest such gap.
        draws: Canary resamples behind each success interval.

    Guarantees:
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
    """
    faults: list[str] = []
    given = _read(scores, checkpoints, last_seen, repeats, first_seen, cohorts, faults)
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
            else "no canary was never planted.",
            hint="Leave more canaries out of training, or ask for a larger fpr.",
        )
    rows: list[dict[str, Floats]] = []
    for number, uses in given.cells():
        rows.append(
            _row(
                given,
                number,
                uses,
                controls,
                calibrate,
                success=success,
                fpr=fpr,
                confidence=confidence,
                draws=draws,
                rng=rng,
            )
        )
    joined = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    return OneRunForgetting(
        **{name: joined[name] for name in joined if name not in ("cohort", "repeats", "n_seen")},
        cohort=joined["cohort"].astype(np.int64),
        repeats=joined["repeats"].astype(np.int64),
        n_seen=joined["n_seen"].astype(np.int64),
        n_unseen=controls.size,
        rate=success,
        fpr=float(fpr) if at_fpr else None,
        chance=chance_level(success, float(fpr)),
        calibrated=bool(calibrate),
        confidence=float(confidence),
        method=(
            f"canary bootstrap of both sides ({draws} draws, the same at all checkpoints), "
            "Clopper-Pearson ends at the effective size; effect by Welch's t over canaries; one "
            "run carries no between-model error"
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


def _row(
    given: _Given,
    number: int,
    uses: int,
    controls: Ints,
    calibrate: bool,
    *,
    success: Success,
    fpr: float,
    confidence: float,
    draws: int,
    rng: np.random.Generator,
) -> dict[str, Floats]:
    """All rows of one cohort."""
    mine = np.flatnonzero((given.cohort == number) & (given.repeats == uses))
    last = given.last_seen[mine]
    after = np.flatnonzero(given.checkpoints >= last.max())
    before = np.flatnonzero(given.checkpoints < given.begins(number))
    if after.size == 0:
        raise InvalidInput(
            f"the canaries last used at step {last.max():g} have no checkpoint after it.",
            hint="Score the canaries at or after that step as well.",
        )
    if calibrate and before.size == 0:
        raise InvalidInput(
            f"the canaries planted from step {given.begins(number):g} on have no checkpoint "
            "before it, so their scores cannot be calibrated.",
            hint="Score the canaries once before the first window, or pass calibrate=False.",
        )
    seen, unseen = given.scores[np.ix_(after, mine)], given.scores[np.ix_(after, controls)]
    effect = np.full((3, after.size), np.nan)
    if before.size:
        risen = seen - given.scores[before[-1], mine]
        drifted = unseen - given.scores[before[-1], controls]
        effect = _difference(risen, drifted, confidence)
        if calibrate:
            seen, unseen = risen, drifted
    measured = measure(
        seen=seen[:, None],
        unseen=unseen[:, None],
        success=success,
        fpr=float(fpr),
        draws=draws,
        rng=rng,
    )
    low, high = measured.ends(confidence)
    same = np.ones(after.size)
    return {
        "lags": given.checkpoints[after] - last.mean(),
        "success": measured.evidence.value[:, 0],
        "low": low,
        "high": high,
        "effect": effect[0],
        "effect_low": effect[1],
        "effect_high": effect[2],
        "checkpoint": given.checkpoints[after],
        "cohort": number * same,
        "repeats": uses * same,
        "n_seen": mine.size * same,
    }


def _difference(risen: Floats, drifted: Floats, confidence: float) -> Floats:
    """The difference of the means of each row, and Welch's interval; infinite for one canary."""
    n, m = risen.shape[1], drifted.shape[1]
    value = risen.mean(axis=1) - drifted.mean(axis=1)
    if min(n, m) < 2:
        wide = np.full(value.shape, np.inf)
        return np.stack([value, -wide, wide])
    one, other = risen.var(axis=1, ddof=1) / n, drifted.var(axis=1, ddof=1) / m
    total = one + other
    freedom = np.full(value.shape, float(n + m - 2))
    spread = one**2 / (n - 1) + other**2 / (m - 1)
    np.divide(total**2, spread, out=freedom, where=spread > 0.0)
    half = stats.t.isf((1.0 - confidence) / 2.0, freedom) * np.sqrt(total)
    return np.stack([value, value - half, value + half])


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
    """The number of each canary's window, told from the gaps between last uses."""
    uses = np.unique(last[last >= 0])
    gaps = np.diff(uses)
    parted = np.searchsorted(checkpoints, uses[1:]) > np.searchsorted(checkpoints, uses[:-1])
    wide = parted & (gaps > 0.1 * np.max(gaps[parted], initial=0.0))
    number = np.concatenate([[0], np.cumsum(wide)])
    return np.where(last >= 0, number[np.searchsorted(uses, np.maximum(last, uses[0]))], -1)
