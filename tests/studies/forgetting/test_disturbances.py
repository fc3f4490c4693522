"""Disturbances: of the size they say, alike for a trial's members, on neighbours that are none."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from remnant import InjectPlan, Population
from remnant.data import Images, load_images
from remnant.errors import InvalidInput, PlanError
from remnant.measures import hidden_test
from remnant.probes import SIGNALS
from remnant.studies.forgetting.residual_memory_probe import (
    ClassifierBench,
    Disturbed,
    draw_neighbours,
    lesson_of,
)
from remnant.studies.residual_memory.disturbances import (
    Bench,
    after_relearning,
    asked_times,
    disturb,
    with_noise,
)
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.image_canaries import draw_canaries
from remnant.studies.shared.settings import CanarySettings, TrainingSettings
from remnant.studies.shared.study import section_fields

PLAN = InjectPlan(
    canaries=12, step=2, watch_steps=2, trials=2, batch=16, fresh_canaries=True, controls=6
)
CLASSES, WIDTH = 4, 6


class Net(nn.Module):
    """A small classifier with batch norm, so that there are buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, 8)
        self.norm = nn.BatchNorm1d(8)
        self.last = nn.Linear(8, CLASSES)

    def forward(self, rows):
        return self.last(torch.relu(self.norm(self.first(rows.flatten(1)))))


