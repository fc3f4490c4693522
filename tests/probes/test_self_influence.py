"""Self-influence of whole models: what has no closed form, what is left alone, what is refused."""

from __future__ import annotations

from types import MethodType

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from remnant import self_influence
from remnant.errors import InvalidInput, UnsupportedModel
from remnant.gradients import closed_forms
from remnant.gradients.layers import known_layers
from remnant.models import small_resnet
from remnant.probes import highest_and_lowest
from remnant.probes.influence import reader

from .influence_by_hand import by_hand, closed_forms_only, cross_entropy, drifted

N = 5


class Written(nn.Module):
    """A model out of named parts and a forward pass."""

    def __init__(self, forward, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self._forward = forward

    def forward(self, *args, **named):
        return self._forward(self, *args, **named)


def numbers(*shape):
    return torch.randn(shape, dtype=torch.float64)


def tied():
    def forward(self, x):
        return self.head(torch.tanh(self.embed(x)).mean(1))

    embed, head = nn.Embedding(7, 4), nn.Linear(4, 7)
    head.weight = embed.weight
    return Written(forward, embed=embed, head=head), torch.randint(7, (N, 6))


def padded_and_tied():
    def forward(self, x):
        return self.head(torch.tanh(self.embed(x)).mean(1))

    embed, head = nn.Embedding(7, 4, padding_idx=0), nn.Linear(4, 7)
    head.weight = embed.weight
    return Written(forward, embed=embed, head=head), torch.randint(3, (N, 6))


def used_twice():
    def forward(self, x):
        return self.head(self.mix(torch.tanh(self.mix(x))))

    return Written(forward, mix=nn.Linear(4, 4), head=nn.Linear(4, 3)), numbers(N, 4)


def used_twice_once_without_gradient():
    def forward(self, x):
        with torch.no_grad():
            x = x + self.mix(x)
        return self.head(torch.tanh(self.mix(x)))

    return Written(forward, mix=nn.Linear(4, 4), head=nn.Linear(4, 3)), numbers(N, 4)


def under_two_names():
    one = nn.Linear(4, 4)
    return nn.Sequential(one, nn.Tanh(), one, nn.Linear(4, 3)), numbers(N, 4)


def used_outside():
    def forward(self, x):
        return self.head(torch.tanh(self.mix(x) @ self.mix.weight))

    return Written(forward, mix=nn.Linear(4, 6), head=nn.Linear(4, 3)), numbers(N, 4)


def never_called():
    def forward(self, x):
        return self.head(functional.linear(x, self.mix.weight, self.mix.bias))

    parts = {"mix": nn.Linear(4, 4), "head": nn.Linear(4, 3), "unused": nn.Linear(2, 2)}
    return Written(forward, **parts), numbers(N, 4)


def bare_parameters():
    def forward(self, x):
        return self.head(torch.tanh(self.first(x)) * self.scale + self.shift)

    scale, shift = (nn.Parameter(torch.randn(4)) for _ in range(2))
    parts = {"first": nn.Linear(4, 4), "head": nn.Linear(4, 3), "scale": scale, "shift": shift}
    return Written(forward, **parts), numbers(N, 4)


def detached():
    def forward(self, x):
        return self.head(x + self.mix(x).detach())

    return Written(forward, mix=nn.Linear(4, 4), head=nn.Linear(4, 3)), numbers(N, 4)


def weight_norm():
    first = parametrizations.weight_norm(nn.Linear(4, 5))
    return nn.Sequential(first, nn.Tanh(), nn.Linear(5, 3)), numbers(N, 4)


def spectral_norm():
    first = parametrizations.spectral_norm(nn.Conv2d(2, 4, 3))
    return nn.Sequential(first, nn.Flatten(), nn.Linear(16, 3)), numbers(N, 2, 4, 4)


def other_kinds():
    layers = nn.Conv3d(2, 3, 2), nn.PReLU(3), nn.ConvTranspose3d(3, 2, 2), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(54, 3)), numbers(N, 2, 3, 3, 3)


def recurrent():
    def forward(self, x):
        return self.head(self.mix(x)[0][:, -1])

    mix = nn.LSTM(4, 5, batch_first=True)
    return Written(forward, mix=mix, head=nn.Linear(5, 3)), numbers(N, 6, 4)


