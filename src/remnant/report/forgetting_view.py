"""The view of a run that asked how fast canaries are forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from remnant.errors import InvalidInput
from remnant.records import Record
from remnant.report.curve import Curve, read_curve
from remnant.report.decision_view import Decision, read_decision
from remnant.report.hidden_view import Hidden, Scan, read_hidden, read_scan
from remnant.report.run_view import NotMeasured, Results, RunView, run_fields

_SUCCESSES = ("precision", "tpr", "auc", "accuracy")
_TRADITIONAL = ("seen_accuracy", "unseen_accuracy", "seen_loss", "unseen_loss")


@dataclass(frozen=True, slots=True)
class Traditional:
    """Mean accuracy and loss on the canaries, in the twin that saw them and the one that did not.

    Attributes:
        lags: Steps since planting.
        seen_accuracy, unseen_accuracy: Shares per lag, or None where not measured.
        seen_loss, unseen_loss: Nats per lag, or None where not measured.
    """

    lags: tuple[float, ...]
    seen_accuracy: tuple[float | None, ...] | None
    unseen_accuracy: tuple[float | None, ...] | None
    seen_loss: tuple[float | None, ...] | None
    unseen_loss: tuple[float | None, ...] | None


@dataclass(frozen=True, slots=True)
class Gap:
    """How far a variant's curve lies above the study's own, averaged over the lags after 0.

    Attributes:
        label: The variant's.
        mean, low, high: In the curve's own units, with the interval.
        p_value: Corrected for the number of variants.
    """

    label: str
    mean: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several curves side by side, the study's own first, and how far the others lie from it."""

    title: str
    curves: tuple[tuple[str, Curve], ...]
    gaps: tuple[Gap | NotMeasured, ...] = ()


@dataclass(frozen=True, slots=True)
class ForgettingView(RunView):
    """Everything a report shows of one forgetting run.

    Attributes:
        control: The same curve for the A/A twins, neither of which saw the canaries.
        never_planted: The same curve for canaries of the same kind that were never planted, in the
            twins that saw the others.
        others: The measures of success that the curve does not show, by record name.
        decision: What the curve means for the limit.
        hidden, scan: Whether what is not found is gone or only hidden.
    """

    curve: Curve | NotMeasured
    control: Curve | NotMeasured
    never_planted: Curve | NotMeasured
    others: tuple[tuple[str, Curve | NotMeasured], ...]
    traditional: Traditional | NotMeasured
    comparison: Comparison | NotMeasured
    decision: Decision | NotMeasured
    hidden: Hidden | NotMeasured
    scan: Scan | NotMeasured


def read_forgetting(record: Record) -> ForgettingView:
    """Read a forgetting run's record into a view.

    Raises:
        RecordError: A result is there but not in the form it should have.
    """
    results = Results(record)

    def curve(name: str) -> Curve | NotMeasured:
        return results.read(
            name,
            lambda found: replace(read_curve(found, name=name), by_construction=constructed),
        )

    constructed = by_construction(record.plan)
    shown = results.raw("curve").get("success")
    return ForgettingView(
        **run_fields(record, results),
        curve=curve("curve"),
        control=curve("curve_aa"),
        never_planted=curve("curve_controls"),
        others=tuple(
            (name, curve(name))
            for name in (f"curve_{success}" for success in _SUCCESSES if success != shown)
            if shown is not None or name != "curve_precision"
        ),
        traditional=results.read("traditional", read_traditional),
        comparison=results.read(
            "compare", lambda found: read_comparison(found, results.raw("curve"))
        ),
        decision=results.read("decision", read_decision),
        hidden=results.read("hidden", read_hidden),
        scan=results.read("returning", read_scan),
    )


def by_construction(plan: Mapping[str, Any]) -> bool:
    """Whether attack success at lag 0 holds by construction.

    In an INJECT plan the unplanted twin equals its checkpoint at lag 0, so scores calibrated by
    that checkpoint are all 0 there.
    """
    parts = {name: plan.get(name) for name in ("plan", "attack")}
    inner, attack = (part if isinstance(part, Mapping) else {} for part in parts.values())
    return inner.get("kind") == "inject" and attack.get("calibration", "logit") in ("logit", "loss")


def read_traditional(found: Mapping[str, Any]) -> Traditional:
    """Read accuracy and loss on the canaries.

    Raises:
        InvalidInput: There is neither, or a column is malformed.
    """
    columns: dict[str, tuple[float | None, ...] | None] = {}
    lags: tuple[float, ...] = ()
    for key in _TRADITIONAL:
        if found.get(key) is None:
            columns[key] = None
            continue
        points = read_curve({"lags": found["lags"], "value": found[key]}, name="traditional").points
        lags = tuple(point.lag for point in points)
        columns[key] = tuple(point.value for point in points)
    if not lags:
        raise InvalidInput("it has neither accuracy nor loss")
    return Traditional(lags, **columns)


def read_comparison(found: Mapping[str, Any], primary: Mapping[str, Any]) -> Comparison:
    """Read curves that are compared; what they do not say of themselves is the primary curve's.

    Raises:
        InvalidInput: There is none, or one is malformed.
    """
    series = found["series"]
    if not series:
        raise InvalidInput("it compares no series")
    # What is compared is what the primary curve shows, unless the comparison says otherwise.
    known = {**primary, **found}
    shared: dict[str, Any] = {
        key: known[key] for key in ("success", "fpr", "chance") if key in known
    }
    return Comparison(
        str(found.get("title", "Comparison")),
        tuple((str(one["label"]), read_curve({**shared, **one}, name="compare")) for one in series),
        tuple(_gap(one) for one in found.get("differences", ())),
    )


def _gap(found: Mapping[str, Any]) -> Gap | NotMeasured:
    if "absent" in found:
        return NotMeasured(f"{found['label']}: {found['absent']}")
    numbers = (found[name] for name in ("mean", "mean_low", "mean_high", "adjusted_p_value"))
    return Gap(str(found["label"]), *(float(number) for number in numbers))
