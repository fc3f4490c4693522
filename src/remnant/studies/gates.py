"""A gate's verdict, and what the same run has to say about it.

A gate judges one curve. The same run has a negative control (A/A twins) and may have searched for
residual memory (weight noise, relearning, a scan of later checkpoints). What these found enters the
outcome, or the claim names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from remnant.errors import InvalidInput
from remnant.measures import ExposureCurve, ForgettingCurve, Verdict
from remnant.records import Record, gate_row

_CLAIMED = 0.05  # an adjusted p-value at or under this is named


def put_verdict(record: Record, judged: Callable[[], Verdict]) -> None:
    """Put a verdict into the record, or why there is none.

    There is none where nothing can be claimed, such as at a confidence of one half.
    """
    try:
        found = judged()
    except InvalidInput as fault:
        record.put_absent("verdict", str(fault))
    else:
        record.put_result("verdict", gate_row(**asdict(found)))


def with_plan(verdict: Verdict, *, trials: int, fresh_canaries: bool) -> Verdict:
    """The verdict of twins beside what their plan can show.

    With one trial a PASS becomes INCONCLUSIVE: two models always differ a little, so one pair can
    make the attack look able to find canaries. Where all trials planted the same canaries, the
    claim says so.

    Args:
        verdict: Of a curve that compares planted models with unplanted ones.
        trials: Pairs.
        fresh_canaries: Whether each trial planted canaries of its own.
    """
    if trials == 1 and verdict.outcome == "PASS":
        reason = "one pair of twins cannot show whether they differ by memory or by training"
        sentence = f"{verdict.sentence} But {reason}: run several trials."
        return replace(
            verdict, outcome="INCONCLUSIVE", sentence=sentence, claim=f"No claim: {reason}."
        )
    if fresh_canaries or trials == 1 or verdict.claim.startswith("No claim"):
        return verdict
    same = "all trainings planted the same canaries, so nothing is claimed about others"
    return replace(verdict, claim=f"{verdict.claim.removesuffix('.')}; {same}.")


def with_negative_control(
    verdict: Verdict, unplanted: ForgettingCurve | ExposureCurve | None
) -> Verdict:
    """The verdict beside the A/A twins, of which neither saw a canary.

    Where the attack distinguishes even these beyond the limit at the last lag, a FAIL is not shown
    to be memory, and becomes INCONCLUSIVE. Where it distinguishes them at all, the claim says so.
    """
    if unplanted is None or unplanted.confidence <= 0.5:
        return verdict
    chance = unplanted.chance if isinstance(unplanted, ForgettingCurve) else unplanted.null
    low = float(unplanted.evidence.lower(unplanted.confidence)[-1])
    if low <= chance:
        return verdict
    seen = (
        f"the A/A twins, which never saw a canary, are distinguished too (at least {low:.3g} at "
        f"the last lag; chance {chance:.3g})"
    )
    if verdict.outcome == "FAIL" and low > verdict.limit:
        sentence = f"{verdict.sentence} But {seen}, so this need not be memory."
        return replace(
            verdict, outcome="INCONCLUSIVE", sentence=sentence, claim=f"No claim: {seen}."
        )
    return replace(verdict, claim=f"{verdict.claim.removesuffix('.')}; {seen}.")


def with_residual_memory(verdict: Verdict, results: Mapping[str, Mapping[str, Any]]) -> Verdict:
    """The verdict beside what disturbances and later checkpoints brought back.

    A PASS becomes FAIL where success after a disturbance is shown to be above the limit. Otherwise
    its claim names every search that found the canaries, and the largest success after a
    disturbance that the run does not exclude, where that is above the limit.

    Args:
        verdict: Of the curve.
        results: The record's; ``hidden`` and ``returning`` are read where they were measured.
    """
    if verdict.outcome != "PASS":
        return verdict
    disturbed = results.get("hidden", {}).get("disturbances", ())
    rows = [row for row in disturbed if row["reading"] != "not found"]
    worst = max(rows, key=lambda row: float(row["after_low"]), default=None)
    if worst is not None and float(worst["after_low"]) > verdict.limit:
        said = (
            f"after {worst['label']} attack success is at least {worst['after_low']:.3f}, above "
            f"the limit of {verdict.limit:g}"
        )
        sentence = f"{verdict.sentence} But the canaries are not erased: {said}."
        claim = f"Residual memory: {said}."
        return replace(verdict, outcome="FAIL", sentence=sentence, claim=claim)
    named = []
    if rows:
        named.append(
            f"the canaries are found after {len(rows)} of {len(disturbed)} disturbances (weight "
            "noise, relearning)"
        )
    most = max(disturbed, key=lambda row: float(row["after_high"]), default=None)
    if most is not None and float(most["after_high"]) > verdict.limit:
        named.append(
            f"after {most['label']} attack success may be up to {most['after_high']:.3f}, above "
            "the limit"
        )
    back = results.get("returning", {})
    if "absent" not in back and float(back.get("pvalue", 1.0)) <= _CLAIMED:
        named.append(
            f"{back['returned']} of {back['lost']} lost canaries come back at a later checkpoint "
            f"({back['chance_returned']} by chance, p = {back['pvalue']:.2g})"
        )
    if not named:
        return verdict
    said = " and ".join(named)
    return replace(
        verdict,
        sentence=f"{verdict.sentence} Yet not shown to be erased: {said}.",
        claim=f"{verdict.claim.removesuffix('.')}; yet not shown to be erased: {said}.",
    )