def attention():
    layer = nn.TransformerEncoderLayer(4, 2, dim_feedforward=6, dropout=0.3, batch_first=True)
    return Written(
        lambda self, x: self.head(self.layer(x).mean(1)), layer=layer, head=nn.Linear(4, 3)
    ), numbers(N, 6, 4)


def tokens_first():
    # As many tokens as examples: shapes alone do not tell which is which.
    def forward(self, x):
        return self.head(torch.tanh(self.mix(x.transpose(0, 1))).mean(0))

    return Written(forward, mix=nn.Linear(4, 5), head=nn.Linear(5, 3)), numbers(N, N, 4)


def places():
    def forward(self, x):
        return self.head(torch.tanh(x + self.place(torch.arange(N))).mean(1))

    return Written(forward, place=nn.Embedding(N, 4), head=nn.Linear(4, 3)), numbers(N, N, 4)


def sorts():
    def forward(self, x):
        order = x[:, 0].argsort()
        return self.head(torch.tanh(self.mix(x[order])))[order.argsort()]

    inputs = numbers(N, 4)
    inputs[:, 0] = torch.tensor([-2.0, 0.0, 1.0, -1.0, 2.0])  # the first and the last are in order
    return Written(forward, mix=nn.Linear(4, 4), head=nn.Linear(4, 3)), inputs


def mixes_the_batch():
    layers = nn.Conv2d(2, 4, 2), nn.BatchNorm2d(4, track_running_stats=False), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(16, 3)), numbers(N, 2, 3, 3)


def mixes_the_batch_unseen():
    def forward(self, x):
        return self.head(torch.tanh(self.mix(x)) + 0.1 * x.mean(0))

    return Written(forward, mix=nn.Linear(4, 4), head=nn.Linear(4, 3)), numbers(N, 4)


def looks_at_values():
    def forward(self, x):
        if x.abs().max() > 100.0:
            return self.head(x)
        return self.head(torch.tanh(self.mix(x) * self.scale))

    scale = nn.Parameter(torch.randn(4))
    return Written(forward, mix=nn.Linear(4, 4), head=nn.Linear(4, 3), scale=scale), numbers(N, 4)


def rescaled_embedding():
    embed = nn.Embedding(5, 4, max_norm=0.5)
    return nn.Sequential(embed, nn.Flatten(), nn.Linear(12, 3)), torch.randint(5, (N, 3))


def counted_embedding():
    embed = nn.Embedding(5, 4, scale_grad_by_freq=True)
    return nn.Sequential(embed, nn.Flatten(), nn.Linear(12, 3)), torch.randint(5, (N, 3))


def recomputed():
    def forward(self, x):
        return self.head(checkpoint(self.mix, x, use_reentrant=False))

    mix = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 4))
    return Written(forward, mix=mix, head=nn.Linear(4, 3)), numbers(N, 4)


def replaced_forward():
    first = nn.Linear(4, 4)
    first.forward = MethodType(lambda own, x: functional.linear(x * x, own.weight), first)
    return nn.Sequential(first, nn.Linear(4, 3)), numbers(N, 4)


@pytest.mark.parametrize(
    "make",
    [
        *(tied, padded_and_tied, used_twice, used_twice_once_without_gradient, under_two_names),
        *(used_outside, never_called, bare_parameters, detached, weight_norm, spectral_norm),
        *(other_kinds, recurrent, attention, tokens_first, places, sorts, mixes_the_batch),
        *(mixes_the_batch_unseen, looks_at_values, rescaled_embedding, counted_embedding),
        *(recomputed, replaced_forward),
    ],
)
@pytest.mark.parametrize("batch", [2, 100])
def test_whatever_has_no_closed_form_is_exact_all_the_same(make, batch):
    torch.manual_seed(0)
    model, inputs = make()
    model = model.double().train()
    labels = torch.arange(N) % 3
    states = drifted(model)
    found = self_influence(model, inputs, labels, checkpoints=states, batch=batch)
    np.testing.assert_allclose(found, by_hand(model, inputs, labels, states), rtol=1e-10)


def overwritten():
    layers = nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(6, 3)
    return nn.Sequential(*layers), numbers(N, 4)


def residual():
    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return self.head(x) + self.side(x)

    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
    return Written(forward, layers=layers, head=nn.Linear(4, 3), side=nn.Linear(4, 3)), numbers(
        N, 4
    )


def hooked():
    first = nn.Linear(4, 4)
    first.register_forward_pre_hook(lambda _, given: (given[0] * 2.0,))
    first.register_forward_hook(lambda _, given, made: made * 3.0)
    return nn.Sequential(first, nn.Tanh(), nn.Linear(4, 3)), numbers(N, 4)


