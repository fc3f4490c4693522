"""The house keeps its own rules: who imports whom, what is never written, what imports lightly."""

from __future__ import annotations

import ast
import doctest
import graphlib
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import remnant
from remnant.studies.registry import QUESTIONS, RECIPES

HOME = Path(remnant.__file__).parent
BELOW_STUDIES = {
    *("measures", "canaries", "plans", "models", "theory", "data"),
    *("probes", "population", "search", "records", "privacy"),
}
# Tasks read the sections of a recipe that say what a model is fed. Those of images take data,
# canaries and training from where all studies of classifiers have them.
FED_BY = (
    *("settings", "text_settings", "speech_settings", "pair_settings", "wording"),
    *("classifiers", "image_canaries"),
)
# Every package may also import itself and EVERYONES; ``remnant/__init__.py`` is exempt.
EVERYONES = {"errors", "progress"}
MAY_IMPORT = {
    "measures": set(),
    "canaries": set(),
    "plans": set(),
    "models": set(),
    "theory": set(),
    "privacy": {"plans"},
    "data": set(),
    "gradients": set(),
    "probes": {"models.protocols", "gradients"},
    "population": {"plans", "gradients"},
    "search": {"canaries", "probes", "models.protocols"},
    "records": {"plans", "measures"},
    "tasks": (BELOW_STUDIES - {"records"}) | {f"studies.shared.{name}" for name in FED_BY},
    "studies": BELOW_STUDIES | {"tasks", "report", "integrations.pretrained"},
    "report": {"records", "measures"},
    "integrations": BELOW_STUDIES | {"studies"},
    "cli": {"studies", "tasks", "report", "records", "integrations", "measures", "canaries"},
}
ROOM = 25  # files of a folder
QUESTION_PARTS = ("recipe", "result", "page", "heading")
PICKLERS = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


def module_name(path: Path) -> str:
    parts = ("remnant", *path.relative_to(HOME).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = sorted(HOME.rglob("*.py"))
MODULES = {module_name(path): path for path in FILES}
SOURCES = {name: path.read_text(encoding="utf-8") for name, path in MODULES.items()}


def imported(node: ast.AST, *, inside: str) -> Iterator[str]:
    """Yield what one node imports, as module names; ``inside`` is the package it stands in."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = inside.split(".")[: len(inside.split(".")) - node.level + 1]
        source = ".".join([*above, node.module or ""]).rstrip(".") if node.level else node.module
        for alias in node.names:
            if source == "remnant" and alias.name in remnant._HOME:
                yield remnant._HOME[alias.name]  # a name that the package fetches on first use
            else:
                whole = f"{source}.{alias.name}"
                yield whole if whole in MODULES else str(source)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
        ("import_module", "__import__")
    ):
        yield from (a.value for a in node.args if isinstance(a, ast.Constant))


def package_of(name: str) -> str:
    is_package = name in MODULES and MODULES[name].name == "__init__.py"
    return name if is_package else name.rpartition(".")[0]


def all_imports(name: str, source: str) -> set[str]:
    """Everything a module imports, wherever it does so."""
    nodes = ast.walk(ast.parse(source))
    return {found for node in nodes for found in imported(node, inside=package_of(name))}


def module_imports(name: str, source: str) -> set[str]:
    """What a module imports outside of functions, also for the type checker alone."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        found.update(imported(node, inside=package_of(name)))
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return found


def upward(name: str, source: str) -> list[str]:
    """Imports that the table does not allow."""
    package = name.split(".")[1]
    allowed = EVERYONES | (set() if package in EVERYONES else MAY_IMPORT[package] | {package})
    wrong = []
    for target in sorted(all_imports(name, source)):
        parts = target.split(".")
        if parts[0] != "remnant" or parts == ["remnant"]:
            continue  # from outside, or the version
        inner = ".".join(parts[1:])
        if not any(inner == one or inner.startswith(f"{one}.") for one in allowed):
            wrong.append(target)
    return wrong


def forbidden(source: str) -> list[str]:
    """Asserts, handlers that catch everything, and whatever might unpickle."""
    wrong = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert):
            wrong.append("assert")
        elif isinstance(node, ast.ExceptHandler):
            kinds = "" if node.type is None else ast.unparse(node.type)
            reraised = any(isinstance(n, ast.Raise) and n.exc is None for n in ast.walk(node))
            if not kinds or "Exception" in kinds.strip("()").split(", "):
                wrong.append(f"except {kinds}".strip())
            elif "BaseException" in kinds and not reraised:
                wrong.append("except BaseException without raise")
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            options = {k.arg: ast.unparse(k.value) for k in node.keywords}
            if called.endswith("suppress") and "Exception" in map(ast.unparse, node.args):
                wrong.append("suppress(Exception)")
            if options.get("allow_pickle", "False") != "False":
                wrong.append("allow_pickle")
            if called == "torch.load" and options.get("weights_only") != "True":
                wrong.append("torch.load")
        wrong += [
            found for found in imported(node, inside="remnant") if found.split(".")[0] in PICKLERS
        ]
    return wrong


