"""The result of a question in the registry: what its page shows of it, wherever it is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from remnant.errors import RecordError
from remnant.records import Record
from remnant.records.typed import Result
from remnant.report.blocks import Block, Headline
from remnant.report.gauge import reading_text
from remnant.studies.shared.pages import NO_RUN, read_run


class QuestionResult(Result):
    """A result that has an entry in ``studies.registry``, and through it a page.

    Its headline and charts are those of that page. What a page takes from the record itself, such
    as pictures, is there where the result was read from one.

    Attributes:
        read_from: Folder of the record that it was read from; not set where there is none. It is no
            part: it is not stored and not compared.
    """

    __slots__ = ("read_from",)
    read_from: Path

    def _outcome(self) -> str:
        headline = next((block for block in self._blocks() if isinstance(block, Headline)), None)
        if headline is None or headline.outcome is None:
            return super()._outcome()
        reading = headline.reading
        return f"{headline.outcome}: {headline.title if reading is None else reading_text(reading)}"

    def _blocks(self) -> Iterator[Block]:
        """Yield the page's blocks, up to the first that takes an array of a record not at hand."""
        from remnant.studies.registry import QUESTIONS, load

        folder: Path | None = getattr(self, "read_from", None)
        if folder is None:  # the first question that has results of this class
            own = (name for name in QUESTIONS if load(QUESTIONS[name].result) is type(self))
            question, run = next(own), NO_RUN
        else:
            record = Record.open(folder)
            question, run = record.question, read_run(record)
        try:
            yield from load(QUESTIONS[question].page)(self, run)
        except RecordError:
            if folder is not None:
                raise
