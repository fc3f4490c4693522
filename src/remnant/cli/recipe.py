"""``remnant recipe``: find, copy and write recipes, and print their schema."""

from __future__ import annotations

import json
from pathlib import Path

import click

from remnant.cli.help.command import Group
from remnant.cli.options import declared
from remnant.cli.terminal import show


@click.group(cls=Group, short_help="Find, copy and write recipes; print their JSON schema.")
def recipe() -> None:
    """Find, copy and write recipes, the TOML files that `remnant run` runs.

    \b
    Example:
      remnant recipe new exposure --out secret.toml
      remnant run secret.toml --dry-run
    """


@recipe.command("list", short_help="List the recipes that come with Remnant, and yours.")
@declared.as_json
def list_recipes(as_json: bool) -> None:
    """List recipes: name, question, subject, and the command that runs each.

    These are the recipes that come with Remnant and, where the current folder has a folder
    recipes, the recipes in it.

    \b
    Example:
      remnant recipe list
    """
    from remnant.studies.recipe_form.shipped import local_recipes, shipped_recipes

    shipped, local = shipped_recipes(), local_recipes(Path("recipes"))
    if as_json:
        fields = ("name", "question", "about")
        rows = [
            {field: getattr(recipe, field) for field in fields}
            | {"path": None, "command": f"remnant recipe copy {recipe.name}"}
            for recipe in shipped
        ]
        rows += [
            {
                "name": recipe.path.stem,
                "question": recipe.question,
                "about": recipe.about,
                "path": recipe.path.as_posix(),
                "command": recipe.command,
            }
            for recipe in local
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    click.echo("Recipes of Remnant: remnant recipe copy NAME, then remnant run NAME.toml")
    for recipe in shipped:
        click.echo(f"  {recipe.name:<18} {recipe.question:<20} {recipe.about}")
    if local:
        click.echo("\nRecipes in recipes: the command below each runs it")
    for mine in local:
        click.echo(f"  {mine.path.stem:<25} {mine.question or '?':<20} {mine.about}")
        if mine.command is not None:
            click.echo(f"    {mine.command}")


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
@declared.path("--out", "-o", help="File to write.  [default: standard output]")
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
    lacks = None if files is None else _lacking(question, files)
    with naming(question="QUESTION"):
        text = recipe_template(question, files=None if own is None else own.as_posix())
    if out is None:
        click.echo(text, nl=False)
    else:
        _write("--out", out, text, force=force)
    if lacks is not None:
        show(f"Before you run the recipe: {lacks}", err=True)


def _lacking(question: str, files: Path) -> str | None:
    """Return what to change in the recipe where the files name their fields otherwise.

    Raises:
        InvalidInput: The files cannot be read as what the question trains on.
    """
    from remnant.cli.options.naming import naming
    from remnant.errors import InvalidInput, MissingField
    from remnant.studies.recipe_form.own_data import check_own_files

    if not files.exists():
        raise InvalidInput(f"--files {files} is not there.", hint="Check its path.")
    with naming(question="QUESTION"):
        try:
            check_own_files(question, files)
        except MissingField as fault:
            return str(fault)
        except InvalidInput as fault:
            fault.message = fault.message.replace("data.path: ", "--files ")
            raise
    return None


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
