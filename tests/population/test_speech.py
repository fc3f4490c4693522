"""Recognisers of speech in a population: member i of N is what it would be alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from remnant.errors import InvalidInput
from remnant.models import conformer
from remnant.models.recogniser import (
    PackedRecogniser,
    costs_and_gradient,
    ctc_loss,
    frames_needed,
    pack,
)
from remnant.population import Population


def utterances(count: int = 10):
    rng = np.random.default_rng(0)
    spoken = [rng.normal(size=(int(rng.integers(24, 60)), 6)) for _ in range(count)]
    said = [rng.integers(1, 8, size=int(rng.integers(1, 4))).tolist() for _ in range(count)]
    return spoken, said


def make():
    return PackedRecogniser(conformer(8, bands=6, width=16, layers=1, heads=2, dropout=0.2))


@pytest.mark.parametrize("backend", ["serial", "stacked"])
def test_a_member_of_several_equals_itself_alone(backend):
    inputs, targets = pack(*utterances())
    rows = np.random.default_rng(1).integers(0, 10, (6, 3, 4))
    options = {"optimizer": "adam", "lr": 1e-2, "loss": ctc_loss}
    together = Population(make, seeds=[4, 5, 6], precision="float64")
    together.fit(inputs, targets, rows, backend=backend, **options)
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


def plain_ctc(log_probs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The definition: torch's own, one member at a time."""
    costs = F.ctc_loss(
        log_probs.transpose(0, 1), targets[:, 2:], targets[:, 0], targets[:, 1], reduction="none"
    )
    return costs / targets[:, 1]


@pytest.mark.parametrize("shared", [False, True])
def test_costs_and_gradients_of_all_members_equal_one_member_at_a_time(shared):
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    log_probs = torch.randn(3, 5, 12, 7, dtype=torch.float64).log_softmax(-1)
    counts = torch.from_numpy(rng.integers(1, 5, size=(3, 5)))
    said = torch.from_numpy(rng.integers(1, 7, size=(3, 5, 4)))
    heads = torch.stack([torch.from_numpy(rng.integers(9, 13, size=(3, 5))), counts], -1)
    targets = torch.cat([heads, said], -1)
    own = targets[0] if shared else targets

    def total(frames, about):
        return ctc_loss(frames, about).square().sum()

    dims = (0, None if shared else 0)
    costs = torch.vmap(ctc_loss, in_dims=dims)(log_probs, own)
    grads = torch.vmap(torch.func.grad(total), in_dims=dims)(log_probs, own)
    for member in range(3):
        alone = log_probs[member].clone().requires_grad_()
        expected = plain_ctc(alone, targets[0] if shared else targets[member])
        (grad,) = torch.autograd.grad(expected.square().sum(), alone)
        torch.testing.assert_close(costs[member], expected.detach(), rtol=1e-12, atol=0)
        torch.testing.assert_close(grads[member], grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_the_recursion_that_a_gpu_records_equals_the_kernel_of_torch(seed):
    """Costs and gradients, for many lengths, repeated tokens, and utterances that barely fit."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    vocabulary, n = int(rng.integers(2, 9)), 12
    said = [rng.integers(1, vocabulary, size=int(rng.integers(1, 9))).tolist() for _ in range(n)]
    frames = [frames_needed(tokens) + int(rng.integers(0, 12)) for tokens in said]
    frames[0] = frames_needed(said[0])
    transcripts = torch.zeros(n, max(map(len, said)), dtype=torch.long)
    for row, tokens in zip(transcripts, said, strict=True):
        row[: len(tokens)] = torch.tensor(tokens)
    heads = torch.tensor([[own, len(tokens)] for own, tokens in zip(frames, said, strict=True)])
    scores = (1 + 3 * (seed % 3)) * torch.randn(n, max(frames), vocabulary, dtype=torch.float64)
    scores.requires_grad_()
    targets = torch.cat([heads, transcripts], 1)
    expected = plain_ctc(scores.log_softmax(-1), targets) * heads[:, 1]
    (by_scores,) = torch.autograd.grad(expected.square().sum(), scores)
    costs, gradient = costs_and_gradient(
        scores.log_softmax(-1).detach(), transcripts, heads[:, 0], heads[:, 1]
    )
    torch.testing.assert_close(costs, expected.detach(), rtol=1e-10, atol=1e-10)
    chained = 2 * costs[:, None, None] * gradient
    (through,) = torch.autograd.grad(scores.log_softmax(-1), scores, chained)
    torch.testing.assert_close(through, by_scores, rtol=1e-8, atol=1e-9)


def test_neither_the_recogniser_nor_its_costs_look_at_numbers_on_the_host():
    """Tensors of ``meta`` have no numbers: whoever looks at one, or mixes devices, fails."""
    model = make().eval().to("meta")
    made = model(torch.empty(4, 40, 7, device="meta"))
    targets = torch.empty(4, 6, dtype=torch.long, device="meta")
    costs, gradient = costs_and_gradient(
        made.detach(), targets[:, 2:], targets[:, 0], targets[:, 1]
    )
    assert made.shape == gradient.shape == (4, 10, 8)
    assert costs.shape == (4,)
    with pytest.raises(RuntimeError):
        F.ctc_loss(made.transpose(0, 1), targets[:, 2:], targets[:, 0], targets[:, 1])
