"""How commands read their arguments: one error for all that is missing, and suggestions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click

from remnant.cli.help.help_layout import ADVANCED, option_groups
from remnant.cli.help.suggestions import meant_commands, meant_options
from remnant.errors import InvalidInput

_LEFT = 30  # characters of the column with the names of options


class Command(click.Command):
    """A command that names everything that is missing at once, and suggests what was meant.

    Args:
        one_of: Names of parameters one of which is needed, a tuple for each such choice. They are
            named beside required parameters that are missing; the command checks them itself.
        arguments, settings: Those of ``click.Command``.
    """

    def __init__(
        self, *arguments: Any, one_of: tuple[tuple[str, ...], ...] = (), **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self.one_of = one_of

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments.

        Raises:
            click.UsageError: An option is unknown, or something is missing.
        """
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as fault:
            meant = meant_options(fault.option_name, of=_long_options(self))
            said = f"No such option {fault.option_name!r}.{_suggestion(meant)}"
            raise click.UsageError(said, ctx) from None
        except click.MissingParameter:
            missing = self._missing(ctx, given)
            if len(missing) < 2:
                raise
            raise click.UsageError(f"Missing: {', '.join(missing)}.", ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by group, in order of use, in two columns."""
        rows = {
            param.opts[0]: row
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and (row := param.get_help_record(ctx)) is not None
        }
        groups = {
            group: [rows.pop(name) for name in names if name in rows]
            for group, names in option_groups(self.name or "").items()
        }
        asked = [rows.pop(name) for name in ctx.help_option_names if name in rows]
        groups["Output"] = [*groups.get("Output", ()), *asked]
        groups[ADVANCED] = [*rows.values()]
        written = {group: own for group, own in groups.items() if own}
        left = min(max(len(row[0]) for own in written.values() for row in own), _LEFT)
        for group, own in written.items():
            with formatter.section(group):
                formatter.write_dl([(f"{name:<{left}}", text) for name, text in own], col_max=_LEFT)

    def _missing(self, ctx: click.Context, args: list[str]) -> list[str]:
        """What is needed and not given, in the order of the help."""
        opts, _, _ = self.make_parser(ctx).parse_args(args)
        absent = {}
        for param in self.params:
            value, _ = param.consume_value(ctx, opts)
            if param.value_is_missing(value):
                absent[param.name] = param
        choices = {names[0]: names for names in self.one_of if absent.keys() >= set(names)}
        missing = []
        for name, param in absent.items():
            if name in choices:
                missing.append(" or ".join(_shown(absent[other]) for other in choices[name]))
            elif param.required:
                missing.append(_shown(param))
        return missing


class Group(click.Group):
    """A group whose commands refuse an option of one value that is given twice.

    Args:
        sections: Names of commands by what they are for, in the order of the help; without it all
            commands stand in one list.
        arguments, settings: Those of ``click.Group``.
    """

    command_class = Command

    def __init__(
        self,
        *arguments: Any,
        sections: Mapping[str, tuple[str, ...]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self.sections = sections or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        first = [name for names in self.sections.values() for name in names]
        return [*first, *(name for name in self.commands if name not in first)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, in order of use."""
        shown = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        left = max(map(len, shown))
        for section, names in (self.sections or {"Commands": tuple(shown)}).items():
            rows = [
                (f"{name:<{left}}", self.commands[name].get_short_help_str(formatter.width))
                for name in names
            ]
            with formatter.section(section):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command and its arguments.

        Raises:
            InvalidInput: An option that takes one value is given twice.
            click.UsageError: There is no such command; the sentence names one that may be meant.
        """
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except click.UsageError as fault:
            raise click.UsageError(fault.message + self._meant(args[0]), ctx) from None
        if command is not None and not isinstance(command, click.Group):
            _refuse_repeated(click.Context(command, info_name=name, parent=ctx), rest)
        return name, command, rest

    def _meant(self, word: str) -> str:
        names = [name for name, command in self.commands.items() if not command.hidden]
        return _suggestion(meant_commands(word, of=names))


def _suggestion(meant: Sequence[str]) -> str:
    return f" Did you mean {' or '.join(map(repr, meant))}?" if meant else ""


def _refuse_repeated(context: click.Context, arguments: list[str]) -> None:
    context.resilient_parsing = True
    try:
        _, _, order = context.command.make_parser(context).parse_args(list(arguments))
    except click.UsageError:  # the command says so
        return
    for param, times in Counter(order).items():
        if isinstance(param, click.Option) and times > 1 and _takes_one(param):
            raise InvalidInput(
                f"{param.opts[0]} is given {times} times and takes one value.",
                hint="Give it once.",
            )


def _takes_one(option: click.Option) -> bool:
    return not (option.multiple or option.is_flag or option.count)


def _shown(param: click.Parameter) -> str:
    return (
        param.opts[0]
        if isinstance(param, click.Option)
        else (param.metavar or (param.name or "").upper())
    )


def _long_options(command: click.Command) -> list[str]:
    return [
        name
        for param in command.params
        if isinstance(param, click.Option) and not param.hidden
        for name in param.opts
        if name.startswith("--")
    ]
