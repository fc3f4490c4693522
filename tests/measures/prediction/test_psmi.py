import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psmi import PSMI
from scipy import stats
from scipy.special import logsumexp

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import fit_psmi, psmi
from remnant.measures.prediction import psmi_walk as walk


def toy(seed=0, n=200, d=6, classes=3, apart=1.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes).repeat(2), rng.integers(classes, size=n)])[:n]
    rng.shuffle(labels)
    centres = apart * rng.normal(size=(classes, d))
    return (rng.normal(size=(n, d)) + centres[labels]).astype(dtype), labels


def ways(d, number=20, seed=1):
    return np.random.default_rng(seed).normal(size=(number, d))


def by_hand(hidden, labels, directions, *, ddof=0, fitted=None):
    """One direction, one sample and one class at a time, in logs."""
    known, named = (hidden, labels) if fitted is None else fitted
    out = np.zeros((len(labels), len(directions)))
    for k, direction in enumerate(directions):
        direction = direction / np.linalg.norm(direction)
        laws = {}
        for one in np.unique(named):
            along = known[named == one] @ direction
            laws[one] = (np.mean(named == one), along.mean(), along.std(ddof=ddof))
        for i, (sample, label) in enumerate(zip(hidden, labels, strict=True)):
            place = sample @ direction
            logs = {c: np.log(f) + stats.norm.logpdf(place, m, s) for c, (f, m, s) in laws.items()}
            out[i, k] = logs[label] - np.log(laws[label][0]) - logsumexp(list(logs.values()))
    return out


