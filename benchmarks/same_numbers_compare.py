"""Compares two folders of ``same_numbers.py``: JSON by value, texts by the numbers in them."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHOWN = 12  # differences of one file that are listed
SPACES = " \u00a0\u2007\u2009\u202f"
GROUPED = re.compile(rf"(?<![\d.])\d{{1,3}}(?:[{SPACES}]\d{{3}})+(?!\d)")
SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?UTC|Z|\+00:00)?")
DURATION = re.compile(r"^(\d+ h \d+ min|\d+ min \d+ s|\d+ s)$", re.MULTILINE)
VERSION = re.compile(r"(?<![\w.])\d+(\.\d+){2,}[\w.+-]*")
DIGEST = re.compile(r"(?<!\w)(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,}(?!\w)")
NUMBER = re.compile(
    r"(?<![\w.])(?:(?<![\w)\]])-)?(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?(?:\^-?\d+)?"
)


def plain_text(text: str) -> str:
    """The text without times, versions and digests, its numbers in one spelling.

    Example:
        >>> plain_text("\u22121\u202f000 bits, 10⁻³")
        '-1000 bits, 10^-3'
    """
    for pattern in (TIME, DURATION, VERSION, DIGEST):
        text = pattern.sub("", text)
    text = GROUPED.sub(lambda match: re.sub(f"[{SPACES}]", "", match[0]), text)
    text = re.sub("(?<=\\d)[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda m: "^" + m[0].translate(SUPERSCRIPTS), text)
    return text.replace("\u2212", "-")


def numbers_in(text: str) -> Counter[str]:
    """The numbers of a text as they are printed, with how often each occurs."""
    return Counter(NUMBER.findall(plain_text(text)))


def contexts(text: str, number: str) -> list[str]:
    """The words around each place where a number occurs."""
    plain = plain_text(text)
    return [
        " ".join(plain[max(0, match.start() - 30) : match.end() + 30].split())
        for match in NUMBER.finditer(plain)
        if match[0] == number
    ]


def own_contexts(text: str, other: str, number: str, most: int = 3) -> str:
    """Where a number occurs in a text; only where the words differ from the other, if any do."""
    found, elsewhere = contexts(text, number), set(contexts(other, number))
    found = [words for words in found if words not in elsewhere] or found
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(f'"{words}"' for words in found[:most]) + more


@dataclass
class Difference:
    """What differs between two files: what fails, and what is new or accepted."""

    fails: list[str]
    new: list[str]


def compare_texts(before: str, after: str) -> Difference:
    """Compare the numbers of two texts."""
    old, new = numbers_in(before), numbers_in(after)

    def words(number: str, *texts: str) -> str:
        return f"{number} ({old[number]} → {new[number]} times): {own_contexts(*texts, number)}"

    return Difference(
        [f"gone: {words(number, before, after)}" for number in old - new],
        [f"new: {words(number, after, before)}" for number in new - old],
    )


def compare_json(before: Any, after: Any, *, allow_rewording: bool) -> Difference:
    """Compare two JSON values; every difference is named by its path."""
    found = Difference([], [])
    for path, old, new in unequal(before, after, "$"):
        if old is MISSING:
            found.new.append(f"new: {path} = {short(new)}")
        elif new is MISSING:
            found.fails.append(f"missing: {path} = {short(old)}")
        elif allow_rewording and is_reworded(old, new):
            found.new.append(f"reworded: {path}: {short(old)} → {short(new)}")
        else:
            found.fails.append(f"differs: {path}: {short(old)} → {short(new)}")
    return found


def is_reworded(old: Any, new: Any) -> bool:
    """Whether both are sentences with the same numbers; an outcome or a name is no sentence."""
    if not isinstance(old, str) or not isinstance(new, str):
        return False
    return len(old.split()) > 3 and numbers_in(old) == numbers_in(new)


MISSING = object()


def unequal(before: Any, after: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            pair = before.get(key, MISSING), after.get(key, MISSING)
            yield from unequal(*pair, f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list):
        pairs = itertools.zip_longest(before, after, fillvalue=MISSING)
        for place, (old, new) in enumerate(pairs):
            yield from unequal(old, new, f"{path}[{place}]")
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield path, before, after


def short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else text[:157] + "..."


def compare_files(before: Path, after: Path, *, allow_rewording: bool) -> Difference:
    if not before.exists():
        return Difference([], ["new: the file is only in AFTER"])
    if not after.exists():
        return Difference(["missing: the file is only in BEFORE"], [])
    texts = [path.read_text(encoding="utf-8") for path in (before, after)]
    if before.suffix == ".txt":
        return compare_texts(*texts)
    old, new = (json.loads(text) for text in texts)
    return compare_json(old, new, allow_rewording=allow_rewording)


KINDS = {
    "arrays.json": "arrays",
    "results.json": "result rows",
    "files.json": "files",
    "codes.json": "exit codes",
}


def kind_of(name: str) -> str:
    if name in KINDS:
        return KINDS[name]
    if name.endswith(".json"):
        return "JSON output"
    return "pages" if name.startswith(("page-", "charts-")) else "text"


def compare(before: Path, after: Path, *, allow_rewording: bool, only: list[str]) -> bool:
    """Print what differs; return whether everything of BEFORE is in AFTER."""
    names = {path.name for path in (before / "saved").iterdir() if path.name[0] != "."}
    other = {path.name for path in (after / "saved").iterdir() if path.name[0] != "."}
    if unknown := set(only) - names:
        raise SystemExit(f"BEFORE has no run {', '.join(sorted(unknown))}.")
    same = True
    for run in sorted(only or names | other):
        if run not in names:
            print(f"{run}: new, only in AFTER")
            continue
        if run not in other:
            print(f"{run}: MISSING, only in BEFORE")
            same = False
            continue
        folders = [root / "saved" / run for root in (before, after)]
        same &= compare_runs(run, *folders, allow_rewording=allow_rewording)
    print("The same." if same else "NOT the same.")
    return same


def compare_runs(run: str, before: Path, after: Path, *, allow_rewording: bool) -> bool:
    files = sorted(
        {p.name for folder in (before, after) for p in folder.iterdir()} - {"errors.log"}
    )
    kinds: dict[str, list[Difference]] = {}
    lines = []
    for name in files:
        found = compare_files(before / name, after / name, allow_rewording=allow_rewording)
        kinds.setdefault(kind_of(name), []).append(found)
        for rows in (found.fails, found.new):
            lines += [f"    {name} {row}" for row in rows[:SHOWN]]
            if len(rows) > SHOWN:
                lines.append(f"    {name} ... and {len(rows) - SHOWN} more")
    words = []
    for kind in sorted(kinds):
        fails = sum(len(found.fails) for found in kinds[kind])
        new = sum(len(found.new) for found in kinds[kind])
        state = f"NOT equal ({fails})" if fails else "equal"
        words.append(f"{kind} {state}" + (f", {new} new or reworded" if new else ""))
    print(f"{run}: {'; '.join(words)}")
    for line in lines:
        print(line)
    return not any(found.fails for group in kinds.values() for found in group)
