"""How Sphinx builds the site: ``make docs``."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import remnant

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

from generated_pages import write_all
from internal_links import broken_links

project = "Remnant"
author = "Remnant contributors"
copyright = author
version = release = remnant.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_design",
]
exclude_patterns = ["extensions"]

# Types in signatures are names of Python and of other libraries, which have no page here.
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 6

autodoc_typehints = "none"
napoleon_use_ivar = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = "Remnant"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False


def _as_written(app: Sphinx, context: object, lines: list[str]) -> None:
    """Keep the stars of a help text, such as those of a pattern of files, from being markup."""
    lines[:] = [line.replace("*", "\\*") for line in lines]


def _check_links(app: Sphinx, fault: Exception | None) -> None:
    if fault is None and app.builder.format == "html":
        faults = broken_links(Path(app.outdir))
        if faults:
            raise ExtensionError("Links of the site lead nowhere:\n" + "\n".join(faults))


def setup(app: Sphinx) -> None:
    """Write the generated pages before the sources are read; check links when all is built."""
    app.connect("config-inited", lambda *_: write_all())
    for part in ("description", "options"):
        app.connect(f"sphinx-click-process-{part}", _as_written)
    app.connect("build-finished", _check_links)
