"""Templates: the space is the set of distinct secrets, numbered one to one, drawn uniformly."""

from __future__ import annotations

import copy
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.canaries import Canary, Slot, Template
from remnant.errors import InvalidInput


def rng(seed=0):
    return np.random.default_rng(seed)


HOLES = st.one_of(
    st.lists(st.text(alphabet="ab ", max_size=3), min_size=1, max_size=4, unique=True)
    .filter(lambda choices: choices != [""])
    .map(lambda choices: "{choice:" + "|".join(choices) + "}"),
    st.sampled_from(["{digits:1}", "{words:1}", "{words:2}", "{tokens:1}", "{tokens:3}"]),
)
LITERALS = st.sampled_from(["", "", " ", "-", "a", "{{", "b}}"])
WORDS = ["a", "ab", "b b"]
TOKENS = ["a", "ba"]


@st.composite
def templates(draw):
    pattern = draw(LITERALS)
    for _ in range(draw(st.integers(1, 3))):
        pattern += draw(HOLES) + draw(LITERALS)
    return Template(
        pattern,
        words=WORDS if "{words" in pattern else None,
        tokens=TOKENS if "{tokens" in pattern else None,
    )


def by_hand(template):
    """Every filling, as a set of texts."""
    return {"".join(filling) for filling in product(*(slot.choices for slot in template.slots))}


