"""What a scan costs on JSON lines, CSV and decimals beside plain text, and its false alarms.

    python benchmarks/scanning.py                       # ratios, in one run
    python benchmarks/scanning.py --megabytes 100 --rounds 1 --only jsonl
    python benchmarks/scanning.py --false-alarms        # on the text of the standard library

The same words are laid out as plain lines, as JSON lines of chat messages and as CSV. The files
take turns and the median of each is kept; the ratio of CPU seconds per byte to that of plain text
is what counts. The table of decimals is there because decimals look like parts of telephone
numbers, which the library for telephone numbers would examine one by one. The peak of memory is
that of the process after each file.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from remnant.canaries.natural import KINDS, scan_files
from remnant.canaries.natural.reading import encoding_of
from remnant.errors import InvalidInput

WORDS = ["the", "of", "and", "in", "is", "that", "for", "was", "with", "not", "this", "have"]
SENTENCES = 5  # of a message


def messages(size: int, rng: np.random.Generator) -> Iterator[str]:
    """Yield messages of five sentences, with a year in each, until they have ``size`` bytes."""
    drawn = rng.choice(WORDS, size=(4096, 14))
    sentences = [f"{' '.join(row)} in {rng.integers(1900, 2020)}." for row in drawn]
    length = 0
    while length < size:
        chosen = rng.integers(len(sentences), size=SENTENCES)
        yield "\n".join(sentences[place] for place in chosen)
        length += sum(len(sentences[place]) + 1 for place in chosen)


def write_text(path: Path, size: int, rng: np.random.Generator) -> None:
    """Write messages as plain text."""
    with path.open("w") as file:
        file.writelines(f"{message}\n" for message in messages(size, rng))


def write_json_lines(path: Path, size: int, rng: np.random.Generator) -> None:
    """Write messages as the chats of a training file, two a row."""
    pairs = messages(size, rng)
    with path.open("w") as file:
        for question in pairs:
            chat = [
                {"role": "user", "content": question},
                {"role": "assistant", "content": next(pairs, "")},
            ]
            file.write(json.dumps({"messages": chat}) + "\n")


def write_csv(path: Path, size: int, rng: np.random.Generator) -> None:
    """Write messages as a table of two columns."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "text"])
        table.writerows(enumerate(messages(size, rng)))


def write_decimals(path: Path, size: int, rng: np.random.Generator) -> None:
    """Write rows of twelve decimals, in a file that is read as plain text."""
    with path.open("w") as file:
        for _ in range(size // 111 + 1):
            file.write(",".join(f"{value:.6f}" for value in rng.normal(size=12)) + "\n")


LAYOUTS = {
    "text": ("messages.txt", write_text),
    "jsonl": ("messages.jsonl", write_json_lines),
    "csv": ("messages.csv", write_csv),
    "decimals": ("decimals.txt", write_decimals),
}


def measure_ratios(size: int, rounds: int, only: str | None) -> None:
    """Print seconds per megabyte of each layout, and the ratio to plain text."""
    chosen = {
        name: layout for name, layout in LAYOUTS.items() if only is None or name in ("text", only)
    }
    per_megabyte: dict[str, list[float]] = {name: [] for name in chosen}
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name, (file_name, write) in chosen.items():
            paths[name] = Path(folder) / file_name
            write(paths[name], size, np.random.default_rng(0))
        warm = Path(folder) / "warm.txt"
        warm.write_text("call 650 253 0000")
        scan_files([warm], salt=bytes(16))
        for _ in range(rounds):
            for name, path in paths.items():
                megabytes = path.stat().st_size / 1e6
                began = time.process_time()
                scan_files([path], salt=bytes(16))
                seconds = time.process_time() - began
                per_megabyte[name].append(seconds / megabytes)
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                print(f"{name}: {megabytes:.1f} MB, {seconds:.2f} s, peak {peak:.0f} MiB")
    medians = {name: statistics.median(times) for name, times in per_megabyte.items()}
    for name, median in medians.items():
        ratio = median / medians["text"]
        print(f"{name}: {median:.3f} s per MB, {ratio:.2f} times that of plain text")


def count_false_alarms() -> None:
    """Print what is found in the standard library's Python files, by kind and service."""
    folder = Path(os.__file__).parent
    paths = []
    for path in sorted(folder.rglob("*.py")):
        if "site-packages" in path.parts:
            continue
        try:
            encoding_of(path, latin_1=False)
        except InvalidInput:
            continue  # some tests are files in other encodings
        paths.append(path)
    scan = scan_files(paths, salt=bytes(16))
    characters = sum(file.characters for file in scan.files)
    print(f"{len(scan.files)} files, {characters} characters")
    tested = {
        secret.fingerprint
        for secret in scan.found
        if all({"test", "tests"} & set(Path(place.path).parts) for place in secret.places)
    }
    for kind in KINDS:
        secrets = [secret for secret in scan.found if secret.kind == kind]
        in_tests = sum(secret.fingerprint in tested for secret in secrets)
        services = Counter(secret.service for secret in secrets if secret.service)
        listed = "".join(f", {service} {many}" for service, many in services.items())
        print(f"{kind}: {len(secrets)}, of which {in_tests} in its tests alone{listed}")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=float, default=2.0, help="Of each file.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=[name for name in LAYOUTS if name != "text"])
    parser.add_argument("--false-alarms", action="store_true")
    given = parser.parse_args()
    if given.false_alarms:
        count_false_alarms()
    else:
        measure_ratios(int(given.megabytes * 1e6), given.rounds, given.only)


if __name__ == "__main__":
    main()
