"""``--gate`` and ``--allow-inconclusive``: exit codes that say the outcome of recorded runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.records import Record

Command = TypeVar("Command", bound=Callable[..., Any])


def gate_options(command: Command) -> Command:
    """Add ``--gate`` and ``--allow-inconclusive`` to a command."""
    allow = click.option(
        "--allow-inconclusive", is_flag=True, help="With --gate, exit with 0 instead of 3."
    )
    gate = click.option(
        "--gate",
        is_flag=True,
        help="Exit with the outcome: 0 PASS, 1 FAIL, 3 INCONCLUSIVE.  [default: always 0]",
    )
    return gate(allow(command))


def check_options(*, gate: bool, allow_inconclusive: bool) -> None:
    """Refuse ``--allow-inconclusive`` where nothing is gated.

    Raises:
        InvalidInput: It is set without ``--gate``.
    """
    if allow_inconclusive and not gate:
        raise InvalidInput(
            "--allow-inconclusive changes an exit code that only --gate sets.",
            hint="Add --gate, or leave --allow-inconclusive out.",
        )


def require_gate(questions: Iterable[str]) -> None:
    """Refuse to gate runs none of which has a limit.

    Raises:
        InvalidInput: All questions are findings.
    """
    from remnant.records import FINDINGS

    if set(questions) <= set(FINDINGS):
        raise InvalidInput(
            "--gate needs a run with a limit; training choices and predictions are findings.",
            hint="Leave --gate out, or add a recipe that has one.",
        )


def exit_by_gates(records: Iterable[Record], *, allow_inconclusive: bool) -> None:
    """Exit with the code of the runs' gates; findings do not count.

    A run that should have an outcome and has none, or that is not complete, counts as
    INCONCLUSIVE.
    """
    from remnant.records import FINDINGS, current, exit_code

    outcomes = []
    for record in records:
        if record.question not in FINDINGS:
            row = current(record.results().get("verdict", {}), question=record.question)
            complete = record.status == "complete"
            outcomes.append(str(row.get("outcome", "INCONCLUSIVE")) if complete else "INCONCLUSIVE")
    code = exit_code(outcomes, allow_inconclusive=allow_inconclusive)
    if code:
        sys.exit(code)
