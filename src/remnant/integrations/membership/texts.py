"""``audit_texts``: can a language model's training texts be distinguished from held-out ones?"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import NotEnoughEvidence, require
from remnant.integrations.adapter_folder import is_adapter, model_parts
from remnant.integrations.chat_template import ChatTemplate
from remnant.integrations.membership.control import (
    COMPARED,
    TRAINED,
    given_control,
    trained_control,
)
from remnant.integrations.membership.outcome import MembershipAudit
from remnant.integrations.membership.records import (
    Overlap,
    TextSource,
    overlap,
    refused_rows,
    text_source,
)
from remnant.integrations.membership.text_models import (
    TextModel,
    as_reference,
    check_same_tokens,
    load_text_lm,
)
from remnant.integrations.placement import Placement
from remnant.measures import Success
from remnant.measures.membership.attacks import (
    HALVES,
    TEXT_ATTACKS,
    attack_scores,
    needs_reference,
    window_rows,
)
from remnant.measures.membership.blind import blind_baseline
from remnant.measures.statistics.checks import chance_level, check_share
from remnant.measures.statistics.design import noticed_clusters
from remnant.probes.token_scores import TokenScores
from remnant.progress import Progress
from remnant.records.typed import Absent
from remnant.studies.membership.coarse_scores import ComparedScores, compared_scores
from remnant.studies.membership.measure import (
    RowWindows,
    Settings,
    blind_part,
    check_control,
    check_counts,
    check_settings,
    fit_fault,
    joined,
    measure_attacks,
    reference_fault,
    risks_part,
    row_windows,
    task_fault,
    tested,
    verbatim_part,
)
from remnant.studies.membership.result import (
    AS_A_FIELD,
    Control,
    MembershipResult,
    RefusedRows,
    RowCounts,
)
from remnant.studies.membership.verdict import AttackEvidence, decide, needs_control
from remnant.studies.shared.result_parts import LanguageTask

Floats = NDArray[np.float64]
Announce = Callable[[int, int, int, float], None]
_CHUNK = 1024  # texts that are read, scored and let go together
_BLIND = 2000  # texts of a side that the blind baseline sees
_COMPARED = 24  # texts of a side that are scored in float64 too
_TIMED = 16  # texts of a side that are timed before all are scored
_GROUP = (
    "name the field that says which rows belong together (--group, group=); one that differs in "
    "every row says that they are independent"
)


def audit_texts(
    model_dir: str | Path,
    *,
    seen: Sequence[str] | str | Path,
    unseen: Sequence[str] | str | Path,
    reference_model: str | Path | None = None,
    rng: np.random.Generator,
    limit: float | None = None,
    attack: str | None = None,
    success: Success = "auc",
    fpr: float = 0.1,
    confidence: float = 0.95,
    field: str | None = None,
    group: str | None = None,
    base: str | Path | None = None,
    control: Sequence[str] | str | Path | None = None,
    samples: int = 1000,
    probability: float = 0.5,
    device: str | torch.device = "cpu",
    placement: Placement | None = None,
    progress: Progress | None = None,
    announce: Announce | None = None,
) -> MembershipAudit:
    """Audit a causal language model with texts that it was trained on and others.

    Every text goes through the model once, and once through the reference model. From these passes
    come all attacks and what comes out verbatim. Texts that are in both sets, and further copies
    within a set, are left out and counted. Memory does not grow with the number of texts, but for
    about 300 bytes a text.

    Args:
        model_dir: Folder of a Hugging Face model, of a PEFT adapter, or of a Remnant checkpoint.
        seen: Texts of the training data: a list, or a file (JSON lines, CSV, or plain lines).
        unseen: Texts drawn from the same source and held out.
        reference_model: Folder of a model that never saw the texts, with the same tokenizer. For an
            adapter it is its base, if none is given.
        rng: Draws resamples, folds and the records of the control.
        limit: The largest success allowed; None judges nothing.
        attack: The attack that is judged; by default ``"ratio"`` with a reference model, else
            ``"loss"``. All others are measured too.
        success: The rate that is judged: ``"auc"``, ``"tpr"``, ``"precision"`` or ``"accuracy"``.
        fpr: False-positive rate of a TPR or a precision.
        confidence: Of intervals and bounds.
        field: Field of the text in files; by default ``text``, ``prompt`` and ``completion``, or
            ``messages``, to which the tokenizer's chat template is applied. Rows that it refuses
            are left out and named.
        group: Field that says which rows belong together, such as those of one document or person.
            Bounds hold for independent records, so the first row of each group is used, and none of
            a group that is on both sides. Without it, scores that look clustered
            (``noticed_clusters``) allow no PASS.
        base: Folder of an adapter's base model.
        control: Texts that the model is known to have memorised, as the positive control. By
            default a copy of the model is trained on a few of the unseen texts, if a PASS depends
            on it.
        samples, probability: A text counts as sampled where this many samples give a part of it
            back with at least this probability.
        device: Where models compute.
        placement: Several devices by Accelerate, or weights in their own precision, for whole
            models of Hugging Face. Scores in low precision are compared with float64 on a sample;
            no copy of such a model is trained, so a PASS needs ``control``.
        progress: Called with the name of a stage, what is done, and of how much.
        announce: Called before the passes with the number of texts, of tokens, of models, and the
            seconds that they may take on this machine.

    Raises:
        InvalidInput: Texts, models or settings are not what they should be; all faults of settings
            at once.
        NotEnoughEvidence: A side has fewer than 20 different texts.
        UnsupportedModel: The folder holds no causal language model.
        MissingExtra: A library that the model needs is not installed.
    """
    folder = Path(model_dir)
    if reference_model is None and folder.is_dir() and is_adapter(folder):
        reference_model = model_parts(folder, base=base).model
    settings = Settings(
        attack=attack or ("loss" if reference_model is None else "ratio"),
        limit=limit,
        success=success,
        fpr=fpr,
        confidence=confidence,
        samples=samples,
        probability=probability,
    )
    _check(settings, has_reference=reference_model is not None, rng=rng)
    chat = ChatTemplate(folder, base=base)
    sides = (
        text_source(seen, name="seen", field=field, chat=chat, group=group),
        text_source(unseen, name="unseen", field=field, chat=chat, group=group),
    )
    known = None
    if control is not None:
        known = text_source(control, name="control", field=field, chat=chat)
    sources = dict(zip(("seen", "unseen"), sides, strict=True))
    if known is not None:
        sources["control"] = known
        with _naming_refused(sources):
            check_control(sum(1 for _ in known))
    used = overlap(*sides, sampled=_BLIND, rng=rng)
    with _naming_refused(sources):
        check_counts(*used.used_counts, shared=used.shared)
    refused = refused_rows(sources)
    blind = blind_part(blind_baseline(*used.samples, rng=rng))
    model = load_text_lm(folder, device=device, base=base, placement=placement)
    reference = None
    if reference_model is not None:
        with as_reference():
            reference = load_text_lm(reference_model, device=device, placement=placement)
        check_same_tokens(model, reference, used.samples[1])
    reader = _Reader(model, reference, settings)
    if announce is not None:
        announce(*reader.cost(used))
    scored = [
        reader.read(used.used(source), used.counts[i], side, progress)
        for i, (side, source) in enumerate(zip(("seen", "unseen"), sides, strict=True))
    ]
    with _naming_refused(sources):
        check_counts(*(len(side.places) for side in scored))
    given = None if known is None else reader.read(iter(known), 0, "control", progress)
    compared, grouped = reader.compared(used), group is not None
    result = _result(reader, used, scored, blind, given, rng, compared, refused, grouped)
    return MembershipAudit(
        result=result,
        places=(scored[0].places, scored[1].places),
        counts=used.counts,
        scores=(scored[0].scores, scored[1].scores),
        verbatim=None if isinstance(result.verbatim, Absent) else scored[0].comes_out,
    )


@contextmanager
def _naming_refused(sources: Mapping[str, TextSource]) -> Iterator[None]:
    """Let an error about too few texts say which rows have none."""
    try:
        yield
    except NotEnoughEvidence as fault:
        if refused := refused_rows(sources):
            why = "; ".join(rows.clause for rows in refused)
            fault.message = f"{fault.message.removesuffix('.')}: {why}."
            fault.hint = AS_A_FIELD
        raise


def _check(settings: Settings, *, has_reference: bool, rng: np.random.Generator) -> None:
    faults: list[str] = []
    check_share("probability", settings.probability, faults)
    if settings.attack not in TEXT_ATTACKS:
        faults.append(f"attack={settings.attack!r} is not one of {', '.join(TEXT_ATTACKS)}")
    elif needs_reference(settings.attack) and not has_reference:
        faults.append(f"attack={settings.attack!r} needs a reference model")
    if not isinstance(settings.samples, int) or settings.samples < 1:
        faults.append(f"samples={settings.samples!r} is not a whole number of at least 1")
    require(faults)
    check_settings(settings, rng=rng)


@dataclass(slots=True, eq=False)
class _Scored:
    """What was measured of one side's texts, in their order.

    Attributes:
        places: Of each text that was scored, counted from 1.
        scores: By attack.
        windows: By length of a half window.
        gains: Log-probability beyond the reference model's, a token; empty without one.
        nats, tokens: Cost of all tokens, and their number.
        counts: How often each token of the vocabulary was scored.
        short, cut: Texts that were left out as too short; texts that were cut.
        unscored: Tokens that were cut off.
        reference_scores: Of the reference model alone, by attack; empty without one.
        reference_nats: Cost of all tokens in the reference model.
    """

    places: NDArray[np.int64]
    scores: dict[str, Floats]
    windows: dict[int, RowWindows]
    gains: Floats | None
    nats: float
    tokens: int
    counts: NDArray[np.int64]
    short: int
    cut: int
    unscored: int
    reference_scores: dict[str, Floats]
    reference_nats: float

    @property
    def comes_out(self) -> NDArray[np.bool_]:
        """Whether a part of each text comes out verbatim, by windows of any length."""
        flags = [windows.counted for windows in self.windows.values()]
        return np.asarray(np.logical_or.reduce(flags))


@dataclass(slots=True, eq=False)
class _Batches:
    """What is collected batch by batch."""

    counts: NDArray[np.int64]
    places: list[int] = field(default_factory=list)
    scores: dict[str, list[Floats]] = field(default_factory=dict)
    windows: dict[int, list[RowWindows]] = field(default_factory=dict)
    nats: float = 0.0
    tokens: int = 0
    short: int = 0
    cut: int = 0
    unscored: int = 0
    reference_scores: dict[str, list[Floats]] = field(default_factory=dict)
    reference_nats: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Reader:
    """Reads texts through both models.

    Attributes:
        model, reference: Under audit, and one that never saw the texts; or None.
        settings: Name the attack, and when a text counts as sampled.
    """

    model: TextModel
    reference: TextModel | None
    settings: Settings

    def read(
        self, texts: Iterator[tuple[int, str]], count: int, stage: str, progress: Progress | None
    ) -> _Scored:
        """Score texts chunk by chunk."""
        kept = _Batches(np.zeros(self.model.vocabulary, dtype=np.int64))
        done = 0
        while chunk := list(islice(texts, _CHUNK)):
            self._chunk(chunk, kept)
            done += len(chunk)
            if progress is not None:
                progress(stage, done, max(count, done))
        return _Scored(
            places=np.array(kept.places, dtype=np.int64),
            scores={name: np.concatenate(parts) for name, parts in kept.scores.items()},
            windows={half: joined(parts) for half, parts in kept.windows.items()},
            gains=np.concatenate(kept.scores["ratio"]) if "ratio" in kept.scores else None,
            nats=kept.nats,
            tokens=kept.tokens,
            counts=kept.counts,
            short=kept.short,
            cut=kept.cut,
            unscored=kept.unscored,
            reference_scores={
                name: np.concatenate(parts) for name, parts in kept.reference_scores.items()
            },
            reference_nats=kept.reference_nats,
        )

    def _chunk(self, chunk: Sequence[tuple[int, str]], kept: _Batches) -> None:
        ids, beyond = self.encoded([text for _, text in chunk])
        least = 1 + self.model.unpredicted
        rows = [i for i, row in enumerate(ids) if len(row) >= least]
        kept.short += len(ids) - len(rows)
        kept.cut += sum(beyond[i] > 0 for i in rows)
        kept.unscored += sum(beyond[i] for i in rows)
        if not rows:
            return
        tokens = [ids[i] for i in rows]
        target, beside = self.scored(tokens)
        kept.places += [chunk[i][0] for i in rows]
        # Of a text that was cut, as much of its compressed size as of its tokens.
        packed = [_zlib_bytes(chunk[i][1]) * len(ids[i]) / (len(ids[i]) + beyond[i]) for i in rows]
        for name, scores in attack_scores(target, beside, zlib_bytes=packed).items():
            kept.scores.setdefault(name, []).append(scores)
        if beside is not None:
            alone = attack_scores(beside, None, zlib_bytes=packed)
            for name in ("loss", "zlib"):  # no standardised scores were read off it
                kept.reference_scores.setdefault(name, []).append(alone[name])
            kept.reference_nats -= float(beside.log_probs.sum())
        for half in HALVES:
            windows = [
                None
                if side is None
                else window_rows(side, half, unpredicted=self.model.unpredicted)
                for side in (target, beside)
            ]
            if windows[0] is not None:
                made = row_windows(windows[0], windows[1], self.settings)
                kept.windows.setdefault(half, []).append(made)
        kept.nats -= float(target.log_probs.sum())
        kept.tokens += int(target.lengths.sum())
        flat = np.concatenate([row[self.model.unpredicted :] for row in tokens])
        kept.counts += np.bincount(flat, minlength=len(kept.counts))[: len(kept.counts)]

    def cost(self, used: Overlap) -> tuple[int, int, int, float]:
        """How many texts, tokens and models there are, and the seconds that scoring may take."""
        sample = [text for side in used.samples for text in side[:_TIMED]]
        ids = [row for row in self.encoded(sample)[0] if len(row) > self.model.unpredicted]
        count = sum(used.used_counts)
        if not ids:
            return count, 0, 1, 0.0
        began = time.perf_counter()
        self.scored(ids)
        seconds = time.perf_counter() - began
        tokens = sum(map(len, ids))
        models = 1 if self.reference is None else 2
        return count, round(count * tokens / len(sample)), models, seconds * count / len(sample)

    def encoded(self, texts: Sequence[str]) -> tuple[list[list[int]], list[int]]:
        """The tokens of texts, cut to what the model reads, and how many were cut off."""
        room = self.model.room
        ids = self.model.encode(texts)
        if room is None:
            return ids, [0] * len(ids)
        return [row[:room] for row in ids], [max(0, len(row) - room) for row in ids]

    def scored(
        self,
        tokens: Sequence[Sequence[int]],
        model: TextModel | None = None,
        *,
        widen: bool = False,
    ) -> tuple[TokenScores, TokenScores | None]:
        """The tokens' scores in a model, by default that under audit, and in the reference."""
        beside = None
        if self.reference is not None:
            with as_reference():
                beside = self.reference.scores(tokens, standardise=False, widen=widen)
        return (model or self.model).scores(tokens, widen=widen), beside

    def compared(self, used: Overlap) -> ComparedScores | None:
        """The named attack's scores of a few texts in low precision and in float64.

        None for models in float32.
        """
        readers = [model for model in (self.model, self.reference) if model is not None]
        low = [model.precision for model in readers if model.precision != torch.float32]
        if not low:
            return None
        texts = [text for side in used.samples for text in side[:_COMPARED]]
        least = 1 + self.model.unpredicted
        pairs = zip(texts, self.encoded(texts)[0], strict=True)
        rows = [(text, ids) for text, ids in pairs if len(ids) >= least]
        own, wide = (self.attack(self.model, rows, widen=widen) for widen in (False, True))
        precision = str(low[0]).removeprefix("torch.")
        return compared_scores(own, wide, attack=self.settings.attack, precision=precision)

    def attack(
        self, model: TextModel, texts: Sequence[tuple[str, list[int]]], *, widen: bool = False
    ) -> Floats:
        """The named attack's scores of a few texts in a copy of the model."""
        target, beside = self.scored([ids for _, ids in texts], model, widen=widen)
        packed = [_zlib_bytes(text) for text, _ in texts]
        return attack_scores(target, beside, zlib_bytes=packed)[self.settings.attack]

    def trained(self, texts: Sequence[str], rng: np.random.Generator) -> Control | Absent:
        """The positive control by a copy that is trained on some of the texts."""
        if self.model.placed:
            return Absent(
                "no copy of a model on several devices or in its own precision is trained; pass "
                "records that it is known to remember as control"
            )
        ids, _ = self.encoded(texts)
        least = 1 + self.model.unpredicted
        rows = [(text, row) for text, row in zip(texts, ids, strict=True) if len(row) >= least]
        return trained_control(
            self.model,
            rows,
            copied=TextModel.copied,
            loss=_loss,
            attack=self.attack,
            needed=_needed(self.settings),
            rng=rng,
            success=self.settings.success,
            fpr=self.settings.fpr,
        )


