"""The first screen: the overall outcome, a line a study, what was audited and what was not."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from remnant.report.blocks import Figure, Headline, Outcome, Page, Scope, Table, walk
from remnant.report.html_blocks import (
    chips,
    download,
    heading,
    join,
    listing,
    measured,
    tone,
    verdict,
    wrap,
)
from remnant.report.numerals import counted

_FEW = 8  # sentences that are shown without a fold
_FINGERPRINT = 12  # digits


@dataclass(frozen=True, slots=True)
class DamagedRun:
    """A run that a report has to leave out.

    Attributes:
        name: Of its folder.
        fault: Why, in one sentence.
    """

    name: str
    fault: str


def judged(page: Page) -> bool:
    """Whether a page is of a study, or has a headline; a curve by itself has none."""
    return bool(page.question) or any(isinstance(block, Headline) for block in page.blocks)


def outcome_of(page: Page) -> Outcome | None:
    """The outcome of a page; a gate that is not complete has not passed."""
    outcome = page.headline.outcome
    return "INCONCLUSIVE" if outcome == "PASS" and not page.complete else outcome


def overall(pages: Sequence[Page], damaged: Sequence[DamagedRun] = ()) -> Outcome | None:
    """The worst outcome of all gates.

    A run without a verdict, and one that cannot be read, count as INCONCLUSIVE. FINDING where there
    are only findings, and None where there is no outcome at all.
    """
    outcomes = [outcome_of(page) for page in pages if judged(page)]
    if "FAIL" in outcomes:
        return "FAIL"
    if not any(outcomes):
        return None
    if "INCONCLUSIVE" in outcomes or None in outcomes or damaged:
        return "INCONCLUSIVE"
    return "PASS" if "PASS" in outcomes else "FINDING"


def overview(pages: Sequence[Page], idents: Sequence[str], damaged: Sequence[DamagedRun]) -> Markup:
    """The overall outcome of several pages, and a line for each."""
    outcome = overall(pages, damaged)
    title = Markup('<span class="outcome">{}</span> {}').format(
        outcome or "No verdict", _overall_words(outcome)
    )
    inner = heading(title, 2, "report_overall") + wrap(
        "p", escape(counts_sentence(pages, damaged)), "sentence"
    )
    studies = join(_study(page, ident) for page, ident in zip(pages, idents, strict=True))
    contents = heading(Markup("In this report"), 2, "report_contents")
    contents += wrap("ol", studies, "studies")
    return verdict(outcome, inner, labelled="report_overall") + Markup(
        '<nav class="contents" aria-labelledby="report_contents">\n{}</nav>\n'
    ).format(contents)


def damaged_runs(damaged: Sequence[DamagedRun]) -> Markup:
    """The runs that are not in the report."""
    lines = [
        Markup('<span class="run">{}</span> cannot be read: {}').format(run.name, run.fault)
        for run in damaged
    ]
    return Markup(
        '<aside class="contents" aria-labelledby="report_damaged">\n{}{}</aside>\n'
    ).format(heading(Markup("Not in this report"), 2, "report_damaged"), listing(lines, ""))


def audited(pages: Sequence[Page], *, name: str) -> Markup:
    """What was audited, the command that repeats it, and what was not tested."""
    parts = [heading(Markup("What was audited"), 2, "report_audited"), *_facts(pages)]
    recipes = [page for page in pages if page.recipe]
    command = _command(pages, name=name)
    if command:
        code = Markup('<code class="command">{}</code>').format(command)
        files = join(
            Markup(" {}").format(
                download(f"{page.name}.toml", f"{page.name}.toml", page.recipe, "application/toml")
            )
            for page in recipes
        )
        saved = Markup(" with{}").format(files) if files else ""
        parts.append(Markup("<p>To repeat it{}: {}</p>\n").format(saved, code))
    if len(pages) > 1:
        parts += _other_commands(pages)
    parts += _not_tested(pages)
    return Markup(
        '<section class="audited" aria-labelledby="report_audited">\n{}</section>\n'
    ).format(join(parts))


def _overall_words(outcome: Outcome | None) -> str:
    return {
        "PASS": "Every gate passed",
        "FAIL": "At least one gate failed",
        "INCONCLUSIVE": "At least one gate could not be decided",
        "FINDING": "Findings only: no study has a limit",
    }.get(outcome or "", "No study has an outcome")


def counts_sentence(pages: Sequence[Page], damaged: Sequence[DamagedRun] = ()) -> str:
    """How many runs there are, by outcome."""
    counts = Counter(outcome_of(page) for page in pages if judged(page))
    words = [f"{counts[o]} {o}" for o in ("FAIL", "INCONCLUSIVE", "PASS") if counts[o]]
    words += [counted(counts["FINDING"], "finding")] if counts["FINDING"] else []
    words += [f"{counts[None]} without a verdict"] if counts[None] else []
    words += [f"{len(damaged)} that cannot be read"] if damaged else []
    return f"{counted(len(pages) + len(damaged), 'run')}: {', '.join(words)}."


def _study(page: Page, ident: str) -> Markup:
    block, outcome = page.headline, outcome_of(page)
    chip = Markup('<span class="chip {}">{}</span>').format(tone(outcome), outcome or "no verdict")
    first = Markup(
        '<p><a href="#{}top">{}</a> <span class="run">{}</span> {} <small>{}{}</small></p>\n'
    ).format(
        ident,
        page.title,
        page.name,
        chip if judged(page) else "",
        block.title if judged(page) else "",
        "" if page.complete else " (not complete)",
    )
    advice = (
        Markup('<p class="do"><strong>What to do:</strong> {}</p>\n').format(block.advice)
        if block.advice
        else Markup("")
    )
    return wrap("li", first + measured(block) + chips(block.contrary) + advice)


def _facts(pages: Sequence[Page]) -> list[Markup]:
    """A small table a run."""
    tables = []
    for page in pages:
        rows = [*page.audited]
        if page.fingerprint:
            rows.append(("Plan", page.fingerprint[:_FINGERPRINT]))
        lines = join(
            Markup('<tr><th scope="row">{}</th><td>{}</td></tr>\n').format(*row) for row in rows
        )
        caption = wrap("caption", escape(f"{page.title}: {page.name}"))
        tables.append(wrap("table", caption + wrap("tbody", lines), "facts"))
    inner = wrap("div", join(tables), "groups")
    if len(pages) <= 2:
        return [inner]
    summary = f"Model, data, date and version of {len(pages)} runs"
    return [wrap("details", wrap("summary", escape(summary)) + inner)]


def _command(pages: Sequence[Page], *, name: str) -> str:
    """The command that repeats the runs with a recipe; that of the only run as it is."""
    if len(pages) == 1:
        return pages[0].command
    repeated = [page for page in pages if page.recipe]
    recipes = [shlex.quote(f"{page.name}.toml") for page in repeated]
    options = {page.options for page in repeated}
    if len(options) > 1:  # each in its folder, as one command for all would put them
        return " && ".join(
            f"remnant run {recipe} {page.options} --out {shlex.quote(f'{name}/{page.name}')}"
            for recipe, page in zip(recipes, repeated, strict=True)
        )
    words = ["remnant run", *recipes, *filter(None, options), "--out", shlex.quote(name)]
    return " ".join(words) if recipes else ""


def _other_commands(pages: Sequence[Page]) -> Iterator[Markup]:
    """The commands that made the runs whose recipe the report does not hold."""
    made: dict[str, list[str]] = {}
    for page in pages:
        if not page.recipe:
            made.setdefault(page.command, []).append(page.name)
    for command, names in made.items():
        which = ", ".join(names)
        code = Markup('<code class="command">{}</code>').format(command)
        said = code if command else "it is in no record"
        yield Markup("<p>Command of {}: {}</p>\n").format(which, said)


def _not_tested(pages: Sequence[Page]) -> list[Markup]:
    """Each sentence once, with the studies that say it where not all do.

    A single page without charts and tables says it right below, and nothing is repeated here.
    """
    if len(pages) == 1 and not any(isinstance(b, Figure | Table) for b in walk(pages[0].blocks)):
        return []
    said: dict[str, list[str]] = {}
    for page in pages:
        for block in walk(page.blocks):
            for line in block.not_tested if isinstance(block, Scope) else ():
                titles = said.setdefault(line, [])
                titles += [] if page.title in titles else [page.title]
    if not said:
        return []
    everywhere = len({page.title for page in pages})
    lines = [
        escape(line)
        if len(titles) == everywhere
        else Markup("{} <small>{}</small>").format(line, ", ".join(titles))
        for line, titles in said.items()
    ]
    shown = listing(lines, "crosses")
    if len(lines) <= _FEW:
        return [heading(Markup("Not tested"), 3), shown]
    return [wrap("details", wrap("summary", escape(f"Not tested: {len(lines)} points")) + shown)]
