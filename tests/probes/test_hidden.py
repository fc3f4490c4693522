"""Hidden states of any module: which layer, which token, and a model left as it was."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.models import small_resnet
from remnant.probes import hidden_states


class Sequences(nn.Module):
    """A small language model that takes named tensors and returns several."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.mix = nn.GRU(6, 6, batch_first=True)
        self.head = nn.Linear(6, 11)
        self.unused = nn.Linear(2, 2)

    def forward(self, input_ids, attention_mask=None):
        states, last = self.mix(self.embed(input_ids))
        return {"logits": self.head(states), "last": last}


@pytest.fixture
def text():
    torch.manual_seed(0)
    ids = torch.randint(0, 11, (4, 5))
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [1, 0, 0, 0, 0]])
    return Sequences(), {"input_ids": ids, "attention_mask": mask}


def test_by_default_it_is_what_enters_the_last_dense_layer():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(6, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 3)
    )
    inputs = torch.randn(7, 2, 3)
    model.train()
    found = hidden_states(model, inputs, batch=3)
    torch.testing.assert_close(found, torch.relu(model[1](inputs.flatten(1))).detach())
    assert model.training
    assert model[3].training
    assert not found.requires_grad


def test_a_named_layer_gives_what_it_returns():
    torch.manual_seed(0)
    model = small_resnet((3, 8, 8), 10)
    inputs = torch.randn(5, 3, 8, 8)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = hidden_states(model, inputs, layer="norm")
    assert found.shape == (5, 64)
    model.eval()
    with torch.no_grad():
        expected = model.norm(model.blocks(model.stem(inputs))).mean(dim=(2, 3))
    torch.testing.assert_close(found, expected)
    assert hidden_states(model, inputs).shape == (5, 64)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), "batch statistics are not touched"


@pytest.mark.parametrize("pool", ["last", "mean"])
def test_tokens_are_pooled_as_the_mask_allows(pool, text):
    model, inputs = text
    with torch.no_grad():
        states = model.mix(model.embed(inputs["input_ids"]))[0]
    found = hidden_states(model, inputs, pool=pool, batch=2)
    named = hidden_states(model, inputs, layer="mix", pool=pool)
    for row, mask in enumerate(inputs["attention_mask"].bool()):
        allowed = states[row][mask]
        expected = allowed[-1] if pool == "last" else allowed.mean(0)
        torch.testing.assert_close(found[row], expected)
        torch.testing.assert_close(named[row], expected)
    bare = hidden_states(model, {"input_ids": inputs["input_ids"]}, pool=pool)
    torch.testing.assert_close(bare, states[:, -1] if pool == "last" else states.mean(1))


def test_what_cannot_be_read_is_named(text):
    model, inputs = text
    with pytest.raises(UnsupportedModel, match=r"no layer 'neck'.*embed, mix, head"):
        hidden_states(model, inputs, layer="neck")
    with pytest.raises(UnsupportedModel, match="'unused' does not run"):
        hidden_states(model, inputs, layer="unused")
    with pytest.raises(UnsupportedModel, match=r"no nn\.Linear runs"):
        hidden_states(nn.Flatten(), torch.randn(2, 3))
    with pytest.raises(UnsupportedModel, match="states of shape"):
        hidden_states(nn.Sequential(nn.Flatten(0)), torch.randn(2, 3), layer="0")
    with pytest.raises(InvalidInput, match="pool='first'"):
        hidden_states(model, inputs, pool="first")
    with pytest.raises(InvalidInput, match="batch=0"):
        hidden_states(model, inputs, batch=0)
    with pytest.raises(InvalidInput, match="all alike"):
        hidden_states(model, {**inputs, "attention_mask": torch.ones(3, 5)})
    with pytest.raises(InvalidInput, match="allows no token"):
        hidden_states(model, {**inputs, "attention_mask": torch.zeros(4, 5)})
