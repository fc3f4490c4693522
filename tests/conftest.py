"""What holds for all tests: none depends on how busy the machine is; scripts share imports."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# Hypothesis times each example; on a loaded machine a sound one takes longer than any deadline.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.fixture(scope="session")
def scripts():
    """Run scripts in processes of their own: ``run(script, *arguments, folder=…)``."""
    from .script_processes import ScriptProcesses

    processes = ScriptProcesses()
    yield processes
    processes.close()
