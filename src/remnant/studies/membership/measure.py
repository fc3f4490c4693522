"""Scores of seen and unseen records -> a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures import Success, clopper_pearson, leak_probability
from remnant.measures.membership.attacks import TEXT_ATTACKS, WindowRows
from remnant.measures.membership.blind import BlindBaseline
from remnant.measures.membership.saw_them import suspected
from remnant.measures.statistics.checks import (
    SUCCESSES,
    chance_level,
    check_gate_confidence,
    check_limit,
    check_rng,
    check_share,
    out_of_reach,
    unseen_needed,
)
from remnant.measures.statistics.evidence_faults import alike_fault
from remnant.measures.statistics.holm import holm
from remnant.measures.statistics.rank_sum import rank_sum_p_value
from remnant.measures.statistics.resampling import NO_GROUPS, GroupPair, Groups
from remnant.measures.statistics.trial_interval import Measured, measure
from remnant.records.typed import Absent
from remnant.studies.membership.result import (
    AttackRow,
    Attacks,
    Blind,
    JudgedSuccess,
    RiskRow,
    Risks,
    Side,
    Verbatim,
    VerbatimRow,
    VerbatimTest,
)
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.gates import not_learnt
from remnant.studies.shared.result_parts import ClassifierTask, LanguageTask, Tested

Floats = NDArray[np.float64]
LEAST = 20  # records of a side
_RESAMPLED = 2_000_000  # scores that are resampled for an interval, at most
_SHOWN = 20
_MOST_CONFIDENCE = 0.9999  # bounds of more cannot be computed
_ALARM = 0.02  # of an interval of the AUC of a reference model
_UNTRAINED = 0.99  # of the bits of a guess by frequencies: what a language model has to be under


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is judged, and how.

    Attributes:
        attack: The attack that was named before the run.
        limit: The largest success allowed; None judges nothing.
        success, fpr: The rate that is judged.
        confidence: Of intervals, and of one-sided bounds.
        samples, probability: See ``Verbatim``.
    """

    attack: str
    limit: float | None = None
    success: Success = "auc"
    fpr: float = 0.1
    confidence: float = 0.95
    samples: int = 1000
    probability: float = 0.5

    def check(self) -> None:
        """Refuse a limit that nothing can be shown to lie under.

        Raises:
            InvalidInput: It is at or under chance, or out of reach.
        """
        if self.limit is None:
            return
        chance = chance_level(self.success, self.fpr)
        check_limit(self.limit, chance=chance, success=self.success)
        beyond = out_of_reach(self.limit, self.success, self.fpr)
        if beyond:
            raise InvalidInput(f"limit={self.limit:g}: {beyond}.", hint="Lower the limit.")


def check_settings(settings: Settings, *, rng: np.random.Generator) -> None:
    """Refuse settings that are out of range, all of them at once.

    Raises:
        InvalidInput: A share is not between 0 and 1, the success is unknown, or a limit is one
            that nothing can be shown to lie under.
    """
    faults: list[str] = []
    check_rng(rng, faults)
    check_share("fpr", settings.fpr, faults)
    check_gate_confidence("confidence", settings.confidence, faults)
    if not faults and settings.confidence > _MOST_CONFIDENCE:
        faults.append(f"confidence={settings.confidence!r} is above {_MOST_CONFIDENCE}")
    if settings.success not in SUCCESSES:
        faults.append(f"success={settings.success!r} is not one of {', '.join(SUCCESSES)}")
    require(faults)
    settings.check()


def check_counts(seen: int, unseen: int, *, shared: int = 0) -> None:
    """Refuse fewer records than any claim needs.

    Args:
        seen, unseen: Records that are used.
        shared: Records that were left out because they are in both sets.

    Raises:
        NotEnoughEvidence: A side has fewer than 20.
    """
    if min(seen, unseen) < LEAST:
        if shared:
            raise NotEnoughEvidence(
                f"{shared} records are in both sets and were left out; {seen} seen and {unseen} "
                f"unseen ones are too few, since it takes at least {LEAST} of each.",
                hint="Pass records that were held out, and not trained on.",
            )
        raise NotEnoughEvidence(
            f"{seen} seen and {unseen} unseen records are too few; it takes at least {LEAST} of "
            "each.",
            hint="Pass more records. About 500 of each show an AUC to within 0.036.",
        )


