"""What ``remnant predict`` looks at: a model and its samples, or arrays of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remnant.cli.classifier_options import NAMES, naming_classifier
from remnant.cli.naming import naming
from remnant.errors import InvalidInput, RemnantError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn

    Open = Callable[[str, Path], nn.Module]

BATCH, TEXT_BATCH = 256, 16
_LINES = (".jsonl", ".ndjson")
_OF_A_MODEL = (
    *("start", "architecture", "options", "maker", "data", "data_set", "mean", "std"),
    *("layers", "batch"),
)
_SPELT = {"options": "--option", "data_set": "--data-set", "layers": "--layer"}


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One look at the samples.

    Attributes:
        labels: One a sample.
        hidden: Hidden states of each layer, the first of which decides.
        layers: Their names.
        predicted, losses, logit_gaps: What the model says; None where it was not asked.
        start_losses: Of the model as it was at the beginning; None where that is not known.
        name: The name of a label.
    """

    labels: NDArray[Any]
    hidden: tuple[NDArray[Any], ...]
    layers: tuple[str, ...]
    predicted: NDArray[Any] | None
    losses: NDArray[Any] | None
    logit_gaps: NDArray[Any] | None
    start_losses: NDArray[Any] | None
    name: Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options that say what to look at."""

    model: Path | None
    start: Path | None
    architecture: str | None
    options: Mapping[str, Any]
    maker: str | None
    data: Path | None
    data_set: str | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    hidden: Path | None
    labels: Path | None
    logits: Path | None
    layers: tuple[str, ...]
    batch: int | None
    device: str

    def faults(self) -> list[str]:
        """Return what does not go together."""
        arrays = {"--hidden": self.hidden, "--labels": self.labels, "--logits": self.logits}
        given = [option for option, path in arrays.items() if path is not None]
        if self.model is None:
            if self.hidden is None or self.labels is None:
                return ["--model with --data, or --hidden with --labels, is needed"]
            return [
                f"{_SPELT.get(name, '--' + name)} is for --model"
                for name in _OF_A_MODEL
                if getattr(self, name) not in (None, (), {})
            ]
        faults = [f"{option} is for arrays without --model" for option in given]
        if self.data is None and self.data_set is None:
            faults.append("--data or --data-set is needed")
        if (self.mean is None) != (self.std is None):
            faults.append("--mean and --std belong together")
        if self.architecture is not None and self.maker is not None:
            faults.append("--architecture and --maker are both given; it takes one")
        return faults


def look(asked: Asked) -> Look:
    """Ask the model once about every sample, or read what somebody else asked it.

    Raises:
        InvalidInput, NotEnoughEvidence, PlanError, UnsupportedModel, MissingExtra: In the words of
            the options.
    """
    if asked.model is None:
        return _arrays(asked)
    data = asked.data
    if asked.data_set is None and data is not None and data.suffix in _LINES:
        return _texts(asked, asked.model, data)
    return _samples(asked, asked.model)


def _arrays(asked: Asked) -> Look:
    import numpy as np

    from remnant.integrations.classifiers.samples import read_array
    from remnant.measures import cross_entropy, logit_gap

    read = {}
    for name in ("hidden", "labels", "logits"):
        path = getattr(asked, name)
        if path is not None:
            with naming(f"--{name}", path):
                read[name] = read_array(path)
    labels, logits = read["labels"], read.get("logits")
    predicted = losses = gaps = None
    if logits is not None:
        with naming(labels="--labels", logits="--logits"):
            losses, gaps = cross_entropy(logits, labels), logit_gap(logits, labels)
        predicted = np.asarray(logits).argmax(axis=-1)
    return Look(
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


def _texts(asked: Asked, folder: Path, data: Path) -> Look:
    from remnant.integrations.classifiers import load_text_model, read_text_rows, text_samples

    idle = {
        "--architecture": asked.architecture,
        "--maker": asked.maker,
        "--mean": asked.mean,
        "--option": asked.options or None,
    }
    for option, value in idle.items():
        if value is not None:
            raise InvalidInput(f"{option} is not for texts.", hint="Leave it out.")
    with naming("--data", data):
        rows = read_text_rows(data)
    with naming_classifier("--model", folder), naming("--data", data):
        samples = text_samples(folder, rows)

    def load(option: str, path: Path) -> nn.Module:
        with naming_classifier(option, path):
            return load_text_model(path, rows, device=asked.device)

    return _asked(asked, samples.inputs, samples.labels, samples.name, load, TEXT_BATCH)


def _samples(asked: Asked, model: Path) -> Look:
    from remnant.integrations.classifiers import array_samples, load_classifier

    with naming("--data", asked.data, **NAMES):
        samples = array_samples(asked.data, data_set=asked.data_set, mean=asked.mean, std=asked.std)

    def load(option: str, path: Path) -> nn.Module:
        with naming_classifier(option, path):
            return load_classifier(
                path,
                shape=samples.shape,
                classes=samples.classes,
                architecture=asked.architecture,
                options=asked.options,
                maker=asked.maker,
                device=asked.device,
            )

    return _asked(asked, samples.inputs, samples.labels, _plain, load, BATCH)


def _asked(
    asked: Asked,
    inputs: Tensor | Mapping[str, Tensor],
    labels: NDArray[Any],
    name: Callable[[Any], Any],
    load: Open,
    batch: int,
) -> Look:
    import torch

    from remnant.integrations.classifiers.asking import ask

    if asked.model is None:
        raise InvalidInput("--model is needed.")
    many = batch if asked.batch is None else asked.batch
    wanted = torch.from_numpy(labels)
    module = load("--model", asked.model)
    with naming(**NAMES):
        found = ask(module, inputs, wanted, layers=asked.layers or ("last",), batch=many)
    del module
    start = None
    if asked.start is not None:
        if asked.start.resolve() == asked.model.resolve():
            raise InvalidInput(
                "--start and --model are the same, so that nothing can have dropped.",
                hint="Pass the model as it was before training.",
            )
        try:
            with naming(**NAMES):
                start = ask(load("--start", asked.start), inputs, wanted, layers=(), batch=many)
        except RemnantError as fault:
            if not fault.message.startswith("--start"):
                fault.message = f"--start {asked.start}: {fault.message}"
            raise
    return Look(
        labels=labels,
        hidden=tuple(states.numpy() for states in found.hidden),
        layers=found.layers,
        predicted=found.predicted.numpy(),
        losses=found.losses.numpy(),
        logit_gaps=found.logit_gaps.numpy(),
        start_losses=None if start is None else start.losses.numpy(),
        name=name,
    )