def images(count, seed):
    rng = np.random.default_rng(seed)
    made = rng.normal(size=(count, 1, 2, WIDTH // 2)).astype(np.float32)
    return Images(made, rng.integers(0, CLASSES, size=count))


def bench_of(*, arms_alike=False, make_model=Net):
    """Members as if trained; a trial's all alike, if asked for."""
    arms = len(PLAN.arms)
    seeds = [member // arms if arms_alike else member for member in range(PLAN.members)]
    population = Population(make_model, seeds=seeds)
    return ClassifierBench(
        make_model=make_model,
        states=[population.state_dict(member) for member in range(len(seeds))],
        plan=PLAN,
        probed=images(36, 0),
        test=images(40, 1),
    )


NEIGHBOURS = [images(20, seed) for seed in (5, 6)]
LESSON = lesson_of(NEIGHBOURS)
RELEARN = HiddenSettings(noise=(), relearn_steps=(1, 4, 30), neighbours=20)
PLAIN = TrainingSettings(options={"lr": 0.2})


def test_noise_is_of_the_size_it_says_and_spares_the_buffers(monkeypatch):
    bench = bench_of()
    seen = []
    original = Bench.population

    def watched(self, states):
        seen.append(states)
        return original(self, states)

    monkeypatch.setattr(Bench, "population", watched)
    settings = HiddenSettings(noise=(0.1, 0.5), draws=40, relearn_steps=())
    found = Disturbed(with_noise(bench, settings))
    assert found.signals.shape == (2, PLAN.members, len(SIGNALS), 36)
    assert found.accuracy.shape == (2, PLAN.members)
    assert len(seen) == asked_times(settings) == 80
    for place, scale in enumerate((0.1, 0.5)):
        moved = torch.stack(
            [
                states[0]["first.weight"] - bench.states[0]["first.weight"]
                for states in seen[place::2]
            ]
        )
        own = bench.states[0]["first.weight"].std(correction=0)
        assert float(moved.std() / own) == pytest.approx(scale, rel=0.06)
        assert float(moved.mean().abs() / own) < 0.1 * scale
    for name in ("norm.running_mean", "norm.running_var", "norm.num_batches_tracked"):
        assert torch.equal(seen[-1][0][name], bench.states[0][name])
    # BatchNorm's weight is all ones: a tensor without spread has no noise.
    assert torch.equal(seen[-1][0]["norm.weight"], bench.states[0]["norm.weight"])


def test_a_trials_members_are_noised_alike_and_trials_are_not():
    settings = HiddenSettings(noise=(0.3,), draws=2, relearn_steps=())
    found = Disturbed(with_noise(bench_of(arms_alike=True), settings)).signals[0]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert not np.allclose(found[0], found[3])


def test_hardly_any_noise_changes_hardly_anything():
    bench = bench_of()
    settings = HiddenSettings(noise=(1e-7, 0.5), draws=3, relearn_steps=())
    plain = Disturbed(bench.finite([bench.ask(bench.population(bench.states))]))
    found = Disturbed(with_noise(bench, settings))
    np.testing.assert_allclose(found.signals[0], plain.signals[0], atol=1e-4)
    assert np.abs(found.signals[1] - plain.signals[0]).mean() > 0.05


def test_a_trials_members_relearn_alike_from_its_own_neighbours():
    bench = bench_of(arms_alike=True)
    found = Disturbed(after_relearning(bench, RELEARN, PLAIN, LESSON))
    assert found.signals.shape == (3, PLAN.members, len(SIGNALS), 36)
    np.testing.assert_array_equal(found.signals[:, 0], found.signals[:, 1])
    np.testing.assert_array_equal(found.signals[:, 0], found.signals[:, 2])
    assert not np.allclose(found.signals[:, 0], found.signals[:, 3])
    about = dataclasses.replace(bench, probed=NEIGHBOURS[1])
    loss = Disturbed(after_relearning(about, RELEARN, PLAIN, LESSON)).signals[:, :, 0].mean(-1)
    assert loss[2, 3] < 0.7 * loss[0, 3], "its own neighbours are learnt"
    assert loss[2, 3] < 0.7 * loss[2, 0], "the other trial's are not"


def test_relearning_is_the_same_as_training_by_hand():
    bench = bench_of(make_model=lambda: nn.Sequential(nn.Flatten(), nn.Linear(WIDTH, CLASSES)))
    few = HiddenSettings(noise=(), relearn_steps=(1, 2), neighbours=16, learning_rate=0.05)
    near = [images(16, seed) for seed in (5, 6)]
    found = Disturbed(after_relearning(bench, few, PLAIN, lesson_of(near))).signals[1, 4, 0]
    model = bench.make_model()
    model.load_state_dict(dict(bench.states[4]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):  # a batch holds all 16 neighbours, so that their order does not matter
        optimizer.zero_grad()
        output = model(torch.from_numpy(near[1].images))
        nn.functional.cross_entropy(output, torch.from_numpy(near[1].labels)).backward()
        optimizer.step()
    losses = nn.functional.cross_entropy(
        model(torch.from_numpy(bench.probed.images)),
        torch.from_numpy(bench.probed.labels),
        reduction="none",
    )
    np.testing.assert_allclose(found, losses.detach().numpy(), rtol=1e-4)


def test_a_model_that_blows_up_is_said_to():
    with pytest.raises(InvalidInput, match="not finite"):
        after_relearning(
            bench_of(make_model=lambda: nn.Sequential(nn.Flatten(), nn.Linear(WIDTH, CLASSES))),
            HiddenSettings(noise=(), relearn_steps=(60,), neighbours=20, learning_rate=1e30),
            PLAIN,
            LESSON,
        )


@pytest.mark.parametrize("kind", ["mislabelled", "odd", "hard", "medium", "easy"])
def test_neighbours_are_of_the_canaries_kind_and_are_no_canaries(kind):
    data = load_images("digits", folder=None, examples=100, seed=0)
    settings = CanarySettings(kind=kind)
    losses = np.random.default_rng(0).exponential(size=len(data.pool))
    canaries = draw_canaries(PLAN, settings, data, losses)
    found = draw_neighbours(PLAN, settings, data, losses, canaries, count=30)
    assert [len(one) for one in found] == [30, 30]
    used = {image.tobytes() for image in canaries.images}
    pool = {image.tobytes(): row for row, image in enumerate(data.pool.images)}
    for one in found:
        assert not used & {image.tobytes() for image in one.images}
        if kind == "odd":
            continue
        rows = [pool[image.tobytes()] for image in one.images]
        assert len(set(rows)) == 30
        mistaken = one.labels != data.pool.labels[rows]
        assert mistaken.all() if kind == "mislabelled" else not mistaken.any()
        if kind == "hard":
            assert set(rows) <= set(np.argsort(losses)[-134:]), "the hardest quarter of 539"
    assert found[0].images.tobytes() != found[1].images.tobytes()
    if kind == "hard":
        many = draw_neighbours(PLAN, settings, data, losses, canaries, count=120)
        left = [loss for image, loss in zip(data.pool.images, losses, strict=True)
                if image.tobytes() not in used]  # fmt: skip
        rows = [pool[image.tobytes()] for image in many[0].images]
        assert sorted(losses[rows]) == sorted(left)[-120:], "then those that are next"


def test_a_pool_that_is_used_up_is_refused():
    data = load_images("digits", folder=None, examples=100, seed=0)
    settings = CanarySettings()
    canaries = draw_canaries(PLAN, settings, data, None)
    with pytest.raises(PlanError, match=r"hidden.neighbours=520 are more than the 503 examples"):
        draw_neighbours(PLAN, settings, data, None, canaries, count=520)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"noise": (0.1, 0.1)}, "not in increasing order"),
        ({"noise": (-0.1,)}, "not a list of numbers above 0"),
        ({"noise": 0.1}, "not a list"),
        ({"noise": (float("inf"),)}, "not a list of numbers above 0"),
        ({"draws": 0}, "hidden.draws=0"),
        ({"relearn_steps": (0,)}, "not a list of whole numbers of at least 1"),
        ({"relearn_steps": (5, 1)}, "not in increasing order"),
        ({"neighbours": 2.5}, "hidden.neighbours=2.5"),
        ({"learning_rate": 0}, "hidden.learning_rate=0"),
        ({"noise": (), "relearn_steps": ()}, "both empty"),
    ],
)
def test_bad_settings_are_named(given, words):
    with pytest.raises(PlanError, match=words):
        HiddenSettings(**given)


