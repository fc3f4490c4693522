from __future__ import annotations

from collections.abc import Callable
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
