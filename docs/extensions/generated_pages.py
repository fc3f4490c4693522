"""Write the pages of the reference that come from the code, before Sphinx reads the sources.

Recipes and their JSON schema, and the Python API: a page for each name at the top of the package,
a page for each room whose names are documented, and a list of all modules. The files lie beside
the pages that are written by hand, and git ignores them.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import remnant
from remnant.studies.recipe_form.reference import recipe_reference
from remnant.studies.recipe_form.schema import recipe_schema

REFERENCE = Path(__file__).parents[1] / "reference"
ROOMS = ("canaries", "measures", "models", "plans", "population", "privacy", "probes", "search")
"""Rooms whose names are documented, each on one page."""
EXAMPLES = {
    "audit_texts": ("tutorials/quickstart-finished-model.md", "import numpy as np"),
    "load": ("how-to/results-in-python.md", "result = remnant.load"),
}
"""Of names whose docstring has none, since it needs files: a page whose code is run, and the first
line of it. It ends where the block of code ends."""

_TOP = """# Python API

`from remnant import NAME`. Names are imported on first use. All other measures, plans and models,
and what functions return, are in the rooms below.
"""
_SCHEMA = """# JSON schema of recipes

What `remnant recipe schema` prints: names, types and choices of all fields, for editors.
`remnant run --dry-run` checks everything. {download}`Download it <recipe.schema.json>`, or look
fields up in [Recipes](recipes.md).

```{literalinclude} recipe.schema.json
:language: json
:lines: 1-40
```
"""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path below ``docs/reference`` and the text of every generated page."""
    yield "recipes.md", recipe_reference()
    yield "recipe-schema.md", _SCHEMA
    yield "recipe.schema.json", json.dumps(recipe_schema(), indent=2) + "\n"
    names = sorted(set(remnant.__all__) - {"__version__"}, key=str.lower)
    yield "api/index.md", _index(names)
    for name in names:
        yield f"api/{name}.md", _name(name)
    for room in ROOMS:
        yield f"api/{room}.md", _room(room)
    yield "api/modules.md", _modules()


def write_all(reference: Path = REFERENCE) -> None:
    """Write every generated page, and remove pages of the API that are no longer made."""
    made = set()
    for name, text in pages():
        path = reference / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        made.add(path)
    for old in {*(reference / "api").glob("*.md")} - made:
        old.unlink()


def _index(names: list[str]) -> str:
    rows = "".join(f"| [`{name}`]({name}.md) | {_summary(f'remnant.{name}')} |\n" for name in names)
    rooms = "".join(
        f"| [`remnant.{r}`]({r}.md) | {_module_summary(f'remnant.{r}')} |\n" for r in ROOMS
    )
    tree = "\n".join([*names, *ROOMS, "modules"])
    return (
        f"{_TOP}\n| name | |\n|---|---|\n{rows}\n## Rooms\n\n| room | |\n|---|---|\n{rooms}\n"
        "[All modules](modules.md) are listed too.\n\n"
        f"```{{toctree}}\n:hidden:\n\n{tree}\n```\n"
    )


def _name(name: str) -> str:
    """Return the page of a name: what it does, an example, and what it returns."""
    page = f"# {name}\n\n{_described(f'remnant.{name}')}"
    if name in EXAMPLES:
        path, first = EXAMPLES[name]
        page += (
            f"\nExample:\n\n```{{literalinclude}} ../../{path}\n:language: python\n"
            f":start-at: {first}\n:end-before: '```'\n```\n"
        )
    found = _got(f"remnant.{name}")
    returned = getattr(found, "__annotations__", {}).get("return", "")
    if inspect.isfunction(found) and returned in remnant._HOME:
        page += f"\n## What it returns\n\n{_described(f'remnant.{returned}')}"
    return page


def _room(room: str) -> str:
    module = importlib.import_module(f"remnant.{room}")
    parts = [f"# remnant.{room}\n\n{_module_summary(module.__name__)}\n"]
    values = []
    for name in sorted(module.__all__, key=str.lower):
        if name in remnant.__all__:
            parts.append(f"## {name}\n\nOn [a page of its own]({name}.md).\n")
        elif callable(getattr(module, name)):
            parts.append(f"## {name}\n\n{_described(f'remnant.{room}.{name}')}")
        else:
            values.append(f"`{name}`")
    if values:
        parts.append(f"## Values\n\n{', '.join(values)}.\n")
    return "\n".join(parts)


def _described(name: str) -> str:
    """Return the directive that shows a name's signature and docstring."""
    found = _got(name)
    kind, members = "function", ""
    if inspect.isclass(found):
        kind, members = "class", "\n   :members:"
    elif inspect.ismodule(found):
        kind, members = "module", "\n   :members:"
    return f"```{{eval-rst}}\n.. auto{kind}:: {name}\n   :no-index:{members}\n```\n"


def _got(name: str) -> Any:
    module, _, wanted = name.rpartition(".")
    return getattr(importlib.import_module(module), wanted)


def _summary(name: str) -> str:
    lines = (inspect.getdoc(_got(name)) or "").partition("\n\n")[0]
    return " ".join(lines.split()).replace("``", "`").replace("|", "\\|")


def _module_summary(name: str) -> str:
    """Return the first sentence of a module, without importing it."""
    spec = importlib.util.find_spec(name)
    tree = ast.parse(Path(str(spec and spec.origin)).read_text(encoding="utf-8"))
    lines = (ast.get_docstring(tree) or "").partition("\n\n")[0]
    return " ".join(lines.split()).replace("``", "`").replace("|", "\\|")


def _modules() -> str:
    home = Path(remnant.__file__).parent
    names = sorted(module.name for module in pkgutil.walk_packages([str(home)], "remnant."))
    rows = "".join(f"| `{name}` | {_module_summary(name)} |\n" for name in names)
    return (
        "# All modules\n\nWhat is not on a page of its own may change between versions.\n\n"
        f"| module | what it holds |\n|---|---|\n{rows}"
    )
