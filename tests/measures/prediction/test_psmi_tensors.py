"""PSMI of tensors: the same numbers and the same faults as of arrays, and nothing left switched.

``by_tensors`` sends tensors on the CPU the way of those on a GPU, which ``test_cuda.py`` takes.
"""

import subprocess
import sys

import numpy as np
import pytest
import torch

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import fit_psmi, psmi
from remnant.measures.prediction import psmi_kernel, psmi_samples, psmi_walk


@pytest.fixture
def by_tensors(monkeypatch):
    monkeypatch.setattr(psmi_samples, "STAYING", ("cuda", "cpu"))


def toy(seed=0, n=200, d=6, classes=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes)
    centres = rng.normal(size=(classes, d))
    return (rng.normal(size=(n, d)) + centres[labels]).astype(dtype), labels


def ways(d, number=20, seed=1):
    return np.random.default_rng(seed).normal(size=(number, d))


def same(found, expected, near):
    np.testing.assert_allclose(found.values, expected.values, atol=near)
    np.testing.assert_allclose(found.standard_error, expected.standard_error, atol=near)
    assert type(found.values) is type(found.standard_error) is np.ndarray
    assert found.values.dtype == found.standard_error.dtype == np.float64
    assert (found.n, found.n_directions) == (expected.n, expected.n_directions)
    assert found.precision == expected.precision


@pytest.mark.parametrize(("dtype", "near"), [(np.float64, 1e-12), (np.float32, 1e-6)])
@pytest.mark.parametrize("way", ["array", "tensor"])
def test_a_tensor_has_the_numbers_of_its_array(dtype, near, way, request):
    if way == "tensor":
        request.getfixturevalue("by_tensors")
    hidden, labels = toy(2, 500, 30, 4, dtype)
    asked = {"labels": labels, "directions": 64, "ddof": 1}
    expected = psmi(hidden=hidden, **asked, rng=np.random.default_rng(0))
    tensor = torch.from_numpy(hidden)
    same(psmi(hidden=tensor, **asked, rng=np.random.default_rng(0)), expected, near)
    with_gradient = tensor.clone().requires_grad_()
    same(psmi(hidden=with_gradient, **asked, rng=np.random.default_rng(0)), expected, near)
    asked["labels"] = torch.from_numpy(labels)
    turned = tensor.T.contiguous().T
    same(psmi(hidden=turned, **asked, rng=np.random.default_rng(0)), expected, near)


@pytest.mark.parametrize("way", ["array", "tensor"])
def test_fit_and_evaluation_go_together_whatever_holds_the_samples(way, request):
    if way == "tensor":
        request.getfixturevalue("by_tensors")
    hidden, labels = toy(3, 300, 5, 4)
    tensor, directions = torch.from_numpy(hidden), ways(5)
    expected = psmi(hidden=hidden, labels=labels, directions=directions)
    fit = fit_psmi(hidden=tensor, labels=labels, directions=torch.from_numpy(directions))
    same(fit.evaluate(hidden=tensor, labels=labels), expected, 1e-12)
    same(fit.evaluate(hidden=hidden, labels=labels), expected, 1e-12)
    few = labels == 2
    part = fit.evaluate(hidden=tensor[few], labels=torch.from_numpy(labels[few]))
    np.testing.assert_allclose(part.values, expected.values[few], atol=1e-12)


@pytest.mark.parametrize("way", ["array", "tensor"])
@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_halves_are_read_as_float32_and_whole_numbers_as_float64(way, half, request):
    if way == "tensor":
        request.getfixturevalue("by_tensors")
    hidden, labels = toy(4, 200, 6, 3)
    short = torch.from_numpy(hidden).to(half)
    asked = {"labels": labels, "directions": ways(6)}
    expected = psmi(hidden=short.to(torch.float32).numpy(), **asked)
    assert expected.precision == "float32"
    same(psmi(hidden=short, **asked), expected, 1e-6)
    whole = np.round(10 * hidden).astype(np.int64)
    same(psmi(hidden=torch.from_numpy(whole), **asked), psmi(hidden=whole, **asked), 1e-12)


@pytest.mark.parametrize(
    ("change", "near"),
    [
        pytest.param(lambda hidden: hidden * np.float32(1e25), 1e-9, id="too large for float32"),
        pytest.param(lambda hidden: hidden * [1, 1, 1, 1e-6], 1e-9, id="a narrow feature"),
        pytest.param(lambda hidden: hidden + np.float32(100.0), 1e-5, id="far from zero"),
    ],
)
def test_precision_is_chosen_alike(change, near, by_tensors):
    hidden, labels = toy(5, 120, 4, 3, np.float32)
    hidden = change(hidden).astype(np.float32)
    asked = {"labels": labels, "directions": np.eye(4)}
    same(psmi(hidden=torch.from_numpy(hidden), **asked), psmi(hidden=hidden, **asked), near)


def test_far_and_collapsed_samples_are_as_in_arrays(by_tensors):
    hidden, labels = toy(6, 300, 5, 3, np.float32)
    hidden[labels == 1] = [0.1, 0.2, 0.3, -0.4, 5.0]
    hidden[3] *= 1e10
    asked = {"labels": labels, "directions": ways(5)}
    found, expected = psmi(hidden=torch.from_numpy(hidden), **asked), psmi(hidden=hidden, **asked)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-5, atol=1e-6)
    fit = fit_psmi(hidden=hidden[labels != 1], labels=labels[labels != 1], directions=ways(5))
    far = np.float32(1e30) * np.ones((2, 5), dtype=np.float32)
    found = fit.evaluate(hidden=torch.from_numpy(far), labels=[0, 2])
    expected = fit.evaluate(hidden=far, labels=[0, 2])
    assert np.isfinite(expected.values).all()
    assert np.isfinite(expected.standard_error).all()
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)


