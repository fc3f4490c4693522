"""A scan of made-up secrets, and what two models with known answers say of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from remnant.canaries.natural import Scan, scan_files
from remnant.models import LanguageModel, Vocabulary, lstm
from remnant.studies.found_secrets.measure import FoundExposures, measure_found
from remnant.studies.found_secrets.result import (
    ScanResult,
    compared_twin,
    model_exposure,
    scan_result,
)
from remnant.studies.found_secrets.twin import TwinComparison, compare_with_twin

SALT = b"0123456789abcdef"
# Made up, and in parts: no file of ours holds one whole.
SECRETS = (
    *(f"212-555-{n:04d}" for n in (3333, 3334, 3303, 3133, 3363, 3039)),
    "536-90-" + "4399",
    "r.okafor71@" + "quvzad.org",
)


def fond_of(digit: str) -> LanguageModel:
    """After anything: ``digit`` with probability 1/2, each other character alike."""
    vocabulary = Vocabulary.of_characters("0123456789-cal \n")
    net = lstm(vocabulary.size, units=1, layers=1)
    state = {name: torch.zeros_like(tensor) for name, tensor in net.state_dict().items()}
    state["head.bias"][vocabulary.encode(digit)[0]] = math.log(vocabulary.size - 1)
    net.load_state_dict(state)
    return LanguageModel(net, vocabulary)


@dataclass(frozen=True)
class Measured:
    """A scan and its exposure in a model and a twin, before anything is rounded."""

    scan: Scan
    exposure: FoundExposures
    comparison: TwinComparison

    def result(self, *, reveal: bool) -> ScanResult:
        shown = {"context": 5, "reveal": reveal, "extract": True}
        return scan_result(
            self.scan,
            region="US",
            reveal=reveal,
            exposure=model_exposure(self.exposure, model="model", **shown),
            twin=compared_twin(self.comparison, twin="twin", **shown),
        )


@pytest.fixture(scope="session")
def measured_scan(tmp_path_factory) -> Measured:
    """Eight secrets, one a file, the first in the name of its file too."""
    folder = tmp_path_factory.mktemp("texts")
    for number, secret in enumerate(SECRETS):
        (folder / f"{number}.txt").write_text(f"call {secret}\n" * (1 + number % 3))
    (folder / f"{SECRETS[0]}.txt").write_text(f"call {SECRETS[0]}\n")
    scan = scan_files([folder], salt=SALT, context=5)
    in_model, in_twin = (
        measure_found(
            fond_of(digit),
            scan.found,
            rng=np.random.default_rng(0),
            references=200,
            max_nodes=5_000,
            extract=True,
        )
        for digit in "39"
    )
    compared = compare_with_twin(scan.found, in_model=in_model, in_twin=in_twin)
    return Measured(scan, in_model, compared)
