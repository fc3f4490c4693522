"""The normal laws of projections, class by class, that PSMI's kernels work with."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

Terms = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class ClassLaws:
    """The normal law of every class along every direction of a block.

    Attributes:
        log_shares: Log of each class's share of the samples, shape ``(classes,)``.
        means, deviations: Shape ``(classes, directions)``.
        origins: Where the projections of each class's samples are counted from; a mean rounded to
            the type of the samples.
    """

    log_shares: Tensor
    means: Tensor
    deviations: Tensor
    origins: Tensor

    def at(self, rows: slice) -> ClassLaws:
        """The laws along some of the directions."""
        cut = (self.means[:, rows], self.deviations[:, rows], self.origins[:, rows])
        return ClassLaws(self.log_shares, *cut)

    def around(self, own: int, work: torch.dtype) -> list[Terms]:
        """What a projection p of class ``own`` is turned into under each class.

        Returns:
            Scale, shift and level of each class, the own one last, such that the log of the ratio
            of class c to the own one is (scale p + shift)²_own - (scale p + shift)²_c + level_c.
        """
        scale = math.sqrt(0.5) / self.deviations
        shift = (self.origins[own] - self.means) * scale
        level = (self.log_shares - self.log_shares[own])[:, None] + torch.log(
            self.deviations[own] / self.deviations
        )
        rows = torch.stack([scale, shift, level], dim=1).to(work)
        terms = [(row[0], row[1], row[2]) for row in rows]
        return [*terms[:own], *terms[own + 1 :], terms[own]]
