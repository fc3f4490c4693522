"""What stands beside an outcome about a feature that only one training image had."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.outcomes import Outcome
from remnant.records.typed import Absent
from remnant.report.blocks import Check, Status
from remnant.report.numerals import p_equals, percent
from remnant.studies.beside.checks import (
    at_chance,
    not_measured,
    outcome_of,
    positive_control,
    second_test,
)
from remnant.studies.features.audit_result import Audit, FeatureAuditResult, PatchControl
from remnant.studies.features.result import Features, FeaturesResult
from remnant.studies.shared.estimates import ends_text

_SCORES = {"black_box": "M", "white_box": "white-box M_w", "gain": "probability gain"}


def beside(result: FeaturesResult) -> tuple[Check, ...]:
    """The controls of a study of unique features and what contradicts its outcome."""
    features = result.features
    if isinstance(features, Absent):
        return (not_measured("positive control"),)
    return tuple(_study(features, outcome_of(result.verdict)))


def of_audit(result: FeatureAuditResult) -> tuple[Check, ...]:
    """The same of ``remnant feature``."""
    audit = result.audit
    if isinstance(audit, Absent):
        return (not_measured("positive control"),)
    return tuple(_audit(audit, outcome_of(result.verdict)))


def _study(features: Features, outcome: Outcome | None) -> Iterator[Check]:
    plain = features.plain
    if outcome == "PASS":
        yield not_measured("positive control")  # no model was trained on many stamped images
    share = plain.unplanted.share_significant
    over = share.low > features.significance
    text = f"{percent(share.value)} of models without the patch react"
    yield at_chance("negative control", not over, text=text, contradicts=outcome == "FAIL")
    if plain.blind:
        text = f"{plain.blind} of {plain.members} models answer the same whatever the patch"
        contradicts = outcome == "PASS"
        yield Check(name="models", status="not found", text=text, contradicts=contradicts)
    beyond = plain.beyond_m
    finds = beyond.low > 0.0
    text = f"mean M less the twins’ {'above' if finds else 'not above'} 0 ({ends_text(beyond)})"
    yield second_test("mean M", finds=finds, text=text, outcome=outcome)
    white = plain.white_box
    finds = white.planted.low > white.twins.high
    text = f"white-box M_w {'above' if finds else 'not above'} the twins’"
    yield second_test("white-box M_w", finds=finds, text=text, outcome=outcome)
    if plain.through is not None:
        apart = plain.through.apart
        text = f"interval above that of other models at {len(apart)} of "
        text += f"{len(plain.through.epoch)} moments of training"
        if not apart:
            text = "at no moment of training is the interval above that of other models"
        yield second_test("during training", finds=bool(apart), text=text, outcome=outcome)


def _patch_control(control: PatchControl | None, outcome: Outcome | None) -> Iterator[Check]:
    if control is None:
        if outcome == "PASS":
            yield not_measured("positive control")
        return
    found = None if control.p_value is None else control.found
    yield positive_control(found, outcome, where="in a copy trained on the patch")
    contrary = [variant.name for variant in control.variants if variant.contrary]
    text = f"the model reacts to the patch {', '.join(contrary)}"
    if not contrary:
        text = f"none of {len(control.variants)} variants of the patch found"
    status: Status = "found" if contrary else "not found"
    contradicts = bool(contrary) and outcome == "PASS"
    yield Check(name="variants", status=status, text=text, contradicts=contradicts)


def _audit(audit: Audit, outcome: Outcome | None) -> Iterator[Check]:
    task = audit.task
    if task is None:
        if outcome is not None:
            yield not_measured("task")
    else:
        text = "task learnt" if task.learnt else "task not learnt"
        contradicts = outcome == "PASS" and not task.learnt
        status: Status = "found" if task.learnt else "not found"
        yield Check(name="task", status=status, text=text, contradicts=contradicts)
    yield from _patch_control(audit.patch_control, outcome)
    twin, main = audit.twin, audit.main
    if twin is None:
        if outcome != "PASS":
            yield not_measured("twin")
    else:
        p_value = twin.black_box.p_value
        holds = p_value > audit.significance
        contradicts = outcome == "FAIL"
        text = p_equals(p_value)
        yield at_chance("twin", holds, text=text, contradicts=contradicts)
    if audit.beyond_twin is not None:
        finds = audit.beyond_twin.low > 0.0
        text = f"M {'above' if finds else 'not shown to be above'} the twin’s"
        yield second_test("M beyond the twin’s", finds=finds, text=text, outcome=outcome)
    scores = [(name, score) for side, name, score in audit.scores if side == "model"]
    # Several tests may find something by chance, which would contradict a PASS.
    level = audit.significance / (len(scores) if outcome == "PASS" else 1)
    for name, score in scores:
        said = _SCORES[name]
        text = f"{said}: {p_equals(score.p_value)}"
        check = second_test(said, finds=score.p_value <= level, text=text, outcome=outcome)
        if score is not main or check.contradicts:
            yield check
    if main.carried_by_few:
        text = "a few images make up most of M"
        contradicts = outcome == "FAIL"
        yield Check(name="images", status="disagrees", text=text, contradicts=contradicts)
