"""Recognisers of speech: their training, what utterances cost them, and what they hear."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor, nn

from remnant.measures.speech.error_rate import edit_distance
from remnant.models.protocols import LogitModels
from remnant.models.recogniser import PackedRecogniser, backend_for, ctc_loss
from remnant.plans import InjectPlan, PoisonPlan, ShadowPlan, StaggeredPlan
from remnant.plans.schedule import Schedule
from remnant.population import Fit, Population
from remnant.population.optimizers import make_optimizer
from remnant.probes.recognition import greedy_tokens
from remnant.studies.shared.settings import Execution
from remnant.studies.shared.speech_settings import RECOGNISERS, SYNTHETIC, SpeechStudy
from remnant.studies.shared.wording import times
from remnant.tasks.planted_speech import Asked, InTurns, PlantedSpeech, plant_speech
from remnant.tasks.sequences import SequenceTask
from remnant.tasks.speech_corpus import (
    counting,
    load_speech,
    speaker,
    speaking,
    speaking_seconds,
    speech_fingerprint,
)
from remnant.tasks.speech_corpus import imagined as imagined_speech
from remnant.tasks.task import Lesson, Progress, ScopeWords, Source

Floats = NDArray[np.float64]
SIGNALS = ("bits", "edits")
_SOUNDS = 128  # asked at once
_HEAD = 2  # numbers before the tokens of a packed transcript: frames, and how many tokens


def recogniser_maker(study: SpeechStudy, planted: PlantedSpeech) -> Callable[[], nn.Module]:
    """Return a function that makes the study's model for these features and characters."""
    build: Any = RECOGNISERS[study.model.name]

    def make() -> nn.Module:
        return PackedRecogniser(
            build(planted.tokens, **{"bands": planted.bands, **study.model.options})
        )

    return make


def check_recognisers(study: SpeechStudy, planted: PlantedSpeech, execution: Execution) -> None:
    """Refuse what cannot be planted or trained before anything is written."""
    make_optimizer(study.training.optimizer, members=1, options=study.training.options)
    alone = Population(recogniser_maker(study, planted), seeds=[0], device=execution.device)
    alone.logits(planted.inputs[:1])
    study.plan.schedule(examples=planted.examples)  # refuses canaries that do not fit


def utterance_signals(models: LogitModels, asked: Asked) -> Tensor:
    """Return what each transcript costs given its sound, and how far from it the model hears.

    The cost is that of ``transcript_costs``: the negative base-2 logarithm of the transcript's CTC
    probability. Edits are the characters to be changed in what greedy decoding hears. A canary of
    several speakers has the mean of its sounds.

    Returns:
        float64 ``(members, 2, items)``: bits and edits, in this order (``SIGNALS``).
    """
    made = []
    for first in range(0, len(asked.inputs), _SOUNDS):
        some = slice(first, first + _SOUNDS)
        targets = asked.targets[some]
        log_probs = torch.as_tensor(models.logits(asked.inputs[some])).double()
        edits = [
            [
                edit_distance(said, tokens)
                for said, tokens in zip(said_tokens(targets), _heard(own, targets), strict=True)
            ]
            for own in log_probs.cpu()
        ]
        bits = _bits(log_probs, targets)
        made.append(np.stack([bits, np.array(edits, dtype=np.float64)], axis=1))
    return torch.from_numpy(asked.mean(np.concatenate(made, axis=-1)))


def utterance_bits(models: LogitModels, asked: Asked) -> Floats:
    """Return the first signal of ``utterance_signals`` alone, ``(members, items)``."""
    made = []
    for first in range(0, len(asked.inputs), _SOUNDS):
        some = slice(first, first + _SOUNDS)
        log_probs = torch.as_tensor(models.logits(asked.inputs[some])).double()
        made.append(_bits(log_probs, asked.targets[some]))
    return asked.mean(np.concatenate(made, axis=-1))


def _bits(log_probs: Tensor, targets: Tensor) -> Floats:
    there = targets.to(log_probs.device)
    nats = torch.stack([ctc_loss(own, there) * there[:, 1] for own in log_probs])
    bits: Floats = nats.cpu().numpy() / math.log(2.0)
    return bits


