"""The result of a study of training choices: read back unchanged, damage named by its place."""

from __future__ import annotations

import copy
import dataclasses
import json
import math

import pytest

from remnant.errors import InvalidInput, RecordError
from remnant.records import Record
from remnant.records.outcomes import FINDINGS, current_results
from remnant.records.typed import Absent, plain, read_result, result_from
from remnant.studies.choices.result import ExposureTrainingResult, Interval


@pytest.fixture(scope="module")
def rows(chosen):
    return Record.open(chosen).results()


@pytest.fixture(scope="module")
def result(chosen):
    return read_result(Record.open(chosen), ExposureTrainingResult)


def read(rows, change):
    """Read the result again after a change of its rows."""
    made = copy.deepcopy(rows)
    change(made)
    return result_from(made, ExposureTrainingResult, where="here")


def test_every_part_is_the_row_that_is_stored(rows, result):
    assert set(rows) == {"verdict", "training", "task", "scope"}
    for name, row in rows.items():
        part = plain(getattr(result, name))
        assert json.dumps(part) == json.dumps(row)


def test_rows_have_what_the_stored_columns_have(rows, result):
    training, stored = result.training, rows["training"]
    assert [v.label for v in training.variants] == [v["label"] for v in stored["variants"]]
    first, last = training.variants[0], training.variants[-1]
    assert first.mean_exposure == Interval(*stored["variants"][0]["exposure"])
    assert first.cell == {"batch": 8, "units": 8}
    assert first.planted == 4
    assert last.planted == 30
    assert last.twin is not None
    assert first.twin is None
    assert training.by_insertions
    through = stored["variants"][0]["through"]
    assert [look.step for look in first.through.looks] == through["step"]
    assert [look.exposure.value for look in first.through.looks] == [
        row[0] for row in through["exposure"]
    ]
    assert first.through.epoch_steps == pytest.approx(through["step"][-1] / 2, rel=0.02)
    assert training.trained == stored["models"] == 15
    heads, grid = training.grid()
    assert heads == ("8", "16")
    assert [(row.name, [cell.label for cell in row.cells]) for row in grid] == [
        ("8", ["batch 8, units 8", "batch 8, units 16"]),
        ("16", ["batch 16, units 8", "batch 16, units 16"]),
    ]
    exposures = [variant.exposure[0] for variant in training.ranked]
    assert exposures == sorted(exposures)
    assert training.highest_controls == max(v["controls"][0] for v in stored["variants"])


def test_searches_and_estimates_are_row_by_row(result):
    variant = result.training.variants[0]
    assert [bits for bits, _, _ in variant.searches] == list(variant.each)
    assert [nodes for _, _, nodes in variant.searches] == list(variant.nodes_each)
    assert variant.estimates == tuple(zip(variant.each, variant.skew_normal, strict=True))
    mixed = dataclasses.replace(variant, exact_each=(True, False, True))
    assert len(mixed.estimates) == 2
    unsearched = dataclasses.replace(variant, extracted=None)
    assert unsearched.searches == ()
    assert dataclasses.replace(variant, skew_normal=None).estimates == ()


def test_an_exposure_is_a_lower_bound_where_a_canary_is_saturated(result):
    variant = dataclasses.replace(result.training.variants[0], saturated=1)
    assert variant.mean_exposure.at_least
    assert not variant.mean_exposure.below(Interval(9.9, 9.8, 9.9))


def test_an_interval_is_below_one_that_it_does_not_overlap():
    assert Interval(1.0, 0.5, 1.5).below(Interval(2.0, 1.6, 2.4))
    assert not Interval(1.0, 0.5, 1.7).below(Interval(2.0, 1.6, 2.4))
    assert not Interval(1.0, None, None).below(Interval(2.0, 1.6, 2.4))


def test_one_value_of_a_field_is_the_first_and_has_no_difference(result):
    effects = result.training.effects
    assert [(e.field, e.value, e.change is None) for e in effects] == [
        ("batch", "8", True),
        ("batch", "16", False),
        ("units", "8", True),
        ("units", "16", False),
    ]
    assert effects[0].along == ("training.options.lr",)


def test_differences_are_found_by_label(result):
    finding = result.verdict
    assert finding.difference_of(result.training.variants[0].label) is None
    assert finding.difference_of("30 times").interval.value == finding.differences[-1].difference[0]


def test_what_was_not_measured_is_a_reason(rows):
    empty = result_from({}, ExposureTrainingResult, where="here")
    assert empty.training == empty.verdict == Absent("this run recorded none")
    without = read(rows, lambda made: made["training"].update(variants=[]))
    assert without.training == Absent("it holds no variant")


