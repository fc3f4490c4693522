"""What an exposure study records of all its trials together."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.canaries import Template, make_canary_set
from remnant.measures.statistics.trial_mean import trial_mean
from remnant.search import Extraction
from remnant.studies.exposure.audit import ExposureAudit
from remnant.studies.exposure.measure import (
    TrialExposure,
    TrialSearch,
    exposure_by_repeats,
    exposures,
    extractions,
    reference_costs,
)
from remnant.studies.exposure.result import CanaryExposure, Exposures

TEMPLATE = Template("pin {digits:4}")
PLAIN = {"uses": 0, "rank": None, "saturated": False, "skew_normal_bits": None, "twin_bits": None}
SECRET = PLAIN | {"name": "secret 1", "trial": 0, "repeats": 0}
EXACT = CanaryExposure(**(SECRET | {"rank": 1}), bits=13.3, low=13.3, high=13.3, cost=2.0)
SAMPLED = CanaryExposure(**SECRET, bits=2.0, low=1.5, high=2.5, cost=9.0)
SATURATED = CanaryExposure(
    **(SECRET | {"saturated": True}), bits=9.97, low=8.09, high=13.3, cost=3.0
)
EXPECTED = "the walk was expected to take about {} nodes of 100 allowed"


def trial(seed, each, *, method="sampled", nodes=1000):
    drawn = make_canary_set(TEMPLATE, repeats=[1, 4], controls=len(each) - 2, seed=seed)
    because = "sampled, because " if method == "sampled" else "exact: "
    audit = ExposureAudit(
        method=method,
        reason=because + EXPECTED.format(nodes),
        each=tuple(each),
        reference_costs=np.linspace(4.0, 20.0, 1000),
        extrapolated=None,
        calibrated=False,
        space=TEMPLATE.space,
        nodes=nodes,
        tolerance=1e-6 if method == "exact" else None,
        complete=method == "exact",
    )
    found = Extraction(
        candidates=[(drawn.canaries[1].secret, 2.0)],
        certified=True,
        nodes=10,
        bound=2.0,
        tolerance=1e-6,
        space=TEMPLATE.space,
    )
    searches = {f"planted, trial {seed + 1}": TrialSearch.of(found, drawn)}
    return TrialExposure(drawn, np.array([1, 4]), audit, None, searches)


@pytest.mark.parametrize(
    ("trials", "method", "reason"),
    [
        (
            [trial(0, [SAMPLED, EXACT, SAMPLED]), trial(1, [EXACT, EXACT, SAMPLED])],
            "sampled",
            f"sampled, because {EXPECTED.format(1000)}; 3 of 6 canaries and controls were ranked "
            "exactly all the same",
        ),
        (
            [trial(0, [SAMPLED] * 3), trial(1, [SAMPLED, EXACT, SAMPLED], nodes=500)],
            "sampled",
            f"sampled, because {EXPECTED.format(1000)}, in trial 1; 1 of 6 canaries and controls "
            "was ranked exactly all the same",
        ),
        (
            [trial(0, [EXACT] * 3, method="exact", nodes=9), trial(1, [SAMPLED] * 3)],
            "sampled",
            f"sampled, because {EXPECTED.format(1000)}, in trial 2; 3 of 6 canaries and controls "
            "were ranked exactly all the same",
        ),
        (
            [trial(0, [EXACT] * 3, method="exact", nodes=9)],
            "exact",
            f"exact: {EXPECTED.format(9)}",
        ),
        ([trial(0, [SAMPLED] * 3)], "sampled", f"sampled, because {EXPECTED.format(1000)}"),
    ],
)
def test_the_method_is_told_of_all_trials(trials, method, reason):
    exposure = exposures(trials)
    assert (exposure.method, exposure.reason) == (method, reason)


def test_a_saturated_canary_is_marked_with_what_it_is_at_least():
    measured = trial(0, [SATURATED, EXACT, SAMPLED])
    first, second = reference_costs(measured, exposures([measured])).marked
    assert (first.at_least, second.at_least) == (8.09, None)


def test_a_search_says_how_many_secrets_it_was_asked_for():
    trials = [trial(0, [EXACT] * 2), trial(1, [EXACT] * 2)]
    searches = extractions(trials, top=3).searches
    assert [search.asked for search in searches] == [3, 3]
    assert [search.candidates[0].canary for search in searches] == ["canary 2", "canary 4"]


def row(repeats, bits, low=None, high=None, *, saturated=False, trial=0):
    low, high = bits if low is None else low, bits if high is None else high
    return CanaryExposure(
        name="canary",
        trial=trial,
        repeats=repeats,
        uses=repeats,
        bits=bits,
        low=low,
        high=high,
        rank=None,
        cost=1.0,
        saturated=saturated,
        skew_normal_bits=None,
        twin_bits=None,
    )


def measured(canaries, controls=()):
    return Exposures(
        template="{digits:6}",
        space=10**6,
        ceiling_bits=19.9,
        method="sampled",
        reason="",
        tolerance=None,
        null_mean_bits=1.44,
        canaries=tuple(canaries),
        controls=tuple(controls),
    )


def test_means_of_saturated_exposures_are_lower_bounds():
    rows = [row(4, 9.0, 7.0, 20.0, saturated=True), row(4, 11.0), row(1, 2.0, 1.5, 3.0)]
    repeats = exposure_by_repeats(measured(rows))
    assert repeats.mean_bits == (2.0, 10.0)
    assert repeats.median_bits == (2.0, 9.0), "of 7 and 11: a saturated one enters with its low end"
    assert repeats.levels[1].median.at_least
    assert repeats.mean_at_least == (None, 9.0)


def test_few_shared_references_give_no_p_value():
    exposure = measured([row(1, 3.0) for _ in range(30)])
    assert exposure_by_repeats(exposure, shared_references=100).pooled_pvalue == (None,)
    assert exposure_by_repeats(exposure, shared_references=1000).pooled_pvalue[0] < 0.05


def test_intervals_are_over_trials_and_absent_where_references_were_saturated():
    rows = [row(1, bits, trial=at // 2) for at, bits in enumerate((2.0, 4.0, 5.0, 9.0))]
    rows += [row(4, 9.0, trial=trial, saturated=trial == 1) for trial in range(2)]
    repeats = exposure_by_repeats(measured(rows, [row(0, 1.0)]))
    expected = trial_mean([3.0, 7.0], most=19.9)
    assert repeats.mean_bits == (1.0, 5.0, 9.0)
    assert repeats.mean_low == (None, expected.low, None)
    assert repeats.mean_high == (None, expected.high, None)