def heard_tokens(models: LogitModels, asked: Asked) -> list[list[list[int]]]:
    """Return what each member hears of each sound by greedy decoding, as tokens."""
    made: list[list[list[int]]] = []
    for first in range(0, len(asked.inputs), _SOUNDS):
        some = slice(first, first + _SOUNDS)
        log_probs = torch.as_tensor(models.logits(asked.inputs[some])).cpu()
        for member, own in enumerate(log_probs):
            made += [[]] if len(made) <= member else []
            made[member] += _heard(own, asked.targets[some])
    return made


def _heard(log_probs: Tensor, targets: Tensor) -> list[list[int]]:
    return [
        greedy_tokens(frames[:count])
        for frames, count in zip(log_probs, targets[:, 0].tolist(), strict=True)
    ]


def said_tokens(targets: Tensor) -> list[list[int]]:
    """Return the transcripts of ``pack`` as lists of tokens."""
    return [row[_HEAD : _HEAD + row[1]] for row in targets.tolist()]


def fit_recognisers(
    study: SpeechStudy,
    plan: InjectPlan | PoisonPlan | ShadowPlan | StaggeredPlan,
    planted: PlantedSpeech,
    execution: Execution,
    **choices: Any,
) -> tuple[Fit, Population]:
    """Train the members of a plan on the study's speech, in the study's way."""
    population = Population(
        recogniser_maker(study, planted),
        seeds=plan.seeds,
        dropout_seeds=None if isinstance(plan, ShadowPlan) else plan.dropout_seeds,
        noise_seeds=plan.noise_seeds,
        device=execution.device,
        precision=plan.precision,
    )
    schedule: Schedule = plan.schedule(examples=planted.examples)
    fit = population.fit(
        planted.inputs,
        planted.targets,
        InTurns(schedule, planted.second),
        loss=ctc_loss,
        backend=backend_for(execution.device),
        optimizer=study.training.optimizer,
        learning_rate=study.training.rate(),
        clip=study.training.clip,
        compiled=execution.compiled,
        **choices,
        **study.training.options,
    )
    return fit, population


def validation_edits(models: LogitModels, planted: PlantedSpeech) -> Floats:
    """Return how far what members hear of validation utterances is from what was said.

    Returns:
        ``(members, 4, utterances)``: edits of characters; edits of characters to what was said in
        *another* utterance (see ``neighbours``); edits of words; and, at the first of two
        utterances of equal length, how many edits fewer the two need than if they were exchanged
        (see ``equal_pairs``), 0 elsewhere.
    """
    asked = planted.validation
    said = said_tokens(asked.targets)
    lengths = [len(tokens) for tokens in said]
    other = [said[place] for place in neighbours(lengths)]
    words = [_words(tokens, planted) for tokens in said]
    made = []
    for heard in heard_tokens(models, asked):
        own = [edit_distance(*pair) for pair in zip(said, heard, strict=True)]
        swapped = [edit_distance(*pair) for pair in zip(other, heard, strict=True)]
        by_word = [
            edit_distance(text, _words(tokens, planted))
            for text, tokens in zip(words, heard, strict=True)
        ]
        gained = [0] * len(said)
        for i, j in equal_pairs(lengths):
            exchanged = edit_distance(said[i], heard[j]) + edit_distance(said[j], heard[i])
            gained[i] = exchanged - own[i] - own[j]
        made.append([own, swapped, by_word, gained])
    return np.array(made, dtype=np.float64)


def error_shares(models: LogitModels, planted: PlantedSpeech) -> Floats:
    """Return ``validation_edits`` as shares of all characters or words, ``(members, numbers)``.

    The sum over utterances is an error rate.
    """
    characters, words = validation_lengths(planted)
    edits = validation_edits(models, planted)
    shares: Floats = edits / np.array([characters, characters, words, characters])[:, None]
    return shares.reshape(len(shares), -1)


def validation_lengths(planted: PlantedSpeech) -> tuple[int, int]:
    """Return how many characters and words the validation utterances have."""
    said = said_tokens(planted.validation.targets)
    return sum(map(len, said)), sum(len(_words(tokens, planted)) for tokens in said)


