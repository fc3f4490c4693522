"""The report in a real browser, with the network cut."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from remnant.report import write_curve_page, write_report

pytestmark = pytest.mark.browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
INSIDE = """
() => [...document.querySelectorAll('svg.chart')].filter(
  e => e.getClientRects().length).map(svg => {
  const box = e => e.getBoundingClientRect();
  const plot = box(svg.querySelector('.plot')), frame = box(svg);
  const within = (a, b, slack) => a.left >= b.left - slack && a.right <= b.right + slack
    && a.top >= b.top - slack && a.bottom <= b.bottom + slack;
  const shapes = '.line, .band, .bar, .spot, .ring, .whisker, .dash';
  const drawn = [...svg.querySelectorAll(shapes)].filter(
    e => e.tagName !== 'path' || e.getAttribute('d'));
  return {
    width: frame.width, height: frame.height, lines: drawn.length,
    inside: drawn.every(e => within(box(e), plot, 3)),
    words: [...svg.querySelectorAll('text')].every(e => within(box(e), frame, 1)),
  };
})
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
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a file with the network cut; afterwards see that nothing was asked for or complained."""
    contexts: list[Any] = []
    faults: list[str] = []

    def open_page(path: Path, *, width: int = 1200, scheme: str = "light") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        own = path.as_uri()
        context.route(lambda url: not url.startswith("file:"), lambda route: route.abort())
        page = context.new_page()
        page.on("request", lambda r: faults.append(r.url) if r.url != own else None)
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        page.goto(own)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


@pytest.mark.parametrize("width", [1200, 800, 390, 320])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_is_readable_at_any_width(make_run, visit, width, scheme):
    page = visit(write_report(make_run()), width=width, scheme=scheme)
    verdict = page.get_by_role("heading", name="PASS")
    assert verdict.is_visible()
    assert verdict.bounding_box()["y"] < 300
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    charts = page.evaluate(INSIDE)
    assert len(charts) == 4
    for chart in charts:
        assert chart["width"] > 200
        assert chart["height"] > 150
        assert chart["lines"] >= 2
        assert chart["inside"], chart
        assert chart["words"], chart


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(make_run, visit, scheme):
    page = visit(write_report(make_run()), scheme=scheme)
    for selector in (".lead", ".outcome", ".tiles small", "figcaption p", ".facts th", "summary"):
        assert page.evaluate(CONTRAST, selector) >= 4.5, selector


def test_every_lag_is_there_on_request(make_run, visit):
    page = visit(write_report(make_run()))
    rows = page.locator("details tbody tr")
    assert rows.count() == 16
    assert not rows.first.is_visible()
    page.locator("summary").click()
    assert rows.first.is_visible()


def test_hostile_text_is_only_text(make_run, visit):
    hostile = "<script>alert('x')</script><img src=http://example.org/x onerror=alert(1)>"
    folder = make_run(plan={"plan": {"note": hostile, "word": "w" * 400}})
    page = visit(write_report(folder), width=390)
    assert page.get_by_text(hostile).is_visible()
    assert page.locator("script, img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_run_without_anything_measured_opens(make_run, visit):
    names = ("verdict", "curve", "curve_aa", "curve_tpr", "curve_auc", "curve_accuracy")
    folder = make_run(without=(*names, "traditional", "task", "scope", "compare"), finish=False)
    page = visit(write_report(folder))
    assert page.get_by_role("heading", name="No verdict").is_visible()
    assert page.locator("svg").count() == 0


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_questions_stand_on_one_page(make_run, make_exposure, tmp_path, visit, width, scheme):
    make_run(name="demo")
    make_exposure(name="demo/keys")
    page = visit(write_report(tmp_path / "demo"), width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("PASS", "FAIL", "How attack success falls", "How exposed it is"):
        assert page.get_by_role("heading", name=name).is_visible()
    charts = page.evaluate(INSIDE)
    assert len(charts) == 6
    for chart in charts:
        assert chart["width"] > 200
        assert chart["inside"], chart
        assert chart["words"], chart
    assert page.evaluate(OVERLAPS) == []
    page.get_by_role("link", name="Exposure and extraction").click()
    part = page.get_by_role("heading", name="Exposure and extraction keys")
    assert part.bounding_box()["y"] < 100


@pytest.mark.parametrize("width", [1200, 320])
def test_a_crowded_exposure_page_keeps_its_labels_apart(make_exposure, visit, width):
    marked = [
        {"name": f"canary {i}", "repeats": 4 ** (i % 4), "cost": 27 - 0.2 * i * i, "bits": i / 2}
        for i in range(14)
    ]
    pattern = "<script>alert('x')</script>{digits:6}" + "w" * 300
    folder = make_exposure(
        change={"costs": {"marked": marked}, "exposure": {"template": pattern, "space": 36**20}}
    )
    page = visit(write_report(folder), width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OVERLAPS) == []
    assert all(chart["inside"] and chart["words"] for chart in page.evaluate(INSIDE))
    assert page.get_by_text(pattern).is_visible()
    page.get_by_text("Every canary and control").first.click()
    assert page.get_by_role("cell", name="never").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_exposure_text_stands_out_from_its_ground(make_run, make_exposure, tmp_path, visit, scheme):
    make_run(name="demo")
    make_exposure(name="demo/keys", change={"costs": {"ks_pvalue": 0.01}})
    page = visit(write_report(tmp_path / "demo"), scheme=scheme)
    for selector in (
        ".harm dd",
        ".harm small",
        ".chip.fail",
        ".chip.pass",
        ".contents a",
        "code",
        ".certificate",
        ".notice",
    ):
        assert page.evaluate(CONTRAST, selector) >= 4.5, selector


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (320, "dark")])
def test_the_one_run_report_is_readable_at_any_width(make_one_run, visit, width, scheme):
    page = visit(write_report(make_one_run()), width=width, scheme=scheme)
    assert page.get_by_role("heading", name="PASS").bounding_box()["y"] < 300
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    charts = page.evaluate(INSIDE)
    assert len(charts) == 3
    for chart in charts:
        assert chart["width"] > 200
        assert chart["lines"] >= 4
        assert chart["inside"], chart
        assert chart["words"], chart
    assert page.evaluate(OVERLAPS) == []
    rows = page.locator("details tbody tr")
    assert not rows.first.is_visible()
    page.get_by_text("Every window and checkpoint").click()
    assert rows.first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_later_window_shows_its_places_when_pointed_at(make_one_run, visit):
    page = visit(write_report(make_one_run()))
    dot = page.locator("#success-wide-title ~ circle.dot.dashed").last
    dot.scroll_into_view_if_needed()
    assert dot.evaluate("e => getComputedStyle(e).opacity") == "0"
    dot.hover()
    assert dot.evaluate("e => getComputedStyle(e).opacity") == "1"


@pytest.mark.parametrize("width", [1200, 800, 390, 320])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_prediction_report_is_readable_at_any_width(make_prediction, visit, width, scheme):
    page = visit(write_report(make_prediction()), width=width, scheme=scheme)
    assert page.get_by_role("heading", name="FINDING").bounding_box()["y"] < 300
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    charts = page.evaluate(INSIDE)
    assert len(charts) == 5
    for chart in charts:
        assert chart["width"] > 200
        assert chart["height"] > 150
        assert chart["lines"] >= 1
        assert chart["inside"], chart
        assert chart["words"], chart
    assert page.evaluate(OVERLAPS) == []
    for title in ("Memorised samples found against others flagged", "AUC against epochs"):
        assert page.get_by_role("img", name=title).first.is_visible()
    rows = page.locator("details tbody tr")
    assert not rows.first.is_visible()
    page.get_by_text("Every moment (60 rows)").click()
    assert rows.first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_prediction_text_stands_out_from_its_ground(make_prediction, visit, scheme):
    check = {"model": 6, "memorised": 60, "missed": 30, "rate": [0.5, 0.37, 0.63], "held": False}
    folder = make_prediction(change={"protect": {"check": check}})
    page = visit(write_report(folder), scheme=scheme)
    for selector in (".lead", ".tiles small", "td small", "th small", ".notice", ".note"):
        assert page.evaluate(CONTRAST, selector) >= 4.5, selector


def test_a_crowded_prediction_page_keeps_to_its_width(make_prediction, predicted, visit):
    row, word = predicted["prediction"]["by_layer"][0], "w" * 200
    rows = [row | {"layer": f"model.layers.{i}.{word}"} for i in range(32)]
    samples = [one | {"kind": word} for one in predicted["protect"]["samples"]]
    folder = make_prediction(
        change={"prediction": {"by_layer": rows}, "protect": {"samples": samples}}
    )
    page = visit(write_report(folder), width=320)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert len(page.evaluate(INSIDE)) == 6
    assert all(chart["inside"] for chart in page.evaluate(INSIDE))


@pytest.mark.parametrize("width", [1200, 800, 390, 320])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_features_report_is_readable_at_any_width(make_features, visit, width, scheme):
    page = visit(write_report(make_features()), width=width, scheme=scheme)
    assert page.get_by_role("heading", name="FAIL").bounding_box()["y"] < 300
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    pictures = page.evaluate(PICTURES)
    assert len(pictures) == 25
    for one in pictures:
        assert (one["own"], one["scaling"]) == (8, "pixelated")
        assert 30 < one["width"] == pytest.approx(one["height"], abs=1)
        assert one["right"] <= width
    # What belongs together stands in one column.
    assert len({round(one["left"]) for one in pictures if one["alt"].endswith("2 as it was")}) <= 2
    page.get_by_text("Every canary (10)").first.click()
    page.get_by_text("dropout: dropout 0.2").click()
    charts = page.evaluate(INSIDE)
    assert len(charts) == 10, "five of either way to train"
    for chart in charts:
        assert chart["width"] > 200
        assert chart["height"] > 150
        assert chart["inside"], chart
        assert chart["words"], chart
    assert page.evaluate(OVERLAPS) == []
    assert page.get_by_role("cell", name="high").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_features_text_stands_out_from_its_ground(make_features, visit, scheme):
    page = visit(write_report(make_features()), scheme=scheme)
    for selector in (".lead", "figcaption p", "td small", "th small", "thead th", ".note"):
        assert page.evaluate(CONTRAST, selector) >= 4.5, selector


def test_a_crowded_features_page_keeps_to_its_width(make_features, featured, visit):
    variant, word = featured["features"]["variants"][0], "w" * 200
    canary = variant["by_canary"][0]
    canaries = [canary | {"m": [16.1 * (-1) ** i, 1e-9, 0.0]} for i in range(60)]
    through = {"epoch": [0, 1e-3, 500], "planted": [[1e-12, -1e-11, 1e-11]] * 3}
    through["unplanted"] = through["planted"]
    variant |= {"name": word, "changes": word, "by_canary": canaries, "through": through}
    page = visit(write_report(make_features(change={"variants": [variant] * 3})), width=320)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    for summary in page.locator("summary").all():
        summary.click()
    charts = page.evaluate(INSIDE)
    assert len(charts) == 15
    for chart in charts:
        assert chart["inside"], chart
        assert chart["words"], chart
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize("width", [1200, 800, 390, 320])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_training_report_is_readable_at_any_width(make_training, visit, width, scheme):
    page = visit(write_report(make_training()), width=width, scheme=scheme)
    assert page.get_by_role("heading", name="FINDING").bounding_box()["y"] < 300
    for summary in page.locator("summary").all():
        summary.click()
    charts = page.evaluate(INSIDE)
    assert len(charts) == 6
    for chart in charts:
        assert chart["width"] > 200
        assert chart["height"] > 150
        assert chart["inside"], chart
        assert chart["words"], chart
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(SEAMS) == [4]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_training_text_stands_out_from_its_ground(make_training, visit, scheme):
    page = visit(write_report(make_training()), scheme=scheme)
    for selector in (
        ".lead",
        ".outcome",
        ".claim",
        "thead th",
        "caption",
        ".legend li",
        ".reading dd",
    ):
        assert page.evaluate(CONTRAST, selector) >= 4.5, selector


def test_a_crowded_training_page_keeps_to_its_width(make_training, visit):
    def crowd(results):
        found = results["training"]
        first, word = found["variants"][0], "w" * 120
        found["variants"] = [first | {"label": f"{word}{i}"} for i in range(40)]
        found["pareto"] = [one["label"] for one in found["variants"]]
        results["verdict"]["differences"] = [
            results["verdict"]["differences"][0] | {"label": label} for label in found["pareto"][1:]
        ]

    page = visit(write_report(make_training(crowd)), width=320)
    for summary in page.locator("summary").all():
        summary.click()
    assert all(chart["inside"] for chart in page.evaluate(INSIDE))
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize("width", [1200, 390])
def test_the_curve_page_opens(make_curve, tmp_path, visit, width):
    curve = make_curve(start=0.9, floor=0.6, chance=0.5, spread=0.05)
    page = visit(write_curve_page(curve, tmp_path / "curve.html"), width=width)
    (chart,) = page.evaluate(INSIDE)
    assert chart["inside"]
    assert chart["words"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


SEAMS = """
() => [...document.querySelectorAll('svg.chart')].filter(e => e.getClientRects().length).map(
  e => e.querySelectorAll('.seam').length).filter(n => n)
"""
PICTURES = """
() => [...document.querySelectorAll('img')].map(e => {
  const box = e.getBoundingClientRect();
  return {width: box.width, height: box.height, left: box.left, right: box.right, alt: e.alt,
    own: e.naturalWidth, scaling: getComputedStyle(e).imageRendering};
})
"""

OVERLAPS = """
() => [...document.querySelectorAll('svg.chart')].filter(
  e => e.getClientRects().length).flatMap(svg => {
  const words = [...svg.querySelectorAll('text')];
  const boxes = words.map(e => e.getBoundingClientRect());
  const found = [];
  for (let i = 0; i < words.length; i++) for (let j = 0; j < i; j++) {
    const [a, b] = [boxes[i], boxes[j]];
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    // Letters do not fill their line; a third of it may be shared.
    if (across > 1 && down > a.height / 3) found.push(
      words[i].textContent + ' | ' + words[j].textContent);
  }
  return found;
})
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
