"""The translator: one token at a time against all at once, padding, populations, the folder."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from remnant.errors import InvalidInput
from remnant.integrations import load_sequence_model, load_tokenizer
from remnant.models import (
    LanguageModel,
    Vocabulary,
    load_language_model,
    save_language_model,
    transformer,
)
from remnant.population import Population

V, S = 11, 6
OPTIONS = {"units": 8, "layers": 2, "heads": 2, "source_length": S, "context": 12}


def small(**options):
    torch.manual_seed(3)
    module = transformer(V, **{**OPTIONS, **options}).double().eval()
    for parameter in module.parameters():  # a start close to zero would hide what is not read
        nn.init.normal_(parameter, std=0.4)
    return module


def row(module, source, target):
    return torch.tensor([[*source, *[module.pad] * (S - len(source)), module.begin, *target]])


def test_one_token_at_a_time_equals_all_at_once():
    module, target = small(), [3, 1, 4, 1, 5]
    for source in ([7], [2, 9, 0], [1, 2, 3, 4, 5, 6]):
        whole = module(row(module, source, target))
        for given in (module.given(source), folded(module.given(source))):
            state, found = given.initial(2), []
            for token in [module.begin, *target]:
                logits, state = given.advance(torch.tensor([token, token]), state)
                found.append(logits)
            steps = torch.stack(found, 1)
            torch.testing.assert_close(steps[:1], whole, rtol=0, atol=1e-10)
            torch.testing.assert_close(steps[0], steps[1], rtol=0, atol=1e-12)
            ids = torch.tensor([[module.begin, *target]])
            torch.testing.assert_close(given(ids), whole, rtol=0, atol=1e-12)


def folded(module):
    module.fold()
    return module


def test_no_place_sees_what_comes_after_it_and_all_see_the_whole_source():
    module = small()
    here = module(row(module, [1, 2, 3], [3, 1, 4, 1]))
    later = module(row(module, [1, 2, 3], [3, 1, 4, 2]))
    torch.testing.assert_close(here[:, :4], later[:, :4], rtol=0, atol=0)
    assert (here[:, 4] != later[:, 4]).any()
    for changed in ([0, 2, 3], [1, 0, 3], [1, 2, 0]):
        assert (module(row(module, changed, [3, 1, 4, 1])) != here).any(-1).all()


def test_padding_is_not_read():
    module = small()
    shorter = small(source_length=3)
    kept = {n: t for n, t in module.state_dict().items() if n != "source_positions.weight"}
    shorter.load_state_dict(kept, strict=False)
    shorter.source_positions.weight.data = module.source_positions.weight.data[:3]
    alone = shorter(torch.tensor([[1, 2, 3, module.begin, 5, 6]]))
    torch.testing.assert_close(module(row(module, [1, 2, 3], [5, 6])), alone, rtol=0, atol=1e-12)


def test_a_language_model_of_it_begins_every_target():
    module, words = small(), Vocabulary.of_words("a b c d e f g h i j k")
    model = LanguageModel(module.given([1, 2]), words)
    first, _ = model.start([])
    after, state = model.start([4])
    whole = module(row(module, [1, 2], [4, 6])).log_softmax(-1)[0]
    torch.testing.assert_close(first[0], whole[0], rtol=0, atol=1e-10)
    torch.testing.assert_close(after[0], whole[1], rtol=0, atol=1e-10)
    next_, _ = model.step(state, [6])
    torch.testing.assert_close(next_[0], whole[2], rtol=0, atol=1e-10)


def test_the_float64_twin_encodes_the_source_in_float64():
    words = Vocabulary.of_words("a b c d e f g h i j k")
    model = LanguageModel(small().float().given([1, 2]), words)
    wide = LanguageModel(small().float().double().given([1, 2]), words)
    found, _ = model.in_float64().start([4])
    expected, _ = wide.start([4])
    assert torch.equal(found, expected)
    assert (model.start([4])[0].double() != expected).any()


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_it_trains_stacked_as_it_would_alone(dropout):
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, V, (20, S + 5))
    inputs[:10, 4:S] = V + 1
    labels = rng.integers(0, V, (20, 5))
    rows = rng.integers(0, 20, (10, 3, 4))

    def make():
        return transformer(V, **OPTIONS, dropout=dropout)

    def fitted(seeds, indices, **options):
        population = Population(make, seeds=seeds, precision="float64")
        fit = population.fit(inputs, labels, indices, optimizer="adam", lr=0.01, **options)
        return fit.backend, population.logits(inputs)

    backend, together = fitted([1, 2, 3], rows)
    assert backend == "stacked"
    for member, seed in enumerate((1, 2, 3)):
        _, alone = fitted([seed], rows[:, member : member + 1], backend="serial")
        torch.testing.assert_close(together[member], alone[0], rtol=0, atol=1e-9)


def test_a_folder_keeps_it_and_asks_for_a_source(tmp_path):
    words = Vocabulary.of_words("a b c d e f g h i j 1", digits_apart=True)
    module = small().float()
    save_language_model(
        tmp_path / "m",
        architecture="transformer",
        options=OPTIONS,
        state=module.state_dict(),
        vocabulary=words,
    )
    model = load_language_model(tmp_path / "m", source="a b 1")
    assert model.vocabulary == words
    expected = LanguageModel(module.given(words.encode("a b 1")), words).start([3])[0]
    assert torch.equal(model.start([3])[0], expected)
    assert load_tokenizer(tmp_path / "m").encode("a b 1") == words.encode("a b 1")
    assert load_tokenizer(tmp_path / "m").tokens == words.symbols
    for load in (load_language_model, load_sequence_model):
        with pytest.raises(InvalidInput, match="holds an encoder-decoder, and source= is missing"):
            load(tmp_path / "m")
    with pytest.raises(InvalidInput, match="the source has 7 tokens; this model reads 1 to 6"):
        load_language_model(tmp_path / "m", source="a b c d e f g")
    with pytest.raises(InvalidInput, match="the source has 0 tokens"):
        load_language_model(tmp_path / "m", source=" ")


def test_what_does_not_fit_is_refused():
    with pytest.raises(InvalidInput, match="equal parts"):
        transformer(V, units=6, heads=4)
    with pytest.raises(InvalidInput, match="units=0"):
        transformer(V, units=0)
    with pytest.raises(InvalidInput, match="longer than the model's context of 12"):
        small()(torch.zeros(1, S + 13, dtype=torch.int64))
    with pytest.raises(InvalidInput, match="not in the vocabulary"):
        small().given([V])
