"""Image canaries in the training of a classifier, in a plain loop and in Lightning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from remnant import Audit
from remnant.canaries import ImageCanaries, mislabelled
from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.integrations.training.image_canaries import ImageMatcher
from remnant.measures import log_odds
from remnant.records import Record


class Patterns(Dataset):
    """Noisy images of four classes: which quarter is bright."""

    def __init__(self, count: int, *, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 4, size=count)
        self.images = rng.normal(0, 0.3, size=(count, 1, 8, 8)).astype(np.float32)
        for image, label in zip(self.images, self.labels, strict=True):
            row, column = divmod(int(label), 2)
            image[0, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 1

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int):
        return torch.from_numpy(self.images[index]), int(self.labels[index])


def classifier() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4))


def pool(count: int = 60) -> ImageCanaries:
    """Held-out images with wrong labels."""
    held_out = Patterns(count, seed=7)
    rng = np.random.default_rng(1)
    rows, labels = mislabelled(held_out.labels, count=count, classes=4, rng=rng)
    return ImageCanaries(held_out.images[rows], labels)


def image_audit(out, **given):
    settings = {"canaries": pool(), "controls": 30, "repeats": (1, 4), "limit": 0.75}
    settings["seed"] = 0
    return Audit(out=out, overhead=None, **(settings | given))


def train(audit, data, *, epochs, rate=2e-3, model=None, shuffle=True):
    model = model or classifier()
    loader = DataLoader(data, batch_size=32, shuffle=shuffle)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    audit.start(model, loader, steps=epochs * len(loader))
    step = 0
    for _ in range(epochs):
        for images, labels in loader:
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            audit.step(model, step)
    return audit.finish()


@pytest.fixture(scope="module")
def overfit(tmp_path_factory):
    audit = image_audit(tmp_path_factory.mktemp("images") / "audit")
    return audit, train(audit, audit.prepare(Patterns(200, seed=0)), epochs=40)


def test_an_overfit_classifier_fails(overfit):
    audit, ended = overfit
    assert ended.outcome == "FAIL", ended.sentence
    detected = ended.result.detection
    assert detected.kind == "images"
    assert [level.n for level in detected.levels] == [15, 15]
    assert {row.uses for row in detected.examples if row.repeats == 4} == {160}
    assert {row.uses for row in detected.examples if row.repeats == 1} == {40}
    assert "How well the attack finds them" in ended.report.read_text()
    stored = np.load(audit.out / "canaries.npz", allow_pickle=False)
    np.testing.assert_array_equal(stored["images"], audit.canaries.images)
    assert (audit.out / "canaries.npz").stat().st_mode & 0o077 == 0


def test_scores_are_log_odds_of_the_label(tmp_path):
    audit = image_audit(tmp_path / "audit")
    audit.prepare(Patterns(50, seed=0))
    model = classifier()
    audit.start(model, preflight=False)
    with torch.no_grad():
        logits = model(torch.from_numpy(audit.canaries.images)).double().numpy()
    np.testing.assert_allclose(-audit._training.scores[0], log_odds(logits, audit.canaries.labels))


def test_a_classifier_that_learns_nothing_is_inconclusive(tmp_path):
    audit = image_audit(tmp_path / "audit")
    ended = train(audit, audit.prepare(Patterns(100, seed=0)), epochs=1, rate=1e-12)
    assert ended.outcome == "INCONCLUSIVE"
    assert not ended.result.detection.found


def test_images_that_the_loop_changes_are_inconclusive(tmp_path):
    audit = image_audit(tmp_path / "audit")

    class Doubled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = classifier()

        def forward(self, images):
            return self.inner(images * 2)

    model = Doubled()
    loader = DataLoader(audit.prepare(Patterns(100, seed=0)), batch_size=32, shuffle=True)
    audit.start(model.inner, loader)
    for step, (images, labels) in enumerate(loader, 1):
        nn.functional.cross_entropy(model(images), labels).backward()
        audit.step(model.inner, step)
    assert "No planted example was in any batch" in audit.finish().sentence


def test_a_staggered_plan(tmp_path):
    audit = image_audit(tmp_path / "audit", plan="staggered", windows=2, every=2, repeats=(8,))
    data = audit.prepare(Patterns(400, seed=0))
    ended = train(audit, data, epochs=1, shuffle=False)
    assert len(ended.result.forgetting.curves.starts) == 2


def test_lightning(tmp_path):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = classifier()

        def training_step(self, batch, _):
            images, labels = batch
            return nn.functional.cross_entropy(self.model(images), labels)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=2e-3)

    audit = image_audit(tmp_path / "audit")
    loader = DataLoader(audit.prepare(Patterns(200, seed=0)), batch_size=32, shuffle=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(
            max_epochs=40,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path / "root",
            callbacks=[audit.lightning_callback(every=50)],
        )
        trainer.fit(Module(), loader)
    ended = audit.finish()
    assert ended.outcome == "FAIL", ended.sentence
    assert ended.result.sightings.most == 160


def test_rows_may_be_mappings(tmp_path):
    audit = image_audit(tmp_path / "audit")
    rows = [{"pixel_values": image, "labels": label} for image, label in Patterns(50, seed=0)]
    planted = audit.prepare(rows)
    assert len(planted) == 50 + 15 + 60
    assert all(set(row) == {"pixel_values", "labels"} for row in planted)
    names = audit.canaries.canaries
    assert torch.equal(
        audit.canaries.row(names[3].text, rows[0])["pixel_values"],
        torch.from_numpy(audit.canaries.images[3]),
    )


class Augmented(Dataset):
    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image, label = self.data[index]
        return image + 0.01 * torch.randn_like(image), label


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Augmented, "a transform changed the images"),
        (lambda data: list(data)[:150], "planted copies of canaries are not in"),
        (
            lambda data: [*data, (torch.from_numpy(pool().images[5]), 0)],
            "more often than they were planted|controls are in the training data",
        ),
    ],
)
def test_lost_canaries_are_refused_before_the_first_step(tmp_path, change, words):
    audit = image_audit(tmp_path / "audit")
    data = change(audit.prepare(Patterns(200, seed=0)))
    with pytest.raises(InvalidInput, match=words):
        audit.start(classifier(), DataLoader(data))


def test_bad_input(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.random((40, 1, 8, 8))
    with pytest.raises(InvalidInput, match="one label an image"):
        ImageCanaries(images, [1, 2])
    with pytest.raises(InvalidInput, match="Two of the images are equal"):
        ImageCanaries(np.zeros((3, 4, 4)), [0, 0, 0])
    with pytest.raises(InvalidInput, match="not finite"):
        ImageCanaries(images * np.nan, np.zeros(40))
    with pytest.raises(NotEnoughEvidence, match="10 controls"):
        image_audit(tmp_path / "a", controls=5)
    with pytest.raises(InvalidInput, match="controls="):
        image_audit(tmp_path / "a", controls=["a"])
    with pytest.raises(InvalidInput, match="largest AUC"):
        image_audit(tmp_path / "a", limit=3.0)
    audit = image_audit(
        tmp_path / "a", canaries=ImageCanaries(images[:, :, :4], np.zeros(40)), controls=20
    )
    with pytest.raises(InvalidInput, match=r"shape \(1, 4, 8\), and those of the data"):
        audit.prepare(Patterns(50, seed=0))
    with pytest.raises(InvalidInput, match="no image can be planted"):
        audit.prepare(["a text"])
    with pytest.raises(InvalidInput, match="map-style"):
        audit.prepare(iter([1]))
    with pytest.raises(TypeError, match="one logit for each class"):
        image_audit(tmp_path / "b").start(nn.Sequential(nn.Flatten(), nn.Linear(64, 2)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_images_are_recognised_in_any_precision_and_layout(dtype):
    rng = np.random.default_rng(0)
    images = rng.random((20, 3, 8, 8)).astype(np.float32)
    matcher = ImageMatcher(images)
    batch = torch.from_numpy(rng.random((6, 3, 8, 8)).astype(np.float32))
    batch[2], batch[5] = torch.from_numpy(images[11]), torch.from_numpy(images[0])
    batch = batch.to(dtype).contiguous(memory_format=torch.channels_last)
    assert matcher.find(matcher.sketch(batch), dtype) == [(2, 11), (5, 0)]


def trained_without(*, seed):
    """A model trained on data of the same kind in which there is no canary and no control."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(10):
        for images, labels in DataLoader(Patterns(200, seed=seed), batch_size=32):
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
    return model