def test_an_older_record_is_read(rows):
    def older(made):
        training = made["training"]
        for name in ("models", "effects", "by_exposure"):
            del training[name]
        for variant in training["variants"]:
            for name in ("searches_ended", "saturated_each"):
                del variant[name]
            del variant["through"]["at_least"]
        for row in made["verdict"]["differences"]:
            del row["at_least"]

    training = read(rows, older).training
    assert training.trained == sum(variant.models for variant in training.variants)
    assert training.effects is training.by_exposure is None
    assert not any(look.exposure.at_least for look in training.variants[0].through.looks)


def test_a_gate_of_older_rules_is_a_finding(rows):
    older = copy.deepcopy(rows)
    row = older["verdict"]
    older["verdict"] = {"outcome": "PASS", "sentence": "Fine.", "differences": row["differences"]}
    shown = current_results(older, question="exposure-training")
    finding = result_from(shown, ExposureTrainingResult, where="here").verdict
    assert finding.headline == FINDINGS["exposure-training"]
    assert finding.sentence == "Fine."


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"exposure": [1.0, 2.0]}, r"variants\[0\].exposure has 2 entries, not 3"),
        ({"exposure": [None, 1.0, 2.0]}, r"exposure\[0\] is missing, no finite number"),
        ({"exposure": None}, r"variants\[0\].exposure is missing, no list"),
        ({"each": ["much"]}, r"each\[0\] is a str, no finite number"),
        ({"each": [math.nan, 1.0, 2.0]}, r"each\[0\] is a float, no finite number"),
        ({"skew_normal": [1.0]}, r"variants\[0\].skew_normal has 1 entries for 3 each"),
        ({"extracted_each": [1] * 3}, "neither true nor false"),
        ({"exact_each": [True]}, r"variants\[0\].exact_each has 1 entries for 3 each"),
        ({"cell": [1]}, "cell is a list, no object"),
        ({"cell": {"batch": 1}}, "training.variants have cells without the table's fields"),
        ({"nodes_each": [1, 2]}, r"nodes_each has 2 entries for 3 canaries"),
        ({"label": "other"}, "training.pareto names what is no variant"),
    ],
)
def test_a_damaged_variant_is_named(rows, entries, message):
    def damage(made):
        front = made["training"]["pareto"]
        front[:] = [made["training"]["variants"][0]["label"]]
        made["training"]["variants"][0].update(entries)

    with pytest.raises(RecordError, match=f"malformed result 'training': .*{message}"):
        read(rows, damage)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["effects"][1].update(difference=[1.0]), r"difference has 1 entries, not 3"),
        (lambda t: t["effects"][0].update(cells="two"), r"effects\[0\].cells is a str"),
        (lambda t: t["by_exposure"][0].update(read_out=-1), r"by_exposure\[0\].read_out is an int"),
        (lambda t: t.update(by_exposure=3), "by_exposure is an int, no list"),
        (lambda t: t.update(table={"rows": "batch"}), "table.columns is missing, no text"),
        (lambda t: t.pop("confidence"), "training.confidence is missing, no finite number"),
        (
            lambda t: t["variants"][0]["through"].update(step=[0]),
            r"variants\[0\].through.epoch has 3 entries for 1 step",
        ),
    ],
)
def test_damaged_tables_are_named(rows, change, message):
    with pytest.raises(RecordError, match=message):
        read(rows, lambda made: change(made["training"]))


def test_a_damaged_finding_is_named_and_its_values_are_not(rows):
    with pytest.raises(RecordError, match=r"verdict\.differences is missing, no list"):
        read(rows, lambda made: made["verdict"].pop("differences"))
    with pytest.raises(RecordError, match="differs is a str, neither true nor false") as caught:
        read(rows, lambda made: made["verdict"]["differences"][0].update(differs="hunter2"))
    assert "hunter2" not in str(caught.value)


def test_unequal_columns_cannot_be_written(result):
    variant = result.training.variants[0]
    with pytest.raises(InvalidInput, match=r"^\.epoch has 1 entries for 3 step"):
        dataclasses.replace(variant.through, epoch=(0.0,))
    columns = ("step", "epoch", "exposure", "at_least", "validation_bits", "training_bits")
    with pytest.raises(InvalidInput, match=r"\.step is empty"):
        dataclasses.replace(variant.through, **dict.fromkeys(columns, ()))
