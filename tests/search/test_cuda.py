"""What only a GPU can show: the same ranks and certificates there as on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from remnant.canaries.template import Template
from remnant.models import LanguageModel, Vocabulary, gpt, gru, lstm
from remnant.search import exact_exposure, extract

pytestmark = pytest.mark.cuda
TEMPLATES = [Template("pin {digits:5}"), Template("pin {choice:1|12|2}{digits:3}.")]


@pytest.fixture(scope="module", params=[lstm, gru, gpt], ids=["lstm", "gru", "gpt"])
def models(request):
    vocabulary = Vocabulary.of_characters("pin 0123456789.")
    torch.manual_seed(0)
    sizes = {"heads": 2} if request.param is gpt else {}
    module = request.param(vocabulary.size, units=16, layers=2, **sizes)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(2.0)
    return [LanguageModel(module, vocabulary, device=device) for device in ("cpu", "cuda")]


@pytest.mark.parametrize("template", TEMPLATES, ids=["chain", "trie"])
def test_ranks_are_those_of_the_cpu(models, template):
    secrets = [one.secret for one in template.sample(20, rng=np.random.default_rng(0))]
    here, there = (exact_exposure(model, template, secrets=secrets) for model in models)
    assert here.rank.tolist() == there.rank.tolist()
    exact = exact_exposure(models[1].in_float64(), template, secrets=secrets)
    assert exact.rank.tolist() == there.rank.tolist()


@pytest.mark.parametrize("template", TEMPLATES, ids=["chain", "trie"])
def test_extraction_is_that_of_the_cpu(models, template):
    here, there = (extract(model, template, top=5) for model in models)
    assert [s for s, _ in here.candidates] == [s for s, _ in there.candidates]
    assert here.certified is there.certified is True


def test_tf32_is_kept_out(models):
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        torch.backends.cuda.matmul.allow_tf32 = True
        loose = exact_exposure(models[1], TEMPLATES[0], secrets=["12345"])
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    assert (
        loose.rank.tolist()
        == exact_exposure(models[0], TEMPLATES[0], secrets=["12345"]).rank.tolist()
    )


def test_peak_memory_stays_within_the_budget(models):
    template = Template("pin {digits:7}")
    model, budget = models[1], 1 << 28
    exact_exposure(model, template, secrets=["0000000"], max_nodes=1000)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    exact_exposure(model, template, secrets=["9876543"], memory=budget)
    assert torch.cuda.max_memory_allocated() - before < budget
