"""Weights in their own precision and on several devices: ranks stay those of float64."""

from __future__ import annotations

import copy
import string

import numpy as np
import pytest
import torch
import transformers

from remnant import Template, exact_exposure, extract
from remnant.errors import InvalidInput, UnsupportedModel
from remnant.integrations import HuggingFaceCausalLM, load_causal_lm, load_sequence_model
from remnant.integrations.arithmetic import Widened
from remnant.integrations.placement import Placement
from remnant.probes import text_costs
from remnant.search import rank
from remnant.search.baselines import brute_force
from remnant.studies.exposure.audit import measure_exposure

TEMPLATE = Template("the pin is {digits:2}{choice:a|b|c}")
ALL = list(TEMPLATE.secrets())
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]


def network(kind, seed, *, scale=0.3, dtype=torch.bfloat16):
    """A small network of random weights, large enough for answers that depend on all tokens."""
    torch.manual_seed(seed)
    sizes = {"vocab_size": 60, "bos_token_id": 1, "eos_token_id": 2}
    if kind == "gpt2":
        config = transformers.GPT2Config(**sizes, n_embd=16, n_layer=2, n_head=2, n_positions=64)
    else:
        config = transformers.LlamaConfig(
            **sizes,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
        )
    made = transformers.AutoModelForCausalLM.from_config(config)
    for name, parameter in made.named_parameters():
        if "norm" not in name and "ln_" not in name:
            torch.nn.init.normal_(parameter, std=scale)
    return made.eval().to(dtype)


@pytest.fixture
def coarse(make_tokenizer):
    """Return a function that makes a model in low precision, and the same one in float64."""

    def make(kind="llama", seed=0, **options):
        made = network(kind, seed, **options)
        exact = HuggingFaceCausalLM(copy.deepcopy(made).double(), make_tokenizer())
        return HuggingFaceCausalLM(made, make_tokenizer(), own_precision=True), exact

    return make


def true_ranks(exact, secrets):
    """The slow definition: every secret scored in float64, by a whole copy of the weights."""
    costs = text_costs(
        exact, prefix=TEMPLATE.prefix, texts=[TEMPLATE.text(secret) for secret in ALL]
    ).bits
    own = dict(zip(ALL, costs.tolist(), strict=True))
    return [int((costs <= own[secret] + 1e-9).sum()) for secret in secrets], own


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_true_rank_is_found_in_many_random_models(kind, dtype, coarse):
    blurred = 0
    for seed in range(6):
        model, exact = coarse(kind, seed, dtype=dtype, scale=(0.1, 0.3, 0.8)[seed % 3])
        secrets = list(np.random.default_rng(seed).choice(ALL, 4, replace=False))
        ranks, costs = true_ranks(exact, secrets)
        found = exact_exposure(model, TEMPLATE, secrets=secrets)
        assert found.rank.tolist() == ranks
        for one, secret in zip(found, secrets, strict=True):
            assert one.rank_low <= one.rank_high == one.rank
            assert one.cost == pytest.approx(costs[secret], abs=1e-9)
        own, _ = true_ranks(model, secrets)
        blurred += own != ranks
        assert found.arithmetic.settled
        assert found.arithmetic.worst <= found.arithmetic.tolerance / 2
        best = extract(model, TEMPLATE, top=3)
        assert best.certified
        assert [s for s, _ in best.candidates] == sorted(costs, key=costs.get)[:3]
    if dtype == torch.bfloat16:
        assert blurred > 2  # by bfloat16 alone many ranks would have been wrong


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_too_many_close_calls_give_an_interval_that_holds_the_true_rank(kind, coarse, monkeypatch):
    monkeypatch.setattr(rank, "_KEPT_COARSE", 1)
    wide = 0
    for seed in range(6):
        model, exact = coarse(kind, seed)
        secrets = list(np.random.default_rng(seed).choice(ALL, 4, replace=False))
        ranks, _ = true_ranks(exact, secrets)
        found = exact_exposure(model, TEMPLATE, secrets=secrets)
        for one, true in zip(found, ranks, strict=True):
            assert one.rank_low <= true <= one.rank_high
            wide += one.rank_low < one.rank_high
        assert not found.arithmetic.settled
        assert "intervals that hold the float64 rank" in found.arithmetic.sentence
    assert wide > 10


def test_sampled_exposure_is_that_of_float64(coarse):
    swapped = 0
    for seed in range(4):
        model, exact = coarse("llama", seed)
        asked = {"secrets": ["12a", "70c"], "method": "sampled", "references": 200, "fit": False}
        low, high = (
            measure_exposure(each, TEMPLATE, rng=np.random.default_rng(seed), **asked)
            for each in (model, exact)
        )
        assert [each.bits for each in low.each] == [each.bits for each in high.each]
        np.testing.assert_allclose(
            [each.cost for each in low.each], [each.cost for each in high.each], atol=1e-9
        )
        assert high.arithmetic is None
        assert low.arithmetic.precision == "bfloat16"
        assert 2 < low.arithmetic.rescored < 202
        plain = text_costs(
            model, prefix=TEMPLATE.prefix, texts=[TEMPLATE.text(s) for s in ALL]
        ).bits
        swapped += (np.argsort(plain) != np.argsort(list(true_ranks(exact, [])[1].values()))).any()
    assert swapped == 4


