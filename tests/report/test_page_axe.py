"""The accessibility rules of axe on a document of three pages, with everything open."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from remnant.report.html import render

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing(browser: Browser, make_page, tmp_path, width, scheme):
    pages = [make_page(rows=30), make_page(name="none", outcome=None)]
    path = tmp_path / "report.html"
    path.write_text(render(pages, name="demo"), encoding="utf-8")
    # The policy of the page would not let the rules' own script run.
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    try:
        page = context.new_page()
        for view in ("#overview", "#run1-top", "#glossary", "#provenance"):
            page.goto(f"{path.as_uri()}{view}")
            page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
            found = Axe().run(page).response
            assert len(found["passes"]) > 15, "the rules were run"
            assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]] == []
    finally:
        context.close()
