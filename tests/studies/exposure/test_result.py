"""An exposure result is read as it was written; what is damaged is named, and no value is shown."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from remnant.errors import RecordError
from remnant.records import Record
from remnant.records.outcomes import RULES
from remnant.records.typed import (
    Absent,
    load,
    plain,
    read_result,
    result_from,
    stored_fields,
)
from remnant.studies.exposure.result import (
    CanaryExposure,
    ExposureByRepeats,
    ExposureResult,
    Level,
    most_exposed,
)

PARTS = ("verdict", "exposure", "repeats", "costs", "extraction", "task", "scope")


def test_every_part_is_read_as_it_was_written(folder):
    record = Record.open(folder)
    result = read_result(record, ExposureResult)
    rows = record.results()
    assert set(rows) == set(PARTS)
    for name in PARTS:
        part = getattr(result, name)
        if isinstance(part, Absent):
            assert rows[name] == {"absent": part.reason}
        else:
            assert json.dumps(plain(part)) == json.dumps(rows[name])


def test_a_study_is_read_whole(changed):
    result = changed()
    assert (result.verdict.limit, result.verdict.outcome, result.verdict.judged) == (9.0, "PASS", 1)
    assert (result.exposure.space, result.exposure.method) == (1000, "exact")
    assert [level.repeats for level in result.repeats.levels] == [0, 1, 40]
    assert sum(cost_bin.count for cost_bin in result.costs.bins) == 300
    assert [search.of_twin for search in result.extraction.searches] == [False, True]
    assert result.extraction.extracted == {"canary 2"}
    assert (result.extraction.guesses, result.extraction.proven) == (3, 1)
    assert result.task.token == "character"


def test_means_are_those_of_the_rows(changed):
    result = changed()
    exposure, controls = result.exposure, result.repeats.controls
    assert exposure.controls_mean.value == pytest.approx(controls.mean_bits)
    twins = [canary.twin_bits for canary in exposure.canaries]
    assert exposure.twin_mean == pytest.approx(sum(twins) / 2)
    assert [row.repeats for row in exposure.ranked] == [40, 1, 0, 0, 0, 0]
    assert exposure.highest == exposure.canaries[1]
    assert exposure.least_planted(1) == exposure.canaries[:1]


def canary(name="canary 1", **changes) -> CanaryExposure:
    fields = {
        "name": name, "trial": 0, "repeats": 4, "uses": 12, "bits": 9.97, "low": 8.09,
        "high": 19.93, "rank": None, "cost": 3.0, "saturated": True, "skew_normal_bits": None,
        "twin_bits": None,
    }  # fmt: skip
    return CanaryExposure(**(fields | changes))


def test_the_most_exposed_is_the_one_planted_least_and_bounds_count_as_such():
    exact = canary("canary 2", bits=9.0, low=9.0, high=9.0, saturated=False)
    assert most_exposed([canary(), exact]) == exact
    often = canary("canary 3", repeats=16)
    assert most_exposed([often, canary()]).name == "canary 1"
    assert most_exposed([]) is None


def test_a_saturated_exposure_is_a_lower_bound():
    assert (canary().estimate.value, canary().estimate.at_least) == (8.09, True)
    exact = canary(saturated=False)
    assert (exact.estimate.value, exact.estimate.at_least) == (9.97, False)


def levels(p_value, control_pvalue=None) -> ExposureByRepeats:
    return ExposureByRepeats(
        repeats=(0, 4),
        n=(16, 3),
        mean_bits=(3.0, 9.0),
        twin_mean_bits=(None, None),
        pooled_pvalue=(p_value, 1e-9),
        control_pvalue=(None, control_pvalue),
    )


@pytest.mark.parametrize(
    ("p_value", "exposed"),
    [(1e-5, True), (0.01, True), (0.011, False), (0.5, False), (None, False)],
)
def test_controls_beyond_chance_are_exposed(p_value, exposed):
    assert levels(p_value).controls_are_exposed is exposed


@pytest.mark.parametrize(
    ("p_value", "control_pvalue", "against_controls", "p_shown"),
    [(0.5, 0.02, False, 1e-9), (1e-5, 0.02, True, 0.02), (1e-5, None, False, 1e-9)],
)
def test_canaries_are_compared_with_controls_that_are_exposed(
    p_value, control_pvalue, against_controls, p_shown
):
    repeats = levels(p_value, control_pvalue)
    controls, canaries = repeats.levels
    assert repeats.against_controls is against_controls
    assert (repeats.p_value(controls), repeats.p_value(canaries)) == (p_value, p_shown)


def test_a_record_of_the_first_version_lacks_columns():
    """Intervals, lower bounds and the test against controls came later."""
    row = {
        "repeats": [0, 1],
        "n": [2, 1],
        "mean_bits": [1.0, 2.0],
        "twin_mean_bits": [None, None],
        "pooled_pvalue": [0.5, None],
    }
    repeats = result_from({"repeats": row}, ExposureResult, where="x").repeats
    assert repeats.levels[0] == Level(repeats=0, n=2, mean_bits=1.0, pooled_pvalue=0.5)
    assert plain(repeats) == row


def test_the_fields_that_came_later_may_be_missing(changed):
    result = changed()
    parts = {name: plain(getattr(result, name)) for name in PARTS}
    del parts["exposure"]["given"], parts["exposure"]["nodes"], parts["costs"]["marked"][0]["bits"]
    parts["costs"]["marked"] = [{"name": "c", "repeats": 1, "cost": None, "bits": 0.5}]
    for search in parts["extraction"]["searches"]:
        del search["asked"]
    parts["verdict"] = {"outcome": "FAIL", "sentence": "Too much.", "limit": 9, "rules": RULES}
    older = result_from(parts, ExposureResult, where="x")
    assert (older.exposure.given, older.exposure.nodes, older.verdict.judged) == (None, None, None)
    assert (older.costs.marked[0].at_least, older.costs.unmarked) == (None, ("c",))
    assert older.extraction.guesses is None


def test_a_space_beyond_any_float_is_kept_exactly(changed):
    space = 267_735**70 + 1
    assert changed(exposure={"space": space}).exposure.space == space


def test_what_was_not_measured_is_a_reason():
    result = result_from({"costs": {"absent": "no time."}}, ExposureResult, where="x")
    assert result.exposure == result.extraction == Absent("this run recorded none")
    assert result.costs == Absent("no time")


@pytest.mark.parametrize(
    ("name", "entries", "reason"),
    [
        ("exposure", {"canaries": [], "controls": []}, "it holds no canary"),
        ("repeats", {"repeats": [], "n": []}, "it holds no canary"),
        ("costs", {"counts": [0], "edges": [0.0, 1.0]}, "no reference with a finite cost"),
        ("extraction", {"searches": []}, "no search was made"),
    ],
)
def test_an_empty_part_is_absent(changed, name, entries, reason):
    part = getattr(changed(**{name: entries}), name)
    assert isinstance(part, Absent)
    assert part.reason.startswith(reason)


@pytest.mark.parametrize(
    ("name", "entries", "words"),
    [
        ("exposure", {"space": 1.5}, "exposure.space is a float, no whole number"),
        ("exposure", {"method": "guessed"}, "exposure.method is not one of 'exact', 'sampled'"),
        ("exposure", {"ceiling_bits": math.nan}, "exposure.ceiling_bits is a float, no finite"),
        ("exposure", {"canaries": [{"name": "c"}]}, r"canaries\[0\].bits is missing"),
        ("exposure", {"controls": None}, "exposure.controls is missing, no list"),
        ("exposure", {"given": "all"}, "exposure.given is not one of 'source', 'beginning'"),
        ("repeats", {"n": [1]}, "repeats.n has 1 entries for 3 repeats"),
        ("repeats", {"mean_low": [1.0]}, "repeats.mean_low has 1 entries for 3 repeats"),
        ("repeats", {"repeats": [0, 4, 1]}, "repeats.repeats do not rise"),
        ("costs", {"counts": [1, 2]}, "costs.edges has 41 entries for 2 counts"),
        ("costs", {"edges": [1.0, 0.0], "counts": [3]}, "costs.edges do not rise"),
        ("costs", {"skew_normal": {"shape": 1, "location": 0}}, "skew_normal.scale is missing"),
        (
            "costs",
            {"skew_normal": {"shape": 1, "location": 0, "scale": 0}},
            "skew_normal.scale is not above 0",
        ),
        ("extraction", {"searches": [{"member": "m"}]}, r"searches\[0\].certified is missing"),
        ("verdict", {"outcome": "MAYBE", "rules": RULES}, "verdict.outcome is not one of"),
        ("verdict", {"judged": -1}, "verdict.judged is an int, no whole number from 0"),
        ("task", {"validation_tokens": None}, "task.validation_tokens is missing"),
    ],
)
def test_a_malformed_part_is_named(changed, name, entries, words):
    with pytest.raises(RecordError, match=f"malformed result '{name}': .*{words}"):
        changed(**{name: entries})


def test_all_faults_are_listed_and_no_value_is_shown(changed):
    candidates = [{"bits": "281265017", "canary": 281265017}]
    search = {"member": "m", "certified": "281265017", "nodes": 1, "space": 1}
    with pytest.raises(RecordError) as caught:
        changed(extraction={"searches": [search | {"candidates": candidates}]})
    for words in ("certified is a str", "bits is a str", "canary is an int"):
        assert words in str(caught.value)
    assert "281265017" not in str(caught.value)


def test_an_end_or_a_cost_without_a_number_is_none_in_the_record_and_infinite_in_memory():
    row = canary(low=-math.inf, high=math.inf, cost=math.inf, rank_low=3, ended=True)
    stored = plain(row)
    assert json.loads(json.dumps(stored, allow_nan=False)) == stored
    assert (stored["low"], stored["high"], stored["cost"]) == (None, None, None)
    assert dict(stored_fields(row)) == stored, "data frames have the same"
    assert not {"rank_low", "ended", "tied"} & stored.keys()
    faults: list[str] = []
    assert load(CanaryExposure, stored, "row", faults) == replace(row, rank_low=None, ended=False)
    assert faults == []
    assert (row.estimate.low, row.estimate.high) == (None, None)


def test_the_older_name_of_the_class_warns():
    with pytest.warns(DeprecationWarning, match="CanaryExposure"):
        from remnant.studies import SecretExposure
    assert SecretExposure is CanaryExposure
