"""Audits of classifiers with two sets of labelled records: attacks, controls and the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.errors import InvalidInput, require
from remnant.integrations.arithmetic import full_precision
from remnant.integrations.classifiers.asking import ask
from remnant.integrations.membership.control import (
    COMPARED,
    TRAINED,
    given_control,
    trained_control,
)
from remnant.integrations.membership.outcome import MembershipAudit
from remnant.integrations.pretrained import quiet
from remnant.measures.membership.attacks import (
    CLASSIFIER_ATTACKS,
    LabelEvidence,
    classifier_attack_scores,
    needs_reference,
)
from remnant.measures.membership.blind import BlindBaseline
from remnant.probes.hidden import Inputs, logits_of, part_of
from remnant.probes.one_pass import OnePass, placed
from remnant.progress import Progress
from remnant.records.typed import Absent
from remnant.studies.membership.measure import (
    Settings,
    blind_part,
    check_control,
    check_counts,
    check_settings,
    measure_attacks,
    reference_fault,
    risks_part,
    task_fault,
    tested,
)
from remnant.studies.membership.result import Control, MembershipResult, RowCounts
from remnant.studies.membership.verdict import AttackEvidence, decide, needs_control
from remnant.studies.shared.result_parts import ClassifierTask

Floats = NDArray[np.float64]
_CHUNK = 1024  # records that go through the models together
# Passes of the positive control: a label is less to learn from than a text.
_LOOKS = (1, 2, 4, 8, 16, 32, 64)
_UNTRAINED = 0.9  # of the cost of a guess by frequencies: what labels have to be under
_NO_TEXT = Absent("a classifier generates no text")


@dataclass(frozen=True, slots=True, eq=False)
class LabelledRecords:
    """Records of one side, as a classifier takes them.

    Attributes:
        inputs: A tensor ``(n, ...)``, or named tensors of ``n`` rows.
        labels: int64 ``(n,)``.
        places: Of each record in its file or folder, counted from 1.
        beside: The inputs as the reference model takes them; None where that is the same.
    """

    inputs: Inputs
    labels: NDArray[np.int64]
    places: NDArray[np.int64]
    beside: Inputs | None = None

    def part(self, rows: Sequence[int]) -> LabelledRecords:
        """Some of the records, in the order given."""
        index = torch.tensor(list(rows), dtype=torch.long)
        chosen = index.numpy()
        return LabelledRecords(
            _rows(self.inputs, index),
            self.labels[chosen],
            self.places[chosen],
            None if self.beside is None else _rows(self.beside, index),
        )

    def for_reference(self) -> LabelledRecords:
        """The records as the reference model takes them."""
        return self if self.beside is None else replace(self, inputs=self.beside, beside=None)


def _rows(inputs: Inputs, index: Tensor) -> Inputs:
    if isinstance(inputs, Mapping):
        return {name: tensor[index] for name, tensor in inputs.items()}
    return inputs[index]


@dataclass(frozen=True, slots=True, eq=False)
class Classifier:
    """A classifier under audit, or a reference model.

    Attributes:
        module: The network; it returns logits.
        untrainable: Why no copy of it can be trained; empty where one can.
        batch: Records that go through it at once.
    """

    module: nn.Module
    untrainable: str = ""
    batch: int = 64

    def copied(self) -> Classifier:
        """A copy whose weights can be trained."""
        module = deepcopy(self.module)
        for parameter in module.parameters():
            parameter.requires_grad_(parameter.is_floating_point())
        return replace(self, module=module)

    def answers(self, records: LabelledRecords) -> OnePass:
        """What it says about each record and its label; batches are of about one length."""
        order = _by_length(records.inputs, len(records.labels))
        labels = torch.from_numpy(records.labels)
        with _quiet(self.module), full_precision(self.module):
            answers = ask(
                self.module,
                _rows(records.inputs, order),
                labels[order],
                layers=(),
                batch=self.batch,
            )
        back = order.argsort()
        return replace(
            answers,
            losses=answers.losses[back],
            log_odds=answers.log_odds[back],
            logit_gaps=answers.logit_gaps[back],
            predicted=answers.predicted[back],
        )


def _by_length(inputs: Inputs, count: int) -> Tensor:
    mask = inputs.get("attention_mask") if isinstance(inputs, Mapping) else None
    return torch.arange(count) if mask is None else mask.sum(1).argsort(stable=True)


def check_classifier_settings(
    settings: Settings, *, has_reference: bool, rng: np.random.Generator
) -> None:
    """Refuse settings that an audit of a classifier does not know.

    Raises:
        InvalidInput: They are out of range, or the attack is not one of ``CLASSIFIER_ATTACKS``.
    """
    faults = []
    if settings.attack not in CLASSIFIER_ATTACKS:
        faults.append(
            f"attack={settings.attack!r} is not one of a classifier's: "
            f"{', '.join(CLASSIFIER_ATTACKS)}"
        )
    elif needs_reference(settings.attack) and not has_reference:
        faults.append(f"attack={settings.attack!r} needs a reference model")
    require(faults)
    check_settings(settings, rng=rng)


def audit_records(
    model: Classifier,
    reference: Classifier | None,
    *,
    seen: LabelledRecords,
    unseen: LabelledRecords,
    control: LabelledRecords | None,
    blind: BlindBaseline,
    rows: RowCounts,
    counts: tuple[int, int],
    settings: Settings,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> MembershipAudit:
    """Audit a classifier with labelled records that it was trained on, and others.

    Args:
        model: Under audit.
        reference: A classifier of the same classes that never saw the records; or None.
        seen, unseen: The records of each side that are used.
        control: Records that the model is known to have memorised; by default a copy of the model
            is trained on some of the unseen ones, if a PASS depends on it.
        blind: The blind baseline of these records.
        rows: Which records are used.
        counts: Records that were given on each side.
        settings: Name the attack that is judged.
        rng: Draws resamples, and the records of the control.
        progress: Called with the name of a stage, what is done, and of how much.

    Raises:
        InvalidInput: Labels outside the model's classes, outputs that are no logits or not finite,
            or a reference model with other classes.
        NotEnoughEvidence: A side has fewer than 20 records.
    """
    check_counts(len(seen.labels), len(unseen.labels))
    if control is not None:
        check_control(len(control.labels))
    scorer = _Scorer(model, reference, settings.attack)
    scored = [
        scorer.read(side, name, progress) for name, side in (("seen", seen), ("unseen", unseen))
    ]
    attacks, judged = measure_attacks(
        scored[0].scores,
        scored[1].scores,
        settings,
        rng=rng,
        descriptions={name: one.description for name, one in CLASSIFIER_ATTACKS.items()},
    )
    labels = unseen.labels
    task = ClassifierTask(
        test_accuracy=float(scored[1].correct.mean()),
        test_examples=len(labels),
        majority=float(np.bincount(labels).max() / len(labels)),
    )
    evidence = AttackEvidence(
        judged=judged,
        attacks=attacks,
        blind=blind_part(blind),
        rows=rows,
        verbatim=_NO_TEXT,
        not_learnt=task_fault(task) or _label_fault(scored, seen.labels, labels),
        reference=reference is not None,
        reference_fault=_reference_fault(scored, seen.labels, labels, rng),
    )
    positive: Control | Absent = Absent("no PASS depended on it")
    needed = judged.chance if settings.limit is None else settings.limit
    if control is not None:
        known = scorer.read(control, "control", progress).scores[settings.attack]
        positive = given_control(
            known,
            scored[1].scores[settings.attack],
            needed=needed,
            rng=rng,
            success=settings.success,
            fpr=settings.fpr,
        )
    elif needs_control(evidence, settings.limit):
        positive = scorer.trained(unseen, needed, settings, rng)
    named = settings.attack
    result = MembershipResult(
        verdict=decide(evidence, settings.limit, positive),
        judged=judged,
        attacks=attacks,
        blind=evidence.blind,
        rows=rows,
        verbatim=_NO_TEXT,
        control=positive,
        task=task,
        risks=risks_part(scored[0].scores[named], scored[1].scores[named], seen.places, None),
        scope=tested("classifier", reference=reference is not None, verbatim=False),
    )
    return MembershipAudit(
        result=result,
        places=(seen.places, unseen.places),
        counts=counts,
        scores=(scored[0].scores, scored[1].scores),
        verbatim=None,
    )


def _reference_fault(
    scored: Sequence[_Scored],
    seen: NDArray[np.int64],
    unseen: NDArray[np.int64],
    rng: np.random.Generator,
) -> str:
    """Why the reference model cannot be used; empty where it can, or where there is none."""
    alone = [side.reference_scores for side in scored]
    if not alone[0]:
        return ""
    costs = [-float(scores["loss"].mean()) for scores in alone]
    return reference_fault(alone[0], alone[1], rng=rng, not_learnt=_cost_fault(costs, seen, unseen))


def _label_fault(
    scored: Sequence[_Scored], seen: NDArray[np.int64], unseen: NDArray[np.int64]
) -> str:
    """Why the model counts as untrained although its accuracy is above the commonest class's.

    Random weights may by chance put the right class first more often than that, with probabilities
    that are hardly more than a guess. Labels have to cost clearly less than a guess by their
    frequencies, on seen or on unseen records; a model that is too certain does so on seen ones.
    """
    return _cost_fault([-float(side.scores["loss"].mean()) for side in scored], seen, unseen)


def _cost_fault(costs: Sequence[float], seen: NDArray[np.int64], unseen: NDArray[np.int64]) -> str:
    """Why labels that cost so much, of seen and of unseen records, show an untrained model."""
    counts = np.bincount(np.concatenate([seen, unseen])) + 0.5
    shares = counts / counts.sum()
    guess = float(-np.log(shares[unseen]).mean())
    if min(costs) < _UNTRAINED * guess:
        return ""
    return (
        "the model did not learn its task: the label of a seen record costs "
        f"{costs[0]:.2f} nats and that of an unseen one {costs[1]:.2f}, and guessing by the "
        f"classes' frequencies costs {guess:.2f}"
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """Scores of records by attack, whether each is classified correctly, and the reference's."""

    scores: dict[str, Floats]
    correct: NDArray[np.bool_]
    reference_scores: dict[str, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class _Scorer:
    """Scores records with a model and a reference model."""

    model: Classifier
    reference: Classifier | None
    attack: str

    def read(self, records: LabelledRecords, stage: str, progress: Progress | None) -> _Scored:
        """Score records chunk by chunk."""
        count = len(records.labels)
        parts = []
        for first in range(0, count, _CHUNK):
            rows = range(first, min(first + _CHUNK, count))
            parts.append(self._scored(records.part(rows), self.model))
            if progress is not None:
                progress(stage, rows.stop, count)
        return _Scored(
            {
                name: np.concatenate([part.scores[name] for part in parts])
                for name in parts[0].scores
            },
            np.concatenate([part.correct for part in parts]),
            {
                name: np.concatenate([part.reference_scores[name] for part in parts])
                for name in parts[0].reference_scores
            },
        )

    def _scored(self, records: LabelledRecords, model: Classifier) -> _Scored:
        own = model.answers(records)
        alone, beside_odds = {}, None
        if self.reference is not None:
            beside = self.reference.answers(records.for_reference())
            if beside.outputs != own.outputs:
                raise InvalidInput(
                    f"The reference model has {beside.outputs} classes and the model has "
                    f"{own.outputs}, so their odds cannot be compared.",
                    hint="Pass a reference model of the same classes, or leave it out.",
                )
            beside_odds = beside.log_odds.numpy()
            alone = {"loss": -beside.losses.numpy()}
        evidence = LabelEvidence(
            losses=own.losses.numpy(),
            logit_gaps=own.logit_gaps.numpy(),
            log_odds=own.log_odds.numpy(),
            reference_log_odds=beside_odds,
        )
        scores = classifier_attack_scores(evidence)
        return _Scored(scores, own.predicted.numpy() == records.labels, alone)

    def trained(
        self,
        unseen: LabelledRecords,
        needed: float,
        settings: Settings,
        rng: np.random.Generator,
    ) -> Control | Absent:
        """The positive control by a copy that is trained on some of the unseen records."""
        if self.model.untrainable:
            return Absent(self.model.untrainable)
        order = rng.permutation(len(unseen.labels))[: TRAINED + COMPARED].tolist()

        def loss(model: Classifier, rows: Sequence[int]) -> Tensor:
            with _quiet(model.module):
                return _loss(model.module, unseen.part(rows))

        def attack(model: Classifier, rows: Sequence[int]) -> Floats:
            return self._scored(unseen.part(rows), model).scores[self.attack]

        return trained_control(
            self.model,
            order,
            copied=Classifier.copied,
            loss=loss,
            attack=attack,
            needed=needed,
            rng=rng,
            success=settings.success,
            fpr=settings.fpr,
            looks=_LOOKS,
        )


def _loss(module: nn.Module, records: LabelledRecords) -> Tensor:
    """Mean cross-entropy of a few records, with gradients."""
    part = placed(module, part_of(records.inputs, 0, len(records.labels)))
    made = module(**part) if isinstance(part, Mapping) else module(part)
    logits = logits_of(made).float()
    return nn.functional.cross_entropy(logits, torch.from_numpy(records.labels).to(logits.device))


def _quiet(module: nn.Module) -> AbstractContextManager[None]:
    """Silence the transformers library where the network is one of its own."""
    return quiet() if hasattr(module, "config") else nullcontext()
