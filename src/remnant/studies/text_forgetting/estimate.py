"""How long a study of sequences takes, in text or speech: a few steps of each part are timed."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from remnant.plans import InjectPlan, PoisonPlan
from remnant.population import Fit, Population
from remnant.studies.jobs.estimating import planned_job
from remnant.studies.jobs.execution import Job
from remnant.studies.shared.machine import StepClock
from remnant.studies.text_forgetting.disturbed_sequences import Search, search_seconds

Plan = InjectPlan | PoisonPlan
_STEPS = 6  # that are timed before lag 0, and again after it


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TimedPart:
    """A part of a study whose steps can be timed.

    Attributes:
        plan: Of the whole part.
        short: Of the steps that are timed; see ``shortened``.
        fit: Trains by the short plan; calls what it is given after each step.
        ask: Asks the members once, as is done at every lag.
        search: For residual memory; None where there is none.
        jobs: The twins, then the reference models.
        lags: How often the members are asked.
        held: Bytes of the examples.
        beside: Seconds of work beside the training.
    """

    plan: Plan
    short: Plan
    fit: Callable[[Callable[[int], None]], tuple[Fit, Population]]
    ask: Callable[[Population], Any]
    search: Search | None
    jobs: Iterable[Job]
    lags: int
    held: int
    beside: float = 0.0


def shortened(plan: Plan, *, trials: int | None = None) -> Plan:
    """Return a plan of a few steps with one canary: how many there are does not change a step.

    Args:
        plan: The whole one.
        trials: To time; all, if not given.
    """
    once: dict[str, Any] = {"canaries": 1, "repeats": 1, "copies": None, "step": _STEPS}
    return dataclasses.replace(
        plan, **once, watch_steps=_STEPS, trials=plan.trials if trials is None else trials
    )


def _asked(plan: Plan) -> float:
    """Return how often a trial's members and then other trials' unplanted ones are asked.

    In units of the first.
    """
    arms = len(plan.arms)
    return 1.0 + (plan.trials - 1) * (arms - 1) / arms


def sequence_estimate(parts: Iterable[TimedPart], *, device: str) -> dict[str, Any]:
    """Return the time and memory of a whole study; trials that were not timed take as long."""
    members, steps, memory, jobs = 0, 0, 0.0, []
    for part in parts:
        plan, clock = part.plan, StepClock(device)
        fit, population = part.fit(clock)
        gaps = [after - before for before, after in itertools.pairwise(clock.times)]
        first, later = sorted(gaps[:4])[1], sorted(gaps[-5:])[2]
        seconds = first * plan.checkpoint_step + later * (plan.steps - plan.checkpoint_step)
        clock(0)
        part.ask(population)
        clock(0)
        seconds += (clock.times[-1] - clock.times[-2]) * part.lags * _asked(plan)
        if part.search is not None:
            asked = _asked(plan)
            seconds += search_seconds(
                part.search, population, step_seconds=later, asked=asked, clock=clock
            )
        alike = plan.trials / part.short.trials
        members, steps = members + plan.members, steps + plan.steps
        memory = max(memory, fit.memory + part.held)
        twins, *references = part.jobs
        jobs.append(planned_job(twins, seconds=seconds * alike + part.beside))
        for job in references:
            members, steps = members + job.members, steps + job.steps
            each = later / part.short.members
            jobs.append(planned_job(job, seconds=each * job.steps * job.members))
    return {
        "members": members,
        "steps": steps,
        "memory_mib": round(memory / 2**20, 1),
        "minutes": round(sum(job["minutes"] for job in jobs), 2),
        "groups": jobs,
    }