def frozen():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Linear(4, 3))
    model[0].requires_grad_(False)
    model[2].weight.requires_grad_(False)
    model[3].bias.requires_grad_(False)
    return model, numbers(N, 4)


def resnet():
    return small_resnet((3, 8, 8), 3), numbers(N, 3, 8, 8)


def parallel():
    def forward(self, x):
        return self.head(torch.cat([self.one(x), self.two(x)], 1).relu_())

    parts = {"one": nn.Linear(4, 3), "two": nn.Linear(4, 2), "head": nn.Linear(5, 3)}
    return Written(forward, **parts), numbers(N, 4)


@pytest.mark.parametrize("make", [overwritten, residual, hooked, frozen, resnet, parallel])
@pytest.mark.parametrize("batch", [1, 2, 100])
def test_models_of_known_layers_take_one_pass(make, batch):
    torch.manual_seed(0)
    model, inputs = make()
    model = model.double().train()
    labels = torch.arange(N) % 3
    states = drifted(model)
    with closed_forms_only():
        found = self_influence(model, inputs, labels, checkpoints=states, batch=batch)
    np.testing.assert_allclose(found, by_hand(model, inputs, labels, states), rtol=1e-10)


def twice_for_some():
    def forward(self, x):
        made, some = torch.tanh(self.mix(x)), x[:, :1] > 0
        if some.any():
            made = torch.where(some, torch.tanh(self.mix(made)), made)
        return self.head(made)

    return Written(forward, mix=nn.Linear(4, 4), head=nn.Linear(4, 3))


def outside_for_some():
    def forward(self, x):
        made, some = torch.tanh(self.mix(x)), x[:, :1] > 0
        if some.any():
            made = torch.where(some, made @ self.mix.weight, made)
        return self.head(made)

    return Written(forward, mix=nn.Linear(4, 4), head=nn.Linear(4, 3))


@pytest.mark.parametrize("make", [twice_for_some, outside_for_some])
def test_what_only_some_examples_do_is_seen_in_their_batch(make):
    torch.manual_seed(0)
    model, inputs = make().double(), numbers(7, 4)
    inputs[:, 0] = torch.tensor([-1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0])
    labels, states = torch.arange(7) % 3, drifted(model)
    found = self_influence(model, inputs, labels, checkpoints=states, batch=2)
    np.testing.assert_allclose(found, by_hand(model, inputs, labels, states), rtol=1e-10)


def test_weights_cast_once_for_two_uses_are_seen_too():
    torch.manual_seed(0)
    inner = twice_for_some()

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return self.inner(x).float()

    model, inputs = Written(forward, inner=inner), torch.randn(7, 4)
    inputs[:, 0] = torch.tensor([-1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0])
    labels, states = torch.arange(7) % 3, drifted(model)
    found = self_influence(model, inputs, labels, checkpoints=states, batch=7, layers=["inner.mix"])
    names = {"inner.mix.weight", "inner.mix.bias"}
    expected = by_hand(model, inputs, labels, states, names=names)
    np.testing.assert_allclose(found, expected, rtol=0.02)


def test_layers_whose_gradient_is_not_that_of_the_form_are_not_known():
    plain = [nn.Linear(4, 4), nn.Embedding(5, 4), nn.BatchNorm1d(4)]
    model = nn.Sequential(*plain)
    names = [name for name, _ in model.named_parameters()]
    assert [layer.module for layer in known_layers(model, names)] == plain
    assert known_layers(model, ["2.bias"])[0].owns == {"bias": "2.bias"}
    replaced = nn.Linear(4, 4)
    replaced.forward = plain[0].forward
    odd = [
        *(nn.Embedding(5, 4, scale_grad_by_freq=True), nn.Conv3d(1, 1, 1), replaced),
        nn.BatchNorm1d(4, track_running_stats=False),
        *(parametrizations.weight_norm(nn.Linear(4, 4)), *under_two_names()[0][:3]),
    ]
    model = nn.Sequential(*odd)
    assert known_layers(model, [name for name, _ in model.named_parameters()]) == []


