"""The result of a question in the registry: what its page shows of it, wherever it is at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remnant.errors import InvalidInput, RecordError
from remnant.records import Record
from remnant.records.typed import Result, read_result
from remnant.report.blocks import Block, Figure, Headline, Tiles, walk
from remnant.report.charts.shapes import Chart, Strip
from remnant.report.gauge import reading_text
from remnant.studies.shared.pages import NO_RUN, RunFacts, read_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURES = (".svg", ".pdf", ".png")


class QuestionResult(Result):
    """A result that has an entry in ``studies.registry``, and through it a page.

    Its headline and charts are those of that page. What a page takes from the record itself, such
    as pictures, is there where the result was read from one.

    Attributes:
        read_from: Folder of the record that it was read from; not set where there is none.
        question: Of that record; without it, the first one with results of this class. Neither is a
            part: they are not stored and not compared.
    """

    __slots__ = ("question", "read_from")
    question: str
    read_from: Path

    def _repr_html_(self) -> str:
        """The verdict and the main chart of the page, for notebooks."""
        from remnant.report.html import fragment

        blocks = list(self._blocks())
        verdict = [block for block in blocks if isinstance(block, Headline | Tiles)]
        return fragment([*verdict, *_charts(blocks)[:1]])

    def plot(self, ax: Axes | None = None, *, chart: str | None = None) -> Axes:
        """Draw a chart of the page with matplotlib.

        Args:
            ax: Axes to draw on; None makes a figure.
            chart: Key of another chart than the main one.

        Returns:
            The axes.

        Raises:
            InvalidInput: There is no such chart; all are named.
            MissingExtra: matplotlib is not installed.
        """
        from remnant.report.charts import plotted

        drawn = self._chart(chart)
        axes = plotted.new_figure(shown=True)[1] if ax is None else ax
        plotted.plot(drawn, axes)
        return axes

    def save_figure(self, path: str | Path, *, chart: str | None = None) -> Path:
        """Write a chart of the page as a picture; the end of its name decides between kinds.

        Args:
            path: A name that ends in ``.svg``, ``.pdf`` or ``.png``.
            chart: Key of another chart than the main one.

        Returns:
            The path.

        Raises:
            InvalidInput: There is no such chart, the name has another end, or the file cannot be
                written.
            MissingExtra: matplotlib is not installed.
        """
        from remnant.report.charts import plotted

        path = Path(path)
        if path.suffix.lower() not in PICTURES:
            raise InvalidInput(f"path={str(path)!r} does not end in {' or '.join(PICTURES)}.")
        drawn = self._chart(chart)
        figure, axes = plotted.new_figure(shown=False)
        plotted.plot(drawn, axes)
        try:
            figure.savefig(path, format=path.suffix[1:].lower())
        except OSError as fault:
            raise InvalidInput(
                f"path={str(path)!r} cannot be written: {fault.strerror}."
            ) from fault
        return path

    def _chart(self, key: str | None) -> Chart | Strip:
        charts = {figure.key: figure.chart for figure in _charts(self._blocks())}
        if key is None and charts:
            return next(iter(charts.values()))
        if key not in charts:
            asked = "" if key is None else f" chart={key!r}"
            known = f"Its charts are {', '.join(charts)}." if charts else "It has none."
            raise InvalidInput(f"This {type(self).__name__} has no{asked or ' chart'}.", hint=known)
        return charts[key]

    def _outcome(self) -> str:
        blocks = self._page(NO_RUN)  # a headline takes nothing from the record
        headline = next((block for block in blocks if isinstance(block, Headline)), None)
        if headline is None or headline.outcome is None:
            return super()._outcome()
        reading = headline.reading
        return f"{headline.outcome}: {headline.title if reading is None else reading_text(reading)}"

    def _is_of(self, made: Any) -> bool:
        """Whether this is a result of the class, or generic class, that a question names."""
        return made is type(self)

    def _blocks(self) -> Iterator[Block]:
        """Yield the page's blocks, up to the first that takes an array of a record not at hand."""
        folder: Path | None = getattr(self, "read_from", None)
        if folder is not None:
            yield from self._page(read_run(Record.open(folder)))
            return
        try:
            yield from self._page(NO_RUN)
        except RecordError:
            return

    def _page(self, run: RunFacts) -> Iterator[Block]:
        from remnant.studies.registry import QUESTIONS, load

        own = (name for name in QUESTIONS if self._is_of(load(QUESTIONS[name].result)))
        question: str = getattr(self, "question", None) or next(own, "")
        return iter(load(QUESTIONS[question].page)(self, run) if question else ())


def load(folder: str | Path) -> QuestionResult:
    """Read the result of a run, a command or an audit from the folder of its record.

    The class depends on the question; each is a ``Result`` with a page.

    Args:
        folder: With ``record.sqlite``.

    Raises:
        RecordError: There is no record, it is damaged, or its question is not one of ours.
    """
    from remnant.studies.registry import load as named
    from remnant.studies.registry import question_of

    record = Record.open(folder)
    result: QuestionResult = read_result(record, named(question_of(record).result))
    # No parts of it, so that the class is frozen for everybody else.
    object.__setattr__(result, "question", record.question)
    object.__setattr__(result, "read_from", record.folder.resolve())
    return result


def _charts(blocks: Iterable[Block]) -> list[Figure]:
    """The charts of a page, those with an axis of values first."""
    figures = [block for block in walk(blocks) if isinstance(block, Figure)]
    return sorted(figures, key=lambda figure: isinstance(figure.chart, Strip))
