"""Is the exposure of planted canaries under a limit? The verdict of a study, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remnant.measures.exposure import is_found, references_to_show
from remnant.studies.above_controls import like_controls, not_all_memory, told_apart
from remnant.studies.wording import about, counted, times

_DRAWN = 1_000_000  # references that are still worth drawing


def exposure_verdict(
    exposure: dict[str, Any], repeats: dict[str, Any], *, limit: float, judged: int
) -> dict[str, Any]:
    """Judge the canaries that were planted at most ``judged`` times against a limit in bits.

    FAIL when the whole interval of one of them is at or above the limit. PASS when the intervals of
    all of them are under it and the canaries planted most often, more often than these, were found:
    their mean exposure is more than chance gives in one case of a hundred, and more than in the
    twin that never saw them. So the measurement is known to see what is there. INCONCLUSIVE
    otherwise. Where the controls themselves are more exposed than chance allows, it takes more: a
    PASS, that canaries planted most often are more exposed than controls; a FAIL the same of those
    judged, if there are controls at or above the limit. Else what is seen need not be memory.

    Args:
        exposure, repeats: As the record has them.
        limit: In bits.
        judged: The most that a canary was planted to be judged.
    """
    rows = [row for row in exposure["canaries"] if row["repeats"] <= judged]
    worst = max(rows, key=lambda row: (row["low"], row["bits"]))
    found = (
        f"Of {counted(len(rows), 'canary', 'canaries')} planted at most "
        f"{times(judged)}, the most exposed (planted {times(worst['repeats'])}) has an exposure "
        f"of {_bits(worst)}, out of at most {exposure['ceiling_bits']:.1f}"
    )
    most, p_value = repeats["repeats"][-1], repeats["pooled_pvalue"][-1]
    mean, twin = repeats["mean_bits"][-1], repeats["twin_mean_bits"][-1]
    seen = most > judged and is_found(p_value)
    seen = seen and (twin is None or mean > twin)
    copied = repeats["repeats"][0] == 0 and is_found(repeats["pooled_pvalue"][0])
    alike = ""
    if copied:
        often = [row for row in exposure["canaries"] if row["repeats"] == most]
        seen = seen and told_apart(often, exposure["controls"])
        alike = like_controls(rows, exposure["controls"], limit)
    open_rows = [row for row in rows if row["high"] is None or row["high"] >= limit]
    if worst["low"] >= limit and alike:
        outcome, end = "INCONCLUSIVE", f"at or above the limit of {limit:g}; but {alike}."
    elif worst["low"] >= limit:
        outcome = "FAIL"
        known = f"; {not_all_memory(repeats['mean_bits'][0])}" if copied else ""
        end = f"at or above the limit of {limit:g}{known}."
    elif open_rows:
        outcome = "INCONCLUSIVE"
        end = f"sampling cannot say on which side of the limit of {limit:g}; "
        end += f"{more_evidence(open_rows, limit)}."
    elif not seen:
        outcome = "INCONCLUSIVE"
        end = (
            f"under the limit of {limit:g}; but no canaries planted more often were found, so that "
            "this says nothing: plant some more often."
        )
    else:
        outcome = "PASS"
        end = f"under the limit of {limit:g}, while those planted {times(most)} were found."
    return {"outcome": outcome, "sentence": f"{found}: {end}", "limit": limit, "lag": None}


def more_evidence(rows: Sequence[dict[str, Any]], limit: float) -> str:
    """What would settle on which side of a limit these canaries are."""
    if not any(row["saturated"] for row in rows):
        return "draw several times as many references, or raise max_nodes"
    needed = references_to_show(limit)
    if needed <= _DRAWN:
        return f"draw {about(needed)} references or more"
    return (
        f"to show that many bits takes {about(needed)} references, so raise max_nodes instead, for "
        "exact ranks"
    )


def _bits(row: dict[str, Any]) -> str:
    """The exposure; where no reference was as cheap, what it is at least with 95 % confidence."""
    return f"at least {row['low']:.1f} bits" if row["saturated"] else f"{row['bits']:.1f} bits"
