import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from remnant.errors import InvalidInput
from remnant.measures import calibrated_losses, exposure

MODELS = arrays.arrays(
    np.float64, st.tuples(st.integers(2, 6), st.integers(1, 9)), elements=st.floats(-9, 9)
)


@settings(max_examples=100)
@given(losses=MODELS)
def test_the_mean_over_models_is_subtracted(losses):
    own, others = losses[0], losses[1:]
    found = calibrated_losses(losses=own, reference_model_losses=others)
    expected = [own[i] - sum(others[:, i]) / len(others) for i in range(own.size)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    turned = calibrated_losses(losses=own, reference_model_losses=others[::-1])
    np.testing.assert_allclose(turned, found, atol=1e-12)


def test_only_what_this_model_learned_is_exposed():
    """Some secrets are cheap for all models; the planted ones only for one."""
    rng = np.random.default_rng(0)
    easy = 10.0 * rng.normal(size=2000)
    models = easy + rng.normal(size=(12, 2000))
    planted, others = np.arange(20), np.arange(20, 2000)
    models[0, planted] -= 6.0

    def bits(losses):
        return exposure(canary_losses=losses[planted], reference_losses=losses[others]).bits

    calibrated = calibrated_losses(losses=models[0], reference_model_losses=models[1:])
    assert bits(calibrated).min() > 8.0
    assert bits(models[0]).mean() < 4.0


@pytest.mark.parametrize(
    ("losses", "others", "words"),
    [
        ([1.0, np.inf], [[1.0, 1.0]], "losses holds 1 value"),
        ([1.0], [1.0], "reference_model_losses has shape"),
        ([1.0, 2.0], [[1.0], [2.0]], r"shape \(2, 1\), not \(models, 2\)"),
        ([], [[np.nan]], "losses is empty.*; reference_model_losses holds"),
    ],
)
def test_faulty_input_is_refused(losses, others, words):
    with pytest.raises(InvalidInput, match=words):
        calibrated_losses(losses=losses, reference_model_losses=others)
