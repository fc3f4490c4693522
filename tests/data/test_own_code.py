"""The user's own code runs from a file that the user names, and from no other."""

from __future__ import annotations

import py_compile
import sys

import pytest

from remnant.data.own_code import call, chosen_file, explained, load_function, trusted_file
from remnant.errors import InvalidInput, PlanError

FIELD = "model.maker"


@pytest.fixture
def write(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def written(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return trusted_file(file)

    return written


def test_the_module_of_the_recipes_folder_comes_first_then_the_working_folder(write, tmp_path):
    places = [tmp_path / "recipes", tmp_path / "here"]
    here = write("here/nets.py", "a = 1")
    assert chosen_file(FIELD, "nets:make", [here], places) is here
    there = write("recipes/nets.py", "a = 2")
    assert chosen_file(FIELD, "nets:make", [here, there], places) is there
    with pytest.raises(PlanError, match=r"is read from .*recipes/nets.py, and you trust nets.py"):
        chosen_file(FIELD, "nets:make", [here], places)


def test_a_module_in_neither_folder_is_a_trusted_file_of_its_name(write, tmp_path):
    far = write("far/pack/nets.py", "a = 1")
    assert chosen_file(FIELD, "pack.nets:make", [far], [tmp_path / "here"]) is far
    with pytest.raises(PlanError, match=r"is in no file that you trust .* Name the file other.py"):
        chosen_file(FIELD, "other:make", [far], [tmp_path / "here"])


def test_a_package_is_its_init_file(write, tmp_path):
    init = write("here/pack/__init__.py", "make = dict")
    assert chosen_file(FIELD, "pack:make", [init], [tmp_path / "here"]) is init
    assert call(FIELD, "pack:make", init, {"a": 1}) == {"a": 1}


def test_without_trust_the_sentence_says_what_to_type(write, tmp_path):
    write("here/nets.py", "a = 1")
    with pytest.raises(PlanError, match=r"names code.*Read the code, then add --trust nets.py\.$"):
        chosen_file(FIELD, "nets:make", [], [tmp_path / "here"])
    with pytest.raises(PlanError, match=r"add --trust FILE, where FILE is its pack/far.py\.$"):
        chosen_file(FIELD, "pack.far:make", [], [tmp_path / "here"])


@pytest.mark.parametrize(
    "reference", ["nets", "nets:", ":make", "nets:make()", "a/b:make", "a..b:c"]
)
def test_what_names_no_function_is_refused(reference, write):
    with pytest.raises(InvalidInput, match=r"not of the form package\.module:function"):
        chosen_file(FIELD, reference, [], [])


@pytest.mark.parametrize("name", ["none.py", "recipe.toml", ""])
def test_only_a_python_file_that_is_there_can_be_trusted(name, tmp_path):
    (tmp_path / "recipe.toml").write_text("")
    with pytest.raises(InvalidInput, match=r"is not there|no file of Python code"):
        trusted_file(tmp_path / name)


def test_the_bytes_that_were_digested_are_run_whatever_the_file_holds_later(write):
    file = write("nets.py", "def make(width=1):\n    return 'first', width\n")
    file.path.write_text("def make(width=1):\n    return 'second', width\n")
    assert call(FIELD, "nets:make", file, {"width": 3}) == ("first", 3)
    assert trusted_file(file.path).sha256 != file.sha256


def test_no_module_of_the_same_name_is_taken_or_replaced(write):
    file = write("json.py", "def make():\n    return 'own'\n")
    before = sys.modules["json"]
    assert call(FIELD, "json:make", file) == "own"
    assert sys.modules["json"] is before


def test_what_the_file_imports_is_found_beside_it_and_nothing_else_is(write):
    write("apart/beside_a.py", "import beside_b\nVALUE = beside_b.VALUE\n")
    write("apart/beside_b.py", "VALUE = 7\n")
    write("apart/not_named.py", "raise SystemExit('run')\n")
    write("apart/random.py", "raise SystemExit('run')\n")
    file = write(
        "apart/nets.py",
        "import importlib\nimport random\n\ndef make():\n    import beside_a\n"
        "    return beside_a.VALUE, random.random() < 1\n\ndef other():\n"
        "    return importlib.import_module('not_named')\n",
    )
    assert call(FIELD, "nets:make", file) == (7, True)
    with pytest.raises(InvalidInput, match="ModuleNotFoundError: No module named 'not_named'"):
        call(FIELD, "nets:other", file)


def test_relative_imports_work_and_the_packages_own_file_is_not_run(write):
    write("apart/pack/__init__.py", "raise SystemExit('run')\n")
    write("apart/pack/layers.py", "from .sizes import WIDTH\n")
    write("apart/pack/sizes.py", "WIDTH = 5\n")
    file = write(
        "apart/pack/nets.py",
        "from . import layers\nfrom .layers import WIDTH\n\ndef make():\n    return WIDTH\n",
    )
    assert call(FIELD, "pack.nets:make", file) == 5


@pytest.mark.parametrize("where", ["shown_a.py", "shown_b/inner.py", "pack/layers.py"])
def test_bytecode_beside_a_file_is_never_run_in_place_of_its_source(where, write, tmp_path):
    imported = {
        "shown_a.py": "import shown_a as m",
        "shown_b/inner.py": "from shown_b import inner as m",
    }
    write("apart/shown_b/__init__.py", "")
    path = write(f"apart/{where}", "raise SystemExit('hidden')\n").path
    py_compile.compile(str(path), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    write(f"apart/{where}", "VALUE = 3\n")
    line = imported.get(where, "from . import layers as m")
    file = write("apart/pack/nets.py", f"{line}\n\ndef make():\n    return m.VALUE\n")
    assert call(FIELD, "pack.nets:make", file) == 3


def test_bytecode_without_source_is_not_run(write):
    path = write("apart/alone.py", "VALUE = 3\n").path
    py_compile.compile(str(path), cfile=str(path.with_suffix(".pyc")))
    path.unlink()
    file = write("apart/nets.py", "import alone\n")
    with pytest.raises(InvalidInput, match="alone is there without its source"):
        load_function(FIELD, "nets:make", file)


def test_dataclasses_of_the_file_know_their_module(write):
    file = write(
        "nets.py",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "from typing import ClassVar\n\n@dataclass\nclass Sizes:\n    KIND: ClassVar[str] = 'x'\n"
        "    width: int = 2\n\nmake = Sizes\n",
    )
    assert call(FIELD, "nets:make", file).width == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def make(:\n    pass\n", r"nets.py, line 1: SyntaxError"),
        ("import torch\nimport not_installed_at_all\n", r"nets.py, line 2: ModuleNotFoundError"),
        ("\n1 / 0\n", r"nets.py, line 2: ZeroDivisionError: division by zero\. Fix the code"),
        ("def make():\n    return width\n", r"nets.py, line 2, in make: NameError"),
        ("def make():\n    raise SystemExit(0)\n", r"line 2, in make: SystemExit: 0"),
        ("class Odd(Exception): pass\ndef make():\n    raise Odd('a\\nb')\n", r"in make: Odd: a\."),
        ("def make(width): pass\n", r"'nets:make': TypeError: make\(\) missing 1 required"),
        ("make = 3\n", r"nets.py has no function make"),
        ("", r"nets.py has no function make"),
    ],
)
def test_an_error_of_the_code_is_one_sentence_with_its_line(text, words, write):
    with pytest.raises(InvalidInput, match=words) as caught:
        call(FIELD, "nets:make", write("nets.py", text))
    assert str(caught.value).startswith("model.maker='nets:make'")
    assert "\n" not in str(caught.value)


def test_errors_of_others_of_memory_and_interruptions_pass(write):
    file = write("nets.py", "def fail(kind):\n    raise kind('x')\n")
    fail = load_function(FIELD, "nets:fail", file)
    for kind in (KeyboardInterrupt, MemoryError, PlanError):
        with pytest.raises(kind), explained([file]):
            fail(kind)
    with pytest.raises(ZeroDivisionError), explained([file]):
        1 / 0  # noqa: B018
    with pytest.raises(KeyError), explained([]):
        fail(KeyError)
    with pytest.raises(InvalidInput, match="line 2, in fail: KeyError"), explained([file]):
        fail(KeyError)


def test_what_the_code_prints_goes_to_standard_error(write, capsys):
    file = write("nets.py", "print('loaded')\ndef make():\n    print('made')\n")
    call(FIELD, "nets:make", file)
    assert capsys.readouterr() == ("", "loaded\nmade\n")