def test_reference_models_are_scored_as_the_model_is(tmp_path):
    audit = image_audit(tmp_path / "audit", limit=0.75)
    loader = DataLoader(audit.prepare(Patterns(200, seed=0)), batch_size=32)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    audit.start(model, loader)
    for step, (images, labels) in enumerate([*loader] * 40, 1):
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        audit.step(model, step)
    models = [trained_without(seed=seed) for seed in (1, 2, 3)]
    ended = audit.finish(reference_models=(other for other in models))
    detected = ended.result.detection
    who = "an attacker with 3 reference models trained without these examples"
    assert (detected.attacker, detected.references) == (who, 3)
    assert [other.name for other in detected.others] == [
        "an attacker with the model alone",
        "an attacker with two checkpoints of this run",
    ]
    assert ended.outcome == "FAIL"
    assert f"The AUC of {who} is " in ended.claim
    page = ended.report.read_text(encoding="utf-8")
    assert "compared with the same in models that did not see it" in page
    with torch.no_grad():
        logits = [m(torch.from_numpy(audit.canaries.images)).double().numpy() for m in models]
    expected = np.stack([log_odds(each, audit.canaries.labels) for each in logits])
    stored = Record.open(audit.out).array("reference_scores")
    np.testing.assert_allclose(stored, expected)
    less = -audit._training.scores[max(audit._training.scores)] - expected.mean(axis=0)
    repeats = np.array(audit.canaries.repeats)
    for level in detected.levels:
        seen = less[: len(repeats)][repeats == level.repeats]
        wins = (seen[:, None] > less[len(repeats) :]).mean()
        assert level.auc == pytest.approx(wins)
        end = [row for row in detected.course if row.repeats == level.repeats][-1]
        assert end.auc == pytest.approx(level.auc)