def check_control(records: int) -> None:
    """Refuse a control of fewer records than a lower bound needs.

    Raises:
        NotEnoughEvidence: It has fewer than 20.
    """
    if records < LEAST:
        raise NotEnoughEvidence(
            f"control has {records} records; it takes at least {LEAST}.",
            hint="Pass more records that are known to be memorised.",
        )


def measure_attacks(
    seen: Mapping[str, Floats],
    unseen: Mapping[str, Floats],
    settings: Settings,
    *,
    rng: np.random.Generator,
    descriptions: Mapping[str, str] | None = None,
    groups: GroupPair = NO_GROUPS,
) -> tuple[Attacks, JudgedSuccess]:
    """Measure every attack, and the named one's success for the gate.

    Args:
        seen, unseen: Scores of the records, by attack; higher = more likely seen.
        settings: Name the attack that is judged.
        rng: Draws the resamples behind the intervals.
        descriptions: What each score is, in words.
        groups: The clusters of seen and of unseen records.

    Raises:
        NotEnoughEvidence: Too few unseen records for the false-positive rate.
    """
    described = {name: attack.description for name, attack in TEXT_ATTACKS.items()}
    described |= descriptions or {}
    names = [settings.attack, *(name for name in seen if name != settings.attack)]
    tests = [
        rank_sum_p_value(_by_cluster(seen[name], groups[0]), _by_cluster(unseen[name], groups[1]))
        for name in names
    ]
    adjusted = [tests[0], *(holm(tests[1:]).tolist() if tests[1:] else [])]
    _check_fpr(len(unseen[settings.attack]), settings)
    rows = []
    judged = None
    for name, p_value, corrected in zip(names, tests, adjusted, strict=True):
        measured = _rates(seen[name], unseen[name], settings, rng, groups)
        of_gate = measured[settings.success]
        named = name == settings.attack
        tail = (1.0 - settings.confidence) / (1 if named else len(names) - 1)
        rows.append(
            AttackRow(
                name=name,
                description=described.get(name, ""),
                named=named,
                auc=_estimate(measured["auc"], settings.confidence),
                tpr=_estimate(measured["tpr"], settings.confidence) if "tpr" in measured else None,
                p_value=p_value,
                adjusted=corrected,
                judged_value=float(of_gate.evidence.value[0, 0]),
                judged_low=float(of_gate.lower(1.0 - tail)[0]),
                auc_most=float(
                    measured["auc"].upper(1.0 - (1.0 - settings.confidence) / len(names))[0]
                ),
            )
        )
        judged = judged or _judged(of_gate, settings)
    if judged is None:
        raise InvalidInput("There is no attack.")
    attacks = Attacks(fpr=settings.fpr, confidence=settings.confidence, rows=tuple(rows))
    return attacks, judged


def _rates(
    seen: Floats,
    unseen: Floats,
    settings: Settings,
    rng: np.random.Generator,
    groups: GroupPair,
) -> dict[Success, Measured]:
    """The AUC, the TPR where there are enough records, and the rate that is judged."""
    rates: list[Success] = ["auc"]
    if len(unseen) >= unseen_needed(settings.fpr):
        rates.append("tpr")
    if settings.success not in rates:
        rates.append(settings.success)
    return {rate: _measured(seen, unseen, rate, settings.fpr, rng, groups) for rate in rates}


def _check_fpr(unseen: int, settings: Settings) -> None:
    if settings.success in ("tpr", "precision") and unseen < unseen_needed(settings.fpr):
        raise NotEnoughEvidence(
            f"{unseen} unseen records cannot place a threshold at FPR {settings.fpr:g}; it "
            f"takes at least {unseen_needed(settings.fpr)}.",
            hint="Pass more unseen records, or a larger fpr.",
        )


