"""What the README and the page of the demo show is what their commands print, in order."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from remnant.cli.demo import SECONDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DEMO = (ROOT / "docs" / "tutorials" / "demo.md").read_text(encoding="utf-8")
REMNANT = Path(sys.executable).with_name("remnant")  # the installed command


def blocks(page: str, kind: str = "") -> list[str]:
    """Return the fenced blocks of a kind."""
    found = re.findall(r"^```(\S*)\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    return [text for given, text in found if given == kind]


def transcript(block: str) -> list[tuple[list[str], str]]:
    """Return the words of each command of a block, and the output shown below it."""
    found = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, shown = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL).groups()
        found.append((shlex.split(command.replace("\\\n", ""), comments=True), shown))
    return found


def shows(shown: str, printed: str) -> bool:
    """Whether output is as shown: ``...`` stands for any lines, a number for any number."""
    number = r"\\d[\\d ]*(?:\\.\\d+)?"
    pattern = re.sub(r"\d+(?:\\ \d{3})*(?:\\\.\d+)?", number, re.escape(shown))
    pattern = pattern.replace(r"\.\.\." + "\\\n", r"(?:.*\n)*?")
    return re.fullmatch(pattern, printed) is not None


class Shell:
    """Runs commands of a page in a folder, as a user pastes them."""

    def __init__(self, folder: Path, scripts) -> None:
        self._folder, self._scripts, self._code = folder, scripts, 0

    def run(self, *words: str):
        """Run a script of the repository or the command."""
        first, *others = words
        if first == "python":
            program = [ROOT / others[0], *others[1:]]
        else:
            assert first == "remnant", words
            program = [REMNANT, *others]
        done = self._scripts.run(*program, folder=self._folder, timeout=3600)
        self._code = done.returncode
        assert self._code in (0, 1), done.stderr
        return done

    def check(self, block: str) -> None:
        """Run a block's commands, and compare what each prints with what stands below it."""
        for words, shown in transcript(block):
            printed = f"{self._code}\n" if words == ["echo", "$?"] else self.run(*words).stdout
            assert shows(shown, printed), f"{' '.join(words)} printed:\n{printed}"


def test_shown_output_is_compared_line_by_line():
    assert shows("AUC 0.655\n...\nreport: a\n", "AUC 0.712\nmore\nmore\nreport: a\n")
    assert not shows("AUC 0.655\nreport: a\n", "AUC 0.655\nmore\nreport: a\n")
    assert not shows("FAIL: 1 of 2\n", "PASS: 1 of 2\n")


def test_the_readmes_commands_print_what_it_shows(tmp_path, scripts):
    shell = Shell(tmp_path, scripts)
    (block,) = (block for block in blocks(README) if block.startswith("$ "))
    assert len(transcript(block)) == 3
    shell.check(block)
    assert (tmp_path / "try" / "audit" / "report.html").exists()


def test_the_readmes_training_is_that_of_the_tutorial():
    (snippet,) = blocks(README, "python")
    tutorial = (ROOT / "docs" / "tutorials" / "quickstart-trainer.md").read_text(encoding="utf-8")
    (script,) = blocks(tutorial, "python")  # which is run, see test_quickstarts.py
    lines = [line.split("  #")[0] for line in snippet.splitlines() if line]
    assert len(lines) == 6
    known = {line.split("  #")[0].strip() for line in script.splitlines()}
    assert [line for line in lines if line not in known] == [
        "trainer = Trainer(..., train_dataset=train, callbacks=[audit.callback()])"
    ]
    assert {"train_dataset=train,", "callbacks=[audit.callback()],"} <= known


def test_the_demo_prints_and_writes_what_its_pages_promise(tmp_path, scripts):
    """One run of the demo for all that rests on it."""
    assert "make demo " in README
    (recipe,) = re.findall(r"^demo:.*\n\t\$\(BIN\)/(.*)$", (ROOT / "Makefile").read_text(), re.M)
    shell = Shell(tmp_path, scripts)
    done = shell.run(*recipe.split())
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "1 FAIL  4 PASS  2 findings  →  demo/report.html"
    assert lines[-1] in README
    studies = re.findall(r"^  study (\S+): ", done.stdout, flags=re.MULTILINE)
    assert studies == [*sorted(SECONDS, key=SECONDS.get)[:-1], "demo"], "the quickest first"
    begun = [line.split(", about")[0] for line in done.stderr.splitlines() if " of 7" in line]
    assert (begun[0], begun[-1]) == ("one-run, 1 of 7", "forgetting, 7 of 7")
    assert (tmp_path / "demo" / "report.html").stat().st_size > 20_000
    assert (tmp_path / "demo" / "record.sqlite").exists()

    outcomes = [block for block in blocks(DEMO) if re.match("PASS|FAIL|FINDING", block)]
    assert len(outcomes) == len(SECONDS)
    for block in outcomes:
        assert shows(f"...\n{block}...\n", done.stdout), block
    for block in blocks(DEMO):
        if block.startswith("$ "):
            shell.check(block)
    (own,) = (block for block in blocks(DEMO, "sh") if "remnant runs demo" in block)
    for line in own.splitlines():
        done = shell.run(*shlex.split(line.split(";")[0], comments=True))
        assert done.returncode == ("--gate" in line), line
