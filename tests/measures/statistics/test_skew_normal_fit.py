import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import SkewNormal, fit_skew_normal
from remnant.measures.statistics import skew_normal_fit
from remnant.measures.statistics.skew_normal_fit import LARGEST_SHAPE

OTHER_LAWS = {
    "gamma": lambda rng, n: rng.gamma(3.0, size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "uniform": lambda rng, n: rng.uniform(size=n),
    "student": lambda rng, n: rng.standard_t(3, size=n),
    "cauchy": lambda rng, n: rng.standard_cauchy(size=n),
    "two humps": lambda rng, n: np.where(rng.random(n) < 0.3, -7.0, 0.0) + rng.normal(size=n),
    "log-normal": lambda rng, n: -rng.lognormal(size=n),
    "whole numbers": lambda rng, n: rng.poisson(8.0, size=n).astype(float),
    "bounded": lambda rng, n: rng.beta(8.0, 1.5, size=n),
    "half-normal": lambda rng, n: -np.abs(rng.normal(size=n)),
    "one outlier": lambda rng, n: np.append(rng.normal(size=n - 1), -60.0),
    "nine digits": lambda rng, n: 40.0 - np.log2(rng.dirichlet(np.ones(10), (n, 9))[..., 0]).sum(1),
}


def drawn(shape, n, seed):
    law = SkewNormal(shape=shape, location=30.0, scale=4.0)
    return law.sample(n, rng=np.random.default_rng(seed))


def scipy_log_likelihood(values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = stats.skewnorm.fit(values)
        return float(stats.skewnorm.logpdf(values, *fitted).sum())


def own_log_likelihood(fit, values):
    z = (values - fit.location) / fit.scale
    logs = stats.norm.logpdf(z) + stats.norm.logcdf(fit.shape * z)
    return float(np.sum(logs + np.log(2.0) - np.log(fit.scale)))


def check_against_scipy(values):
    fit = fit_skew_normal(values)
    slack = 1e-6 * values.size
    assert fit.converged
    assert fit.n == values.size
    assert fit.log_likelihood == pytest.approx(own_log_likelihood(fit, values), abs=slack)
    assert fit.log_likelihood >= scipy_log_likelihood(values) - slack
    return fit


@pytest.mark.parametrize("shape", [-10, -5, -2, -1, -0.3, 0, 0.3, 1, 2, 5, 10])
@pytest.mark.parametrize("n", [50, 500, 5000])
def test_the_likelihood_is_not_below_scipys(shape, n):
    for seed in range(3 if n < 5000 else 1):
        check_against_scipy(drawn(shape, n, seed))


@pytest.mark.parametrize("shape", [-3.0, 0.0, 8.0])
def test_many_values_are_fitted_no_worse(shape):
    """At a hundred thousand the starts come from a subsample."""
    check_against_scipy(drawn(shape, 100_000, 1))


@pytest.mark.parametrize("name", OTHER_LAWS)
@pytest.mark.parametrize("n", [50, 20_000])
def test_values_of_other_laws_are_fitted_no_worse(name, n):
    check_against_scipy(3.0 * OTHER_LAWS[name](np.random.default_rng(3), n) + 100.0)


@pytest.mark.parametrize("shape", [-8.0, 1.5, 3.0])
def test_the_parameters_are_found_again(shape):
    """Twenty fits scatter around the truth: their mean is within four of its standard errors."""
    fits = [fit_skew_normal(drawn(shape, 4000, seed)) for seed in range(20)]
    found = np.array([[fit.shape, fit.location, fit.scale] for fit in fits])
    error = found.std(axis=0, ddof=1) / np.sqrt(20)
    assert np.all(np.abs(found.mean(axis=0) - [shape, 30.0, 4.0]) < 4 * error)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 9999),
    shape=st.sampled_from([-6.0, -1.0, 2.0, 9.0]),
    times=st.floats(1e-6, 1e6),
    sign=st.sampled_from([-1.0, 1.0]),
    shift=st.floats(-1e3, 1e3),
)
def test_a_change_of_unit_changes_the_fit_alike(seed, shape, times, sign, shift):
    values = drawn(shape, 300, seed)
    fit, mapped = fit_skew_normal(values), fit_skew_normal(sign * times * (values + shift))
    assert mapped.at_boundary == fit.at_boundary
    if fit.at_boundary:
        assert mapped.shape == pytest.approx(sign * fit.shape, rel=1e-6)
    else:
        assert mapped.shape == pytest.approx(sign * fit.shape, rel=1e-5, abs=1e-5)
    assert mapped.scale == pytest.approx(times * fit.scale, rel=1e-5)
    place = sign * times * (fit.location + shift)
    assert mapped.location == pytest.approx(place, rel=1e-6, abs=1e-5 * mapped.scale)
    log_likelihood = fit.log_likelihood - 300 * np.log(times)
    assert mapped.log_likelihood == pytest.approx(log_likelihood, abs=1e-4)


