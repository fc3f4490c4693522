"""One glossary for all studies of a report, and links to it where its terms first occur."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from remnant.report.arrangement import Study
from remnant.report.blocks import Prose
from remnant.report.html_blocks import counted_slug, heading, inline, join, wrap

_ARTICLE = re.compile(r"^(the|an|a) ", re.IGNORECASE)
_PARTS = re.compile(r", (?:and )?|,? and ")
# Common words, which mean something else in most sentences.
_COMMON = {"what it means", "what it does not mean", "verdict", "finding", "difference", "holds"}
_LONGEST = 3  # words of a term that is looked for in sentences


@dataclass(frozen=True, slots=True)
class Term:
    """A term, and what it means: once, or by study where these differ.

    Attributes:
        meanings: Each with the titles of the studies that give it.
    """

    name: str
    ident: str
    meanings: tuple[tuple[str | Prose, tuple[str, ...]], ...]


@dataclass(slots=True)
class TermLinks:
    """Links the terms of one page to the glossary, each where it first occurs.

    Attributes:
        idents: Of the glossary's entries, by the word in lower case.
    """

    idents: dict[str, str]
    _linked: set[str] = field(default_factory=set)

    def mark(self, text: str) -> Markup:
        """The text, escaped, with links."""
        if not self.idents:
            return escape(text)
        words = "|".join(sorted(map(re.escape, self.idents), key=len, reverse=True))
        parts, end = [], 0
        for found in re.finditer(rf"(?<![\w-])({words})(?![\w-])", text, re.IGNORECASE):
            ident = self.idents.get(found[0].lower(), "")
            one_letter = len(found[0]) == 1
            if not ident or ident in self._linked or (one_letter and found[0].islower()):
                continue
            self._linked.add(ident)
            link = Markup('<a class="term" href="#{}">{}</a>').format(ident, found[0])
            parts += [escape(text[end : found.start()]), link]
            end = found.end()
        return join([*parts, escape(text[end:])])


def glossary_of(studies: Sequence[Study]) -> tuple[Term, ...]:
    """The terms of all studies by name; what is said alike is said once."""
    said: dict[str, dict[str | Prose, list[str]]] = {}
    names: dict[str, str] = {}
    for study in studies:
        for name, meaning in study.terms:
            key = _ARTICLE.sub("", name).lower()
            names.setdefault(key, _capital(_ARTICLE.sub("", name)))
            titles = said.setdefault(key, {}).setdefault(meaning, [])
            titles += [] if study.page.title in titles else [study.page.title]
    used: dict[str, int] = {}
    return tuple(
        Term(
            names[key],
            counted_slug(f"term-{names[key]}", used),
            tuple((meaning, tuple(titles)) for meaning, titles in said[key].items()),
        )
        for key in sorted(said)
    )


def links_to(terms: Iterable[Term], study: Study) -> TermLinks:
    """Links for the page of a study: to the terms that it explains itself."""
    own = {_ARTICLE.sub("", name).lower() for name, _ in study.terms}
    idents: dict[str, str] = {}
    for term in terms:
        if term.name.lower() in own:
            for part in _PARTS.split(term.name.lower()):
                word = _ARTICLE.sub("", part)
                if word not in _COMMON and len(word.split()) <= _LONGEST:
                    idents.setdefault(word, term.ident)
    return TermLinks(idents)


def glossary_view(terms: Sequence[Term], *, several: bool) -> Markup:
    """The glossary as HTML; nothing where there are no terms."""
    if not terms:
        return Markup("")
    entries = join(
        Markup('<details class="entry" id="{}"><summary>{}</summary>\n{}</details>\n').format(
            term.ident, term.name, join(_meaning(*each, several and term) for each in term.meanings)
        )
        for term in terms
    )
    return Markup(
        '<section class="view" id="glossary" aria-labelledby="glossary_title">\n{}</section>\n'
    ).format(
        heading(Markup("Glossary"), 2, "glossary_title", link="glossary")
        + wrap("div", entries, "entries")
    )


def _meaning(meaning: str | Prose, titles: Sequence[str], term: Term | bool) -> Markup:
    words = inline(meaning) if isinstance(meaning, Prose) else escape(meaning)
    which = isinstance(term, Term) and len(term.meanings) > 1
    said = Markup(" <small>{}</small>").format(", ".join(titles)) if which else ""
    return wrap("p", words + said)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
