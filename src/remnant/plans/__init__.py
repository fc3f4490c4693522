"""Who sees what, when: plans as frozen data, and the schedules that follow from them."""

from remnant.plans.feature import FeaturePlan
from remnant.plans.inject import InjectPlan
from remnant.plans.insert import InsertEpochsPlan, InsertPlan
from remnant.plans.poison import PoisonPlan
from remnant.plans.schedule import ArraySchedule, Ledger, Schedule, Trunk
from remnant.plans.shadow import ShadowPlan
from remnant.plans.staggered import StaggeredPlan

__all__ = [
    "ArraySchedule",
    "FeaturePlan",
    "InjectPlan",
    "InsertEpochsPlan",
    "InsertPlan",
    "Ledger",
    "PoisonPlan",
    "Schedule",
    "ShadowPlan",
    "StaggeredPlan",
    "Trunk",
]
