"""The fields of a recipe's sections: name, type, default, choices and meaning."""

from __future__ import annotations

import dataclasses
import inspect
import re
from dataclasses import MISSING, dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from remnant.plans.bounds import bound_of
from remnant.studies.shared.study import Recipe

_ATTRIBUTE = re.compile(r"    (\w+(?:, \w+)*): (.*)")
_KEPT = ("Not set:", "Empty:", "Give either", "Names of version")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeField:
    """One field of a section.

    Attributes:
        name: As it is written in a recipe.
        type: The annotation with its bound, without ``None``.
        default: The default; ``dataclasses.MISSING`` where a recipe must give the field.
        choices: The allowed values; empty where others are allowed too.
        meaning: What the field is, from the docstring; one or more sentences.
    """

    name: str
    type: Any
    default: Any
    choices: tuple[str, ...]
    meaning: str

    @property
    def required(self) -> bool:
        """Whether a recipe must give the field."""
        return self.default is MISSING

    @property
    def unset(self) -> bool:
        """Whether the field is not set by default; TOML has no value for this."""
        return self.default is None

    @property
    def plain_meaning(self) -> str:
        """The meaning without marks of code."""
        return self.meaning.replace("``", "")

    @property
    def short_meaning(self) -> str:
        """The first sentence of the meaning, and what holds where the field is not given."""
        first, *others = _SENTENCE.split(self.meaning)
        kept = [sentence for sentence in others if sentence.startswith(_KEPT)]
        return " ".join([first, *kept]).replace("``", "")


def fields_of(section: type[Any]) -> tuple[RecipeField, ...]:
    """Return the fields of a section's or plan's dataclass, in their order."""
    hints, meanings = get_type_hints(section, include_extras=True), _meanings(section)
    return tuple(
        RecipeField(
            name=known.name,
            type=_without_none(hints[known.name]),
            default=_default(known),
            choices=choices_of(hints[known.name]),
            meaning=meanings.get(known.name, ""),
        )
        for known in dataclasses.fields(section)
    )


def choices_of(annotation: Any) -> tuple[str, ...]:
    """Return the values that an annotation allows; empty where it does not list them."""
    bound = bound_of(annotation)
    return () if bound is None else tuple(bound.schema.get("enum", ()))


def summary_of(section: type[Any]) -> str:
    """Return the first line of a dataclass's docstring."""
    return (inspect.cleandoc(section.__doc__ or "").splitlines() or [""])[0]


def section_defaults(recipe: Recipe) -> dict[str, Any]:
    """Return what each section is where a recipe leaves it out.

    Returns:
        An instance of the section's class, ``None`` for a section that is off by default, or
        ``dataclasses.MISSING`` for one that a recipe must have.
    """
    known = {field.name: field for field in dataclasses.fields(recipe.study)}
    return {name: _default(known[name]) for name in recipe.sections}


def type_words(annotation: Any) -> str:
    """Return a field's type in words.

    Example:
        >>> type_words(int | tuple[int, ...])
        'whole number or list of whole numbers'
    """
    if get_origin(annotation) is Annotated:
        return type_words(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(type_words(part) for part in get_args(annotation))
    if get_origin(annotation) is tuple:
        entry = type_words(get_args(annotation)[0])
        return f"list of {entry}s"
    return "table" if get_origin(annotation) is dict else _WORDS[annotation]


_WORDS = {int: "whole number", float: "number", str: "text", bool: "true or false"}


def _default(known: dataclasses.Field[Any]) -> Any:
    if known.default_factory is not MISSING:
        return known.default_factory()
    return known.default


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    left = tuple(part for part in get_args(annotation) if part is not NoneType)
    return left[0] if len(left) == 1 else Union[left]  # noqa: UP007


def _meanings(section: type[Any]) -> dict[str, str]:
    """Return what the docstrings say of each field; a subclass's word counts first."""
    made: dict[str, str] = {}
    for owner in section.__mro__:
        for name, meaning in _attributes(owner.__dict__.get("__doc__") or "").items():
            made.setdefault(name, meaning)
    return made


def _attributes(docstring: str) -> dict[str, str]:
    """Return the entries of a docstring's ``Attributes:``, each on one line."""
    _, _, block = inspect.cleandoc(docstring).partition("\nAttributes:\n")
    made: dict[str, str] = {}
    names: list[str] = []
    for line in block.splitlines():
        if not line.startswith("    "):
            break  # the next heading, or the end
        if entry := _ATTRIBUTE.fullmatch(line):
            names = entry[1].split(", ")
            made |= dict.fromkeys(names, entry[2])
        else:
            made |= {name: f"{made[name]} {line.strip()}" for name in names}
    return made
