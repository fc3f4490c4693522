"""What an exposure study records of all its trials together."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.canaries import Template, make_canary_set
from remnant.search import Extraction
from remnant.studies.exposure_audit import ExposureAudit, SecretExposure
from remnant.studies.exposure_results import (
    TrialExposure,
    costs_fields,
    exposure_fields,
    extraction_fields,
)

TEMPLATE = Template("pin {digits:4}")
EXACT = SecretExposure(13.3, 13.3, 13.3, 2.0, 1, 1, False, None)
SAMPLED = SecretExposure(2.0, 1.5, 2.5, 9.0, None, None, False, None)
SATURATED = SecretExposure(9.97, 8.09, 13.3, 3.0, None, None, True, None)
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
    searches = {f"planted, trial {seed + 1}": found}
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
    found = exposure_fields(trials)
    assert (found["method"], found["reason"]) == (method, reason)


def test_a_saturated_canary_is_marked_with_what_it_is_at_least():
    one = trial(0, [SATURATED, EXACT, SAMPLED])
    first, second = costs_fields(one, exposure_fields([one]))["marked"]
    assert (first["at_least"], second["at_least"]) == (8.09, None)


def test_a_search_says_how_many_secrets_it_was_asked_for():
    trials = [trial(0, [EXACT] * 2), trial(1, [EXACT] * 2)]
    searches = extraction_fields(trials, top=3)["searches"]
    assert [one["asked"] for one in searches] == [3, 3]
    assert [one["candidates"][0]["canary"] for one in searches] == ["canary 2", "canary 4"]
