"""Makes the stored records of this version: one a question, in ``stored_records/VERSION``.

    PYTHONPATH=src python tests/studies/make_stored_records.py make WORK

runs the recipes and commands of ``benchmarks/same_numbers.py`` that ask each question, and the
example of an audited training, in the new or earlier folder WORK (some ten minutes on one core),
and packs what they wrote; ``make WORK QUESTION`` does so for one question with a recipe. Of the
arrays only those that a page reads are packed.

Records of an older version are made by its own code, in a worktree of its commit, where the
benchmark is one of that commit, and packed by this one (``runs`` prints the names of the runs):

    PYTHONPATH=OLD/src python OLD/benchmarks/same_numbers.py save WORK --only RUN...
    PYTHONPATH=src python tests/studies/make_stored_records.py pack WORK 0.2

Those of 0.1 and 0.2 came about that way. After ``make`` or ``pack`` record their pages:
``python tests/studies/stored_pages.py record``.
"""

from __future__ import annotations

import argparse
import os
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path
from unittest import mock

import remnant
from remnant.records import Record
from remnant.records.arrays import file_sha256
from remnant.report.html import render
from remnant.studies.registry import QUESTIONS, RECIPES
from remnant.studies.reporting import read_page

ROOT = Path(__file__).parents[2]
STORED = Path(__file__).parent / "stored_records"
TRAINED = "out/training-audit"
RECIPE_NAME = runpy.run_path(str(ROOT / "benchmarks" / "same_numbers_recipes.py"))["recipe_name"]
RECORDS = {
    **{question: f"runs/{RECIPE_NAME(question)}" for question in RECIPES},
    "training-audit": TRAINED,
    "feature-audit": "out/feature/audit",
    **{
        name: f"out/records/{name}"
        for name in (
            "membership-audit",
            "exposure-audit",
            "extraction",
            "found-secrets",
            "early-prediction",
            "attack-curve",
        )
    },
}
"""The folder of each question's record, in WORK/work."""
RUNS = [
    *(folder.removeprefix("runs/") for folder in RECORDS.values() if folder.startswith("runs/")),
    *("calls", "other-calls", "feature-command", "command-records"),
]
"""The runs of ``same_numbers.py`` that write them, but for the example's."""


def make(work: Path, questions: list[str]) -> None:
    """Run everything that is not there yet, and pack it as this version's records.

    Args:
        work: The folder in which it is run.
        questions: Only these, which have a recipe; all if there is none.
    """
    runs = [RECORDS[name].removeprefix("runs/") for name in questions] or RUNS
    save = [str(ROOT / "benchmarks" / "same_numbers.py"), "save", str(work), "--only", *runs]
    subprocess.run([sys.executable, *save], check=True)
    if not questions and not (work / "work" / TRAINED).exists():
        example = str(ROOT / "examples" / "audit_plain_loop.py")
        subprocess.run(
            [sys.executable, example, "--out", TRAINED],
            cwd=work / "work",
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            check=True,
        )
    pack(work, ".".join(remnant.__version__.split(".")[:2]))
    if missing := QUESTIONS.keys() - RECORDS.keys():
        raise SystemExit(f"Nothing here makes a record of {', '.join(sorted(missing))}.")


def pack(work: Path, version: str) -> None:
    """Pack every record that is there, in place of those of that version."""
    for question, folder in RECORDS.items():
        if (work / "work" / folder).exists():
            path = pack_one(work / "work" / folder, STORED / version / f"{question}.zip")
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def pack_one(folder: Path, path: Path) -> Path:
    """Pack a record with the arrays that its page reads."""
    record = Record.open(folder)
    if record.status != "complete":
        raise SystemExit(f"{folder} is not complete.")
    with mock.patch.object(record, "array", wraps=record.array) as array:
        render([read_page(record)])
    stored = record.summary()["arrays"]
    read = {
        stored[call.args[0]]["sha256"] for call in array.call_args_list if call.args[0] in stored
    }
    arrays = sorted(f for f in (folder / "arrays").glob("*") if file_sha256(f) in read)
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for file in (folder / "record.sqlite", *arrays):
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix())
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, file.read_bytes())
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("runs", help="print the runs of the benchmark that write the records")
    making = commands.add_parser("make", help="run all, and pack the records of this version")
    packing = commands.add_parser("pack", help="pack the records that an older version wrote")
    for one in (making, packing):
        one.add_argument("work", type=Path)
    making.add_argument("questions", nargs="*", help="only these, which have a recipe")
    packing.add_argument("version", help="such as 0.2")
    given = parser.parse_args()
    if given.command == "runs":
        print(" ".join(RUNS))
    elif given.command == "make":
        make(given.work.resolve(), given.questions)
    else:
        pack(given.work.resolve(), given.version)


if __name__ == "__main__":
    main()
