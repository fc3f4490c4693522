"""Watches the batches that a model is trained on, and notes which canaries are in them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.integrations.training.recognition import TokenMatcher

_CONTEXTS = 64  # rows whose tokens before a canary are kept
_LONGEST = 4096  # tokens of such a context


class Watcher:
    """Counts the canaries in every batch that goes through a model with gradients.

    Tokens on a GPU are copied in the background and looked at when the copy is there, so that the
    training does not wait.

    Args:
        matcher: Knows the tokens of the canaries and controls.

    Attributes:
        step: The update that the next batches belong to, counted from 0.
        uses: How often each text was in a batch, by ``(step, text)``.
        rows: How many rows of batches were looked at.
        contexts: Tokens before a canary in its row, of the first rows seen.
    """

    def __init__(self, matcher: TokenMatcher) -> None:
        self.step = 0
        self.uses: Counter[tuple[int, int]] = Counter()
        self.rows = 0
        self.contexts: list[tuple[int, ...]] = []
        self._matcher = matcher
        self._waiting: deque[tuple[int, Tensor, Any]] = deque()
        self._handle: Any = None

    def attach(self, model: nn.Module) -> None:
        """Begin to watch a model; a second call does nothing."""
        if self._handle is None:
            self._handle = model.register_forward_pre_hook(
                torch.compiler.disable(self._before_forward), with_kwargs=True, prepend=True
            )

    def detach(self) -> None:
        """Stop watching, and look at what is left."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        self._look(all_of_it=True)

    def note(self, ids: Any) -> None:
        """Look at the tokens of one batch, ``(rows, tokens)``."""
        if not isinstance(ids, Tensor):
            ids = torch.as_tensor(np.asarray(ids))
        if ids.ndim and not ids.is_floating_point():
            self.keep(ids.detach())

    def keep(self, kept: Tensor) -> None:
        """Look at what a batch is recognised by, at once or when its copy is there."""
        self._look()
        copied: Any = None
        if kept.is_cuda:
            kept = kept.to("cpu", non_blocking=True)
            copied = torch.cuda.Event()
            copied.record()
        self._waiting.append((self.step, kept, copied))
        if copied is None:
            self._look()

    def counts(self) -> NDArray[np.int64]:
        """Return ``(uses, 3)`` rows of step, text and count, sorted."""
        self._look(all_of_it=True)
        rows = [(step, text, count) for (step, text), count in sorted(self.uses.items())]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)

    @property
    def recognised(self) -> int:
        """How many texts were recognised in all batches so far."""
        return sum(self.uses.values())

    def _before_forward(self, module: nn.Module, args: Any, named: Mapping[str, Any]) -> None:
        if not torch.is_grad_enabled():
            return  # the model is evaluated; a model in evaluation mode can be trained
        batch = self._batch(args, named)
        if isinstance(batch, Tensor):
            self.note(batch)

    def _batch(self, args: Any, named: Mapping[str, Any]) -> Any:
        """What a batch is recognised by, of the arguments of the model's forward."""
        ids = named.get("input_ids", args[0] if args else None)
        return ids.get("input_ids") if isinstance(ids, Mapping) else ids

    def _look(self, *, all_of_it: bool = False) -> None:
        while self._waiting:
            step, ids, copied = self._waiting[0]
            if copied is not None:
                if not all_of_it and not copied.query():
                    return
                copied.synchronize()
            self._waiting.popleft()
            self._count(step, ids)

    def _count(self, step: int, ids: Tensor) -> None:
        """Count the texts in the tokens of one batch; Poisson batches may be empty."""
        if not ids.numel():
            return
        rows = ids.reshape(-1, ids.shape[-1]).numpy()
        self.rows += len(rows)
        for sighting in self._matcher.find(list(rows)):
            self.uses[step, sighting.canary] += 1
            if len(self.contexts) < _CONTEXTS:
                before = rows[sighting.row][max(0, sighting.start - _LONGEST) : sighting.start]
                self.contexts.append(tuple(before.tolist()))
