"""A training with Opacus is audited from outside: its measured epsilon beside the claimed one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.layers import DPLSTM
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from transformers import DataCollatorForLanguageModeling

from remnant import Audit
from remnant.canaries import ImageCanaries
from remnant.errors import InvalidInput
from remnant.integrations.training.trained_model import unwrapped
from remnant.records import Record
from remnant.records.typed import Absent, read_result
from remnant.studies.training_audit.result import TrainingAuditResult

DELTA = 1e-5
# Opacus says so in every training without its own generator of random numbers, and its hooks make
# PyTorch say the second.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
]


def noise_images(count: int, *, seed: int):
    """Images of noise with random labels, which can only be memorised."""
    rng = np.random.default_rng(seed)
    images = rng.normal(size=(count, 1, 6, 6)).astype(np.float32)
    return images, rng.integers(0, 4, size=count)


def rows(count: int = 100) -> list:
    images, labels = noise_images(count, seed=0)
    pairs = zip(images, labels, strict=True)
    return [(torch.from_numpy(image), int(label)) for image, label in pairs]


def classifier() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 128), nn.ReLU(), nn.Linear(128, 4))


def coin_audit(out, count: int = 300, **given) -> Audit:
    images = ImageCanaries(*noise_images(count, seed=1))
    return Audit(canaries=images, coins=True, seed=0, out=out, **given)


def train(audit, *, noise, clip, epochs, rate=0.5, batch=64, most=None, data=None):
    """Train with Opacus; return the private model, its engine and the number of updates."""
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    loader = DataLoader(audit.prepare(data or rows()), batch_size=batch)
    engine = PrivacyEngine()
    torch.manual_seed(1)
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=clip,
    )
    audit.start(model, loader, steps=epochs * len(loader))
    step = 0

    def one_epoch(batches):
        nonlocal step
        for images, labels in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            if not optimizer._is_last_step_skipped:
                step += 1
                audit.step(model, step)

    for _ in range(epochs):
        if most is None:
            one_epoch(loader)
            continue
        with BatchMemoryManager(
            data_loader=loader, max_physical_batch_size=most, optimizer=optimizer
        ) as batches:
            one_epoch(batches)
    return model, engine, step


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    audit = coin_audit(tmp_path_factory.mktemp("honest") / "audit", overhead=None)
    model, engine, _ = train(audit, noise=1.0, clip=1.0, epochs=3)
    return audit, model, audit.finish(claimed_epsilon=engine.get_epsilon(DELTA), delta=DELTA)


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """No noise, and a clip norm that no gradient reaches."""
    audit = coin_audit(tmp_path_factory.mktemp("broken") / "audit", overhead=None)
    train(audit, noise=0.0, clip=1e6, epochs=40)
    return audit, audit.finish(claimed_epsilon=1.0, delta=DELTA)


def test_an_honest_training_does_not_fail_and_nothing_is_claimed_for_it(honest):
    _, _, ended = honest
    epsilon = ended.result.epsilon
    assert 0 <= epsilon.value < epsilon.claimed
    assert (ended.outcome, ended.exit_code) == (None, 0)
    assert "not above the claimed" in ended.sentence
    assert "no evidence that the claim is right" in ended.sentence
    assert f"300 canaries could have shown at most {epsilon.largest:.2f}"[:-1] in ended.sentence
    assert "Measured and claimed epsilon" in ended.report.read_text()
    assert "PASS" not in ended.sentence
    stored = read_result(Record.open(ended.folder), TrainingAuditResult)
    assert stored.epsilon == epsilon


def test_a_training_without_noise_and_clipping_fails_against_a_small_claim(broken):
    audit, ended = broken
    epsilon = ended.result.epsilon
    assert (ended.outcome, ended.exit_code) == ("FAIL", 1)
    assert 1.0 < epsilon.value < epsilon.largest
    assert epsilon.canaries == 300
    assert epsilon.included == len(audit.canaries.canaries)
    assert ended.sentence.startswith("Measured epsilon is at least")
    assert ": above the claimed 1." in ended.sentence
    assert "The training leaks more than it claims" in ended.report.read_text()
    assert Record.open(ended.folder).results()["verdict"]["outcome"] == "FAIL"


def test_scoring_leaves_nothing_in_the_private_model(honest):
    _, model, _ = honest
    assert isinstance(model, GradSampleModule)
    assert isinstance(unwrapped(model), nn.Sequential)
    assert not any(getattr(module, "activations", []) for module in model.modules())
    assert not model._forward_pre_hooks


def test_scoring_changes_no_weight_and_no_noise(tmp_path):
    weights = []
    for name, every in (("often", 1), ("never", 10_000)):
        audit = coin_audit(tmp_path / name, count=100, every=every, overhead=None)
        model, _, _ = train(audit, noise=1.0, clip=1.0, epochs=1)
        weights.append([weight.detach().clone() for weight in model.parameters()])
        audit.stop()
    for often, never in zip(*weights, strict=True):
        torch.testing.assert_close(often, never, rtol=0, atol=0)


def test_an_attack_that_sees_nothing_gives_no_epsilon_and_no_pass(tmp_path):
    audit = coin_audit(tmp_path / "audit", limit=0.9, overhead=None)
    train(audit, noise=1.0, clip=1.0, epochs=1, rate=0.0)
    ended = audit.finish(claimed_epsilon=3.0, delta=DELTA)
    assert ended.result.epsilon.value == 0
    assert (ended.outcome, ended.exit_code) == ("INCONCLUSIVE", 3)


def test_empty_batches_and_virtual_steps_are_counted(tmp_path):
    audit = coin_audit(tmp_path / "audit", count=80, overhead=None)
    _, engine, steps = train(audit, noise=0.4, clip=1.0, epochs=2, batch=2, data=rows(5), most=1)
    assert engine.accountant.history[0][2] == steps
    ended = audit.finish(claimed_epsilon=engine.get_epsilon(DELTA), delta=DELTA)
    seen = ended.result.sightings
    assert 0 < seen.seen <= seen.planted == ended.result.epsilon.included
    assert seen.last_step < steps
    uses = audit.uses()
    assert len(np.unique(uses[:, 0])) < steps, "some batches held no canary, or nothing at all"
    assert "could not refute the claim; it takes" in ended.sentence


class TinyLSTM(nn.Module):
    """A language model that Opacus can train."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 24)
        self.lstm = DPLSTM(24, 64, batch_first=True)
        self.head = nn.Linear(64, vocabulary)

    def forward(self, ids):
        return self.head(self.lstm(self.embedding(ids))[0])


