"""Pages in a real browser, with the network cut: with the script and without it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from remnant.report.html import render

pytestmark = pytest.mark.browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDE = "document.documentElement.scrollWidth"
COLUMN = "(n) => [...document.querySelectorAll('.long tbody tr')].filter(e => !e.hidden).map("
COLUMN += "e => e.cells[n].textContent)"
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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        pytest.fail(f"no browser found: install one of {', '.join(BROWSERS)}")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Browser, make_page, tmp_path) -> Iterator[Callable[..., Page]]:
    """Open a document of three pages; afterwards see that nothing was asked for or complained."""
    contexts: list[Any] = []
    faults: list[str] = []
    path = tmp_path / "report.html"

    def open_page(*, width: int = 1200, scheme: str = "light", script: bool = True) -> Page:
        word = "w" * 60
        pages = [
            make_page(rows=30),
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


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark"), (320, "light")])
def test_the_document_is_readable_at_any_width(visit, width, scheme):
    page = visit(width=width, scheme=scheme)
    assert page.get_by_role("heading", name="FAIL At least one gate failed").is_visible()
    assert page.locator(".studies .gauge").first.bounding_box()["y"] < 600
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate(WIDE) <= width
    for selector in (
        ".outcome", ".chip", ".measured p", ".measured small", ".do", ".files", ".files a", ".sort",
        ".copy", ".filter label", ".notice", ".audited code",
    ):  # fmt: skip
        assert page.evaluate(CONTRAST, selector) >= 4.5, selector
    page.get_by_role("link", name="Exposure", exact=True).first.click()
    assert page.locator("#run1-top").bounding_box()["y"] < 100


def test_a_long_table_is_sorted_and_filtered(visit):
    page = visit()
    page.get_by_role("button", name="Mean").first.click()
    means = page.evaluate(COLUMN, 2)
    assert means[0].startswith("-19.00")
    assert means[-1] == "–", "what is missing comes last"
    page.get_by_role("button", name="Mean").first.click()
    means = page.evaluate(COLUMN, 2)
    assert means[0].startswith("10.00")
    assert means[-1] == "–"
    page.get_by_label("Filter rows").fill("LEVEL 2")
    names = page.evaluate(COLUMN, 0)
    assert names == ["level 2", *(f"level {i}" for i in range(20, 30))]
    assert page.locator("output").inner_text().strip() == "11 of 30 rows"
    page.get_by_role("button", name="Level").first.click()
    assert page.evaluate(COLUMN, 0) == names
    assert page.locator("th[aria-sort=ascending]").count() == 1


def test_commands_are_copied_and_tables_downloaded(visit):
    page = visit()
    page.get_by_role("button", name="Copy").first.click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("remnant run ")
    page.get_by_text("Copied").wait_for()
    with page.expect_download() as caught:
        page.get_by_role("link", name="CSV").first.click()
    assert caught.value.suggested_filename == "keys-levels.csv"
    assert caught.value.path().read_text(encoding="utf-8").startswith('"Level","Canaries"')


def test_everything_is_there_without_the_script_and_in_print(visit):
    page = visit(script=False)
    assert page.locator(".long tbody tr").count() == 30
    assert page.get_by_role("rowheader", name="level 29").is_visible()
    assert page.locator("button, input").count() == 0
    assert page.get_by_text("remnant run keys.toml").first.is_visible()
    page.locator("summary").first.click()
    printed = visit()
    printed.emulate_media(media="print")
    assert not printed.locator(".files").first.is_visible()
    assert not printed.get_by_label("Filter rows").is_visible()
    assert printed.get_by_role("rowheader", name="level 29").is_visible()
