"""Secrets stay off the screen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.canaries import Template
from remnant.cli.redaction import hidden, printable, shown, withheld
from remnant.errors import InvalidInput, RemnantError

WORDS = ["fig", "kiwi", "pomegranate"]


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (Template("{digits:1}"), "● (1 digit)"),
        (Template("a {hex:4} b"), "●●●● (4 hex digits)"),
        (Template("{words:2}", words=WORDS), "●● (2 words)"),
        (Template("{choice:yes|no}"), "● (1 choice)"),
        (Template("{digits:3}-{letters:2}"), "●●●●● (5 places)"),
        (Template("{tokens:40}", tokens=["a", "b"]), "●●●●●●●●●●●●●●●● (40 tokens)"),
    ],
)
def test_a_hidden_secret_tells_what_its_template_tells(template, said):
    assert hidden(template) == said


@given(seed=st.integers(0, 2**32))
def test_all_secrets_of_a_template_look_alike_until_they_are_revealed(seed):
    template = Template("{words:2} {digits:2}", words=WORDS)
    drawn = template.sample(5, rng=np.random.default_rng(seed))
    assert {shown(one.secret, template, reveal=False) for one in drawn} == {hidden(template)}
    assert [shown(one.secret, template, reveal=True) for one in drawn] == [
        one.secret for one in drawn
    ]


def test_what_a_line_cannot_show_is_quoted():
    assert printable("plain ü") == "plain ü"
    assert printable(" blank ü") == '" blank ü"'
    assert printable("a\x1b[2Jb") == '"a\\u001b[2Jb"'


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, InvalidInput, OSError])
def test_an_error_that_holds_a_secret_is_withheld(kind):
    with pytest.raises(InvalidInput) as caught, withheld(["zanzibar"]):
        raise kind("cannot read 'zanzibar'")
    assert "zanzibar" not in str(caught.value)
    assert kind.__name__ in str(caught.value)
    assert caught.value.__suppress_context__


def raise_from_a_secret(error):
    try:
        raise KeyError("zanzibar")
    except KeyError as fault:
        raise error from fault


def test_a_secret_in_the_cause_of_an_error_is_withheld_where_it_would_be_seen():
    with pytest.raises(InvalidInput, match="withheld"), withheld(["zanzibar"]):
        raise_from_a_secret(ValueError("no such token"))
    with pytest.raises(RemnantError, match="no such token"), withheld(["zanzibar"]):
        raise_from_a_secret(InvalidInput("no such token"))


def test_other_errors_pass_as_they_are():
    with pytest.raises(ZeroDivisionError), withheld(["zanzibar", "by"]):
        raise ZeroDivisionError("division by zero")
