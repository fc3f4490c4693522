"""What the site is made of: generated pages, and the check of its links."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

import remnant
from remnant.cli.main import commands

DOCS = Path(__file__).parents[1] / "docs"
GENERATED = runpy.run_path(str(DOCS / "extensions" / "generated_pages.py"))
LINKS = runpy.run_path(str(DOCS / "extensions" / "internal_links.py"))


@pytest.fixture(scope="module")
def pages():
    return dict(GENERATED["pages"]())


def test_every_name_at_the_top_of_the_package_has_a_page(pages):
    for name in set(remnant.__all__) - {"__version__"}:
        assert f":: remnant.{name}\n" in pages[f"api/{name}.md"]
        assert f"| [`{name}`]({name}.md) | " in pages["api/index.md"]


def test_rooms_modules_recipes_and_schema_have_pages(pages):
    assert ":: remnant.measures.queries_to_leak\n" in pages["api/measures.md"]
    assert "| `remnant.studies.registry` | " in pages["api/modules.md"]
    assert "\n## forgetting\n" in pages["recipes.md"]
    assert "properties" in json.dumps(json.loads(pages["recipe.schema.json"]))


def test_pages_are_written_once_and_old_ones_go(tmp_path):
    GENERATED["write_all"](tmp_path)
    written = (tmp_path / "recipes.md").stat().st_mtime_ns
    (tmp_path / "api" / "no_such_name.md").write_text("old")
    GENERATED["write_all"](tmp_path)
    assert (tmp_path / "recipes.md").stat().st_mtime_ns == written
    assert not (tmp_path / "api" / "no_such_name.md").exists()


def test_every_page_of_the_repository_is_in_a_table_of_contents():
    listed = set()
    for page in DOCS.rglob("*.md"):
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), flags=re.DOTALL):
            for line in filter(None, tree.splitlines()):
                name = re.sub(r".*<(.*)>", r"\1", line)
                listed.add((page.parent / name).resolve())
    hand_written = {page.resolve() for page in DOCS.rglob("*.md") if "_build" not in page.parts}
    assert {page.with_suffix("") for page in hand_written} - listed == {DOCS / "index"}


def test_the_page_of_commands_is_made_from_all_of_them():
    page = (DOCS / "reference" / "commands.rst").read_text()
    assert ".. click:: remnant.cli.main:commands\n   :prog: remnant\n   :nested: full\n" in page
    assert len(commands.commands) > 10


def test_a_link_to_nowhere_is_found(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.html").write_text('<h2 id="there">B</h2><img src="no.png">')
    (tmp_path / "a.html").write_text(
        '<a href="in/b.html#there">1</a><a href="in/b.html#not">2</a><a href="c.html">3</a>'
        '<a href="#">4</a><a href="https://a.example/x#y">5</a>'
    )
    assert LINKS["broken_links"](tmp_path) == [
        "a.html links to in/b.html#not: no such anchor",
        "a.html links to c.html: no such file",
        "in/b.html links to no.png: no such file",
    ]
