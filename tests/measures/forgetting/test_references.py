import statistics

import numpy as np
import pytest

from remnant.errors import InvalidInput
from remnant.measures.forgetting.instance_scores import against_references


def by_loop(values, references, deviation):
    """The definition, one number at a time."""
    out = np.empty_like(values)
    for at in np.ndindex(values.shape[:-1]):
        models = [list(map(float, model[at])) for model in references]
        by_example = list(zip(*models, strict=True))
        spread = [statistics.stdev(scores) if deviation else 1.0 for scores in by_example]
        median = statistics.median(spread)
        least = median / 100 if median > 0 else 1.0
        for i, scores in enumerate(by_example):
            divisor = max(spread[i], least) if deviation else 1.0
            out[(*at, i)] = (values[(*at, i)] - statistics.fmean(scores)) / divisor
    return out


@pytest.mark.parametrize("deviation", [False, True])
@pytest.mark.parametrize("shape", [(7,), (4, 7), (3, 2, 6)])
def test_equals_a_loop(shape, deviation):
    rng = np.random.default_rng(len(shape))
    values = rng.normal(size=shape)
    references = rng.normal(size=(5, *shape)) * rng.gamma(1.0, size=shape)
    references[:, ..., 0] = references[:1, ..., 0] + 1e-9 * rng.normal(size=(5, *shape[:-1]))
    found = against_references(values, references, deviation=deviation)
    np.testing.assert_allclose(found, by_loop(values, references, deviation), rtol=1e-7)


def test_small_deviations_are_raised_to_a_hundredth_of_the_median():
    references = np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 4.0]])
    found = against_references(np.ones(3), references, deviation=True)
    np.testing.assert_allclose(found, [1 / (2**0.5 / 100), 0.0, -1 / 8**0.5])


def test_where_most_references_agree_the_divisor_is_one_at_least():
    references = np.full((3, 5), 0.1)  # their computed mean is not 0.1
    references[:, 4] = [0.0, 10.0, 20.0]
    found = against_references(np.full(5, 2.1), references, deviation=True)
    np.testing.assert_allclose(found, [2.0, 2.0, 2.0, 2.0, (2.1 - 10) / 10])


def test_shift_factor_and_order_do_not_matter():
    rng = np.random.default_rng(0)
    values, references = rng.normal(size=(3, 20)), rng.normal(size=(6, 3, 20))
    found = against_references(values, references, deviation=True)
    shift = rng.normal(size=20)
    moved = against_references(5 * (values + shift), 5 * (references[::-1] + shift), deviation=True)
    np.testing.assert_allclose(found, moved)


def test_references_of_one_step_serve_all_checkpoints():
    rng = np.random.default_rng(1)
    values, references = rng.normal(size=(3, 20)), rng.normal(size=(6, 20))
    found = against_references(values, references[:, None], deviation=True)
    for row, single in zip(found, values, strict=True):
        np.testing.assert_array_equal(row, against_references(single, references, deviation=True))


@pytest.mark.parametrize(
    ("values", "references", "deviation", "words"),
    [
        ((3,), (3,), False, r"references have shape \(3,\) and values have shape \(3,\)"),
        ((4, 3), (2, 4, 5), False, "one more axis, the models"),
        ((4, 3), (2, 5, 3), False, "one more axis"),
        ((4, 3), (2, 4, 1), False, "one more axis"),
        ((), (2,), False, "one more axis"),
        ((3,), (0, 3), False, "0 reference models are given; it takes one reference model"),
        ((3,), (1, 3), True, "1 reference models are given; it takes two"),
    ],
)
def test_faulty_shapes_are_refused(values, references, deviation, words):
    with pytest.raises(InvalidInput, match=words):
        against_references(np.zeros(values), np.zeros(references), deviation=deviation)


def test_reference_scores_are_finite():
    with pytest.raises(InvalidInput, match="references holds values that are not finite"):
        against_references(np.zeros(2), np.array([[0.0, np.nan]]), deviation=False)
