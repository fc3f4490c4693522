"""The models and images that the options of ``remnant feature`` name."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remnant.cli.options.classifier_options import (
    NAMES,
    NetworkOptions,
    naming_classifier,
    refuse_unused,
)
from remnant.cli.options.naming import naming
from remnant.errors import InvalidInput, NotEnoughEvidence

if TYPE_CHECKING:
    from torch import nn

    from remnant.integrations.classifiers.pictures import Pictures
    from remnant.integrations.classifiers.probabilities import Probabilities
    from remnant.studies.features.audit_inputs import AuditInputs

LEAST_IMAGES = 20
_WHOLE = ".pt2"
_EXPORTED = (
    "an exported program cannot be trained. Give the model's weights (.safetensors) as --model, "
    "with --architecture or --maker"
)
_CLASSES = 2  # a start: the weights decide
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions(NetworkOptions):
    """The options that name models and images."""

    model: Path
    twin: Path | None
    outputs: str
    images: Path
    shape: Shape | None
    count: int
    label: int | None
    label_images: Path | None
    task_images: Path | None
    seed: int

    def faults(self) -> list[str]:
        """Return which options contradict each other or are missing."""
        faults = self.network_faults()
        if self.label_images is not None and self.label is None:
            faults.append("--label-images needs --label")
        if self.twin is not None and self.twin.resolve() == self.model.resolve():
            faults.append("--twin and --model are the same")
        return faults

    def check_extras(self) -> None:
        """Refuse folders whose libraries are not installed, before anything is read.

        Raises:
            MissingExtra: Pillow for a folder of pictures, transformers for a folder of a model.
        """
        if any(path is not None and path.is_dir() for path in (self.model, self.twin)):
            from remnant.integrations.pretrained import library

            library()
        images = (self.images, self.label_images, self.task_images)
        if any(path is not None and path.is_dir() for path in images):
            from remnant.integrations.classifiers.pictures import pillow

            pillow()

    def file_names(self) -> dict[str, str]:
        """Names of the files, by option."""
        paths = {name: getattr(self, name) for name in ("model", "images", "twin", "task_images")}
        return {option: path.name for option, path in paths.items() if path is not None}


def read_shape(
    context: click.Context, parameter: click.Parameter, given: str | None
) -> Shape | None:
    """Read ``--shape``.

    Raises:
        InvalidInput: It is not of the form CHANNELSxHEIGHTxWIDTH.
    """
    if given is None:
        return None
    match = re.fullmatch(r"(\d+)x(\d+)x(\d+)", given)
    shape = tuple(map(int, match.groups())) if match else (0,)
    if 0 in shape:
        raise InvalidInput(
            f"--shape {given} is not of the form CHANNELSxHEIGHTxWIDTH.",
            hint="Such as 1x28x28 or 3x224x224.",
        )
    return shape


def read_inputs(options: ModelOptions) -> AuditInputs:
    """Read the model, the twin and the images.

    Raises:
        InvalidInput, NotEnoughEvidence, PlanError, UnsupportedModel, MissingExtra: They name
            options.
    """
    from remnant.integrations.trained_copy import trained_copies
    from remnant.studies.features.audit_inputs import AuditInputs

    first = _whole(options, "--model", options.model)
    shape = _agreed(options, first)
    pictures = _pictures(options, "--images", options.images, shape, None)
    images, own = pictures.images, pictures.shape
    labelled = None if options.label is None else _labelled(options, own).images
    task = _task(options, pictures, own)
    model = first or _weights(options, "--model", options.model, own)
    twin = None
    if options.twin is not None:
        whole = _whole(options, "--twin", options.twin)
        twin = whole or _weights(options, "--twin", options.twin, own)
    ask = model.probabilities(options)
    exported = options.model.suffix == _WHOLE
    return AuditInputs(
        ask,
        None if twin is None else twin.probabilities(options),
        images.to(options.device),
        None if labelled is None else labelled.to(options.device),
        None if task is None else replace(task, images=task.images.to(options.device)),
        copies=None if exported else partial(trained_copies, ask),
        untrainable=_EXPORTED,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Opened:
    """A model, and what its file says about images."""

    module: nn.Module
    shape: Shape | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None

    def probabilities(self, options: ModelOptions) -> Probabilities:
        from remnant.integrations.classifiers.probabilities import Probabilities

        mean, std = (self.mean, self.std) if options.mean is None else (options.mean, options.std)
        with naming(outputs="--outputs", **NAMES):
            return Probabilities(
                self.module,
                mean=mean,
                std=std,
                outputs=options.outputs,  # type: ignore[arg-type]
            )


def _whole(options: ModelOptions, option: str, path: Path) -> _Opened | None:
    """Open what needs no images to be opened: a program or a folder; None for weights."""
    if path.is_dir():
        from remnant.integrations.classifiers.pretrained_images import load_image_model

        refuse_unused(
            "a Hugging Face folder", architecture=options.architecture, maker=options.maker
        )
        with naming_classifier(option, path):
            loaded = load_image_model(path, device=options.device)
        return _Opened(loaded.model, loaded.shape, loaded.mean, loaded.std)
    if path.suffix != _WHOLE:
        return None
    kinds = {model.suffix for model in (options.model, options.twin) if model is not None}
    named = options if kinds == {_WHOLE} else replace(options, architecture=None, maker=None)
    with naming_classifier(option, path):
        module = named.load(path, shape=(), classes=_CLASSES)
    return _Opened(module, getattr(module, "sample_shape", None), None, None)


def _weights(options: ModelOptions, option: str, path: Path, shape: Shape) -> _Opened:
    with naming_classifier(option, path):
        module = options.load(path, shape=shape, classes=_CLASSES)
    return _Opened(module, None, None, None)


def _agreed(options: ModelOptions, opened: _Opened | None) -> Shape | None:
    """The shape of images: the model's, or else that of ``--shape``."""
    said = None if opened is None else opened.shape
    if said is not None and len(said) != 3:
        raise InvalidInput(f"--model {options.model} takes samples of shape {said}, not images.")
    if said is not None and options.shape not in (None, said):
        raise InvalidInput(
            f"--shape {_times(options.shape)} is given, and --model takes {_times(said)}.",
            hint="Leave it out.",
        )
    return said or options.shape


