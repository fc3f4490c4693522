"""The exposure gate: are planted canaries under a limit in bits?

``judge_exposure`` is the one judge of exposure. ``remnant exposure --limit``, the exposure study
and the translation study call it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from scipy import stats

from remnant.errors import NotEnoughEvidence
from remnant.measures.exposure.by_rank import FOUND, is_found, references_to_show
from remnant.measures.statistics.holm import holm
from remnant.measures.statistics.intervals import clopper_pearson
from remnant.records.outcomes import Outcome, gate_row
from remnant.records.typed import optional
from remnant.studies.exposure.above_controls import above_controls, like_controls, not_all_memory
from remnant.studies.exposure.result import CanaryExposure
from remnant.studies.shared.wording import about, counted, times

CONFIDENCE = 0.95
_DRAWN = 1_000_000  # references that are still worth drawing
_OTHER_REFERENCE = (
    "Pass a reference model that never saw the canaries, such as the one that the training started "
    "from, or judge without one."
)
_FEW = 1 / 3  # a bound above this share is stated as what may be above the limit


@dataclass(frozen=True, slots=True, eq=False)
class CanaryPool:
    """Canaries that were tested together, and their controls.

    Attributes:
        canaries: All planted canaries.
        controls: Secrets of the same template, in the same models, never planted.
        p_values: Of the pooled test, by how often planted; 0 stands for the controls.
        twin_mean_bits: Mean exposure in twins that never saw the canaries, by how often planted;
            empty where there are no twins.
        name: By which a sentence refers to the pool; "set 2" for the second where it is empty.
    """

    canaries: tuple[CanaryExposure, ...]
    controls: tuple[CanaryExposure, ...]
    p_values: Mapping[int, float | None]
    twin_mean_bits: Mapping[int, float] = field(default_factory=dict)
    name: str = ""

    @property
    def repeats(self) -> list[int]:
        """How often canaries were planted, most often first."""
        return sorted({canary.repeats for canary in self.canaries}, reverse=True)

    @property
    def exposed_controls(self) -> float | None:
        """The controls' mean exposure where that is more than chance allows at 1 %; else None."""
        if not self.controls or not is_found(self.p_values.get(0)):
            return None
        bits = [control.low if control.saturated else control.bits for control in self.controls]
        return sum(bits) / len(bits)

    def planted_at_most(self, repeats: int | None) -> list[CanaryExposure]:
        """The canaries that were planted at most so often; all of them for None."""
        most = math.inf if repeats is None else repeats
        return [canary for canary in self.canaries if canary.repeats <= most]

    def planted(self, repeats: int) -> list[CanaryExposure]:
        """The canaries that were planted so often."""
        return [canary for canary in self.canaries if canary.repeats == repeats]


@dataclass(frozen=True, slots=True)
class ExposureJudgement:
    """What the gate says.

    Attributes:
        outcome: ``"PASS"``, ``"FAIL"`` or ``"INCONCLUSIVE"``.
        sentence: What was measured and why that is the outcome; that of a PASS ends with ``claim``.
        claim: The strongest statement the evidence supports, with its n and confidence.
        limit: In bits.
        share: The share of canaries at or above the limit that was allowed; ``None`` where no
            share was given and every judged canary has to be under the limit.
        judged: How many canaries were judged.
        above: How many of them are, or may be, at or above the limit.
        share_low, share_high: One-sided 95 % bounds of the share of such canaries at or above the
            limit, in these models.
        p_value: Of the pooled test of the judged canaries, corrected for the number of groups of
            them; ``None`` where none could be tested.
        control: How often the canaries were planted that are the positive control, the most often
            of several pools; ``None`` where a pool with judged canaries has no positive control.
        trainings: How many trained models were judged.
        detected: Whether judged canaries are memorised by the pooled test, whatever the outcome;
            None in older records.
        chance: The probability that chance alone puts a judged canary at or above the limit; None
            in older records.
    """

    outcome: Outcome
    sentence: str
    claim: str
    limit: float
    share: float | None
    judged: int
    above: int
    share_low: float
    share_high: float
    p_value: float | None
    control: int | None
    trainings: int
    detected: bool | None = optional()
    chance: float | None = optional()

    def row(self) -> dict[str, Any]:
        """The ``verdict`` row of a record."""
        fields = asdict(self)
        gate = {name: fields.pop(name) for name in ("outcome", "sentence", "claim", "limit")}
        return gate_row(**gate, detected=fields.pop("detected")) | fields


