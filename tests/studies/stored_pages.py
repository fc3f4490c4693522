"""What the stored records show, byte for byte: pages, what ``remnant show`` prints, JSON and CSV.

``stored_pages.json`` holds a SHA-256 a record and format, and the names of each record's arrays and
results; ``test_stored_pages.py`` compares. If a change to the code changed bytes,

    python tests/studies/stored_pages.py write FOLDER

writes the bytes of the last recorded state into FOLDER/before (by the commit that changed
``stored_pages.json`` last; ``--before COMMIT`` takes another) and those of this code into
FOLDER/after, so that ``diff -r FOLDER/before FOLDER/after`` shows what changed. Where it is meant,

    python tests/studies/stored_pages.py record

takes the present bytes as those to compare with: commit the JSON file with the change.

Fixed or masked, because they may differ where nothing changed: names of folders (each record lies
in a folder called as its question, named relative to the working directory), the digests of arrays
that were not stored with a record, and the compression of pictures, which is zlib's.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import filecmp
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from click.testing import CliRunner

from remnant.cli.main import commands
from remnant.errors import RemnantError, RemnantWarning
from remnant.records import Record
from remnant.report.blocks import Table, walk
from remnant.report.html import render
from remnant.report.tables import csv_text
from remnant.studies import study_from
from remnant.studies.registry import QUESTIONS
from remnant.studies.reporting import read_page, read_pages

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
STORED = HERE.parent / "stored_records"
DIGESTS = HERE.with_suffix(".json")
TOGETHER = "together"
"""Stands for a folder with all records of the last version."""
RECORDS = sorted(path.relative_to(STORED).with_suffix("").as_posix() for path in STORED.glob("*/*"))
VERSIONS = sorted({name.partition("/")[0] for name in RECORDS})
EVERY = [*RECORDS, f"{VERSIONS[-1]}/{TOGETHER}"]
_PNG = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=]+)")


def extracted(name: str, into: Path) -> Path:
    """Extract a record, as ``0.2/forgetting``, into a folder of its own there."""
    folder = into / name.partition("/")[2]
    with zipfile.ZipFile(STORED / f"{name}.zip") as stored:
        stored.extractall(folder)
    return folder


def shown(name: str) -> dict[str, bytes]:
    """What a stored record, or all of the last version, shows: bytes by format."""
    version, _, question = name.partition("/")
    with _working_in_a_new_folder(), _unverified():
        if question == TOGETHER:
            for other in RECORDS:
                if other.startswith(f"{version}/"):
                    extracted(other, Path(question))
            pages = read_pages(question)
        else:
            extracted(name, Path())
            pages = (read_page(Record.open(question)),)
        made = {
            "html": _PNG.sub(_pixels, render(pages, name=question)),
            "show": _printed("show", question),
            "show -v": _printed("show", question, "-v"),
            "json": _printed("show", question, "--json"),
        }
    if question != TOGETHER:
        made["csv"] = _tables(pages[0].blocks)
    return {form: text.encode("utf-8") for form, text in made.items()}


def contents(name: str) -> dict[str, Any]:
    """What a stored record holds, as this code reads it: names, fingerprints, the ledger."""
    with _working_in_a_new_folder(), _unverified():
        record = Record.open(extracted(name, Path()))
        ledger = {column: values.tolist() for column, values in record.ledger().items()}
        return {
            "plan": record.plan_fingerprint,
            "plan read again": _fingerprint(record),
            "ledger": digest(json.dumps(ledger).encode()),
            "arrays": record.array_names(),
            "results": sorted(record.results()),
            "show --gate ends with": _gate(str(record.folder)),
        }


def state_of(name: str) -> dict[str, Any]:
    """What ``stored_pages.json`` says of a record, or of all of a version."""
    found: dict[str, Any] = {form: digest(made) for form, made in shown(name).items()}
    return found if name.endswith(TOGETHER) else found | contents(name)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def record_state() -> None:
    """Take what the records show now as what they should."""
    lines = []
    for name in EVERY:
        rows = [f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in state_of(name).items()]
        lines.append(f" {json.dumps(name)}: {{\n{_joined(rows)}\n }}")
    DIGESTS.write_text(f"{{\n{_joined(lines)}\n}}\n", encoding="utf-8")


def write_state(folder: Path) -> None:
    """Write what this code shows, a file a record and format, and what it reads of a record."""
    for name in EVERY:
        made = shown(name)
        if not name.endswith(TOGETHER):
            made["contents.json"] = json.dumps(contents(name), indent=1).encode()
        for form, content in made.items():
            path = folder / f"{name}.{form}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def write_both(folder: Path, commit: str | None) -> None:
    """Write the state of a commit's code and of this code, and print which files differ."""
    if commit is None:
        commit = _git("log", "-1", "--format=%H", "--", str(DIGESTS)).decode().strip()
    here = HERE.relative_to(ROOT)
    with tempfile.TemporaryDirectory() as source:
        paths = ("src", str(here), str(STORED.relative_to(ROOT)))
        with zipfile.ZipFile(io.BytesIO(_git("archive", "--format=zip", commit, *paths))) as packed:
            packed.extractall(source)
        environment = os.environ | {"PYTHONPATH": str(Path(source) / "src")}
        command = [sys.executable, str(Path(source) / here), "present", str(folder / "before")]
        subprocess.run(command, env=environment, check=True)
    write_state(folder / "after")
    both = {
        path.relative_to(folder / state)
        for state in ("before", "after")
        for path in (folder / state).glob("*/*")
    }
    for path in sorted(both):
        one, other = folder / "before" / path, folder / "after" / path
        if not (one.exists() and other.exists() and filecmp.cmp(one, other, shallow=False)):
            print(f"{path} differs")
    print(f"{folder / 'before'} is by {commit[:10]}, {folder / 'after'} by this code.")


