"""What is scored in a model in training: canaries, controls and references, as rows or images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.canaries import CanarySet, OwnImages, OwnTexts
from remnant.integrations.tokenizer import HuggingFaceTokenizer
from remnant.integrations.training.image_canaries import score_images
from remnant.integrations.training.preflight import common_start, encode_text
from remnant.integrations.training.processes import Processes
from remnant.integrations.training.recognition import TokenMatcher, common_ending
from remnant.integrations.training.scoring import ScoredRow, Shortcuts, score_rows
from remnant.integrations.training.watching import Watcher

Floats = NDArray[np.float64]
Forward = Callable[[nn.Module, Tensor], Any]
Context = tuple[int, ...]


class TextCosts:
    """The costs of canaries, controls and references after the context that their rows have.

    Args:
        canaries: Canaries and controls.
        references: Texts that canaries of a template are ranked among.
        tokenizer: That the training data is made with.
        encoded: The tokens of each canary and control alone.
        matcher: Knows which of them are searched for.
        contexts: What comes before canaries in rows of the data; empty where that is not known yet.
        forward: Returns logits, for models of an unusual kind.

    Attributes:
        rows: The tokens that are scored: canaries, controls, references.
        context: Tokens before each of them.
        first: The first token of every canary where ``context`` holds it already, else None.
    """

    def __init__(
        self,
        canaries: CanarySet | OwnTexts,
        references: Sequence[str],
        *,
        tokenizer: Any,
        encoded: list[list[int]],
        matcher: TokenMatcher,
        contexts: Sequence[Context],
        forward: Forward | None,
    ) -> None:
        self.tokenizer, self.forward = tokenizer, forward
        self.rows: list[ScoredRow] = []
        self.context: Context = ()
        self.first: int | None = None
        self._canaries, self._references = canaries, references
        self._encoded, self._matcher = encoded, matcher
        self._shortcuts = Shortcuts()
        self._placed = bool(contexts)
        self._place(contexts)

    def place(self, watcher: Watcher, *, at_least: int) -> None:
        """Lay out the rows as batches have them, where the data could not be looked at before.

        Args:
            watcher: Has seen batches.
            at_least: Canaries that must have been seen, so that what comes before all of them is
                not what comes before one of them by chance.
        """
        if self._placed:
            return
        seen = Processes.now().gathered(list(watcher.contexts))
        contexts = [context for each in seen for context in each]
        if len(contexts) >= at_least:
            self._place(contexts)
            self._placed = True

    def of(self, model: nn.Module, *, anew: bool = False) -> Floats:
        """Return the cost of each row in bits; of texts of one's own, in bits a token.

        Args:
            model: A model that all processes have.
            anew: Whether it is another model than before, so that shortcuts are tried out again.
        """
        costs = score_rows(
            model,
            self.rows,
            vocabulary=vocabulary_of(model, self.tokenizer),
            processes=Processes.now(),
            forward=self.forward,
            shortcuts=Shortcuts() if anew else self._shortcuts,
        )
        if isinstance(self._canaries, CanarySet):
            return costs
        tokens = np.array([len(row.ids) - row.start for row in self.rows], dtype=np.float64)
        return np.divide(costs, tokens)

    def _place(self, contexts: Sequence[Context]) -> None:
        skip, encoded = self._matcher.skipped, self._encoded
        if isinstance(self._canaries, OwnTexts):
            # What is left out is the first token of each text, and not a part of the context.
            ending = common_ending([before[: len(before) - skip] for before in contexts])
            self.context = ending if contexts else _leading(self.tokenizer)
            if not skip:  # something must come before the first token that is scored
                self.context = self.context or _document_start(self.tokenizer)
            self.rows = [
                ScoredRow((*self.context, *ids), max(1, len(self.context) + skip))
                for ids in encoded
            ]
            return
        self.first = encoded[0][0] if skip else None
        cores = [*self._matcher.cores]
        cores += [tuple(encode_text(self.tokenizer, text)[skip:]) for text in self._references]
        context = (
            common_ending(contexts) if contexts else (*_leading(self.tokenizer), *encoded[0][:skip])
        )
        self.context = context or _document_start(self.tokenizer)
        start = len(self.context) + common_start(cores)
        self.rows = [ScoredRow((*self.context, *core), max(1, start)) for core in cores]


class ImageCosts:
    """Minus the log-odds of the label of each canary and control.

    Args:
        images: Canaries and controls.
        forward: Returns logits, for models of an unusual kind.
    """

    context: Context = ()

    def __init__(self, images: OwnImages, *, forward: Forward | None) -> None:
        self._images, self._forward = images, forward

    def place(self, watcher: Watcher, *, at_least: int) -> None:
        """Do nothing: images have no context."""

    def of(self, model: nn.Module, *, anew: bool = False) -> Floats:
        """Return the cost of each image, in nats."""
        return score_images(model, self._images, processes=Processes.now(), forward=self._forward)


def _leading(tokenizer: Any) -> Context:
    """The special tokens that the tokenizer puts before a text, where it says so."""
    return HuggingFaceTokenizer(tokenizer).leading if callable(tokenizer) else ()


def _document_start(tokenizer: Any) -> Context:
    for name in ("bos_token_id", "eos_token_id"):
        token = getattr(tokenizer, name, None)
        if token is not None:
            return (int(token),)
    return ()


def vocabulary_of(model: nn.Module, tokenizer: Any) -> int:
    """Return how many tokens the model knows."""
    size = getattr(getattr(model, "config", None), "vocab_size", None)
    if isinstance(size, int):
        return size
    try:
        return len(tokenizer)
    except TypeError:
        return 1 << 16
