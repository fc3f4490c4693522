"""Imports every public module of the installed package; ``make wheel`` runs it outside the tree."""

from __future__ import annotations

import importlib
import pkgutil

import remnant


def main() -> None:
    names = [m.name for m in pkgutil.walk_packages(remnant.__path__, "remnant.")]
    for name in names:
        importlib.import_module(name)
    for name in remnant.__all__:
        getattr(remnant, name)
    from importlib.resources import files

    for needed in ("report/templates/report.html.j2", "studies/recipes/digits-inject.toml"):
        if not (files("remnant") / needed).is_file():
            raise SystemExit(f"The wheel lacks {needed}.")
    if "src" in str(remnant.__path__):
        raise SystemExit(f"This is the source tree, not the wheel: {remnant.__path__}.")
    print(f"imported {len(names)} modules from {remnant.__path__[0]}")


if __name__ == "__main__":
    main()
