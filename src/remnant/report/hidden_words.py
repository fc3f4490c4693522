"""Gone or only hidden, in plain words: always says what was searched for and what was not."""

from __future__ import annotations

from remnant.report.curve import percent
from remnant.report.hidden_view import Disturbance, Hidden, Scan
from remnant.report.numerals import count_text, counted, pvalue_text
from remnant.report.run_view import NotMeasured

READING_WORDS = {
    "comes back": "comes back: found better than before",
    "hidden": "hidden: found now, not before; a rise by itself is not shown",
    "still found": "still found, as before",
    "not found": "not found",
}


def searches(hidden: Hidden | NotMeasured, scan: Scan | NotMeasured) -> str:
    """Which of the three searches were run, and which were not."""
    ran = {
        "weight noise": isinstance(hidden, Hidden) and bool(hidden.of("noise")),
        "relearning on similar examples": isinstance(hidden, Hidden) and bool(hidden.of("relearn")),
        "a scan of later checkpoints": isinstance(scan, Scan),
    }
    done = [name for name, was in ran.items() if was]
    missing = [name for name, was in ran.items() if not was]
    if not done:
        return f"not searched for: none of {_listed(missing)} was run"
    rest = f"; not run: {_listed(missing)}" if missing else ""
    return f"searched for by {_listed(done)}{rest}"


def hidden_sentences(hidden: Hidden | NotMeasured, scan: Scan | NotMeasured) -> list[str]:
    """What is not found may only be hidden: what was done about it, and what came of it."""
    sentences = [
        f"What an attack does not find may only be hidden; this was {searches(hidden, scan)}."
    ]
    if isinstance(hidden, Hidden):
        for kind, words in (("noise", "Weight noise"), ("relearn", "Relearning")):
            found = hidden.of(kind)
            if found:
                sentences.append(f"{words} {_brought(found)}.")
    if isinstance(scan, Scan):
        sentences.append(scan_sentence(scan))
    return sentences


def scan_sentence(scan: Scan) -> str:
    """What the scan of checkpoints found."""
    more = "more than" if scan.shows else "not shown to be more than"
    return (
        f"Of {counted(scan.canaries, 'planted canary', 'planted canaries')}, "
        f"{count_text(scan.lost)} were not found at two checkpoints in a row. Of these, "
        f"{count_text(scan.returned)} were clearly found at a later one; so were "
        f"{count_text(scan.chance_returned)} in models that never saw them ({scan.reference}). "
        f"This is {more} chance (excess {percent(scan.excess)}, {percent(scan.low)} to "
        f"{percent(scan.high)}; p {pvalue_text(scan.pvalue)})."
    )


def hidden_line(hidden: Hidden | NotMeasured, scan: Scan | NotMeasured) -> str:
    """The same in a line."""
    parts = []
    if isinstance(hidden, Hidden):
        for kind, words in (("noise", "weight noise"), ("relearn", "relearning")):
            found = hidden.of(kind)
            parts.append(f"{words}: {_in_short(found)}" if found else f"{words}: not run")
    else:
        parts.append("weight noise and relearning: not run")
    if isinstance(scan, Scan):
        parts.append(
            f"scan of {scan.checkpoints} checkpoints: {scan.returned} came back, "
            f"{scan.chance_returned} by chance (p {pvalue_text(scan.pvalue)})"
        )
    else:
        parts.append("scan of checkpoints: not run")
    return "gone or hidden: " + "; ".join(parts)


def _in_short(found: tuple[Disturbance, ...]) -> str:
    reading, cases = _strongest(found)
    return f"{reading} ({cases})"


def _brought(found: tuple[Disturbance, ...]) -> str:
    reading, cases = _strongest(found)
    words = {
        "comes back": f"brought it back in {cases}: the attack succeeds better than before",
        "hidden": f"showed what was hidden in {cases}: the attack succeeds where it did not before",
        "still found": f"brought nothing more to light; the attack still succeeds in {cases}",
        "not found": "brought nothing to light",
    }
    return words[reading]


def _strongest(found: tuple[Disturbance, ...]) -> tuple[str, str]:
    """The reading that says most, and in how many of the cases."""
    readings = [one.reading for one in found]
    reading = next(reading for reading in READING_WORDS if reading in readings)
    return reading, f"{readings.count(reading)} of {len(readings)}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
