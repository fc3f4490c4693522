"""What is heard: by the likeliest path, and by a beam that is held against the whole sum."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from remnant.errors import InvalidInput
from remnant.probes.ctc import ctc_costs
from remnant.probes.recognition import beam_tokens, greedy_tokens


def test_a_wide_beam_finds_the_likeliest_transcript_and_its_chance():
    for seed in range(8):
        torch.manual_seed(seed)
        frames = (2 * torch.randn(5, 3, dtype=torch.float64)).log_softmax(-1)
        every = [list(t) for n in range(6) for t in itertools.product((1, 2), repeat=n)]
        costs = ctc_costs([frames], every)[0]
        heard, chance = beam_tokens(frames, width=200)
        assert heard == every[costs.argmin()]
        assert chance == pytest.approx(-costs.min() * math.log(2))


def test_a_beam_is_never_better_than_the_transcript_and_no_worse_than_greedy():
    torch.manual_seed(3)
    frames = torch.randn(30, 12, dtype=torch.float64).log_softmax(-1)
    heard, chance = beam_tokens(frames, width=8)
    beam, greedy = ctc_costs([frames], [heard, greedy_tokens(frames)])[0]
    assert chance <= -beam * math.log(2) + 1e-9
    assert beam <= greedy


def test_a_sum_of_alignments_beats_the_likeliest_path():
    frames = torch.tensor([[0.6, 0.4], [0.6, 0.4]]).double().log()
    assert greedy_tokens(frames) == []  # the likeliest path has 0.36; token 1 has 0.64 in all
    assert beam_tokens(frames)[0] == [1]


def test_a_beam_of_no_width_is_refused():
    with pytest.raises(InvalidInput, match="width=0"):
        beam_tokens(torch.zeros(2, 2), width=0)