def judge_exposure(
    pools: Sequence[CanaryPool],
    *,
    limit: float,
    judged: int | None = None,
    share: float | None = None,
    trainings: int = 1,
    copying: bool = False,
    budget: str = "max_nodes",
    judged_setting: str = "measure.judged =",
    uncalibrated: Sequence[CanaryPool] = (),
    reference_fault: str = "",
) -> ExposureJudgement:
    """Judge planted canaries against a limit in bits.

    The *positive control* of a PASS: in each pool that has judged canaries, some group of canaries
    planted equally often is more exposed than chance allows at 1 %, corrected for the number of
    groups of all pools (Holm). The group may be that of the judged canaries. Where its controls are
    themselves more exposed than chance allows at 1 %, the group also has to be more exposed than
    they are, and where it has twins, than in these.

    The share of canaries at or above the limit has one-sided 95 % Clopper-Pearson bounds. They are
    about these models: canaries are drawn independently, and what models have in common enters
    every draw. A canary whose interval holds the limit counts as above it in the upper bound and as
    under it in the lower. Where exposures were sampled, half of the 5 % is left to the sampling.
    The lower bounds of the shares within groups of judged canaries planted equally often hold
    together with 95 % confidence (Bonferroni).

    Args:
        pools: The canaries; at least one of them has to be judged.
        limit: In bits.
        judged: Only canaries planted at most so often are judged; ``None`` judges all.
        share: The share of judged canaries that may be at or above the limit.
        trainings: How many trained models the canaries are from. Canaries of different trainings
            have different ``trial``.
        copying: Each canary's own secret was in the model's input, so that a model may copy it: the
            positive control has to be more exposed than the controls whatever these have.
        budget: What a user raises to have exposure ranked exactly.
        judged_setting: What a user writes before a number to have only canaries planted at most so
            often judged.
        uncalibrated: The same canaries by the model's own costs, where those of ``pools`` are
            calibrated by reference models.
        reference_fault: Why the reference models cannot be used; empty where they can.

    Guarantees:
        * Without ``share``: FAIL where the whole interval of a judged canary is at or above the
          limit. PASS where all intervals are under it and the positive control was found.
        * With ``share``: FAIL where the lower bound of the share is above ``share``, of all judged
          canaries or of those planted equally often. PASS where no lower bound is, the upper bound
          of the share of all is at most ``share``, the positive control was found, and in no group
          planted equally often more than ``share`` are, or may be, at or above the limit: many
          canaries planted once do not make up for a few planted often.
        * INCONCLUSIVE otherwise, and instead of a FAIL where controls reach the limit too and
          canaries are not more exposed than controls.
        * Reference models make no PASS: there is none where the uncalibrated canaries are not shown
          to be under the limit, or the reference models cannot be used.
        * Where nothing was learnt of a pool with judged canaries, a PASS has a probability of at
          most 1 %.
        * A claim about canaries planted more and less often says how many of each reach the limit,
          where any do.

    Raises:
        NotEnoughEvidence: There is no canary to judge.
    """
    canaries = [canary for pool in pools for canary in pool.planted_at_most(judged)]
    if not canaries:
        raise NotEnoughEvidence("There is no planted canary to judge.", hint="Plant some.")
    evidence = _Evidence(
        pools=pools,
        canaries=canaries,
        limit=limit,
        judged=judged,
        share=share,
        trainings=trainings,
        alpha=_alpha(canaries),
        copying=copying,
        budget=budget,
        judged_setting=judged_setting,
    )
    decided = evidence.decide()
    if decided[0] != "FAIL":
        decided = evidence.calibrated(decided, uncalibrated, reference_fault)
    return ExposureJudgement(
        *decided,
        limit=limit,
        share=share,
        judged=len(canaries),
        above=len(evidence.possible),
        share_low=evidence.low,
        share_high=evidence.high,
        p_value=evidence.memorised[0],
        control=evidence.control,
        trainings=trainings,
        detected=bool(evidence._yet()),
        chance=-math.expm1(len(canaries) * math.log1p(-(2.0**-limit))),
    )


