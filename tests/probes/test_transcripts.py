"""Costs of transcripts: against torch's CTC, and against a sum over every alignment."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from remnant.errors import InvalidInput
from remnant.models import conformer
from remnant.probes import transcript_costs
from remnant.probes.ctc import ctc_costs


def random_frames(frames: int, vocabulary: int, seed: int = 0) -> torch.Tensor:
    torch.manual_seed(seed)
    return (3 * torch.randn(frames, vocabulary, dtype=torch.float64)).log_softmax(-1)


def collapsed(path: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(token for token, _ in itertools.groupby(path) if token)


def one_at_a_time(spoken: list[torch.Tensor], transcripts: list[list[int]]) -> list[list[float]]:
    """Bits by torch, one transcript of one utterance after another."""
    return [
        [
            F.ctc_loss(
                frames[:, None],
                torch.tensor([tokens], dtype=torch.long),
                [len(frames)],
                [len(tokens)],
                reduction="none",
            ).item()
            / math.log(2)
            for tokens in transcripts
        ]
        for frames in spoken
    ]


def test_costs_equal_a_sum_over_every_alignment():
    frames = random_frames(5, 3)
    chances: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(3), repeat=5):
        chance = math.exp(sum(float(frames[t, token]) for t, token in enumerate(path)))
        chances[collapsed(path)] = chances.get(collapsed(path), 0.0) + chance
    transcripts = [list(said) for said in chances] + [[1, 1, 1, 1], [1, 2, 1, 2, 1, 2]]
    expected = [-math.log2(chance) for chance in chances.values()] + [math.inf, math.inf]
    np.testing.assert_allclose(ctc_costs([frames], transcripts)[0], expected, rtol=1e-12)
    assert sum(chances.values()) == pytest.approx(1.0)


def test_costs_equal_torch():
    frames = random_frames(60, 12, seed=1)
    rng = np.random.default_rng(2)
    transcripts = [rng.integers(1, 12, size=n).tolist() for n in (1, 5, 5, 20, 29, 12, 40)]
    transcripts.append([3] * 30)
    (expected,) = one_at_a_time([frames], transcripts)
    np.testing.assert_allclose(ctc_costs([frames], transcripts)[0], expected, rtol=1e-10)


def test_a_model_is_asked_for_utterances_of_every_length():
    torch.manual_seed(3)
    model = conformer(9, bands=6, width=16, layers=2, heads=2, dropout=0.5).double()
    model.train()
    features = [torch.randn(n, 6) for n in (40, 12, 95, 60)]
    transcripts = [[1, 2], [], [8, 8, 3]]
    costs = transcript_costs(model, features=features, transcripts=transcripts)
    assert model.training
    model.eval()
    for own, said in zip(costs, features, strict=True):
        frames, lengths = model(said[None].double(), torch.tensor([len(said)]))
        np.testing.assert_allclose(
            own, ctc_costs([frames[0, : lengths[0]].detach()], transcripts)[0]
        )


@pytest.mark.parametrize(
    ("features", "transcripts", "said"),
    [
        ([], [[1]], "features is empty"),
        ([np.zeros(4)], [[1]], r"features\[0\] has shape \(4,\)"),
        ([np.full((20, 6), np.nan)], [[1]], "not finite"),
        ([np.ones((20, 6)), np.ones((20, 5))], [[1]], "5, 6 bands"),
        ([np.ones((20, 6))], [[0]], r"transcripts\[0\] holds 0.*from 1 to 8"),
        ([np.ones((20, 6))], [[1], [9]], r"transcripts\[1\] holds 9"),
        ([np.ones((20, 6))], ["yes"], "is a text"),
        ([np.ones((20, 6))], [[1.5]], r"holds 1\.5"),
    ],
)
def test_bad_input_is_refused(features, transcripts, said):
    model = conformer(9, bands=6, width=16, layers=1, heads=2)
    with pytest.raises(InvalidInput, match=said):
        transcript_costs(model, features=features, transcripts=transcripts)


def test_a_model_that_gives_no_numbers_is_refused():
    model = conformer(9, bands=6, width=16, layers=1, heads=2)
    with torch.no_grad():
        model.out.bias.fill_(float("nan"))
    with pytest.raises(InvalidInput, match="utterance 0 are not numbers"):
        transcript_costs(model, features=[np.ones((20, 6))], transcripts=[[1]])


@pytest.mark.parametrize("sharp", [0.0, 3.0, 20.0, 60.0, 300.0])
@pytest.mark.parametrize("frames", [1, 7, 64])
def test_costs_hold_however_sure_the_model_is(frames, sharp):
    """Chances far below the smallest float, zero chances, and transcripts that barely fit."""
    torch.manual_seed(frames)
    log_probs = (sharp * torch.randn(frames, 8, dtype=torch.float64)).log_softmax(-1)
    if sharp == 20.0:
        log_probs[frames // 2, 3] = -math.inf
    rng = np.random.default_rng(frames)
    transcripts = [rng.integers(1, 8, size=n).tolist() for n in (0, 1, 1, 2, 6, 7, 30, 33, 63, 64)]
    transcripts += [[2] * n for n in (1, 2, 16, 32)]
    (expected,) = one_at_a_time([log_probs], transcripts)
    np.testing.assert_allclose(
        ctc_costs([log_probs], transcripts)[0], expected, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("sharp", [1.0, 20.0])
def test_utterances_asked_together_cost_what_they_cost_alone(sharp):
    """More utterances than are asked at once, of one length, of about one and of quite others."""
    rng = np.random.default_rng(5)
    counts = [*rng.integers(20, 60, size=30).tolist(), 1, 2, 40, 40, 200]
    torch.manual_seed(6)
    spoken = [(sharp * torch.randn(n, 9, dtype=torch.float64)).log_softmax(-1) for n in counts]
    transcripts = [rng.integers(1, 9, size=n).tolist() for n in (0, 1, 3, 8, 9, 20, 31, 31, 58)]
    together = ctc_costs(spoken, transcripts)
    alone = one_at_a_time(spoken, transcripts)
    np.testing.assert_allclose(together, alone, rtol=1e-10, atol=1e-10)


def test_no_utterance_and_no_transcript_have_no_cost():
    frames = random_frames(5, 3)
    assert ctc_costs([], [[1]]).shape == (0, 1)
    assert ctc_costs([frames], []).shape == (1, 0)
    alone = ctc_costs([frames[:2]], [[], [1]])[0].tolist()
    together = ctc_costs([frames[:0], frames[:2]], [[], [1]])
    assert together.tolist() == [[0.0, math.inf], alone]


@pytest.mark.parametrize("seed", range(12))
def test_costs_hold_for_transcripts_of_every_kind(seed):
    """Sure and unsure models, frames that repeat, one token over and over, many lengths at once."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    vocabulary, sharp = int(rng.integers(2, 30)), [0.1, 1.0, 3.0, 8.0, 15.0, 25.0][seed % 6]
    spoken = []
    for count in rng.integers(1, [10, 60, 150][seed % 3], size=10).tolist():
        scores = sharp * torch.randn(count, vocabulary, dtype=torch.float64)
        scores[:, int(rng.integers(vocabulary))] += 3 * sharp * (seed % 2)
        scores = scores.repeat_interleave(1 + 2 * (seed % 4 == 0), 0)[:count]
        spoken.append(scores.log_softmax(-1))
    most = max(2, min(vocabulary, [2, 3, 30][seed % 3]))
    transcripts = [rng.integers(1, most, size=n).tolist() for n in rng.integers(0, 60, size=12)]
    np.testing.assert_allclose(
        ctc_costs(spoken, transcripts), one_at_a_time(spoken, transcripts), rtol=1e-10, atol=1e-10
    )