def cycle(graph: dict[str, set[str]]) -> list[str]:
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as found:
        return list(found.args[1])
    return []


def test_the_table_has_a_row_for_every_package():
    packages = {path.name for path in HOME.iterdir() if (path / "__init__.py").exists()}
    assert packages <= MAY_IMPORT.keys()
    assert {path.stem for path in HOME.glob("*.py")} == {"__init__", *EVERYONES}


@pytest.mark.parametrize("name", sorted(set(MODULES) - {"remnant"}))
def test_imports_point_down(name):
    assert upward(name, SOURCES[name]) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("remnant.measures.statistics.roc", "import remnant.plans"),
        ("remnant.measures.statistics.roc", "from remnant import InjectPlan"),
        ("remnant.plans.schedule", "def f():\n    from remnant.population import Fit"),
        ("remnant.plans.schedule", "if TYPE_CHECKING:\n    from remnant.models import mlp1"),
        ("remnant.plans.schedule", "from ..data import cut"),
        ("remnant.data", "from ..plans import InjectPlan"),
        ("remnant.plans.schedule", "import_module('remnant.cli.main')"),
        ("remnant.probes.classification", "from remnant.models import mlp1"),
        ("remnant.report.view", "from remnant.studies import read_recipe"),
        ("remnant.errors", "from remnant.plans import InjectPlan"),
        ("remnant.progress", "from remnant.cli.terminal import one_line"),
    ],
)
def test_an_import_that_points_up_is_seen(name, source):
    assert len(upward(name, source)) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("remnant.probes.classification", "from remnant.models.protocols import LogitModels"),
        ("remnant.probes.classification", "from remnant.models import protocols"),
        ("remnant.plans.schedule", "from . import twins\nfrom .schedule import Trunk"),
        ("remnant.plans", "from .schedule import Trunk"),
        ("remnant.cli.main", "from remnant import __version__"),
        ("remnant.cli.main", "import numpy.random"),
    ],
)
def test_an_import_that_points_down_is_let_through(name, source):
    assert upward(name, source) == []


def test_no_modules_import_each_other_in_a_circle():
    graph = {name: module_imports(name, source) for name, source in SOURCES.items()}
    assert cycle(graph) == []
    assert sum(len(targets & MODULES.keys()) for targets in graph.values()) > len(MODULES)


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("from remnant.plans import schedule", True),
        ("if TYPE_CHECKING:\n    from remnant.plans import schedule", True),
        ("def f():\n    from remnant.plans import schedule", False),
    ],
)
def test_a_circle_is_seen(source, seen):
    sources = {
        "remnant.plans.schedule": "if True:\n    from remnant.plans.twins import whole",
        "remnant.plans.twins": source,
    }
    assert bool(cycle({name: module_imports(name, one) for name, one in sources.items()})) is seen


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_has_its_files(name):
    places = [getattr(QUESTIONS[name], part) for part in QUESTION_PARTS]
    if QUESTIONS[name].run:
        places += [f"{QUESTIONS[name].run}:{part}" for part in ("prepare", "estimate")]
    for place in filter(None, places):  # what a command measures has no recipe
        module, _, wanted = place.partition(":")
        assert module in MODULES, f"{name} has no {module}"
        tree = ast.parse(SOURCES[module])
        assert wanted in {known for node in tree.body for known in names_made(node)}