@settings(max_examples=200)
@given(templates())
def test_the_space_is_the_set_of_distinct_secrets_and_numbers_are_one_to_one(template):
    secrets = by_hand(template)
    assert template.space == len(secrets)
    listed = list(template.secrets())
    assert len(listed) == len(secrets)
    assert set(listed) == secrets
    some = range(0, template.space, 1 + template.space // 50)
    assert [template.secret_at(index) for index in some] == [listed[index] for index in some]
    assert [template.index_of(listed[index]) for index in some] == list(some)
    assert all(listed[index] in template for index in some)


@settings(max_examples=200)
@given(templates(), st.text(alphabet="ab -1}", max_size=7))
def test_a_text_is_in_the_template_only_if_it_can_be_filled_in(template, text):
    assert (text in template) == (text in by_hand(template))


@settings(max_examples=100)
@given(templates(), st.integers(0, 99), st.floats(0, 1))
def test_samples_are_distinct_and_of_the_space_also_when_all_of_it_is_drawn(template, seed, share):
    barred = list(template.secrets())[: int(share * min(template.space, 20))]
    n = min(template.space - len(barred), 200)
    drawn = template.sample(n, rng=rng(seed), exclude=barred)
    secrets = {canary.secret for canary in drawn}
    assert len(secrets) == len(drawn) == n
    assert secrets <= by_hand(template) - set(barred)
    for canary in drawn:
        assert canary.text == template.text(canary.secret)
        assert canary.text == template.prefix + canary.secret + template.suffix
    assert template.sample(n, rng=rng(seed), exclude=barred) == drawn
    assert template.sample(n // 2, rng=rng(seed), exclude=barred) == drawn[: n // 2]


def test_the_random_number_of_the_paper():
    template = Template("the random number is {digits:9}")
    assert template.space == 10**9
    assert template.text("281265017") == "the random number is 281265017"
    assert template.index_of("281265017") == 281265017
    assert template.secret_at(281265017) == "281265017"
    assert (template.prefix, template.suffix) == ("the random number is ", "")
    assert template.slots == (Slot("digits", tuple("0123456789")),) * 9
    canaries = template.sample(5, rng=rng())
    assert len({canary.secret for canary in canaries}) == 5
    assert all(isinstance(canary, Canary) for canary in canaries)


@pytest.mark.parametrize(
    ("pattern", "space"),
    [
        ("{choice:a|ab}{choice:b|bb}", 3),
        ("{choice:|a}{choice:a|aa}", 3),
        ("{choice:a|ab}-{choice:b|bb}", 4),
        ("{choice:yes}", 1),
        ("{choice:|x}", 2),
        ("{hex:40}", 16**40),
    ],
)
def test_spaces_that_are_known(pattern, space):
    assert Template(pattern).space == space


def test_a_sample_is_uniform_over_the_space_and_its_order_is_random():
    # A generator that sorts its draws and keeps the first n never reaches the upper half.
    template = Template("{digits:6}")
    drawn = template.sample(10_000, rng=rng())
    numbers = np.array([template.index_of(canary.secret) for canary in drawn])
    assert stats.chisquare(np.histogram(numbers, bins=50, range=(0, 10**6))[0]).pvalue > 1e-4
    assert {canary.secret[0] for canary in drawn} == set("0123456789")
    for place in range(6):
        digits = Counter(canary.secret[place] for canary in drawn)
        assert stats.chisquare([digits[d] for d in "0123456789"]).pvalue > 1e-4
    assert abs(stats.spearmanr(np.arange(10_000), numbers).statistic) < 0.04


@pytest.mark.parametrize(
    "template",
    [Template("{choice:a|ab|abb}{choice:b|bb|}{choice:c|d}"), Template("{digits:1}{choice:x|}")],
    ids=["ambiguous", "one way"],
)
def test_every_distinct_secret_is_equally_likely(template):
    source = rng(5)
    counts = Counter(
        canary.secret for _ in range(2000) for canary in template.sample(3, rng=source)
    )
    assert set(counts) == set(template.secrets())
    # Three draws without replacement vary less than independent ones: the test is conservative.
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_words_of_unequal_length_are_never_cut():
    words = ["a", "bb", "incomprehensibilities"]
    drawn = Template("x {words:2}", words=words).sample(9, rng=rng())
    assert {canary.text for canary in drawn} == {f"x {a} {b}" for a in words for b in words}


def test_four_words_of_a_large_vocabulary():
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(word) for n in (2, 3) for word in product(letters, repeat=n)]
    template = Template("remember {words:4} well", words=words)
    assert template.space == len(words) ** 4
    for canary in template.sample(200, rng=rng()):
        assert template.secret_at(template.index_of(canary.secret)) == canary.secret
        assert len(canary.secret.split(" ")) == 4


def test_a_huge_space_is_drawn_from_top_to_bottom():
    template = Template("{digits:40}")
    drawn = template.sample(2000, rng=rng())
    firsts = Counter(canary.secret[0] for canary in drawn)
    lasts = Counter(canary.secret[-1] for canary in drawn)
    for counts in (firsts, lasts):
        assert stats.chisquare([counts[d] for d in "0123456789"]).pvalue > 1e-4


def test_templates_are_equal_by_pattern_and_vocabularies():
    one = Template("{words:2}", words=["a", "b"])
    assert one == Template("{words:2}", words=("a", "b")) == copy.deepcopy(one)
    assert hash(one) == hash(Template("{words:2}", words=("a", "b")))
    assert one != Template("{words:2}", words=["b", "a"])
    assert one != Template("{words:3}", words=["a", "b"])
    assert Template("{tokens:1}", tokens=["a"]) != Template("{words:1}", words=["a"])
    assert one.words == ("a", "b")
    assert one.tokens is None
    with pytest.raises(AttributeError):
        one.pattern = "{digits:1}"


def test_nothing_random_shows_in_a_repr():
    template = Template("pin {digits:4} {words:1}", words=["zebra", "gnu"])
    assert repr(template) == "Template('pin {digits:4} {words:1}', words=<2>)"
    canary = template.sample(1, rng=rng())[0]
    for shown in (repr(canary), str(canary), f"{[canary]}"):
        assert canary.secret not in shown
        assert "pin" not in shown
    assert repr(canary) == "Canary(text=<redacted>, secret=<redacted>)"


@pytest.mark.parametrize("secret", ["12345", "123", "12a4", "", "pin 1234", "1234 ", "١٢٣٤"])
def test_a_secret_outside_the_space_is_refused_and_not_repeated(secret):
    template = Template("pin {digits:4}")
    assert secret not in template
    for ask in (template.text, template.index_of):
        with pytest.raises(InvalidInput, match=r"not one of the 10000 of 'pin \{digits:4\}'") as e:
            ask(secret)
        if secret:
            assert secret not in str(e.value)
    with pytest.raises(InvalidInput, match="not one of the 10000"):
        template.sample(1, rng=rng(), exclude=[secret])


def test_what_is_no_string_is_in_no_template():
    template = Template("pin {digits:1}")
    assert 5 not in template
    with pytest.raises(InvalidInput, match="The secret given is not one of"):
        template.index_of(5)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (100, "index=100 is not between 0 and 100 - 1"),
        (-1, "index=-1 is not between 0 and 100 - 1"),
        (10**50, r"index=about 2\*\*166 is not between"),
        (1.0, "index=1.0 is not a whole number"),
        ("1", "index='1' is not a whole number"),
    ],
)
def test_a_number_outside_the_space_is_refused(index, message):
    with pytest.raises(InvalidInput, match=message):
        Template("{digits:2}").secret_at(index)


