"""The controls of a PASS: the model learnt its task, the patch can be found, and no variant is."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from remnant import Patch
from remnant.integrations.classifiers.pictures import Pictures
from remnant.integrations.classifiers.probabilities import Probabilities
from remnant.integrations.trained_copy import trained_copies
from remnant.records.typed import plain
from remnant.studies.features.audit import feature_audit, patch_scores
from remnant.studies.features.audit_inputs import AuditInputs, Settings
from remnant.studies.features.audit_result import PatchControl, PatchVariantScore
from remnant.studies.features.controls import (
    LEVEL,
    images_of_control,
    patch_control,
    task_control,
)

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
    audit = feature_audit(
        *(remembers, scores, None, LETTER, None, settings, lambda *_: None), what="", files={}
    )
    assert audit.outcome == "INCONCLUSIVE"
    assert "The model reacts to the patch " in audit.sentence
    assert audit.claim.startswith("No claim: the model reacts to the patch ")


def test_its_cost_is_known_beforehand(inputs):
    assert images_of_control(LETTER, inputs.images, SETTINGS) == 9 * 100 * (159 + 3)


def answering(named, classes):
    """A model and images: the model names the class that is written into the image."""
    images = torch.as_tensor(np.asarray(named), dtype=torch.float32).reshape(-1, 1, 1, 1)

    def ask(part):
        return nn.functional.one_hot(part.flatten().long(), classes).double()

    return ask, images


def control(named, labels, classes):
    ask, images = answering(named, classes)
    pictures = Pictures(images, np.asarray(labels, dtype=np.int64))
    return task_control(ask, pictures, batch=7, rng=np.random.default_rng(0))


def test_a_model_that_is_mostly_right_learnt_its_task():
    labels = np.arange(100) % 10
    found = control(np.where(np.arange(100) < 70, labels, 0), labels, 10)
    assert found.right == 73
    assert found.low == pytest.approx(stats.beta.ppf(LEVEL, 73, 28))
    assert found.majority == pytest.approx(0.1)
    assert found.reason == ""


@pytest.mark.parametrize(
    ("named", "labels", "classes", "said"),
    [
        (np.zeros(100), np.arange(100) % 10, 10, "(lower bound 4.2%); it takes more than 10.0%"),
        (np.full(50, 3), np.full(50, 3), 10, "it takes more than 100.0%"),
        (np.arange(60) % 2, (np.arange(60) % 5 < 4) * 1, 2, "it takes more than 90.0%"),
        (np.arange(40) % 4, np.arange(40) % 12, 4, "labels reach 11, and the model has 4 classes"),
    ],
)
def test_what_is_no_evidence_says_why(named, labels, classes, said):
    reason = control(named, labels, classes).reason
    assert said in reason
    assert "--task-images" in reason


def test_two_classes_must_be_named_right_far_more_often_than_by_luck():
    """There are two namings: an untrained model has the better one half of the time."""
    labels = np.arange(200) % 2
    lucky = control(np.where(np.arange(200) < 130, labels, 1 - labels), labels, 2)
    assert lucky.low > lucky.majority
    assert "it takes more than 75.0%" in lucky.reason
    assert control(np.where(np.arange(200) < 180, labels, 1 - labels), labels, 2).reason == ""


def test_untrained_networks_are_rarely_taken_for_trained_ones():
    """Their accuracy differs from chance, as their answers differ between classes."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 1, 6, 6))
    labels = np.arange(300) % 10
    images = torch.as_tensor(centres[labels] + 0.3 * rng.normal(size=(300, 1, 6, 6))).float()
    pictures, above, learnt, runs = Pictures(images, labels), 0, 0, 300
    for seed in range(runs):
        torch.manual_seed(seed)
        network = nn.Sequential(nn.Flatten(), nn.Linear(36, 32), nn.ReLU(), nn.Linear(32, 10))
        with torch.no_grad():
            found = task_control(
                lambda part, network=network: network(part).softmax(1),
                pictures,
                batch=300,
                rng=np.random.default_rng(seed),
            )
        above += found.low > found.majority
        learnt += found.reason == ""
    assert above > 0.1 * runs, "a binomial test takes them for trained"
    assert learnt <= stats.binom.ppf(0.9999, runs, LEVEL)


def test_all_namings_of_five_classes_are_counted():
    labels = np.arange(50) % 5
    assert control(labels, labels, 5).p_value == pytest.approx(1 / math.factorial(5))
