"""The quickstarts in docs/ and the audit examples run as they are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import remnant.integrations.training

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "auditing-your-training.md").read_text(encoding="utf-8")
PAGES = ("auditing-your-training", "quickstart-trainer", "quickstart-lora", "quickstart-plain-loop")
BLOCKS = {
    f"{name}: {part.splitlines()[0]}": block
    for name in PAGES
    for part in (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").split("\n## ")
    for block in re.findall(r"```python\n(.*?)```", part, flags=re.DOTALL)
}
EXAMPLES = {
    "audit_trainer": "FAIL",
    "audit_sft_lora": "FAIL",
    "audit_lightning": "FAIL",
    "audit_plain_loop": "PASS",
}


@pytest.fixture(scope="module")
def run(scripts):
    """Run a script in a folder as a user would, with one thread, and return what it printed."""

    def printed(*arguments, folder):
        done = scripts.run(*arguments, folder=folder)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return printed


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run):
    """An empty folder with a model and texts, as the page asks for them."""
    made = tmp_path_factory.mktemp("user")
    said = run(ROOT / "examples" / "tiny_model.py", made, folder=made)
    assert said.startswith("wrote ")
    return made


def test_the_tiny_model_overwrites_nothing(tmp_path, scripts):
    mine = tmp_path / "train.jsonl"
    mine.write_text("mine")
    done = scripts.run(ROOT / "examples" / "tiny_model.py", tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith(f"{mine} exists already. Name another folder.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["train.jsonl"]
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("heading", BLOCKS)
def test_a_quickstart_runs_as_it_is(heading, folder, run):
    (folder / "script.py").write_text(BLOCKS[heading], encoding="utf-8")
    said = run("script.py", folder=folder).splitlines()
    if heading.endswith("A model without a training loop"):
        assert 0 <= float(said[-1]) <= 13.3
        return
    outcome, *_, report = said[-1].split()
    assert outcome in ("PASS", "FAIL", "INCONCLUSIVE")
    assert "in any batch" not in said[-1]  # canaries were trained on
    assert (folder / report).is_file()


def test_the_quickstart_with_opacus_runs_as_it_is(tmp_path, run):
    page = (ROOT / "docs" / "quickstart-opacus.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "script.py").write_text(block, encoding="utf-8")
    said = run("script.py", folder=tmp_path).splitlines()[-1]
    assert "not above the claimed 2.702" in said
    assert "600 canaries could have shown at most 4.95" in said
    assert (tmp_path / said.split()[-1]).is_file()


def test_there_is_a_quickstart_for_each_way_to_train():
    assert len(BLOCKS) == 6


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_ends_with_its_outcome_and_report(name, tmp_path, run):
    out = tmp_path / "audit"
    outcome, claim, report = run(
        ROOT / "examples" / f"{name}.py", "--out", out, folder=tmp_path
    ).splitlines()[-3:]
    assert outcome.startswith(f"{EXAMPLES[name]}: ")
    assert claim.startswith("claim: ")
    assert Path(report.removeprefix("report: ")) == out / "report.html"
    assert (out / "report.html").is_file()


def written_sentences():
    """All string literals of the package, values in them left out."""
    package = Path(remnant.integrations.training.__file__).parent
    for file in sorted(package.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(
                    part.value if isinstance(part, ast.Constant) else "…" for part in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_the_page_quotes_errors_as_they_are():
    table = PAGE.split("## What is checked before the first step")[1].split("\n## ")[0]
    quoted = re.findall(r"^\| [^|]+ \| `([^`]+)` \|", table, flags=re.MULTILINE)
    assert len(quoted) == 13
    sentences = list(written_sentences())
    for sentence in quoted:
        assert any(sentence in literal for literal in sentences), sentence
