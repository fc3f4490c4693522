"""Recognisers of speech in a population: member i of N is what it would be alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from remnant.errors import InvalidInput
from remnant.models import conformer
from remnant.models.recogniser import PackedRecogniser, ctc_loss, frames_needed, pack
from remnant.population import Population


def utterances(count: int = 10):
    rng = np.random.default_rng(0)
    spoken = [rng.normal(size=(int(rng.integers(24, 60)), 6)) for _ in range(count)]
    said = [rng.integers(1, 8, size=int(rng.integers(1, 4))).tolist() for _ in range(count)]
    return spoken, said


def make():
    return PackedRecogniser(conformer(8, bands=6, width=16, layers=1, heads=2, dropout=0.2))


def test_a_member_of_several_equals_itself_alone():
    inputs, targets = pack(*utterances())
    rows = np.random.default_rng(1).integers(0, 10, (6, 3, 4))
    options = {"optimizer": "adam", "lr": 1e-2, "loss": ctc_loss}
    together = Population(make, seeds=[4, 5, 6], precision="float64")
    together.fit(inputs, targets, rows, **options)
    for member, seed in enumerate([4, 5, 6]):
        alone = Population(make, seeds=[seed], precision="float64")
        alone.fit(inputs, targets, rows[:, member : member + 1], **options)
        for name, tensor in alone.state_dict(0).items():
            torch.testing.assert_close(
                together.state_dict(member)[name], tensor, atol=1e-9, rtol=1e-9
            )


def test_the_packed_loss_is_that_of_each_utterance_alone():
    spoken, said = utterances(5)
    inputs, targets = pack(spoken, said)
    model = make().eval()
    losses = ctc_loss(model(inputs), targets)
    for sound, tokens, loss in zip(spoken, said, losses, strict=True):
        features = torch.as_tensor(sound, dtype=torch.float32)[None]
        made, frames = model.recogniser(features, torch.tensor([len(sound)]))
        alone = F.ctc_loss(
            made.transpose(0, 1),
            torch.tensor([tokens]),
            frames,
            torch.tensor([len(tokens)]),
            reduction="sum",
        )
        torch.testing.assert_close(loss * len(tokens), alone, atol=1e-4, rtol=1e-4)


def test_a_population_learns():
    inputs, targets = pack(*utterances())
    population = Population(make, seeds=[0, 1], dropout=0.0)

    def mean_loss(some: Population) -> float:
        return float(np.mean([ctc_loss(o, targets).mean() for o in some.logits(inputs)]))

    before = mean_loss(population)
    rows = np.random.default_rng(1).integers(0, 10, (40, 2, 5))
    population.fit(inputs, targets, rows, optimizer="adam", lr=1e-2, loss=ctc_loss)
    assert mean_loss(population) < before / 2


def test_sound_that_is_too_short_for_its_transcript_is_refused():
    assert frames_needed([1, 1]) == 3
    with pytest.raises(InvalidInput, match="utterance 1 has 8 frames; its transcript needs 12"):
        pack([np.ones((40, 6)), np.ones((8, 6))], [[1], [2, 2]])
    with pytest.raises(InvalidInput, match="transcript 0 is empty"):
        pack([np.ones((40, 6))], [[]])
    with pytest.raises(InvalidInput, match="1 utterances and 2 transcripts"):
        pack([np.ones((40, 6))], [[1], [2]])
