"""Grids of variants."""

from __future__ import annotations

import pytest

from remnant.errors import PlanError
from remnant.studies import study_from
from remnant.studies.choices.variant_grid import grid_cells, with_cell


def test_every_combination_is_a_cell_with_a_label_of_its_own():
    grid = {"plan": {"batch": [16, 32]}, "model": {"options": {"units": [50, 100, 150]}}}
    cells = grid_cells(grid)
    assert [cell.label for cell in cells[:2]] == ["batch 16, units 50", "batch 16, units 100"]
    assert len({cell.label for cell in cells}) == 6
    assert cells[-1].values == {"batch": 32, "units": 150}


def test_fields_that_end_alike_keep_their_place():
    cells = grid_cells({"plan": {"seed": [1]}, "text": {"seed": [2]}})
    assert cells[0].values == {"plan.seed": 1, "text.seed": 2}


def test_a_cell_changes_its_fields_and_nothing_else():
    table = {"plan": {"batch": 1, "steps": 5}, "model": {"options": {"layers": 2}}}
    cell = grid_cells({"plan": {"batch": [8]}, "model": {"options": {"units": [50]}}})[0]
    assert with_cell(table, cell) == {
        "plan": {"batch": 8, "steps": 5},
        "model": {"options": {"layers": 2, "units": 50}},
    }
    assert table["plan"]["batch"] == 1


def test_fields_move_along_and_stand_in_no_label():
    along = {"batch": {"training": {"options": {"lr": [0.1, 0.2]}}}}
    grid = {"plan": {"batch": [8, 16]}, "model": {"options": {"units": [5, 6]}}, "along": along}
    cells = grid_cells(grid)
    assert [cell.label for cell in cells] == [
        *("batch 8, units 5", "batch 8, units 6", "batch 16, units 5", "batch 16, units 6")
    ]
    assert all(set(cell.values) == {"batch", "units"} for cell in cells)
    rates = [with_cell({}, cell)["training"]["options"]["lr"] for cell in cells]
    assert rates == [0.1, 0.1, 0.2, 0.2]


def test_lists_tables_and_truth_values_have_labels_too():
    grid = {"plan": {"repeats": [[1], [4, 4]]}, "training": {"options": [{"lr": 0.1}]}}
    assert grid_cells(grid)[1].label == "repeats 4+4, options lr 0.1"
    assert grid_cells({"text": {"deduplicate": [True, False]}})[0].label == "deduplicate yes"


def test_values_have_names_in_labels_and_tables():
    options = [{"lr": 0.1}, {"lr": 0.2, "momentum": 0.9}]
    grid = {"training": {"options": options}, "plan": {"batch": [8, 16]}}
    cells = grid_cells({**grid, "named": {"options": ["plain", "momentum"]}})
    assert [cell.label for cell in cells[1:3]] == ["plain, batch 16", "momentum, batch 8"]
    assert cells[2].values == {"options": "momentum", "batch": 8}
    assert with_cell({}, cells[2])["training"]["options"] == options[1]


def test_a_value_may_stand_twice_where_names_tell_them_apart():
    grid = {"training": {"options": [{"lr": 1}, {"lr": 1}]}, "named": {"options": ["a", "b"]}}
    along = {"options": {"training": {"optimizer": ["adam", "adamw"]}}}
    cells = grid_cells({**grid, "along": along})
    assert [(cell.label, with_cell({}, cell)["training"]["optimizer"]) for cell in cells] == [
        *(("a", "adam"), ("b", "adamw"))
    ]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, "the grid is empty"),
        ({"plan": {}}, "the grid is empty"),
        ({"plan": {"batch": []}}, r"grid.plan.batch=\[\] is not a list of values"),
        ({"plan": {"batch": 16}}, "grid.plan.batch=16 is not a list of values"),
        ({"plan": {"batch": [16, 16]}}, "has a value twice"),
        ({"plan": [1, 2]}, "grid.plan is a section"),
        ({"plan": {"batch": [1]}, "along": 3}, "grid.along is not a table of tables"),
        ({"plan": {"batch": [1]}, "along": {"batch": 3}}, "grid.along is not a table of tables"),
        (
            {"plan": {"batch": [1]}, "along": {"units": {"plan": {"seed": [1]}}}},
            "the grid has no units, only batch",
        ),
        (
            {"plan": {"batch": [1, 2]}, "along": {"batch": {"plan": {"seed": [1]}}}},
            "is not a list of 2 values, as batch has",
        ),
        ({"along": {"batch": {"plan": {"seed": [1]}}}}, "the grid is empty"),
        ({"plan": {"batch": [1]}, "named": 3}, "grid.named is not a table"),
        ({"plan": {"batch": [1]}, "named": {"units": ["a"]}}, "the grid has no units, only batch"),
        ({"plan": {"batch": [1, 2]}, "named": {"batch": ["a"]}}, "is not a list of 2 different"),
        ({"plan": {"batch": [1, 2]}, "named": {"batch": ["a", "a"]}}, "of 2 different names"),
    ],
)
def test_a_faulty_grid(grid, message):
    with pytest.raises(PlanError, match=message):
        grid_cells(grid)


def test_a_field_inside_something_that_is_no_table():
    cell = grid_cells({"model": {"name": {"units": [1]}}})[0]
    with pytest.raises(PlanError, match="name is not a table"):
        with_cell({"model": {"name": "lstm"}}, cell)


STUDIED = {
    "question": "exposure-training",
    "plan": {"kind": "insert", "repeats": [1, 3], "steps": 4, "trials": 3},
    "grid": {"plan": {"batch": [8, 16]}, "model": {"options": {"units": [8, 48]}}},
}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"repeats": [0, 3]}, "repeats"),
        ({"seed": -1}, "seed=-1"),
        ({"trials": "3"}, "trials='3'"),
        ({"steps": None}, "steps"),
        ({"controls": -1}, "controls=-1"),
    ],
)
def test_a_fault_of_the_plan_is_not_that_of_a_combination(fields, message):
    plan = {name: one for name, one in (STUDIED["plan"] | fields).items() if one is not None}
    for more in ({}, {"compare": [{"label": "often", "plan": {"repeats": [30, 30]}}]}):
        with pytest.raises(PlanError, match=message) as caught:
            study_from({**STUDIED, **more, "plan": plan})
        assert "compare" not in str(caught.value)


def test_a_fault_of_a_combination_names_it():
    grid = {"plan": {"batch": [8, 0]}}
    with pytest.raises(PlanError, match=r"^compare 'batch 0': .*batch=0"):
        study_from({**STUDIED, "grid": grid})
