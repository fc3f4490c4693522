"""The result of a scan: what it holds with the secrets, and what without them."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from remnant.errors import RecordError
from remnant.records.typed import plain, result_from
from remnant.studies.found_secrets.result import (
    MeasuredSecret,
    ScanResult,
    UnmeasuredSecret,
    model_exposure,
)


def numbers_in(value) -> set[float]:
    """All numbers of a result, in the fields that only the page reads too."""
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return {number for inner in value for number in numbers_in(inner)}
    return {value} if isinstance(value, int | float) and not isinstance(value, bool) else set()


def test_the_class_that_writes_the_plain_data_reads_them(measured_scan):
    for reveal in (False, True):
        data = json.loads(json.dumps(plain(measured_scan.result(reveal=reveal)), allow_nan=False))
        assert data["remnant"] == "scan"
        assert plain(result_from(data, ScanResult, where="a file")) == data


def test_damaged_data_name_the_place_and_no_value(measured_scan):
    data = plain(measured_scan.result(reveal=True))
    data["secrets"][0]["times"] = data["secrets"][0]["secret"]
    with pytest.raises(RecordError, match=r"secrets\[0\]\.times is a str") as caught:
        result_from(data, ScanResult, where="a file")
    assert data["secrets"][0]["secret"] not in str(caught.value)


def test_nothing_of_a_secret_is_in_a_result_without_reveal(measured_scan):
    secrets = [secret.way.written for secret in measured_scan.scan.found]
    results = (measured_scan.result(reveal=reveal) for reveal in (False, True))
    redacted, revealed = (repr(dataclasses.astuple(result)) for result in results)
    assert not [secret for secret in secrets if secret in repr(measured_scan.result(reveal=True))]
    assert not [secret for secret in secrets if secret in redacted]
    assert all(secret in revealed for secret in secrets)


def test_no_exact_number_is_in_a_result_without_reveal(measured_scan):
    measured = [row for row in measured_scan.exposure.each if row.measured is not None]
    measured += [row for row in measured_scan.comparison.measured.each if row.measured is not None]
    exact = {
        number
        for row in measured
        for number in (row.measured.bits, row.measured.cost)
        if not (2 * number).is_integer()
    }
    spaces = {math.log2(row.space) for row in measured}
    assert len(exact) > 10
    assert exact <= numbers_in(measured_scan.result(reveal=True))
    assert not (exact - spaces) & numbers_in(measured_scan.result(reveal=False))


def test_costs_and_ranks_give_their_reason(measured_scan):
    result = measured_scan.result(reveal=False)
    for exposure in (result.exposure, result.twin.exposure):
        for row in exposure.measured:
            assert (row.cost, row.cost_reason) == (None, "only with --reveal")
            assert row.rank is None
            assert row.rank_reason in {"sampled", "only with --reveal"}
            assert row.bits == int(row.bits)
    assert all(row.cost is not None for row in measured_scan.result(reveal=True).exposure.measured)


def test_the_most_exposed_come_first_and_what_was_not_measured_has_a_reason(measured_scan):
    exposure = measured_scan.result(reveal=True).exposure
    bits = [row.bits for row in exposure.measured]
    assert bits == sorted(bits, reverse=True)
    unmeasured = [row for row in exposure.secrets if isinstance(row, UnmeasuredSecret)]
    assert [row.kind for row in unmeasured] == ["email"]
    assert exposure.reasons == {unmeasured[0].bits_reason: 1}
    assert len(exposure.measured) + 1 == len(exposure.secrets)


def test_a_number_too_long_for_json_is_none_with_a_reason_under_both_names(measured_scan):
    (row, *_) = (row for row in measured_scan.exposure.each if row.measured is not None)
    space = 94**3000
    ended = dataclasses.replace(row.measured, rank=space // 3, rank_low=1, low=1.0, ended=True)
    huge = dataclasses.replace(row, space=space, measured=ended)
    exposures = dataclasses.replace(measured_scan.exposure, each=(huge,))
    shown = {"context": 5, "extract": False, "model": "model"}
    (coarse,) = model_exposure(exposures, reveal=False, **shown).secrets
    assert isinstance(coarse, MeasuredSecret)
    data = plain(coarse)
    assert data["space"] is data["rank_most"] is None
    assert data["space_reason"] == data["rank_most_reason"] == "it has more than 4000 digits"
    assert data["rank_least"] == 1
    assert "rank_low" not in data
    (exact,) = model_exposure(exposures, reveal=True, **shown).secrets
    assert plain(exact)["rank_reason"] == "it has more than 4000 digits"
