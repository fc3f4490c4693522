"""What only a GPU can show: PSMI has the same numbers there as on a CPU."""

import numpy as np
import pytest
import torch

from remnant.errors import InvalidInput
from remnant.measures import fit_psmi, psmi

pytestmark = pytest.mark.cuda


def toy(n=3000, d=128, classes=4, dtype=np.float32):
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(n) % classes)
    hidden = rng.normal(size=(n, d)) + 0.3 * rng.normal(size=(classes, d))[labels]
    return hidden.astype(dtype), labels


def same(found, expected, near):
    np.testing.assert_allclose(found.values, expected.values, atol=near)
    np.testing.assert_allclose(found.standard_error, expected.standard_error, atol=near)
    assert type(found.values) is np.ndarray
    assert found.precision == expected.precision


@pytest.mark.parametrize(("dtype", "near"), [(np.float32, 1e-6), (np.float64, 1e-10)])
@pytest.mark.parametrize("classes", [2, 4, 30])
def test_the_numbers_are_those_of_the_cpu(dtype, near, classes):
    hidden, labels = toy(classes=classes, dtype=dtype)
    asked = {"labels": labels, "directions": 500, "ddof": 1}
    expected = psmi(hidden=hidden, **asked, rng=np.random.default_rng(1))
    there = torch.from_numpy(hidden).cuda()
    same(psmi(hidden=there, **asked, rng=np.random.default_rng(1)), expected, near)
    directions = np.random.default_rng(1).standard_normal((500, hidden.shape[1]))
    asked |= {"labels": torch.from_numpy(labels).cuda()}
    asked |= {"directions": torch.from_numpy(directions).cuda()}
    same(psmi(hidden=there, **asked), expected, near)


def test_a_fit_can_be_held_against_samples_anywhere():
    hidden, labels = toy(dtype=np.float64)
    there = torch.from_numpy(hidden).cuda()
    asked = {"labels": labels, "directions": 200}
    fits = [fit_psmi(hidden=one, **asked, rng=np.random.default_rng(1)) for one in (hidden, there)]
    expected = fits[0].evaluate(hidden=hidden[:50], labels=labels[:50])
    for fit in fits:
        for one in (hidden, there):
            same(fit.evaluate(hidden=one[:50], labels=labels[:50]), expected, 1e-10)


def test_tf32_is_kept_out_and_put_back():
    hidden, labels = toy()
    asked = {"hidden": torch.from_numpy(hidden).cuda(), "labels": labels}
    directions = np.random.default_rng(1).normal(size=(300, hidden.shape[1]))
    expected = psmi(**asked, directions=directions)
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        torch.backends.cuda.matmul.allow_tf32 = True
        with torch.autocast("cuda", torch.bfloat16):
            found = psmi(**asked, directions=directions)
        assert torch.backends.cuda.matmul.allow_tf32
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    np.testing.assert_array_equal(found.values, expected.values)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_halves_are_read_as_float32(half):
    hidden, labels = toy()
    short = torch.from_numpy(hidden).to(half)
    directions = np.random.default_rng(1).normal(size=(300, hidden.shape[1]))
    expected = psmi(hidden=short.float().numpy(), labels=labels, directions=directions)
    same(psmi(hidden=short.cuda(), labels=labels, directions=directions), expected, 1e-6)


def test_hard_samples_are_as_on_the_cpu():
    """A collapsed class, an outlier beyond float32's squares, features too large for float32."""
    hidden, labels = toy(n=600, d=8)
    hidden[labels == 1] = hidden[0]
    hidden[np.flatnonzero(labels == 2)[5]] *= 1e10
    directions = np.random.default_rng(1).normal(size=(50, 8))
    for factor in (1.0, 1e25):
        given = hidden * np.float32(factor)
        expected = psmi(hidden=given, labels=labels, directions=directions)
        found = psmi(hidden=torch.from_numpy(given).cuda(), labels=labels, directions=directions)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-4, atol=1e-5)
    hidden[3, 3] = np.nan
    with pytest.raises(InvalidInput, match=r"hidden holds 1 value\(s\) that are NaN"):
        psmi(hidden=torch.from_numpy(hidden).cuda(), labels=labels, directions=directions)


def test_memory_is_one_copy_and_a_block():
    hidden, labels = toy(n=100_000)
    there = torch.from_numpy(hidden).cuda()
    directions = np.random.default_rng(1).normal(size=(4000, hidden.shape[1]))
    fit_psmi(hidden=there[:1000], labels=labels[:1000], directions=directions)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    psmi(hidden=there, labels=labels, directions=directions)
    grown = torch.cuda.max_memory_allocated() - before
    assert grown < there.numel() * 4 + (1 << 28) < 100_000 * 4000 * 4
