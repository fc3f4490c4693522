"""One small prediction study, run once; its results, changed at will; a page as text."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from remnant import ShadowPlan
from remnant.records import Record
from remnant.records.typed import result_from
from remnant.report.blocks import (
    Block,
    Facts,
    Figure,
    Headline,
    Missing,
    Prose,
    Scope,
    Section,
    Table,
    Terms,
    Tiles,
    walk,
)
from remnant.studies import Execution, run_study
from remnant.studies.prediction.recipe import (
    PlantedSettings,
    PredictionStudy,
    PredictSettings,
    TruthSettings,
)
from remnant.studies.prediction.result import PredictionResult
from remnant.studies.shared.settings import DataSettings, ModelSettings, TrainingSettings

SMALL = PredictionStudy(
    plan=ShadowPlan(models=8, steps=200, batch=16),
    data=DataSettings(name="digits", examples=200),
    canaries=PlantedSettings(mislabelled=30, odd=10),
    model=ModelSettings(name="mlp1", options={"width": 0.125}),
    training=TrainingSettings(options={"lr": 0.2}),
    predict=PredictSettings(
        directions=50, layers=("last", "2"), targets=3, moments=(1.0, 4.0, 8.0, 12.0, 16.0)
    ),
    truth=TruthSettings(threshold=1.0, thresholds=(0.0, 1.0), false_alarms=1.0),
)


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the small study's run."""
    folder = tmp_path_factory.mktemp("small") / "early"
    run_study(SMALL, folder, Execution(pool_block=8))
    return folder


@pytest.fixture
def stored(small_run: Path) -> dict[str, Any]:
    """The rows that the run stored, to be changed at will."""
    return copy.deepcopy(dict(Record.open(small_run).results()))


@pytest.fixture
def read(stored: dict[str, Any]) -> Callable[..., PredictionResult]:
    """The run's result with changes: entries of a part by the part's name; None leaves it out."""

    def make(**changes: dict[str, Any] | None) -> PredictionResult:
        parts = dict(stored)
        for name, change in changes.items():
            if change is None:
                del parts[name]
            else:
                parts[name] = change if "absent" in change else {**parts[name], **change}
        return result_from(parts, PredictionResult, where="run")

    return make


@pytest.fixture
def text_of() -> Callable[[Iterable[Block]], str]:
    """All that a page says, with plain spaces and signs."""

    def text(blocks: Iterable[Block]) -> str:
        lines = [line for block in walk(blocks) for line in _lines(block)]
        return "\n".join(lines).replace("\u202f", " ").replace("−", "-")

    return text


def _lines(block: Block) -> list[str]:
    match block:
        case Headline():
            return [block.title, block.sentence, block.claim, block.advice]
        case Tiles():
            return [f"{tile.name}: {tile.value} ({tile.remark})" for tile in block.tiles]
        case Prose():
            return [block.text]
        case Missing():
            return [f"{block.what}: not measured: {block.reason}."]
        case Table():
            return _table_lines(block)
        case Figure():
            return [block.chart.title, block.chart.description, block.caption]
        case Terms():
            return [f"{term}: {meaning}" for term, meaning in block.entries]
        case Scope():
            return [*block.tested, *block.not_tested]
        case Facts():
            return [f"{name} {value}" for _, rows in block.groups for name, value in rows]
        case Section():
            return [f"# {block.title}"]
    return []


def _table_lines(table: Table) -> list[str]:
    columns = table.shown()
    lines = [table.caption, " | ".join(column.name for column in columns)]
    for row in table.rows:
        cells = [column.cell(row) for column in columns]
        lines.append(" | ".join(f"{cell.main} {cell.small}".rstrip() for cell in cells))
    return [*lines, table.note]
