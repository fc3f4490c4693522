import mpmath
import numpy as np
import pytest
from scipy import stats

from remnant.errors import InvalidInput
from remnant.measures import SkewNormal

SHAPES = [-1000.0, -5.0, -0.3, 0.0, 1e-6, 0.7, 3.0, 40.0, 1000.0]
PIECES = [0, 0.5, 1, 2, 3, 4.5, 6, 8, 10, 13, 16, 20, 25, 30, 35, 40, 50, 60, 80]


def standard(shape):
    return SkewNormal(shape=shape, location=0.0, scale=1.0)


def exact_log_cdf(z, shape):
    """By quadrature of the density in long arithmetic; to the right of 0, of what is above."""
    with mpmath.workdps(30):
        if z > 0.0:
            return mpmath.log1p(-mpmath.exp(exact_log_cdf(-z, -shape)))
        steep = mpmath.mpf(1) + max(shape, 0.0) ** 2
        piece = 1 / (steep * abs(z) + mpmath.sqrt(steep))
        ends = [mpmath.mpf(z) - piece * k for k in reversed(PIECES)]
        area = mpmath.quad(
            lambda t: 2 * mpmath.npdf(t) * mpmath.ncdf(shape * t), ends, method="gauss-legendre"
        )
        return mpmath.log(area)


@pytest.mark.parametrize("shape", SHAPES)
def test_log_cdf_agrees_with_long_arithmetic(shape):
    points = [-200.0, -30.0, -4.0, -0.5, -1e-6, 0.0, 1e-6, 0.3, 2.0, 6.0]
    exact = [float(exact_log_cdf(z, shape)) for z in points]
    np.testing.assert_allclose(standard(shape).log_cdf(points), exact, rtol=1e-12)


@pytest.mark.parametrize("shape", [*SHAPES, 0.01, 10.0])
def test_cdf_and_log_cdf_agree_with_scipy_where_that_is_accurate(shape):
    x = np.linspace(-3.0, 12.0, 61)
    law = SkewNormal(shape=shape, location=1.5, scale=2.0)
    expected = stats.skewnorm.cdf(x, shape, loc=1.5, scale=2.0)
    np.testing.assert_allclose(law.cdf(x), expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(np.exp(law.log_cdf(x)), law.cdf(x), rtol=0, atol=1e-15)


@pytest.mark.parametrize("shape", SHAPES)
def test_log_cdf_rises_from_minus_infinity_to_zero(shape):
    x = np.concatenate([-np.geomspace(1e150, 1e-12, 800), np.geomspace(1e-12, 1e150, 800)])
    logs = standard(shape).log_cdf(x)
    assert np.all(np.isfinite(logs))
    assert np.all(np.diff(logs) >= -1e-13 * np.abs(logs[1:]))
    assert logs[-1] == 0.0
    assert standard(shape).log_cdf([-np.inf, np.inf]).tolist() == [-np.inf, 0.0]


def test_a_million_bits_are_counted():
    """The tail of shape α falls like that of a normal law √(1 + α²) times as narrow."""
    bits = -standard(3.0).log_cdf(-400.0) / np.log(2)
    np.testing.assert_allclose(bits, 10 * 400.0**2 / 2 / np.log(2), rtol=1e-4)
    assert bits > 1e6


@pytest.mark.parametrize("shape", SHAPES)
def test_both_sides_together_are_everything(shape):
    x = np.linspace(-5, 5, 41)
    total = np.exp(standard(shape).log_cdf(x)) + np.exp(standard(-shape).log_cdf(-x))
    np.testing.assert_allclose(total, 1.0, rtol=1e-13)


def test_shapes_of_arrays_are_kept():
    assert standard(1.0).log_cdf(0.0).shape == ()
    assert standard(1.0).log_cdf(np.zeros((2, 3))).shape == (2, 3)
    assert standard(1.0).cdf(np.zeros((2, 3))).shape == (2, 3)


@pytest.mark.parametrize("shape", [-4.0, 0.0, 1e8])
def test_draws_follow_the_law(shape):
    law = SkewNormal(shape=shape, location=-2.0, scale=0.5)
    drawn = law.sample(5000, rng=np.random.default_rng(0))
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-3


def test_faulty_input_is_refused():
    for shape, location, scale in ((np.nan, 0.0, 1.0), (0.0, np.inf, 1.0), (0.0, 0.0, 0.0)):
        with pytest.raises(InvalidInput, match=f"shape={shape}, location={location}"):
            SkewNormal(shape=shape, location=location, scale=scale)
    for function in (standard(1.0).cdf, standard(1.0).log_cdf):
        with pytest.raises(InvalidInput, match="x holds NaN"):
            function([0.0, np.nan])