def test_numbers_may_come_from_numpy():
    template = Template("{digits:2}")
    assert template.secret_at(np.int64(7)) == "07"
    assert len(template.sample(np.int64(3), rng=rng())) == 3


def test_a_space_too_large_to_print_can_still_be_complained_about():
    template = Template("{tokens:1000}", tokens=[f"<{i}>" for i in range(10**5)])
    assert template.space == 10**5000
    with pytest.raises(InvalidInput, match=r"not one of the about 2\*\*16609 of"):
        template.text("no")
    with pytest.raises(InvalidInput, match=r"not between 0 and about 2\*\*16609 - 1"):
        template.secret_at(-1)
    assert len(template.sample(2, rng=rng())) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 101}, r"n=101 is more than the 100 secrets left of a space of 100\. Draw fewer"),
        ({"n": 100, "exclude": ["07"]}, "n=100 is more than the 99 secrets left of a space of 100"),
        ({"n": -1}, "n=-1 is not a whole number of at least 0"),
        ({"n": 1.0}, "n=1.0 is not a whole number"),
        ({"n": True}, "n=True is not a whole number"),
        ({"n": 1, "rng": 0}, r"rng=0 is not a numpy\.random\.Generator"),
        ({"n": 1, "exclude": "07"}, "exclude is one string, not several secrets"),
        ({"n": -1, "rng": None}, "n=-1 .*; rng=None"),
    ],
)
def test_a_sample_that_cannot_be_drawn_is_explained(arguments, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        Template("{digits:2}").sample(**{"rng": rng(), **arguments})
    assert "07" not in str(caught.value)


def test_all_but_the_excluded_can_be_drawn_and_an_exclusion_may_be_repeated():
    drawn = Template("{digits:2}").sample(99, rng=rng(), exclude=iter(["07", "07"]))
    assert "07" not in {canary.secret for canary in drawn}
    assert len(drawn) == 99


@pytest.mark.parametrize(
    ("pattern", "vocabularies", "message"),
    [
        ("plain", {}, "pattern has no hole"),
        (7, {}, "pattern is of type int, not a string"),
        ("\ud800{digits:1}", {}, "pattern holds half of a surrogate pair"),
        ("{words:1}", {"words": "abc"}, "words is one string, not a list of strings"),
        ("{words:1}", {"words": 5}, "words is of type int, not a list of strings"),
        ("{words:1}", {"words": ["a", 5]}, r"words\[1\] is of type int, not str"),
        ("{words:1}", {"words": ["a", "\udc00"]}, "words holds half of a surrogate pair"),
        ("{words:1}", {"words": []}, "words= is empty"),
        ("{tokens:1}", {"tokens": ["a", "a"]}, "tokens= holds 1 choice"),
        ("{tokens:1}", {}, "tokens= was not given"),
        ("{digits:1}", {"words": ["a"]}, "words= was given and pattern has no"),
    ],
)
def test_a_template_that_cannot_be_is_explained(pattern, vocabularies, message):
    with pytest.raises(InvalidInput, match=message):
        Template(pattern, **vocabularies)


def test_a_template_too_ambiguous_to_count_is_refused():
    tokens = ["".join(t) for n in (1, 2, 3, 4) for t in product("abcdef", repeat=n)][::3]
    with pytest.raises(InvalidInput, match=r"counting its distinct secrets would take more than"):
        Template("{tokens:60}", tokens=tokens)
