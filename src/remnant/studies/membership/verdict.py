"""A gate's outcome for two sets of records, or a finding.

Beside an upper bound under the limit, a PASS needs: two sets that a blind classifier does not
distinguish; a model that learnt its task; a reference model, because attacks without one can be
weak, that learnt something and does not distinguish the two sets itself; seen records that the
model predicts better than the reference does, because otherwise nothing shows that it was trained
on them; scores most of which do not tie; no attack that is above the limit or below chance; no
significant verbatim text; records of which nearly all tokens were scored; and a positive control
that the same gate fails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from remnant.measures.forgetting.verdict import percent, rounded_down, rounded_up
from remnant.measures.membership.attacks import needs_reference
from remnant.measures.statistics.checks import NAMES
from remnant.records.outcomes import RULES, Outcome
from remnant.records.typed import Absent
from remnant.report.numerals import counted
from remnant.studies.membership.result import (
    AS_A_FIELD,
    AttackRow,
    Attacks,
    Blind,
    Control,
    JudgedSuccess,
    RowCounts,
    Verbatim,
)
from remnant.studies.shared.result_parts import Finding, Gate

_REVERSED = "an attack is below chance: it scores unseen records higher than seen ones"
_SWAPPED = "Check that the seen and the unseen records are not swapped."
_OTHER_REFERENCE = "Pass the model that the training started from as the reference model."
_FINER = "Pass scores that differ, such as losses in full precision."
_ASSUMED = "if the model was trained on the seen records and not on the unseen ones"
_UNSCORED = 0.1  # share of tokens that may be beyond what the model reads, or of rows without text


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackEvidence:
    """What a verdict rests on.

    Attributes:
        judged: The success of the named attack.
        attacks: All attacks.
        blind: The blind baseline; Absent where there was none.
        rows: Records of each side.
        verbatim: What comes out verbatim.
        not_learnt: Why the model counts as untrained; empty where it does not.
        not_fitted: Why nothing shows that the model was trained on such records; empty where
            something does, or there is no reference model to compare with.
        too_coarse: Why scores in low precision allow no PASS; empty where they do.
        clustered: Why records seem to come in clusters that were not given; or empty.
        reference: Whether there is a reference model.
        reference_fault: Why it cannot be used; empty where it can.
    """

    judged: JudgedSuccess
    attacks: Attacks
    blind: Blind | Absent
    rows: RowCounts
    verbatim: Verbatim | Absent
    not_learnt: str = ""
    not_fitted: str = ""
    too_coarse: str = ""
    clustered: str = ""
    reference: bool = True
    reference_fault: str = ""

    @property
    def attack(self) -> AttackRow:
        """The named attack."""
        return self.attacks.named

    def above(self, limit: float) -> AttackRow | None:
        """The attack that was not named and is furthest above the limit, if one is shown to be."""
        others = [row for row in self.attacks.rows if not row.named and row.judged_low > limit]
        if self.reference_fault:  # attacks that compare with it may say too much
            others = [row for row in others if not needs_reference(row.name)]
        return max(others, key=lambda row: row.judged_low, default=None)

    @property
    def highest_alone(self) -> AttackRow | None:
        """The attack without a reference model that has the greatest success; None if named."""
        alone = (row for row in self.attacks.rows if not needs_reference(row.name))
        highest = max(alone, key=lambda row: row.judged_value, default=None)
        return None if highest is None or highest.named else highest

    @property
    def reversed(self) -> AttackRow | None:
        """An attack whose AUC is shown to be below chance, if there is one."""
        return next((row for row in self.attacks.rows if row.auc_most < 0.5), None)


def needs_control(evidence: AttackEvidence, limit: float | None) -> bool:
    """Whether a positive control decides between PASS and INCONCLUSIVE."""
    if limit is None:
        return False
    under = evidence.judged.high <= limit and evidence.above(limit) is None
    return under and not void_sentence(evidence.blind) and _doubt(evidence, limit) is None


def decide(
    evidence: AttackEvidence, limit: float | None, control: Control | Absent
) -> Gate | Finding:
    """Hold the named attack against the limit; without one, say what was found.

    Guarantees:
        * PASS only where the one-sided upper bound is at or under the limit, nothing raises doubt
          (see the module), and the positive control was found.
        * FAIL only where the sets do not differ in themselves, and the one-sided lower bound of
          the named attack is above the limit, or that of another one, corrected for their number.
        * An audit whose sets differ in themselves is INCONCLUSIVE, with a limit and without.
    """
    void = void_sentence(evidence.blind)
    if void:
        return _gate(
            "INCONCLUSIVE", f"{void} {measured_sentence(evidence)}", f"No claim: {void}", limit
        )
    if limit is None:
        return _finding(evidence)
    judged, said = evidence.judged, measured_sentence(evidence)
    some = _some_verbatim(evidence.verbatim)
    detected = judged.low > judged.chance or bool(some) or bool(_verbatim_clause(evidence.verbatim))
    allowed = f"the limit of {limit:g}"
    unusable = evidence.reference_fault and needs_reference(evidence.attack.name)
    if judged.low > limit and not unusable:
        return _gate("FAIL", f"{said[:-1]}: above {allowed}.", _at_least(evidence), limit, detected)
    other = evidence.above(limit)
    if other is not None:
        sentence = (
            f"{said} But the attack {other.name!r} has {other.judged_value:.3f} (at least "
            f"{rounded_down(other.judged_low)}, corrected for the number of attacks): above "
            f"{allowed}."
        )
        return _gate("FAIL", sentence, _at_least(evidence, other), limit, detected=True)
    doubt = _doubt(evidence, limit)
    if doubt is not None:
        reason, advice = doubt
        return _gate(
            "INCONCLUSIVE",
            f"{said} But {reason}. {advice}",
            f"No claim: {reason}.",
            limit,
            detected,
        )
    if judged.high > limit:
        sentence = f"{said[:-1]}: {allowed} lies between the bounds. {_advice(evidence, limit)}"
        return _gate("INCONCLUSIVE", sentence, _at_most(evidence), limit, detected)
    if isinstance(control, Absent) or not control.found:
        reason = (
            f"there is no positive control: {control.reason}."
            if isinstance(control, Absent)
            else control.sentence
        )
        sentence = f"{said[:-1]}: under {allowed}. But {reason}"
        return _gate("INCONCLUSIVE", sentence, f"No claim: {reason}", limit, detected)
    sentence = f"{said[:-1]}: under {allowed}, {_ASSUMED}. {control.sentence}"
    return _gate("PASS", sentence + some, _at_most(evidence), limit, detected)


def measured_sentence(evidence: AttackEvidence) -> str:
    """The success of the named attack with its bounds."""
    judged, rows = evidence.judged, evidence.rows
    return (
        f"The attack {evidence.attack.name!r} has {success_text(judged)} "
        f"{judged.estimate.value:.3f} (one-sided {percent(judged.confidence)} bounds "
        f"{rounded_down(judged.low)} and {rounded_up(judged.high)}) on {rows.seen} seen and "
        f"{rows.unseen} unseen records."
    )


def success_text(judged: JudgedSuccess) -> str:
    """The rate's name, such as ``an AUC of``."""
    name = NAMES[judged.success]
    at = "" if judged.fpr is None else f" at FPR {judged.fpr:g}"
    return f"{'an' if name[0] in 'aA' else 'a'} {name}{at} of"