@settings(max_examples=40)
@given(
    seed=st.integers(0, 9999),
    n=st.integers(8, 20),
    d=st.integers(1, 4),
    classes=st.integers(2, 4),
    ddof=st.sampled_from([0, 1]),
)
def test_psmi_agrees_with_its_definition(seed, n, d, classes, ddof):
    hidden, labels = toy(seed, n, d, classes)
    directions = ways(d, 5, seed)
    found = psmi(hidden=hidden, labels=labels, directions=directions, ddof=ddof)
    full = by_hand(hidden, labels, directions, ddof=ddof)
    np.testing.assert_allclose(found.values, full.mean(axis=1), rtol=1e-9, atol=1e-9)
    error = full.std(axis=1, ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(found.risk, -found.values)
    np.testing.assert_allclose(found.smi, full.mean())
    assert (found.n, found.n_directions, found.ddof) == (n, 5, ddof)


@pytest.mark.parametrize(("dtype", "near"), [(np.float64, 1e-12), (np.float32, 1e-6)])
def test_psmi_agrees_with_the_package_on_its_own_directions(dtype, near):
    hidden, labels = toy(2, 3000, 40, 4, apart=0.5, dtype=dtype)
    theirs = PSMI(n_estimators=300)
    mean, spread, _ = theirs.fit_transform(hidden, labels)
    found = psmi(hidden=hidden, labels=labels, directions=theirs.thetas)
    np.testing.assert_allclose(found.values, mean, atol=near)
    np.testing.assert_allclose(found.standard_error, spread / np.sqrt(299), atol=near)
    assert found.precision == np.dtype(dtype).name


def test_one_dimension_has_a_closed_form():
    """Two classes with known normal laws; both directions of a line are the same."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [300, 100])
    hidden = rng.normal(size=400)
    for one, (mean, deviation) in enumerate([(0.0, 1.0), (2.0, 0.5)]):
        own = hidden[labels == one]
        hidden[labels == one] = mean + deviation * (own - own.mean()) / own.std()
    fit = fit_psmi(hidden=hidden[:, None], labels=labels, directions=[[1.0], [-3.0]])
    at = np.array([-1.0, 0.5, 1.0, 2.5])
    found = fit.evaluate(hidden=at[:, None], labels=[0, 0, 1, 1]).values
    ins = [stats.norm.logpdf(at, 0, 1), stats.norm.logpdf(at, 2, 0.5)]
    mixture = np.logaddexp(np.log(0.75) + ins[0], np.log(0.25) + ins[1])
    expected = np.where([True, True, False, False], *ins) - mixture
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_class_missing_from_the_second_call_stays_in_the_mixture(dtype):
    hidden, labels = toy(3, 300, 5, 4, dtype=dtype)
    directions = ways(5)
    fit = fit_psmi(hidden=hidden, labels=labels, directions=directions)
    whole = psmi(hidden=hidden, labels=labels, directions=directions).values
    near = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(fit.evaluate(hidden=hidden, labels=labels).values, whole, atol=near)
    for chosen in (labels == 2, np.arange(300) == 7, labels != 0):
        part = fit.evaluate(hidden=hidden[chosen], labels=labels[chosen]).values
        np.testing.assert_allclose(part, whole[chosen], atol=near)
    new = np.random.default_rng(9).normal(size=(6, 5))
    expected = by_hand(new, [1] * 6, directions, fitted=(hidden.astype(float), labels))
    found = fit.evaluate(hidden=new, labels=[1] * 6)
    np.testing.assert_allclose(found.values, expected.mean(axis=1), atol=1e-6)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 999),
    far=st.floats(0, 37),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_finite_and_bounded_whatever_the_outlier(seed, far, dtype):
    hidden, labels = toy(seed, 60, 4, 3, dtype=dtype)
    hidden[5] *= 10.0**far
    found = psmi(hidden=hidden, labels=labels, directions=ways(4))
    shares = np.bincount(labels)[labels] / 60
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.standard_error).all()
    assert np.all(found.values <= -np.log(shares) + 1e-6)
    fit = fit_psmi(hidden=hidden[labels != labels[5]][:40], labels=labels[labels != labels[5]][:40],
                   directions=ways(4))  # fmt: skip
    out = fit.evaluate(hidden=hidden[[5]], labels=labels[labels != labels[5]][:1])
    assert np.isfinite(out.values).all()


def test_a_ratio_beyond_the_numbers_is_worked_out_with_care():
    hidden, labels = toy(0, 300, 4, 2)
    fit = fit_psmi(hidden=hidden, labels=labels, directions=ways(4))
    new = 300.0 * np.random.default_rng(0).normal(size=(5, 4))
    expected = by_hand(new, [0] * 5, ways(4), fitted=(hidden, labels))
    assert expected.min() < -1000.0
    found = fit.evaluate(hidden=new, labels=[0] * 5)
    np.testing.assert_allclose(found.values, expected.mean(axis=1), rtol=1e-9)
    narrow = fit_psmi(hidden=hidden.astype(np.float32), labels=labels, directions=ways(4))
    found = narrow.evaluate(hidden=new.astype(np.float32), labels=[0] * 5)
    assert found.precision == "float32"
    np.testing.assert_allclose(found.values, expected.mean(axis=1), rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_collapsed_class_is_a_point_that_reaches_nobody_else(dtype):
    hidden, labels = toy(4, 300, 5, 3, dtype=dtype)
    hidden[labels == 1] = [0.1, 0.2, 0.3, -0.4, 5.0]
    found = psmi(hidden=hidden, labels=labels, directions=ways(5))
    share = np.mean(labels == 1)
    np.testing.assert_allclose(found.values[labels == 1], -np.log(share), atol=1e-3)
    others = labels != 1
    rest = psmi(hidden=hidden[others], labels=labels[others], directions=ways(5))
    # Without the point the others' shares are larger: that is all that changes for them.
    expected = rest.values - np.log1p(-share)
    close = np.abs(found.values[others] - expected) < 1e-3
    assert close.mean() > 0.99
    whole = psmi(hidden=np.eye(5)[labels], labels=labels, directions=ways(5))
    np.testing.assert_allclose(whole.values, -np.log(np.bincount(labels)[labels] / 300), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("factor", [1e-30, 1e-6, 7.0, 1e25])
def test_shift_and_scale_change_nothing(dtype, factor):
    hidden, labels = toy(5, 120, 4, 3, dtype=dtype)
    found = psmi(hidden=hidden, labels=labels, directions=ways(4))
    other = psmi(hidden=dtype(factor) * (hidden + dtype(3.0)), labels=labels, directions=ways(4))
    near = 1e-9 if dtype == np.float64 else 2e-5
    np.testing.assert_allclose(other.values, found.values, atol=near)


def test_length_and_sign_of_directions_order_and_names_are_of_no_account():
    hidden, labels = toy(6, 90, 4, 3)
    found = psmi(hidden=hidden, labels=labels, directions=ways(4))
    for factor in (-1.0, 1e-200, 1e200):
        other = psmi(hidden=hidden, labels=labels, directions=factor * ways(4))
        np.testing.assert_allclose(other.values, found.values, atol=1e-12)
    order = np.random.default_rng(0).permutation(90)
    other = psmi(hidden=hidden[order], labels=labels[order], directions=ways(4)[::-1])
    np.testing.assert_allclose(other.values, found.values[order], atol=1e-12)
    for names in (np.array(["c", "a", "b"]), np.array([5.0, -1.0, 40.0])):
        other = psmi(hidden=hidden, labels=names[labels], directions=ways(4))
        np.testing.assert_allclose(other.values, found.values, atol=1e-12)


def test_what_is_given_is_left_as_it_was():
    hidden, labels = toy(0)
    directions = ways(6)
    kept = hidden.copy(), labels.copy(), directions.copy()
    psmi(hidden=hidden, labels=labels, directions=directions)
    for one, other in zip(kept, (hidden, labels, directions), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_same_generator_gives_the_same_numbers_and_blocks_do_not_matter(monkeypatch):
    hidden, labels = toy(7, 400, 6, 3)
    asked = {"hidden": hidden, "labels": labels, "directions": 300}
    found = psmi(**asked, rng=np.random.default_rng(1))
    again = psmi(**asked, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(found.values, again.values)
    monkeypatch.setattr(walk, "MOST", 7)
    blocked = psmi(**asked, rng=np.random.default_rng(1))
    np.testing.assert_allclose(blocked.values, found.values, atol=1e-12)


def test_the_standard_error_covers_what_all_directions_would_give(covers):
    hidden, labels = toy(8, 80, 10, 3)
    asked = {"hidden": hidden, "labels": labels}
    truth = psmi(**asked, directions=200_000, rng=np.random.default_rng(0)).values
    inside = []
    for seed in range(60):
        found = psmi(**asked, directions=100, rng=np.random.default_rng(seed + 1))
        reach = stats.t.isf(0.025, 99) * found.standard_error
        inside.append(np.mean(np.abs(found.values - truth) <= reach))
    assert 0.93 < np.mean(inside) < 0.97


def test_mislabelled_samples_have_the_highest_risk():
    hidden, labels = toy(9, 500, 8, 3, apart=2.0)
    wrong = np.arange(25)
    labels[wrong] = (labels[wrong] + 1) % 3
    found = psmi(hidden=hidden, labels=labels, rng=np.random.default_rng(0))
    assert np.mean(np.isin(np.argsort(-found.risk)[:25], wrong)) > 0.9
    assert np.median(found.values[25:]) > 0 > np.median(found.values[wrong])


def test_narrow_directions_are_seen_in_float64():
    """float32 has too few digits for a feature a million times smaller than another."""
    hidden, labels = toy(1, 200, 2, 2, dtype=np.float64)
    hidden = (hidden * [1.0, 1e-6]).astype(np.float32)
    found = psmi(hidden=hidden, labels=labels, directions=np.eye(2))
    assert found.precision == "float64"
    expected = by_hand(hidden.astype(float), labels, np.eye(2)).mean(axis=1)
    np.testing.assert_allclose(found.values, expected, atol=1e-9)


def test_faults_are_listed_at_once():
    hidden, labels = toy()
    with pytest.raises(InvalidInput, match=r"ddof=2 .*; directions=1 .*; rng=None .*; hidden"):
        psmi(hidden=[[np.nan]], labels=[0], directions=1, rng=None, ddof=2)
    with pytest.raises(InvalidInput, match=r"rng draws nothing.*; directions hold 1 zero"):
        psmi(hidden=hidden, labels=labels, directions=[[0.0] * 6, [1.0] * 6],
             rng=np.random.default_rng(0))  # fmt: skip
    with pytest.raises(InvalidInput, match=r"labels has 3 entries for 200 rows.*; hidden has 6"):
        psmi(hidden=hidden, labels=[0, 1, 1], directions=ways(5))


@pytest.mark.parametrize(
    ("hidden", "labels", "match"),
    [
        ([[1.0], [2.0]], [0, 0], "one class"),
        ([[1.0], [1.0], [1.0], [1.0]], [0, 0, 1, 1], "nothing varies"),
        ([[0.1, 0.7]] * 6, [0, 0, 0, 1, 1, 1], "nothing varies|does not vary"),
        ([[1.0], [2.0]], [0.5, 1], "whole numbers"),
        ([[1.0], [2.0]], [[0], [1]], "shape"),
        ([1.0, 2.0], [0, 1], "shape"),
        ("hidden", [0, 1], "not an array"),
        ([[1.0], [np.inf]], [0, 1], "NaN or inf"),
        ([[1e300], [1.0]], [0, 1], "beyond 1e\\+290"),
        (np.zeros((0, 3)), [], "shape"),
    ],
)
def test_faulty_input_is_refused(hidden, labels, match):
    with pytest.raises(InvalidInput, match=match):
        psmi(hidden=hidden, labels=labels, directions=3, rng=np.random.default_rng(0))


def test_too_few_samples_and_blind_directions_are_refused():
    hidden, labels = toy(0, 30, 3, 2)
    labels[0] = 9
    with pytest.raises(NotEnoughEvidence, match=r"9 \(1\)"):
        psmi(hidden=hidden, labels=labels, directions=ways(3))
    hidden[:, 1] = 0.3
    with pytest.raises(InvalidInput, match=r"1 direction.*number 1"):
        psmi(hidden=hidden[1:], labels=labels[1:], directions=np.eye(3))
    assert np.isfinite(psmi(hidden=hidden[1:], labels=labels[1:], directions=ways(3)).values).all()


def test_samples_that_do_not_fit_are_refused():
    hidden, labels = toy(0, 60, 3, 2)
    fit = fit_psmi(hidden=hidden, labels=labels, directions=ways(3))
    with pytest.raises(InvalidInput, match=r"hidden has 2 features, not 3; .* not fitted: 7"):
        fit.evaluate(hidden=[[0.0, 1.0]], labels=[7])
    with pytest.raises(InvalidInput, match="1e60"):
        fit.evaluate(hidden=[[1e200, 0.0, 0.0]], labels=[0])


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e280])
def test_float64_features_of_any_size_do(size):
    hidden, labels = toy(5, 120, 4, 3)
    found = psmi(hidden=size * hidden, labels=labels, directions=ways(4))
    np.testing.assert_allclose(
        found.values, psmi(hidden=hidden, labels=labels, directions=ways(4)).values, atol=1e-9
    )
