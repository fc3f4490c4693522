"""What ``remnant feature`` looks at: a classifier, a twin, and images of their shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.classifier_options import NAMES, naming_classifier
from remnant.cli.naming import naming
from remnant.errors import InvalidInput, NotEnoughEvidence

if TYPE_CHECKING:
    from torch import Tensor, nn

    from remnant.integrations.classifiers.pictures import Pictures
    from remnant.integrations.classifiers.probabilities import Probabilities

LEAST_IMAGES = 20
_WHOLE = ".pt2"
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedModel:
    """The options that say what to look at."""

    model: Path
    twin: Path | None
    architecture: str | None
    options: Mapping[str, Any]
    maker: str | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    outputs: str
    images: Path
    shape: Shape | None
    count: int
    label: int | None
    label_images: Path | None
    task_images: Path | None
    device: str
    seed: int

    def faults(self) -> list[str]:
        """Return what does not go together."""
        faults = []
        if (self.mean is None) != (self.std is None):
            faults.append("--mean and --std belong together")
        if self.architecture is not None and self.maker is not None:
            faults.append("--architecture and --maker are both given; it takes one")
        if self.label_images is not None and self.label is None:
            faults.append("--label-images holds images of one class; it takes --label")
        if self.twin is not None and self.twin.resolve() == self.model.resolve():
            faults.append("--twin and --model are the same")
        return faults


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What was found.

    Attributes:
        model, twin: Functions from images to probabilities; the twin is None where none was given.
        images: ``(n, c, h, w)``, in [0, 1].
        labelled: Images of the class asked about; None where none was.
        task: Images with labels of several classes, which show whether the model learnt its task;
            None where no labels are known.
    """

    model: Probabilities
    twin: Probabilities | None
    images: Tensor
    labelled: Tensor | None
    task: Pictures | None


def read_shape(
    context: click.Context, parameter: click.Parameter, given: str | None
) -> Shape | None:
    """Read ``--shape``.

    Raises:
        InvalidInput: It is not of the form CHANNELSxHEIGHTxWIDTH.
    """
    if given is None:
        return None
    found = re.fullmatch(r"(\d+)x(\d+)x(\d+)", given)
    shape = tuple(map(int, found.groups())) if found else (0,)
    if 0 in shape:
        raise InvalidInput(
            f"--shape {given} is not of the form CHANNELSxHEIGHTxWIDTH.",
            hint="Such as 1x28x28 or 3x224x224.",
        )
    return shape


