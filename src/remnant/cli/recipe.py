"""``remnant recipe``: find, copy and write recipes, and print their schema."""

from __future__ import annotations

import json
from pathlib import Path

import click

from remnant.cli.options import declared


@click.group(short_help="Find, copy and write recipes; print their JSON schema.")
def recipe() -> None:
    """Find, copy and write recipes, the TOML files that `remnant run` runs.

    \b
    Example:
      remnant recipe new exposure --out secret.toml
      remnant run secret.toml --dry-run
    """


@recipe.command("list", short_help="List the recipes that come with Remnant.")
@declared.as_json
def list_recipes(as_json: bool) -> None:
    """List the recipes that come with Remnant: name, question and subject.

    \b
    Example:
      remnant recipe list
    """
    from remnant.studies.recipe_form.shipped import shipped_recipes

    recipes = shipped_recipes()
    if as_json:
        fields = ("name", "question", "about")
        rows = [{field: getattr(shipped, field) for field in fields} for shipped in recipes]
        click.echo(json.dumps(rows, indent=2))
        return
    for shipped in recipes:
        click.echo(f"{shipped.name:<18} {shipped.question:<18} {shipped.about}")


@recipe.command(short_help="Copy a recipe that comes with Remnant.")
@click.argument("name")
@click.argument("dest", type=click.Path(path_type=Path), required=False)
@declared.flag("--force", help="Overwrite a file that exists.")
def copy(name: str, dest: Path | None, force: bool) -> None:
    """Copy the recipe NAME to DEST, a file or folder.  [default: NAME.toml in this folder]

    \b
    Example:
      remnant recipe copy digits-inject
      remnant recipe copy stdlib-secret secrets/mine.toml
    """
    from remnant.cli.options.naming import naming
    from remnant.studies.recipe_form.shipped import shipped_recipe

    with naming(name="NAME"):
        shipped = shipped_recipe(name)
    path = Path() if dest is None else dest
    path = path / f"{shipped.name}.toml" if path.is_dir() else path
    _write("DEST", path, shipped.text, force=force)


@recipe.command(short_help="Write a commented recipe with every field.")
@click.argument("question")
@declared.path("--files", help="Your own data, a file or folder: the recipe trains on it.")
@declared.path("--out", help="File to write.  [default: standard output]")
@declared.flag("--force", help="Overwrite a file that exists.")
def new(question: str, files: Path | None, out: Path | None, force: bool) -> None:
    """Write a recipe of QUESTION with every field, its default and its meaning.

    \b
    Example:
      remnant recipe new forgetting --out mine.toml
      remnant recipe new forgetting --files train.npz --out mine.toml
    """
    import os

    from remnant.cli.options.naming import naming
    from remnant.studies.recipe_form.template import recipe_template

    own = files
    if files is not None and out is not None and not files.is_absolute():
        own = Path(os.path.relpath(files, out.parent))  # paths are relative to the recipe
    with naming(question="QUESTION"):
        text = recipe_template(question, files=None if own is None else own.as_posix())
    if out is None:
        click.echo(text, nl=False)
    else:
        _write("--out", out, text, force=force)


@recipe.command(short_help="Print the JSON schema of all recipes, for editors.")
def schema() -> None:
    """Print the JSON schema of all recipes, with which an editor completes and checks them.

    \b
    Example:
      remnant recipe schema > recipe.schema.json
    """
    from remnant.studies.recipe_form.schema import recipe_schema

    click.echo(json.dumps(recipe_schema(), indent=2))


def _write(option: str, path: Path, text: str, *, force: bool) -> None:
    """Write the whole file or nothing, and print its path.

    Raises:
        InvalidInput: It exists and ``force`` is not set, or it cannot be written.
    """
    from remnant.cli.options.out_files import write_whole
    from remnant.errors import InvalidInput

    if path.exists() and not path.is_dir() and not force:
        raise InvalidInput(
            f"{option} {path} exists already.",
            hint="Name another file, or overwrite it with --force.",
        )
    write_whole(option, path, text, mode=0o644)
    click.echo(f"written: {path}")
