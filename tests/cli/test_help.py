"""The help: commands and options in order of use."""

from __future__ import annotations

import click
import pytest

from remnant.cli.help import help_layout
from remnant.cli.main import commands

ALIASES = {"runs", "report"}


def leaves(group=commands, before=""):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


EVERY = dict(leaves())


def headings(text):
    return [line[:-1] for line in text.splitlines() if line and line[0] != " " and line[-1] == ":"]


def test_every_command_stands_in_one_section_in_order_of_use(command):
    listed = [name for names in help_layout.COMMANDS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(listed) == commands.commands.keys() - ALIASES
    text = command("--help").out
    assert headings(text) == ["Options", *help_layout.COMMANDS]
    shown = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
    assert [name for name in shown if name in listed] == listed
    assert not ALIASES & set(shown), "aliases work and are not shown"


@pytest.mark.parametrize("name", EVERY)
def test_every_option_is_shown_once_and_at_most_twelve_before_advanced(name, command):
    own = EVERY[name]
    options = {param.opts[0] for param in own.params if isinstance(param, click.Option)}
    groups = help_layout.option_groups(own.name)
    first = [option for names in groups.values() for option in names]
    assert len(first) == len(set(first)) <= 12
    assert set(first) <= options, "the layout names options that are there"
    text = command(*name.split(), "--help").out
    assert headings(text) == [
        *groups,
        *([] if "Output" in groups else ["Output"]),
        *(["Advanced"] if options - set(first) else []),
    ]
    words = [
        word.rstrip(",")
        for line in text.partition(f"\n{headings(text)[0]}:\n")[2].splitlines()
        if line.startswith("  -")
        for word in line.split()[:2]
    ]
    assert all(words.count(option) == 1 for option in options)
    required = [
        param.opts[0]
        for param in own.params
        if isinstance(param, click.Option) and param.required and param.opts[0] not in first
    ]
    assert required == [], "what is required is not advanced"


def test_layouts_are_of_commands_that_exist():
    assert help_layout.OPTIONS.keys() <= {own.name for own in EVERY.values()}
    assert all(groups.keys() <= set(help_layout.GROUPS) for groups in help_layout.OPTIONS.values())


@pytest.mark.parametrize("name", EVERY)
def test_out_has_a_short_name_everywhere(name):
    for param in EVERY[name].params:
        if "--out" in param.opts:
            assert "-o" in param.opts
