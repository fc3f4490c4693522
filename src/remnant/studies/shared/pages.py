"""What the pages of all questions share: the headline, the task, the scope, what was run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import RecordError
from remnant.records import Record
from remnant.records.provenance import gives_secrets, without_seeds
from remnant.records.typed import Absent
from remnant.report.blocks import (
    Block,
    Check,
    Column,
    Depth,
    Facts,
    Fold,
    Headline,
    Missing,
    Reading,
    Scope,
    Section,
    Table,
    prose,
    section,
)
from remnant.report.numerals import bits_text, lag_text, percent
from remnant.studies.shared.result_parts import (
    ClassifierTask,
    Finding,
    LanguageTask,
    SpeechTask,
    Task,
    Tested,
    Verdict,
)

_LEDGER_ROWS = 100
_REPLACED = ("Text", "Pairs", "Questions")  # what own files take the place of
_OF_SENTENCES = ("text", "sentences", "words", "commonest")  # of synthetic speech
UNDECIDED = "Not enough evidence to decide"
# The beginning of the advice of a PASS beside which something was detected.
_LOOK_FIRST = "The limit holds, yet something was detected: look at it before you release."
_NOTHING_TO_DO = "No action is"


def _no_array(name: str) -> NDArray[Any]:
    raise RecordError(f"the run holds no array {name!r}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What a page says about the run itself.

    Attributes:
        plan: The plan's own fields, for the sentences that need them.
        recipe: The recipe as the record holds it, but for seeds that give secrets back.
        groups: What was run, one small table each.
        array: Reads an array of the record by its name, for pages that show pictures or spreads;
            raises ``RecordError`` where there is none.
        execution: What the record keeps of how the run was executed, such as measured times.
    """

    name: str
    question: str
    complete: bool
    fingerprint: str
    plan: Mapping[str, Any]
    recipe: Mapping[str, Any]
    ledger: tuple[LedgerRow, ...]
    groups: tuple[Group, ...]
    array: Callable[[str], NDArray[Any]] = _no_array
    execution: Mapping[str, Any] = field(default_factory=dict)


NO_RUN = RunFacts(
    name="", question="", complete=True, fingerprint="", plan={}, recipe={}, ledger=(), groups=()
)
"""Of a result that was read from no record."""


def read_run(record: Record) -> RunFacts:
    """Read what a page says about a record's run."""
    plan = without_seeds(record.plan) if gives_secrets(record.plan) else record.plan
    inner = plan.get("plan", plan)
    return RunFacts(
        name=record.folder.resolve().name,
        question=record.question,
        complete=record.status == "complete",
        fingerprint=record.plan_fingerprint,
        plan=inner if isinstance(inner, Mapping) else {},
        recipe=plan,
        ledger=ledger_rows(record.ledger()),
        groups=(*_of_own_files(plan_groups(plan)), machine_group(record)),
        array=record.array,
        execution=record.execution,
    )


def _of_own_files(groups: Iterable[Group]) -> Iterator[Group]:
    """The groups of a plan, without the fields that own files make meaningless.

    Text of one's own files has no name of a shipped text beside it, and speech of one's own files
    has none of the fields of synthetic sentences.
    """
    every = tuple(groups)
    own = any(group.title == "Data" and ("name", "files") in group.rows for group in every)
    for group in every:
        if own and group.title in _REPLACED:
            rows = tuple(row for row in group.rows if row[0] not in ("name", "source"))
            group = replace(group, rows=rows)
        elif own and group.title == "Data" and any(name == "sentences" for name, _ in group.rows):
            rows = tuple(row for row in group.rows if row[0] not in _OF_SENTENCES)
            group = replace(group, rows=rows)
        yield group


def headline(
    verdict: Verdict | Absent,
    titles: Mapping[str, str],
    *,
    checks: Iterable[Check],
    reading: Reading | None = None,
    advice: Mapping[str, str] | None = None,
) -> Headline:
    """The headline of a verdict.

    Args:
        verdict: Of the result.
        titles: A few words for each outcome of a gate.
        checks: What the question's ``beside`` returns; not shown where there is no verdict.
        reading: The number it rests on.
        advice: What to do, for each outcome of a gate; a finding has its own.
    """
    if isinstance(verdict, Absent):
        return Headline(None, "No verdict", verdict.reason, reading=reading)
    if isinstance(verdict, Finding):
        return Headline(
            "FINDING",
            verdict.headline,
            verdict.sentence,
            advice=verdict.advice or "",
            reading=reading,
            checks=tuple(checks),
        )
    what_to_do = (advice or {}).get(verdict.outcome, "")
    if verdict.outcome == "PASS" and verdict.detected:
        what_to_do = f"{_LOOK_FIRST} {what_to_do.replace(_NOTHING_TO_DO, 'No other action is')}"
    return Headline(
        verdict.outcome,
        titles.get(verdict.outcome, UNDECIDED),
        verdict.sentence,
        claim=verdict.claim_apart,
        advice=what_to_do,
        reading=reading,
        checks=tuple(checks),
    )


