"""Token scores of whole texts agree with reading each text alone, token by token."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.models import gpt
from remnant.probes import token_scores as module
from remnant.probes.token_scores import token_scores

VOCABULARY = 23
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return gpt(VOCABULARY, units=16, layers=2, heads=2, context=40).eval()


def ask(network):
    def asked(ids, mask):
        with torch.no_grad():
            return network(ids) * 3.0

    return asked


def texts(seed=0, count=17):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, VOCABULARY, size=n).tolist() for n in rng.integers(2, 30, size=count)]


def alone(asked, text, leading):
    """The slow definition: one token after another, in float64."""
    rows = []
    for place in range(0 if leading else 1, len(text)):
        before = torch.tensor([[*leading, *text[:place]]])
        log_probs = asked(before, torch.ones_like(before))[0, -1].double().log_softmax(-1)
        mean = float((log_probs.exp() * log_probs).sum())
        deviation = float((log_probs.exp() * (log_probs - mean) ** 2).sum()) ** 0.5
        own = float(log_probs[text[place]])
        rows.append((own, (own - mean) / deviation, int(log_probs.argmax()) == text[place]))
    return np.array(rows, dtype=float).T


@pytest.mark.parametrize("leading", [(), (7,), (7, 3)])
@pytest.mark.parametrize("cache", [1, 1 << 20])
def test_scores_equal_a_loop_over_tokens(network, leading, cache, monkeypatch):
    monkeypatch.setitem(module._CACHE, "cpu", cache)
    monkeypatch.setattr(module, "_TOKENS", 64)  # several batches
    scored = token_scores(ask(network), texts(), leading=leading, vocabulary=VOCABULARY, device=CPU)
    for number, text in enumerate(texts()):
        length = scored.lengths[number]
        wanted = alone(ask(network), text, leading)
        assert length == wanted.shape[1] == len(text) - (not leading)
        np.testing.assert_allclose(scored.log_probs[number, :length], wanted[0], atol=1e-5)
        np.testing.assert_allclose(scored.standard[number, :length], wanted[1], atol=1e-4)
        np.testing.assert_array_equal(scored.correct[number, :length], wanted[2].astype(bool))
        assert not scored.log_probs[number, length:].any()


def test_tokens_that_the_model_rules_out_leave_numbers():
    def asked(ids, mask):
        logits = torch.zeros((*ids.shape, 4))
        logits[..., 3] = -torch.inf
        return logits

    scored = token_scores(asked, [[0, 1, 2]], leading=(), vocabulary=4, device=CPU)
    np.testing.assert_allclose(scored.log_probs, np.log(1 / 3))
    np.testing.assert_allclose(scored.standard, 0.0)


def test_a_certain_and_wrong_prediction_is_far_below_the_mean():
    def asked(ids, mask):
        logits = torch.zeros((*ids.shape, 4))
        logits[..., 0] = 45.0
        return logits

    scored = token_scores(asked, [[1, 0, 2]], leading=(), vocabulary=4, device=CPU)
    assert scored.standard[0, 0] == pytest.approx(0.0, abs=1e-3)
    assert scored.standard[0, 1] < -1e4


def test_texts_without_a_token_to_predict_are_refused():
    with pytest.raises(InvalidInput, match="no token that could be predicted"):
        token_scores(lambda ids, mask: ids, [[1]], leading=(), vocabulary=4, device=CPU)


def test_a_model_without_logits_is_refused():
    with pytest.raises(UnsupportedModel, match="no logits for each token"):
        token_scores(
            lambda ids, mask: torch.zeros(len(ids), 4),
            [[1, 2]],
            leading=(),
            vocabulary=4,
            device=CPU,
        )


def test_nan_is_refused():
    with pytest.raises(InvalidInput, match="NaN or infinite"):
        token_scores(
            lambda ids, mask: torch.full((*ids.shape, 4), torch.nan),
            [[1, 2]],
            leading=(),
            vocabulary=4,
            device=CPU,
        )


def test_a_model_that_scores_everything_alike_predicts_only_the_first_token():
    """Equal logits: greedy decoding takes token 0, so that nothing else counts as predicted."""
    scored = token_scores(
        lambda ids, mask: torch.zeros((*ids.shape, 4)),
        [[1, 0, 2, 0, 3]],
        leading=(),
        vocabulary=4,
        device=CPU,
    )
    assert scored.correct.tolist() == [[True, False, True, False]]


def test_without_standardising_the_rest_is_the_same(network):
    made = {
        flag: token_scores(
            ask(network),
            texts(),
            leading=(),
            vocabulary=VOCABULARY,
            device=CPU,
            standardise=flag,
        )
        for flag in (True, False)
    }
    np.testing.assert_array_equal(made[True].log_probs, made[False].log_probs)
    np.testing.assert_array_equal(made[True].correct, made[False].correct)
    assert not made[False].standard.any()
