"""Which samples are predicted to be memorised, from one early look at one model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.prediction.hidden_states import read_hidden
from remnant.measures.prediction.mahalanobis import Mahalanobis, bearable_mahalanobis
from remnant.measures.prediction.protect_list import list_length, riskiest
from remnant.measures.prediction.psmi import Psmi, psmi
from remnant.measures.statistics.checks import check_share, read_floats

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

PREDICTORS = ("psmi", "loss", "logit_gap", "mahalanobis")


@dataclass(frozen=True, slots=True, eq=False)
class PredictedMemorisation:
    """How likely each sample is to be memorised, by several predictors, in the order given.

    Attributes:
        labels: Shape ``(n,)``.
        psmi: Of the samples that are not ``alone``, in their order.
        alone: True where a sample is the only one of its class and therefore has no PSMI.
        mahalanobis: Of all samples; None where there are too few, for ``no_mahalanobis``.
        no_mahalanobis: The reason; empty where there is a distance.
        losses, logit_gaps: As given; None where they were not.
    """

    labels: NDArray[Any]
    psmi: Psmi
    alone: Bools
    mahalanobis: Mahalanobis | None
    no_mahalanobis: str
    losses: Floats | None
    logit_gaps: Floats | None

    @property
    def n(self) -> int:
        """How many samples."""
        return self.labels.size

    def risk(self, by: str = "psmi") -> Floats:
        """Return the risk of each sample, higher = more likely memorised.

        Args:
            by: ``psmi``, ``loss``, ``logit_gap`` or ``mahalanobis``.

        Raises:
            InvalidInput: An unknown predictor, or one that was not measured.
            NotEnoughEvidence: PSMI, and a sample is alone in its class.
        """
        if by == "psmi" and self.alone.any():
            raise NotEnoughEvidence(
                f"sample {int(np.argmax(self.alone))} is alone in its class and has no PSMI.",
                hint="protect() lists such samples first.",
            )
        return self._risk(by)

    def protect(
        self, *, share: float | None = None, top: int | None = None, by: str = "psmi"
    ) -> NDArray[np.int64]:
        """Return the samples to protect, the riskiest first.

        Without ``share`` and ``top`` they are those with a PSMI at or under 0, the paper's rule.
        Samples that are alone in their class come first where ``by`` is PSMI.

        Args:
            share: The riskiest share; of samples that tie at the end as many as there is room
                for, taken in a random order that is fixed for each number of samples.
            top: The riskiest so many; of those that tie at the end the ones that come first.
            by: As for ``risk``.

        Guarantees:
            * A larger ``share`` or ``top`` lists the same samples and others after them.

        Raises:
            InvalidInput: An unknown predictor or one that was not measured, both ``share`` and
                ``top``, neither with another predictor than PSMI, values out of range.
        """
        faults: list[str] = []
        if share is not None and top is not None:
            faults.append("share and top are both given; it takes one")
        if share is not None:
            check_share("share", share, faults)
        whole = isinstance(top, (int, np.integer)) and not isinstance(top, bool)
        if top is not None and (not whole or not 1 <= top <= self.n):
            faults.append(f"top={top!r} is not a whole number from 1 to the {self.n} samples")
        if share is None and top is None and by != "psmi":
            faults.append(f"by={by!r} has no threshold of its own; it takes share or top")
        require(faults)
        order = self.order(by)
        if top is not None:
            return order[: int(top)]
        if share is not None:
            return riskiest(self._filled(by))[: list_length(float(share), self.n)]
        return order[: int(self.alone.sum()) + int(np.sum(self.psmi.values <= 0.0))]

    def order(self, by: str = "psmi") -> NDArray[np.int64]:
        """Return all samples, the riskiest first; of those that tie the ones that come first."""
        return np.argsort(-self._filled(by), kind="stable").astype(np.int64)

    def _filled(self, by: str) -> Floats:
        """Risks, infinite for samples that are alone: only their order is of account."""
        if by != "psmi" or not self.alone.any():
            return self._risk(by)
        filled = np.full(self.n, np.inf)
        filled[~self.alone] = self.psmi.risk
        return filled

    def _risk(self, by: str) -> Floats:
        if by not in PREDICTORS:
            raise InvalidInput(f"by={by!r} is not one of {', '.join(PREDICTORS)}.")
        if by == "mahalanobis" and self.mahalanobis is None:
            raise NotEnoughEvidence(f"by={by!r} was not measured: {self.no_mahalanobis}.")
        given = {
            "psmi": self.psmi.risk,
            "loss": self.losses,
            "logit_gap": None if self.logit_gaps is None else -self.logit_gaps,
            "mahalanobis": None if self.mahalanobis is None else self.mahalanobis.risk,
        }[by]
        if given is None:
            raise InvalidInput(f"by={by!r} was not measured.", hint="Give the model's logits too.")
        return given


def predicted_memorisation(
    *,
    hidden: ArrayLike,
    labels: ArrayLike,
    rng: np.random.Generator,
    losses: ArrayLike | None = None,
    logit_gaps: ArrayLike | None = None,
    directions: int = 2000,
    components: int = 500,
    list_alone: bool = False,
) -> PredictedMemorisation:
    """Predict which samples a model will memorise, from its outputs early in its training.

    PSMI is the paper's predictor (Dentan et al.): at or under 0 a sample's hidden state looks like
    another class than its label. The others cost nothing more. How many of the
    memorised samples a list misses is known only from a truth, such as LiRA's on shadow models
    (``prediction_quality``).

    The Mahalanobis distance takes as many components as the samples bear;
    ``mahalanobis.components`` says how many.

    Args:
        hidden: Hidden states, shape ``(n, d)``.
        labels: Shape ``(n,)``.
        rng: Draws PSMI's directions.
        losses: Of each sample in nats; may be left out.
        logit_gaps: The label's logit less the best other; may be left out.
        directions: Of PSMI.
        components: Of the Mahalanobis distance, at most.
        list_alone: Take samples that are alone in their class, and list them without a PSMI;
            otherwise they are an error.

    Guarantees:
        * The order of samples is of no account to the values; the result keeps it.

    Raises:
        InvalidInput: Arrays that do not fit, NaN, fewer than two classes of two samples.
        NotEnoughEvidence: A sample alone in its class, unless ``list_alone``.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> labels = np.repeat([0, 1], 100)
        >>> hidden = rng.normal(size=(200, 5)) + 3.0 * labels[:, None]
        >>> labels[[3, 150]] = [1, 0]  # wrong labels
        >>> prediction = predicted_memorisation(hidden=hidden, labels=labels, rng=rng)
        >>> sorted(prediction.protect(top=2).tolist()), prediction.mahalanobis.components
        ([3, 150], 5)
    """
    faults: list[str] = []
    read = {
        name: None if array is None else read_floats(name, array, 1, faults)
        for name, array in (("losses", losses), ("logit_gaps", logit_gaps))
    }
    given = read_hidden(hidden, labels, faults=faults)
    n = given.order.size
    for name, array in read.items():
        if array is not None and array.size != n:
            faults.append(f"{name} has {array.size} entries for {n} rows of hidden")
    require(faults)
    named = np.asarray(labels)
    alone = np.zeros(n, dtype=np.bool_)
    if list_alone:
        alone[given.order[given.edges[:-1][given.counts == 1]]] = True
    if alone.all():
        raise NotEnoughEvidence("every sample is alone in its class.")
    kept = given.hidden[~alone] if alone.any() else given.hidden
    information = psmi(hidden=kept, labels=named[~alone], directions=directions, rng=rng)
    distance, reason = _distances(given.hidden, components)
    return PredictedMemorisation(
        labels=named,
        psmi=information,
        alone=alone,
        mahalanobis=distance,
        no_mahalanobis=reason,
        losses=read["losses"],
        logit_gaps=read["logit_gaps"],
    )


def _distances(hidden: NDArray[Any], components: int) -> tuple[Mahalanobis | None, str]:
    """The distances, or the reason for none."""
    try:
        return bearable_mahalanobis(hidden=hidden, components=components), ""
    except NotEnoughEvidence as fault:
        return None, fault.message.rstrip(".")
