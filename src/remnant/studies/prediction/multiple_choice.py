"""Multiple-choice questions of a prediction study: tokens, adapters, and what models answer.

A pretrained language model is fine-tuned with adapters to name the letter of the right choice.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.data import LETTERS, MultipleChoice, Questions, load_questions
from remnant.data.own_files import Origin
from remnant.data.questions import load_own_questions
from remnant.errors import InvalidInput, UnsupportedModel
from remnant.plans import ShadowPlan
from remnant.population import AdapterPopulation, Fit, FrozenModel
from remnant.population.adapters import PADDING
from remnant.population.optimizers import make_optimizer
from remnant.population.precision import dtype_of
from remnant.records import Record
from remnant.studies.jobs.execution import JobOutput
from remnant.studies.pipeline import StepClock
from remnant.studies.prediction.early_looks import LOSS, Bools, Floats
from remnant.studies.prediction.task import PredictionTask
from remnant.studies.prediction.text_recipe import (
    PretrainedSettings,
    QuestionSettings,
    TextPredictionStudy,
)
from remnant.studies.shared.result_parts import ClassifierTask
from remnant.studies.shared.settings import Execution
from remnant.studies.shared.text_settings import QuestionFileSettings

_TOLERANCE = 1e-3  # between the model whole and in parts, of the largest logit


def prepare(study: TextPredictionStudy, execution: Execution) -> MultipleChoiceTask:
    """Read questions and model.

    Raises:
        RemnantError: They cannot be read, or adapters cannot be trained on them.
    """
    make_optimizer(study.training.optimizer, members=1, options=study.training.options)
    questions = tokenise_questions(study.questions, study.model, execution, data=study.data)
    frozen, weights = read_frozen(study.model, execution, precision=study.plan.precision)
    both = f"{questions.fingerprint}/{weights}"
    named = study.questions.name if study.data is None else study.data.path
    task = MultipleChoiceTask(
        study=study,
        execution=execution,
        fingerprint=hashlib.sha256(both.encode()).hexdigest()[:16],
        labels=questions.answers,
        kinds=questions.kinds,
        what=(
            f"LoRA of rank {study.lora.rank} on {Path(study.model.folder).name}, multiple-choice "
            f"questions of {named} with at most {study.questions.longest} tokens"
        ),
        seeds={"plan": study.plan.seed, "questions": study.questions.seed},
        origin=questions.origin,
        questions=questions,
        frozen=frozen,
    )
    untrained = task.population([0], study.plan.precision)
    next(untrained.ask(questions.tokens[:1], layers=study.predict.layers))
    return task


@dataclass(frozen=True, slots=True, eq=False)
class TokenisedQuestions:
    """Questions as a model reads them.

    Attributes:
        tokens: int64 ``(n, time)``, ``PADDING`` after a prompt's last token.
        answers: The place of the answer that is trained on, ``(n,)``; a wrong one for some.
        letters: The token of each choice's letter.
        kinds: What each is: ``clean`` or ``mislabelled``.
        test_tokens, test_answers: Of questions that no model sees.
        left_out: Questions of the set that were dropped.
        fingerprint: A digest of all this.
        origin: The user's own files that they were read from, or None.
    """

    tokens: NDArray[np.int64]
    answers: NDArray[np.int64]
    letters: NDArray[np.int64]
    kinds: NDArray[np.str_]
    test_tokens: NDArray[np.int64]
    test_answers: NDArray[np.int64]
    left_out: int
    fingerprint: str
    origin: Origin | None

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def wanted(self) -> NDArray[np.int64]:
        """The token that is to follow each prompt."""
        return self.letters[self.answers]


def tokenise_questions(
    settings: QuestionSettings,
    model: PretrainedSettings,
    execution: Execution,
    *,
    data: QuestionFileSettings | None = None,
) -> TokenisedQuestions:
    """Read a study's questions in the tokens of its model.

    Raises:
        RemnantError: The folder, the questions or the tokenizer are not what they should be.
    """
    from remnant.integrations.pretrained import read_tokenizer

    tokenizer = read_tokenizer(model_folder(model, execution))

    def encode(text: str) -> list[int]:
        return [int(token) for token in tokenizer(text, verbose=False)["input_ids"]]

    known = {}

    def fits(question: MultipleChoice) -> bool:
        known[question] = encode(question.prompt)
        return len(known[question]) <= settings.longest

    choices: dict[str, Any] = {
        "examples": settings.examples,
        "spare": settings.mislabelled,
        "seed": settings.seed,
        "fits": fits,
    }
    if data is not None:
        read = load_own_questions(execution.own_files(data), data.fields, **choices)
    else:
        read = load_questions(settings.name, folder=execution.data_folder, **choices)
    letters = _letters(encode, read.choices)
    examples = [*read.train, *read.spare]
    answers = np.array([question.answer for question in examples], dtype=np.int64)
    rng = np.random.default_rng([settings.seed, 1])
    wrong = np.arange(len(read.train), len(examples))
    answers[wrong] = (answers[wrong] + rng.integers(1, read.choices, wrong.size)) % read.choices
    tokens = _padded([known[question] for question in examples])
    test = _padded([known[question] for question in read.test])
    return TokenisedQuestions(
        tokens=tokens,
        answers=answers,
        letters=letters,
        kinds=np.array(["clean"] * len(read.train) + ["mislabelled"] * len(read.spare)),
        test_tokens=test,
        test_answers=np.array([question.answer for question in read.test], dtype=np.int64),
        left_out=read.left_out,
        fingerprint=_digest(read, tokens, answers, letters, test),
        origin=read.origin,
    )


def _letters(encode: Any, choices: int) -> NDArray[np.int64]:
    """The token that follows a prompt for each letter.

    Raises:
        UnsupportedModel: A letter is not one token of its own.
    """
    before = encode("Answer:")
    letters: list[int] = []
    for letter in LETTERS[:choices]:
        whole = encode(f"Answer: {letter}")
        if whole[: len(before)] != before or len(whole) != len(before) + 1:
            raise UnsupportedModel(
                f"The tokenizer does not read ' {letter}' after 'Answer:' as one token.",
                hint="Use a model whose tokenizer does, without tokens after a text.",
            )
        letters.append(whole[-1])
    if len(set(letters)) < choices:
        raise UnsupportedModel(
            f"The tokenizer reads some of the letters {LETTERS[:choices]} as the same token.",
            hint="Use a model that knows capital letters.",
        )
    return np.array(letters, dtype=np.int64)


def _padded(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    made = np.full((len(rows), max(map(len, rows))), PADDING, dtype=np.int64)
    for place, row in zip(made, rows, strict=True):
        place[: len(row)] = row
    return made


def _digest(questions: Questions, *arrays: NDArray[Any]) -> str:
    digest = hashlib.sha256(questions.fingerprint.encode())
    for array in arrays:
        digest.update(str(array.shape).encode() + array.tobytes())
    return digest.hexdigest()[:16]


def model_folder(model: PretrainedSettings, execution: Execution) -> Path:
    """Return the model's folder: in the data folder or the recipe's, or else by its own path."""
    homes = (execution.data_folder, execution.recipe_folder)
    inner = [home / model.folder for home in homes if home is not None]
    return next((folder for folder in inner if folder.is_dir()), Path(model.folder))


def read_frozen(
    model: PretrainedSettings, execution: Execution, *, precision: str
) -> tuple[FrozenModel, str]:
    """Read a pretrained causal language model in two parts, and the digest of its weights.

    Raises:
        InvalidInput: The folder cannot be read, or the device is not there.
        UnsupportedModel: It is no causal language model, or does more than body and head do.
        MissingExtra: transformers is not installed.
    """
    from remnant.integrations.pretrained import read_config, read_model

    folder = model_folder(model, execution)
    if read_config(folder).is_encoder_decoder:
        raise UnsupportedModel(
            f"folder={str(folder)!r} holds an encoder-decoder.",
            hint="Name a causal language model.",
        )
    whole = read_model(
        folder,
        kind="AutoModelForCausalLM",
        device=execution.device,
        dtype=dtype_of(precision) or torch.float32,
    ).eval()
    inner, head = whole.base_model, whole.get_output_embeddings()

    body = _Body(inner)
    _check_parts(whole, body, head, str(folder))
    return FrozenModel(whole, body, head), _weights_digest(whole)


class _Body:
    """Maps tokens to the states of a model's last layer; it can be sent to another process."""

    def __init__(self, inner: nn.Module) -> None:
        self._inner = inner

    def __call__(self, tokens: Tensor) -> Tensor:
        states: Tensor = self._inner(input_ids=tokens, use_cache=False).last_hidden_state
        return states