def _needed(settings: Settings) -> float:
    """What the positive control has to exceed: the limit, or chance where there is none."""
    if settings.limit is not None:
        return settings.limit
    return chance_level(settings.success, settings.fpr)


def _loss(model: TextModel, texts: Sequence[tuple[str, list[int]]]) -> Tensor:
    """Mean cost of a token of a few texts, with gradients."""
    rows = [[*model.leading, *ids] for _, ids in texts]
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows], device=model.device)
    mask = torch.tensor(
        [[1] * len(row) + [0] * (width - len(row)) for row in rows], device=model.device
    )
    logits = model.logits(ids, mask)[:, :-1].float()
    costs = torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1), reduction="none"
    )
    weights = mask[:, 1:].reshape(-1)
    return (costs * weights).sum() / weights.sum()


def _reference_fault(
    seen: _Scored, unseen: _Scored, frequency_bits: float | None, rng: np.random.Generator
) -> str:
    """Why the reference model cannot be used; empty where it can, or where there is none."""
    if not seen.reference_scores:
        return ""
    bits = [side.reference_nats / side.tokens / math.log(2.0) for side in (unseen, seen)]
    task = LanguageTask(
        validation_bits=bits[0], validation_tokens=unseen.tokens, uniform_bits=frequency_bits
    )
    return reference_fault(
        seen.reference_scores,
        unseen.reference_scores,
        rng=rng,
        not_learnt=task_fault(task, seen_bits=bits[1]),
    )


