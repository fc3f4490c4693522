"""A beam search through a model that scores whole texts only, such as a served one."""

from __future__ import annotations

import numpy as np

from remnant.canaries.template import Template
from remnant.errors import NotEnoughEvidence
from remnant.models.protocols import TextScorer
from remnant.progress import Progress
from remnant.search.extraction import Extraction

MOST_TEXTS = 100_000


def text_beam(
    model: TextScorer,
    template: Template,
    *,
    width: int,
    top: int = 1,
    progress: Progress | None = None,
) -> Extraction:
    """Fill the holes from left to right, and keep the ``width`` cheapest beginnings.

    After each hole, beginnings are compared by the cost of their whole text. A tokenizer may join
    characters across holes, so that a beginning's cost is no bound of its continuations' costs.
    Nothing is proven. The candidates' costs are of their whole texts.

    Args:
        model: Scores texts.
        template: Whose space is searched.
        width: Beginnings that are kept; 1 is greedy.
        top: How many secrets.
        progress: Called with ``"holes"``, how many are filled, and how many there are.

    Raises:
        NotEnoughEvidence: A hole with so many choices that there are over 100 000 texts.
    """
    beginnings, holes, nodes = [""], [slot.choices for slot in template.slots], 0
    costs = np.zeros(1)
    for number, choices in enumerate(holes, start=1):
        grown = list(dict.fromkeys(start + choice for start in beginnings for choice in choices))
        if len(grown) > MOST_TEXTS:
            raise NotEnoughEvidence(
                f"A hole has {len(choices)} choices, and {len(grown)} texts would have to be "
                f"scored; {MOST_TEXTS} are allowed.",
                hint="Use a narrower beam, or holes with fewer choices.",
            )
        last = number == len(holes)
        if len(choices) > 1 or last:
            ending = template.suffix if last else ""
            texts = [f"{template.prefix}{start}{ending}" for start in grown]
            scored = model.text_costs(prefix=template.prefix, texts=texts)
            nodes += scored.nodes
            order = np.argsort(scored.bits, kind="stable")[: top if last and width < top else width]
            grown, costs = [grown[i] for i in order], scored.bits[order]
        beginnings = grown
        if progress is not None:
            progress("holes", number, len(holes))
    pairs = sorted(zip(beginnings, costs.tolist(), strict=True), key=lambda pair: pair[1])
    return Extraction(
        candidates=pairs[:top],
        certified=False,
        nodes=nodes,
        bound=0.0,
        tolerance=0.0,
        space=template.space,
        method="greedy" if width == 1 else f"beam of {width}",
    )
