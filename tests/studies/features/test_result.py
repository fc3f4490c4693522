"""Results of unique features are read back as they were written; damage is named by its place."""

from __future__ import annotations

import copy
import json
import math

import pytest

from remnant.errors import RecordError
from remnant.records.outcomes import gate_row
from remnant.records.typed import Absent, plain, read_result, result_from
from remnant.studies.features.audit_result import Audit, FeatureAuditResult, GatedAudit
from remnant.studies.features.result import FeaturesResult, Half, NoHalf
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.result_parts import ClassifierTask, Finding, Gate

SECRET = "QUXZAJVK"


def changed(rows, path, value):
    """The rows with one entry replaced, or removed where the value is Ellipsis."""
    rows = copy.deepcopy(rows)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place = rows
    for part in way:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return rows


def test_a_result_is_written_and_read_as_the_same_rows(studied):
    result = read_result(studied, FeaturesResult)
    rows = studied.results()
    assert set(rows) == {"features", "task", "verdict", "scope"}
    for name, row in rows.items():
        assert json.dumps(plain(getattr(result, name)), sort_keys=True) == json.dumps(
            row, sort_keys=True
        )
    assert isinstance(result.verdict, Gate)
    assert isinstance(result.task, ClassifierTask)
    assert len(result.scope.tested) == 3


def test_the_parts_have_their_types(studied):
    features = read_result(studied, FeaturesResult).features
    first = features.plain
    assert isinstance(first.beyond, Estimate)
    assert first.blind == 0
    assert [type(half) for _, half in first.by_influence.named] == [Half, Half]
    assert first.influence.pearson is not None
    assert (features.variants[1].influence, first.by_canary[0].high) == (None, True)
    means = [canary.mean for canary in first.canaries_by_mean]
    assert means == sorted(means, reverse=True)
    assert first.through.epoch == (0.0, 1.0, 3.0)


def test_a_gate_has_the_row_of_a_gate(studied):
    verdict = read_result(studied, FeaturesResult).verdict
    kept = {
        name: getattr(verdict, name)
        for name in ("outcome", "sentence", "claim", "limit", "detected")
    }
    assert plain(verdict) == gate_row(**kept)


def test_what_was_not_measured_is_a_reason(studied):
    rows = studied.results() | {"features": {"absent": "training did not end."}}
    del rows["scope"]
    result = result_from(rows, FeaturesResult, where="run")
    assert result.features == Absent("training did not end")
    assert result.scope == Absent("this run recorded none")


def test_a_half_without_canaries_is_a_reason(studied):
    rows = changed(
        studied.results(), "features.variants.0.by_influence.low", {"absent": "no canary."}
    )
    low = result_from(rows, FeaturesResult, where="run").features.plain.by_influence.low
    assert isinstance(low, NoHalf)
    assert low.reason == "no canary"
    assert plain(low) == {"absent": "no canary."}


