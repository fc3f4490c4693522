"""A clock for estimates, so that what they say is known beforehand."""

from __future__ import annotations

import pytest

from remnant.studies.machine import StepClock


@pytest.fixture
def a_minute_a_step(monkeypatch):
    """Let every step of an estimate take a minute, by the clock that it looks at."""
    monkeypatch.setattr(
        StepClock, "__call__", lambda self, _: self.times.append(60.0 * len(self.times))
    )