def task_sentence(task: Task | Absent) -> str:
    """How useful the trained model is."""
    if isinstance(task, Absent):
        return f"The model's usefulness was not measured: {task.reason}."
    if isinstance(task, LanguageTask):
        return _language_task(task)
    if isinstance(task, SpeechTask):
        return _speech_task(task)
    return _classifier_task(task)


def useless_sentence(task: Task | Absent) -> str:
    """A warning where a language model is worse than guessing blindly; else nothing."""
    if not isinstance(task, LanguageTask) or task.uniform_bits is None or not task.useless:
        return ""
    return (
        f"Warning: no use as a language model: {bits_text(task.validation_bits)} a {task.token} on "
        f"held-out text; guessing blindly needs {bits_text(task.uniform_bits)}."
    )


def _classifier_task(task: ClassifierTask) -> str:
    beside = (
        ""
        if task.majority is None
        else f"; always naming the commonest class would give {percent(task.majority)}"
    )
    return (
        f"The trained model is right on {percent(task.test_accuracy)} of "
        f"{lag_text(task.test_examples)} test examples{beside}."
    )


def _speech_task(task: SpeechTask) -> str:
    return (
        f"On {lag_text(task.utterances)} utterances that it was not trained on, the model gets "
        f"{percent(task.character_error_rate)} of the characters and "
        f"{percent(task.word_error_rate)} of the words wrong. Compared with what was said in "
        f"another utterance, {percent(task.swapped_error_rate)} of the characters are wrong."
    )


def _language_task(task: LanguageTask) -> str:
    blind = (
        "" if task.uniform_bits is None else f" (guessing blindly: {bits_text(task.uniform_bits)})"
    )
    needs = (
        f"On held-out text the model needs {bits_text(task.validation_bits)} a {task.token}{blind}"
        f", over {lag_text(task.validation_tokens)} {task.token}s"
    )
    if task.useless:
        return (
            f"{needs}: it is worse than guessing blindly and no use as a language model, so these "
            "results need not hold for a useful one."
        )
    return f"{needs}; fewer bits are better."


def scope_section(scope: Tested | Absent, *, depth: Depth = "page") -> Section:
    """What was tested, and what was not.

    Args:
        scope: Of the result.
        depth: Whether a terminal prints it too.
    """
    found: Block = (
        Missing("Scope", scope.reason)
        if isinstance(scope, Absent)
        else Scope(scope.tested, scope.not_tested, depth)
    )
    return section("What was tested, and what was not", [found])


def closing(run: RunFacts, *, ledger: bool = True) -> Iterator[Block]:
    """The end of a page: when canaries were used, and what was run.

    Args:
        run: What was run.
        ledger: Whether a run of this question keeps a ledger; one that is there is always shown.
    """
    if run.ledger or ledger:
        yield section("When the canaries were used", _ledger(run), part="provenance")
    groups = tuple((group.title, group.rows) for group in run.groups)
    yield section(
        "What was run", [Fold("Plan, machine and versions", (Facts(groups),))], part="provenance"
    )


def _ledger(run: RunFacts) -> Iterator[Block]:
    tiled = _tiled_sentence(run)
    if tiled:
        yield prose(tiled)
    if not run.ledger:
        yield Missing("Ledger", "it was not recorded")
        return
    many = len(run.ledger) > 20
    yield Table(
        caption="Uses of the canaries; canaries used the same way share a row",
        key="ledger",
        rows=run.ledger,
        columns=(
            Column("Canaries", "canaries"),
            Column("How many", "count"),
            Column("Members that used each", "members"),
            Column("Uses per member", "uses", _uses),
            Column("First step", "first_step", lag_text),
            Column("Last step", "last_step", lag_text),
        ),
        fold=f"Ledger of uses ({len(run.ledger)} rows)" if many else "",
        limit=_LEDGER_ROWS,
    )


def _uses(ends: tuple[int, int]) -> str:
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]}–{ends[1]}"


