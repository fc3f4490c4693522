"""Augmented images: as defined, each member's own, the same whatever stands beside it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from remnant import InjectPlan, Patch, Population
from remnant.errors import InvalidInput, RecordError
from remnant.models import cnn1, mlp1
from remnant.population import Augmentation, Checkpoint, EarlyStop
from remnant.population.randomness import keys, words

SHAPE, CLASSES, SEEDS = (1, 8, 8), 5, [3, 4, 5]
ALL = Augmentation(contrast=0.3, crop=6, flip=True)
SOME = {
    "contrast": Augmentation(contrast=0.3),
    "crop": Augmentation(crop=7),
    "flip": Augmentation(flip=True),
    "all": ALL,
}
MODELS = {
    "mlp1": (lambda: mlp1(SHAPE, CLASSES, dropout=0.2, batch_norm=True), 8),
    "cnn1": (lambda: cnn1(SHAPE, CLASSES, dropout=0.2), 6),
}


def draws(seed, taken, place):
    """The four random numbers of one image, in [0, 1)."""
    key = keys(torch.tensor([seed]), torch.tensor([taken]), -2)
    found = words(key, torch.arange(4 * place, 4 * place + 4, dtype=torch.int32))
    return [((int(word) >> 8) & 0xFFFFFF) / 2**24 for word in found]


def by_hand(how, image, seed, taken, place):
    """The slow definition: one image, pixel by pixel."""
    contrast, flip, row, column = draws(seed, taken, place)
    image = image.numpy().astype(np.float64).copy()
    channels, height, width = image.shape
    for channel in image:
        mean = channel.mean()
        channel[:] = mean + (1 + how.contrast * (2 * contrast - 1)) * (channel - mean)
    if how.flip and flip >= 0.5:
        image = image[:, :, ::-1].copy()
    if not how.crop:
        return image
    top = int(row * (height - how.crop + 1))
    left = int(column * (width - how.crop + 1))
    made = np.zeros((channels, height, width))
    for y in range(how.crop):
        for x in range(how.crop):
            made[:, y, x] = image[:, top + y, left + x]
    return made


def batch(how, images, seeds, taken):
    return how.batch(images, seeds=torch.tensor(seeds), taken=torch.tensor(taken))


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 7, 9)])
@pytest.mark.parametrize("name", SOME)
def test_each_image_is_changed_as_defined(name, shape):
    how = SOME[name]
    images = torch.randn(3, 5, *shape, dtype=torch.float64, generator=torch.manual_seed(0))
    before = images.clone()
    found = batch(how, images, [7, 2**62, 7], [0, 5, 10**6])
    assert torch.equal(images, before)
    assert found.shape == images.shape
    for member, (seed, taken) in enumerate([(7, 0), (2**62, 5), (7, 10**6)]):
        for place in range(5):
            expected = by_hand(how, images[member, place], seed, taken, place)
            np.testing.assert_allclose(found[member, place].numpy(), expected, atol=1e-12)


def test_all_places_mirrorings_and_contrasts_are_drawn_evenly():
    picture = torch.arange(64.0, dtype=torch.float64).reshape(1, 1, 1, 8, 8)
    images = picture.expand(1, 4000, 1, 8, 8)
    moved = batch(Augmentation(crop=6, flip=True), images, [1], [2])[0, :, 0]
    corners, counts = torch.unique(moved[:, 0, 0], return_counts=True)
    mirrored = moved[:, 0, 0] > moved[:, 0, 1]
    assert abs(mirrored.double().mean() - 0.5) < 5 * 0.5 / np.sqrt(4000)
    starts = {8 * y + x for y in range(3) for x in range(3)}
    ends = {8 * y + 7 - x for y in range(3) for x in range(3)}
    assert set(corners.tolist()) == starts | ends
    assert (counts > 4000 / 18 / 2).all()
    contrasted = batch(Augmentation(contrast=0.2), images, [1], [2])[0, :, 0]
    factors = (contrasted[:, 7, 7] - contrasted[:, 0, 0]) / 63
    assert 0.8 <= factors.min() < 0.801
    assert 1.199 < factors.max() < 1.2
    torch.testing.assert_close(contrasted.mean((1, 2)), torch.full((4000,), 31.5).double())
    deciles = torch.histc(factors, 10, 0.8, 1.2)
    assert (deciles - 400).abs().max() < 5 * np.sqrt(400)


def test_a_patch_one_pixel_from_the_corner_outlives_the_papers_crop():
    patch = Patch.letter("A", size=5, row=1, column=1)
    images = patch.stamp(torch.full((200, 1, 28, 28), 0.5))[None]
    found = batch(Augmentation(crop=27), images, [0], [0])[0, :, 0]
    letter = images[0, 0, 0, 1:6, 1:6]
    corners = {(y, x) for y in (0, 1) for x in (0, 1)}
    seen = set()
    for image in found:
        here = [at for at in corners if torch.equal(image[at[0] :, at[1] :][:5, :5], letter)]
        assert here
        seen |= set(here)
        assert (image[27:] == 0).all()
        assert (image[:, 27:] == 0).all()
    assert seen == corners


def train(make, toy, indices, members=None, **options):
    members = range(len(SEEDS)) if members is None else members
    population = Population(make, seeds=[SEEDS[m] for m in members], precision="float64")
    population.fit(*toy, indices[:, members], lr=0.05, momentum=0.9, **options)
    return [population.state_dict(m) for m in range(len(population))]


def assert_same(one, other, tolerance=1e-9):
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=tolerance, msg=name)


def batches(steps, members=3):
    return np.random.default_rng(0).integers(0, 60, (steps, members, 16))


@pytest.mark.parametrize("name", MODELS)
def test_augmentation_does_not_depend_on_the_neighbours_backend_or_split(name, toy):
    make, steps = MODELS[name]
    indices = batches(steps)
    reference = train(make, toy, indices, augment=ALL)
    plain = train(make, toy, indices)
    last = list(plain[0])[-2]
    assert not torch.allclose(reference[0][last], plain[0][last], atol=1e-3)
    for backend in ("stacked", "serial"):
        for members, split in ([2], 1), ([1, 2], 2), ([2, 0, 1, 0], 3):
            some = train(make, toy, indices, members, augment=ALL, backend=backend, split=split)
            for place, member in enumerate(members):
                assert_same(some[place], reference[member])


def test_a_member_equals_a_plain_loop_over_images_changed_by_hand(toy):
    def make():
        return nn.Sequential(nn.Flatten(), nn.Linear(64, CLASSES))

    inputs, labels = toy
    indices = batches(12)
    found = train(make, toy, indices, augment=ALL)
    for member, seed in enumerate(SEEDS):
        torch.manual_seed(seed)
        model = make().double()
        rule = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for step, rows in enumerate(indices[:, member]):
            changed = [by_hand(ALL, inputs[row], seed, step, at) for at, row in enumerate(rows)]
            rule.zero_grad()
            images = torch.from_numpy(np.stack(changed))
            nn.functional.cross_entropy(model(images), labels[rows]).backward()
            rule.step()
        assert_same(found[member], model.state_dict())


def test_a_member_that_skips_a_step_skips_no_augmentation(toy):
    make, _ = MODELS["mlp1"]
    indices, active = batches(10), np.ones((10, 3), bool)
    active[[0, 4], 1] = False
    together = train(make, toy, indices, augment=ALL, active=active)
    own = indices[active[:, 1]]
    assert_same(together[1], train(make, toy, own, [1], augment=ALL)[0])


@pytest.mark.parametrize("off", [None, Augmentation(), Augmentation(0, 0, False)])
def test_no_augmentation_is_bitwise_none(off, toy):
    make, steps = MODELS["mlp1"]
    one = train(make, toy, batches(steps), augment=off)
    other = train(make, toy, batches(steps))
    for a, b in zip(one, other, strict=True):
        assert all(torch.equal(a[name], b[name]) for name in a)


def test_held_out_images_are_left_as_they_are(toy):
    inputs, labels = toy
    how = Augmentation(crop=1)  # one pixel is left: any image so changed has other outputs
    population = Population(lambda: cnn1(SHAPE, CLASSES), seeds=[0], precision="float64")
    seen = []
    population.fit(
        inputs,
        labels,
        batches(4, 1),
        lr=0.0,
        augment=how,
        early_stop=EarlyStop(inputs, labels, every=2, patience=9),
        loss=lambda made, at: (
            seen.append(made.detach()) or nn.functional.cross_entropy(made, at, reduction="none")
        ),
    )
    expected = population.logits(inputs)[0]
    held_out = [made for made in seen if made.shape == expected.shape]
    assert len(held_out) >= 2
    assert all(torch.allclose(made, expected) for made in held_out)


def test_a_trunk_changes_nothing_but_the_cost(toy):
    plan = InjectPlan(
        canaries=2, step=12, watch_steps=8, repeats=2, trials=2, batch=8, twins="fresh"
    )
    found = []
    for shared in (True, False):
        population = Population(
            MODELS["mlp1"][0],
            seeds=plan.seeds,
            dropout_seeds=plan.dropout_seeds,
            precision="float64",
        )
        rates = 0.1 if shared else [0.1 + 1e-15 * m for m in range(plan.members)]
        population.fit(*toy, plan.schedule(examples=56), lr=rates, augment=ALL)
        found.append([population.state_dict(m) for m in range(plan.members)])
    for one, other in zip(*found, strict=True):
        assert_same(one, other)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("killed_at", [1, 7])
def test_a_killed_training_goes_on_to_the_same_bits(killed_at, toy, tmp_path):
    make, _ = MODELS["mlp1"]
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", seconds=0)

    def kill(step):
        if step == killed_at:
            raise Killed

    stop = EarlyStop(*toy, every=2, patience=1)
    options = {"augment": ALL, "early_stop": stop}
    whole = train(make, toy, batches(12), **options)
    with pytest.raises(Killed):
        train(make, toy, batches(12), checkpoint=checkpoint, on_step=kill, **options)
    resumed = train(make, toy, batches(12), checkpoint=checkpoint, **options)
    for one, other in zip(whole, resumed, strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    "other",
    [
        None,
        Augmentation(contrast=0.2, crop=6, flip=True),
        Augmentation(contrast=0.3, crop=7, flip=True),
        Augmentation(contrast=0.3, crop=6),
    ],
)
def test_a_checkpoint_of_another_augmentation_is_refused(other, toy, tmp_path):
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", seconds=0)
    make, _ = MODELS["mlp1"]
    train(make, toy, batches(3), checkpoint=checkpoint, augment=ALL)
    with pytest.raises(RecordError, match="was made with settings"):
        train(make, toy, batches(3), checkpoint=checkpoint, augment=other)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"contrast": -0.1}, "contrast=-0.1 is not within 0 to 1"),
        ({"contrast": float("nan")}, "contrast=nan is not within"),
        ({"contrast": "0.2"}, "contrast='0.2' is not a number"),
        ({"crop": -1, "flip": 1}, "crop=-1 is not a number of pixels; flip=1 is neither"),
        ({"crop": 2.5}, "crop=2.5 is not a number of pixels"),
        ({"crop": True}, "crop=True is not"),
    ],
)
def test_numbers_out_of_range_are_refused(given, words):
    with pytest.raises(InvalidInput, match=words):
        Augmentation(**given)


@pytest.mark.parametrize(
    ("inputs", "augment", "words"),
    [
        (torch.zeros(60, 64), ALL, "shape \\(60, 64\\)"),
        (torch.zeros(60, 1, 8, 8, dtype=torch.uint8), ALL, "not torch.uint8"),
        (torch.zeros(60, 1, 8, 8), Augmentation(crop=9), "crop=9 is more than images of 8 x 8"),
        (torch.zeros(60, 1, 8, 8), 0.2, "augment=0.2 is not an Augmentation"),
    ],
)
def test_what_cannot_be_augmented_is_refused(inputs, augment, words, toy):
    population = Population(lambda: mlp1(SHAPE, CLASSES), seeds=[0])
    with pytest.raises(InvalidInput, match=words):
        population.fit(inputs, toy[1], batches(2, 1), lr=0.1, augment=augment)