BAD = [
    (np.full((4, 2), np.nan), [0, 0, 1, 1], 3),
    (np.full((4, 2), np.inf, dtype=np.float32), [0, 0, 1, 1], 3),
    (np.full((4, 2), 1e300), [0, 0, 1, 1], 3),
    (np.zeros(4), [0, 0, 1, 1], 3),
    (np.zeros((0, 2)), [0, 0, 1, 1], 3),
    (np.zeros((4, 2)), [0, 0, 1, 1], 3),
    (np.eye(4), [0, 0, 0, 0], 3),
    (np.eye(4), [0, 0, 1, 2], 3),
    (np.eye(4), [0, 0, 1], 3),
    (np.eye(4), [0, 0, 1, 1], np.eye(3)),
    (np.eye(4), [0, 0, 1, 1], np.eye(4)[:1]),
    (np.eye(4), [0, 0, 1, 1], np.zeros((3, 4))),
    (np.eye(4), [0, 0, 1, 1], np.full((3, 4), np.nan)),
    (np.eye(4), [0, 0, 1, 1], np.ones(4)),
    (np.eye(4), [0, 0, 1, 1], np.ones((0, 4))),
    (np.eye(4)[:, [0, 1, 2, 2]] * [1, 1, 1, 0], [0, 0, 1, 1], np.eye(4)),
]


@pytest.mark.parametrize(("hidden", "labels", "directions"), BAD)
def test_faults_are_told_as_those_of_arrays(hidden, labels, directions, by_tensors):
    def told(convert):
        drawn = isinstance(directions, int)
        rng = np.random.default_rng(0) if drawn else None
        along = directions if drawn else convert(directions)
        with pytest.raises((InvalidInput, NotEnoughEvidence)) as raised:
            psmi(hidden=convert(hidden), labels=labels, directions=along, rng=rng)
        return type(raised.value), str(raised.value)

    assert told(torch.from_numpy) == told(np.asarray)


@pytest.mark.parametrize("way", ["array", "tensor"])
def test_what_is_not_a_tensor_of_numbers_is_refused(way, request):
    if way == "tensor":
        request.getfixturevalue("by_tensors")
    fine, labels = torch.eye(4), [0, 0, 1, 1]
    for tensor in (torch.eye(4, dtype=torch.complex64), torch.eye(4).to_sparse()):
        with pytest.raises(InvalidInput, match="hidden is not an array of numbers"):
            psmi(hidden=tensor, labels=labels, directions=3, rng=np.random.default_rng(0))
        with pytest.raises(InvalidInput, match="directions is not an array of numbers"):
            psmi(hidden=fine, labels=labels, directions=tensor)


def switches():
    matmul, host = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
    return matmul.fp32_precision, host.fp32_precision, torch.is_grad_enabled()


@pytest.mark.parametrize("precision", ["highest", "medium"])
def test_products_keep_their_digits_and_switches_their_places(precision, by_tensors):
    hidden, labels = toy(7, 400, 64, 3, np.float32)
    asked = {"hidden": torch.from_numpy(hidden), "labels": labels, "directions": ways(64)}
    expected = psmi(**asked)
    set_before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision(precision)
        before = switches()
        with torch.autocast("cpu", torch.bfloat16):
            found = psmi(**asked)
        assert switches() == before
        assert torch.get_float32_matmul_precision() == precision
        with pytest.raises(InvalidInput):
            psmi(hidden=np.ones((4, 2)), labels=[0, 0, 1, 1], directions=np.eye(2))
        assert switches() == before
    finally:
        torch.set_float32_matmul_precision(set_before)
    np.testing.assert_array_equal(found.values, expected.values)


def test_the_given_tensors_are_left_as_they_were(by_tensors):
    hidden, labels = toy()
    given = torch.from_numpy(hidden), torch.from_numpy(labels), torch.from_numpy(ways(6))
    kept = [one.clone() for one in given]
    psmi(hidden=given[0], labels=given[1], directions=given[2])
    for one, other in zip(kept, given, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_pieces_and_threads_do_not_matter(dtype, monkeypatch, by_tensors):
    hidden, labels = toy(8, 400, 6, 3, dtype)
    asked = {"hidden": torch.from_numpy(hidden), "labels": labels, "directions": ways(6, 300)}
    expected = psmi(**asked)
    monkeypatch.setitem(psmi_walk.HELD, "cpu", 1)
    monkeypatch.setattr(psmi_walk, "FEWEST", 7)
    monkeypatch.setitem(psmi_kernel.PIECE, "cpu", 50)
    monkeypatch.setattr(psmi_samples, "GATHERED", 1000)
    cut = psmi(**asked)
    same(cut, expected, 1e-12 if dtype == np.float64 else 1e-6)
    threads = torch.get_num_threads()
    try:
        for many in (1, 3):
            torch.set_num_threads(many)
            np.testing.assert_array_equal(psmi(**asked).values, cut.values)
    finally:
        torch.set_num_threads(threads)


def test_many_classes_far_from_zero_keep_their_digits():
    """Offsets a thousand times the spread: float32 samples are exact, and so are their classes."""
    hidden, labels = toy(9, 2000, 20, 10, np.float32)
    hidden += np.float32(1000.0)
    asked = {"labels": labels, "directions": ways(20, 100)}
    found, exact = psmi(hidden=hidden, **asked), psmi(hidden=hidden.astype(np.float64), **asked)
    assert (found.precision, exact.precision) == ("float32", "float64")
    np.testing.assert_allclose(found.values, exact.values, atol=1e-6)


def test_measures_load_without_torch():
    code = "import remnant.measures, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=3600).returncode == 0
