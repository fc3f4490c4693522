"""``audit_images``: can an image classifier's training images be distinguished from others?"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.data.labelled import normalised
from remnant.errors import InvalidInput
from remnant.integrations.classifiers.class_folders import class_names, read_class_folder
from remnant.integrations.classifiers.opening import EXPORTED, load_classifier
from remnant.integrations.classifiers.pretrained_images import load_image_model
from remnant.integrations.classifiers.samples import array_samples
from remnant.integrations.membership.classifiers import (
    Classifier,
    LabelledRecords,
    audit_records,
    check_classifier_settings,
)
from remnant.integrations.membership.outcome import MembershipAudit
from remnant.measures import Success
from remnant.measures.membership.blind import (
    BlindBaseline,
    array_features,
    blind_classifier,
    with_labels,
)
from remnant.progress import Progress
from remnant.studies.membership.measure import Settings, check_counts
from remnant.studies.membership.result import RowCounts

BLIND = 2000  # records of a side that the blind baseline sees
_PROGRAM = (
    "an exported program cannot be trained; pass records that it is known to remember as the "
    "control (--control)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """How classifiers are read from files.

    Attributes:
        architecture, options, maker: Which network weights belong to; see ``load_classifier``.
        mean, std: By which images were normalised in training; None for what the model's folder
            says, or not at all.
        shape: Of an image, ``(channels, height, width)``; None for that of the images, or what the
            model says.
    """

    architecture: str | None = None
    options: Mapping[str, Any] | None = None
    maker: str | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    shape: tuple[int, ...] | None = None


def audit_images(
    model: str | Path,
    *,
    seen: str | Path,
    unseen: str | Path,
    reference_model: str | Path | None = None,
    rng: np.random.Generator,
    network: Network | None = None,
    limit: float | None = None,
    attack: str | None = None,
    success: Success = "auc",
    fpr: float = 0.1,
    confidence: float = 0.95,
    control: str | Path | None = None,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> MembershipAudit:
    """Audit a classifier of images, or of other arrays, with records that it was trained on.

    Records that are in both sets, and further copies within a set, are left out and counted.

    Args:
        model: A Hugging Face image classifier (a folder), weights (``.safetensors``) with
            ``network.architecture`` or ``network.maker``, or an exported program (``.pt2``).
        seen: Training images: a folder with one folder a class, or an ``.npz`` file with
            ``images`` or ``inputs``, and ``labels``.
        unseen: Images drawn from the same source and held out.
        reference_model: A classifier of the same classes that never saw the images, read the same
            way. A PASS needs one.
        rng: Draws resamples, folds and the records of the control.
        network: How the models are read; by default as their files say.
        limit: The largest success allowed; None judges nothing.
        attack, success, fpr, confidence: See ``audit_text_classifier``.
        control: Images that the model is known to have memorised. By default a copy of the model is
            trained on a few unseen ones, if a PASS depends on it; an exported program cannot be
            trained.
        device: Where models compute.
        progress: Called with the name of a stage, what is done, and of how much.

    Raises:
        InvalidInput: Images, labels, models or settings are not what they should be.
        NotEnoughEvidence: A side has fewer than 20 different images.
        MissingExtra: Pillow or transformers is not installed.

    Example:
        >>> from tempfile import mkdtemp
        >>> from safetensors.torch import save_file
        >>> from remnant.models import mlp1
        >>> folder, rng = Path(mkdtemp()), np.random.default_rng(0)
        >>> for side in ("seen", "unseen"):  # a model that was trained on neither
        ...     images = rng.random((60, 1, 8, 8), dtype=np.float32)
        ...     np.savez(folder / f"{side}.npz", images=images, labels=rng.integers(3, size=60))
        >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
        <...>
        >>> save_file(mlp1((1, 8, 8), 3).state_dict(), folder / "model.safetensors")
        >>> audit = audit_images(
        ...     folder / "model.safetensors",
        ...     seen=folder / "seen.npz",
        ...     unseen=folder / "unseen.npz",
        ...     network=Network(architecture="mlp1"),
        ...     limit=0.6,
        ...     rng=rng,
        ... )
        >>> audit.outcome
        'INCONCLUSIVE'
    """
    settings = Settings(
        attack=attack or ("loss" if reference_model is None else "ratio"),
        limit=limit,
        success=success,
        fpr=fpr,
        confidence=confidence,
    )
    check_classifier_settings(settings, has_reference=reference_model is not None, rng=rng)
    network = network or Network()
    opened = _open(Path(model), network, device)
    beside = None if reference_model is None else _open(Path(reference_model), network, device)
    paths = [Path(seen), Path(unseen), *([] if control is None else [Path(control)])]
    sides = _read(paths, opened, network)
    distinct = [_distinct(side) for side in sides]
    shared = distinct[0].keys() & distinct[1].keys()
    rows = [[row for key, row in of.items() if key not in shared] for of in distinct[:2]]
    check_counts(len(rows[0]), len(rows[1]))
    images = [side.part(chosen) for side, chosen in zip(sides[:2], rows, strict=True)] + sides[2:]
    records = [_records(side, opened, beside, network) for side in images]
    classes = 1 + max(int(side.labels.max()) for side in images)
    classifier = opened.classifier(images[0], classes)
    return audit_records(
        classifier,
        None if beside is None else beside.classifier(images[0], classes),
        seen=records[0],
        unseen=records[1],
        control=records[2] if len(records) > 2 else None,
        blind=_blind(images, rng),
        rows=RowCounts(
            seen=len(rows[0]),
            unseen=len(rows[1]),
            shared=len(shared),
            repeated_seen=len(sides[0].labels) - len(distinct[0]),
            repeated_unseen=len(sides[1].labels) - len(distinct[1]),
            short=0,
            cut=0,
            tokens=None,
        ),
        counts=(len(sides[0].labels), len(sides[1].labels)),
        settings=settings,
        rng=rng,
        progress=progress,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Images:
    """Images of one side before they are normalised, or other arrays.

    Attributes:
        inputs: ``(n, ...)``.
        labels: int64 ``(n,)``.
        places: Counted from 1, in the order of the file or of the paths.
    """

    inputs: Tensor
    labels: NDArray[np.int64]
    places: NDArray[np.int64]

    def part(self, rows: Sequence[int]) -> _Images:
        chosen = np.array(rows, dtype=np.int64)
        return _Images(
            self.inputs[torch.from_numpy(chosen)], self.labels[chosen], self.places[chosen]
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Opened:
    """A model, and what its files say about images.

    Attributes:
        load: Reads it, given the shape of a record and how many classes the data have.
        untrainable: See ``Classifier``.
        shape, mean, std: Of its folder; None where it does not say.
        labels: Names of its classes; None where it has none.
    """

    load: Callable[[tuple[int, ...], int], nn.Module]
    untrainable: str = ""
    shape: tuple[int, ...] | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    labels: Mapping[str, int] | None = None

    def classifier(self, images: _Images, classes: int) -> Classifier:
        module = self.load(tuple(images.inputs.shape[1:]), classes)
        return Classifier(module, self.untrainable)


def _open(path: Path, network: Network, device: str | torch.device) -> _Opened:
    if path.is_dir():
        if network.architecture is not None or network.maker is not None:
            raise InvalidInput(
                "architecture= and maker= are for weights, and the model is a folder.",
                hint="Leave them out.",
            )
        loaded = load_image_model(path, device=device)
        names = {str(name): int(at) for name, at in loaded.model.config.label2id.items()}  # type: ignore[union-attr, operator]
        return _Opened(
            lambda _shape, _classes: loaded.model,
            shape=loaded.shape,
            mean=loaded.mean,
            std=loaded.std,
            labels=names,
        )
    program = path.suffix == EXPORTED

    def load(shape: tuple[int, ...], classes: int) -> nn.Module:
        return load_classifier(
            path,
            shape=shape,
            classes=classes,
            architecture=None if program else network.architecture,
            options=None if program else network.options,
            maker=None if program else network.maker,
            device=device,
        )

    if not program:
        return _Opened(load)
    module = load((), 2)
    return _Opened(
        lambda _shape, _classes: module,
        untrainable=_PROGRAM,
        shape=getattr(module, "sample_shape", None),
    )


def _read(paths: Sequence[Path], opened: _Opened, network: Network) -> list[_Images]:
    """Read each side; folders of all sides number their classes together."""
    folders = [path for path in paths if path.is_dir()]
    numbers = class_names(folders, opened.labels) if folders else {}
    shape = opened.shape or network.shape
    sides = []
    for path in paths:
        if path.is_dir():
            read = read_class_folder(path, numbers, shape=shape)
            inputs, labels = read.images, read.labels
        else:
            if path.suffix != ".npz":
                raise InvalidInput(
                    f"{path} is neither a folder with one folder a class nor an .npz file.",
                    hint="The model classifies images or arrays; write them with numpy.savez(path, "
                    "images=images, labels=labels).",
                )
            samples = array_samples(path)
            inputs, labels = samples.inputs, samples.labels
        if labels is None:
            raise InvalidInput(f"{path} has no labels.")
        sides.append(_Images(inputs, labels, np.arange(1, len(labels) + 1)))
    shapes = {tuple(side.inputs.shape[1:]) for side in sides}
    if len(shapes) > 1:
        named = " and ".join("x".join(map(str, one)) for one in sorted(shapes))
        raise InvalidInput(
            f"The records of the sets have different shapes: {named}.",
            hint="Prepare both sets in the same way, or name the shape of images with --shape.",
        )
    return sides


def _records(
    images: _Images, opened: _Opened, beside: _Opened | None, network: Network
) -> LabelledRecords:
    """Images as the model and the reference model take them."""
    inputs = _normalised(images.inputs, opened, network)
    other = None
    if beside is not None and (beside.mean, beside.std) != (opened.mean, opened.std):
        other = _normalised(images.inputs, beside, network)
    return LabelledRecords(inputs, images.labels, images.places, other)


def _normalised(inputs: Tensor, opened: _Opened, network: Network) -> Tensor:
    mean, std = (network.mean, network.std) if network.mean else (opened.mean, opened.std)
    if mean is None or std is None:
        return inputs
    if inputs.ndim != 4:
        raise InvalidInput("mean and std are for images, and these are inputs of other kinds.")
    return torch.from_numpy(normalised(inputs.numpy(), mean, std))


def _distinct(images: _Images) -> dict[bytes, int]:
    """The first record of each content."""
    first: dict[bytes, int] = {}
    for row, array in enumerate(images.inputs.numpy()):
        digest = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).digest()
        first.setdefault(digest, row)
    return first


def _blind(images: Sequence[_Images], rng: np.random.Generator) -> BlindBaseline:
    """The blind baseline: it sees an image and its label."""
    parts = []
    for side in images[:2]:
        parts.append(side.part(np.sort(rng.permutation(len(side.labels))[:BLIND]).tolist()))
    arrays = np.concatenate([part.inputs.numpy() for part in parts]).astype(np.float32)
    labels = np.concatenate([part.labels for part in parts])
    features = with_labels(array_features(arrays), labels)
    return blind_classifier(features, len(parts[0].labels), rng=rng)
