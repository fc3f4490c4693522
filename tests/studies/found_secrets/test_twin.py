"""Found secrets in a model and its twin: known answers, bounds, and whom the test counts."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from remnant.canaries.natural import scan_files
from remnant.errors import InvalidInput
from remnant.models import LanguageModel, Vocabulary, lstm
from remnant.studies.found_secrets.measure import measure_found
from remnant.studies.found_secrets.twin import compare_with_twin, unseen_by_twin

SALT = b"0123456789abcdef"


def fond_of(digit: str) -> LanguageModel:
    """After anything: ``digit`` with probability 1/2, each other character alike."""
    vocabulary = Vocabulary.of_characters("0123456789-cal \n")
    net = lstm(vocabulary.size, units=1, layers=1)
    state = {name: torch.zeros_like(tensor) for name, tensor in net.state_dict().items()}
    state["head.bias"][vocabulary.encode(digit)[0]] = math.log(vocabulary.size - 1)
    net.load_state_dict(state)
    return LanguageModel(net, vocabulary)


def found_in(folder, texts):
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text)
    return scan_files([folder], salt=SALT).found


def measured(found, digit, **options):
    budget = {"references": 200, "max_nodes": 20_000, **options}
    return measure_found(fond_of(digit), found, rng=np.random.default_rng(0), **budget)


def compared(found, model="3", twin="9", shared=0, **options):
    in_model, in_twin = (measured(found, digit, **options) for digit in (model, twin))
    return compare_with_twin(found, in_model=in_model, in_twin=in_twin, shared=shared)


@pytest.fixture
def found(tmp_path):
    """Seven numbers with more threes than nines, and one the other way round, each in a file."""
    threes = [f"call 323-333-33{n}3" for n in (0, 1, 2, 4, 5, 6, 7)]
    return found_in(tmp_path / "text", [*threes, "call 929-999-9949"])


def test_more_exposed_is_what_ranks_lower_than_in_the_twin(found):
    result = compared(found, max_nodes=200_000)
    (phone,) = result.kinds
    assert (phone.kind, phone.n, phone.higher, phone.lower) == ("phone", 8, 7, 1)
    assert result.test.p_value == pytest.approx(9 / 2**8)
    assert (result.test.files, result.test.p_value_reason, result.unpaired) == (8, None, 0)
    # Eight threes of ten digits; a secret's rank counts all that have as many of them or more.
    rank = sum(math.comb(10, k) * 9**k for k in range(3))
    assert phone.median_bits == pytest.approx(10 * math.log2(10) - math.log2(rank))
    assert (phone.median_at_least, phone.twin_median_at_least) == (False, False)
    assert phone.twin_median_bits < phone.median_bits


def test_exchanging_model_and_twin_exchanges_higher_and_lower(found):
    (one,), (other,) = (compared(found, *pair).kinds for pair in (("3", "9"), ("9", "3")))
    assert (one.higher, one.lower) == (other.lower, other.higher) == (7, 1)
    assert (one.median_bits, one.twin_median_bits) == (other.twin_median_bits, other.median_bits)


def test_a_model_beside_itself_is_neither(found):
    result = compared(found, "3", "3")
    (phone,) = result.kinds
    assert (phone.n, phone.higher, phone.lower) == (8, 0, 0)
    assert result.test.p_value is None
    assert (
        result.test.p_value_reason
        == "files that say higher or lower: 0, too few for a test; it takes 5"
    )


def test_what_bounds_leave_open_is_neither(found):
    """A twin that no reference is as cheap in may expose a secret as much as the model does."""
    model, twin = (measured(found, digit) for digit in "39")
    known = twin
    open_ended = [at_least(one, 4.0) for one in twin.each]
    twin = dataclasses.replace(twin, each=tuple(open_ended))
    (phone,) = compare_with_twin(found, in_model=model, in_twin=twin).kinds
    assert (phone.higher, phone.lower) == (0, 1)
    assert (phone.twin_median_bits, phone.twin_median_at_least) == (4.0, True)
    # Bounds in the model can prove that it exposes more.
    model = dataclasses.replace(model, each=tuple(at_least(one, 12.0) for one in model.each))
    (phone,) = compare_with_twin(found, in_model=model, in_twin=known).kinds
    assert (phone.higher, phone.lower) == (7, 0)


def at_least(one, bits):
    measured = dataclasses.replace(
        one.measured, bits=bits + 1, low=bits, high=math.inf, rank=None, saturated=True
    )
    return dataclasses.replace(one, measured=measured)


def test_a_median_above_which_bounds_lie_is_no_bound(found):
    model, twin = (measured(found, digit, max_nodes=200_000) for digit in "39")
    most = [at_least(one, 30.0) if n < 3 else one for n, one in enumerate(model.each)]
    model = dataclasses.replace(model, each=tuple(most))
    (phone,) = compare_with_twin(found, in_model=model, in_twin=twin).kinds
    assert not phone.median_at_least


def test_secrets_of_one_file_count_as_one(tmp_path):
    lines = [f"call 323-333-33{n}3" for n in (0, 1, 2, 4, 5, 6, 7)]
    whole = found_in(tmp_path / "whole", ["\n".join(lines)])
    result = compared(whole)
    assert result.kinds[0].higher == 7
    assert result.test.p_value is None
    assert (
        result.test.p_value_reason
        == "files that say higher or lower: 1, too few for a test; it takes 5"
    )
    six = found_in(tmp_path / "six", ["\n".join(lines[:2]), *lines[2:]])
    assert compared(six).test.p_value == 2**-6


def test_what_the_twin_saw_too_is_left_out(tmp_path, found):
    others = found_in(tmp_path / "other", ["323.333.3303 and 212-222-2333"])
    kept = unseen_by_twin(found, others)
    assert len(kept) == 7
    assert kept == found[1:]
    assert compared(kept, shared=1).shared == 1


def test_what_one_of_them_cannot_be_asked_about_is_not_compared(tmp_path, found):
    odd = found_in(tmp_path / "odd", ["call 212-222-2333", "\u00e9 323-333-3303"])
    result = compared(odd)
    assert (result.kinds[0].n, result.unpaired) == (1, 0), "neither has the letter"
    model, twin = (measured(found, digit) for digit in "39")
    lost = dataclasses.replace(twin.each[0], measured=None, unmeasured="no such letter")
    twin = dataclasses.replace(twin, each=(lost, *twin.each[1:]))
    result = compare_with_twin(found, in_model=model, in_twin=twin)
    assert (result.kinds[0].n, result.unpaired) == (7, 1)
    nothing = dataclasses.replace(twin, each=(lost,))
    alone = dataclasses.replace(model, each=model.each[:1])
    result = compare_with_twin(found, in_model=alone, in_twin=nothing)
    assert (result.kinds, result.unpaired) == ((), 1)
    assert result.test.p_value_reason == "no secret was measured in both models"


def test_results_of_other_secrets_or_calibrated_ones_are_refused(found):
    model, twin = (measured(found, digit) for digit in "39")
    with pytest.raises(InvalidInput, match="do not belong to these secrets"):
        compare_with_twin(found[::-1], in_model=model, in_twin=twin)
    with pytest.raises(InvalidInput, match="calibrated by reference models"):
        compare_with_twin(found, in_model=dataclasses.replace(model, calibrated=True), in_twin=twin)


def test_nothing_of_a_secret_is_in_the_result(found):
    told = repr(compared(found, extract=True))
    for part in ("333", "3303", "call"):
        assert part not in told
