"""What holds for all tests: none depends on how busy the machine is."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Hypothesis times each example; on a loaded machine a sound one takes longer than any deadline.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