def _gate(
    outcome: Outcome, sentence: str, claim: str, limit: float | None, detected: bool | None = None
) -> Gate:
    return Gate(
        outcome=outcome,
        sentence=sentence,
        claim=claim,
        limit=limit,
        rules=RULES,
        detected=detected,
    )


def void_sentence(blind: Blind | Absent) -> str:
    """Why two sets of records are no audit; empty where a blind classifier takes them for one."""
    if isinstance(blind, Absent) or not blind.void:
        return ""
    if blind.low_bound > 0.5:
        bound = f"at least {rounded_down(blind.low_bound)}"
        why = "distinguishes seen from unseen"
    else:
        bound = f"at most {rounded_up(blind.high_bound)}"
        why = "takes seen for unseen records more often than chance"
    return (
        f"The audit is void: a classifier that sees only the records, and no model, {why} (AUC "
        f"{blind.auc.value:.3f}, {bound} with 99% confidence). The two sets were not drawn at "
        "random from the same source, so an attack may succeed or fail without any memory. Split "
        "one set at random before training."
    )


def _doubt(evidence: AttackEvidence, limit: float) -> tuple[str, str] | None:
    """Why an upper bound under the limit proves nothing, and what to do; None where it does."""
    judged = evidence.judged
    if evidence.not_learnt:
        return (
            evidence.not_learnt,
            "Check that this is the trained model, and that the records have the form that it was "
            "trained on (field, chat template).",
        )
    if evidence.reference_fault:
        return evidence.reference_fault, _OTHER_REFERENCE
    if judged.alike:
        return judged.alike, _FINER
    if judged.high <= judged.chance or evidence.reversed is not None:
        return _REVERSED, _SWAPPED
    if judged.high > limit:
        return None
    alone = evidence.highest_alone
    if alone is not None and alone.judged_value > limit:
        return (
            f"the attack {alone.name!r}, which needs no reference model, has "
            f"{alone.judged_value:.3f}, and the reference model may hide what is remembered",
            f"Audit more records. {_OTHER_REFERENCE}",
        )
    if _verbatim_clause(evidence.verbatim):
        return (
            f"records come out verbatim: {_verbatim_clause(evidence.verbatim)[2:]}",
            "Look at the rows that come out, in risks.csv or the record.",
        )
    rows = evidence.rows
    if rows.tokens and rows.unscored and rows.unscored > _UNSCORED * (rows.tokens + rows.unscored):
        return (
            f"{rows.unscored / (rows.tokens + rows.unscored):.0%} of the tokens are beyond what "
            "the model reads, and were not scored",
            "Cut the records into pieces as the training did.",
        )
    for side in ("seen", "unseen"):
        refused = [each for each in rows.refused or () if each.side == side]
        if sum(each.count for each in refused) > _UNSCORED * max(
            (each.total for each in refused), default=0
        ):
            return "; ".join(each.clause for each in refused), AS_A_FIELD
    if not evidence.reference:
        return (
            "there is no reference model, and attacks without one can miss much of what a model "
            "remembers",
            _OTHER_REFERENCE,
        )
    if evidence.not_fitted:
        return evidence.not_fitted, "Check that these are the records that it was trained on."
    if evidence.clustered:
        return evidence.clustered, "Bounds are too narrow where records depend on each other."
    if evidence.too_coarse:
        return evidence.too_coarse, "Compute in float32: leave --precision own out."
    return None


