import numpy as np
import pytest

from remnant.errors import InvalidInput
from remnant.measures import auc, calibrated_scores, cross_entropy, log_odds


def test_each_method_is_its_formula():
    now, before = np.array([[1.0, 2.0]]), np.array([0.5, 3.0])
    both = {"signal": now, "checkpoint_signal": before}
    np.testing.assert_array_equal(calibrated_scores(**both), now - before)
    np.testing.assert_array_equal(calibrated_scores(**both, method="loss"), before - now)
    np.testing.assert_array_equal(calibrated_scores(signal=now, method="none"), now)


def test_all_methods_point_the_same_way():
    """Seen examples gain in their true logit; whatever the method, they score higher."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=400)
    before = 3.0 * rng.normal(size=(400, 3))
    after = before + 0.3 * rng.normal(size=(400, 3))
    after[np.arange(200), labels[:200]] += 1.0
    found = {}
    for method, signal in (("logit", log_odds), ("loss", cross_entropy), ("none", log_odds)):
        start = None if method == "none" else signal(before, labels)
        scores = calibrated_scores(
            signal=signal(after, labels), checkpoint_signal=start, method=method
        )
        found[method] = auc(scores[:200], scores[200:], rng=rng, draws=20).value
    assert found["logit"] > found["loss"] > found["none"] > 0.5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"signal": [1.0]}, "needs the checkpoint_signal"),
        ({"signal": [1.0], "checkpoint_signal": [1.0], "method": "none"}, "takes no"),
        ({"signal": [np.nan], "checkpoint_signal": [np.inf]}, "signal holds .*; checkpoint"),
        ({"signal": [1.0], "method": "odds"}, "'odds' is not one of logit, loss, none"),
        ({"signal": [1.0, 2.0], "checkpoint_signal": [1.0, 2.0, 3.0]}, "does not broadcast"),
        ({"signal": [1.0], "checkpoint_signal": [[1.0], [2.0]]}, "does not broadcast"),
    ],
)
def test_faulty_input_is_refused(arguments, words):
    with pytest.raises(InvalidInput, match=words):
        calibrated_scores(**arguments)
