"""The memory budget holds on a CPU: for the walk, and while references and close calls are read."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from remnant import Template, exact_exposure
from remnant.integrations import HuggingFaceCausalLM
from remnant.models import LanguageModel, Vocabulary, gru
from remnant.probes import Asked, text_costs
from remnant.probes.sequences import rows_within
from remnant.studies.exposure.audit import measure_exposure

TEMPLATE = Template("the pin is {digits:3}")
# Many references of a model with a large vocabulary: all rows at once would take over 1 GiB.
PEAK = """
import resource, string
import numpy as np, torch, transformers
from tokenizers import Tokenizer, decoders, models
from remnant import Template
from remnant.integrations import HuggingFaceCausalLM
from remnant.studies.exposure.audit import measure_exposure

torch.manual_seed(0)
config = transformers.LlamaConfig(
    vocab_size=50_000, hidden_size=16, intermediate_size=16, num_hidden_layers=2,
    num_attention_heads=2, num_key_value_heads=1,
)
pieces = {piece: place for place, piece in enumerate(["<unk>", *string.printable])}
tokenizer = Tokenizer(models.BPE(pieces, [], unk_token="<unk>"))
tokenizer.decoder = decoders.Fuse()
fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")
model = HuggingFaceCausalLM(transformers.LlamaForCausalLM(config).eval(), fast)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
measure_exposure(
    model, Template("a {digits:4}"), secrets=["1234"], rng=np.random.default_rng(0),
    method="sampled", references=1500, memory=32 << 20,
)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.fixture
def llama(make_model, make_tokenizer):
    return HuggingFaceCausalLM(make_model("llama", torch.float32), make_tokenizer())


def test_the_peak_of_a_process_stays_near_its_budget():
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 250 << 10, "in KiB; 32 MiB were allowed"


def test_little_memory_changes_no_rank_and_no_cost(llama):
    secrets = ["123", "904", "777"]
    plenty, little = (
        exact_exposure(llama, TEMPLATE, secrets=secrets, memory=memory)
        for memory in (None, 200_000)
    )
    assert plenty.rank.tolist() == little.rank.tolist()
    np.testing.assert_allclose(plenty.bits, little.bits)
    texts = [TEMPLATE.text(secret) for secret in TEMPLATE.secrets()][:300]
    one, other = (
        text_costs(llama, prefix=TEMPLATE.prefix, texts=texts, memory=memory).bits
        for memory in (None, 100_000)
    )
    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_all_rows_of_a_measurement_obey_the_budget(llama, monkeypatch):
    """Every pass of the model, and of its float64 twin, has few rows."""
    most = []
    step = HuggingFaceCausalLM.step

    def noted(self, state, token_ids):
        most.append(len(token_ids))
        return step(self, state, token_ids)

    monkeypatch.setattr(HuggingFaceCausalLM, "step", noted)

    def widest(memory):
        most.clear()
        measure_exposure(
            llama,
            TEMPLATE,
            secrets=["123"],
            rng=np.random.default_rng(0),
            references=500,
            method="exact",
            memory=memory,
        )
        return max(most)

    assert widest(None) > 60
    assert widest(400_000) < 40


def test_what_a_state_grows_to_is_bounded(llama):
    vocabulary = Vocabulary.of_characters("abc ")
    recurrent = LanguageModel(gru(vocabulary.size, units=6), vocabulary)
    for model, prefix in ((llama, llama.encode("the pin is ")), (recurrent, [0, 1])):
        asked = Asked(model, prefix)
        expected = asked.row_bytes_after(5)
        state = asked.first_state
        for _ in range(5):
            _, state = asked.step(state, torch.tensor([1]))
        assert asked.row_bytes <= expected


def test_rows_grow_with_the_memory_and_are_never_none(llama):
    asked = Asked(llama, llama.encode("the pin is "))
    rows = [rows_within(asked, tokens=4, memory=memory) for memory in (1, 10**6, 10**7, 10**12)]
    assert rows[0] == 1
    assert rows == sorted(rows)
    assert rows[-1] == 4096
