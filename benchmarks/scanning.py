"""How long ``scan_files`` takes on a table of decimals, beside prose of the same size, in one run.

    python benchmarks/scanning.py

The two take turns and the median of each is kept; the ratio is what counts. Decimals look
like parts of telephone numbers, which the library for telephone numbers would examine one by one.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from remnant.canaries.natural import scan_files

WORDS = ["the", "of", "and", "in", "is", "that", "for", "was", "with", "not", "this", "have"]


def prose(size: int, rng: np.random.Generator) -> str:
    """Return sentences of words, with a year in each."""
    lines, length = [], 0
    while length < size:
        words = " ".join(rng.choice(WORDS, size=14))
        lines.append(f"{words} in {rng.integers(1900, 2020)}.")
        length += len(lines[-1]) + 1
    return "\n".join(lines)


def table(size: int, rng: np.random.Generator) -> str:
    """Return rows of twelve decimals."""
    rows = rng.normal(size=(size // 111 + 1, 12))
    return "\n".join(",".join(f"{value:.6f}" for value in row) for row in rows)


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=1_100_000, help="Bytes of each file.")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    seconds: dict[str, list[float]] = {"prose": [], "table of decimals": []}
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / name for name in seconds}
        for (name, path), make in zip(paths.items(), (prose, table), strict=True):
            path.write_text(make(given.size, rng))
            scan_files([path], salt=bytes(16))  # warm
            print(f"{name}: {path.stat().st_size / 1e6:.2f} MB")
        for _ in range(given.rounds):
            for name, path in paths.items():
                began = time.perf_counter()
                scan_files([path], salt=bytes(16))
                seconds[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, median in medians.items():
        print(f"{name}: {median:.2f} s")
    print(f"ratio: {medians['table of decimals'] / medians['prose']:.1f}")


if __name__ == "__main__":
    main()