def test_text_canaries_in_a_private_language_model(tmp_path, tiny, tokenizer):
    audit = Audit(
        template="my pin is {digits:6}",
        seed=0,
        coins=True,
        per_repeat=30,
        controls=30,
        out=tmp_path / "audit",
        tokenizer=tokenizer,
        references=64,
        forward=lambda model, ids: model(ids),
        overhead=None,
    )
    assert len(audit.canaries.canaries) + len(audit.canaries.controls) == 60
    assert set(audit.canaries.repeats) == {1}
    data = [torch.tensor(tokenizer(text)["input_ids"]) for text in audit.prepare(tiny.texts(30))]
    torch.manual_seed(0)
    model = TinyLSTM(len(tokenizer))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loader = DataLoader(data, batch_size=16, collate_fn=lambda b: pad_sequence(b, batch_first=True))
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    audit.start(model, loader, steps=2 * len(loader))
    step = 0
    for _ in range(2):
        for ids in loader:
            optimizer.zero_grad()
            logits = model(ids[:, :-1]).transpose(1, 2)
            nn.functional.cross_entropy(logits, ids[:, 1:]).backward()
            optimizer.step()
            step += 1
            audit.step(model, step)
    ended = audit.finish(
        claimed_epsilon=engine.get_epsilon(DELTA), delta=DELTA, references=200, method="sampled"
    )
    assert ended.outcome is None
    assert ended.result.epsilon.canaries == 60
    assert ended.result.sightings.seen > 0
    assert "Measured and claimed epsilon" in ended.report.read_text()


def test_without_a_delta_there_is_no_epsilon(tmp_path):
    audit = coin_audit(tmp_path / "audit", count=60, overhead=None)
    train(audit, noise=1.0, clip=1.0, epochs=1)
    assert isinstance(audit.finish().result.epsilon, Absent)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"repeats": (1, 4)}, r"repeats=\(1, 4\) is not \(1,\), as coins= needs"),
        ({"repeats": (2,)}, "epsilon is about one example"),
        ({"controls": ["some text"]}, "coins= decides which examples are controls"),
    ],
)
def test_settings_that_coins_do_not_allow(tmp_path, given, words):
    with pytest.raises(InvalidInput, match=words):
        Audit(template="my pin is {digits:6}", coins=True, out=tmp_path / "audit", **given)


def test_a_claim_needs_coins_and_is_checked_before_anything_is_measured(tmp_path):
    audit = Audit(template="my pin is {digits:6}", out=tmp_path / "audit")
    with pytest.raises(InvalidInput, match=r"delta= needs Audit\(coins=True\)"):
        audit.finish(claimed_epsilon=1.0, delta=DELTA)


def test_a_training_with_a_forgetting_curve_shows_its_examples_first(honest):
    _, _, ended = honest
    assert not isinstance(ended.result.forgetting, Absent), "last uses of Poisson batches differ"
    text = ended.report.read_text()
    assert "How well the attack finds them" in text
    assert "How fast it forgets" in text


def test_a_model_of_transformers_inside_opacus_is_ranked_exactly(tmp_path, tiny, tokenizer):
    audit = tiny.audit(
        tmp_path / "audit", coins=True, repeats=None, limit=None, per_repeat=20, controls=20
    )
    model = tiny.model(tokenizer).train()
    # Opacus takes neither shared weights nor positions, which have no row of their own.
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    model.transformer.wpe.weight.requires_grad_(False)
    loader = DataLoader(
        [tokenizer(text) for text in audit.prepare(tiny.texts(20))],
        batch_size=8,
        collate_fn=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    private, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    audit.start(private, loader, tokenizer=tokenizer, steps=len(loader))
    for step, batch in enumerate(loader, start=1):
        optimizer.zero_grad()
        private(**batch).loss.backward()
        optimizer.step()
        audit.step(private, step)
    ended = audit.finish(claimed_epsilon=8.0, delta=DELTA)
    assert ended.result.exposure.method == "exact"
    assert ended.result.epsilon.canaries == 40
    assert ended.result.sightings.uses > 0
    assert private.training
    assert not any(getattr(module, "activations", []) for module in private.modules())
