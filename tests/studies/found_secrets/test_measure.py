"""Exposure of secrets that were found in text: known answers, and a model that memorised one."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from remnant.canaries.natural import scan_files
from remnant.errors import InvalidInput, UnsupportedModel
from remnant.models import LanguageModel, Vocabulary, lstm
from remnant.studies.found_secrets.measure import (
    CONTEXT,
    FORM,
    SECRET,
    check_answers,
    measure_found,
)

SALT = b"0123456789abcdef"
MEMORISED = "650-253" + "-0147"
ONCE = "650-253" + "-0926"
CHARACTERS = "0123456789-cals orn\n"


def found_in(folder, text, **options):
    path = folder / "text.txt"
    path.write_text(text)
    return scan_files([path], salt=SALT, **options).found


def weighted(characters: str, likely: str) -> LanguageModel:
    """After anything: ``likely`` with probability 1/2, each other character alike."""
    vocabulary = Vocabulary.of_characters(characters)
    net = lstm(vocabulary.size, units=1, layers=1)
    state = {name: torch.zeros_like(tensor) for name, tensor in net.state_dict().items()}
    state["head.bias"][vocabulary.encode(likely)[0]] = math.log(vocabulary.size - 1)
    net.load_state_dict(state)
    return LanguageModel(net, vocabulary)


def measured(model, found, **options):
    return measure_found(model, found, rng=np.random.default_rng(0), **options)


def test_ranks_are_those_of_a_model_with_known_answers(tmp_path):
    found = found_in(tmp_path, "call 212-222-2222 or 212-222-2223\n" + "ssn 222-22-2224\n" * 3)
    model = weighted(CHARACTERS, "2")
    result = measured(model, found, extract=True, method="exact")
    ssn, near, far = result.each
    assert [one.count for one in result.each] == [3, 1, 1]
    # Of all fillings, those with more twos are cheaper; ties count against the secret.
    sizes = {"ssn": 9, "phone": 10}
    for one, others in ((ssn, 1), (near, 1), (far, 2)):
        places = sizes[one.kind]
        rank = sum(math.comb(places, k) * 9**k for k in range(others + 1))
        assert one.measured.rank == rank
        assert one.space == 10**places
        assert one.measured.bits == pytest.approx(places * math.log2(10) - math.log2(rank))
    assert not any(one.extraction.extracted or one.extraction.another_found for one in result.each)
    assert all(one.extraction.certified for one in result.each)
    # Two dashes and a one cost alike; the nine twos cost a bit each.
    cost = 9 + 3 * math.log2(2 * (len(CHARACTERS) - 1))
    assert near.measured.cost == pytest.approx(cost)
    queries = math.log(0.01) / math.log1p(-(2**-cost))
    assert near.extraction.queries_99 == pytest.approx(queries, rel=1e-5)


def test_the_likeliest_may_be_another_that_was_found(tmp_path):
    found = found_in(tmp_path, "ssn 222-22-2222 or 222-22-2223")
    assert [one.kind for one in found] == ["ssn", "ssn"]
    result = measured(weighted("0123456789-sn or", "2"), found, extract=True)
    first, second = (one.extraction for one in result.each)
    assert (first.extracted, first.another_found) == (True, False)
    assert (second.extracted, second.another_found) == (False, True)


def test_what_the_model_cannot_be_asked_about_is_told_and_the_rest_goes_on(tmp_path):
    found = found_in(tmp_path, "\u00e9 212-222-2222" + " " * 9 + "call 212-222-2333", context=6)
    result = measured(weighted("0123456789-cal ", "2"), found, extract=True)
    lost, kept = result.each
    assert lost.measured is None
    assert lost.unmeasured == lost.unextracted == CONTEXT
    assert kept.measured is not None
    assert (result.left, [group.n for group in result.groups]) == (0, [1])


def test_a_reason_repeats_nothing_of_the_secret(tmp_path):
    class Talkative:
        def encode(self, text):
            raise InvalidInput(f"cannot encode {text!r}.")

    found = found_in(tmp_path, "my number: 212-222-2333")
    (one,) = measured(Talkative(), found).each
    assert one.unmeasured
    for part in ("222", "2333", "my number"):
        assert part not in one.unmeasured


@pytest.mark.parametrize(
    ("characters", "reason"),
    [("cal -", SECRET), ("cal -012456789", SECRET), ("cal -12347", FORM), ("0123456789-", CONTEXT)],
)
def test_a_vocabulary_that_lacks_characters_is_told_without_them(tmp_path, characters, reason):
    found = found_in(tmp_path, "call 412-234-2343")
    (one,) = measured(weighted(characters, characters[0]), found, extract=True).each
    assert one.unmeasured == one.unextracted == reason
    knowing = weighted(CHARACTERS, "2")
    others = [weighted(characters, characters[0])]
    (one,) = measured(knowing, found, reference_models=others).each
    assert one.unmeasured == reason.replace("the model's", "a reference model's")


def test_a_reason_tells_no_token_of_the_text(tmp_path):
    class Numbering:
        def encode(self, text):
            return list(map(ord, text))

        def start(self, prefix_ids):
            raise InvalidInput(f"prefix_ids has token {prefix_ids[-1]}, and there are 9.")

        step = take = start

    (one,) = measured(Numbering(), found_in(tmp_path, "call 212-222-2333"), method="sampled").each
    assert one.unmeasured == "the model cannot be tested on it"


def test_a_secret_too_long_for_a_template_does_not_stop_the_others(tmp_path):
    rng = np.random.default_rng(0)
    long = "".join(rng.choice(list("0123456789abcdef"), size=1500))
    found = found_in(tmp_path, f"'{long}' or call 212-222-2333")
    assert [one.kind for one in found] == ["random", "phone"]
    model = weighted("0123456789-abcdefl or'", "2")
    result = measured(model, found, extract=True, method="sampled", references=20)
    assert result.each[0].unmeasured == "It has more than the 1000 places of a template"
    assert result.each[1].measured is not None


def test_a_model_that_answers_nan_is_refused():
    model = weighted(CHARACTERS, "2")
    check_answers(model)
    net = lstm(len(CHARACTERS), units=1, layers=1)
    state = {name: torch.full_like(tensor, math.nan) for name, tensor in net.state_dict().items()}
    net.load_state_dict(state)
    with pytest.raises(UnsupportedModel, match="NaN"):
        check_answers(LanguageModel(net, model.vocabulary))


def test_the_most_frequent_are_measured_and_the_references_do_not_depend_on_how_many(tmp_path):
    text = "".join(f"{n}: 650-253-{n:04d}\n" * (n + 1) for n in range(6))
    found = found_in(tmp_path, text)
    model = weighted("0123456789-: \n", "3")
    options = {"method": "sampled", "references": 100}
    few, all_of_them = (measured(model, found, at_most=many, **options) for many in (2, 99))
    assert (few.left, all_of_them.left) == (4, 0)
    assert few.each == all_of_them.each[:2]
    assert [one.count for one in all_of_them.each] == [6, 5, 4, 3, 2, 1]
    assert [(group.times_least, group.times_most, group.n) for group in all_of_them.groups] == [
        (1, 1, 1),
        (2, 3, 2),
        (4, 7, 3),
    ]
    (agreement,) = all_of_them.agreements
    assert agreement.value is None
    assert "6 samples are too few" in agreement.value_reason


def test_a_walk_that_a_budget_ends_still_bounds_what_no_reference_is_as_cheap_as(tmp_path):
    found = found_in(tmp_path, "call 212-222-2333")
    model = weighted(CHARACTERS, "2")
    sampled, walked = (
        measured(model, found, references=20, **options).each[0].measured
        for options in ({"method": "sampled"}, {"max_nodes": 60_000})
    )
    rank = sum(math.comb(10, k) * 9**k for k in range(5))
    truth = 10 * math.log2(10) - math.log2(rank)
    for one in (sampled, walked):
        assert one.saturated
        assert one.at_least <= truth <= one.high
    assert walked.at_least >= sampled.at_least
    assert walked.high < sampled.high - 5


def test_count_and_exposure_are_correlated_by_rank(tmp_path):
    text = "".join(f"650-253-{n:04d}\n" * (n + 1) for n in range(12))
    found = [dataclasses.replace(one, count=n) for n, one in enumerate(found_in(tmp_path, text), 1)]
    result = measured(weighted("0123456789-\n", "1"), found, method="sampled", references=200)
    (agreement,) = result.agreements
    from scipy.stats import spearmanr

    bits = [one.measured.bits for one in result.each]
    assert agreement.value == pytest.approx(spearmanr(range(12), bits).statistic)
    assert agreement.value_reason is None


def test_reference_models_take_away_what_was_likely_anyway(tmp_path):
    found = found_in(tmp_path, "212-222-2222")
    model = weighted("0123456789-", "2")
    plain = measured(model, found, method="sampled", references=500)
    same = measured(model, found, references=500, reference_models=[model])
    assert plain.each[0].measured.bits > 8
    assert same.each[0].measured.bits == 0
    assert same.calibrated
    assert not plain.calibrated


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"at_most": 0}, "at_most=0 is less than 1"),
        ({"references": 0}, "references=0 is less than 1"),
        ({"method": "exact", "reference_models": [None]}, "takes no reference models"),
    ],
)
def test_settings_that_cannot_be_are_refused(options, words):
    with pytest.raises(InvalidInput, match=words):
        measured(None, [], **options)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """An LSTM trained on text in which one telephone number stands forty times, another once."""
    rng = np.random.default_rng(0)
    lines = [f"call room {n} at {m}\n" for n, m in rng.integers(10**4, size=(200, 2))]
    lines += [f"call me at {MEMORISED}\n"] * 40 + [f"call sue at {ONCE}\n"]
    rng.shuffle(lines)
    text = "".join(lines)
    torch.manual_seed(0)
    vocabulary = Vocabulary.of_characters(text)
    net = lstm(vocabulary.size, units=48, layers=1)
    ids = torch.tensor(vocabulary.encode(text))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(250):
        starts = rng.integers(len(ids) - 40, size=48)
        batch = torch.stack([ids[start : start + 40] for start in starts])
        optimizer.zero_grad()
        logits = net(batch[:, :-1]).flatten(0, 1)
        torch.nn.functional.cross_entropy(logits, batch[:, 1:].flatten()).backward()
        optimizer.step()
    return LanguageModel(net, vocabulary), found_in(tmp_path_factory.mktemp("text"), text)


def test_a_number_that_stands_often_is_exposed_and_can_be_extracted(trained):
    model, found = trained
    assert [(one.kind, one.count) for one in found] == [("phone", 40), ("phone", 1)]
    often, once = measured(model, found, extract=True).each
    assert often.measured.rank == 1
    assert often.measured.bits == pytest.approx(10 * math.log2(10))
    assert often.extraction.extracted
    assert often.extraction.certified
    assert often.extraction.queries_99 < 10**4
    assert not once.extraction.extracted
    assert once.measured.low < often.measured.bits
