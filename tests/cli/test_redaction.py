"""Secrets stay off the screen."""

from __future__ import annotations

import pytest

from remnant.canaries import Template
from remnant.cli.redaction import hidden, withheld
from remnant.errors import InvalidInput, RemnantError
from remnant.report.numerals import printable

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
