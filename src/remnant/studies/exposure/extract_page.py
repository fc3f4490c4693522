"""The page of ``remnant extract``, and of its record."""

from __future__ import annotations

from collections.abc import Iterator

from remnant.report.blocks import Block, Code, Column, Table, prose, section
from remnant.report.numerals import bits_number, printable, whole_text
from remnant.studies.beside.exposure import of_extraction
from remnant.studies.command_result import record_page
from remnant.studies.exposure.extract_result import (
    ExtractCommand,
    ExtractResult,
    FoundSecret,
    QueriesToLeak,
    known_as,
)
from remnant.studies.exposure.formats import secret_text, space_text
from remnant.studies.shared.pages import RunFacts

TITLE = "The likeliest secrets of a model"
_LONGEST_COST = 1000  # bits


def extract_page(result: ExtractResult) -> Iterator[Block]:
    """The proof, the candidates, and how many queries leak the first of them."""
    proof = result.sentence[:1].upper() + result.sentence[1:]
    yield prose(
        Code(printable(result.template)),
        f": {space_text(result.space, result.space_bits)}",
        depth="show",
    )
    yield prose(f"{proof}.", tone="proven" if result.certified else "open", depth="show")
    if result.arithmetic:
        yield prose(result.arithmetic, depth="show")
    yield Table(
        caption="The likeliest secrets" if result.certified else "The likeliest secrets found",
        key="candidates",
        rows=tuple(enumerate(result.candidates, start=1)),
        columns=(
            Column("Place", lambda row: row[0]),
            Column("Cost in bits", lambda row: row[1].bits, bits_number),
            Column("Probability", lambda row: _probability(row[1]), _probability_text),
            Column("Secret", lambda row: row[1].secret or result.hidden, secret_text),
            Column("Known as", lambda row: known_as(row[1]), optional=True),
        ),
        depth="show",
    )
    yield Table(
        caption="Queries until the first comes out with a probability of 50 % and 99 %",
        key="queries",
        rows=result.queries,
        columns=(
            Column("Decoding", _decoding_text),
            Column("50 %", "queries_50", whole_text),
            Column("99 %", "queries_99", whole_text),
            Column("Remark", "reason", optional=True),
        ),
        depth="show",
    )


def _probability(candidate: FoundSecret) -> float | str:
    """The probability; a power of two where floating point ends."""
    if candidate.bits is None or candidate.bits < _LONGEST_COST:
        return candidate.probability
    return f"2^-{candidate.bits:.0f}"


def _probability_text(probability: float | str) -> str:
    return probability if isinstance(probability, str) else f"{probability:.2g}"


def _decoding_text(queries: QueriesToLeak) -> str:
    given = {"temperature": queries.temperature, "top-k": queries.top_k, "top-p": queries.top_p}
    return ", ".join(f"{name} {value:g}" for name, value in given.items() if value)


def page(result: ExtractCommand, run: RunFacts) -> Iterator[Block]:
    """Yield the page of a record."""
    yield from record_page(
        result,
        run,
        lambda measured: [section("The likeliest secrets", extract_page(measured))],
        heading="The likeliest secrets",
        what="The search",
        checks=of_extraction(result),
    )
