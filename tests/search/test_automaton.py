"""The automaton of a template: every secret once, equal subtrees one place."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.canaries.template import Template
from remnant.search import compile_template
from remnant.search.automaton import secret_of, secret_path

SYMBOLS = list("0123456789abc- .x")


def encode(text):
    return [SYMBOLS.index(c) for c in text]


@pytest.mark.parametrize(
    ("pattern", "places", "chain"),
    [
        ("x{digits:9}", 10, True),
        ("{digits:3}-{digits:2}.", 8, True),
        ("x{choice:a|ab}", 3, False),
        ("x{choice:ab|ac}-", 4, True),
        ("x{choice:ab|cc}{digits:1}", 5, False),
    ],
)
def test_equal_subtrees_are_one_place(pattern, places, chain):
    automaton = compile_template(encode, Template(pattern))
    assert len(automaton.final) == places
    assert automaton.chain is chain


def paths_of(automaton):
    """All accepted token sequences, by walking every edge."""
    found, waiting = [], [((), 0)]
    while waiting:
        path, place = waiting.pop()
        if automaton.final[place]:
            found.append(path)
        for edge in range(automaton.offsets[place], automaton.offsets[place + 1]):
            waiting.append(((*path, int(automaton.tokens[edge])), int(automaton.targets[edge])))
    return found


CHOICES = st.lists(st.text("ab", max_size=3), min_size=1, max_size=4, unique=True)


@settings(max_examples=150)
@given(holes=st.lists(CHOICES, min_size=1, max_size=3), suffix=st.sampled_from(["", "-", "ab"]))
def test_every_secret_has_one_path_and_every_path_is_a_secret(holes, suffix):
    space = {"".join(filling) for filling in itertools.product(*holes)}
    if space == {""}:
        return
    pattern = "x" + "".join("{choice:" + "|".join(hole) + "}" for hole in holes if hole != [""])
    template = Template(pattern + suffix)
    automaton = compile_template(encode, template)
    paths = paths_of(automaton)
    assert len(set(paths)) == len(paths) == automaton.counts[0] == len(space)
    assert {secret_of(automaton, template, path) for path in paths} == space
    for secret in space:
        path = secret_path(encode, automaton, template, secret)
        assert automaton.accepts(path)
        assert secret_of(automaton, template, path) == secret
    assert automaton.depth == max(map(len, paths))
    by_depth = [len({p[:d] for p in paths if len(p) >= d}) for d in range(1, automaton.depth + 1)]
    assert automaton.widths == by_depth


def test_what_is_no_secret_is_not_accepted():
    automaton = compile_template(encode, Template("x{digits:2}"))
    assert not automaton.accepts(encode("1"))
    assert not automaton.accepts(encode("1a"))
    assert not automaton.accepts(encode("123"))


def test_large_vocabularies_are_compiled_place_by_place():
    words = [f"{a}{b}{c}" for a in "abc" for b in "0123456789" for c in "0123456789"]
    symbols = [*words, " ", "x"]
    table = {symbol: i for i, symbol in enumerate(symbols)}

    def by_word(text):
        return [table[piece] for piece in text.replace(" ", "\0 \0").split("\0") if piece]

    automaton = compile_template(by_word, Template("x {words:3}", words=words))
    assert len(automaton.final) == 6
    assert len(automaton.tokens) == 902
    assert automaton.counts[0] == 300**3
    assert np.all(np.diff(automaton.offsets) >= 0)
