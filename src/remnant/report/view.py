"""Record -> view: everything the report shows, as plain frozen data.

The only file that knows under which names a record keeps its results. What a run did not measure
is a ``NotMeasured`` with its reason, never a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from remnant.errors import InvalidInput, RecordError
from remnant.records import Record
from remnant.report.curve import Curve, read_curve
from remnant.report.ran import Group, LedgerRow, ledger_rows, machine_group, plan_groups

_OTHER_CURVES = ("curve_tpr", "curve_auc", "curve_accuracy")
_TRADITIONAL = ("seen_accuracy", "unseen_accuracy", "seen_loss", "unseen_loss")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """Something a run did not measure, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer.

    Attributes:
        outcome: PASS, FAIL or INCONCLUSIVE.
        sentence: The same in a sentence.
        limit: The success that was allowed, or None.
        lag: Steps since planting the limit holds at, or None.
    """

    outcome: str
    sentence: str
    limit: float | None
    lag: float | None


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
class Task:
    """How useful the model is: accuracy on test examples, beside always naming the commonest."""

    test_accuracy: float
    test_examples: int
    majority: float | None


@dataclass(frozen=True, slots=True)
class Scope:
    """What was tested and what was not, in sentences."""

    tested: tuple[str, ...]
    not_tested: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several curves side by side."""

    title: str
    curves: tuple[tuple[str, Curve], ...]


@dataclass(frozen=True, slots=True)
class View:
    """Everything a report shows of one run.

    Attributes:
        name: The run folder's name.
        plan: The plan's own fields, for the sentences that need them.
        others: Further measures of success, by record name.
        groups: What was run, one small table each.
    """

    name: str
    question: str
    complete: bool
    plan_fingerprint: str
    plan: Mapping[str, Any]
    verdict: Verdict | NotMeasured
    curve: Curve | NotMeasured
    control: Curve | NotMeasured
    others: tuple[tuple[str, Curve | NotMeasured], ...]
    traditional: Traditional | NotMeasured
    task: Task | NotMeasured
    scope: Scope | NotMeasured
    comparison: Comparison | NotMeasured
    ledger: tuple[LedgerRow, ...]
    groups: tuple[Group, ...]


def read_view(record: Record) -> View:
    """Read a record into a view.

    Raises:
        RecordError: A result is there but not in the form it should have.
    """
    results = record.results()

    def read(name: str, make: Callable[[Mapping[str, Any]], T]) -> T | NotMeasured:
        found = results.get(name)
        if found is None:
            return NotMeasured("this run recorded none")
        if "absent" in found:
            return NotMeasured(str(found["absent"]))
        try:
            return make(found)
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(f"{record.folder} holds a malformed result {name!r}: {error}.") from (
                error
            )

    def curve(name: str) -> Curve | NotMeasured:
        return read(name, lambda found: read_curve(found, name=name))

    return View(
        name=record.folder.resolve().name,
        question=record.question,
        complete=record.status == "complete",
        plan_fingerprint=record.plan_fingerprint,
        plan=_plan_fields(record.plan),
        verdict=read("verdict", _verdict),
        curve=curve("curve"),
        control=curve("curve_aa"),
        others=tuple((name, curve(name)) for name in _OTHER_CURVES),
        traditional=read("traditional", _traditional),
        task=read("task", _task),
        scope=read("scope", _scope),
        comparison=read("compare", lambda found: _comparison(found, results.get("curve", {}))),
        ledger=ledger_rows(record.ledger()),
        groups=(*plan_groups(record.plan), machine_group(record)),
    )


def _plan_fields(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = plan.get("plan", plan)
    return inner if isinstance(inner, Mapping) else {}


def _verdict(found: Mapping[str, Any]) -> Verdict:
    outcome = str(found["outcome"])
    if outcome not in ("PASS", "FAIL", "INCONCLUSIVE"):
        raise InvalidInput(f"outcome={outcome!r} is not PASS, FAIL or INCONCLUSIVE")
    limit, lag = found.get("limit"), found.get("lag")
    return Verdict(
        outcome,
        str(found["sentence"]),
        None if limit is None else float(limit),
        None if lag is None else float(lag),
    )


def _traditional(found: Mapping[str, Any]) -> Traditional:
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


def _task(found: Mapping[str, Any]) -> Task:
    majority = found.get("majority")
    return Task(
        float(found["test_accuracy"]),
        int(found["test_examples"]),
        None if majority is None else float(majority),
    )


def _scope(found: Mapping[str, Any]) -> Scope:
    return Scope(
        tuple(str(line) for line in found.get("tested", ())),
        tuple(str(line) for line in found.get("not_tested", ())),
    )


def _comparison(found: Mapping[str, Any], primary: Mapping[str, Any]) -> Comparison:
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
    )
