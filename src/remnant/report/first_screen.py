"""The first screen: the overall outcome, a line a study, what was audited and what was not."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from remnant.report.blocks import Headline, Outcome, Page, Scope, walk
from remnant.report.gauge import gauge, interval_text
from remnant.report.html_blocks import code, download, heading, join, listing, tone, verdict, wrap
from remnant.report.numerals import counted, in_print

_FEW = 8  # sentences that are shown without a fold
_FINGERPRINT = 12  # digits
_SMALL = 168.0  # width of a gauge in the table, in pixels
_MADE = ("Date", "Remnant")  # what the head of the report says
_SEVERITY: dict[Outcome | None, int] = {
    "FAIL": 0, "INCONCLUSIVE": 1, None: 2, "PASS": 3, "FINDING": 4,
}  # fmt: skip


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


def by_severity(pages: Sequence[Page]) -> tuple[Page, ...]:
    """The pages with failures first; those of equal outcome stay in their order."""
    return tuple(sorted(pages, key=lambda page: _SEVERITY[outcome_of(page)]))


def overview(pages: Sequence[Page], idents: Sequence[str], damaged: Sequence[DamagedRun]) -> Markup:
    """The worst outcome in a sentence with its claim, and a table of several studies."""
    outcome = overall(pages, damaged)
    title = Markup('<span class="outcome">{}</span> {}').format(
        outcome or "No verdict", _overall_words(pages, outcome)
    )
    inner = heading(title, 2, "report_overall", link="overview")
    worst = next((i for i, page in enumerate(pages) if outcome_of(page) == outcome), None)
    if worst is not None and outcome is not None:
        inner += _worst(pages[worst], idents[worst])
    rows = join(_study(page, ident) for page, ident in zip(pages, idents, strict=True))
    names = ("Study", "Outcome", "Result", "Limit", "On its scale", "Controls", "Evidence")
    heads = wrap(
        "tr", join(Markup('<th scope="col" role="columnheader">{}</th>').format(n) for n in names)
    )
    table = Markup(
        '<table class="studies" role="table"><caption>Studies, failures first</caption>\n'
        '<thead role="rowgroup">{}</thead>\n<tbody role="rowgroup">\n{}</tbody></table>\n'
    ).format(heads, rows)
    return verdict(outcome, inner, labelled="report_overall") + wrap("div", table, "scroll")


def damaged_runs(damaged: Sequence[DamagedRun]) -> Markup:
    """The runs that are not in the report."""
    lines = [
        Markup('<span class="run">{}</span> cannot be read: {}').format(run.name, run.fault)
        for run in damaged
    ]
    return Markup(
        '<section class="notice" aria-labelledby="report_damaged">\n{}{}</section>\n'
    ).format(heading(Markup("Not in this report"), 2, "report_damaged"), listing(lines, ""))


def audited(pages: Sequence[Page], *, name: str) -> Markup:
    """What was audited, the command that repeats it, and what was not tested."""
    parts = [heading(Markup("What was audited"), 2, "report_audited"), *_facts(pages)]
    recipes = [page for page in pages if page.recipe]
    command = _command(pages, name=name)
    if command:
        files = join(
            Markup(" {}").format(
                download(f"{page.name}.toml", f"{page.name}.toml", page.recipe, "application/toml")
            )
            for page in recipes
        )
        saved = Markup(" with{}").format(files) if files else ""
        parts.append(Markup("<p>To repeat it{}: {}</p>\n").format(saved, code(command)))
    if len(pages) > 1:
        parts += _other_commands(pages)
    return Markup(
        '<section class="audited" aria-labelledby="report_audited">\n{}</section>\n{}'
    ).format(join(parts), not_tested(pages))


def not_tested(pages: Sequence[Page]) -> Markup:
    """One table of what was not tested, each sentence once; nothing where no page says it."""
    said: dict[str, list[str]] = {}
    for page in pages:
        for block in walk(page.blocks):
            for line in block.not_tested if isinstance(block, Scope) else ():
                titles = said.setdefault(_sentence(line), [])
                titles += [] if page.title in titles else [page.title]
    if not said:
        return Markup("")
    title = heading(Markup("What was not tested"), 2, "report_not_tested")
    everywhere = len({page.title for page in pages})
    if everywhere == 1:
        return _boxed("report_not_tested", title + listing(tuple(said), "crosses"))
    rows = join(
        Markup("<tr><td>{}</td><td>{}</td></tr>\n").format(
            line, "all" if len(titles) == everywhere else ", ".join(titles)
        )
        for line, titles in said.items()
    )
    heads = Markup('<tr><th scope="col">Not tested</th><th scope="col">Study</th></tr>')
    table = wrap("table", wrap("thead", heads) + wrap("tbody", rows), "untested")
    inner = wrap("div", table, "scroll")
    if len(said) <= _FEW:
        return _boxed("report_not_tested", title + inner)
    head = Markup("<summary>{} ({} points)</summary>").format("What was not tested", len(said))
    return Markup(
        '<details class="in-print untold" id="report_not_tested">\n{}\n{}</details>\n'
    ).format(head, inner)


def _boxed(labelled: str, inner: Markup) -> Markup:
    return Markup('<section aria-labelledby="{}">\n{}</section>\n').format(labelled, inner)


def _sentence(line: str) -> str:
    """A line of a scope as a sentence, however the record has it."""
    shown = in_print(line[:1].upper() + line[1:])
    return shown if shown.endswith((".", "?", "!")) else f"{shown}."


def _worst(page: Page, ident: str) -> Markup:
    """The study with the worst outcome: what it found, its claim, and where it is."""
    block = page.headline
    link = Markup('<a href="#{}top">{}</a>').format(ident, page.title)
    claim = block.claim or block.sentence
    return Markup('<p class="claim"><strong>{}:</strong> {}. {}</p>\n').format(
        link, block.title, in_print(claim)
    )


def _overall_words(pages: Sequence[Page], outcome: Outcome | None) -> str:
    gates = [page for page in pages if judged(page) and outcome_of(page) != "FINDING"]
    many = sum(outcome_of(page) == outcome for page in gates)
    which = f"{many} of {counted(len(gates), 'gate')}"
    return {
        "PASS": "Every gate passed",
        "FAIL": f"{which} failed",
        "INCONCLUSIVE": "At least one gate could not be decided",
        "FINDING": "Findings only: no study has a limit",
    }.get(outcome or "", "No study has an outcome")


def counts(pages: Sequence[Page], damaged: Sequence[DamagedRun] = ()) -> list[tuple[str, str, int]]:
    """How many runs have each outcome: its class, its name, and the count."""
    found = Counter(outcome_of(page) for page in pages if judged(page))
    rows = [
        (tone(o), ("finding" if o == "FINDING" else o) or "no verdict", found[o])
        for o in _SEVERITY
        if found[o]
    ]
    return rows + ([("none", "cannot be read", len(damaged))] if damaged else [])


def counts_sentence(pages: Sequence[Page], damaged: Sequence[DamagedRun] = ()) -> str:
    """How many runs there are, by outcome."""
    counts = Counter(outcome_of(page) for page in pages if judged(page))
    words = [f"{counts[o]} {o}" for o in ("FAIL", "INCONCLUSIVE", "PASS") if counts[o]]
    words += [counted(counts["FINDING"], "finding")] if counts["FINDING"] else []
    words += [f"{counts[None]} without a verdict"] if counts[None] else []
    words += [f"{len(damaged)} that cannot be read"] if damaged else []
    return f"{counted(len(pages) + len(damaged), 'run')}: {', '.join(words)}."


def _study(page: Page, ident: str) -> Markup:
    """The row of a study."""
    block, outcome = page.headline, outcome_of(page)
    chip = Markup('<span class="chip {}">{}</span>').format(tone(outcome), outcome or "no verdict")
    cut = "" if page.complete else " (not complete)"
    study = Markup('<a href="#{}top">{}</a> <small class="run">{}{}</small>').format(
        ident, page.title, page.name, cut
    )
    reading = block.reading
    cells: list[tuple[str, Markup | str]] = [("Outcome", chip if judged(page) else "")]
    if reading is None:
        cells += [
            ("Result", block.title if judged(page) else ""),
            ("Limit", ""),
            ("On its scale", ""),
        ]
    else:
        interval = interval_text(reading)
        result = Markup("<strong>{}</strong>{} <small>{}</small>").format(
            reading.show(reading.value),
            f" ({interval})" if interval else "",
            in_print(reading.name),
        )
        cells += [
            ("Result", result),
            ("Limit", "" if reading.limit is None else reading.show(reading.limit)),
            ("On its scale", gauge(reading, width=_SMALL)),
        ]
    cells += [
        ("Controls", _controls(block)),
        ("Evidence", "" if reading is None else reading.n),
    ]
    written = join(
        Markup('<td role="cell" data-name="{}"{}>{}</td>').format(
            name, "" if inner else Markup(" class=empty"), inner
        )
        for name, inner in cells
    )
    head = Markup('<th scope="row" role="rowheader">{}</th>').format(study)
    return Markup('<tr role="row" data-run="{}top">{}</tr>\n').format(ident, head + written)


def _controls(block: Headline) -> Markup | str:
    """How many controls there are, and which of them contradict the outcome."""
    if not block.checks:
        return ""
    if not block.contrary:
        return Markup('<span class="held">✓ none of {} contradicts</span>').format(
            len(block.checks)
        )
    against = ", ".join(check.name for check in block.contrary)
    return Markup('<span class="against">✕ {} of {} contradict: {}</span>').format(
        len(block.contrary), len(block.checks), against
    )


def _facts(pages: Sequence[Page]) -> list[Markup]:
    """Model, data and digests: names and values of one run, a table with a row each of several."""
    if len(pages) == 1:
        page = pages[0]
        digests = ", ".join(f"{name} {digest}" for name, digest in _digests(page))
        rows = [*page.audited, *([("Digests", digests)] if digests else [])]
        lines = join(
            Markup('<tr><th scope="row">{}</th><td>{}</td></tr>\n').format(*row) for row in rows
        )
        return [wrap("table", wrap("tbody", lines), "facts")] if rows else []
    lines = join(
        Markup('<tr><th scope="row">{}</th><td>{}</td><td>{}</td></tr>\n').format(
            page.title,
            "; ".join(f"{name}: {value}" for name, value in page.audited if name not in _MADE),
            Markup("<br>").join(
                Markup("{} <code>{}</code>").format(*row) for row in _digests(page)
            ),
        )
        for page in pages
    )
    heads = join(
        Markup('<th scope="col">{}</th>').format(n) for n in ("Study", "Model and data", "Digests")
    )
    table = wrap("table", wrap("thead", wrap("tr", heads)) + wrap("tbody", lines), "runs")
    return [wrap("div", table, "scroll")]


def _digests(page: Page) -> list[tuple[str, str]]:
    both = (("plan", page.fingerprint), ("data", page.data_fingerprint))
    return [(name, digest[:_FINGERPRINT]) for name, digest in both if digest]


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
        which, have = ", ".join(names), "has" if len(names) == 1 else "have"
        said = code(command) if command else "its command is in no record"
        yield Markup("<p>To repeat {}, which {} no recipe here: {}</p>\n").format(which, have, said)
