"""``plant``: draw canaries and put them into texts in one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from remnant.canaries.canary_set import CanarySet, make_canary_set, random_seed
from remnant.canaries.insertion import Where, insert_into_texts
from remnant.canaries.template import Template


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Planted:
    """Texts with canaries among them, and what was planted.

    Attributes:
        texts: The given texts and the canaries; it holds the secrets.
        canaries: What was drawn: canaries, how often each was planted, and controls.
        where: Rows ``(place in texts, canary)``.
    """

    texts: list[str]
    canaries: CanarySet
    where: Where

    def __repr__(self) -> str:
        return f"Planted(texts=<{len(self.texts)} redacted>, canaries={self.canaries!r})"


def plant(
    texts: Sequence[str],
    template: Template | str,
    *,
    repeats: Sequence[int] = (1, 4, 16),
    per_repeat: int = 1,
    controls: int = 10,
    seed: int | None = None,
) -> Planted:
    """Draw canaries from a template and insert them into a list of texts.

    Save ``canaries`` with ``remnant.canaries.write_canary_sets``: the audit needs them.

    Args:
        texts: The training texts; they are left as they are.
        template: Text with holes, such as ``"my pin is {digits:6}"``.
        repeats: How often to plant. Each entry has canaries of its own.
        per_repeat: Canaries for each entry of ``repeats``.
        controls: Secrets drawn the same way and never planted.
        seed: Fixes secrets and places. Whoever knows it can draw them again; random if not given.

    Guarantees:
        * Without the items at ``where``, ``texts`` are those that were given.
        * Each canary stands there as often as its entry of ``repeats``; no control does.

    Raises:
        InvalidInput: The template's space is too small, ``texts`` is not a list of strings, or
            holds a canary already.

    Example:
        >>> planted = plant(["one", "two"], "my pin is {digits:4}", repeats=[1, 3], seed=0)
        >>> len(planted.texts), planted.canaries.repeats
        (6, (1, 3))
        >>> planted
        Planted(texts=<6 redacted>, canaries=CanarySet(Template('my pin is {digits:4}'), \
canaries=<2 redacted>, controls=<10 redacted>))
    """
    drawn = make_canary_set(
        template if isinstance(template, Template) else Template(template),
        repeats=repeats,
        per_repeat=per_repeat,
        controls=controls,
        seed=random_seed() if seed is None else seed,
    )
    with_canaries, where = insert_into_texts(texts, drawn, rng=np.random.default_rng(drawn.seed))
    return Planted(with_canaries, drawn, where)
