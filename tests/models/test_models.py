"""The papers' architectures: their sizes by hand, their options, and that every part learns."""

from __future__ import annotations

import itertools
from importlib import import_module

import pytest
import torch
from torch import nn

from remnant.errors import PlanError
from remnant.models import CATALOGUE, RECOGNISERS, SEQUENCE_MODELS, TRANSLATORS, model_maker
from remnant.models.densenet import Bottleneck
from remnant.models.resnet import PreActivationBlock

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)


def dense(*widths):
    return sum(i * o + o for i, o in itertools.pairwise(widths))


def conv(inputs, outputs, *, size=3, bias=True):
    return size * size * inputs * outputs + (outputs if bias else 0)


def block(inputs, outputs, *, shortcut=True):
    """Two norms (scale and shift), two convolutions, and a 1 x 1 beside them."""
    inner = conv(inputs, outputs, bias=False) + conv(outputs, outputs, bias=False)
    beside = conv(inputs, outputs, size=1, bias=False) if shortcut else 0
    return 2 * inputs + 2 * outputs + inner + beside


def residual(channels, body, width):
    return conv(channels, 16, bias=False) + body + 2 * width + dense(width, 10)


def bottlenecks(width, *, growth=12, layers=16):
    """A dense block: layer by layer one 1 x 1 and one 3 x 3 convolution, each after its norm."""
    inner = 4 * growth
    return sum(
        2 * inputs + conv(inputs, inner, size=1, bias=False)
        + 2 * inner + conv(inner, growth, bias=False)
        for inputs in range(width, width + layers * growth, growth)
    )  # fmt: skip


