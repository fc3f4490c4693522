"""Shows that a change of the code leaves every number as it was.

    PYTHONPATH=OLD/src python benchmarks/same_numbers.py save before
    PYTHONPATH=NEW/src python benchmarks/same_numbers.py save after
    python benchmarks/same_numbers.py compare before after

``save`` runs the packaged recipes of the demo, a small recipe of every question, and every command
that measures without a recipe: see ``same_numbers_recipes.py`` and ``same_numbers_runs.py``, and
``same_numbers_inputs.py`` for the data. It takes six to ten minutes on one core. Each run has a
process of its own with one thread; PYTHONPATH decides which ``remnant`` it imports. A run that is
saved already is skipped, so that ``save`` can be interrupted. ``--only`` saves some of the runs, in
their order; a command needs the recipes whose models it measures:

    python benchmarks/same_numbers.py save again --only forgetting-inject curve-command

Saved for each run, in FOLDER/saved/RUN:

    arrays.json    SHA-256 of every array file, and of the ledger's rows
    results.json   result rows, plan and fingerprints of every record; no times, no provenance
    files.json     SHA-256 of every other file: models, canaries, tables
    codes.json     exit code of every command
    NAME.json      what a command printed with --json, without times and provenance
    NAME.txt       what a command printed otherwise
    page-*.txt     visible text of a report
    charts-*.txt   text of its charts

``compare`` exits with 1 if a JSON value or a digest that BEFORE has differs or is missing, or if a
number occurs less often in a text than BEFORE. New values and new numbers are listed only. Numbers
are compared as they are printed: 0.50 is not 0.5. ``--allow-rewording`` accepts a JSON text that
of at least four words that differs, if it holds the same numbers.

Not saved: ``--dry-run``, whose minutes are measured, and standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import traceback
from collections import Counter
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from same_numbers_compare import compare
from same_numbers_inputs import write_inputs
from same_numbers_runs import Run, every_run

HERE = Path(__file__).resolve()
NOT_NUMBERS = {"started", "finished", "attempts", "provenance", "execution"}


def save(folder: Path, only: list[str]) -> int:
    """Save what is not saved yet; return in how many runs a command crashed."""
    folder = folder.resolve()
    work, saved = folder / "work", folder / "saved"
    runs = every_run()
    print(f"remnant is {next(iter(find_spec('remnant').submodule_search_locations))}", flush=True)
    if unknown := set(only) - {run.name for run in runs}:
        raise SystemExit(f"There is no run {', '.join(sorted(unknown))}.")
    if not (saved / "inputs").exists():
        shutil.rmtree(work / "inputs", ignore_errors=True)
        write_inputs(work / "inputs")
        store(saved / "inputs", {"files.json": digests(work / "inputs")})
    for number, run in enumerate(runs, 1):
        begun = time.monotonic()
        if only and run.name not in only:
            continue
        if (saved / run.name).exists():
            words = "saved already"
        elif run.needs is not None and find_spec(run.needs) is None:
            words = f"left out: it needs {run.needs}"
        else:
            codes = save_run(run, work, saved / run.name)
            words = f"exit codes {' '.join(map(str, codes))}, {time.monotonic() - begun:.0f} s"
        print(f"{number}/{len(runs)} {run.name}: {words}", flush=True)
    crashed = [
        path.parent.name for path in sorted(saved.glob("*/codes.json")) if -1 in codes_in(path)
    ]
    if crashed:
        print(f"A command crashed in {', '.join(crashed)}: see errors.log in its folder.")
    return len(crashed)


def codes_in(path: Path) -> list[int]:
    return list(json.loads(path.read_text()).values())


def save_run(run: Run, work: Path, target: Path) -> list[int]:
    """Run the commands and store what they printed and wrote; return their exit codes."""
    written = None if run.folder is None else work / run.folder
    if written is not None and not run.only_page:
        shutil.rmtree(written, ignore_errors=True)
        written.mkdir(parents=True)
    done = run_in_a_process(run.arguments, work)
    parts: dict[str, Any] = {"codes.json": {}}
    errors = []
    for name, answer in zip(run.commands, done, strict=True):
        printed = answer["printed"].replace(f"{work}/", "")
        parts["codes.json"][name] = answer["code"]
        errors.append(f"== {name}\n{answer['errors']}")
        try:
            parts[f"{name}.json"] = without_times(json.loads(printed))
        except ValueError:
            parts[f"{name}.txt"] = printed
    if written is not None:
        parts |= what_was_written(written, only_page=run.only_page)
    parts["errors.log"] = "\n".join(errors)
    store(target, parts)
    return [answer["code"] for answer in done]


def run_in_a_process(commands: list[list[str]], work: Path) -> list[dict[str, Any]]:
    paths = [str(Path(one).resolve()) for one in os.environ.get("PYTHONPATH", "").split(":") if one]
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": ":".join(paths),
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "100",
    }
    # This folder comes last, so that its files hide no package.
    code = (
        f"import sys; sys.path.append({str(HERE.parent)!r}); "
        "import same_numbers; same_numbers.answer_commands()"
    )
    answers = work / "answers.json"
    (work / "commands.json").write_text(json.dumps(commands))
    answers.unlink(missing_ok=True)
    subprocess.run([sys.executable, "-c", code], cwd=work, env=environment, check=True)
    done: list[dict[str, Any]] = json.loads(answers.read_text())
    return done


def answer_commands() -> None:
    """Run the commands of ``commands.json`` here, and write ``answers.json``."""
    from remnant.cli.main import main

    answers = []
    for command in json.loads(Path("commands.json").read_text()):
        printed, errors = io.StringIO(), io.StringIO()
        sys.argv = ["remnant", *command]
        code = 0
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            try:
                main()
            except SystemExit as left:
                code = int(left.code or 0)
            except Exception:
                code = -1
                traceback.print_exc()
        answers.append({"code": code, "printed": printed.getvalue(), "errors": errors.getvalue()})
    Path("answers.json").write_text(json.dumps(answers))


def what_was_written(folder: Path, *, only_page: bool) -> dict[str, Any]:
    """Texts of the pages in a folder; unless these are all, digests and result rows too."""
    parts: dict[str, Any] = {}
    for page in sorted(folder.glob("*.html") if only_page else folder.rglob("*.html")):
        name = page.relative_to(folder).with_suffix("").as_posix().replace("/", "-")
        text, charts = page_texts(page.read_text(encoding="utf-8"))
        parts |= {f"page-{name}.txt": text, f"charts-{name}.txt": charts}
    if only_page:
        return parts
    arrays, results = {}, {}
    for record in sorted(folder.rglob("record.sqlite")):
        name = record.parent.relative_to(folder).as_posix()
        arrays[name], results[name] = record_rows(record)
    if results:
        parts |= {"arrays.json": arrays, "results.json": results}
    if others := digests(folder):
        parts["files.json"] = others
    return parts


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file that is no page and no part of a record."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.suffix != ".html"
        and not path.name.startswith("record.")
        and path.parent.name != "arrays"
    }


def record_rows(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Digests of a record's arrays and its ledger; its results, plan and fingerprints."""
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        arrays = {
            name: hashlib.sha256((path.parent / "arrays" / file).read_bytes()).hexdigest()
            for name, file in database.execute("SELECT name, file FROM arrays ORDER BY name")
        }
        ledger = database.execute("SELECT * FROM ledger ORDER BY member, canary, step").fetchall()
        arrays["(ledger)"] = hashlib.sha256(repr(ledger).encode()).hexdigest()
        question, status, plan, *prints = database.execute(
            "SELECT question, status, plan, plan_fingerprint, data_fingerprint FROM run"
        ).fetchone()
        rows = database.execute("SELECT name, value, absent FROM results ORDER BY name").fetchall()
    results = {
        name: {"absent": absent} if value is None else json.loads(value)
        for name, value, absent in rows
    }
    about = {"question": question, "status": status, "plan": json.loads(plan)}
    about |= {"plan_fingerprint": prints[0], "data_fingerprint": prints[1]}
    return arrays, {"run": about, "results": without_times(results)}


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(v) for key, v in value.items() if key not in NOT_NUMBERS}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def store(target: Path, parts: dict[str, Any]) -> None:
    """Write the parts under a temporary name, then give the folder its name."""
    temporary = target.with_name(f".{target.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for name, part in parts.items():
        text = part if isinstance(part, str) else json.dumps(part, indent=1, ensure_ascii=False)
        (temporary / name).write_text(text, encoding="utf-8")
    temporary.rename(target)


class PageText(HTMLParser):
    """Collects the visible text of a page, and that of its charts apart."""

    _INLINE = frozenset({"a", "abbr", "b", "code", "em", "i", "small", "span", "strong"})
    _UNSEEN = frozenset({"script", "style", "template", "title", "desc"})

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.charts: list[str] = []
        self._open = Counter[str]()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._open[tag] += 1
        self._end_line(tag)

    def handle_endtag(self, tag: str) -> None:
        self._open[tag] -= 1
        self._end_line(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self._end_line(tag)

    def handle_data(self, data: str) -> None:
        if not any(self._open[tag] > 0 for tag in self._UNSEEN):
            (self.charts if self._open["svg"] > 0 else self.text).append(data)

    def _end_line(self, tag: str) -> None:
        if tag not in self._INLINE:
            (self.charts if self._open["svg"] > 0 else self.text).append("\n")


def page_texts(page: str) -> tuple[str, str]:
    """Visible text of a page and of its charts, one block of the page a line."""
    parser = PageText()
    parser.feed(page)
    parser.close()
    both = []
    for pieces in (parser.text, parser.charts):
        # Line breaks in the source are white space; no-break and thin spaces are kept.
        lines = (re.sub(r"[ \t\r]+", " ", line).strip(" ") for line in "".join(pieces).split("\n"))
        both.append("\n".join(line for line in lines if line) + "\n")
    return both[0], both[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    saving = commands.add_parser("save", help="run everything and save its numbers")
    saving.add_argument("folder", type=Path)
    comparing = commands.add_parser("compare", help="compare two saved folders")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--allow-rewording", action="store_true")
    for one in (saving, comparing):
        one.add_argument("--only", nargs="+", default=[], metavar="RUN")
    given = parser.parse_args()
    if given.command == "save":
        sys.exit(1 if save(given.folder, given.only) else 0)
    same = compare(
        given.before, given.after, allow_rewording=given.allow_rewording, only=given.only
    )
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
