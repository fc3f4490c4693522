"""Checks the installed package in an environment without extras; ``make wheel`` runs it.

Every public module is imported, the shipped recipes are listed and copied, and each
command that needs an extra must say so in one sentence before it reads or writes anything.
"""

from __future__ import annotations

import importlib
import pkgutil
import tempfile
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import remnant
from remnant.errors import RemnantError

EXTRAS = ("sklearn", "PIL", "transformers", "peft", "datasketch", "phonenumbers")


def main() -> None:
    names = [m.name for m in pkgutil.walk_packages(remnant.__path__, "remnant.")]
    for name in names:
        importlib.import_module(name)
    for name in remnant.__all__:
        getattr(remnant, name)
    for needed in ("report/templates/frame.html.j2", "studies/recipes/digits-inject.toml"):
        if not (files("remnant") / needed).is_file():
            raise SystemExit(f"The wheel lacks {needed}.")
    if "src" in str(remnant.__path__):
        raise SystemExit(f"This is the source tree, not the wheel: {remnant.__path__}.")
    installed = [name for name in EXTRAS if find_spec(name) is not None]
    if installed:
        raise SystemExit(f"This environment has extras, so that it shows nothing: {installed}.")
    with tempfile.TemporaryDirectory() as folder:
        check_recipes(Path(folder))
        commands = check_extras(Path(folder))
    print(
        f"imported {len(names)} modules from {remnant.__path__[0]}; "
        f"{commands} commands name the extra that they need"
    )


def check_recipes(folder: Path) -> None:
    """Recipes are listed and copied."""
    run("recipe", "list")
    run("recipe", "copy", "stdlib-secret", folder / "mine.toml")


def check_extras(folder: Path) -> int:
    """Each command that needs an extra names it and writes nothing; returns how many there are."""
    model, pictures, out = folder / "model", folder / "pictures", folder / "out"
    adapter, canaries, text = folder / "adapter", folder / "canaries.jsonl", folder / "mail.txt"
    rows = folder / "rows.jsonl"
    for made in (model, pictures, adapter):
        made.mkdir()
    (model / "config.json").write_text("{}")
    (adapter / "adapter_config.json").write_text("{}")
    text.write_text("number 536-90-4399\n")
    rows.write_text('{"text": "one", "label": 0}\n{"text": "two", "label": 1}\n')
    program = folder / "program.pt2"
    program.write_bytes(b"")
    run("canaries", "pin {digits:4}", "--out", canaries)
    run("recipe", "new", "text-prediction", "--out", folder / "language.toml")
    patch = ("--text", "A", "--images", pictures)
    needing = {
        "data": [
            ("demo", "--out", out),
            ("feature", "--model", program, *patch, "--out", out),
        ],
        "hf": [
            ("exposure", "--model", model, "--canaries", canaries),
            ("extract", "--model", model, "--template", "pin {digits:4}"),
            ("predict", "--model", model, "--data", rows, "--out", folder / "risks.csv"),
            ("feature", "--model", model, *patch, "--out", out),
            ("canaries", "{tokens:2}", "--model", model, "--out", out),
            ("exposure", "--model", adapter, "--base", model, "--canaries", canaries),
            ("run", folder / "language.toml", "--out", out),
        ],
        "scan": [
            ("scan", text, "--out", out),
            ("scan", text, "--kinds", "ssn", "--model", model, "--out", out),
        ],
    }
    before = sorted(folder.rglob("*"))
    for extra, commands in needing.items():
        for command in commands:
            said = refused(*command)
            if f"(the extra {extra})" not in said or "pip install '" not in said:
                raise SystemExit(f"remnant {command[0]} does not name the extra {extra}: {said}")
            if sorted(folder.rglob("*")) != before:
                raise SystemExit(f"remnant {command[0]} wrote before it named the extra {extra}.")
    return sum(map(len, needing.values()))


def run(*arguments: object) -> None:
    from remnant.cli.main import commands

    commands.main([str(argument) for argument in arguments], standalone_mode=False)


def refused(*arguments: object) -> str:
    """Return what a command says that must not run."""
    try:
        run(*arguments)
    except RemnantError as fault:
        return str(fault)
    raise SystemExit(f"remnant {arguments[0]} ran without its extra.")


if __name__ == "__main__":
    main()
