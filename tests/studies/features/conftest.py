"""A small study and small audits, run once, and the texts of a page."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from remnant import Patch
from remnant.integrations.classifiers.pictures import Pictures
from remnant.integrations.classifiers.probabilities import Probabilities
from remnant.integrations.trained_copy import trained_copies
from remnant.records import Record
from remnant.studies import Execution, run_study, study_from
from remnant.studies.features.audit import feature_audit, patch_scores
from remnant.studies.features.audit_inputs import AuditInputs, Settings
from remnant.studies.features.audit_record import write_record

DEPTHS = ("summary", "show", "page")


@pytest.fixture(scope="package")
def studied(tmp_path_factory):
    """The record of a study with every part: canaries by influence, and a variant."""
    study = study_from(
        {
            "question": "unique-features",
            "plan": {
                "kind": "feature",
                "canaries": 10,
                "seeds": 2,
                "unplanted": 2,
                "epochs": 6,
                "batch": 32,
                "patience": 2,
                "seed": 3,
            },
            "data": {"name": "framed-digits", "examples": 200},
            "patch": {"text": "K"},
            "canaries": {"choice": "influence"},
            "images": {"count": 40},
            "score": {"nulls": 19, "redraws": 2, "moments": [0, 1, 3]},
            "influence": {"on": True, "checkpoints": 4},
            "model": {"name": "mlp1", "options": {"width": 0.125}},
            "training": {"optimizer": "adam", "options": {"lr": 0.01}},
            "variants": {"dropout": {"model": {"options": {"dropout": 0.2}}}},
        }
    )
    folder = tmp_path_factory.mktemp("features") / "letters"
    run_study(study, folder, Execution())
    return Record.open(folder)


@pytest.fixture(scope="package")
def measured():
    """Two audits: a finding with a twin and a label, and a gate with labelled images."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(0, 1, (3, 1, 8, 8))
    labels = np.arange(60) % 3
    images = np.clip(centres[labels] + 0.1 * rng.normal(size=(60, 1, 8, 8)), 0, 1)
    images = torch.from_numpy(images.astype(np.float32))
    models = [_classifier(images, labels, seed) for seed in (0, 1)]

    def audit(*, twin, label, limit):
        settings = Settings(
            nulls=39,
            control="uniform",
            confidence=0.95,
            significance=0.05,
            label=label,
            limit=limit,
            against="pixels",
            seed=0,
            batch=64,
        )
        own = None if label is None else images[labels == label]
        inputs = AuditInputs(
            models[0],
            twin,
            images,
            own,
            Pictures(images, labels),
            copies=partial(trained_copies, models[0]),
        )
        patch = Patch.letter("K")
        scores = [
            None
            if ask is None
            else patch_scores(ask, inputs, patch, None, settings, lambda *_: None)
            for ask in (inputs.model, inputs.twin)
        ]
        return feature_audit(
            *(inputs, *scores, patch, None, settings, lambda *_: None),
            what="a letter of 5 x 5 pixels",
            files={"model": "m.pt2"},
        )

    return {
        "finding": audit(twin=models[1], label=1, limit=None),
        "gate": audit(twin=None, label=None, limit=5.0),
    }


@pytest.fixture(scope="package")
def audited(measured, tmp_path_factory):
    """The records of these audits."""
    folder = tmp_path_factory.mktemp("audits")
    weights = folder / "weights.bin"
    weights.write_bytes(b"weights")
    for name, audit in measured.items():
        write_record(folder / name, audit, model=weights, most_images=60, device="cpu")
    return {name: Record.open(folder / name) for name in measured}


def _classifier(images, labels, seed):
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(images), torch.from_numpy(labels)).backward()
        optimizer.step()
    return Probabilities(network)


def _normal(text):
    for space in "\u202f\u00a0":
        text = text.replace(space, " ")
    return text.replace("\N{MINUS SIGN}", "-")


@pytest.fixture(scope="package")
def numbers_in():
    """The numbers of a text as they are printed, with sign, power of ten and percent."""
    number = r"(?:(?<![\w.])[+-])?\d+(?: \d{3}(?!\d))*(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?(?: ?%)?"

    def numbers(text):
        return set(re.findall(number, _normal(text)))

    return numbers
