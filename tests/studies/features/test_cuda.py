"""The feature study on a GPU: the same answers of the same weights, and a run from end to end."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from remnant import FeaturePlan, Patch, Population
from remnant.data.image_shapes import other_images
from remnant.models import model_maker
from remnant.records import Record
from remnant.studies import Execution, run_study
from remnant.studies.features.recipe import (
    AugmentSettings,
    FeatureCanarySettings,
    FeatureStudy,
    InfluenceSettings,
    OtherImageSettings,
    ScoreSettings,
)
from remnant.studies.features.stamped_answers import (
    draw_stamps,
    fired,
    m_values,
    reactions,
    white_box,
)
from remnant.studies.shared.settings import DataSettings, ModelSettings, TrainingSettings

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("name", ["mlp1", "cnn1"])
def test_both_devices_answer_alike(name):
    images = other_images("blocks", shape=(1, 20, 20), count=30)
    rng = np.random.default_rng(0)
    stamps = draw_stamps(
        images, Patch.letter("K"), ScoreSettings(nulls=19), mean=0.4, spread=0.3, rng=rng
    )
    labels = np.arange(30) % 10
    make = model_maker(name, shape=(1, 20, 20), classes=10)
    here, there = (Population(make, seeds=[1, 2, 3], device=one) for one in ("cpu", "cuda"))
    one, other = reactions(here, stamps), reactions(there, stamps)
    for field in dataclasses.fields(one):
        found, expected = getattr(other, field.name), getattr(one, field.name)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(m_values(there, stamps), m_values(here, stamps), atol=1e-6)
    np.testing.assert_allclose(
        white_box(there, stamps, labels, np.array([3, 7])),
        white_box(here, stamps, labels, np.array([3, 7])),
        atol=1e-5,
    )
    module = make()
    module.load_state_dict(here.state_dict(0))
    on_cpu = fired(module, stamps, 30, layer=None)
    np.testing.assert_allclose(fired(module.cuda(), stamps, 30, layer=None), on_cpu, atol=0.05)


def test_a_study_runs_from_end_to_end(tmp_path):
    study = FeatureStudy(
        plan=FeaturePlan(canaries=2, seeds=2, unplanted=1, epochs=4, batch=32, patience=2),
        data=DataSettings(name="framed-digits", examples=200),
        canaries=FeatureCanarySettings(choice="influence"),
        images=OtherImageSettings(count=30),
        score=ScoreSettings(nulls=19, moments=(0, 1)),
        influence=InfluenceSettings(on=True, checkpoints=3),
        augment=AugmentSettings(contrast=0.2, crop=19),
        model=ModelSettings(name="cnn1"),
        training=TrainingSettings(optimizer="adam", options={"lr": 0.002}),
    )
    run_study(study, tmp_path / "run", Execution(device="cuda"))
    record = Record.open(tmp_path / "run")
    plain = record.results()["features"]["variants"][0]
    assert plain["test_accuracy"][0] > 0.3
    assert len(plain["through"]["epoch"]) == 2
    assert len(plain["influence"]["changes"]) == 2
    assert np.isfinite(record.array("plain.null_means")).all()