def test_order_does_not_matter_and_nothing_is_random():
    values = drawn(2.0, 30_000, 5)
    fit = fit_skew_normal(values)
    assert fit_skew_normal(values.copy()) == fit
    shuffled = fit_skew_normal(np.random.default_rng(0).permutation(values))
    assert shuffled.shape == pytest.approx(fit.shape, rel=1e-5)


def test_a_tail_that_ends_is_the_boundary():
    values = np.abs(np.random.default_rng(0).normal(size=200))
    fit, turned = fit_skew_normal(values), fit_skew_normal(-values)
    assert fit.at_boundary
    assert turned.at_boundary
    assert fit.shape == pytest.approx(LARGEST_SHAPE)
    assert turned.shape == pytest.approx(-LARGEST_SHAPE)
    assert fit.location == pytest.approx(values.min(), abs=1e-6)
    limit = stats.halfnorm.logpdf(values, values.min(), fit.scale).sum()
    assert fit.log_likelihood == pytest.approx(limit, abs=1e-6 * 200)


def test_symmetric_values_are_normal():
    half = np.random.default_rng(0).uniform(size=50)
    values = np.concatenate([half, -half]) + 7.0
    fit = fit_skew_normal(values)
    normal = stats.norm.logpdf(values, 7.0, values.std()).sum()
    assert fit.log_likelihood >= normal - 1e-9
    half = stats.norm.isf((np.arange(50) + 0.5) / 100)
    fit = fit_skew_normal(np.concatenate([half, -half]))
    assert abs(fit.shape) < 0.3
    assert fit.converged


def test_a_subsample_that_misleads_is_found_out(monkeypatch):
    """Every thirteenth value is of another kind; the fit of all must not be that of the sample."""
    rng = np.random.default_rng(0)
    values = drawn(6.0, 13 * 60, 0)
    values[::13] = -10.0 * np.abs(rng.normal(size=60)) - 100.0
    honest = fit_skew_normal(values)
    monkeypatch.setattr(skew_normal_fit, "_SUBSAMPLE", 60)
    assert fit_skew_normal(values).log_likelihood >= honest.log_likelihood - 1e-6


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        (np.arange(9.0), NotEnoughEvidence, "values holds 9 value.* at least 10"),
        (np.ones(50), NotEnoughEvidence, "values holds 50 value.*, 1 of them different"),
        (np.arange(50) % 2, NotEnoughEvidence, "2 of them different"),
        ([1.0, np.nan], InvalidInput, "values holds 1 value.* NaN or infinite"),
        ([[1.0, 2.0]], InvalidInput, "values has shape"),
        (np.linspace(-1, 1, 20) * 1e300, InvalidInput, "values runs from -1e.300 to 1e.300"),
    ],
)
def test_faulty_input_is_refused(values, error, words):
    with pytest.raises(error, match=words):
        fit_skew_normal(values)
