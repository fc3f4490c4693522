"""Pages -> one HTML file that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from remnant.errors import RecordError, write_error
from remnant.report import first_screen
from remnant.report.blocks import Block, Headline, Page, Pictures, Sounds, Tiles, walk
from remnant.report.first_screen import DamagedRun
from remnant.report.html_blocks import BlockWriter
from remnant.report.quoting import visible

__all__ = ["DamagedRun", "fragment", "render", "write_page"]

_TEMPLATES = Path(__file__).parent / "templates"


def render(pages: Sequence[Page], *, name: str = "", damaged: Sequence[DamagedRun] = ()) -> str:
    """Render one page, or several as one document that begins with an overview.

    Guarantees:
        * Every text of a block is escaped, and control characters are shown as their codes.
        * The document refers to nothing outside itself, and its content policy forbids it to; the
          policy names the one script by its hash.
        * Everything can be read without the script.
        * The same pages give the same document.

    Args:
        pages: In the order of the document.
        name: What the document is called if it holds several pages.
        damaged: Runs that could not be read, which the document names.
    """
    idents = [f"run{i}-" if len(pages) > 1 else "" for i in range(1, len(pages) + 1)]
    name = name if len(pages) > 1 else pages[0].name
    top = first_screen.damaged_runs(damaged) if damaged else Markup("")
    if len(pages) > 1:
        top = first_screen.overview(pages, idents, damaged) + top
        top += first_screen.audited(pages, name=name)
    template = _environment().get_template("frame.html.j2")
    document = template.render(
        title=_title(pages, name, damaged),
        heading=f"{pages[0].title} report" if len(pages) == 1 else f"Report on {len(pages)} runs",
        name=name,
        policy=_policy(pages),
        style=Markup(_asset("style.css")),
        script=Markup(_asset("report.js")),
        top=top,
        runs=[_run(page, ident) for page, ident in zip(pages, idents, strict=True)],
        fingerprints=[page.fingerprint[:12] for page in pages if page.fingerprint],
    )
    return visible(document)


def fragment(blocks: Sequence[Block]) -> str:
    """Render blocks as a piece of HTML for a page that is not ours, such as a notebook.

    Guarantees:
        * As in ``render``, texts are escaped and nothing outside is referred to; no script.
        * The style holds for nothing but the piece.
        * The same blocks give the same piece.
    """
    alone = BlockWriter(ident="", level=2, name="result").page(blocks)
    ident = hashlib.sha256(alone.encode("utf-8", "replace")).hexdigest()[:8]
    body = BlockWriter(ident=f"r{ident}-", level=2, name="result").page(blocks)
    # Rules within a rule hold for what is inside of it; a page's own become those of the piece.
    style = re.sub(r"(?m)(^|\{):root\{", r"\1&{", _asset("style.css"))
    style = re.sub(r"(?m)^body\{margin:0;", "&{padding:.75rem;", style)
    piece = Markup(
        '<div class="remnant-result">\n<style>.remnant-result{{{}}}</style>\n'
        "<article>\n{}</article>\n</div>\n"
    ).format(Markup(style), body)
    return visible(piece)


def write_page(path: Path, document: str, *, private: bool = False) -> Path:
    """Write a document; the file is the old one or the new one, never something between.

    Args:
        path: Of the file.
        document: HTML or Markdown.
        private: Whether only the owner may read the file.

    Raises:
        RecordError: The file cannot be written.
    """
    if path.exists() and not path.is_file():
        raise RecordError(f"{path} is not a plain file.", hint="Choose another file with --out.")
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)
        mode = 0o600 if private else 0o666
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(document.encode("utf-8", errors="replace"))
        os.replace(temporary, path)
    except OSError as error:
        raise write_error(path, error, hint="Choose another file with --out.") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return path


def _run(page: Page, ident: str) -> dict[str, object]:
    """What the frame shows of a page: its headline and tiles, then what was audited, the rest."""
    writer = BlockWriter(ident=ident, level=3 if ident else 2, name=page.name)
    first = 0
    while first < len(page.blocks) and isinstance(page.blocks[first], Headline | Tiles):
        first += 1
    between = Markup("")
    if not ident and (page.question or page.audited):
        between = first_screen.audited([page], name=page.name)
    return {
        "page": page,
        "ident": ident,
        "body": writer.page(_with_headline(page, page.blocks[:first]))
        + between
        + writer.page(page.blocks[first:]),
    }


def _with_headline(page: Page, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """A study without a headline says that there is no verdict."""
    there = any(isinstance(block, Headline) for block in page.blocks)
    return blocks if there or not page.question else (page.headline, *blocks)


def _title(pages: Sequence[Page], name: str, damaged: Sequence[DamagedRun]) -> str:
    if not any(first_screen.judged(page) for page in pages):
        return f"{name or pages[0].title} · Remnant"
    if len(pages) == 1:
        return f"{name}: {first_screen.outcome_of(pages[0]) or 'no verdict'} · Remnant"
    return f"{name}: {first_screen.overall(pages, damaged) or 'no verdict'} · Remnant"


def _policy(pages: Sequence[Page]) -> str:
    """Only our own style and script; pictures and sounds where there are some, from the page."""
    blocks = [block for page in pages for block in walk(page.blocks)]
    pictures = any(isinstance(block, Pictures) for block in blocks)
    sounds = any(isinstance(block, Sounds) for block in blocks)
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_digest(_asset('style.css'))}'",
            f"script-src '{_digest(_asset('report.js'))}'",
            "base-uri 'none'",
            "form-action 'none'",
            *(["img-src data:"] if pictures else []),
            *(["media-src data:"] if sounds else []),
        ]
    )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


@cache
def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8").strip()


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("remnant.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