def _at_most(evidence: AttackEvidence) -> str:
    judged = evidence.judged
    still = ""
    if judged.low > judged.chance:
        still = (
            f"; yet seen records are detectable (at least {rounded_down(judged.low)}, chance "
            f"{judged.chance:g})"
        )
    return (
        f"With {percent(judged.confidence)} confidence, the attack {evidence.attack.name!r} has "
        f"{success_text(judged)} at most {rounded_up(judged.high)} on records like these in this "
        f"model, {_ASSUMED} ({evidence.rows.seen} seen and {evidence.rows.unseen} unseen "
        f"records, taken to be independent of each other){still}"
        f"{_verbatim_clause(evidence.verbatim)}. Another attack may do better."
        f"{_unchecked(evidence.blind)}"
    )


def _at_least(evidence: AttackEvidence, attack: AttackRow | None = None) -> str:
    judged = evidence.judged
    low = judged.low if attack is None else attack.judged_low
    name = evidence.attack.name if attack is None else attack.name
    return (
        f"With {percent(judged.confidence)} confidence, the attack {name!r} has "
        f"{success_text(judged)} at least {rounded_down(low)} on records like these in this "
        f"model, {_ASSUMED} ({evidence.rows.seen} seen and {evidence.rows.unseen} unseen "
        f"records){_verbatim_clause(evidence.verbatim)}.{_unchecked(evidence.blind)}"
    )


