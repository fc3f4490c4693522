"""What a search for residual memory says beside an outcome."""

from __future__ import annotations

from remnant.records.outcomes import Outcome
from remnant.records.typed import Absent
from remnant.report.blocks import Check
from remnant.report.numerals import p_equals
from remnant.studies.beside.checks import harm, not_measured
from remnant.studies.residual_memory.result import ResidualMemory, Returning


def residual_memory(
    hidden: ResidualMemory | Absent, returning: Returning | Absent, outcome: Outcome | None
) -> list[Check]:
    """Whether disturbances or later checkpoints brought canaries back, which contradicts a PASS."""
    checks = []
    if isinstance(hidden, ResidualMemory):
        rows = hidden.disturbances
        found = sum(row.reading != "not found" for row in rows)
        text = f"canaries found after {found} of {len(rows)} disturbances"
        checks.append(harm("residual memory", found, text, outcome))
    elif outcome == "PASS":
        checks.append(not_measured("residual memory"))
    if isinstance(returning, Returning) and (returning.significant or outcome == "PASS"):
        back = returning.returned if returning.significant else 0
        text = (
            f"{returning.returned} of {returning.lost} lost canaries come back "
            f"({p_equals(returning.pvalue)})"
        )
        checks.append(harm("later checkpoints", back, text, outcome))
    return checks