def _times(shape: Shape | None) -> str:
    return "x".join(map(str, shape or ()))


def _pictures(
    options: ModelOptions, option: str, path: Path, shape: Shape | None, label: int | None
) -> Pictures:
    import numpy as np

    from remnant.integrations.classifiers.pictures import read_pictures

    with naming(option, path, shape="--shape"):
        pictures = read_pictures(
            path,
            shape=shape,
            count=options.count,
            label=label,
            rng=np.random.default_rng([options.seed, 0]),
        )
    if label is not None and pictures.labels is None and path == options.images:
        raise InvalidInput(
            f"--label {label}: the images of {path} have no labels.",
            hint="Give images of that class as --label-images, or an .npz with images and labels.",
        )
    if len(pictures.images) < LEAST_IMAGES:
        of = "" if label is None else f" of label {label}"
        raise NotEnoughEvidence(
            f"{option} {path} has {len(pictures.images)} image(s){of}, too few for an interval; it "
            f"takes at least {LEAST_IMAGES}.",
            hint="Any images will do: they need not be training data."
            if label is None
            else "Give more images of that class as --label-images.",
        )
    return pictures


def _labelled(options: ModelOptions, shape: Shape) -> Pictures:
    if options.label_images is not None:
        return _pictures(options, "--label-images", options.label_images, shape, options.label)
    return _pictures(options, "--images", options.images, shape, options.label)


def _task(options: ModelOptions, images: Pictures, shape: Shape) -> Pictures | None:
    """``--task-images``, or else ``--images`` where they have labels."""
    if options.task_images is None:
        return None if images.labels is None else images
    task = _pictures(options, "--task-images", options.task_images, shape, None)
    if task.labels is None:
        raise InvalidInput(
            f"--task-images {options.task_images} has no labels.",
            hint="Give an .npz file with images and labels.",
        )
    return task
