"""What every view has: the run, its verdict, how useful the model is, and the scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from remnant.errors import InvalidInput, RecordError
from remnant.records import OUTCOMES, Record
from remnant.records.outcomes import current_results
from remnant.report.ran import Group, LedgerRow, ledger_rows, machine_group, plan_groups

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """Something a run did not measure, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a gate: a measurement held against a limit that was named before the run.

    Attributes:
        outcome: PASS, FAIL or INCONCLUSIVE.
        sentence: What was measured, and why that is the outcome.
        limit: The success that was allowed, or bits of exposure, or None.
        lag: Steps since planting the limit holds at, or None.
        claim: The strongest statement that the evidence supports; empty where none is recorded.
    """

    outcome: str
    sentence: str
    limit: float | None
    lag: float | None
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a run without a limit on harm found: no PASS and no FAIL.

    Attributes:
        headline: A few words.
        sentence: What was found, with its numbers.
        advice: What to do about it; may be empty.
    """

    headline: str
    sentence: str
    advice: str


@dataclass(frozen=True, slots=True)
class Task:
    """How useful the model is: accuracy on test examples, beside always naming the commonest."""

    test_accuracy: float
    test_examples: int
    majority: float | None


@dataclass(frozen=True, slots=True)
class LanguageTask:
    """How useful a language model is: bits per token on text it was not trained on.

    Attributes:
        token: What a token is, such as ``"character"``.
        uniform_bits: What a blind guess needs, all tokens alike; None where it is not known.
    """

    validation_bits: float
    validation_tokens: int
    token: str
    uniform_bits: float | None = None

    @property
    def useless(self) -> bool:
        """Whether the model predicts worse than a blind guess."""
        return self.uniform_bits is not None and self.validation_bits > self.uniform_bits


@dataclass(frozen=True, slots=True)
class Scope:
    """What was tested and what was not, in sentences."""

    tested: tuple[str, ...]
    not_tested: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunView:
    """What a report shows of any run.

    Attributes:
        name: The run folder's name.
        plan: The plan's own fields, for the sentences that need them.
        groups: What was run, one small table each.
    """

    name: str
    question: str
    complete: bool
    plan_fingerprint: str
    plan: Mapping[str, Any]
    verdict: Verdict | Finding | NotMeasured
    task: Task | LanguageTask | NotMeasured
    scope: Scope | NotMeasured
    ledger: tuple[LedgerRow, ...]
    groups: tuple[Group, ...]


class Results:
    """A record's results, each read by a function of its own or not measured."""

    def __init__(self, record: Record) -> None:
        self._folder = record.folder
        self._found = current_results(record.results(), question=record.question)

    def raw(self, name: str) -> Mapping[str, Any]:
        """A result as it stands; empty where there is none."""
        return self._found.get(name, {})

    def read(
        self, name: str, make: Callable[[Mapping[str, Any]], T | NotMeasured]
    ) -> T | NotMeasured:
        """The result, or why it is not there.

        Raises:
            RecordError: It is there but not in the form it should have.
        """
        found = self._found.get(name)
        if found is None:
            return NotMeasured("this run recorded none")
        if "absent" in found:
            return NotMeasured(str(found["absent"]).removesuffix("."))
        try:
            return make(found)
        except (KeyError, TypeError, ValueError) as error:
            fault = str(error).removesuffix(".")
            raise RecordError(f"{self._folder} holds a malformed result {name!r}: {fault}.") from (
                error
            )


def run_fields(record: Record, results: Results) -> dict[str, Any]:
    """The fields of a ``RunView``.

    Raises:
        RecordError: A result is malformed.
    """
    return {
        "name": record.folder.resolve().name,
        "question": record.question,
        "complete": record.status == "complete",
        "plan_fingerprint": record.plan_fingerprint,
        "plan": _plan_fields(record.plan),
        "verdict": results.read("verdict", _verdict),
        "task": results.read("task", _task),
        "scope": results.read("scope", _scope),
        "ledger": ledger_rows(record.ledger()),
        "groups": (*plan_groups(record.plan), machine_group(record)),
    }


def _plan_fields(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = plan.get("plan", plan)
    return inner if isinstance(inner, Mapping) else {}


def _verdict(found: Mapping[str, Any]) -> Verdict | Finding:
    if "headline" in found:
        return Finding(
            str(found["headline"]), str(found["sentence"]), str(found.get("advice") or "")
        )
    outcome = str(found["outcome"])
    if outcome not in OUTCOMES:
        raise InvalidInput(f"outcome={outcome!r} is not PASS, FAIL or INCONCLUSIVE")
    limit, lag = found.get("limit"), found.get("lag")
    claim, sentence = str(found.get("claim") or ""), str(found["sentence"])
    return Verdict(
        outcome,
        sentence,
        None if limit is None else float(limit),
        None if lag is None else float(lag),
        "" if claim in sentence else claim,
    )


def _task(found: Mapping[str, Any]) -> Task | LanguageTask:
    if "validation_bits" in found:
        uniform = found.get("uniform_bits")
        return LanguageTask(
            float(found["validation_bits"]),
            int(found["validation_tokens"]),
            str(found.get("token", "token")),
            None if uniform is None else float(uniform),
        )
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
