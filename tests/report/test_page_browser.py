"""Pages in a real browser, with the network cut: with the script and without it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from remnant.report import blocks
from remnant.report.html import render

pytestmark = pytest.mark.browser

WIDE = "document.documentElement.scrollWidth"
COLUMN = "(n) => [...document.querySelectorAll('.long tbody tr')].filter(e => !e.hidden).map("
COLUMN += "e => e.cells[n].textContent)"
BOXES = """
[...document.querySelectorAll('table, figure, svg, pre')].filter(e => e.getClientRects().length
  && e.scrollWidth > e.parentElement.clientWidth + 2
  && getComputedStyle(e.parentElement).overflowX === 'visible').map(e => e.outerHTML.slice(0, 80))
"""
SHOWN = """
[...document.querySelectorAll('main > .view')].filter(e => e.checkVisibility()
  && e.getBoundingClientRect().height > 0).map(e => e.id || e.querySelector('h2').id)
"""
CONTRAST = """
selector => {
  const light = rgb => { const [r, g, b] = rgb.map(v => (v /= 255) <= .03928
    ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const element = document.querySelector(selector);
  let ground = element, paint = [0, 0, 0, 0];
  while (ground) {
    const found = numbers(getComputedStyle(ground).backgroundColor);
    if (found.length === 3 || found[3] > 0) { paint = found; break; }
    ground = ground.parentElement;
  }
  const a = light(numbers(getComputedStyle(element).color).slice(0, 3));
  const b = light(paint.slice(0, 3));
  return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
}
"""


@pytest.fixture
def visit(browser: Browser, make_page, tmp_path) -> Iterator[Callable[..., Page]]:
    """Open a document of three pages; afterwards see that nothing was asked for or complained."""
    contexts: list[Any] = []
    faults: list[str] = []
    path = tmp_path / "report.html"

    def open_page(*, width: int = 1200, scheme: str = "light", script: bool = True) -> Page:
        word = "w" * 60
        pages = [
            checked(make_page(rows=30)),
            make_page(lambda text: f"{text} {word}", name="long"),
            make_page(name="none", outcome=None),
        ]
        path.write_text(render(pages, name="demo"), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True,
            java_script_enabled=script, accept_downloads=True,
        )  # fmt: skip
        contexts.append(context)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        own = path.as_uri()
        page.on(
            "request",
            lambda r: None if r.url.startswith((own, "data:image/png")) else faults.append(r.url),
        )
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(own)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def checked(page: blocks.Page) -> blocks.Page:
    """A page with controls beside its headline, one of which contradicts it, and with a term."""
    checks = (
        blocks.Check(name="controls", status="at chance", text="controls at chance"),
        blocks.Check(name="scales", status="disagrees", text="scales differ", contradicts=True),
    )
    first, *rest = page.blocks
    claim = "The exposure is at least 9 bits."
    headline = dataclasses.replace(first, checks=checks, claim=claim)
    return dataclasses.replace(page, blocks=(headline, *rest))


def shown(page: Page) -> list[str]:
    """The ids of what is not hidden, of the overview, the studies and what follows them."""
    return list(page.evaluate(SHOWN))


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark"), (320, "light")])
def test_the_document_is_readable_at_any_width(visit, width, scheme):
    page = visit(width=width, scheme=scheme, script=False)
    assert page.get_by_role("heading", name="FAIL 2 of 3 gates failed").is_visible()
    assert page.locator(".studies .gauge").first.bounding_box()["y"] < 800
    page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert page.evaluate(WIDE) <= width
    assert page.evaluate(BOXES) == [], "what is wider than its box"
    for selector in (
        ".outcome", ".head .chip", ".measured p", ".measured small", ".claim", ".files", ".files a",
        ".notice", ".audited code", ".contents a", ".dot", ".against", ".contrary", ".checks li",
        ".studies small", ".reads",
    ):  # fmt: skip
        assert page.evaluate(CONTRAST, selector) >= 4.5, selector
    scripted = visit(width=width, scheme=scheme)
    assert scripted.evaluate(WIDE) <= width
    for selector in (".copy", ".counts button"):
        assert scripted.evaluate(CONTRAST, selector) >= 4.5, selector
    scripted.goto(f"{scripted.url}#run1-numbers-of-the-chart")
    for selector in (".sort", ".filter label"):
        assert scripted.evaluate(CONTRAST, selector) >= 4.5, selector


def test_one_study_is_shown_at_a_time(visit):
    page = visit()
    assert shown(page) == ["overview"]
    contents = page.get_by_role("navigation")
    contents.get_by_role("link", name="Exposure", exact=False).first.click()
    assert shown(page) == ["run1-top"]
    assert contents.locator("[aria-current=page]").count() == 1
    assert page.locator("#run1-top").bounding_box()["y"] < 120
    assert not page.locator("#run1-searches").evaluate("e => e.open")
    page.goto(page.url.partition("#")[0] + "#run3-searches")
    assert shown(page) == ["run3-top"]
    assert page.locator("#run3-searches").evaluate("e => e.open"), "a link opens its fold"
    page.go_back()
    assert shown(page) == ["run1-top"]
    page.locator("article:not([hidden]) .term").first.click()
    assert shown(page) == ["glossary"]
    assert page.locator(".entry[open]").count() == 1


def test_studies_are_filtered_by_outcome_and_by_words(visit):
    page = visit()
    rows = page.locator(".studies tbody tr")
    assert [row.is_visible() for row in rows.all()] == [True, True, True]
    button = page.get_by_role("button", name="FAIL 2")
    button.click()
    assert [row.is_visible() for row in rows.all()] == [True, True, False]
    assert button.get_attribute("aria-pressed") == "true"
    page.get_by_label("Filter studies").fill("WWWW")
    assert [row.is_visible() for row in rows.all()] == [False, True, False]
    assert page.locator(".contents [data-run]:visible").count() == 1
    button.click()
    page.get_by_label("Filter studies").fill("")
    assert page.locator(".contents [data-run]:visible").count() == 3


def test_everything_is_reached_by_the_keyboard(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.goto(page.url.partition("#")[0] + "#run1-top")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('svg.chart')"):
            break
    told = []
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        told.append(page.get_by_role("status").inner_text())
    assert told[0] == "chance"
    assert told[1:] == [
        "canary, lag 0: 9.000 (8.000 to 10.000)", "canary, lag 1: 5.000 (4.000 to 6.000)",
    ]  # fmt: skip
    page.keyboard.press("Escape")
    assert not page.locator(".tip").is_visible()
    page.keyboard.press("Tab")
    for _ in range(20):
        if page.evaluate("document.activeElement.matches('summary')"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open")


def test_a_value_of_a_chart_is_shown_where_it_is_touched(visit):
    page = visit(width=390)
    page.goto(page.url + "#run1-top")
    page.locator("article:not([hidden]) .narrow .dot").nth(2).click()
    assert page.locator(".tip").inner_text() == "canary, lag 2: 2.000 (1.000 to 3.000)"
    box = page.locator(".tip").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


def test_a_long_table_is_sorted_and_filtered(visit):
    page = visit()
    page.goto(page.url + "#run1-numbers-of-the-chart")
    page.get_by_role("button", name="Mean").first.click()
    means = page.evaluate(COLUMN, 2)
    assert means[0].startswith("-19.00")
    assert means[-1] == "–", "what is missing comes last"
    page.get_by_role("button", name="Mean").first.click()
    means = page.evaluate(COLUMN, 2)
    assert means[0].startswith("10.00")
    assert means[-1] == "–"
    page.get_by_label("Filter rows").first.fill("LEVEL 2")
    names = page.evaluate(COLUMN, 0)
    assert names == ["level 2", *(f"level {i}" for i in range(20, 30))]
    assert page.locator("output").first.inner_text().strip() == "11 of 30 rows"
    page.get_by_role("button", name="Level").first.click()
    assert page.evaluate(COLUMN, 0) == names
    assert page.locator("th[aria-sort=ascending]").count() == 1


def test_commands_are_copied_and_tables_downloaded(visit):
    page = visit()
    page.get_by_role("button", name="Copy").first.click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("remnant run ")
    page.get_by_text("Copied").wait_for()
    page.goto(page.url + "#run1-numbers-of-the-chart")
    with page.expect_download() as caught:
        page.get_by_role("link", name="CSV").first.click()
    assert caught.value.suggested_filename == "keys-levels.csv"
    assert caught.value.path().read_text(encoding="utf-8").startswith('"Level","Canaries"')


def test_everything_is_there_without_the_script(visit):
    page = visit(script=False)
    assert len(shown(page)) == 6, "all studies one after another"
    assert page.locator("button, input").count() == 0
    assert page.get_by_text("remnant run keys.toml").first.is_visible()
    page.get_by_text("Numbers of the chart").first.click()
    assert page.locator(".long").first.locator("tbody tr").count() == 30
    assert page.get_by_role("rowheader", name="level 29").first.is_visible()


def test_print_has_every_study_with_method_and_provenance_open(visit):
    page = visit()
    page.emulate_media(media="print")
    assert len(shown(page)) == 6
    for selector in (".contents", ".copy", ".find"):
        assert not page.locator(selector).first.is_visible(), selector
    for words in ("A small sentence.", "nothing was extracted.", "seed", "Bits."):
        place = page.locator(".in-print, .entry").get_by_text(words).first
        assert place.is_visible() == (words != "nothing was extracted."), words
    assert page.locator(".narrow").first.is_hidden()