def _measured(
    seen: Floats,
    unseen: Floats,
    success: Success,
    fpr: float,
    rng: np.random.Generator,
    groups: GroupPair = NO_GROUPS,
) -> Measured:
    draws = int(np.clip(_RESAMPLED // (len(seen) + len(unseen)), 200, 1000))
    return measure(
        seen=seen[None, None],
        unseen=unseen[None, None],
        success=success,
        fpr=fpr,
        draws=draws,
        rng=rng,
        groups=groups,
    )


def _by_cluster(scores: Floats, groups: Groups | None) -> Floats:
    """The mean score of each cluster."""
    if groups is None:
        return scores
    return np.asarray(np.bincount(groups, weights=scores) / np.bincount(groups))


def _estimate(measured: Measured, confidence: float) -> Estimate:
    low, high = measured.ends(confidence)
    return Estimate(float(measured.evidence.value[0, 0]), float(low[0]), float(high[0]))


def _judged(measured: Measured, settings: Settings) -> JudgedSuccess:
    success = settings.success
    return JudgedSuccess(
        success=success,
        fpr=settings.fpr if success in ("tpr", "precision") else None,
        estimate=_estimate(measured, settings.confidence),
        low=float(measured.lower(settings.confidence)[0]),
        high=float(measured.upper(settings.confidence)[0]),
        chance=chance_level(success, settings.fpr),
        confidence=settings.confidence,
        alike=alike_fault(measured.tied_pairs[0]) or None,
    )


def success_lower_bound(
    seen: Floats,
    unseen: Floats,
    *,
    confidence: float,
    rng: np.random.Generator,
    success: Success = "auc",
    fpr: float = 0.1,
    groups: GroupPair = NO_GROUPS,
) -> float:
    """The one-sided lower bound of a success rate, for a positive control."""
    return float(_measured(seen, unseen, success, fpr, rng, groups).lower(confidence)[0])


def blind_part(baseline: BlindBaseline) -> Blind:
    """The blind baseline as a result holds it."""
    return Blind(
        auc=Estimate(baseline.value, baseline.low, baseline.high),
        low_bound=baseline.low_bound,
        high_bound=baseline.high_bound,
        void=baseline.void,
        seen=baseline.n_seen,
        unseen=baseline.n_unseen,
    )


@dataclass(frozen=True, slots=True, eq=False)
class RowWindows:
    """What comes out verbatim of each record, with windows of one length; all ``(records,)``.

    Attributes:
        windows: How many windows it has.
        greedy, sampled: Whether one of them comes out.
        reference_greedy, reference_sampled, beyond: See ``VerbatimRow``; None without a reference.
        likeliest: Natural log-probability of its likeliest second half.
    """

    windows: NDArray[np.int64]
    greedy: NDArray[np.bool_]
    sampled: NDArray[np.bool_]
    reference_greedy: NDArray[np.bool_] | None
    reference_sampled: NDArray[np.bool_] | None
    beyond: NDArray[np.bool_] | None
    likeliest: Floats

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Whether a record counts as coming out: beyond the reference model where there is one."""
        return (self.greedy | self.sampled) if self.beyond is None else self.beyond


def row_windows(target: WindowRows, reference: WindowRows | None, settings: Settings) -> RowWindows:
    """What comes out of each record of a batch."""
    sampled = _leaks(target, settings)
    out = target.greedy | sampled
    in_reference: list[NDArray[np.bool_] | None] = [None, None, None]
    if reference is not None:
        also = _leaks(reference, settings)
        beyond = out & ~(reference.greedy | also)
        in_reference = [np.asarray(flags.any(1)) for flags in (reference.greedy, also, beyond)]
    likeliest = np.full(len(target.counts), -np.inf)
    if target.log_probability.shape[1]:
        likeliest = target.log_probability.max(1)
    return RowWindows(
        windows=target.counts,
        greedy=np.asarray(target.greedy.any(1)),
        sampled=np.asarray(sampled.any(1)),
        reference_greedy=in_reference[0],
        reference_sampled=in_reference[1],
        beyond=in_reference[2],
        likeliest=likeliest,
    )


def _leaks(windows: WindowRows, settings: Settings) -> NDArray[np.bool_]:
    logs = np.minimum(windows.log_probability, 0.0)
    if not logs.size:
        return np.zeros(logs.shape, dtype=bool)
    leaked = leak_probability(log_probability=logs, queries=settings.samples)
    return np.asarray(np.isfinite(windows.log_probability) & (leaked >= settings.probability))


def verbatim_part(
    seen: Mapping[int, RowWindows], unseen: Mapping[int, RowWindows], settings: Settings
) -> Verbatim | Absent:
    """What comes out verbatim, by length of a half window."""
    sides: tuple[tuple[Side, Mapping[int, RowWindows]], ...] = (("seen", seen), ("unseen", unseen))
    rows = [_verbatim_row(half, side, of[half]) for half in seen for side, of in sides]
    if not any(row.rows for row in rows):
        return Absent(f"no record has {2 * min(seen)} tokens, a window of the shortest kind")
    tests = [_verbatim_test(half, seen[half], unseen[half]) for half in seen]
    return Verbatim(
        samples=settings.samples,
        probability=settings.probability,
        rows=tuple(rows),
        tests=tuple(test for test in tests if test is not None),
    )


def _verbatim_row(half: int, side: Side, windows: RowWindows) -> VerbatimRow:
    def total(flags: NDArray[np.bool_] | None) -> int | None:
        return None if flags is None else int(flags.sum())

    has = windows.windows > 0
    return VerbatimRow(
        half=half,
        side=side,
        rows=int(has.sum()),
        windows=int(windows.windows.sum()),
        greedy=int(windows.greedy.sum()),
        sampled=int(windows.sampled.sum()),
        reference_greedy=total(windows.reference_greedy),
        reference_sampled=total(windows.reference_sampled),
        beyond=total(windows.beyond),
        likeliest=float(windows.likeliest[has].max()) if has.any() else None,
    )


def _verbatim_test(half: int, seen: RowWindows, unseen: RowWindows) -> VerbatimTest | None:
    counts = [(int(side.counted.sum()), int((side.windows > 0).sum())) for side in (seen, unseen)]
    if not all(rows for _, rows in counts):
        return None
    table = [[out, rows - out] for out, rows in counts]
    shares = [
        Estimate(out / rows, *(float(end) for end in clopper_pearson(out, rows, confidence=0.95)))
        for out, rows in counts
    ]
    return VerbatimTest(
        half=half,
        seen_share=shares[0],
        unseen_share=shares[1],
        p_value=float(stats.fisher_exact(table, alternative="greater").pvalue),
    )


def risks_part(
    seen: Floats, unseen: Floats, rows: NDArray[np.int64], verbatim: NDArray[np.bool_] | None
) -> Risks:
    """The records at the highest risk.

    Args:
        seen, unseen: Scores of the named attack.
        rows: The place of each seen record, counted from 1.
        verbatim: Whether a part of each comes out; None where that was not measured.
    """
    above = shares_above(seen, unseen)
    order = np.argsort(-seen, kind="stable")[:_SHOWN]
    return Risks(
        beyond=int((above == 0.0).sum()),
        rows=tuple(
            RiskRow(
                row=int(rows[i]),
                score=float(seen[i]),
                above=float(above[i]),
                verbatim=None if verbatim is None else bool(verbatim[i]),
            )
            for i in order.tolist()
        ),
    )


def shares_above(seen: Floats, unseen: Floats) -> Floats:
    """The share of unseen records that score as high as each seen one, or higher."""
    below = np.searchsorted(np.sort(unseen), seen, side="left")
    return np.asarray(1.0 - below / len(unseen))


def task_fault(
    task: LanguageTask | ClassifierTask | Absent, *, seen_bits: float | None = None
) -> str:
    """Why the model counts as untrained; empty where it does not.

    A language model has to predict unseen or seen texts better than the tokens' frequencies do. A
    network with random weights may do better than a uniform guess, if it predicts the token that it
    read last. One that was trained for very long predicts seen texts only.

    Args:
        task: How well it does what it was trained for, on unseen records.
        seen_bits: What a token of a seen text costs; None for classifiers.
    """
    if isinstance(task, LanguageTask) and task.uniform_bits is not None:
        bits = task.validation_bits if seen_bits is None else min(task.validation_bits, seen_bits)
        if bits < _UNTRAINED * task.uniform_bits:
            return ""
        return (
            "the model did not learn its task: a token of an unseen record costs "
            f"{task.validation_bits:.2f} bits, and guessing by the tokens' frequencies costs "
            f"{task.uniform_bits:.2f} bits"
        )
    if isinstance(task, ClassifierTask):
        return (
            not_learnt(
                {
                    "test_accuracy": task.test_accuracy,
                    "test_examples": task.test_examples,
                    "majority": task.majority,
                }
            )
            .replace("the models did not learn their task", "the model did not learn its task")
            .replace("test accuracy", "accuracy on unseen records")
        )
    return ""


def fit_fault(seen_gain: Floats | None) -> str:
    """Why nothing shows that the model was trained on such records; empty where something does.

    Args:
        seen_gain: By how much the model is better than the reference on each seen record; None
            where there is no reference.
    """
    if seen_gain is None:
        return ""
    spread = float(seen_gain.std(ddof=1)) / len(seen_gain) ** 0.5
    if float(seen_gain.mean()) - float(stats.norm.isf(0.05)) * spread > 0.0:
        return ""
    return (
        "nothing shows that the model was trained on such records: it predicts the seen ones no "
        "better than the reference model does"
    )


def reference_fault(
    seen: Mapping[str, Floats],
    unseen: Mapping[str, Floats],
    *,
    rng: np.random.Generator,
    not_learnt: str = "",
) -> str:
    """Why a reference model cannot be used; empty where it can.

    A model that saw neither set scores both alike. One that scores seen records higher is suspected
    of having been trained on them, such as an earlier checkpoint of the same training: see
    ``suspected``. One that scores unseen records higher was trained on them, or the sets differ.

    Args:
        seen, unseen: Scores of the records by the reference model alone, by attack.
        rng: Draws the resamples behind the bounds.
        not_learnt: Why the reference model counts as untrained; empty where it does not.
    """
    if not_learnt:
        return f"the reference model cannot be used: {not_learnt.replace('the model', 'it', 1)}"
    p_values = {name: rank_sum_p_value(scores, unseen[name]) for name, scores in seen.items()}
    p_value = suspected(p_values.values())
    for name, scores in seen.items():
        measured = _measured(scores, unseen[name], "auc", 0.5, rng)
        low, high = (float(end[0]) for end in measured.ends(1.0 - _ALARM / len(seen)))
        p_text = ""
        if p_value is not None and p_values[name] == min(p_values.values()):
            p_text = f", p = {p_value:.2g}"
        if p_text or high < 0.5:
            return (
                f"the reference model itself distinguishes the two sets (AUC {low:.3f} to "
                f"{high:.3f} by {name!r}{p_text}), as a model that was trained on one of them does"
            )
    return ""


def tested(kind: str, *, reference: bool, verbatim: bool) -> Tested:
    """What such an audit tests and what it does not."""
    return Tested(
        tested=(
            f"Attacks that read the probabilities of the {kind}"
            f"{' and of a reference model' * reference}.",
            "Whether seen and unseen records differ in themselves (blind baseline).",
            *(("Whether parts of records come out verbatim.",) * verbatim),
        ),
        not_tested=(
            "Whether the model was trained on all seen records and on no unseen one.",
            "Attacks that train shadow models, which are stronger.",
            "Records of other kinds, and other trainings of the same model.",
            *(() if verbatim else ("What comes out verbatim.",)),
        ),
    )


def joined(parts: Sequence[RowWindows]) -> RowWindows:
    """The windows of several batches, in their order."""

    def cat(name: str) -> NDArray[np.bool_] | None:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    return RowWindows(
        windows=np.concatenate([part.windows for part in parts]),
        greedy=np.concatenate([part.greedy for part in parts]),
        sampled=np.concatenate([part.sampled for part in parts]),
        reference_greedy=cat("reference_greedy"),
        reference_sampled=cat("reference_sampled"),
        beyond=cat("beyond"),
        likeliest=np.concatenate([part.likeliest for part in parts]),
    )
