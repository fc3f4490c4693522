"""Texts of one's own as canaries: some are planted, others are held out as controls."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.canaries.dealing import deal
from remnant.canaries.template import Canary
from remnant.canaries.whole_file import writing_whole
from remnant.errors import InvalidInput, require

KIND = "remnant own texts"
_OWNER_ONLY = 0o600


@dataclass(frozen=True, kw_only=True, repr=False)
class OwnTexts:
    """Texts that are planted, and texts drawn the same way that never are.

    They come from no template, so the whole text is the secret, and there is no space of secrets to
    rank them in.

    Attributes:
        canaries: What is planted.
        repeats: How often each is planted, in the same order.
        controls: Never planted.
        seed: What they were dealt with.
        drawn: True where the controls were drawn at random from the texts; False where they were
            given apart, so that nothing guarantees that they are like the others.

    Guarantees:
        * ``repr`` shows no text.
    """

    canaries: tuple[Canary, ...]
    repeats: tuple[int, ...]
    controls: tuple[Canary, ...]
    seed: int
    drawn: bool

    def __repr__(self) -> str:
        return (
            f"OwnTexts(canaries=<{len(self.canaries)} redacted>, "
            f"controls=<{len(self.controls)} redacted>)"
        )

    @property
    def copies(self) -> NDArray[np.int64]:
        """The canary of each copy to be planted: 0 as often as it is planted, then 1, and so on."""
        return np.repeat(np.arange(len(self.canaries), dtype=np.int64), self.repeats)

    @property
    def fingerprint(self) -> str:
        """A digest (SHA-256) of texts, repeats, controls and seed."""
        digest = hashlib.sha256(str(self.seed).encode())
        for row in self._rows():
            digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
        return digest.hexdigest()

    def write(self, path: Path) -> None:
        """Write all texts as JSON lines, after a header; only the owner may read the file.

        Raises:
            InvalidInput: It cannot be written.
        """
        header = {"kind": KIND, "version": 1, "seed": self.seed, "controls_drawn": self.drawn}
        with writing_whole(path, mode=_OWNER_ONLY) as file:
            for line in (header, *self._rows()):
                file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")

    def _rows(self) -> Iterator[dict[str, Any]]:
        for canary, often in zip(self.canaries, self.repeats, strict=True):
            yield {"text": canary.text, "repeats": often}
        for control in self.controls:
            yield {"text": control.text, "repeats": 0}


def deal_texts(
    texts: Sequence[str],
    *,
    controls: int | Sequence[str],
    repeats: Sequence[int],
    seed: int,
) -> OwnTexts:
    """Deal texts at random to controls and to numbers of repeats.

    Args:
        texts: All different, and none a part of another.
        controls: How many of ``texts`` are held out, drawn at random; or texts of their own, which
            must be drawn the same way as ``texts``.
        repeats: How often texts are planted; each number gets equally many of them, or one more.
        seed: Deals the texts.

    Raises:
        InvalidInput: Something is no text, is empty, comes twice or is a part of another text; or
            a number is not a whole one in its range. No text is quoted.
        NotEnoughEvidence: There are fewer than 10 controls, or fewer than 4 texts for a number of
            repeats: no attack could be shown to work.

    Example:
        >>> texts = [f"note {i} of mine" for i in range(10, 50)]
        >>> dealt = deal_texts(texts, controls=20, repeats=(1, 8), seed=0)
        >>> dealt.repeats.count(1), dealt.repeats.count(8), len(dealt.controls)
        (10, 10, 20)
    """
    given = [] if isinstance(controls, int) else list(controls)
    _check_texts([*texts, *given], planted=len(texts))
    drawn = isinstance(controls, int)
    dealt = deal(
        len(texts),
        controls=controls if isinstance(controls, int) else 0,
        repeats=repeats,
        seed=seed,
        given=len(given),
    )
    aside = [texts[i] for i in dealt.held_out] if drawn else given
    return OwnTexts(
        canaries=tuple(Canary(texts[number], texts[number]) for number in dealt.planted),
        repeats=dealt.repeats,
        controls=tuple(Canary(text, text) for text in aside),
        seed=int(seed),
        drawn=drawn,
    )


def _check_texts(texts: Sequence[Any], *, planted: int) -> None:
    """Refuse what is no text, is empty, comes twice or is a part of another."""

    def name(at: int) -> str:
        return f"canaries[{at}]" if at < planted else f"controls[{at - planted}]"

    faults = []
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            faults.append(f"{name(at)} is a {type(text).__name__}, not a text")
        elif not text.strip():
            faults.append(f"{name(at)} is empty")
    require(faults)
    whole = "\0".join(texts)
    repeated = [at for at, text in enumerate(texts) if whole.find(text, whole.find(text) + 1) >= 0]
    if repeated:
        raise InvalidInput(
            f"{len(repeated)} of {len(texts)} texts come twice or are a part of another text, the "
            f"first is {name(repeated[0])}: in a batch they could not be distinguished.",
            hint="Remove duplicates.",
        )
