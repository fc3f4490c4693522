"""What a differentially private training spends, by the accountant of a library."""

from remnant.privacy.accounting import (
    PrivacySpent,
    epsilon_spent,
    group_epsilon,
    noise_for,
    privacy_spent,
)
from remnant.privacy.schedules import NotAccounted, spent_by

__all__ = [
    "NotAccounted",
    "PrivacySpent",
    "epsilon_spent",
    "group_epsilon",
    "noise_for",
    "privacy_spent",
    "spent_by",
]
