"""The model and samples, or arrays, that the options of ``remnant predict`` name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remnant.cli.cost import announce_repeated
from remnant.cli.options.classifier_options import (
    NAMES,
    NetworkOptions,
    naming_classifier,
    refuse_unused,
)
from remnant.cli.options.declared import given
from remnant.cli.options.naming import blaming, naming
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from remnant.studies.prediction.early_measure import SampleAnswers

    Open = Callable[[str, Path], nn.Module]

BATCH, TEXT_BATCH = 256, 16
_LANGUAGE_MODELS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
_LINES = (".jsonl", ".ndjson")
_OF_A_MODEL = (
    *("start", "architecture", "options", "maker", "data", "data_set", "mean", "std"),
    *("layers", "batch"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions(NetworkOptions):
    """The options that name a model and samples, or arrays."""

    model: Path | None
    start: Path | None
    data: Path | None
    data_set: str | None
    hidden: Path | None
    labels: Path | None
    logits: Path | None
    layers: tuple[str, ...]
    batch: int | None

    def faults(self) -> list[str]:
        """Return which options contradict each other or are missing."""
        if self.model is None:
            if self.hidden is None or self.labels is None:
                return ["--model with --data, or --hidden with --labels, is needed"]
            of_a_model = {name: getattr(self, name) for name in _OF_A_MODEL}
            return [f"{option} is for --model" for option in given(of_a_model)]
        arrays = {"hidden": self.hidden, "labels": self.labels, "logits": self.logits}
        faults = [f"{option} is for arrays without --model" for option in given(arrays)]
        if self.data is None and self.data_set is None:
            faults.append("--data or --data-set is needed")
        return faults + self.network_faults()

    def inputs(self) -> list[Path]:
        """The files and folders that are read, which must not be overwritten."""
        paths = (self.model, self.data, self.hidden, self.labels, self.logits)
        return [path for path in paths if path is not None]


def read_answers(options: InputOptions) -> SampleAnswers:
    """Run the model once on every sample, or read arrays.

    Raises:
        InvalidInput, NotEnoughEvidence, PlanError, UnsupportedModel, MissingExtra: They name
            options.
    """
    if options.model is None:
        return _arrays(options)
    if any(path is not None and _is_hugging_face(path) for path in (options.model, options.start)):
        from remnant.integrations.pretrained import library

        library()  # a missing library is found before anything is read
    data = options.data
    if options.data_set is None and data is not None and data.suffix in _LINES:
        return _texts(options, options.model, data)
    return _samples(options, options.model)


def _is_hugging_face(path: Path) -> bool:
    return (path / "config.json").is_file()


def _arrays(options: InputOptions) -> SampleAnswers:
    import numpy as np

    from remnant.integrations.classifiers.samples import read_array
    from remnant.measures import cross_entropy, logit_gap
    from remnant.studies.prediction.early_measure import SampleAnswers

    read = {}
    for name in ("hidden", "labels", "logits"):
        path = getattr(options, name)
        if path is not None:
            with naming(f"--{name}", path):
                read[name] = read_array(path)
    labels, logits = read["labels"], read.get("logits")
    predicted = losses = gaps = None
    if logits is not None:
        with naming(labels="--labels", logits="--logits"):
            losses, gaps = cross_entropy(logits, labels), logit_gap(logits, labels)
        predicted = np.asarray(logits).argmax(axis=-1)
    return SampleAnswers(
        labels=labels,
        hidden=(read["hidden"],),
        layers=("--hidden",),
        predicted=predicted,
        losses=losses,
        logit_gaps=gaps,
        start_losses=None,
        name=_plain,
    )


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label


def _texts(options: InputOptions, folder: Path, data: Path) -> SampleAnswers:
    from remnant.integrations.classifiers import load_text_model, read_text_rows, text_samples

    refuse_unused(
        "texts",
        architecture=options.architecture,
        maker=options.maker,
        mean=options.mean,
        options=options.options,
    )
    try:
        with naming("--data", data):
            rows = read_text_rows(data)
    except InvalidInput:
        if data.is_file():
            _refuse_language_model(folder)
        raise
    if rows.fields[0] == "text":
        _refuse_language_model(folder)
    with naming_classifier("--model", folder), naming("--data", data):
        samples = text_samples(folder, rows)

    def load(option: str, path: Path) -> nn.Module:
        with naming_classifier(option, path):
            return load_text_model(path, rows, device=options.device)

    return _answers(options, folder, samples.inputs, samples.labels, samples.name, load, TEXT_BATCH)


def _refuse_language_model(folder: Path) -> None:
    """Refuse a language model where a classifier is needed."""
    from remnant.integrations.folder_checks import read_object

    config = folder / "config.json"
    names = read_object(config).get("architectures") if config.is_file() else None
    if isinstance(names, list) and any(str(name).endswith(_LANGUAGE_MODELS) for name in names):
        raise InvalidInput(
            f"--model {folder} is a language model, and predict takes classifiers.",
            hint="Use remnant exposure for canaries that were planted, or remnant scan for secrets "
            "in its text. Questions to a language model are lines with prompt and answer.",
        )


def _samples(options: InputOptions, model: Path) -> SampleAnswers:
    from remnant.integrations.classifiers import array_samples

    with naming("--data", options.data, **NAMES):
        samples = array_samples(
            options.data, data_set=options.data_set, mean=options.mean, std=options.std
        )

    def load(option: str, path: Path) -> nn.Module:
        with naming_classifier(option, path):
            return options.load(path, shape=samples.shape, classes=samples.classes)

    return _answers(options, model, samples.inputs, samples.labels, _plain, load, BATCH)


def _first(inputs: Tensor | Mapping[str, Tensor], many: int) -> Tensor | Mapping[str, Tensor]:
    """The first samples."""
    if isinstance(inputs, Mapping):
        return {name: values[:many] for name, values in inputs.items()}
    return inputs[:many]


def _answers(
    options: InputOptions,
    model: Path,
    inputs: Tensor | Mapping[str, Tensor],
    labels: NDArray[Any],
    name: Callable[[Any], Any],
    load: Open,
    batch: int,
) -> SampleAnswers:
    import torch

    from remnant.integrations.classifiers.asking import ask
    from remnant.studies.prediction.early_measure import SampleAnswers
    from remnant.studies.shared.wording import counted

    many = batch if options.batch is None else options.batch
    wanted = torch.from_numpy(labels)
    module = load("--model", model)
    layers = options.layers or ("last",)
    models = 1 if options.start is None else 2
    first = partial(ask, module, _first(inputs, many), wanted[:many], layers=layers, batch=many)
    announce_repeated(
        f"Asking {counted(models, 'model')} about {counted(len(labels), 'sample')}",
        first,
        times=models * max(1.0, len(labels) / many),
        cheaper="A GPU takes less (--device cuda).",
    )
    del first
    with naming(**NAMES):
        answers = ask(module, inputs, wanted, layers=layers, batch=many)
    del module
    start = None
    if options.start is not None:
        if options.start.resolve() == model.resolve():
            raise InvalidInput(
                "--start and --model are the same, so the loss cannot have dropped.",
                hint="Pass the model as it was before training.",
            )
        with blaming(f"--start {options.start}"), naming(**NAMES):
            start = ask(load("--start", options.start), inputs, wanted, layers=(), batch=many)
    return SampleAnswers(
        labels=labels,
        hidden=tuple(states.numpy() for states in answers.hidden),
        layers=answers.layers,
        predicted=answers.predicted.numpy(),
        losses=answers.losses.numpy(),
        logit_gaps=answers.logit_gaps.numpy(),
        start_losses=None if start is None else start.losses.numpy(),
        name=name,
    )