def test_records_from_before_halves_and_blind_models_were_kept_are_read(studied):
    rows = studied.results()
    for variant in rows["features"]["variants"]:
        del variant["by_influence"], variant["blind"]
    features = result_from(rows, FeaturesResult, where="run").features
    assert [(one.by_influence, one.blind) for one in features.variants] == [(None, None)] * 2


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("patch", None, "is missing, no object"),
        ("patch.opacity", 2, "is not between 0 and 1"),
        ("patch.row", -1, "is an int, no whole number from 0"),
        ("images.n", SECRET, "is a str, no whole number"),
        ("significance", 5, "is not between 0 and 1"),
        ("convention", ..., "is missing, no text"),
        ("pictures.0.what", SECRET, "is not one of 'clean', 'patched'"),
        ("pictures.1.title", None, "is missing, no text"),
        ("variants", [], "is empty"),
        ("variants.0.name", None, "is missing, no text"),
        ("variants.0.members", 1.5, "is a float, no whole number"),
        ("variants.0.beyond", [0.1, 0.2], "has 2 entries, not value, low and high"),
        ("variants.0.beyond", None, "is missing, no list"),
        ("variants.0.beyond", [0.1, math.nan, 0.2], "[1] is a float, no finite number"),
        ("variants.0.test_accuracy", [0.9, 0.8, 1.1], "is not between 0 and 1"),
        ("variants.0.planted.share_positive", ..., "is missing, no list"),
        ("variants.0.unplanted.share_t_test", [1.1, 0, 1], "is not between 0 and 1"),
        ("variants.0.planted.largest", SECRET, "is a str, no finite number"),
        ("variants.0.by_influence.low", None, "is missing, no object"),
        ("variants.0.by_influence.low.n", ..., "is missing, no whole number"),
        ("variants.0.by_influence.high.share_significant", [2, 0, 1], "is not between 0 and 1"),
        ("variants.0.white_box.twins", None, "is missing, no list"),
        ("variants.0.by_canary", [], "is empty"),
        ("variants.0.by_canary.2.p", [0.1], "has 1 entries for 2 m"),
        ("variants.0.by_canary.2.p", [0.1, 7.0], "is not between 0 and 1"),
        ("variants.0.by_canary.2.m", [], "is empty"),
        ("variants.0.by_canary.0.high", 1, "is an int, neither true nor false"),
        ("variants.0.by_canary.0.influence", -1.0, "is negative"),
        ("variants.0.spread.seeds", -0.1, "is negative"),
        ("variants.0.spread.sign_changes", 3.0, "is not between 0 and 1"),
        ("variants.0.through.epoch", [0, 1, 1], "does not rise"),
        ("variants.0.through.planted", [[0.1, 0.0, 0.2]], "has 1 entries for 3 epoch"),
        ("variants.0.through.planted.1", [0.1, None, 0.2], "[1] is missing, no finite number"),
        ("variants.0.influence.changes.0.before", -1e-9, "is negative"),
        ("variants.0.activations.random", [0.5], "has 1 entries for 16 letter"),
        ("variants.0.activations.letter", [2.0] * 16, "is not between 0 and 1"),
        ("variants.0.activations.letter", [], "is empty"),
    ],
)
def test_a_damaged_row_is_named_by_its_place(studied, path, value, said):
    rows = changed(studied.results(), f"features.{path}", value)
    with pytest.raises(RecordError) as caught:
        result_from(rows, FeaturesResult, where="letters")
    message = str(caught.value)
    assert message.startswith("letters holds a malformed result 'features': features.")
    place = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split("."))
    assert f"features{place}{'' if said.startswith('[') else ' '}{said}" in message
    assert SECRET not in message


@pytest.mark.parametrize("name", ["finding", "gate"])
def test_an_audit_is_written_and_read_as_the_same_rows(audited, name):
    result = read_result(audited[name], FeatureAuditResult)
    rows = audited[name].results()
    assert set(rows) == {"audit", "verdict", "scope"}
    for part, row in rows.items():
        assert json.dumps(plain(getattr(result, part)), sort_keys=True) == json.dumps(
            row, sort_keys=True
        )
    kinds = {"finding": (Finding, Audit), "gate": (Gate, GatedAudit)}[name]
    assert (type(result.verdict), type(result.audit)) == kinds
    assert ("lag" in rows["audit"]) == (name == "gate")
    assert result.audit.never_planted.startswith("patches of the same pixels")


def test_the_scores_of_an_audit_are_those_of_the_model_then_of_the_twin(audited):
    audit = read_result(audited["finding"], FeatureAuditResult).audit
    names = ["black_box", "white_box", "gain"]
    assert [(row.side, row.name) for row in audit.scores] == [
        *(("model", name) for name in names),
        *(("twin", name) for name in names),
    ]
    alone = read_result(audited["gate"], FeatureAuditResult).audit
    assert [row.score for row in alone.scores] == [alone.main]


def test_an_audit_of_the_first_version_is_read(audited):
    rows = audited["gate"].results()
    for name in ("headline", "advice", "claim", "task", "rules", "lag"):
        del rows["audit"][name]
    audit = result_from(rows, FeatureAuditResult, where="run").audit
    assert (audit.headline, audit.task, audit.rules) == (None, None, None)
    assert audit.outcome == rows["audit"]["outcome"]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("model.black_box", None, "is missing, no object"),
        ("model.black_box.value", [1.0], "has 1 entries, not value, low and high"),
        ("model.black_box.p_value", 1.5, "is not between 0 and 1"),
        ("model.black_box.null_largest", math.inf, "is a float, no finite number"),
        ("images", SECRET, "is a str, no whole number"),
        ("against", SECRET, "is not one of 'pixels', 'words'"),
        ("beyond_twin", [1, 2], "has 2 entries, not value, low and high"),
        ("pictures.0.what", SECRET, "is not one of 'clean'"),
        ("p_values", [2.0], "is not between 0 and 1"),
    ],
)
def test_a_damaged_audit_is_named_by_its_place(audited, path, value, said):
    rows = changed(audited["finding"].results(), f"audit.{path}", value)
    with pytest.raises(RecordError) as caught:
        result_from(rows, FeatureAuditResult, where="run")
    place = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split("."))
    assert f"run holds a malformed result 'audit': audit{place} {said}" in str(caught.value)
    assert SECRET not in str(caught.value)
