"""The control of a patch: a gate that cannot find it, or finds a variant of it, does not pass."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from remnant import Patch
from remnant.integrations.classifiers.pictures import Pictures
from remnant.integrations.classifiers.probabilities import Probabilities
from remnant.integrations.trained_copy import trained_copies
from remnant.records.typed import plain
from remnant.studies.features.audit import feature_audit, patch_scores
from remnant.studies.features.audit_inputs import AuditInputs, Settings
from remnant.studies.features.audit_result import PatchControl, PatchVariantScore
from remnant.studies.features.patch_control import images_of_control, patch_control

SETTINGS = Settings(
    nulls=99,
    control="uniform",
    confidence=0.95,
    significance=0.05,
    label=None,
    limit=1.0,
    against="pixels",
    seed=0,
    batch=64,
)
LETTER = Patch.letter("K")


@pytest.fixture(scope="module")
def inputs():
    """A model that learnt its task, and never saw a letter."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(0, 1, (5, 1, 10, 10))
    labels = np.arange(120) % 5
    images = np.clip(centres[labels] + 0.2 * rng.normal(size=(120, 1, 10, 10)), 0, 1)
    images = torch.from_numpy(images.astype(np.float32))
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(100, 32), nn.ReLU(), nn.Linear(32, 5))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(80):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(images), torch.from_numpy(labels)).backward()
        optimizer.step()
    ask = Probabilities(network)
    copies = partial(trained_copies, ask)
    return AuditInputs(ask, None, images, None, Pictures(images, labels), copies=copies)


def checked(inputs):
    return patch_control(inputs, LETTER, None, SETTINGS, lambda *_: None)


def test_a_copy_shows_the_patch_and_the_model_is_left_as_it_was(inputs):
    before = inputs.model.module.state_dict()
    before = {name: tensor.clone() for name, tensor in before.items()}
    asked = []
    found = patch_control(inputs, LETTER, None, SETTINGS, lambda *given: asked.append(given))
    assert found.found
    assert found.reason == ""
    assert (found.trained, len(found.variants)) == (16, 8)
    assert asked[-1] == (9, 9)
    for name, tensor in inputs.model.module.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert plain(checked(inputs)) == plain(found), "the same seed gives the same"


def test_copies_that_learn_nothing_are_no_control(inputs):
    blind = replace(inputs, copies=lambda images, labels, looks: [(looks[-1], inputs.model)])
    found = checked(blind)
    assert not found.found
    assert found.reason.startswith("The positive control failed")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"copies": None, "untrainable": "it is a program"}, "can be found: it is a program."),
        ({"copies": None}, "no copy of this model can be trained"),
    ],
)
def test_without_a_copy_there_is_no_pass(inputs, changes, said):
    assert said in checked(replace(inputs, **changes)).reason


def test_a_copy_that_does_not_fit_into_memory_is_no_pass(inputs):
    def copies(*_):
        raise RuntimeError("out of memory")

    assert "too little memory" in checked(replace(inputs, copies=copies)).reason


def test_a_variant_that_the_model_reacts_to_is_named():
    control = PatchControl(
        trained=16,
        passes=8,
        p_value=0.005,
        level=0.05,
        variants=(
            PatchVariantScore(name="mirrored", value=0.1, p_value=0.4, contrary=False),
            PatchVariantScore(name="one pixel lower", value=2.0, p_value=0.01, contrary=True),
        ),
    )
    assert control.found
    assert control.reason.startswith("The model reacts to the patch one pixel lower: p = 0.01, M ")


def test_a_model_that_remembers_another_rendering_does_not_pass(inputs):
    """It remembers the letter in black on white, and is asked about white on black."""
    exchanged = Patch.letter("K", ink=0.0, paper=1.0)
    images, labels = inputs.task.images.clone(), np.asarray(inputs.task.labels).copy()
    images[:40] = exchanged.stamp(images[:40])
    labels[:40] = 2
    others = exchanged.shuffles(np.random.default_rng(9), 80)
    images[40:] = others.stamp(images[40:])
    ((_, taught),) = trained_copies(inputs.model, images, torch.from_numpy(labels), (12,))
    remembers = replace(inputs, model=taught, copies=partial(trained_copies, taught))
    found = checked(remembers)
    names = [variant.name for variant in found.variants if variant.contrary]
    assert "with ink and paper exchanged" in names
    settings = replace(SETTINGS, limit=5.0)
    scores = patch_scores(taught, remembers, LETTER, None, settings, lambda *_: None)
    audit = feature_audit(remembers, scores, None, LETTER, None, settings, lambda *_: None)
    assert audit.outcome == "INCONCLUSIVE"
    assert "The model reacts to the patch " in audit.sentence
    assert audit.claim.startswith("No claim: the model reacts to the patch ")


def test_its_cost_is_known_beforehand(inputs):
    assert images_of_control(LETTER, inputs.images, SETTINGS) == 9 * 100 * (159 + 3)
