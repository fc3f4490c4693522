"""What a command measured as its record holds it, and the page of such a record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, get_args

from remnant.records.typed import Absent
from remnant.report.blocks import Block, Check, Missing, Reading, section
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.pages import RunFacts, closing, headline, scope_section
from remnant.studies.shared.result_parts import Finding, Gate, Tested

V = TypeVar("V", bound=Finding | Gate)
M = TypeVar("M")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CommandResult(QuestionResult, Generic[V, M]):
    """What a command measured, with its outcome.

    The registry names the types of both, such as ``CommandResult[Finding, ExtractResult]``.

    Attributes:
        verdict: The outcome of a gate where the command was given one, else a finding.
        measured: What the command prints as JSON.
    """

    ROWS: ClassVar[tuple[str, ...]] = ("measured",)

    verdict: V | Absent
    measured: M | Absent
    scope: Tested | Absent

    def _is_of(self, made: Any) -> bool:
        return type(self.measured) in get_args(made)


def record_page(
    result: CommandResult[V, M],
    run: RunFacts,
    sections: Callable[[M], Iterable[Block]],
    *,
    heading: str,
    what: str,
    checks: Iterable[Check],
    titles: Mapping[str, str] | None = None,
    advice: Mapping[str, str] | None = None,
    reading: Reading | None = None,
) -> Iterator[Block]:
    """Yield the page of a command's record.

    Args:
        result: What the record holds.
        run: What the page says about the command itself.
        sections: Makes the sections of what was measured.
        heading, what: Title of the section that takes their place where nothing was measured, and
            what is missing.
        checks, titles, advice, reading: See ``headline``.
    """
    yield headline(result.verdict, titles or {}, checks=checks, reading=reading, advice=advice)
    if isinstance(result.measured, Absent):
        yield section(heading, [Missing(what, result.measured.reason)])
    else:
        yield from sections(result.measured)
    yield scope_section(result.scope)
    yield from closing(run, ledger=False)