def densely_connected(channels):
    """Blocks begin with 24, 108 and 150 channels and add 192 each; transitions halve them."""
    halved = [2 * wide + conv(wide, wide // 2, size=1, bias=False) for wide in (216, 300)]
    blocks = sum(bottlenecks(width) for width in (24, 108, 150))
    return conv(channels, 24, bias=False) + blocks + sum(halved) + 2 * 342 + dense(342, 10)


SMALL_BODY = block(16, 16, shortcut=False) + block(16, 32) + block(32, 64)
WIDE_BODY = (
    block(16, 64)
    + block(64, 64, shortcut=False)
    + block(64, 128)
    + block(128, 128, shortcut=False)
    + block(128, 256)
    + block(256, 256, shortcut=False)
)
COUNTS = {
    ("logistic", MNIST): 784 * 10 + 10,
    ("logistic", CIFAR): 3072 * 10 + 10,
    ("mlp1", MNIST): 567_434,
    ("mlp1", CIFAR): dense(3072, 512, 256, 128, 10),
    # Two unpadded convolutions leave 24 (28) pixels a side, the pooling half of that.
    ("cnn1", MNIST): conv(1, 32) + conv(32, 64) + dense(64 * 12 * 12, 128, 10),
    ("cnn1", CIFAR): conv(3, 32) + conv(32, 64) + dense(64 * 14 * 14, 128, 10),
    # Padded convolutions keep the size; two poolings leave a quarter of each side.
    ("cnn2", MNIST): conv(1, 32) + conv(32, 32) + conv(32, 64) + conv(64, 64)
    + dense(64 * 7 * 7, 1024, 10),
    ("cnn2", CIFAR): conv(3, 32) + conv(32, 32) + conv(32, 64) + conv(64, 64)
    + dense(64 * 8 * 8, 1024, 10),
    ("small_resnet", MNIST): residual(1, SMALL_BODY, 64),
    ("small_resnet", CIFAR): residual(3, SMALL_BODY, 64),
    ("wrn16_4", MNIST): residual(1, WIDE_BODY, 256),
    ("wrn16_4", CIFAR): residual(3, WIDE_BODY, 256),
    ("densenet100", MNIST): densely_connected(1),
    ("densenet100", CIFAR): densely_connected(3),
}  # fmt: skip
SMALLEST = {"cnn1": 6, "cnn2": 4, "small_resnet": 4, "wrn16_4": 4, "densenet100": 4}


def parameters(model):
    return sum(p.numel() for p in model.parameters())


def layers(model, kind):
    return [layer for layer in model.modules() if isinstance(layer, kind)]


@pytest.mark.parametrize(("name", "shape"), COUNTS)
def test_parameters_are_as_many_as_by_hand(name, shape):
    model = model_maker(name, shape=shape, classes=10)()
    assert parameters(model) == COUNTS[name, shape]
    assert model.eval()(torch.zeros(2, *shape)).shape == (2, 10)


def test_the_literature_counts_as_we_do():
    assert {name for name, _ in COUNTS} == set(CATALOGUE)
    assert dense(784, 512, 256, 128, 10) == 567_434
    assert abs(COUNTS["wrn16_4", CIFAR] - 2.75e6) < 5e3
    wide = model_maker("wrn16_4", shape=CIFAR, classes=10)()
    assert len(layers(wide, nn.Conv2d)) == 16
    assert COUNTS["densenet100", CIFAR] == 769_162
    dense_net = model_maker("densenet100", shape=CIFAR, classes=10)()
    assert len(layers(dense_net, (nn.Conv2d, nn.Linear))) == 100


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("shape", [(1, 8, 8), (2, 7, 9), (3, 6, 11)])
def test_outputs_follow_the_classes_and_any_shape_of_image(name, shape):
    model = model_maker(name, shape=shape, classes=4)().eval()
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(5, *shape, generator=generator)
    outputs = model(images)
    assert outputs.shape == (5, 4)
    assert outputs.dtype == torch.float32
    torch.testing.assert_close(model(images[2:3]), outputs[2:3])  # each row on its own
    assert (outputs[0] != outputs[1]).any()


EVERY = {**CATALOGUE, **SEQUENCE_MODELS, **TRANSLATORS, **RECOGNISERS}


@pytest.mark.parametrize("name", EVERY)
def test_the_catalogue_knows_every_option_and_its_default(name):
    module, _, function = EVERY[name].place.partition(":")
    make = getattr(import_module(f"remnant.models.{module}"), function)
    assert EVERY[name].options == (make.__kwdefaults__ or {})


@pytest.mark.parametrize("name", CATALOGUE)
def test_one_step_reaches_every_parameter(name):
    torch.manual_seed(0)
    for options in ({}, {"dropout": 0.3}, {"batch_norm": True}):
        if set(options) - set(CATALOGUE[name].options):
            continue
        model = model_maker(name, shape=(1, 8, 8), classes=5, **options)().train()
        images, labels = torch.rand(16, 1, 8, 8), torch.arange(16) % 5
        before = {n: p.detach().clone() for n, p in model.named_parameters()}
        rule = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        for key, parameter in model.named_parameters():
            assert parameter.grad is not None, key
            assert parameter.grad.isfinite().all(), key
            if key.endswith("weight") or "batch_norm" not in options:  # which cancels a bias
                assert (parameter.grad != 0).any(), key
        rule.step()
        after = dict(model.named_parameters())
        assert all((before[n] != after[n]).any() for n in before if n.endswith("weight"))
        model.eval()
        assert model(images).isfinite().all()


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        ("mlp1", {"dropout": (0.3, 3)}),
        ("cnn1", {"dropout": (0.2, 1), "conv_dropout": (0.5, 2)}),
        ("cnn2", {"dropout": (0.2, 1), "conv_dropout": (0.5, 4)}),
        ("small_resnet", {"dropout": (0.3, 3)}),
        ("wrn16_4", {"dropout": (0.3, 6)}),
        ("densenet100", {"dropout": (0.2, 98)}),
    ],
)
def test_dropout_stands_where_it_is_asked_for(name, rates):
    def dropped(**options):
        model = model_maker(name, shape=(1, 8, 8), classes=5, **options)()
        return sorted(layer.p for layer in layers(model, nn.Dropout))

    assert dropped() == []
    every = []
    for option, (rate, places) in rates.items():
        assert dropped(**{option: rate}) == [rate] * places
        every += [rate] * places
    assert dropped(**{option: rate for option, (rate, _) in rates.items()}) == sorted(every)


@pytest.mark.parametrize(("name", "places"), [("mlp1", 3), ("cnn1", 2), ("cnn2", 4)])
def test_batch_norm_stands_where_it_is_asked_for(name, places):
    plain, normed = (
        model_maker(name, shape=(1, 8, 8), classes=5, batch_norm=on)() for on in (False, True)
    )
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d)
    assert layers(plain, kinds) == []
    norms = layers(normed, kinds)
    # Keras's momentum of .99 is torch's .01.
    assert [(norm.momentum, norm.eps) for norm in norms] == [(0.01, 1e-3)] * places
    widths = sum(2 * norm.num_features for norm in norms)
    assert parameters(normed) == parameters(plain) + widths
    order = [type(layer) for layer in normed]
    for norm in (index for index, kind in enumerate(order) if kind in kinds):
        assert order[norm - 1] in (nn.Linear, nn.Conv2d)
        assert order[norm + 1] is nn.ReLU


