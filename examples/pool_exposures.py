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
from remnant.records.typed import Absent, read_result
from remnant.studies.choices.by_exposure import by_exposure
from remnant.studies.choices.result import ExposureTrainingResult


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("runs", nargs="+", type=Path)
    variants, spaces = [], set()
    for folder in options.parse_args().runs:
        with Record.open(folder) as record:
            training = read_result(record, ExposureTrainingResult).training
        if isinstance(training, Absent):
            options.error(f"{folder} measured no training choices: {training.reason}")
        variants += training.variants
        spaces.add(training.space_bits)
    if len(spaces) > 1:
        options.error(f"the runs have secrets of {', '.join(map(str, sorted(spaces)))} bits")
    print("bits, canaries, extracted of searched, nodes, ranked exactly, estimate less exact")
    for band in by_exposure(variants, space_bits=spaces.pop()):
        named = f"{band.low:.0f} to {band.high:.1f}" if band.low < band.high else "first"
        error = band.error and "{:+.2f} ({:+.2f} to {:+.2f})".format(*band.error)
        nodes = "–" if band.nodes is None else f"{band.nodes:.0f}"
        print(
            f"{named:>12} {band.canaries:5d} {band.read_out:4d} of {band.searched:<4d} "
            f"{nodes:>8} {band.estimated:5d} {error or '–'}"
        )


if __name__ == "__main__":
    main()