def test_only_what_has_no_closed_form_is_done_alone(monkeypatch):
    asked = []

    def note(ask, tensors, names, part, labels):
        asked.append(tuple(names))
        return vmapped(ask, tensors, names, part, labels)

    vmapped = reader.by_vmap
    monkeypatch.setattr(reader, "by_vmap", note)
    torch.manual_seed(0)
    model, inputs = bare_parameters()
    labels = torch.arange(N) % 3
    states = [(model.double().state_dict(), 1.0)]
    self_influence(model, inputs, labels, checkpoints=states)
    assert set(asked) == {("scale", "shift")}


def test_one_by_one_where_vmap_cannot(monkeypatch):
    calls = []
    loop = reader.one_by_one

    def note(ask, weights, part, labels):
        calls.append(len(labels))
        return loop(ask, weights, part, labels)

    monkeypatch.setattr(reader, "one_by_one", note)
    torch.manual_seed(0)
    model, inputs = recurrent()
    states = [(model.double().state_dict(), 1.0)]
    self_influence(model, inputs, torch.arange(N) % 3, checkpoints=states, batch=3)
    assert calls == [2, 3, 2], "two to learn from, then all of them"


def test_a_loss_and_named_inputs_of_ones_own():
    torch.manual_seed(0)
    model = Written(
        lambda self, left, right: {"made": self.one(left) * self.two(right)},
        one=nn.Linear(4, 2),
        two=nn.Linear(3, 2),
    ).double()
    inputs = {"left": numbers(N, 4), "right": numbers(N, 3)}
    labels = numbers(N, 2)

    def loss(outputs, wanted):
        return (outputs["made"] - wanted).abs().pow(1.5).sum(1)

    states = drifted(model, 3)
    with closed_forms_only():
        found = self_influence(model, inputs, labels, checkpoints=states, loss=loss, batch=2)
    np.testing.assert_allclose(found, by_hand(model, inputs, labels, states, loss), rtol=1e-10)


def test_a_loss_that_looks_at_the_other_examples_is_asked_about_each_alone():
    torch.manual_seed(0)
    model, inputs = nn.Linear(4, 3).double(), numbers(N, 4)

    def loss(outputs, labels):
        return cross_entropy(outputs, labels) / len(labels)

    labels = torch.arange(N) % 3
    states = drifted(model)
    found = self_influence(model, inputs, labels, checkpoints=states, loss=loss)
    np.testing.assert_allclose(found, by_hand(model, inputs, labels, states), rtol=1e-10)


@pytest.mark.parametrize(
    ("layers", "names"),
    [
        (["1"], {"1.weight", "1.bias"}),
        (["0.weight"], {"0.weight"}),
        (["2", "0.bias"], {"2.0.weight", "2.0.bias", "0.bias"}),
    ],
)
def test_layers_restrict_the_gradient(layers, names):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 5), nn.Sequential(nn.Linear(5, 3))).double()
    inputs, labels = numbers(N, 4), torch.arange(N) % 3
    states = drifted(model)
    with closed_forms_only():
        found = self_influence(model, inputs, labels, checkpoints=states, layers=layers)
    expected = by_hand(model, inputs, labels, states, names=names)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_a_tied_layer_is_found_by_either_name():
    torch.manual_seed(0)
    model, inputs = tied()
    labels, states = torch.arange(N) % 3, drifted(model.double())
    for name in ("embed", "head.weight"):
        found = self_influence(model, inputs, labels, checkpoints=states, layers=[name])
        expected = by_hand(model, inputs, labels, states, names={"embed.weight"})
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("make", [resnet, recurrent, used_twice, rescaled_embedding, frozen])
@pytest.mark.parametrize("fails", [False, True])
def test_the_model_is_left_as_it_was(make, fails):
    torch.manual_seed(0)
    model, inputs = make()
    model = model.double().train()
    next(model.children()).eval()
    parameters = list(model.parameters())
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    asks = [parameter.requires_grad for parameter in parameters]
    states = drifted(model)
    kept = [{name: tensor.clone() for name, tensor in state.items()} for state, _ in states]

    def loss(outputs, labels):
        return cross_entropy(outputs, labels).mean() if fails else cross_entropy(outputs, labels)

    def ask():
        return self_influence(model, inputs, torch.arange(N) % 3, checkpoints=states, loss=loss)

    if fails:
        with pytest.raises(InvalidInput):
            ask()
    else:
        with torch.no_grad():
            ask()
        assert torch.is_grad_enabled()
    assert all(one is other for one, other in zip(parameters, model.parameters(), strict=True))
    assert [module.training for module in model.modules()] == modes
    assert [parameter.requires_grad for parameter in parameters] == asks
    assert all(parameter.grad is None for parameter in parameters)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    for state, (given, _) in zip(kept, states, strict=True):
        assert all(torch.equal(tensor, given[name]) for name, tensor in state.items())
    for module in model.modules():
        assert len(module._forward_hooks) == 0
        if isinstance(module, nn.RNNBase):
            flat = module._flat_weights
            assert all(one is other for one, other in zip(flat, module.parameters(), strict=True))


