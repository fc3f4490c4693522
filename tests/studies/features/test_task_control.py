"""Whether a model learnt its task, shown by labelled images."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from remnant.integrations.classifiers.pictures import Pictures
from remnant.studies.features.formats import nats_text
from remnant.studies.features.task_control import LEVEL, task_control


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


@pytest.mark.parametrize("value", [1e-9, 0.00042, 0.0099999, 0.01, 0.0234, 1.0001, -0.00042, -3.2])
def test_a_bound_is_never_rounded_down_and_no_score_to_nothing(value):
    assert float(nats_text(value, up=True)) >= value
    assert float(nats_text(value)) == pytest.approx(value, rel=0.06)
    assert float(nats_text(value)) != 0.0
