"""One pass gives what the measures and ``hidden_states`` give, and asks once about each example."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.measures import cross_entropy, logit_gap
from remnant.models.catalogue import model_maker
from remnant.probes import hidden_states
from remnant.probes.one_pass import check_layer, one_pass

IMAGES = torch.rand(23, 1, 8, 8, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(23) % 4


def made(name="cnn1", **options):
    torch.manual_seed(0)
    return model_maker(name, shape=(1, 8, 8), classes=4, **options)()


class Tokens(nn.Module):
    """Says which token comes next; a padded place changes nothing before it."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(7, 5), nn.Linear(5, 7)
        self.widths = []

    def forward(self, input_ids, attention_mask):
        self.widths.append(input_ids.shape[1])
        states = self.embed(input_ids).cumsum(dim=1) * attention_mask[..., None]
        return {"logits": self.head(states)}


@pytest.mark.parametrize("batch", [1, 7, 256])
def test_it_agrees_with_the_measures_and_with_hidden_states(batch):
    model = made(dropout=0.5, batch_norm=True)
    model.train()
    before = copy.deepcopy(model.state_dict())
    found = one_pass(model, IMAGES, LABELS, layers=["last", "0"], batch=batch)
    assert model.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])
    logits = copy.deepcopy(model).eval()(IMAGES).detach().double().numpy()
    np.testing.assert_allclose(found.losses, cross_entropy(logits, LABELS), rtol=1e-5)
    np.testing.assert_allclose(found.logit_gaps, logit_gap(logits, LABELS), atol=1e-6)
    np.testing.assert_array_equal(found.predicted, logits.argmax(1))
    last, first = found.hidden
    torch.testing.assert_close(last, hidden_states(model, IMAGES))
    torch.testing.assert_close(first, hidden_states(model, IMAGES, layer="0"))
    assert found.layers == ("entering 11", "0")
    assert found.outputs == 4


def test_every_example_goes_through_once():
    model, asked = made(), []
    model.register_forward_pre_hook(lambda _, given: asked.append(len(given[0])))
    one_pass(model, IMAGES, LABELS, batch=10)
    assert asked == [10, 10, 3]


def test_a_loss_that_rounds_to_nothing_in_float32_is_kept():
    model = nn.Linear(2, 2, bias=False)
    nn.init.eye_(model.weight)
    found = one_pass(model, torch.tensor([[60.0, 0.0], [0.0, 900.0]]), torch.tensor([0, 0]))
    np.testing.assert_allclose(found.losses, [np.exp(-60.0), 900.0], rtol=1e-12)


def test_sequences_are_read_at_the_last_token_and_padding_is_cut_off():
    torch.manual_seed(0)
    model = Tokens()
    ids = torch.randint(1, 7, (6, 9))
    lengths = torch.tensor([3, 2, 3, 9, 1, 4])
    mask = (torch.arange(9) < lengths[:, None]).long()
    labels = torch.randint(0, 7, (6,))
    found = one_pass(model, {"input_ids": ids, "attention_mask": mask}, labels, batch=3)
    assert model.widths == [3, 9]
    for at, length in enumerate(lengths.tolist()):
        alone = {"input_ids": ids[at : at + 1, :length]}
        alone["attention_mask"] = torch.ones(1, length, dtype=torch.long)
        logits = model(**alone)["logits"][:, -1].detach().numpy()
        loss = cross_entropy(logits, labels[at : at + 1].numpy())
        np.testing.assert_allclose(found.losses[at : at + 1], loss, rtol=1e-5)
        state = model.embed(ids[at, :length]).sum(0).detach()
        torch.testing.assert_close(found.hidden[0][at], state)


def test_half_precision_weights_take_float32_inputs():
    found = one_pass(made().to(torch.bfloat16), IMAGES, LABELS)
    full = one_pass(made(), IMAGES, LABELS)
    np.testing.assert_allclose(found.losses, full.losses, atol=0.05)


class Returns(nn.Module):
    """Returns a tensor of its own."""

    def __init__(self, made):
        super().__init__()
        self.made = made

    def forward(self, x):
        return self.made[: len(x)]


class Raises(nn.Module):
    """Fails in its own way."""

    def __init__(self, fault):
        super().__init__()
        self.fault = fault

    def forward(self, x):
        raise self.fault


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (KeyError("x"), InvalidInput, "cannot take samples of shape"),
        (AssertionError(), InvalidInput, "cannot take .*: AssertionError"),
        (torch.OutOfMemoryError("CUDA out of memory."), InvalidInput, "a batch of 7 samples does"),
        (UnsupportedModel("of our own."), UnsupportedModel, r"^of our own\.$"),
    ],
)
def test_whatever_a_model_raises_is_one_sentence(fault, error, words):
    with pytest.raises(error, match=words):
        one_pass(Raises(fault), IMAGES, LABELS, batch=7)


