"""The written-out recurrence against its definition in plain operations."""

import pytest
import torch
from torch.func import grad, vmap

from remnant.errors import UnsupportedModel
from remnant.models.recurrent_scan import gru_scan, gru_steps, lstm_scan, lstm_steps

TIME, BATCH, UNITS, MEMBERS = 5, 3, 4, 2
KINDS = {"lstm": (lstm_scan, lstm_steps, 4, False), "gru": (gru_scan, gru_steps, 3, True)}


@pytest.fixture(params=sorted(KINDS))
def kind(request):
    return KINDS[request.param]


def drawn(gates, biased, *lead, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)

    def some(*shape):
        made = torch.randn(*lead, *shape, generator=generator, dtype=torch.float64)
        return made.to(dtype).requires_grad_()

    found = [some(TIME, BATCH, gates * UNITS), some(gates * UNITS, UNITS)]
    return [*found, some(gates * UNITS)] if biased else found


def defined(steps, given):
    return torch.stack(steps(*given))


def test_values_and_gradients_are_those_of_the_definition(kind):
    scan, steps, gates, biased = kind
    given = drawn(gates, biased)
    wanted, found = defined(steps, given), scan(*given)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-14)
    weights = torch.randn(wanted.shape, dtype=torch.float64)
    for one, two in zip(
        torch.autograd.grad((found * weights).sum(), given),
        torch.autograd.grad((wanted * weights).sum(), given),
        strict=True,
    ):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-13)


def test_gradients_are_those_of_finite_differences(kind):
    scan, _, gates, biased = kind
    assert torch.autograd.gradcheck(scan, drawn(gates, biased, seed=1))


def test_one_time_is_enough(kind):
    scan, steps, gates, biased = kind
    first, *rest = drawn(gates, biased)
    given = [first[:1], *rest]
    torch.testing.assert_close(scan(*given), defined(steps, given))
    by_inputs, by_weight = torch.autograd.grad(scan(*given).sum(), [first, rest[0]])
    assert by_inputs[0].abs().sum() > 0
    assert by_weight.abs().sum() == 0  # what comes before the first time is zero


@pytest.mark.parametrize("shared", [None, 0, 1])
def test_members_at_once_are_members_one_by_one(kind, shared):
    scan, steps, gates, biased = kind
    given = drawn(gates, biased, MEMBERS)
    dims = [None if place == shared else 0 for place in range(len(given))]
    taken = [one[0] if dim is None else one for one, dim in zip(given, dims, strict=True)]
    found = vmap(scan, in_dims=tuple(dims))(*taken)
    wanted = torch.stack(
        [
            defined(steps, [t if d is None else t[m] for t, d in zip(taken, dims, strict=True)])
            for m in range(MEMBERS)
        ]
    )
    torch.testing.assert_close(found, wanted)
    weights = torch.randn(wanted.shape, dtype=torch.float64)
    for one, two in zip(
        torch.autograd.grad((found * weights).sum(), given),
        torch.autograd.grad((wanted * weights).sum(), given),
        strict=True,
    ):
        torch.testing.assert_close(one, two)


def test_members_may_lie_along_any_axis(kind):
    scan, _, gates, biased = kind
    given = drawn(gates, biased, MEMBERS)
    wanted = vmap(scan)(*given)
    moved = [given[0].movedim(0, 2), given[1].movedim(0, 1), *given[2:]]
    found = vmap(scan, in_dims=(2, 1, *[0] * len(given[2:])))(*moved)
    torch.testing.assert_close(found, wanted)


def test_gradients_of_each_example_are_those_of_each_alone(kind):
    """``vmap`` of ``grad``, members and examples at once."""
    scan, _, gates, biased = kind
    given = [one.detach() for one in drawn(gates, biased, MEMBERS)]

    def loss(weight, inputs, *rest):
        return scan(inputs[:, None], weight, *rest).square().sum()

    per_member = [0] * len(given[2:])
    by_example = vmap(grad(loss), in_dims=(None, 1, *[None] * len(per_member)))
    found = vmap(by_example)(given[1], given[0], *given[2:])
    assert found.shape == (MEMBERS, BATCH, gates * UNITS, UNITS)
    for m in range(MEMBERS):
        for b in range(BATCH):
            rest = [one[m] for one in given[2:]]
            wanted = grad(loss)(given[1][m], given[0][m][:, b], *rest)
            torch.testing.assert_close(found[m, b], wanted)


def test_types_that_are_cast_on_the_way_take_the_definition(kind):
    scan, _, gates, biased = kind
    given = drawn(gates, biased, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = scan(*given)
    wanted = scan(*given)
    torch.testing.assert_close(found.float(), wanted, rtol=0.1, atol=0.1)
    assert not torch.equal(found.float(), wanted)
    torch.autograd.grad(found.float().sum(), given)


def test_there_is_no_gradient_of_the_gradient(kind):
    scan, _, gates, biased = kind
    given = drawn(gates, biased)
    first = torch.autograd.grad(scan(*given).sum(), given[1], create_graph=True)[0]
    with pytest.raises(UnsupportedModel, match="that gradient has none"):
        torch.autograd.grad(first.sum(), given[1])
