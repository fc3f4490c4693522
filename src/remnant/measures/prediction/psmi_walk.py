"""One walk over all directions, block by block: what PSMI holds in memory, and in which precision.

Projections of float32 samples are made in float32. Where that would not do (numbers that cannot be
squared, a direction along which hardly anything varies), the walk gives up and is done again in
float64, on samples scaled by the largest of them. Samples stay on the device that holds them, and
it is asked for numbers before the first block and after the last one, not in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import InvalidInput
from remnant.measures.prediction.hidden_states import HiddenStates
from remnant.measures.prediction.psmi_kernel import (
    Rooms,
    add_log_excess,
    class_variances,
    empty,
    positive_deviations,
)
from remnant.measures.prediction.psmi_laws import ClassLaws
from remnant.measures.prediction.psmi_samples import Samples, samples_of

Floats = NDArray[np.float64]

# Bytes of projections held at once (on a CPU, what its last cache can hold), with limits to the
# directions of a block.
HELD = {"cpu": 20 << 20, "cuda": 128 << 20}
FEWEST, MOST = 64, 4096
# float32 has seven digits: where a direction shows so little of the variance, they are too few.
FAINT = 1e-8
# Between these limits float32 numbers can be squared and added up.
SMALL, LARGE = 1e-12, 1e12
# A sample so many times further out than the fitted ones has no log ratio that can be squared.
FAR = 1e60
ROUNDING = 8.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """What is known before a walk, as float64 tensors where the fitted samples are.

    Attributes:
        shares: Each class's share, shape ``(classes,)``.
        centres: Each class's mean, shape ``(classes, d)``.
        directions: Unit vectors, shape ``(K, d)``.
        ddof: Of the variances.
    """

    shares: Tensor
    centres: Tensor
    directions: Tensor
    ddof: int

    def to(self, device: torch.device) -> Basis:
        """The same on a device."""
        moved = (self.shares.to(device), self.centres.to(device), self.directions.to(device))
        return Basis(*moved, self.ddof)


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """What a walk over the fitted samples finds.

    Attributes:
        deviations: Of each class along each direction, shape ``(classes, K)``.
        reach: The largest distance of a feature from its class's mean, or of that from the mean of
            all.
        precision: The type of the projections.
    """

    deviations: Tensor
    reach: float
    precision: torch.dtype


@dataclass(frozen=True, slots=True, eq=False)
class LogExcess:
    """Sums over directions for each sample, sorted by class: see ``add_log_excess``.

    Attributes:
        total, squares: Shape ``(n,)``.
        precision: "float32" or "float64".
    """

    total: Floats
    squares: Floats
    precision: str


def fit_walk(
    given: HiddenStates, directions: Floats | Tensor, *, ddof: int, scored: bool
) -> tuple[Basis, Spread, LogExcess]:
    """The spread of these samples' classes, and how the samples themselves stand in it.

    Args:
        given: Samples; no class is empty.
        directions: Shape ``(K, d)``, none zero, of any length that can be squared; changed.
        ddof: Of the variances.
        scored: Whether to say how the samples stand; else the sums are zero.

    Raises:
        InvalidInput: Nothing varies, at all or along a direction.
    """
    with _exactly():
        samples = samples_of(given)
        along = torch.as_tensor(directions).to(samples.device)
        along.div_(torch.linalg.vector_norm(along, dim=1, keepdim=True))
        shares = torch.from_numpy(given.counts / given.order.size).to(samples.device)
        basis = Basis(shares, samples.centres(), along, ddof)
        edges = given.edges.tolist()
        fitted = _fit(samples, edges, basis, torch.float32, scored) if samples.narrow else None
        fitted = fitted or _fit(samples, edges, basis, torch.float64, scored)
    if fitted is None:
        raise InvalidInput("hidden cannot be projected: its features are not numbers of any use.")
    return basis, *fitted


def evaluation_walk(given: HiddenStates, basis: Basis, spread: Spread) -> LogExcess:
    """How samples stand in a spread that was fitted to others.

    Raises:
        InvalidInput: A feature too far out to be squared.
    """
    with _exactly():
        samples = samples_of(given)
        basis = basis.to(samples.device)
        work = spread.precision if samples.narrow else torch.float64
        residuals = samples.residuals(basis.centres, work)
        out = _farthest(residuals)
        if work == torch.float32 and not out < LARGE:
            work = torch.float64
            residuals = samples.residuals(basis.centres, work)
            out = _farthest(residuals)
        if not out <= FAR * spread.reach:
            raise InvalidInput(
                "hidden holds features more than 1e60 times further from their class's mean than "
                "any that was fitted."
            )
        scale = 1.0 if work == torch.float32 else spread.reach
        if scale != 1.0:
            residuals.div_(scale)
        deviations = spread.deviations.to(samples.device) / scale
        laws = replace(_laws(basis, work, scale), deviations=deviations)
        edges = given.edges.tolist()
        return _rescored(_scores(residuals, edges, basis, laws), residuals, edges, basis, laws)


def _fit(
    samples: Samples, edges: list[int], basis: Basis, work: torch.dtype, scored: bool
) -> tuple[Spread, LogExcess] | None:
    """None where ``work`` does not do."""
    narrow = work == torch.float32
    residuals = samples.residuals(basis.centres, work)
    reach = _farthest(residuals, basis.centres - basis.shares @ basis.centres)
    if narrow and not SMALL < reach < LARGE:
        return None
    if reach == 0.0:
        raise InvalidInput("hidden is the same for all samples: nothing varies.")
    scale = 1.0 if narrow else reach
    if scale != 1.0:
        residuals.div_(scale)
    laws = _laws(basis, work, scale)
    within = torch.empty_like(laws.means[0])
    sums = basis.shares.new_zeros((2, residuals.shape[0]))
    for rows, projected, rooms in _projections(residuals, basis.directions):
        here = laws.at(rows)
        apart = here.means - here.origins
        variances = class_variances(projected, edges, rooms, apart=apart, ddof=basis.ddof)
        within[rows] = basis.shares @ variances
        here.deviations.copy_(positive_deviations(variances, basis.shares, here.means))
        if scored:
            add_log_excess(projected, edges, here, rooms, sums=sums)
    if narrow:
        if not bool(within.min() > torch.clamp(FAINT * within.max(), min=SMALL**2)):
            return None
    else:
        noise = ROUNDING * (basis.directions.abs() @ samples.largest()) / scale
        _check_sight(within, laws.means, noise)
    spread = Spread(laws.deviations * scale, reach, work)
    return spread, _rescored(sums, residuals, edges, basis, laws)


def _laws(basis: Basis, work: torch.dtype, scale: float) -> ClassLaws:
    """Where the classes lie along the directions, counted from the mean of all; not how wide."""
    middle = basis.shares @ basis.centres
    places = torch.cat([basis.centres, basis.centres.to(work).to(torch.float64)])
    means, origins = (((places - middle) / scale) @ basis.directions.T).chunk(2)
    return ClassLaws(basis.shares.log(), means, torch.empty_like(means), origins)


def _projections(residuals: Tensor, directions: Tensor) -> Iterator[tuple[slice, Tensor, Rooms]]:
    """Blocks of projections ``(samples, directions)`` in the same memory, and rooms for pieces."""
    samples, number = residuals.shape[0], directions.shape[0]
    held = HELD[residuals.device.type] // (residuals.element_size() * samples)
    size = min(max(held // FEWEST * FEWEST, FEWEST), MOST, number)
    memory = empty((samples, size), residuals).view(-1)
    rooms = Rooms(samples, size, residuals)
    for first in range(0, number, size):
        rows = slice(first, min(first + size, number))
        block = directions[rows].to(residuals.dtype)
        projected = memory[: samples * len(block)].view(samples, len(block))
        yield rows, torch.mm(residuals, block.T, out=projected), rooms


def _scores(residuals: Tensor, edges: list[int], basis: Basis, laws: ClassLaws) -> Tensor:
    sums = basis.shares.new_zeros((2, residuals.shape[0]))
    for rows, projected, rooms in _projections(residuals, basis.directions):
        add_log_excess(projected, edges, laws.at(rows), rooms, sums=sums)
    return sums


def _rescored(
    sums: Tensor, residuals: Tensor, edges: list[int], basis: Basis, laws: ClassLaws
) -> LogExcess:
    """The sums; samples whose log ratios passed the range of float32 are scored in float64."""
    wild = torch.nonzero(~torch.isfinite(sums).all(dim=0)).flatten()
    if residuals.dtype == torch.float32 and wild.numel():
        some = torch.searchsorted(wild, torch.tensor(edges, device=wild.device)).tolist()
        sums[:, wild] = _scores(residuals[wild].to(torch.float64), some, basis, laws)
    total, squares = sums.cpu().numpy()
    return LogExcess(total, squares, str(residuals.dtype).removeprefix("torch."))


def _farthest(*apart: Tensor) -> float:
    """The largest magnitude."""
    ends = [end.to(torch.float64) for tensor in apart for end in torch.aminmax(tensor)]
    return float(torch.stack(ends).abs().max())


def _check_sight(within: Tensor, means: Tensor, noise: Tensor) -> None:
    ranges = means.amax(dim=0) - means.amin(dim=0)
    blind = torch.nonzero(torch.sqrt(within + ranges**2) <= noise).flatten()
    if blind.numel():
        raise InvalidInput(
            f"hidden does not vary at all along {blind.numel()} direction(s), the first of them "
            f"number {int(blind[0])}."
        )


@contextmanager
def _exactly() -> Iterator[None]:
    """float32 products with all their digits, whatever the caller has switched on; no gradients."""
    backends: Any = torch.backends
    products = [backends.cuda.matmul, backends.mkldnn.matmul]
    before = [backend.fp32_precision for backend in products]
    try:
        for backend in products:
            backend.fp32_precision = "ieee"
        with (
            torch.no_grad(),
            torch.autocast("cpu", enabled=False),
            torch.autocast("cuda", enabled=False),
        ):
            yield
    finally:
        for backend, precision in zip(products, before, strict=True):
            backend.fp32_precision = precision