def look(asked: AskedModel) -> Look:
    """Read the model, the twin and the images.

    Raises:
        InvalidInput, NotEnoughEvidence, PlanError, UnsupportedModel, MissingExtra: In the words of
            the options.
    """
    first = _whole(asked, "--model", asked.model)
    shape = _agreed(asked, first)
    pictures = _pictures(asked, "--images", asked.images, shape, None)
    images, own = pictures.images, pictures.shape
    labelled = None
    if asked.label is not None:
        labelled = _labelled(asked, own).images
    task = _task(asked, pictures, own)
    model = first or _weights(asked, "--model", asked.model, own)
    twin = None
    if asked.twin is not None:
        whole = _whole(asked, "--twin", asked.twin)
        twin = whole or _weights(asked, "--twin", asked.twin, own)
    return Look(
        model.asking(asked),
        None if twin is None else twin.asking(asked),
        images.to(asked.device),
        None if labelled is None else labelled.to(asked.device),
        None if task is None else replace(task, images=task.images.to(asked.device)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Opened:
    """A model, and what its file says about images."""

    module: nn.Module
    shape: Shape | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None

    def asking(self, asked: AskedModel) -> Probabilities:
        from remnant.integrations.classifiers.probabilities import Probabilities

        mean, std = (self.mean, self.std) if asked.mean is None else (asked.mean, asked.std)
        with naming(outputs="--outputs", **NAMES):
            return Probabilities(
                self.module,
                mean=mean,
                std=std,
                outputs=asked.outputs,  # type: ignore[arg-type]
            )


def _whole(asked: AskedModel, option: str, path: Path) -> _Opened | None:
    """Open what needs no images to be opened: a program or a folder; None for weights."""
    if path.is_dir():
        from remnant.integrations.classifiers.pretrained_images import load_image_model

        idle = {"--architecture": asked.architecture, "--maker": asked.maker}
        for name, value in idle.items():
            if value is not None:
                raise InvalidInput(
                    f"{name} is not for a Hugging Face folder.", hint="Leave it out."
                )
        with naming_classifier(option, path):
            found = load_image_model(path, device=asked.device)
        return _Opened(found.model, found.shape, found.mean, found.std)
    if path.suffix != _WHOLE:
        return None
    kinds = {one.suffix for one in (asked.model, asked.twin) if one is not None}
    named = asked if kinds == {_WHOLE} else replace(asked, architecture=None, maker=None)
    with naming_classifier(option, path):
        module = _load(named, path, ())
    return _Opened(module, getattr(module, "sample_shape", None), None, None)


def _weights(asked: AskedModel, option: str, path: Path, shape: Shape) -> _Opened:
    with naming_classifier(option, path):
        return _Opened(_load(asked, path, shape), None, None, None)


def _load(asked: AskedModel, path: Path, shape: Shape) -> nn.Module:
    from remnant.integrations.classifiers import load_classifier

    return load_classifier(
        path,
        shape=shape,
        classes=2,  # to begin with: the weights have the last word
        architecture=asked.architecture,
        options=asked.options,
        maker=asked.maker,
        device=asked.device,
    )


def _agreed(asked: AskedModel, opened: _Opened | None) -> Shape | None:
    """The shape of images: what the model says, or else what the user does."""
    said = None if opened is None else opened.shape
    if said is not None and len(said) != 3:
        raise InvalidInput(f"--model {asked.model} takes samples of shape {said}, and no images.")
    if said is not None and asked.shape not in (None, said):
        raise InvalidInput(
            f"--shape {_times(asked.shape)} is given, and --model takes {_times(said)}.",
            hint="Leave it out.",
        )
    return said or asked.shape


def _times(shape: Shape | None) -> str:
    return "x".join(map(str, shape or ()))


def _pictures(
    asked: AskedModel, option: str, path: Path, shape: Shape | None, label: int | None
) -> Pictures:
    import numpy as np

    from remnant.integrations.classifiers.pictures import read_pictures

    with naming(option, path, shape="--shape"):
        found = read_pictures(
            path,
            shape=shape,
            count=asked.count,
            label=label,
            rng=np.random.default_rng([asked.seed, 0]),
        )
    if label is not None and found.labels is None and path == asked.images:
        raise InvalidInput(
            f"--label {label}: which images of {path} have it is not known.",
            hint="Give images of that class as --label-images, or an .npz with images and labels.",
        )
    if len(found.images) < LEAST_IMAGES:
        of = "" if label is None else f" of label {label}"
        raise NotEnoughEvidence(
            f"{option} {path} has {len(found.images)} image(s){of}, too few for an interval; it "
            f"takes at least {LEAST_IMAGES}.",
            hint="Any images will do: they need not be training data."
            if label is None
            else "Give more images of that class as --label-images.",
        )
    return found


def _labelled(asked: AskedModel, shape: Shape) -> Pictures:
    if asked.label_images is not None:
        return _pictures(asked, "--label-images", asked.label_images, shape, asked.label)
    return _pictures(asked, "--images", asked.images, shape, asked.label)


def _task(asked: AskedModel, images: Pictures, shape: Shape) -> Pictures | None:
    """``--task-images``, or else ``--images`` where they have labels."""
    if asked.task_images is None:
        return None if images.labels is None else images
    found = _pictures(asked, "--task-images", asked.task_images, shape, None)
    if found.labels is None:
        raise InvalidInput(
            f"--task-images {asked.task_images} has no labels.",
            hint="Give an .npz file with images and labels.",
        )
    return found
