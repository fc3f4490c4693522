"""``remnant recipe``: list, copy, new and schema."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from remnant.studies import read_recipe
from remnant.studies.recipe_form.schema import recipe_schema
from remnant.studies.recipe_form.template import recipe_template
from remnant.studies.registry import RECIPES

FOLDER = files("remnant.studies") / "recipes"
REPOSITORY = Path(__file__).parents[2]
SHIPPED = sorted(one.name.removesuffix(".toml") for one in FOLDER.iterdir())


def test_list_names_every_shipped_recipe_and_what_it_is_about(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = command("recipe", "list")
    assert (done.code, done.err) == (0, "")
    heading, *lines = done.out.splitlines()
    assert heading == "Recipes of Remnant: remnant recipe copy NAME, then remnant run NAME.toml"
    rows = [line.split(maxsplit=2) for line in lines]
    assert [row[0] for row in rows] == SHIPPED
    assert all(row[1] in RECIPES and row[2][-1] in ".?" for row in rows)
    as_json = json.loads(command("recipe", "list", "--json").out)
    assert [[row["name"], row["question"], row["about"]] for row in as_json] == rows
    assert {row["path"] for row in as_json} == {None}
    assert rows[1] == [
        "digits-inject",
        "forgetting",
        "What does an MLP still remember of 16 hard digits, or of 32 odd images, that it saw ten "
        "times in a row?",
    ]


def test_list_has_the_recipes_of_this_folder_and_the_command_that_runs_each(command, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    lines = command("recipe", "list").out.splitlines()
    lines = lines[lines.index("Recipes in recipes: the command below each runs it") + 1 :]
    about = {line.split()[0]: line.split(maxsplit=2)[1:] for line in lines[::2]}
    commands = dict(zip(about, (line.strip() for line in lines[1::2]), strict=True))
    assert list(about) == sorted(path.stem for path in REPOSITORY.glob("recipes/*.toml"))
    assert about["digits-hidden"] == ["forgetting", "Gone or only hidden?"]
    for name, said in commands.items():
        recipe = REPOSITORY / "recipes" / f"{name}.toml"
        assert said.startswith(f"remnant run recipes/{name}.toml")
        assert about[name][0] == read_recipe(recipe).QUESTION
    needing_data = [name for name in commands if "--data" in commands[name]]
    assert needing_data == [
        *("arc-lora", "cifar10-features", "cifar10-prediction", "fashion-mnist-features"),
        *("fashion-mnist-inject", "fashion-mnist-one-run", "fashion-mnist-prediction"),
        *("mnist-features", "news-lora", "translation-forgetting", "translation-one-run"),
        "translation-secret",
    ], "the list of recipes that need --data, here in the test"
    assert commands["news-lora"].endswith("--data DATA --device cuda --pool-block 100")
    assert commands["text-inject"] == "remnant run recipes/text-inject.toml"
    rows = json.loads(command("recipe", "list", "--json").out)[len(SHIPPED) :]
    assert {row["name"]: row["command"] for row in rows} == commands


def test_list_names_a_file_that_is_no_recipe(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "odd.toml").write_text("= nope")
    done = command("recipe", "list")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1].split(maxsplit=2) == [
        *("odd", "?", "Cannot be read: it is not TOML.")
    ]


@pytest.mark.parametrize("name", SHIPPED)
def test_copy_copies_a_recipe_as_it_is(command, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    done = command("recipe", "copy", name)
    assert (done.code, done.out, done.err) == (0, f"written: {name}.toml\n", "")
    wanted = (FOLDER / f"{name}.toml").read_bytes()
    assert (tmp_path / f"{name}.toml").read_bytes() == wanted
    (tmp_path / "folder").mkdir()
    for dest, path in (("mine.toml", "mine.toml"), ("folder", f"folder/{name}.toml")):
        assert command("recipe", "copy", f"{name}.toml", dest).out == f"written: {path}\n"
        assert (tmp_path / path).read_bytes() == wanted


@pytest.mark.parametrize("name", RECIPES)
def test_new_writes_a_recipe_that_can_be_read(command, tmp_path, name):
    path = tmp_path / "new.toml"
    done = command("recipe", "new", name, "--out", path)
    assert (done.code, done.out, done.err) == (0, f"written: {path}\n", "")
    assert name == read_recipe(path).QUESTION
    assert command("recipe", "new", name).out == path.read_text() == recipe_template(name)


def test_a_new_recipe_for_exposure_plants_enough_to_say_something(command, tmp_path):
    path = tmp_path / "new.toml"
    command("recipe", "new", "exposure", "--out", path)
    plan = read_recipe(path).plan
    assert plan.repeats.count(1) == plan.controls == 20  # none of 20 above a limit: at most 14 %
    assert max(plan.repeats) == 64  # the positive control


def test_nothing_is_overwritten_without_force(command, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("mine")
    for arguments, named in (
        (("copy", "digits-inject", path), "DEST"),
        (("new", "exposure", "--out", path), "--out"),
    ):
        done = command("recipe", *arguments)
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            f"remnant: {named} {path} exists already. "
            "Name another file, or overwrite it with --force.\n"
        )
        assert path.read_text() == "mine"
        assert command("recipe", *arguments, "--force").code == 0
        assert path.read_text() != "mine"
        path.write_text("mine")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("copy", "nope"), "NAME nope is not one of digits-features, digits-inject"),
        (("copy", "../../x"), "NAME ../../x is not one of"),
        (("new", "nope"), "QUESTION nope is not one of forgetting, one-run"),
        (("copy", "digits-inject", "{}/no/where.toml"), "cannot be written: No such file"),
        (("new", "exposure", "--out", "{}"), "--out {} is a folder, not a file."),
    ],
)
def test_a_fault_is_one_sentence_and_exit_code_2(command, tmp_path, arguments, said):
    done = command("recipe", *(one.format(tmp_path) for one in arguments))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("remnant: ")
    assert said.format(tmp_path) in done.err
    assert done.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("question", "file", "content", "said"),
    [
        ("forgetting", "train.npz", b"nope", "--files {} is damaged"),
        ("forgetting", "train.csv", b"a,b\n1,2\n", "--files {} is neither an .npz file"),
        ("exposure", "train.jsonl", b"nope\n", "--files {}, line 1: this is not JSON"),
        ("exposure", "train.json", b"[]", "--files {} is JSON, of which rows cannot be read"),
        ("exposure", "train.txt", b"", "--files {} is empty"),
        ("translation-exposure", "train.txt", b"one\n", "--files {}, line 1"),
        ("text-prediction", "train.txt", b"one\n", "--files {} does not end in one of .jsonl"),
        ("speech-forgetting", "train.wav", b"one\n", "--files {} is not a folder"),
        ("nope", "train.txt", b"one\n", "QUESTION nope is not one of"),
        ("exposure", "train.txt", None, "--files {} is not there. Check its path."),
    ],
)
def test_new_refuses_files_that_cannot_be_read(command, tmp_path, question, file, content, said):
    path = tmp_path / file
    if content is not None:
        path.write_bytes(content)
    done = command("recipe", "new", question, "--files", path, "--out", tmp_path / "mine.toml")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said.format(path) in done.err
    assert not (tmp_path / "mine.toml").exists()


def test_new_names_the_field_to_change_where_files_have_another(command, tmp_path):
    path, out = tmp_path / "train.jsonl", tmp_path / "mine.toml"
    path.write_text('{"body": "a text that is long enough"}\n')
    done = command("recipe", "new", "exposure", "--files", path, "--out", out)
    assert (done.code, done.out) == (0, f"written: {out}\n")
    assert done.err == (
        f"Before you run the recipe: data.path: {path}, line 1: there is no field 'text' "
        "(data.text); it has body. Name the field in the recipe, or add it to each line.\n"
    )
    assert read_recipe(out).data.path == str(path)


def test_schema_prints_the_schema(command):
    done = command("recipe", "schema")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == recipe_schema()


def test_list_loads_no_torch():
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom remnant.cli.main import commands\n"
        "done = CliRunner().invoke(commands, ['recipe', 'list'])\n"
        "print(done.exit_code, {'torch', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=3600
    )
    assert done.stdout == "0 set()\n"
