"""``--gate`` and ``--allow-inconclusive``: exit codes for the outcome of runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from remnant.cli.options import declared
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.records import Record


def _check_gate(context: click.Context, parameter: click.Parameter, allowed: bool) -> bool:
    if allowed and not context.params["gate"]:
        raise InvalidInput(
            "--allow-inconclusive changes an exit code that only --gate sets.",
            hint="Add --gate, or leave --allow-inconclusive out.",
        )
    return allowed


def gate_options(command: declared.Command) -> declared.Command:
    """Add ``--gate`` and ``--allow-inconclusive``, which needs ``--gate``, to a command."""
    allow = click.option(
        "--allow-inconclusive",
        is_flag=True,
        callback=_check_gate,
        help="With --gate, exit with 0 instead of 3, unless a run was interrupted.",
    )
    gate = click.option(
        "--gate",
        is_flag=True,
        is_eager=True,  # before the callback above
        help="Exit with the outcome: 0 PASS, 1 FAIL, 3 INCONCLUSIVE.  [default: always 0]",
    )
    return gate(allow(command))


def require_gate(questions: Iterable[str]) -> None:
    """Refuse ``--gate`` if no run has a limit.

    Raises:
        InvalidInput: All questions are findings.
    """
    from remnant.records import FINDINGS

    if set(questions) <= set(FINDINGS):
        raise InvalidInput(
            "--gate needs a run with a limit; training choices and predictions are findings.",
            hint="Leave --gate out, or add a recipe that has one.",
        )


def require_gated(records: Iterable[Record]) -> None:
    """Refuse ``--gate`` if all records are findings, such as a measurement without ``--limit``.

    Raises:
        InvalidInput: No record has a limit.
    """
    if all(map(_is_finding, records)):
        raise InvalidInput(
            "--gate needs a run with a limit, and there are findings only.",
            hint="Leave --gate out, or measure with a limit.",
        )


def _is_finding(record: Record) -> bool:
    from remnant.records import FINDINGS

    row = record.results().get("verdict", {})
    return record.question in FINDINGS or ("headline" in row and "outcome" not in row)


def exit_by_outcome(outcome: str, *, allow_inconclusive: bool) -> None:
    """Exit with the code of one gate's outcome; return where that is 0."""
    from remnant.records import exit_code

    code = exit_code([outcome], allow_inconclusive=allow_inconclusive)
    if code:
        sys.exit(code)


def exit_by_gates(records: Iterable[Record], *, allow_inconclusive: bool) -> None:
    """Exit with the code of the runs' gates; findings do not count.

    A run that should have an outcome and has none counts as INCONCLUSIVE. A run that is not
    complete exits with 3 even if ``allow_inconclusive`` is set, because nothing was judged. FAIL
    exits with 1 whatever the outcome of the other runs.
    """
    from remnant.records import current, exit_code

    outcomes, unfinished = [], False
    for record in records:
        if not _is_finding(record):
            row = current(record.results().get("verdict", {}), question=record.question)
            complete = record.status == "complete"
            unfinished |= not complete
            outcomes.append(str(row.get("outcome", "INCONCLUSIVE")) if complete else "INCONCLUSIVE")
    code = exit_code(outcomes, allow_inconclusive=allow_inconclusive and not unfinished)
    if code:
        sys.exit(code)