def test_a_compiled_model_is_the_one_that_was_compiled():
    torch.manual_seed(0)
    model, inputs = residual()
    model, labels = model.double(), torch.arange(N) % 3
    compiled = torch.compile(model, backend="eager")
    expected = self_influence(model, inputs, labels, checkpoints=[(model.state_dict(), 1.0)])
    states = [(compiled.state_dict(), 1.0)]
    np.testing.assert_array_equal(
        self_influence(compiled, inputs, labels, checkpoints=states), expected
    )


class Largest(TorchDispatchMode):
    """Notes the largest tensor that any operation makes."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        found = made if isinstance(made, tuple | list) else (made,)
        sizes = [
            one.untyped_storage().size() // 4 for one in found if isinstance(one, torch.Tensor)
        ]
        self.numbers = max([self.numbers, *sizes])
        return made


@pytest.mark.parametrize("tokens", [(), (3,), (40,)])
def test_gradients_of_single_examples_are_never_there_all_at_once(tokens, monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(closed_forms, "_CPU_BYTES", 1 << 18)
    model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 100))
    model = Written(lambda self, x: self.layers(x).flatten(1, -2).mean(1), layers=model)
    inputs, labels = torch.randn(64, *(tokens or (1,)), 100), torch.arange(64) % 100
    with Largest() as most:
        self_influence(model, inputs, labels, checkpoints=[(model.state_dict(), 1.0)])
    activations = 64 * 200 * (tokens or (1,))[0]
    assert most.numbers <= max(2 * activations, (1 << 18) // 4, 200 * 100)
    assert most.numbers < 64 * 200 * 100


def test_it_runs_in_inference_mode():
    torch.manual_seed(0)
    model, inputs = bare_parameters()
    model, labels = model.double(), torch.arange(N) % 3
    states = [(model.state_dict(), 1.0)]
    expected = self_influence(model, inputs, labels, checkpoints=states)
    with torch.inference_mode():
        made, wanted = inputs + 0.0, labels + 0
        found = self_influence(model, made, wanted, checkpoints=states)
        assert torch.is_inference_mode_enabled()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.cuda
@pytest.mark.parametrize("make", [resnet, recurrent, tied, attention, bare_parameters])
def test_a_gpu_gives_the_same(make):
    torch.manual_seed(0)
    model, inputs = make()
    model, labels = model.double(), torch.arange(N) % 3
    states = drifted(model)
    expected = self_influence(model, inputs, labels, checkpoints=states)
    found = self_influence(model.cuda(), inputs, labels, checkpoints=states, batch=2)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_order_of_examples_and_checkpoints_is_that_given():
    torch.manual_seed(0)
    model, inputs = residual()
    model = model.double()
    labels, states = torch.arange(N) % 3, drifted(model, 3)
    whole = self_influence(model, inputs, labels, checkpoints=states)
    order = torch.tensor([3, 0, 4, 2, 1])
    turned = self_influence(model, inputs[order], labels[order], checkpoints=states[::-1])
    np.testing.assert_allclose(turned, whole[order], rtol=1e-12)
    parts = [self_influence(model, inputs, labels, checkpoints=[one]) for one in states]
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-12)
    assert whole.dtype == np.float64


@pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require gradients:UserWarning")
@pytest.mark.parametrize("way", ["each alone", "sample-wise"])
def test_captum_gives_the_same(way):
    from captum.influence import TracInCP

    torch.manual_seed(0)
    layers = nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    model = nn.Sequential(*layers, nn.Linear(36, 3)).double().eval()
    inputs, labels = numbers(9, 2, 6, 6), torch.arange(9) % 3
    states = drifted(model, 3)
    found = self_influence(model, inputs, labels, checkpoints=states)

    def load(net, place):
        net.load_state_dict(states[place][0])
        return states[place][1]

    theirs = TracInCP(
        model,
        torch.utils.data.TensorDataset(inputs, labels),
        checkpoints=[0, 1, 2],
        checkpoints_load_func=load,
        loss_fn=nn.CrossEntropyLoss(reduction="sum" if way == "sample-wise" else "none"),
        batch_size=4,
        sample_wise_grads_per_batch=way == "sample-wise",
    )
    np.testing.assert_allclose(found, theirs.self_influence().numpy(), rtol=1e-10)


def test_captums_fast_path_is_the_last_layer_without_its_bias():
    from captum.influence import TracInCPFast

    torch.manual_seed(0)
    model = Written(
        lambda self, x: self.head(torch.tanh(self.first(x))),
        first=nn.Linear(4, 5),
        head=nn.Linear(5, 3),
    ).double()
    inputs, labels = numbers(9, 4), torch.arange(9) % 3
    states = drifted(model, 1, rate=0.5)
    found = self_influence(model, inputs, labels, checkpoints=states, layers=["head.weight"])

    def load(net, place):
        net.load_state_dict(states[place][0])
        return states[place][1]

    theirs = TracInCPFast(
        model,
        model.head,
        torch.utils.data.TensorDataset(inputs, labels),
        checkpoints=[0],
        checkpoints_load_func=load,
        loss_fn=nn.CrossEntropyLoss(reduction="sum"),
        batch_size=4,
    )
    np.testing.assert_allclose(found, theirs.self_influence().numpy(), rtol=1e-10)


def asked(**changes):
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    state = {name: torch.randn(tensor.shape) for name, tensor in model.state_dict().items()}
    given = {
        "model": model,
        "inputs": torch.randn(N, 4),
        "labels": torch.arange(N) % 3,
        "checkpoints": [(state, 0.1)],
    }
    return given | {
        name: change(given) if callable(change) and name != "loss" else change
        for name, change in changes.items()
    }


def without(name):
    return lambda given: [
        ({key: one for key, one in given["checkpoints"][0][0].items() if key != name}, 0.1)
    ]


def rate(number):
    return lambda given: [(given["checkpoints"][0][0], number)]


def with_weight(tensor):
    return lambda given: [({**given["checkpoints"][0][0], "0.weight": tensor}, 0.1)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"inputs": torch.zeros(0, 4), "labels": []}, r"\[0\] examples"),
        ({"inputs": torch.tensor(1.0)}, "one number"),
        ({"inputs": "text"}, "not a tensor"),
        ({"inputs": torch.zeros(N, 3)}, r"cannot take samples of shape inputs \(3,\)"),
        ({"labels": [0, 1]}, r"labels of shape \(2,\) for 5 examples"),
        ({"labels": torch.zeros(N, 1).long()}, r"labels of shape \(5, 1\)"),
        ({"labels": torch.zeros(N)}, "not whole numbers"),
        ({"labels": [0, 1, 2, 3, 0]}, "labels reach from 0 to 3, and the model has 3 outputs"),
        ({"labels": [0, 1, -1, 2, 0]}, "labels reach from -1 to 2"),
        ({"checkpoints": []}, "checkpoints has no"),
        ({"checkpoints": {}}, "checkpoints has no"),
        ({"checkpoints": [3]}, "checkpoint 0 is not a pair"),
        ({"checkpoints": without("2.bias")}, r"does not fit the model: it has no 2\.bias"),
        (
            {"checkpoints": lambda given: [({**given["checkpoints"][0][0], "9.x": 0}, 1.0)]},
            r"the model has no 9\.x",
        ),
        ({"checkpoints": with_weight(torch.zeros(2, 2))}, r"0\.weight is \(2, 2\), not \(5, 4\)"),
        ({"checkpoints": with_weight("no")}, r"0\.weight is str, not"),
        ({"checkpoints": rate(-0.1)}, "learning rate -0.1 of checkpoint 0"),
        ({"checkpoints": rate(float("nan"))}, "learning rate nan"),
        ({"checkpoints": rate(float("inf"))}, "learning rate inf"),
        ({"checkpoints": rate("fast")}, "learning rate 'fast'"),
        (
            {"checkpoints": with_weight(torch.full((5, 4), float("nan")))},
            "gradient of example 0 is NaN or infinite at checkpoint 0",
        ),
        ({"layers": ["7"]}, "no parameters under '7'"),
        ({"layers": ["1"]}, "no parameters under '1'"),
        ({"layers": "0"}, "not a list of names"),
        ({"layers": []}, "not a list of names"),
        ({"layers": 3}, "layers=3 is not a list of names"),
        ({"layers": [0]}, "not a list of names"),
        ({"layers": [""]}, "not a list of names"),
        ({"batch": 0}, "batch=0"),
        ({"loss": lambda outputs, _: outputs.mean()}, r"gives \(\) for 1 examples"),
        ({"loss": lambda outputs, _: outputs}, r"gives \(1, 3\) for 1 examples"),
        ({"loss": lambda outputs, _: 1.0}, "gives float for 1 examples"),
        ({"loss": lambda outputs, _: outputs.no}, "the loss cannot take the outputs"),
        ({"loss": lambda outputs, _: outputs.detach().sum(1)}, "reached by the loss's gradient"),
        ({"loss": lambda outputs, _: torch.zeros(len(outputs))}, "reached by the loss's gradient"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(changes, said):
    torch.manual_seed(0)
    with pytest.raises(InvalidInput, match=said):
        self_influence(**asked(**changes))


def test_a_model_that_nothing_can_be_asked_of_is_refused():
    inputs, labels = torch.randn(N, 3), torch.arange(N) % 3
    for other in (None, lambda x: x):
        with pytest.raises(UnsupportedModel, match="not a torch module"):
            self_influence(other, inputs, labels, checkpoints=[({}, 1.0)])
    with pytest.raises(InvalidInput, match="no parameters"):
        self_influence(nn.ReLU(), inputs, labels, checkpoints=[({}, 1.0)])
    model = nn.Linear(3, 3).requires_grad_(False)
    with pytest.raises(InvalidInput, match="no parameter of the model is trainable"):
        self_influence(model, inputs, labels, checkpoints=[(model.state_dict(), 1.0)])
    model = nn.Linear(3, 1)
    with pytest.raises(InvalidInput, match=r"outputs of shape \(1, 1\)"):
        self_influence(model, inputs, labels, checkpoints=[(model.state_dict(), 1.0)])
    model, inputs = never_called()
    states = [(model.state_dict(), 1.0)]
    with pytest.raises(InvalidInput, match="no trainable parameter of unused is reached"):
        self_influence(model, inputs, labels, checkpoints=states, layers=["unused"])


def test_a_gradient_that_is_not_finite_is_said_for_its_example():
    torch.manual_seed(0)
    model, inputs = nn.Linear(4, 3), torch.randn(N, 4)
    inputs[3] = torch.tensor([3e38, 3e38, 0.0, 0.0])
    still = {"weight": torch.zeros(3, 4), "bias": torch.zeros(3)}
    moved = {"weight": torch.ones(3, 4), "bias": torch.zeros(3)}
    states = [(still, 1.0), (moved, 1.0)]
    with pytest.raises(InvalidInput, match="example 3 is NaN or infinite at checkpoint 1"):
        self_influence(model, inputs, torch.arange(N) % 3, checkpoints=states)


def test_parts_computed_anew_by_a_second_backward_pass_are_refused():
    def forward(self, x):
        return self.head(checkpoint(self.mix, x, use_reentrant=True))

    model = Written(forward, first=nn.Linear(4, 4), mix=nn.Linear(4, 4), head=nn.Linear(4, 3))
    model = nn.Sequential(nn.Linear(4, 4), model)
    states = [(model.state_dict(), 1.0)]
    with pytest.raises(InvalidInput, match="use_reentrant=True"):
        self_influence(model, torch.randn(N, 4), torch.arange(N) % 3, checkpoints=states)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_scripted_models_are_refused():
    model = torch.jit.script(nn.Sequential(nn.Linear(4, 3)))
    states = [(model.state_dict(), 1.0)]
    with pytest.raises(UnsupportedModel, match="TorchScript"):
        self_influence(model, torch.randn(N, 4), torch.arange(N) % 3, checkpoints=states)


def test_highest_and_lowest():
    scores = np.array([0.5, 3.0, 0.1, 3.0, 0.2, 0.1])
    high, low = highest_and_lowest(scores, 2)
    np.testing.assert_array_equal(high, [1, 3])
    np.testing.assert_array_equal(low, [2, 5])
    for bad in (0, 4, True, 1.0):
        with pytest.raises(InvalidInput, match="k="):
            highest_and_lowest(scores, bad)
    for bad in ([1.0, np.nan], ["a", "b"], [[1.0, 2.0]]):
        with pytest.raises(InvalidInput, match="finite"):
            highest_and_lowest(bad, 1)
