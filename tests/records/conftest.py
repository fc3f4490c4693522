from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from remnant.records import Record

HEAD: dict[str, Any] = {
    "question": "forgetting",
    "plan": {"plan": {"kind": "inject", "canaries": 4, "seed": 0}, "data": {"name": "digits"}},
    "plan_fingerprint": "3f9c2d",
    "data_fingerprint": "a71e00",
    "execution": {"device": "cpu", "backend": "stacked"},
    "provenance": {"python": "3.11.7", "seeds": {"plan": 0}},
}


@pytest.fixture
def head() -> dict[str, Any]:
    return dict(HEAD)


@pytest.fixture
def create(tmp_path: Path) -> Callable[..., Record]:
    def make(name: str = "run", **changes: Any) -> Record:
        return Record.create(tmp_path / name, **(HEAD | changes))

    return make


@pytest.fixture
def unsealed() -> Callable[[Path], None]:
    """Makes a record one of version 1, which kept no digests."""

    def make(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "record.sqlite")) as connection, connection:
            connection.execute("DROP TABLE digests")
            connection.execute("PRAGMA user_version = 1")

    return make
