"""Messages of the library in the words of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from remnant.cli.options.naming import named, naming
from remnant.errors import InvalidInput, UnsupportedModel


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("folder='a b' is not a folder.", "--model a b is not a folder."),
        ("source=./a.txt is empty.", "--insert ./a.txt is empty."),
        ("words= is empty; words[3] is odd.", "--words is empty; words[3] is odd."),
        ("repeats[2]=0 is too few.", "--repeats 0 is too few."),
        ("Draw others with another seed=.", "Draw others with another --seed."),
        ("place_seed=1 and max_seed=3 are others.", "place_seed=1 and max_seed=3 are others."),
        ("pattern has no hole; pattern holds it.", "TEMPLATE has no hole; TEMPLATE holds it."),
        ("the pattern has it.", "the pattern has it."),
    ],
)
def test_arguments_become_options(text, expected):
    options = {"folder": "--model", "source": "--insert", "words": "--words", "seed": "--seed"}
    assert named(text, repeats="--repeats", pattern="TEMPLATE", **options) == expected


def test_an_error_keeps_its_kind_and_its_hint_is_named_too():
    with pytest.raises(UnsupportedModel) as fault, naming(device="--device"):
        raise UnsupportedModel("device='x' is odd.", hint="Pass device='cpu'.")
    assert str(fault.value) == "--device x is odd. Pass --device cpu."


def test_a_message_that_begins_with_the_path_gets_its_option():
    with pytest.raises(InvalidInput) as fault, naming("--canaries", Path("c.jsonl")):
        raise InvalidInput("c.jsonl, line 3: this is no canary.")
    assert str(fault.value) == "--canaries c.jsonl, line 3: this is no canary."