def test_calibrated_exposure_is_that_of_float64(coarse):
    (model, exact), (other, exact_other) = coarse("llama", 1), coarse("llama", 2)
    asked = {"secrets": ["12a"], "method": "sampled", "references": 100, "fit": False}
    low, high = (
        measure_exposure(
            each, TEMPLATE, rng=np.random.default_rng(0), reference_models=[beside], **asked
        )
        for each, beside in ((model, other), (exact, exact_other))
    )
    assert low.each[0].bits == high.each[0].bits
    assert low.calibrated


def test_the_twin_shares_the_weights_and_equals_a_float64_copy(coarse):
    for kind in ("gpt2", "llama"):
        model, exact = coarse(kind, 3)
        twin = model.in_float64()
        assert twin._model is model._model
        assert (model.precision, twin.precision) == (torch.bfloat16, torch.float64)
        ids = model.encode("the pin is 1")
        found, expected = twin.start(ids)[0], exact.start(ids)[0]
        assert found.dtype == torch.float64
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
        assert all(p.dtype == torch.bfloat16 for p in model._model.parameters())


def test_brute_force_proves_in_float64(coarse):
    model, exact = coarse("llama", 4)
    found, expected = (brute_force(m, TEMPLATE, top=5).candidates for m in (model, exact))
    assert [secret for secret, _ in found] == [secret for secret, _ in expected]
    assert [bits for _, bits in found] == pytest.approx([bits for _, bits in expected], abs=1e-9)


def test_low_precision_needs_a_twin_whatever_the_budget(coarse):
    model, _ = coarse("llama", 0)
    found = exact_exposure(model, TEMPLATE, secrets=["12a"], max_nodes=4)
    assert found.arithmetic.compared >= 30  # the draw is made, small as the budget is

    class Without:
        precision = torch.bfloat16

        def __init__(self):
            self.encode, self.start = model.encode, model.start
            self.step, self.take = model.step, model.take

    with pytest.raises(UnsupportedModel, match="no float64 twin"):
        exact_exposure(Without(), TEMPLATE, secrets=["12a"])
    with pytest.raises(UnsupportedModel, match="no float64 twin"):
        measure_exposure(
            Without(),
            TEMPLATE,
            secrets=["12a"],
            rng=np.random.default_rng(0),
            method="sampled",
            references=10,
        )


def test_low_precision_is_refused_unless_it_is_asked_for(make_tokenizer):
    with pytest.raises(UnsupportedModel, match="bfloat16"):
        HuggingFaceCausalLM(network("llama", 0), make_tokenizer())


def test_numbers_are_widened_and_moves_are_not():
    weight = torch.tensor([1.0, 3.0], dtype=torch.bfloat16)
    third = torch.tensor([1 / 3], dtype=torch.float32)
    with Widened():
        assert torch.cat([weight, third]).dtype == torch.float64
        assert torch.zeros(2, dtype=torch.float16).dtype == torch.float64
        assert weight.to(torch.bfloat16).dtype == torch.float64
        assert (weight.shape, weight.clone().nbytes, weight.to("cpu").nbytes) == ((2,), 4, 4)
        assert torch.nn.functional.linear(weight, weight[None]).item() == 10.0
    assert weight.dtype == torch.bfloat16


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A Llama whose weights are stored in bfloat16, with a tokenizer."""
    from tokenizers import Tokenizer, decoders, models

    path = tmp_path_factory.mktemp("placed") / "model"
    network("llama", 7).save_pretrained(path)
    pieces = {
        piece: place for place, piece in enumerate([*SPECIAL, *string.printable[:36], *" .?"])
    }
    made = Tokenizer(models.BPE(pieces, [], unk_token="<unk>"))
    made.decoder = decoders.Fuse()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(path)
    return path


MAPS = {
    "auto": "auto",
    "by layer": {
        "model.embed_tokens": "cpu",
        "model.layers.0": "cpu",
        "model.layers.1": "cpu",
        "model.norm": "cpu",
        "model.rotary_emb": "cpu",
        "lm_head": "cpu",
    },
    "disk": {
        "model.embed_tokens": "disk",
        "model.layers.0": "cpu",
        "model.layers.1": "disk",
        "model.norm": "disk",
        "model.rotary_emb": "cpu",
        "lm_head": "disk",
    },
}


@pytest.mark.parametrize("device_map", MAPS)
@pytest.mark.parametrize("precision", ["own", "float32"])
def test_where_layers_are_changes_no_rank(device_map, precision, folder):
    plain = load_causal_lm(folder, dtype=torch.float64)
    placement = Placement(device_map=MAPS[device_map], precision=precision)
    model = load_sequence_model(folder, placement=placement)
    on_disk = any(p.device.type == "meta" for p in model._model.parameters())
    assert on_disk == (device_map == "disk")
    assert model.precision == (torch.bfloat16 if precision == "own" else torch.float32)
    assert model.splits
    secrets = ["12a", "99c", "40b"]
    found, expected = (exact_exposure(m, TEMPLATE, secrets=secrets) for m in (model, plain))
    assert found.rank.tolist() == expected.rank.tolist()
    for one, other in zip(found, expected, strict=True):
        assert one.cost == pytest.approx(other.cost, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device_map": "everywhere"}, "device_map='everywhere' is not one of auto, balanced"),
        ({"precision": "bf16"}, "precision='bf16' is not one of float32, own"),
    ],
)
def test_wrong_placements_are_one_sentence(options, words):
    with pytest.raises(InvalidInput, match=words):
        Placement(**options)


def test_without_accelerate_the_extra_is_named(monkeypatch):
    from remnant.errors import MissingExtra
    from remnant.integrations import placement

    monkeypatch.setattr(placement.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="accelerate"):
        Placement(device_map="auto")
