"""After a build: every link inside the site leads to a page, and to an anchor that is on it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

UNCHECKED = {"genindex.html", "search.html", "py-modindex.html"}


class _Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what a tag links to, and what it is called."""
        for name, value in attrs:
            if value and (name == "id" or (tag == "a" and name == "name")):
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """Return a sentence for each link of a site that leads nowhere.

    Links to other sites are not followed.
    """
    pages = {
        path.resolve(): _Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")
    }
    faults = []
    for path, page in sorted(pages.items()):
        if path.name in UNCHECKED:
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                faults.append(f"{path.relative_to(site.resolve())} links to {link}: no such file")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                faults.append(f"{path.relative_to(site.resolve())} links to {link}: no such anchor")
    return faults
