"""A model as a function from images to probabilities."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.integrations.classifiers.exported import load_exported
from remnant.integrations.classifiers.probabilities import Probabilities


class Gives(nn.Module):
    """Returns what a function makes of flat images."""

    def __init__(self, make):
        super().__init__()
        self.make = make
        self.seen = []

    def forward(self, images):
        self.seen.append(images)
        return self.make(images.flatten(1))


IMAGES = torch.rand(6, 3, 2, 2, generator=torch.Generator().manual_seed(0))


def test_what_a_model_returns_is_told_by_its_answers():
    logits = Probabilities(Gives(lambda x: 5 * x[:, :4]))
    torch.testing.assert_close(
        logits(IMAGES), (5 * IMAGES.flatten(1)[:, :4]).double().softmax(1), rtol=1e-6, atol=1e-7
    )
    assert logits.kind == "logits"
    known = IMAGES.flatten(1)[:, :4].softmax(1)
    sure = Probabilities(Gives(lambda x: x[:, :4].softmax(1)))
    torch.testing.assert_close(sure(IMAGES), known.double())
    assert sure.kind == "probabilities"
    # Log-probabilities are logits of themselves.
    logs = Probabilities(Gives(lambda x: x[:, :4].log_softmax(1)))
    torch.testing.assert_close(logs(IMAGES), known.double(), rtol=1e-6, atol=1e-7)


def test_one_number_is_that_of_class_one():
    wide = Probabilities(Gives(lambda x: 9 * x[:, 0] - 4))
    p = (9 * IMAGES.flatten(1)[:, 0] - 4).double().sigmoid()
    torch.testing.assert_close(wide(IMAGES), torch.stack([1 - p, p], 1), rtol=1e-6, atol=1e-7)
    with pytest.raises(InvalidInput, match="logits or probabilities"):
        Probabilities(Gives(lambda x: x[:, :1]))(IMAGES)
    given = Probabilities(Gives(lambda x: x[:, :1]), outputs="probabilities")(IMAGES)
    torch.testing.assert_close(given[:, 1], IMAGES.flatten(1)[:, 0].double())


def test_images_are_normalised_inside():
    model = Gives(lambda x: x[:, :4])
    Probabilities(model, mean=(0.1, 0.2, 0.3), std=(0.5,), outputs="logits")(IMAGES)
    expected = (IMAGES - torch.tensor([0.1, 0.2, 0.3]).view(1, 3, 1, 1)) / 0.5
    torch.testing.assert_close(model.seen[0], expected)
    with pytest.raises(InvalidInput, match="mean has 2 numbers for images of 3 channel"):
        Probabilities(model, mean=(0.1, 0.2), std=(1.0,))(IMAGES)
    with pytest.raises(InvalidInput, match="belong together"):
        Probabilities(model, mean=(0.1,))


def test_the_model_is_asked_in_evaluation_mode():
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(12, 3)).train()
    ask = Probabilities(model)
    torch.testing.assert_close(ask(IMAGES), ask(IMAGES))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_program_for_batches_of_one_size_is_asked_in_such(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 3)).eval()
    torch.export.save(torch.export.export(model, (IMAGES[:4],)), tmp_path / "four.pt2")
    program = load_exported(tmp_path / "four.pt2")
    assert (program.fixed_batch, program.sample_shape) == (4, (3, 2, 2))
    found = Probabilities(program)(IMAGES)
    torch.testing.assert_close(found, model(IMAGES).double().softmax(1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "outputs", "error", "said"),
    [
        (lambda x: x[:, :4] / 0, "auto", InvalidInput, "NaN or infinite"),
        (lambda x: x[:, :4] - 3, "probabilities", InvalidInput, "they are no probabilities"),
        (lambda x: x[:, :4] / 2, "probabilities", InvalidInput, "do not all sum to one"),
        (lambda x: x[:3], "auto", UnsupportedModel, "one row an image"),
        (lambda x: x.view(6, 2, 6), "auto", UnsupportedModel, "one row an image"),
        (lambda x: x[:, :4] @ torch.rand(3, 3), "auto", InvalidInput, "cannot take samples"),
        (lambda x: x, "odds", InvalidInput, "outputs='odds' is not one of"),
    ],
)
def test_what_is_no_answer_is_refused(make, outputs, error, said):
    with pytest.raises(error, match=said):
        Probabilities(Gives(make), outputs=outputs)(IMAGES)
