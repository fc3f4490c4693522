"""Put the canaries of several runs about training choices into one table, by exposure.

    remnant run recipes/secret-insertions.toml --out runs/insertions
    remnant run recipes/secret-extraction.toml --out runs/extraction
    python examples/pool_exposures.py runs/insertions runs/extraction

A row has the canaries with so many bits: how many of them a search brought up, how many nodes it
took (median), and by how much the skew-normal estimate misses the exact exposure (mean, least and
most). The runs must have secrets of one space.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from remnant.records import Record
from remnant.studies.by_exposure import by_exposure


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("runs", nargs="+", type=Path)
    variants, spaces = [], set()
    for folder in options.parse_args().runs:
        with Record.open(folder) as record:
            found = record.result("training")
            variants += found["variants"]
            spaces.add(found["space_bits"])
    if len(spaces) > 1:
        options.error(f"the runs have secrets of {', '.join(map(str, sorted(spaces)))} bits")
    print("bits, canaries, read out of searched, nodes, ranked exactly, estimate less exact")
    for row in by_exposure(variants, space_bits=spaces.pop()):
        named = f"{row['low']:.0f} to {row['high']:.1f}" if row["low"] < row["high"] else "first"
        error = row["error"] and "{:+.2f} ({:+.2f} to {:+.2f})".format(*row["error"])
        nodes = "–" if row["nodes"] is None else f"{row['nodes']:.0f}"
        print(
            f"{named:>12} {row['canaries']:5d} {row['read_out']:4d} of {row['searched']:<4d} "
            f"{nodes:>8} {row['estimated']:5d} {error or '–'}"
        )


if __name__ == "__main__":
    main()