def _check_parts(whole: nn.Module, body: Any, head: Any, folder: str) -> None:
    """Refuse a model whose logits are not its head's, or whose states look ahead."""
    device = next(whole.parameters()).device
    tokens = torch.arange(3, 11, device=device)[None]
    with torch.no_grad():
        expected = whole(input_ids=tokens, use_cache=False).logits[:, -3]
        logits = None if head is None else head(body(tokens[:, :-2])[:, -1])
    largest = _TOLERANCE * expected.abs().max()
    if logits is None or not bool((logits - expected).abs().max() <= largest):
        raise UnsupportedModel(
            f"folder={folder!r}: the model's logits are not those of its head on causal states.",
            hint="Use a decoder such as Llama, Mistral, Gemma or SmolLM.",
        )


def _weights_digest(model: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(model.named_parameters(), key=lambda item: item[0]):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def answer_signals(logits: Tensor, answers: Tensor, letters: Tensor) -> Tensor:
    """Return the loss, the log-odds and the logit gap of answers, for every member.

    The loss is what is trained: the cross-entropy of the answer's token over the whole vocabulary.
    Log-odds and gap hold the answer's letter against the letters of the other choices only, so that
    a model's habit of writing something else altogether is in the loss and not in them.

    Args:
        logits: ``(members, n, vocabulary)``.
        answers: Places of the answers among the letters, ``(n,)``.
        letters: Tokens.

    Returns:
        float64 ``(members, 3, n)``, in the order of ``MARGINS``.
    """
    logits = logits.double()
    place = answers.expand(len(logits), -1)[..., None]
    own = logits.gather(-1, letters[place])
    others = logits.scatter(-1, letters[place], -torch.inf).logsumexp(-1)
    chosen = logits[..., letters]
    rivals = chosen.scatter(-1, place, -torch.inf)
    true = own[..., 0]
    losses = nn.functional.softplus(others - true)
    return torch.stack([losses, true - rivals.logsumexp(-1), true - rivals.amax(-1)], dim=1)


def ask_all(
    models: AdapterPopulation,
    questions: TokenisedQuestions,
    *,
    layers: Sequence[str] = (),
    members: slice = slice(None),
) -> tuple[NDArray[np.float64], dict[str, Tensor]]:
    """Return signals of all examples ``(members, 3, n)`` and states ``(members, n, width)``.

    States are float32 and stay on the models' device.

    Raises:
        InvalidInput: Training diverged.
    """
    answers = torch.from_numpy(questions.answers).to(models.device)
    letters = torch.from_numpy(questions.letters).to(models.device)
    signals: NDArray[np.float64] | None = None
    states: dict[str, Tensor] = {}
    for rows, logits, hidden in models.ask(questions.tokens, layers=layers, members=members):
        if signals is None:
            signals = np.empty((len(logits), 3, len(questions)))
        here = torch.from_numpy(rows).to(models.device)
        signals[..., rows] = answer_signals(logits, answers[here], letters).cpu().numpy()
        for name, tensor in hidden.items():
            if name not in states:
                shape = len(logits), len(questions), tensor.shape[-1]
                states[name] = torch.empty(shape, device=models.device)
            states[name][:, here] = tensor.float()
    if signals is None or not bool((abs(signals) < 1e30).all()):
        raise InvalidInput(
            "Training diverged: a member's logits are not finite.",
            hint="Lower training.options.lr, or clip the gradient.",
        )
    return signals, states


def held_out_accuracy(
    models: AdapterPopulation, questions: TokenisedQuestions
) -> NDArray[np.float64]:
    """Return each member's share of right letters on questions that no model sees."""
    letters = torch.from_numpy(questions.letters).to(models.device)
    right = np.empty((len(models), len(questions.test_answers)))
    for rows, logits, _ in models.ask(questions.test_tokens):
        right[:, rows] = (
            logits[..., letters].argmax(-1).cpu().numpy() == questions.test_answers[rows]
        )
    accuracy: NDArray[np.float64] = right.mean(axis=1)
    return accuracy


@dataclass(frozen=True, eq=False, kw_only=True)
class MultipleChoiceTask(PredictionTask):
    """Multiple-choice questions, and the training of adapters on them."""

    LEAST_BLOCK: ClassVar[int] = 50  # adapters are small: fewer leave a GPU idle
    TIMED_STEPS: ClassVar[int] = 4

    study: TextPredictionStudy
    questions: TokenisedQuestions
    frozen: FrozenModel

    def on(self, execution: Execution) -> MultipleChoiceTask:
        """Return the same task where a job runs, the frozen model on that device."""
        if execution.device != self.execution.device:
            self.frozen.module.to(execution.device)  # a worker's own copy
        return dataclasses.replace(self, execution=execution)

    def population(self, seeds: list[int], precision: str) -> AdapterPopulation:
        """Return untrained adapters, one for each seed."""
        return AdapterPopulation(
            self.frozen, seeds, lora=self.study.lora.made(), precision=precision
        )

    def fit(
        self, members: range | tuple[int, ...], *, plan: ShadowPlan | None = None, **choices: Any
    ) -> tuple[Fit, AdapterPopulation]:
        """Train these members of ``plan``, by default the study's."""
        study, plan = self.study, plan or self.study.plan
        probes = choices.pop("probes", None) or {}
        seeds = plan.seeds
        population = self.population([seeds[member] for member in members], plan.precision)
        fit = population.fit(
            self.questions.tokens,
            self.questions.wanted,
            plan.schedule(examples=len(self.questions), members=members),
            optimizer=study.training.optimizer,
            learning_rate=study.training.rate(),
            clip=study.training.clip,
            probes={name: probe.read for name, probe in probes.items()},
            probe_steps={name: probe.steps for name, probe in probes.items()},
            **choices,
            **study.training.options,
        )
        return fit, population

    def signals(self, models: AdapterPopulation) -> Floats:
        """Return loss, log-odds and logit gap of all questions, shape ``(members, 3, n)``."""
        return ask_all(models, self.questions)[0]

    def first_losses(self, models: AdapterPopulation, own: Bools) -> Floats:
        """Return the first member's losses on all questions."""
        signals, _ = ask_all(models, self.questions, members=slice(1))
        return np.asarray(signals[0, LOSS])

    def look(self, models: AdapterPopulation, seen: Bools) -> Iterator[tuple[Floats, list[Tensor]]]:
        """Yield each target's signals of all questions, and the states of its own ones."""
        layers = self.study.predict.layers
        signals, states = ask_all(models, self.questions, layers=layers)
        for target, own in enumerate(seen):
            rows = torch.from_numpy(own).to(models.device)
            yield signals[target], [states[layer][target, rows] for layer in layers]

    def trained_targets(
        self, record: JobOutput, fit: Fit, models: AdapterPopulation, own: Bools
    ) -> Floats:
        """Record the accuracy and the dropped questions; return the losses of all questions."""
        record.put_array("targets.test_accuracy", held_out_accuracy(models, self.questions))
        record.update_execution({"questions.left_out": self.questions.left_out})
        return fit.probes["trace"]

    def useful(self, record: Record) -> ClassifierTask:
        """Return how useful the targets are."""
        answers = self.questions.test_answers
        return ClassifierTask(
            test_accuracy=float(record.array("targets.test_accuracy").mean()),
            test_examples=len(answers),
            majority=float(np.bincount(answers).max() / len(answers)),
        )

    def memory(self, fit: Fit) -> int:
        """Return the bytes of a training."""
        return fit.memory

    def reading_seconds(self, models: AdapterPopulation, clock: StepClock) -> float:
        """Return how long it takes to ask about all questions, timed on a few of them."""
        few = dataclasses.replace(
            self.questions, tokens=self.questions.tokens[:8], answers=self.questions.answers[:8]
        )
        clock(0)
        ask_all(models, few)
        clock(0)
        return float((clock.times[-1] - clock.times[-2]) * len(self.questions) / len(few))