def _frequency_bits(seen: NDArray[np.int64], unseen: NDArray[np.int64]) -> float:
    """Cost of an unseen token in bits, guessed by how often it is among the seen ones."""
    smoothed = seen + 0.5
    share = smoothed / smoothed.sum()
    return float(-(unseen * np.log2(share)).sum() / unseen.sum())


def _zlib_bytes(text: str) -> int:
    return len(zlib.compress(text.encode("utf-8", "surrogatepass")))


def _clustered(seen: _Scored, unseen: _Scored, attack: str) -> str:
    scores = [side.scores[attack][None, None] for side in (seen, unseen)]
    return noticed_clusters(scores[0], scores[1], what="records", remedy=_GROUP)


def _result(
    reader: _Reader,
    used: Overlap,
    scored: Sequence[_Scored],
    blind: Any,
    given: _Scored | None,
    rng: np.random.Generator,
    compared: ComparedScores | None,
    refused: tuple[RefusedRows, ...],
    grouped: bool,
) -> MembershipResult:
    settings = reader.settings
    seen, unseen = scored
    attacks, judged = measure_attacks(seen.scores, unseen.scores, settings, rng=rng)
    if compared is not None:
        attacks = replace(attacks, arithmetic=compared.sentence)
    verbatim = verbatim_part(seen.windows, unseen.windows, settings)
    task = LanguageTask(
        validation_bits=unseen.nats / unseen.tokens / math.log(2.0),
        validation_tokens=unseen.tokens,
        uniform_bits=_frequency_bits(seen.counts, unseen.counts),
    )
    rows = RowCounts(
        seen=len(seen.places),
        unseen=len(unseen.places),
        shared=used.shared,
        repeated_seen=used.repeated[0],
        repeated_unseen=used.repeated[1],
        short=seen.short + unseen.short,
        cut=seen.cut + unseen.cut,
        tokens=seen.tokens + unseen.tokens,
        unscored=seen.unscored + unseen.unscored,
        refused=refused or None,
    )
    evidence = AttackEvidence(
        judged=judged,
        attacks=attacks,
        blind=blind,
        rows=rows,
        verbatim=verbatim,
        not_learnt=task_fault(task, seen_bits=seen.nats / seen.tokens / math.log(2.0)),
        not_fitted=fit_fault(seen.gains),
        reference=reader.reference is not None,
        reference_fault=_reference_fault(seen, unseen, task.uniform_bits, rng),
        too_coarse="" if compared is None else compared.fault,
        clustered="" if grouped else _clustered(seen, unseen, settings.attack),
    )
    control: Control | Absent = Absent("no PASS depended on it")
    if given is not None:
        control = given_control(
            given.scores[settings.attack],
            unseen.scores[settings.attack],
            needed=_needed(settings),
            rng=rng,
            success=settings.success,
            fpr=settings.fpr,
        )
    elif needs_control(evidence, settings.limit):
        sample = used.samples[1]
        order = rng.permutation(len(sample))[: TRAINED + COMPARED]
        control = reader.trained([sample[i] for i in order], rng)
    named = settings.attack
    comes_out = None if isinstance(verbatim, Absent) else seen.comes_out
    return MembershipResult(
        verdict=decide(evidence, settings.limit, control),
        judged=judged,
        attacks=attacks,
        blind=blind,
        rows=rows,
        verbatim=verbatim,
        control=control,
        task=task,
        risks=risks_part(seen.scores[named], unseen.scores[named], seen.places, comes_out),
        scope=tested(
            "model", reference=reader.reference is not None, verbatim=comes_out is not None
        ),
    )