def validation_pairs(planted: PlantedSpeech) -> int:
    """Return how many pairs of validation utterances have transcripts of equal length."""
    return len(equal_pairs([len(tokens) for tokens in said_tokens(planted.validation.targets)]))


def neighbours(lengths: Sequence[int]) -> list[int]:
    """Return for each utterance another one of about its length: the next one in that order.

    Example:
        >>> neighbours([5, 9, 6])
        [2, 0, 1]
    """
    order = sorted(range(len(lengths)), key=lambda place: lengths[place])
    after = dict(zip(order, [*order[1:], order[0]], strict=True))
    return [after[place] for place in range(len(lengths))]


def equal_pairs(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Return pairs of utterances of equal length, each utterance in one pair at the most.

    What a model hears of the two could be exchanged if it had learnt nothing but how long they are.

    Example:
        >>> equal_pairs([5, 9, 5, 5, 9])
        [(0, 2), (1, 4)]
    """
    waiting: dict[int, int] = {}
    pairs = []
    for place, length in enumerate(lengths):
        if length in waiting:
            pairs.append((waiting.pop(length), place))
        else:
            waiting[length] = place
    return pairs


def _words(tokens: Sequence[int], planted: PlantedSpeech) -> list[str]:
    return planted.vocabulary.decode([token - 1 for token in tokens]).split()


def recognition(
    edits: Floats, *, characters: int, words: int, pairs: int | None = None
) -> dict[str, Any]:
    """Return how well members recognise utterances that nobody was trained on.

    Whether they learnt anything is a sign test over pairs of utterances whose transcripts are
    equally long: what the members hear of the two is nearer to what was said than if it were
    exchanged, in more pairs than a coin would give. Members that hear the same in all sounds, or
    only how long they are, pass it no more often than by chance.

    Args:
        edits: Of ``validation_edits``, ``(members, 4, utterances)``.
        characters, words: Of all validation utterances together.
        pairs: How many pairs there are; None where it is not to be stored.
    """
    own, swapped, by_word, gained = np.moveaxis(edits, 1, 0)
    nearer = gained.mean(axis=0)
    decided = int(np.count_nonzero(nearer))
    ahead = int(np.count_nonzero(nearer > 0))
    test = stats.binomtest(ahead, decided, alternative="greater") if decided else None
    return {
        "character_error_rate": float(own.sum(axis=1).mean() / characters),
        "word_error_rate": float(by_word.sum(axis=1).mean() / words),
        "swapped_error_rate": float(swapped.sum(axis=1).mean() / characters),
        "utterances": int(edits.shape[2]),
        "p_value": 1.0 if test is None else float(test.pvalue),
        "pairs": pairs,
    }


class Recognisers(SequenceTask[SpeechStudy, PlantedSpeech]):
    """Recognisers of speech: minus what a transcript costs given its sound; see ``Task``."""

    USEFUL = "validation_edits"

    def load(
        self,
        study: SpeechStudy,
        execution: Execution,
        progress: Progress | None = None,
        *,
        imagined: bool = False,
    ) -> Source:
        """Read or speak the corpus; imagined sentences are noise of about their length."""
        missing: set[str] = set()
        if imagined:
            speak = counting(imagined_speech(study.data), execution, missing)
        else:
            speak = speaker(study.data, execution, speaking(progress))
        corpus = load_speech(study.data, execution, speak)
        return Source((corpus, speak), corpus.origin, lambda: speaking_seconds(len(missing)))

    def plant(
        self,
        study: SpeechStudy,
        source: Source,
        execution: Execution,
        *,
        pool_losses: Floats | None = None,
    ) -> PlantedSpeech:
        """Draw utterances, have them spoken, and put them behind the clean ones."""
        planted = plant_speech(study, *source.data)
        check_recognisers(study, planted, execution)
        return planted

    def fingerprint(self, source: Source, planted: PlantedSpeech) -> str:
        """Return the digest of all utterances."""
        return speech_fingerprint(planted.utterances)

    def seeds(self, study: SpeechStudy) -> dict[str, int]:
        """Return the seeds of plan and data."""
        return {"plan": study.plan.seed, "data": study.data.seed}

    def judge(self, planted: PlantedSpeech, models: Population) -> Floats:
        """Return ``validation_edits``."""
        return validation_edits(models, planted)

    def useful(
        self, study: SpeechStudy, source: Source, planted: PlantedSpeech, judged: Floats
    ) -> dict[str, Any]:
        """Return error rates, and whether anything was learnt."""
        characters, words = validation_lengths(planted)
        pairs = validation_pairs(planted)
        return recognition(judged, characters=characters, words=words, pairs=pairs)

    def scope(self, study: SpeechStudy) -> ScopeWords:
        """Return which utterances were planted, and which voices they have."""
        own = study.canaries
        lengths = " or ".join(map(str, own.words))
        spoken = own.kind == "spoken"
        what = (
            f"transcripts of {lengths} random words, spoken by synthesizers"
            if spoken
            else f"utterances of the corpus with {lengths} random words as their transcript"
        )
        often = " or ".join(times(uses) for uses in study.plan.repeats)
        before = ", less its cost before the window" if study.attack.calibrate else ""
        voices = (
            "real voices: synthesizers speak more alike than people do"
            if study.data.name == SYNTHETIC or spoken
            else "utterances with their true transcripts: wrong ones are learnt by heart"
        )
        return ScopeWords(
            model=study.model.name,
            data=f"{study.data.title} speech",
            planted=f"canaries ({what}) planted {often}",
            scored=(f"a transcript's CTC cost given its sound{before}",),
            untested=(
                voices,
                "other speakers: intervals are over utterances, not over who speaks them",
                "attackers without the sound: the cost is that of a transcript given its own sound",
            ),
            others="other recognisers and other speech",
        )

    def held(self, planted: PlantedSpeech) -> int:
        """Return the bytes of all utterances."""
        held = planted.inputs.nbytes + sum(asked.inputs.nbytes for asked in planted.probed)
        return held + (0 if planted.neighbours is None else planted.neighbours.inputs.nbytes)

    def maker(self, study: SpeechStudy, planted: PlantedSpeech) -> Callable[[], nn.Module]:
        """Return what makes a recogniser of these features and characters."""
        return recogniser_maker(study, planted)

    def fit(
        self,
        study: SpeechStudy,
        plan: Any,
        planted: PlantedSpeech,
        execution: Execution,
        **choices: Any,
    ) -> tuple[Fit, Population]:
        """Train recognisers on the utterances; two speakers of a canary take turns."""
        return fit_recognisers(study, plan, planted, execution, **choices)

    def signals(self, planted: PlantedSpeech, models: LogitModels, trial: int) -> Tensor:
        """Return ``SIGNALS`` of a trial's utterances."""
        return utterance_signals(models, planted.probed[trial])

    def costs(self, planted: PlantedSpeech, models: LogitModels, trial: int) -> Tensor:
        """Return what a trial's transcripts cost, in bits; nothing is decoded."""
        return torch.from_numpy(utterance_bits(models, planted.probed[trial]))

    def numbers(self, planted: PlantedSpeech, models: Population) -> Floats:
        """Return ``error_shares``."""
        return error_shares(models, planted)

    def fields(self, numbers: Floats, task: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return error rates, and whether anything is recognised, of these shares."""
        return recognition(numbers.reshape(len(numbers), 4, -1), characters=1, words=1)

    def lesson(self, study: SpeechStudy, planted: PlantedSpeech) -> Lesson | None:
        """Return the neighbours' utterances; two speakers of one take turns, as in training."""
        near = planted.neighbours
        if near is None:
            return None
        return Lesson(
            inputs=near.inputs,
            targets=near.targets,
            each=near.each,
            loss=ctc_loss,
            scheduled=lambda schedule: InTurns(schedule, near.second),
        )

    def timed_trials(self, plan: InjectPlan | PoisonPlan, device: str) -> int:
        """Return one without a GPU, where recognisers are trained one after another."""
        return plan.trials if device.startswith("cuda") else 1


TASK = Recognisers()
