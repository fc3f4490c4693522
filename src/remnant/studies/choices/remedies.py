"""The kinds of remedies, and the fields of each kind."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any

from remnant.plans.bounds import Count, NotNegative, Positive, Share, at_least, number, one_of
from remnant.studies.shared.settings import Section

# Fields of each kind: those that a recipe must give, and those that it may give.
_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "training": ((), ()),
    "weight-decay": (("strength",), ()),
    "dropout": (("rate",), ()),
    "clipping": (("clip",), ()),
    "early-stopping": ((), ("every", "patience")),
    "private": (("clip", "noise"), ("delta", "batches")),
    "levels": ((), ("levels",)),
    "int8": ((), ()),
    "pruning": (("share",), ()),
    "deduplication": ((), ()),
    "sanitising": ((), ("by", "share")),
    "order": (("steps",), ()),
    "fine-tuning": (("steps",), ("lr", "relearn")),
    "ascent": (("steps",), ("lr", "relearn")),
}
KINDS = tuple(_FIELDS)
AFTER = ("levels", "int8", "pruning", "fine-tuning", "ascent")
"""Kinds that change models that were trained as planned, and train none from the start."""
BATCHES = ("poisson", "shuffled")
DETECTORS = ("scan", "disagreement")
_DEFAULTS: dict[str, Any] = {
    "patience": 3,
    "delta": 1e-5,
    "batches": "poisson",
    "levels": 256,
    "relearn": 0,
    "by": "scan",
    "share": 0.02,
}
Rate = Annotated[float, number("above 0 and at most 0.9", exclusiveMinimum=0, maximum=0.9)]


@dataclass(frozen=True, kw_only=True)
class RemedySettings(Section, name="remedy"):
    """What a remedy does.

    Attributes:
        kind: ``training``: only the fields of the recipe that the remedy changes.
            ``weight-decay``, ``dropout``, ``clipping`` (of each batch's gradient),
            ``early-stopping`` (the weights with the lowest validation loss), ``private``
            (differential privacy: clipped gradients of single examples, and noise). After
            training: ``levels`` (weights rounded to a few levels), ``int8``, ``pruning``. In the
            data: ``deduplication`` (each canary once), ``sanitising`` (suspected secrets are
            replaced or left out). ``order``: canaries first, then clean steps. Afterwards:
            ``fine-tuning`` on clean text, ``ascent`` (gradient ascent on the planted windows).
        strength: Of ``weight-decay``: the optimizer's ``weight_decay``.
        rate: Of ``dropout``: the share of units that is dropped.
        clip: Of ``clipping``: largest gradient norm of a batch; of ``private``: of an example.
        noise: Of ``private``: standard deviation of the noise, in units of ``clip``.
        delta: Of ``private``: the delta at which epsilon is computed. Not set: 1e-5.
        batches: Of ``private``: ``poisson`` batches, for which epsilon is known, or ``shuffled``
            ones, for which none is given. Not set: ``poisson``.
        every: Of ``early-stopping``: steps between two looks at the validation loss. Not set: one
            epoch.
        patience: Of ``early-stopping``: looks without improvement after which to stop. Not set: 3.
        levels: Of ``levels``: values that a tensor's weights may have, evenly spaced from its
            smallest to its largest. Not set: 256.
        share: Of ``pruning``: share of the weights, the smallest by magnitude, that become 0. Of
            ``sanitising`` by disagreement: share of the windows that is left out. Not set: 0.02.
        by: Of ``sanitising``: ``scan`` replaces what ``remnant scan`` detects; ``disagreement``
            leaves out the windows that two models, trained on disjoint halves, disagree on most.
            Not set: ``scan``.
        steps: Of ``order``: clean steps at the end; of ``fine-tuning`` and ``ascent``: steps.
        lr: Of ``fine-tuning`` and ``ascent``: learning rate. Not set: that of the training.
        relearn: Of ``fine-tuning`` and ``ascent``: clean steps afterwards, after which exposure is
            measured again. Not set: 0.
    """

    kind: Annotated[str, one_of(KINDS)]
    strength: Positive | None = None
    rate: Rate | None = None
    clip: Positive | None = None
    noise: NotNegative | None = None
    delta: Share | None = None
    batches: Annotated[str, one_of(BATCHES)] | None = None
    every: Count | None = None
    patience: Count | None = None
    levels: Annotated[int, at_least(2)] | None = None
    share: Share | None = None
    by: Annotated[str, one_of(DETECTORS)] | None = None
    steps: Count | None = None
    lr: Positive | None = None
    relearn: Annotated[int, at_least(0)] | None = None

    def _contradictions(self) -> list[str]:
        needed, allowed = _FIELDS[self.kind]
        faults = [
            f"remedy.{name} is needed with kind = {self.kind!r}"
            for name in needed
            if getattr(self, name) is None
        ]
        given = [name for name in self.given() if name not in (*needed, *allowed)]
        if self.kind == "sanitising" and self.share is not None and self.value("by") == "scan":
            faults.append("remedy.share needs by = 'disagreement'")
        return faults + [f"remedy.{name} does not belong to kind = {self.kind!r}" for name in given]

    def given(self) -> dict[str, Any]:
        """Return the fields of the kind that the recipe gives, without the kind."""
        return {
            known.name: value
            for known in dataclasses.fields(self)
            if known.name != "kind" and (value := getattr(self, known.name)) is not None
        }

    def value(self, name: str) -> Any:
        """Return a field, or what holds where it is not set."""
        own = getattr(self, name)
        return _DEFAULTS.get(name) if own is None else own

    @property
    def afterwards(self) -> bool:
        """Whether it changes models that were trained as planned."""
        return self.kind in AFTER
