"""A gate's verdict, and what the same run has to say about it.

A gate judges one curve. The same run has a negative control (A/A twins) and may have searched for
residual memory (weight noise, relearning, a scan of later checkpoints). What these found enters the
outcome, or the claim names it. A model that did not learn its task has nothing to forget: its PASS
becomes INCONCLUSIVE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from remnant.errors import InvalidInput
from remnant.measures import ExposureCurve, ForgettingCurve, Verdict
from remnant.measures.statistics.intervals import clopper_pearson
from remnant.records import Record, gate_row
from remnant.report.numerals import counted

_CLAIMED = 0.05  # an adjusted p-value at or under this is named
_NO_PASS, _SELDOM, _ENOUGH = 2, 4, 8  # trials
_PAIRS = 5  # of which a sign test can show anything at that level
_UNTRAINED = 0.99  # of the bits of a uniform guess: what a language model has to be under


def put_verdict(
    record: Record, judged: Callable[[], Verdict], *, task: Mapping[str, Any] | None = None
) -> None:
    """Put a verdict into the record, or why there is none.

    There is none where nothing can be claimed, such as at a confidence of one half.

    Args:
        record: That it is put into.
        judged: Returns the verdict.
        task: The record's ``task``: how well the models do what they were trained for. See
            ``with_learnt_task``; None where that was not measured.
    """
    try:
        gate = judged()
    except InvalidInput as fault:
        record.put_absent("verdict", str(fault))
    else:
        record.put_result("verdict", with_learnt_task(gate_row(**asdict(gate)), task or {}))


def not_learnt(task: Mapping[str, Any]) -> str:
    """Why the models count as untrained, as the end of a sentence; empty where they do not.

    Args:
        task: Of classifiers ``test_accuracy``, ``test_examples`` and ``majority``, the share of the
            commonest class among test examples; of language models and translators
            ``validation_bits`` and ``uniform_bits`` a ``token``; of recognisers of speech the
            fields of ``SpeechTask``. Where these are missing or None, nothing is checked.

    Guarantees:
        * Classifiers count as trained only where the exact one-sided 95 % lower bound of their mean
          test accuracy, on ``test_examples`` examples, is above ``majority``.
        * Language models count as trained only where a validation token costs at least 1 % fewer
          bits than a uniform guess: random weights are within 1 % of it, on either side.
        * Recognisers of speech count as trained only where what they hear is nearer to what was
          said than to what was said in another utterance, by a sign test at 5 %.

    Example:
        >>> not_learnt({"test_accuracy": 0.5, "test_examples": 100, "majority": 0.13})
        ''
    """
    majority, uniform = task.get("majority"), task.get("uniform_bits")
    swapped = task.get("swapped_error_rate")
    if swapped is not None and float(task["p_value"]) > _CLAIMED:
        pairs = task.get("pairs")
        if pairs is not None and pairs < _PAIRS:
            return (
                f"only {pairs} pairs of validation utterances have transcripts of equal length, "
                f"and {_PAIRS} are needed to show that the models learnt their task: raise "
                "data.validation"
            )
        return (
            "the models did not learn their task: what they hear of "
            f"{task['utterances']} validation utterances is no nearer to what was said (character "
            f"error rate {task['character_error_rate']:.1%}) than to what was said in others "
            f"({swapped:.1%}; sign test p = {task['p_value']:.2g})"
        )
    if majority is not None:
        examples = int(task["test_examples"])
        accuracy = float(task["test_accuracy"])
        low = float(clopper_pearson(accuracy * examples, examples, confidence=0.90)[0])
        if low <= majority:
            return (
                f"the models did not learn their task: test accuracy is {accuracy:.1%} (at least "
                f"{low:.1%} with 95% confidence, {examples} test examples), and always naming the "
                f"commonest class gives {majority:.1%}"
            )
    if uniform is not None and not float(task["validation_bits"]) < _UNTRAINED * float(uniform):
        token = task.get("token", "token")
        return (
            f"the models did not learn their task: a validation {token} costs "
            f"{task['validation_bits']:.2f} bits, and a uniform guess {uniform:.2f} bits"
        )
    return ""


def with_learnt_task(row: Mapping[str, Any], task: Mapping[str, Any]) -> dict[str, Any]:
    """A gate's row beside how well the models do what they were trained for.

    A PASS becomes INCONCLUSIVE where the models did not learn their task (``not_learnt``): there is
    nothing that they could have forgotten. An INCONCLUSIVE then names this too, since more
    evidence of such models would not decide. A FAIL stays.

    Args:
        row: As ``gate_row`` makes it.
        task: The record's ``task``; empty where it was not measured.
    """
    reason = "" if row["outcome"] == "FAIL" else not_learnt(task)
    if not reason:
        return dict(row)
    advice = "Train longer, or with another learning rate."
    if row["outcome"] == "INCONCLUSIVE":
        return {**row, "sentence": f"{row['sentence']} Besides, {reason}. {advice}"}
    return {
        **row,
        "outcome": "INCONCLUSIVE",
        "sentence": f"{row['sentence']} But {reason}. {advice}",
        "claim": f"No claim: {reason}.",
    }


def with_plan(verdict: Verdict, *, trials: int, fresh_canaries: bool) -> Verdict:
    """The verdict of twins beside what their plan can show.

    With one or two trials a PASS becomes INCONCLUSIVE: so few models do not show whether they
    differ by memory or by training. With three or four an INCONCLUSIVE says that this is what to
    expect. Where all trials planted the same canaries, the claim says so.

    Args:
        verdict: Of a curve over trials.
        trials: Planted models.
        fresh_canaries: Whether each trial planted canaries of its own.
    """
    if trials <= _NO_PASS and verdict.outcome == "PASS":
        count = "one trial" if trials == 1 else f"{trials} trials"
        reason = f"{count} cannot show whether models differ by memory or by training"
        sentence = f"{verdict.sentence} But {reason}: run {_ENOUGH} trials."
        return replace(
            verdict, outcome="INCONCLUSIVE", sentence=sentence, claim=f"No claim: {reason}."
        )
    if trials <= _SELDOM and verdict.outcome == "INCONCLUSIVE":
        sentence = (
            f"{verdict.sentence} With {counted(trials, 'trial')} no gate is likely to be decided: "
            f"run {_ENOUGH} or more."
        )
        verdict = replace(verdict, sentence=sentence)
    if fresh_canaries or trials == 1 or verdict.claim.startswith("No claim"):
        return verdict
    same = "all trainings planted the same canaries, so nothing is claimed about others"
    return replace(verdict, claim=f"{verdict.claim.removesuffix('.')}; {same}.")


def with_lost_attackers(verdict: Verdict, lost: Mapping[str, str]) -> Verdict:
    """No PASS where an attacker that the plan allows was not measured.

    Args:
        verdict: Of the named attacker.
        lost: Why each of the others was not measured, by calibration.
    """
    if verdict.outcome != "PASS" or not lost:
        return verdict
    reason = "; ".join(f"calibrated by {name}: {why}" for name, why in lost.items())
    return replace(
        verdict,
        outcome="INCONCLUSIVE",
        sentence=f"{verdict.sentence} But another attacker was not measured ({reason}).",
        claim=f"No claim: another attacker was not measured ({reason}).",
    )


def with_negative_control(
    verdict: Verdict, unplanted: ForgettingCurve | ExposureCurve | None
) -> Verdict:
    """The verdict beside the same comparison in unplanted models, which saw no canary.

    Where the attack distinguishes even these beyond the limit at the last lag, by a one-sided
    bound, a FAIL is not shown to be memory, and becomes INCONCLUSIVE. Where it is shown to be below
    chance, canaries score too low without any memory, and a PASS becomes INCONCLUSIVE. Where their
    two-sided interval, the one in tables and in the line of controls, is above chance, the claim
    says so.
    """
    if unplanted is None or unplanted.confidence <= 0.5:
        return verdict
    chance = unplanted.chance if isinstance(unplanted, ForgettingCurve) else unplanted.null
    low = float(unplanted.evidence.lower(unplanted.confidence)[-1])
    high = float(unplanted.evidence.upper(unplanted.confidence)[-1])
    if verdict.outcome == "PASS" and high < chance:
        reason = (
            "in unplanted twins, which never saw a canary, the same comparison is below chance "
            f"(at most {high:.3g}; chance {chance:.3g}), so canaries score too low in all models"
        )
        sentence = f"{verdict.sentence} But {reason}."
        return replace(
            verdict, outcome="INCONCLUSIVE", sentence=sentence, claim=f"No claim: {reason}."
        )
    seen = (
        f"unplanted twins, which never saw a canary, are distinguished too (at least {low:.3g} at "
        f"the last lag; chance {chance:.3g})"
    )
    if verdict.outcome == "FAIL" and low > max(chance, verdict.limit):
        sentence = f"{verdict.sentence} But {seen}, so this need not be memory."
        return replace(
            verdict, outcome="INCONCLUSIVE", sentence=sentence, claim=f"No claim: {seen}."
        )
    if unplanted.low[-1] <= chance:
        return verdict
    return replace(verdict, claim=f"{verdict.claim.removesuffix('.')}; {seen}.")


def with_residual_memory(verdict: Verdict, results: Mapping[str, Mapping[str, Any]]) -> Verdict:
    """The verdict beside what disturbances and later checkpoints brought back.

    A PASS becomes FAIL where success after a disturbance is shown to be above the limit. Otherwise
    its claim names every search that found the canaries, and the largest success after a
    disturbance that the run does not exclude, where that is above the limit. Of sequences the limit
    is in bits, and mean exposure is what is held against it.

    Args:
        verdict: Of the curve.
        results: The record's; ``hidden`` and ``returning`` are read where they were measured.
    """
    if verdict.outcome != "PASS":
        return verdict
    disturbed = results.get("hidden", {}).get("disturbances", ())
    rows = [row for row in disturbed if row["reading"] != "not found"]
    judged = "attack success", "after", ".3f", ""
    if any("exposure" in row for row in disturbed):
        judged = "mean exposure", "exposure", ".2f", " bits"
    name, field, digits, unit = judged
    low, high = f"{field}_low", f"{field}_high"
    worst = max(rows, key=lambda row: float(row[low]), default=None)
    if worst is not None and float(worst[low]) > verdict.limit:
        said = (
            f"after {worst['label']} {name} is at least {worst[low]:{digits}}{unit}, above "
            f"the limit of {verdict.limit:g}{unit}"
        )
        sentence = f"{verdict.sentence} But the canaries are not erased: {said}."
        claim = f"Residual memory: {said}."
        return replace(verdict, outcome="FAIL", sentence=sentence, claim=claim, detected=True)
    named = []
    if rows:
        named.append(
            f"the canaries are found after {len(rows)} of {len(disturbed)} disturbances (weight "
            "noise, relearning)"
        )
    most = max(disturbed, key=lambda row: float(row[high]), default=None)
    if most is not None and float(most[high]) > verdict.limit:
        named.append(
            f"after {most['label']} {name} may be up to {most[high]:{digits}}{unit}, above "
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
        detected=True,
    )