def test_faults_are_named():
    for model, inputs, labels, layers, error, words in (
        (made(), IMAGES, LABELS, ["9x"], UnsupportedModel, "no layer '9x'. It has, among others: "),
        (made(), IMAGES, LABELS[:-1], ["last"], InvalidInput, r"shape \(22,\) for 23 examples"),
        (
            made(),
            IMAGES,
            LABELS + 1,
            ["last"],
            InvalidInput,
            "from 1 to 4, and the model has 4 out",
        ),
        (made(), IMAGES, LABELS - 1, ["last"], InvalidInput, "from -1 to 2"),
        (made(), IMAGES[:, :, :5], LABELS, ["last"], InvalidInput, r"shape inputs \(1, 5, 8\): "),
        (made(), IMAGES / 0, LABELS, ["last"], InvalidInput, "NaN or infinite for sample 0"),
        (Returns(torch.rand(23, 1)), IMAGES, LABELS, ["last"], UnsupportedModel, r"\(0, z\)"),
        (Returns(torch.rand(23, 4)), IMAGES, LABELS, ["last"], UnsupportedModel, "no nn.Linear"),
    ):
        with pytest.raises(error, match=words):
            one_pass(model, inputs, labels, layers=layers)
    with pytest.raises(InvalidInput, match="batch=0"):
        one_pass(made(), IMAGES, LABELS, batch=0)


class Several(nn.Module):
    """A network whose layers give tuples, run twice, put time first, or never run."""

    def __init__(self):
        super().__init__()
        self.reader = nn.GRU(8, 5, batch_first=True)
        self.turned = nn.GRU(8, 5)
        self.shared = nn.Linear(5, 5)
        self.table = nn.Embedding(3, 4)
        self.bins = Bins()
        self.idle = nn.Linear(5, 5)
        self.last = nn.ReLU()
        self.head = nn.Linear(5, 4)

    def forward(self, images):
        rows = images[:, 0]
        states = self.reader(rows)[0][:, -1] + self.turned(rows.transpose(0, 1))[0][-1]
        self.bins(rows)
        return self.head(self.last(self.shared(self.shared(states))))


class Bins(nn.Module):
    def forward(self, rows):
        return (rows > 0.5).long()


def test_whole_states_are_all_that_a_layer_gives_whatever_its_axes():
    torch.manual_seed(0)
    model = Several()
    found = one_pass(model, IMAGES, LABELS, layers=["reader", "last"], batch=7, whole=True)
    with torch.no_grad():
        rows, _ = model.reader(IMAGES[:, 0])
        turned, _ = model.turned(IMAGES[:, 0].transpose(0, 1))
        deep = model.shared(model.shared(rows[:, -1] + turned[-1])).relu()
    torch.testing.assert_close(found.hidden[0], rows.flatten(1))
    torch.testing.assert_close(found.hidden[1], deep)  # a layer may be called last
    assert found.layers == ("reader", "last")
    convolved = made()
    (first,) = one_pass(convolved, IMAGES, LABELS, layers=["0"], whole=True).hidden
    with torch.no_grad():
        torch.testing.assert_close(first, convolved[0](IMAGES).flatten(1))


def test_a_layer_that_is_overwritten_in_place_is_read_as_it_was():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.ReLU(inplace=True), nn.Linear(6, 4))
    expected = model[:2](IMAGES).detach()
    for whole in (False, True):
        (found,) = one_pass(model, IMAGES, LABELS, layers=["1"], whole=whole).hidden
        torch.testing.assert_close(found, expected)
    assert bool((expected < 0).any())


def test_a_layer_that_gives_one_state_an_example_passes_and_leaves_the_model_alone():
    model = Several().train()
    for layer in ("reader", "last", "head"):
        check_layer(model, IMAGES[:8], layer)
    assert model.training
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        ("body", "the model has no layer 'body'. It has, among others: reader, turned, shared"),
        ("idle", "the layer 'idle' does not run"),
        ("shared", "the layer 'shared' runs 2 times in a pass. Name one that runs once"),
        # Time is as long as there are examples, so that one pass alone would not show it.
        ("turned", r"gives float32 of shape \(8, 7, 5\) for 7 examples, not a state for each"),
        ("bins", r"gives int64 of shape \(8, 8, 8\) for 8 examples, not a state for each"),
    ],
)
def test_a_layer_without_one_state_an_example_is_refused_in_one_sentence(layer, words):
    with pytest.raises(UnsupportedModel, match=words):
        check_layer(Several(), IMAGES[:8], layer)
