"""Residual memory: which searches were run for it, which were not, and what they found."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.typed import Absent
from remnant.report.blocks import Block, Cell, Column, Missing, Section, Table, prose, section
from remnant.report.numerals import count_text, counted, lag_text, p_equals, percent, pvalue_text
from remnant.studies.residual_memory.result import Disturbance, ResidualMemory, Returning
from remnant.studies.shared.curves import Curve, Point
from remnant.studies.shared.wording import listed

READINGS = {
    "comes back": "comes back: detected better than before",
    "hidden": "residual: detected now, not before; a rise by itself is not shown",
    "still found": "still detected, as before",
    "not found": "not detected",
}
_OUTCOMES = {
    "comes back": "brought the canaries back in {}: the attack succeeds better than before",
    "hidden": "revealed the canaries in {}: the attack succeeds where it did not before",
    "still found": "brought nothing more back; the attack still succeeds in {}",
    "not found": "brought nothing back; the attack detects nothing in {}",
}
_AGAINST_TWIN = (
    "The attack is measured against the twin after the same disturbance, so what both learn from "
    "these examples does not count."
)
_AGAINST_REFERENCES = (
    "Canaries are compared with references of the same disturbed model, so what it learns from "
    "these examples in general does not count."
)


def residual_memory_section(
    memory: ResidualMemory | Absent, returning: Returning | Absent
) -> Section:
    """Whether what the attack does not detect was erased, as far as it was searched for."""
    return section("Is it erased, or only undetected?", _blocks(memory, returning))


def _blocks(memory: ResidualMemory | Absent, returning: Returning | Absent) -> Iterator[Block]:
    yield prose(" ".join(search_results(memory, returning)), depth="summary")
    if isinstance(memory, Absent):
        yield Missing("Weight noise and relearning", memory.reason)
    else:
        yield _table(memory)
    if isinstance(returning, Absent):
        yield Missing("Scan of later checkpoints", returning.reason)


def searches(memory: ResidualMemory | Absent, returning: Returning | Absent) -> str:
    """Which of the three searches were run, and which were not."""
    ran = {
        "weight noise": isinstance(memory, ResidualMemory) and bool(memory.of("noise")),
        "relearning on similar examples": isinstance(memory, ResidualMemory)
        and bool(memory.of("relearn")),
        "a scan of later checkpoints": isinstance(returning, Returning),
    }
    done = [name for name, was_run in ran.items() if was_run]
    missing = [name for name, was_run in ran.items() if not was_run]
    parts = [f"{listed(done)} {_was(done)} run"] if done else []
    parts += [f"{listed(missing)} {_was(missing)} not run"] if missing else []
    text = "; ".join(parts)
    return f"Undetected is not erased. {text[0].upper()}{text[1:]}."


def search_results(memory: ResidualMemory | Absent, returning: Returning | Absent) -> Iterator[str]:
    """Which searches were run and what they found, in sentences."""
    yield searches(memory, returning)
    if isinstance(memory, ResidualMemory):
        for name, rows in (
            ("Weight noise", memory.of("noise")),
            ("Relearning", memory.of("relearn")),
        ):
            if rows:
                yield f"{name} {_outcome(rows, memory.curve)}."
        if broken := [row.label for row in memory.disturbances if row.useful is False]:
            yield (
                f"The models do their task no better than chance after {', after '.join(broken)}: "
                "canaries that are not detected there need not be gone."
            )
    if isinstance(returning, Returning):
        yield scan_sentence(returning)


def scan_sentence(returning: Returning) -> str:
    """What the scan of checkpoints found."""
    more = "more than" if returning.significant else "not shown to be more than"
    return (
        f"Scan of {counted(returning.checkpoints, 'checkpoint')}: of "
        f"{counted(returning.canaries, 'planted canary', 'planted canaries')}, "
        f"{count_text(returning.lost)} were not found at two checkpoints in a row. Of these, "
        f"{count_text(returning.returned)} came back, clearly found at a later one; in models that "
        f"never saw them ({returning.reference}) {count_text(returning.chance_returned)} did. This "
        f"is {more} chance (excess {_signed(returning.excess)}, "
        f"{_signed(returning.excess_low)} to {_signed(returning.excess_high)}; "
        f"{p_equals(returning.pvalue)})."
    )


def _signed(share: float) -> str:
    return percent(share).replace("-", "−")


def _outcome(rows: tuple[Disturbance, ...], curve: Curve) -> str:
    """What the strongest reading says, and in how many of the cases it holds.

    Nothing detected is said beside the largest success that is not excluded: few trials detect
    nothing whatever there is.
    """
    readings = [row.reading for row in rows]
    strongest = next(reading for reading in READINGS if reading in readings)
    cases = f"{readings.count(strongest)} of {counted(len(readings), 'case')}"
    said = _OUTCOMES[strongest].format(cases)
    if strongest != "not found":
        return said
    most = max(row.after_high for row in rows)
    return f"{said} ({curve.label} of up to {curve.show(most)} is not excluded)"


def _table(memory: ResidualMemory) -> Table:
    curve = memory.curve

    def show(point: Point) -> Cell:
        return _cell(curve, point)

    return Table(
        caption=f"{curve.label} at lag {lag_text(memory.lag)}, before and after the models were "
        "disturbed",
        key="disturbances",
        rows=memory.disturbances,
        columns=(
            Column("Disturbance", "label"),
            Column("Before", lambda row: memory.undisturbed, show),
            Column("After", "success", show, strong=True),
            Column("p, above chance", "pvalue_after", pvalue_text),
            Column("p, rose", "pvalue_rise", pvalue_text),
            Column("A/A twins after", "control", show, optional=True),
            Column("Mean exposure before", lambda row: memory.exposed, _bits_cell, optional=True),
            Column("Mean exposure after", "exposed", _bits_cell, optional=True),
            Column("Test accuracy", "test_accuracy", percent, optional=True),
            Column("Bits a token", "validation_bits", "{:.2f}".format, optional=True),
            Column("Character error rate", "character_error_rate", percent, optional=True),
            Column("Task above chance", "useful", _yes_or_no, optional=True),
            Column("Reading", "reading", READINGS.__getitem__),
        ),
        note="Planted models and their twins were disturbed in the same way: the same noise "
        f"(scores averaged over {memory.draws} draws), the same {memory.neighbours} examples like "
        "the canaries in the same order. "
        f"{_AGAINST_TWIN if memory.exposed is None else _AGAINST_REFERENCES} p-values are "
        f"corrected for the number of disturbances. {memory.method}.{_undisturbed_task(memory)}",
    )


def _undisturbed_task(memory: ResidualMemory) -> str:
    """How well the undisturbed models do their task; nothing where that is not stored."""
    if memory.validation_bits is not None:
        return f" Undisturbed, a validation token costs {memory.validation_bits:.2f} bits."
    if memory.character_error_rate is not None:
        rate = percent(memory.character_error_rate)
        return f" Undisturbed, the character error rate on validation utterances is {rate}."
    return ""


def _bits_cell(point: Point) -> Cell:
    interval = "" if point.low is None else f"{point.low:.2f} to {point.high:.2f}"
    return Cell(f"{point.value:.2f}", interval)


def _yes_or_no(useful: bool) -> str:
    return "yes" if useful else "no"


def _cell(curve: Curve, point: Point) -> Cell:
    return Cell(curve.show(point.value), curve.show_interval(point))


def _was(names: list[str]) -> str:
    return "was" if len(names) == 1 else "were"