@contextlib.contextmanager
def _working_in_a_new_folder() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _unverified() -> Any:
    """Let records be shown whose arrays were not stored with them."""
    return mock.patch.object(Record, "verify", return_value=None)


def _printed(*words: str) -> str:
    return str(CliRunner().invoke(commands, words, catch_exceptions=False).stdout)


def _gate(folder: str) -> int | str:
    """The exit code, or why the record has no gate."""
    answer = CliRunner().invoke(commands, ["show", folder, "--gate"])
    return str(answer.exception) if isinstance(answer.exception, RemnantError) else answer.exit_code


def _tables(blocks: Any) -> str:
    tables = [block for block in walk(blocks) if isinstance(block, Table)]
    return "".join(f"[{table.key}]\r\n{csv_text(table)}" for table in tables)


def _fingerprint(record: Record) -> str:
    """The fingerprint that this code gives the record's recipe, if it has one."""
    if not QUESTIONS[record.question].repeatable:
        return "the record has no recipe"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RemnantWarning)  # what 0.2 named otherwise
        return study_from(record.plan).fingerprint


def _pixels(match: re.Match[str]) -> str:
    """A picture by its size and pixels, however they are compressed."""
    picture = base64.b64decode(match[1])
    at = picture.index(b"IDAT")
    size = int.from_bytes(picture[at - 4 : at], "big")
    pixels = zlib.decompress(picture[at + 4 : at + 4 + size])
    return f"picture:{digest(picture[: at - 4] + pixels)}"


def _joined(lines: list[str]) -> str:
    return ",\n".join(lines)


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = parser.add_subparsers(dest="task", required=True)
    writing = tasks.add_parser("write", help="write the recorded and the present state")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--before", metavar="COMMIT", help="whose code wrote the state before")
    present = tasks.add_parser("present", help="write the present state alone")
    present.add_argument("folder", type=Path)
    tasks.add_parser("record", help="take the present state as the one to compare with")
    given = parser.parse_args()
    if given.task == "write":
        write_both(given.folder.resolve(), given.before)
    elif given.task == "present":
        write_state(given.folder.resolve())
    else:
        record_state()


if __name__ == "__main__":
    main()