def _unchecked(blind: Blind | Absent) -> str:
    """A sentence for the claim where there was no blind baseline."""
    if not isinstance(blind, Absent):
        return ""
    return " Nothing checked whether the two sets differ in themselves."


def _verbatim_clause(verbatim: Verbatim | Absent) -> str:
    """What comes out verbatim, where it is significant."""
    if isinstance(verbatim, Absent):
        return ""
    tests = [test for test in verbatim.tests if verbatim.corrected(test) <= 0.05]
    if not tests:
        return ""
    worst = max(tests, key=lambda test: test.seen_share.value)
    return (
        f"; {worst.seen_share.value:.1%} of seen records and {worst.unseen_share.value:.1%} of "
        f"unseen ones come out verbatim ({worst.half} tokens after {worst.half})"
    )


def _some_verbatim(verbatim: Verbatim | Absent) -> str:
    """A sentence on verbatim records that are too few to be significant; empty without any."""
    rows = () if isinstance(verbatim, Absent) else verbatim.rows
    seen = [row for row in rows if row.side == "seen"]
    counts = [row.greedy if row.beyond is None else row.beyond for row in seen]
    count = max(counts, default=0)
    if not count:
        return ""
    row = seen[counts.index(count)]
    return (
        f" Yet {counted(count, 'seen record')} of {row.rows} gave back {row.half} tokens verbatim; "
        "look at them."
    )


def _finding(evidence: AttackEvidence) -> Finding:
    judged = evidence.judged
    sentence = (
        f"{measured_sentence(evidence)[:-1]}{_verbatim_clause(evidence.verbatim)}. Chance is "
        f"{judged.chance:g}.{_unchecked(evidence.blind)}"
    )
    if evidence.not_learnt:
        return Finding(
            headline="The model has not learnt its task",
            sentence=f"{sentence} But {evidence.not_learnt}.",
            advice="Check that this is the trained model. A model that learnt nothing remembers "
            "nothing.",
            rules=RULES,
        )
    if evidence.reference_fault:
        return Finding(
            headline="The reference model cannot be used",
            sentence=f"{sentence} But {evidence.reference_fault}.",
            advice=_OTHER_REFERENCE,
            rules=RULES,
        )
    if evidence.reversed is not None:
        return Finding(
            headline="Held-out records score higher than training records",
            sentence=f"{sentence} But {_REVERSED}.",
            advice=_SWAPPED,
            rules=RULES,
        )
    if judged.low > judged.chance:
        return Finding(
            headline="Training records can be distinguished from held-out ones",
            sentence=sentence,
            advice="Look at the records at the highest risk. Remove duplicates, train for fewer "
            "epochs, or set --limit to decide whether this is acceptable.",
            rules=RULES,
        )
    if judged.alike:
        return Finding(
            headline="The scores are all alike",
            sentence=f"{sentence} But {judged.alike}.",
            advice=_FINER,
            rules=RULES,
        )
    return Finding(
        headline="Training records were not distinguished from held-out ones",
        sentence=sentence,
        advice="This is no PASS. Set --limit to have it judged, with a positive control.",
        rules=RULES,
    )


def _advice(evidence: AttackEvidence, limit: float) -> str:
    """How many records would bring the nearer bound to the limit."""
    judged, smaller = evidence.judged, min(evidence.rows.seen, evidence.rows.unseen)
    value = judged.estimate.value
    over = value > limit
    gap = abs(value - limit)
    reach = value - judged.low if over else judged.high - value
    factor = math.inf if gap == 0.0 else (reach / gap) ** 2
    if factor > 1e4:
        return "The value is too near the limit for more records to decide; choose another limit."
    wanted = counted(math.ceil(factor * smaller - 1e-9), "record")
    beside = "" if evidence.reference else ", with a reference model,"
    hold = f"would make it PASS{beside} if the value holds and the positive control is found"
    if over:
        hold = "would most likely make it FAIL"
    return f"About {wanted} a side (here {smaller}) {hold}."
