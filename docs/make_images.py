"""Make the pictures of the README and the demo's page: ``make docs-images``.

They are the report's own blocks, drawn in Chromium: the page of an audit of the tiny model of
``examples/tiny_model.py``, and two charts of the demo.

python docs/make_images.py DEMO   # DEMO: a folder that `remnant demo` wrote
"""

from __future__ import annotations

import argparse
import html
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
LARGEST = 200_000
"""Bytes that a picture may have."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
AUDIT = (
    "remnant audit --model try/tuned-model --reference-model try/your-model "
    "--seen try/train.jsonl --unseen try/heldout.jsonl --limit 0.6 --out try/audit"
)
LINES = 5
"""Lines of the terminal above the page."""
TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #fff }}
pre {{ margin: 0; padding: 14px 18px; border: 1px solid #d0d7de; border-radius: 8px; color: #1f2328;
  background: #f6f8fa; font: 15px/1.5 "DejaVu Sans Mono", monospace; white-space: pre-wrap }}
b {{ color: #b42318 }}
img {{ display: block; width: 100%; margin-top: 12px;
  outline: 1px solid #d0d7de; outline-offset: -1px }}
</style><pre>$ {command}\n{output}</pre><img src="{page}">"""


def main() -> None:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("demo", type=Path, help="a folder that remnant demo wrote")
    demo = parser.parse_args().demo.resolve()
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        executable = next(filter(None, map(shutil.which, BROWSERS)))
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        _audit_picture(browser, Path(made))
        page = _opened(browser, demo / "report.html", width=1000, height=900)
        _chart(page, "Exposure and extraction", "article", "demo-exposure.png")
        _chart(page, "Forgetting", "[id$=odd-images-are-kept]", "demo-curve.png")
        browser.close()


def _opened(browser: Browser, path: Path, *, width: int, height: int) -> Page:
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="light",
        device_scale_factor=1.5,
        bypass_csp=True,
    )
    page.goto(path.as_uri())
    return page


def _audit_picture(browser: Browser, folder: Path) -> None:
    """Audit the tiny model, and draw what the terminal says first above the page of the audit."""
    example = [sys.executable, ROOT / "examples" / "tiny_model.py", "try", "--tuned"]
    subprocess.run(example, cwd=folder, check=True, capture_output=True)
    command = [Path(sys.executable).with_name("remnant"), *AUDIT.split()[1:]]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode != 1:
        raise SystemExit(f"The audit was to end with FAIL. {done.stdout}{done.stderr}")
    report = _opened(browser, folder / "try" / "audit" / "report.html", width=1120, height=576)
    report.screenshot(path=folder / "page.png")
    lines = html.escape("\n".join(done.stdout.splitlines()[:LINES]))
    outcome, rest = lines.split(":", 1)
    (folder / "both.html").write_text(
        TERMINAL.format(
            command=AUDIT.replace(" --seen", " \\\n    --seen"),
            output=f"<b>{outcome}</b>:{rest}",
            page="page.png",
        ),
        encoding="utf-8",
    )
    both = _opened(browser, folder / "both.html", width=1120, height=200)
    _kept(both.screenshot(full_page=True), "audit.png")


def _chart(page: Page, study: str, place: str, file: str) -> None:
    """Draw one chart of a study in the report of the demo, without its caption."""
    page.add_style_tag(
        content="figure { padding: 12px; background: #fff } figcaption { display: none }"
    )
    page.locator("nav a", has_text=study).first.click()
    page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    figure = page.locator(f"{place} figure:visible").first
    _kept(figure.screenshot(), file)


def _kept(picture: bytes, file: str) -> None:
    """Store a picture with a palette: a page has few colours."""
    small = io.BytesIO()
    colours = Image.open(io.BytesIO(picture)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    colours.save(small, format="png", optimize=True)
    if (size := small.getbuffer().nbytes) > LARGEST:
        raise SystemExit(f"{file} has {size} bytes, more than {LARGEST}.")
    (IMAGES / file).write_bytes(small.getbuffer())


if __name__ == "__main__":
    main()
