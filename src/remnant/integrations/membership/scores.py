"""``audit_scores``: attack success from scores that any framework computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require
from remnant.integrations.membership.control import given_control
from remnant.integrations.membership.outcome import MembershipAudit
from remnant.measures import Success
from remnant.measures.statistics.checks import read_floats
from remnant.measures.statistics.design import noticed_clusters
from remnant.measures.statistics.resampling import read_group_pair
from remnant.records.typed import Absent
from remnant.studies.membership.measure import (
    Settings,
    check_control,
    check_counts,
    check_settings,
    measure_attacks,
    risks_part,
)
from remnant.studies.membership.result import Control, MembershipResult, RowCounts
from remnant.studies.membership.verdict import AttackEvidence, decide
from remnant.studies.shared.result_parts import Tested

Floats = NDArray[np.float64]
ATTACK = "score"
_NO_CONTROL = (
    "scores of records that are known to be memorised, such as records that were trained on many "
    "times, are needed (--control)"
)
_SCOPE = Tested(
    tested=("Scores that were computed elsewhere.",),
    not_tested=(
        "Whether seen and unseen records differ in themselves: the records were not given.",
        "Whether the scores are those of the model, and whether it was trained on all seen records "
        "and on no unseen one.",
        "Whether the model learnt its task.",
        "Other scores, which may be stronger.",
        "Whether records depend on each other, beyond what their groups and neighbours show.",
        "What comes out verbatim.",
    ),
)


def audit_scores(
    *,
    seen: ArrayLike,
    unseen: ArrayLike,
    rng: np.random.Generator,
    control: ArrayLike | None = None,
    groups: Any = None,
    limit: float | None = None,
    success: Success = "auc",
    fpr: float = 0.1,
    confidence: float = 0.95,
) -> MembershipAudit:
    """Measure how well scores distinguish records that a model was trained on from others.

    Args:
        seen: One score a record of the training data; higher = more likely seen.
        unseen: The same of records drawn from the same source and held out.
        rng: Draws the resamples behind intervals and bounds.
        control: Scores of records that are known to be memorised, such as records that were
            trained on many times. A PASS needs them.
        groups: For records that come in clusters (several of one person, document or template): a
            pair ``(seen, unseen)`` of one label a record. Whole clusters are then resampled.
            Without it, scores that look clustered (``noticed_clusters``) allow no PASS; where
            records are independent, labels that are all different say so.
        limit: The largest success allowed; None judges nothing.
        success: The rate that is judged: ``"auc"``, ``"tpr"``, ``"precision"`` or ``"accuracy"``.
        fpr: False-positive rate of a TPR or a precision.
        confidence: Of intervals and bounds.

    Guarantees:
        * PASS only where ``control`` is given and the lower bound of its success is above the
          limit: the same scores would have failed a model that remembers.

    Raises:
        InvalidInput: Scores are not finite numbers in one dimension, seen and unseen scores are
            the same, or a setting is out of range.
        NotEnoughEvidence: There are fewer than 20 scores of a kind, or too few for the FPR.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> audit = audit_scores(seen=rng.normal(2.0, size=100), unseen=rng.normal(size=100),
        ...                      limit=0.7, rng=rng)
        >>> audit.outcome, audit.auc > 0.85
        ('FAIL', True)
    """
    settings = Settings(attack=ATTACK, limit=limit, success=success, fpr=fpr, confidence=confidence)
    check_settings(settings, rng=rng)
    given = {"seen": seen, "unseen": unseen} | ({} if control is None else {"control": control})
    faults: list[str] = []
    read = {
        name: read_floats(name, scores, 1, faults, axes="(records,)")
        for name, scores in given.items()
    }
    require(faults, hint="Pass one finite number a record.")
    scores = {name: values for name, values in read.items() if values is not None}
    _check(scores)
    sides = scores["seen"], scores["unseen"]
    clusters = read_group_pair(groups, n_seen=len(sides[0]), n_unseen=len(sides[1]), faults=faults)
    require(faults, hint="Pass one label a record, of both sides.")
    attacks, judged = measure_attacks(
        {ATTACK: sides[0]},
        {ATTACK: sides[1]},
        settings,
        rng=rng,
        descriptions={ATTACK: "the numbers that were given"},
        groups=clusters,
    )
    rows = RowCounts(
        seen=len(sides[0]),
        unseen=len(sides[1]),
        shared=0,
        repeated_seen=0,
        repeated_unseen=0,
        short=0,
        cut=0,
        tokens=None,
    )
    verbatim = Absent("scores do not show it")
    evidence = AttackEvidence(
        judged=judged,
        attacks=attacks,
        blind=Absent("the records themselves were not given, only their scores"),
        rows=rows,
        verbatim=verbatim,
        clustered=""
        if groups is not None
        else noticed_clusters(sides[0][None, None], sides[1][None, None], what="records"),
        reference=True,  # which models the scores come from is not known here
    )
    found: Control | Absent = Absent(_NO_CONTROL)
    if "control" in scores:
        found = given_control(
            scores["control"],
            sides[1],
            needed=judged.chance if limit is None else limit,
            rng=rng,
            success=success,
            fpr=fpr,
            groups=(None, clusters[1]),
        )
    places = tuple(np.arange(1, len(side) + 1) for side in sides)
    result = MembershipResult(
        verdict=decide(evidence, limit, found),
        judged=judged,
        attacks=attacks,
        blind=evidence.blind,
        rows=rows,
        verbatim=verbatim,
        control=found,
        task=Absent("the model was not run"),
        risks=risks_part(sides[0], sides[1], places[0], None),
        scope=_SCOPE,
    )
    return MembershipAudit(
        result=result,
        places=(places[0], places[1]),
        counts=(len(sides[0]), len(sides[1])),
        scores=({ATTACK: sides[0]}, {ATTACK: sides[1]}),
        verbatim=None,
    )


def _check(scores: dict[str, Floats]) -> None:
    """Refuse too few scores, and the same scores twice."""
    check_counts(len(scores["seen"]), len(scores["unseen"]))
    if "control" in scores:
        check_control(len(scores["control"]))
    names = list(scores)
    for place, name in enumerate(names):
        for other in names[:place]:
            if np.array_equal(scores[name], scores[other]) and np.unique(scores[name]).size > 1:
                raise InvalidInput(
                    f"{other}= and {name}= hold the same scores.",
                    hint="Pass scores of different records.",
                )