@pytest.mark.parametrize(("inputs", "outputs", "stride"), [(4, 4, 1), (4, 6, 1), (4, 4, 2)])
def test_a_block_normalises_and_activates_before_it_convolves(inputs, outputs, stride):
    torch.manual_seed(0)
    made = PreActivationBlock(inputs, outputs, stride, dropout=0.5).eval()
    for norm in (made.norm1, made.norm2):
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        nn.init.normal_(norm.running_mean)
    images = torch.randn(3, inputs, 8, 8)

    def activated(norm, values):
        centred = values - norm.running_mean[:, None, None]
        scaled = centred / (norm.running_var + norm.eps).sqrt()[:, None, None]
        return (scaled * norm.weight[:, None, None] + norm.bias[:, None, None]).clamp(min=0)

    first = activated(made.norm1, images)
    inner = nn.functional.conv2d(first, made.conv1.weight, stride=stride, padding=1)
    inner = nn.functional.conv2d(activated(made.norm2, inner), made.conv2.weight, padding=1)
    if (inputs, stride) == (outputs, 1):
        beside = images
    else:
        beside = nn.functional.conv2d(first, made.shortcut.weight, stride=stride)
    torch.testing.assert_close(made(images), beside + inner, rtol=1e-4, atol=1e-5)


def test_a_bottleneck_keeps_its_inputs_and_adds_to_them():
    torch.manual_seed(0)
    made = Bottleneck(5, growth=3, dropout=0.0).eval()
    images = torch.randn(2, 5, 6, 6)
    norm = 1 / (1 + 1e-5) ** 0.5
    inner = nn.functional.conv2d((images * norm).clamp(min=0), made.inner[2].weight)
    inner = nn.functional.conv2d((inner * norm).clamp(min=0), made.inner[5].weight, padding=1)
    found = made(images)
    assert torch.equal(found[:, :5], images)
    torch.testing.assert_close(found[:, 5:], inner, rtol=1e-4, atol=1e-5)


def test_each_call_makes_a_new_model():
    make = model_maker("mlp1", shape=(1, 8, 8), classes=5)
    one, other = make(), make()
    assert (one[1].weight != other[1].weight).any()
    torch.manual_seed(3)
    one = make()
    torch.manual_seed(3)
    assert torch.equal(one[1].weight, make()[1].weight)


def test_an_unknown_name_is_answered_with_the_known():
    with pytest.raises(PlanError, match="model='vgg' is not one of logistic, mlp1, cnn1, cnn2, "):
        model_maker("vgg", shape=MNIST, classes=10)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        (
            "mlp1",
            {"dropuot": 0.1, "wide": 3},
            "has no option dropuot, wide.*width, dropout, batch_norm",
        ),
        ("logistic", {"dropout": 0.1}, "logistic has no option dropout. It has: none"),
        ("wrn16_4", {"batch_norm": True}, "wrn16_4 has no option batch_norm. It has: dropout"),
    ],
)
def test_an_unknown_option_is_answered_with_the_known(name, options, words):
    with pytest.raises(PlanError, match=words):
        model_maker(name, shape=MNIST, classes=10, **options)


@pytest.mark.parametrize("name", SMALLEST)
def test_images_too_small_are_refused_and_the_smallest_work(name):
    least = SMALLEST[name]
    for shape in [(1, least - 1, 9), (1, 9, least - 1), (64,), (9, 9)]:
        with pytest.raises(PlanError, match=f"{name} needs images of at least {least} pixels"):
            model_maker(name, shape=shape, classes=10)
    model = model_maker(name, shape=(1, least, least), classes=10)().eval()
    assert model(torch.zeros(1, 1, least, least)).shape == (1, 10)


@pytest.mark.parametrize("name", ["logistic", "mlp1"])
def test_dense_models_take_any_shape(name):
    assert model_maker(name, shape=(20,), classes=3)()(torch.zeros(2, 20)).shape == (2, 3)


def test_wider_and_deeper_models_have_the_units_they_say():
    half = model_maker("mlp1", shape=(1, 8, 8), classes=5, width=0.5)()
    assert [m.out_features for m in half if isinstance(m, nn.Linear)] == [256, 128, 64, 5]
    deep = model_maker("small_resnet", shape=(3, 8, 8), classes=5, blocks=3, width=2)()
    assert (len(deep.blocks), deep.head.in_features) == (9, 128)
