"""Fields of a grid on their own: by hand, and how often their intervals hold."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.studies.choices.differences import Levels, main_effects
from remnant.studies.choices.variant_grid import grid_cells

GRID = {"plan": {"batch": [8, 16]}, "model": {"options": {"units": [5, 6, 7]}}}


def drawn(rng, *, trials=8, batch=0.0):
    """Exposures of six cells whose trials have something in common."""
    common = rng.normal(40, 2, trials)
    return [common + rng.normal(0, 3, trials) + (batch if i >= 3 else 0.0) for i in range(6)]


def levels(rows):
    return [Levels(row, row) for row in rows]


def test_each_row_is_the_mean_over_its_cells_and_pairs_with_the_first():
    cells, rows = grid_cells(GRID), drawn(np.random.default_rng(0))
    costs = [np.full(8, float(i)) for i in range(6)]
    found = main_effects(
        cells, levels(rows), costs, most=100.0, along={"batch": ["training.options.lr"]}
    )
    assert [one.along for one in found[1:3]] == [("training.options.lr",), ()]
    assert not any(one.at_least for one in found)
    assert [(one.field, one.value, one.cells) for one in found] == [
        *(("batch", "8", 3), ("batch", "16", 3)),
        *(("units", "5", 2), ("units", "6", 2), ("units", "7", 2)),
    ]
    low, high = np.mean(rows[:3], axis=0), np.mean(rows[3:], axis=0)
    assert found[1].exposure[0] == pytest.approx(high.mean())
    assert found[1].difference[0] == pytest.approx((high - low).mean())
    assert found[1].validation_bits == (4.0, 4.0, 4.0)
    assert found[0].difference is None
    assert found[3].difference[0] == pytest.approx(
        np.mean([rows[1], rows[4]]) - np.mean([rows[0], rows[3]])
    )
    tested = [one for one in found if one.p_value is not None]
    least = min(tested, key=lambda one: one.p_value)
    assert least.adjusted_p_value == pytest.approx(min(1.0, 3 * least.p_value))


@pytest.mark.parametrize(
    "grid", [{}, {"plan": {"batch": [8, 16]}}, {"plan": {"batch": [8, 16], "seed": [1]}}]
)
def test_one_field_alone_is_told_by_its_variants(grid):
    cells = grid_cells(grid) if grid else []
    rows = [np.ones(3)] * len(cells)
    assert main_effects(cells, levels(rows), rows, most=100.0) == []


def test_one_trial_has_differences_without_intervals():
    rows = drawn(np.random.default_rng(1), trials=1)
    found = main_effects(grid_cells(GRID), levels(rows), rows, most=100.0)
    assert found[1].difference[1:] == (None, None)
    assert found[1].adjusted_p_value is None


def test_an_effect_that_no_cell_shows_alone_and_none_where_there_is_none():
    rng, cells, runs = np.random.default_rng(2), grid_cells(GRID), 200
    covered, seen, alone, false = 0, 0, 0, 0
    for _ in range(runs):
        rows = drawn(rng, batch=5.0)
        found = main_effects(cells, levels(rows), rows, most=100.0)
        low, high = found[1].difference[1:]
        covered += low <= 5.0 <= high
        seen += found[1].p_value <= 0.05
        gap = rows[3] - rows[0]
        alone += abs(gap.mean()) > 2.365 * gap.std(ddof=1) / np.sqrt(8)
        rows = drawn(rng)
        nothing = main_effects(cells, levels(rows), rows, most=100.0)
        false += min(one.adjusted_p_value for one in nothing if one.difference) <= 0.05
    assert covered / runs > 0.92
    assert seen / runs > alone / runs + 0.15
    assert false / runs < 0.08


def test_what_is_known_as_at_least_only_makes_no_effect():
    rng, cells = np.random.default_rng(3), grid_cells(GRID)
    for _ in range(50):
        rows = [np.minimum(rng.normal(60, 6, 6), 100.0) for _ in cells]
        cut = [Levels(row, row) for row in rows[:3]]
        cut += [Levels(np.minimum(row, 30.0), np.full(6, 100.0)) for row in rows[3:]]
        found = main_effects(cells, cut, rows, most=100.0)
        assert found[1].at_least
        assert found[1].difference_at_least
        assert found[1].p_value == 1.0
        assert found[1].exposure[2] > np.mean(rows[3:])