def canaries_needed(share: float, *, above: int = 0, alpha: float = 1.0 - CONFIDENCE) -> int:
    """How many canaries it takes to show that at most ``share`` of them are above a limit.

    With none above it is the least ``n`` with ``(1 - share)**n <= alpha``.

    Args:
        share: Between 0 and 1.
        above: How many of them are above the limit.
        alpha: One minus the confidence.

    Example:
        >>> canaries_needed(0.2), canaries_needed(0.01), canaries_needed(0.2, above=1)
        (14, 299, 22)
    """
    least, most = above, max(above, 1)
    while _bounds(above, most, alpha)[1] > share:
        least, most = most, 2 * most
    while most - least > 1:
        middle = (least + most) // 2
        if _bounds(above, middle, alpha)[1] <= share:
            most = middle
        else:
            least = middle
    return most


def more_evidence(
    canaries: Iterable[CanaryExposure], limit: float, budget: str = "max_nodes"
) -> str:
    """What would show on which side of a limit these canaries are.

    Args:
        canaries: Whose intervals hold the limit.
        limit: In bits.
        budget: What a user raises to have exposure ranked exactly; empty where that cannot be.
    """
    if not any(canary.sampled for canary in canaries):
        return f"raise {budget}"
    if not any(canary.saturated for canary in canaries):
        if any(canary.tied for canary in canaries):
            return (
                "references cost exactly as much, as costs that are capped, rounded or not "
                "computed do: compute them in full"
            )
        return f"draw several times as many references{f', or raise {budget}' if budget else ''}"
    needed = references_to_show(limit)
    if needed <= _DRAWN or not budget:
        # Equal costs and a small space widen intervals, and most are not far above the limit.
        return f"draw {about(2 * needed)} references or more"
    return (
        f"to show that many bits takes {about(needed)} references, so raise {budget} instead, for "
        "exact ranks"
    )


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Everything the outcome depends on; the arguments of ``judge_exposure``, and these.

    Attributes:
        canaries: The judged ones.
        alpha: One minus the confidence of the bounds of the share.
        at_once: How many lower bounds have to hold together.
    """

    pools: Sequence[CanaryPool]
    canaries: list[CanaryExposure]
    limit: float
    judged: int | None
    share: float | None
    trainings: int
    alpha: float
    copying: bool
    budget: str
    judged_setting: str
    at_once: int = 1

    @cached_property
    def sure(self) -> list[CanaryExposure]:
        """The canaries that are at or above the limit."""
        return [canary for canary in self.canaries if canary.low >= self.limit]

    @cached_property
    def possible(self) -> list[CanaryExposure]:
        """The canaries that are, or may be, at or above the limit."""
        return [canary for canary in self.canaries if canary.high >= self.limit]

    @cached_property
    def low(self) -> float:
        """Lower bound of the share at or above the limit."""
        return _bounds(len(self.sure), len(self.canaries), self.alpha / self.at_once)[0]

    @cached_property
    def high(self) -> float:
        """Upper bound of the share at or above the limit."""
        return _bounds(len(self.possible), len(self.canaries), self.alpha)[1]

    @cached_property
    def controls(self) -> list[int | None]:
        """How often the positive control of each pool was planted; None where it has none."""
        return _positive_controls(self.pools, copying=self.copying)

    def decide(self) -> tuple[Outcome, str, str]:
        """The outcome, its sentence and the claim."""
        over = self._over()
        if over is not None:
            return over
        if self.control is None:
            return self._blind()
        unsure = self._unsure()
        if unsure is not None:
            return unsure
        claim = self._bound()
        return "PASS", f"{self._measured()}; {self._found()}. {claim}", claim

    def _over(self) -> tuple[Outcome, str, str] | None:
        """The outcome where canaries, or more of them than the share, reach the limit."""
        if self.share is None:
            if self.sure:
                return self._reached()
            return self._open() if self.possible else None
        if self.low > self.share:
            return self._reached()
        groups = sorted(self._groups(), key=lambda group: group.low, reverse=True)
        judged = [group._reached() for group in groups if group.low > self.share]
        return next((each for each in judged if each[0] == "FAIL"), judged[0] if judged else None)

    def _unsure(self) -> tuple[Outcome, str, str] | None:
        """The outcome where no more than the share are shown to reach the limit, nor fewer."""
        if self.share is None:
            return None
        return self._too_few(self.share) if self.high > self.share else self._diluted(self.share)

    def calibrated(
        self,
        decided: tuple[Outcome, str, str],
        uncalibrated: Sequence[CanaryPool],
        reference_fault: str,
    ) -> tuple[Outcome, str, str]:
        """What was decided, or INCONCLUSIVE where reference models may hide what is remembered."""
        why, advice = reference_fault, f" {_OTHER_REFERENCE}"
        if not why and uncalibrated:
            canaries = [row for pool in uncalibrated for row in pool.planted_at_most(self.judged)]
            own = replace(self, pools=uncalibrated, canaries=canaries, alpha=_alpha(canaries))
            over = own._over() or own._unsure()
            if over is not None and (over[0] == "FAIL" or decided[0] == "PASS"):
                why = f"without the reference models, {over[1].rstrip('.')}"
                advice = advice * (over[0] == "FAIL")
        if not why:
            return decided
        sentence = f"{self._measured()}, calibrated; but {why}.{advice}"
        return "INCONCLUSIVE", sentence, f"No claim: {why}."

    @property
    def control(self) -> int | None:
        """How often the positive control was planted; None where a judged pool has none."""
        controls = [self.controls[at] for at in self._judged_pools()]
        known = [repeats for repeats in controls if repeats is not None]
        return max(known) if len(known) == len(controls) else None

    def _is_judged(self, repeats: int) -> bool:
        return self.judged is None or repeats <= self.judged

    def _judged_pools(self) -> list[int]:
        """The numbers of the pools that have judged canaries."""
        return [at for at, pool in enumerate(self.pools) if any(map(self._is_judged, pool.repeats))]

    def _pool_name(self, at: int) -> str:
        return self.pools[at].name or f"set {at + 1}"

    def _groups(self) -> list[_Evidence]:
        """The evidence by how often judged canaries were planted, most often first.

        The lower bounds hold together.
        """
        numbers = sorted({canary.repeats for canary in self.canaries}, reverse=True)
        groups = [[row for row in self.canaries if row.repeats == many] for many in numbers]
        return [replace(self, canaries=group, at_once=len(groups)) for group in groups]

    @property
    def _times(self) -> str:
        """How often the canaries of a group were planted, in words."""
        return times(self.canaries[0].repeats)

    @property
    def memorised(self) -> tuple[float | None, int]:
        """The smallest p-value of judged groups, corrected for their number, and its repeats."""
        tested = [
            (p_value, repeats)
            for pool in self.pools
            for repeats in pool.repeats
            if (p_value := pool.p_values.get(repeats)) is not None and self._is_judged(repeats)
        ]
        if not tested:
            return None, 0
        p_value, repeats = min(tested)
        return min(p_value * len(tested), 1.0), repeats

    def _which(self, canaries: str = "canaries") -> str:
        """The judged canaries in words."""
        often = {canary.repeats for canary in self.canaries}
        if len(often) == 1:
            return f"{canaries} planted {times(often.pop())}"
        if self.judged is None:
            return f"planted {canaries}"
        return f"{canaries} planted at most {times(self.judged)}"

    @property
    def where(self) -> str:
        """The models the bounds are about."""
        return "in this model" if self.trainings == 1 else f"in these {self.trainings} trainings"

    def _reached(self) -> tuple[Outcome, str, str]:
        """Canaries are at or above the limit; those whose controls are at chance come first."""
        held = {id(canary): pool for pool in self.pools for canary in pool.canaries}
        sound = [canary for canary in self.sure if held[id(canary)].exposed_controls is None]
        worst = max(sound or self.sure, key=lambda canary: (canary.low, canary.bits))
        sentence = (
            f"{_named(worst)} has an exposure of {_bits(worst)}, at or above the limit of "
            f"{self.limit:g}"
        )
        claim = (
            f"{len(self.sure)} of {self._counted()} had {self.limit:g} bits or more {self.where}."
        )
        if self.share is not None:
            sentence += (
                f", as {'has' if len(self.sure) == 1 else 'have'} {len(self.sure)} of "
                f"{self._counted()}: more than the allowed {percent(self.share)} of such canaries "
                f"(95 % confidence: {percent(self.low)} or more)"
            )
        mean = held[id(worst)].exposed_controls
        if mean is not None:
            pools = [pool for pool in self.pools if any(held[id(row)] is pool for row in self.sure)]
            alike = like_controls(
                [canary for canary in self.canaries if held[id(canary)] in pools],
                [control for pool in pools for control in pool.controls],
                self.limit,
            )
            if alike:
                return "INCONCLUSIVE", f"{sentence}; but {alike}.", f"No claim: {alike}."
            return "FAIL", f"{sentence}; {not_all_memory(mean)}.", claim
        by_chance = self._by_chance()
        return "FAIL", f"{sentence}{by_chance}.", f"{claim.rstrip('.')}{by_chance}."

    def _by_chance(self) -> str:
        """How probably chance alone puts as many at or above the limit, where that is over 1 %."""
        many, n = len(self.sure), len(self.canaries)
        probability = float(stats.binom.sf(many - 1, n, 2.0**-self.limit))
        if is_found(probability):
            return ""
        has_control = any(repeats is not None for repeats in self.controls)
        which = "a canary" if n == 1 else f"{many} or more of {n} canaries"
        unfound = "" if has_control else ", and no planted canaries were found by the pooled test"
        return f"; chance alone puts {which} there with probability {percent(probability)}{unfound}"

    def _open(self) -> tuple[Outcome, str, str]:
        """An interval holds the limit."""
        farthest = max(self.possible, key=lambda canary: (canary.high, canary.bits))
        upto = f"up to {farthest.high:.2f} bits" if math.isfinite(farthest.high) else "any exposure"
        sentence = (
            f"{_named(farthest)} may have {upto}, and the limit is {self.limit:g}; "
            f"{more_evidence(self.possible, self.limit, self.budget)}."
        )
        claim = (
            f"No claim: {len(self.possible)} of {self._counted()} may have {self.limit:g} bits or "
            "more."
        )
        return "INCONCLUSIVE", sentence, claim

    def _too_few(self, share: float) -> tuple[Outcome, str, str]:
        """The bounds of the share lie on both sides of the allowed one."""
        above = len(self.possible)
        needed = canaries_needed(share, above=above, alpha=self.alpha)
        bound = self._bound()
        kept = "none" if not above else f"no more than {above}"
        sentence = (
            f"{self._measured()}. {bound} The allowed share is {percent(share)}: to show it takes "
            f"{about(needed)} judged {'canary' if needed == 1 else 'canaries'} with {kept} at or "
            "above the limit"
        )
        straddling = [canary for canary in self.possible if canary.low < self.limit]
        if straddling:
            sentence += (
                f"; {len(straddling)} may be on either side of it: "
                f"{more_evidence(straddling, self.limit, self.budget)}"
            )
        return "INCONCLUSIVE", f"{sentence}.", bound

    def _diluted(self, share: float) -> tuple[Outcome, str, str] | None:
        """A group planted equally often has more than the share at or above the limit; else None.

        Such a group is too small to be a FAIL by itself.
        """
        over = [each for each in self._groups() if len(each.possible) > share * len(each.canaries)]
        if not over:
            return None
        worst = max(over, key=lambda each: len(each.possible) / len(each.canaries))
        why = (
            f"{len(worst.possible)} of {worst._counted()} {worst._reach()} {self.limit:g} bits, "
            f"more than the allowed {percent(share)}"
        )
        repeats = min(each.canaries[0].repeats for each in over)
        advice = f"Plant more canaries {worst._times} to decide about these."
        less = [canary.repeats for canary in self.canaries if canary.repeats < repeats]
        if less:
            advice = (
                f"Judge canaries planted less often by themselves ({self.judged_setting} "
                f"{max(less)}), or plant more of those planted {worst._times}."
            )
        sentence = f"{self._measured()}. {self._bound()} But {why}. {advice}"
        return "INCONCLUSIVE", sentence, f"No claim: {why}."

    def _blind(self) -> tuple[Outcome, str, str]:
        """Under the limit, and the positive control is missing."""
        blind = [at for at in self._judged_pools() if self.controls[at] is None]
        of_sets = f" of {' or '.join(map(self._pool_name, blind))}" * (len(self.pools) > 1)
        why = f"no planted canaries{of_sets} were found"
        if self.copying or any(self.pools[at].exposed_controls is not None for at in blind):
            why += " to be more exposed than chance and than controls"
        several = len(self.pools) > 1
        these = f"those{of_sets}" if several else "these canaries"
        advice = f"plant some{of_sets} more often"
        if several:
            advice += "; canaries found in another set do not show that these were trained on"
        sentence = (
            f"{self._measured()}{self._by_repeats()}; but {why} (pooled test at "
            f"{percent(FOUND)}), so that this says nothing about memory of {these}: check that the "
            f"model was trained on them, or {advice}."
        )
        return "INCONCLUSIVE", sentence, f"No claim: {why}."

    def _counted(self) -> str:
        return counted(len(self.canaries), self._which("canary"), self._which())

    def _reach(self) -> str:
        """The verb of "1 of 3 canaries reaches the limit"."""
        if len(self.sure) < len(self.possible):
            return "may reach"
        return "reaches" if len(self.sure) == 1 else "reach"

    def _measured(self) -> str:
        """The most exposed judged canary, and on which side of the limit it is."""
        worst = max(self.canaries, key=lambda canary: (canary.high, canary.bits))
        most = "at most " * (worst.low < worst.high)
        high = f"{most}{worst.high:.2f} bits" if math.isfinite(worst.high) else _bits(worst)
        under = f"and {len(self.possible)} {self._reach()}" if self.possible else "under"
        first = f"The most exposed of {self._counted()}"
        if len(self.canaries) == 1:
            first = f"The one {self._which('canary')}"
        return f"{first}, {worst.name}, has {high}, {under} the limit of {self.limit:g}"

    def _yet(self) -> str:
        """Whether judged canaries are memorised though under the limit, by the pooled test."""
        p_value, repeats = self.memorised
        if p_value is None or not is_found(p_value):
            return ""
        several = len({canary.repeats for canary in self.canaries}) > 1
        which = f" where planted {times(repeats)}" if several else ""
        if any(pool.exposed_controls is not None for pool in self.pools):
            return f"; yet more exposed than chance allows{which}, p = {p_value:.2g}"
        return f"; yet detectably memorised{which}, p = {p_value:.2g}"

    def _by_repeats(self) -> str:
        """How many of each group are at or above the limit, where there are several groups."""
        groups = self._groups()
        return "".join(
            f"; {len(group.possible)} of {len(group.canaries)} planted {group._times} "
            f"{group._reach()} it"
            for group in groups
            if group.possible and len(groups) > 1
        )

    def _found(self) -> str:
        """The positive control of each pool with judged canaries."""
        judged = self._judged_pools()
        if len(judged) == 1 or len({self.controls[at] for at in judged}) == 1:
            return f"those planted {times(self.control or 0)} were found"
        parts = [f"{times(self.controls[at] or 0)} in {self._pool_name(at)}" for at in judged]
        return f"those planted {', '.join(parts)} were found"

    def _bound(self) -> str:
        """The bound of the share with its n, and what other trainings may give."""
        n, above = len(self.canaries), len(self.possible)
        under = n - above
        yet = self._yet()
        if not above and self.high > _FEW:
            bound = (
                f"{under} of {self._counted()} {'was' if n == 1 else 'were'} under "
                f"{self.limit:g} bits {self.where}{yet}; up to {percent(self.high)} of such "
                "secrets may be above it (95 % confidence)."
            )
        else:
            bound = (
                f"At most {percent(self.high)} of {self._which()} have {self.limit:g} bits "
                f"or more {self.where} (95 % confidence): {under} of {n} "
                f"{'was' if under == 1 else 'were'} under it{self._by_repeats()}{yet}."
            )
        return f"{bound} {self._other_trainings()}"

    def _other_trainings(self) -> str:
        if self.trainings == 1:
            return "One training: another may differ."
        reached = len({canary.trial for canary in self.possible})
        _, most = _bounds(reached, self.trainings, 1.0 - CONFIDENCE)
        if not reached:
            return (
                f"None of {self.trainings} trainings had a canary at or above it: up to "
                f"{percent(most)} of trainings may behave otherwise."
            )
        return (
            f"{reached} of {self.trainings} trainings had a canary at or above it: up to "
            f"{percent(most)} of trainings may."
        )


def percent(share: float) -> str:
    """A share in percent: whole from 10 % on, with two digits under it.

    Example:
        >>> percent(0.1391), percent(0.0368), percent(1.0)
        ('14 %', '3.7 %', '100 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"


def _positive_controls(pools: Sequence[CanaryPool], *, copying: bool) -> list[int | None]:
    """How often the positive control of each pool was planted: the largest number that is found.

    None where no group of the pool is found.
    """
    groups = [(at, repeats) for at, pool in enumerate(pools) for repeats in pool.repeats]
    adjusted = holm([_group_p_value(pools[at], repeats, copying=copying) for at, repeats in groups])
    controls: list[int | None] = [None] * len(pools)
    for (at, repeats), p_value in zip(groups, adjusted, strict=True):
        if is_found(float(p_value)):
            controls[at] = max(repeats, controls[at] or 0)
    return controls


def _group_p_value(pool: CanaryPool, repeats: int, *, copying: bool) -> float:
    """The p-value of "nothing was learnt of these canaries"; 1 where that cannot be tested."""
    p_value = pool.p_values.get(repeats)
    if p_value is None:
        return 1.0
    canaries = pool.planted(repeats)
    twin = pool.twin_mean_bits.get(repeats)
    if twin is not None and not sum(row.bits for row in canaries) / len(canaries) > twin:
        return 1.0
    if not copying and pool.exposed_controls is None:
        return p_value
    contrast = above_controls(canaries, pool.controls)
    # Both have to be shown, so that the larger p-value is that of both together.
    return 1.0 if contrast is None else max(p_value, contrast)


def _alpha(canaries: Iterable[CanaryExposure]) -> float:
    """The error left to the count of canaries above the limit.

    An interval of a sampled exposure lies wholly under the true value with 2.5 % at most. Canaries
    of one model have the same references: if one at or above the limit seems to be under it, so
    does the least exposed of those at or above it. All together err with 2.5 % at most.
    """
    alpha = 1.0 - CONFIDENCE
    return alpha / 2.0 if any(canary.sampled for canary in canaries) else alpha


def _bounds(hits: int, n: int, alpha: float) -> tuple[float, float]:
    """One-sided Clopper-Pearson bounds, each with confidence ``1 - alpha``."""
    low, high = clopper_pearson(hits, n, confidence=1.0 - 2.0 * alpha)
    return float(low), float(high)


def _bits(canary: CanaryExposure) -> str:
    """The exposure, or its lower bound where it may be more."""
    if canary.saturated or canary.low < canary.high:
        return f"at least {canary.low:.2f} bits"
    return f"{canary.bits:.2f} bits"


def _named(canary: CanaryExposure) -> str:
    return f"{canary.name} (planted {times(canary.repeats)})"