def _tiled_sentence(run: RunFacts) -> str:
    """Why the ledger counts more uses than the plan has repeats; nothing where it does not."""
    repeats = run.plan.get("repeats")
    uses = max((row.uses[1] for row in run.ledger), default=0)
    if run.plan.get("kind") != "inject" or not isinstance(repeats, int) or uses <= repeats:
        return ""
    return (
        f"The plan injects the canaries {'once' if repeats == 1 else f'{repeats} times'}, and the "
        f"ledger counts up to {uses} uses: an injected batch holds several copies of a canary, "
        "because the canaries are repeated to fill it."
    )


@dataclass(frozen=True, slots=True)
class Group:
    """A small table: a title and rows of name and value."""

    title: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """Canaries that were used alike.

    Attributes:
        canaries: Their numbers, counted from 1, runs written as ``1–32``.
        count: How many they are.
        members: How many members used each.
        uses: Uses of one canary by one member, fewest and most.
        first_step, last_step: Of the first and the last use.
    """

    canaries: str
    count: int
    members: int
    uses: tuple[int, int]
    first_step: int
    last_step: int


def plan_groups(plan: Mapping[str, Any]) -> tuple[Group, ...]:
    """One group per part of the plan; fields outside any part come first, under "plan"."""
    loose = {key: value for key, value in plan.items() if not isinstance(value, Mapping)}
    parts = {key: value for key, value in plan.items() if isinstance(value, Mapping)}
    groups = [Group("Plan", _rows(loose))] if loose else []
    groups += [Group(_words(key).capitalize(), _rows(part)) for key, part in parts.items()]
    return tuple(groups)


def machine_group(record: Record) -> Group:
    """Fingerprints, times, execution, versions and seeds."""
    provenance = record.provenance
    resumed = len(record.attempts()) - 1
    versions = {
        "python": provenance.pop("python", None),
        **(provenance.pop("versions", None) or {}),
    }
    started, finished = provenance.pop("started"), provenance.pop("finished")
    plan, data = provenance.pop("plan_fingerprint"), provenance.pop("data_fingerprint")
    seeds = provenance.pop("seeds", None)
    if gives_secrets(record.plan):
        seeds = "in the record alone: template and seed give the secrets back"
    facts: dict[str, Any] = {"question": record.question}
    facts |= record.execution | {k: v for k, v in provenance.items() if v is not None}
    if seeds:
        facts["seeds"] = seeds
    facts["started"] = started
    facts["finished"] = finished or "not finished"
    if finished:
        facts["duration"] = _duration(started, finished)
    if resumed:
        facts["resumed"] = f"{resumed} time{'s' if resumed > 1 else ''}"
    facts["versions"] = {name: version for name, version in versions.items() if version}
    facts |= {"plan fingerprint": plan, "data fingerprint": data}
    facts |= {"digests": "none (older record)"} if record.version == 1 else {}
    return Group("Execution and provenance", _rows(facts))


def ledger_rows(ledger: Mapping[str, NDArray[np.int64]]) -> tuple[LedgerRow, ...]:
    """The ledger by canary, canaries that were used alike in one row."""
    alike: dict[tuple[int, int, int, int, int], list[int]] = {}
    for canary in np.unique(ledger["canary"]).tolist():
        mine = ledger["canary"] == canary
        members, place = np.unique(ledger["member"][mine], return_inverse=True)
        uses = np.bincount(place, weights=ledger["uses"][mine]).astype(int)
        steps = ledger["step"][mine]
        key = (len(members), int(uses.min()), int(uses.max()), int(steps.min()), int(steps.max()))
        alike.setdefault(key, []).append(canary + 1)  # as they are counted elsewhere
    return tuple(
        LedgerRow(_runs(canaries), len(canaries), members, (fewest, most), first, last)
        for (members, fewest, most, first, last), canaries in sorted(
            alike.items(), key=lambda item: (item[0][3], item[1])
        )
    )


def _rows(fields: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((_words(key), _value(value)) for key, value in fields.items())


def _words(key: str) -> str:
    return key.replace("_", " ")


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping) and all(
        not isinstance(v, Mapping | list) for v in value.values()
    ):
        return ", ".join(f"{_words(str(key))} {_value(inner)}" for key, inner in value.items())
    if isinstance(value, list) and all(not isinstance(v, Mapping | list) for v in value):
        return ", ".join(_value(inner) for inner in value) if value else "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _runs(numbers: list[int]) -> str:
    """Sorted whole numbers with runs joined, such as ``1–3, 7``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("–".join(map(str, run)) for run in runs)


def _duration(started: str, finished: str) -> str:
    begin, end = (datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (started, finished))
    seconds = max(0, int((end - begin).total_seconds()))
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"