def test_all_faults_are_listed_at_once():
    with pytest.raises(PlanError) as caught:
        HiddenSettings(noise="x", draws=0, relearn_steps=[True], neighbours=0, learning_rate="y")
    for name in ("noise", "draws", "relearn_steps", "neighbours", "learning_rate"):
        assert f"hidden.{name}=" in str(caught.value)


def test_settings_are_plain_data_and_back():
    settings = HiddenSettings(noise=[0.1], relearn_steps=[1, 2])
    assert HiddenSettings(**section_fields(settings)) == settings


class Gated(nn.Module):
    """A memory behind a gate that is shut: nothing of it shows until the gate is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = nn.Linear(WIDTH, CLASSES, bias=False)
        self.gate = nn.Parameter(torch.zeros(CLASSES))
        self.plain = nn.Parameter(torch.zeros(CLASSES, WIDTH))

    def forward(self, rows):
        rows = rows.flatten(1)
        return self.gate * self.memory(rows) + rows @ self.plain.T


def test_a_memory_that_is_known_to_be_hidden_comes_back():
    """All members answer alike; behind the planted ones' gate lies the rule of the labels.

    A few steps on other examples of that rule open the gate. The twins, with a memory of nothing
    behind theirs, learn from the same examples at the same pace: what both gain does not count.
    """
    plan = dataclasses.replace(PLAN, trials=6, aa=True, fresh_canaries=False)
    rng = np.random.default_rng(0)
    states, near, scored = [], [], []
    for _ in range(plan.trials):
        rule = rng.normal(size=(CLASSES, WIDTH))

        def labelled(count, rule=rule):
            made = rng.normal(size=(count, 1, 2, WIDTH // 2)).astype(np.float32)
            return Images(made, (made.reshape(count, -1) @ rule.T).argmax(1))

        near.append(labelled(24))
        scored.append(labelled(60))
        for arm in plan.arms:
            made = Gated()
            weight = rule if arm == "planted" else rng.normal(size=rule.shape)
            made.memory.weight.data = torch.from_numpy(weight.astype(np.float32))
            states.append(made.state_dict())
    bench = ClassifierBench(
        make_model=Gated,
        states=states,
        plan=plan,
        probed=Images(
            np.concatenate([one.images for one in scored]),
            np.concatenate([one.labels for one in scored]),
        ),
        test=images(40, 1),
    )
    settings = HiddenSettings(noise=(0.1,), draws=3, relearn_steps=(1, 4), learning_rate=0.05)
    whole = Disturbed(disturb(bench, settings, PLAIN, lesson_of(near))).signals
    whole = whole[:, :, SIGNALS.index("log_odds")]
    before = Disturbed(bench.finite([bench.ask(bench.population(states))])).signals[:, :, 1]

    def side(arm, values):
        members = plan.members_of(arm)
        return np.stack(
            [values[:, m, 60 * trial : 60 * (trial + 1)] for trial, m in enumerate(members)], axis=1
        )

    def test_of(arm):
        return hidden_test(
            seen_before=side(arm, before)[0],
            unseen_before=side("twin", before)[0],
            seen_after=side(arm, whole),
            unseen_after=side("twin", whole),
            success="auc",
            rng=np.random.default_rng(0),
        )

    assert test_of("planted").readings == ("not found", "comes back", "comes back")
    assert test_of("aa").readings == ("not found",) * 3, "relearning alone is no memory"