def names_made(node: ast.stmt) -> set[str]:
    """The names that a statement of a module makes."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def test_every_room_of_the_studies_is_in_the_registry():
    rooms = {path.parent.name for path in (HOME / "studies").glob("*/recipe.py")}
    assert rooms == {QUESTIONS[name].recipe.split(".")[2] for name in RECIPES}


def test_no_room_is_flat_and_crowded():
    counts = {
        str(folder.relative_to(HOME)): len(list(folder.glob("*.py")))
        for folder in {path.parent for path in FILES}
    }
    crowded = {folder for folder, count in counts.items() if count > ROOM}
    assert crowded == set()


@pytest.mark.parametrize("name", sorted(MODULES))
def test_nothing_forbidden_is_written(name):
    assert forbidden(SOURCES[name]) == []


@pytest.mark.parametrize(
    "source",
    [
        "assert True",
        "try:\n    f()\nexcept Exception:\n    pass",
        "try:\n    f()\nexcept (ValueError, Exception) as e:\n    raise",
        "try:\n    f()\nexcept:\n    raise",
        "try:\n    f()\nexcept BaseException:\n    pass",
        "with contextlib.suppress(Exception):\n    f()",
        "def f():\n    import pickle",
        "from joblib import load",
        "np.load(path, allow_pickle=True)",
        "torch.load(path)",
    ],
)
def test_what_is_forbidden_is_seen(source):
    assert len(forbidden(source)) == 1


@pytest.mark.parametrize("name", sorted(MODULES))
def test_files_are_named_for_what_they_hold(name):
    assert not {"utils", "util", "helpers", "common", "base"} & set(name.split("."))


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=3600
    )
    return set(run.stdout.split())


def test_the_package_and_the_command_line_import_lightly():
    assert "remnant" in (light := loaded_by("import remnant"))
    assert not light & {"torch", "numpy", "scipy", "click"}
    assert "remnant.cli.main" in (command := loaded_by("import remnant.cli.main"))
    assert not command & {"torch", "numpy", "scipy"}
    assert {"torch", "numpy"} <= loaded_by("from remnant import Population")


def test_a_record_is_read_and_shown_without_torch():
    rooms = [place for one in QUESTIONS.values() for place in (one.result, one.page)]
    code = "from remnant.studies.registry import load\nimport remnant.studies.reporting\n"
    loaded = loaded_by(code + "\n".join(f"load({place!r})" for place in rooms))
    assert {place.partition(":")[0] for place in rooms} <= loaded
    assert "torch" not in loaded


RECIPES_READ = """
from remnant.studies import recipe as reading
import pytest
from remnant.cli.main import commands
from remnant.errors import PlanError, RemnantError
from remnant.studies import study_from
from remnant.studies.recipe_form.template import recipe_template
from remnant.studies.registry import RECIPES
for name in RECIPES:
    table = reading.tomllib.loads(recipe_template(name))
    assert study_from(table).QUESTION == name
    with pytest.raises(PlanError, match="sgdd"):
        study_from(table | {"training": {"optimizer": "sgdd"}})
wrong = ("run wrong.toml --threads 1", "run wrong.toml --dry-run")
for words in ("recipe list", "recipe schema", *wrong):
    try:
        commands.main(words.split(), prog_name="remnant", standalone_mode=False)
    except RemnantError as fault:
        print("refused:" + fault.message.replace(" ", "_"))
"""


def test_a_recipe_is_read_checked_and_refused_without_torch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wrong.toml").write_text('[plan]\nkind = "inject"\n[model]\nname = "mlp9"\n')
    loaded = loaded_by(RECIPES_READ)
    assert sum(line.startswith("refused:") and "mlp9" in line for line in loaded) == 1  # a set
    assert {QUESTIONS[name].recipe.partition(":")[0] for name in RECIPES} <= loaded
    assert "torch" not in loaded


def test_every_public_name_can_be_got():
    assert (
        set(remnant.__all__)
        == {*remnant._HOME, *remnant._ROOMS, "__version__"}
        == set(dir(remnant))
    )
    for name in remnant.__all__:
        assert getattr(remnant, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'forgetting_curv'"):
        remnant.forgetting_curv  # noqa: B018


PUBLIC = [
    module.name
    for module in pkgutil.walk_packages([str(HOME)], "remnant.")
    if not any(part.startswith("_") for part in module.name.split("."))
]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_module_imports_offers_what_it_says_and_runs_its_examples(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for offered in getattr(module, "__all__", []):
        assert hasattr(module, offered)
    assert doctest.testmod(module).failed == 0


def test_no_module_is_left_out_of_the_walk():
    assert {"remnant", *PUBLIC} == set(MODULES)
