"""Checks before the first step that the canaries are in the data and can be learnt.

A canary that was cut off, masked from the loss or filtered away cannot be memorised, and a low
exposure would prove nothing. The checks look at the rows as the training will see them: after
tokenising, packing and collation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import IterableDataset, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from remnant.canaries.canary_set import PlantedTexts
from remnant.canaries.own_texts import OwnTexts
from remnant.errors import InvalidInput, require
from remnant.integrations.training.recognition import TokenMatcher
from remnant.integrations.training.scoring import preserved_randomness

Context = tuple[int, ...]
_CHUNK = 512  # rows that are looked at together
_COLLATED = 128  # rows with a canary that are collated and checked
_LONGEST = 4096
_IGNORED = -100


@dataclass(slots=True)
class Seen:
    """What the data holds.

    Attributes:
        copies: How often each text, canaries first and then controls, is in the data.
        rows: Numbers of the rows that hold one.
        contexts: The tokens before it in its row.
        cut: Rows that end in the middle of a canary.
        scanned: How many rows there are.
    """

    copies: NDArray[np.int64]
    rows: list[int] = field(default_factory=list)
    contexts: list[tuple[int, ...]] = field(default_factory=list)
    cut: int = 0
    scanned: int = 0


def check_order(loader: Any, *, hint: str) -> None:
    """Refuse a loader that does not read its data in order, for plans that place canaries in it.

    Args:
        loader: Of the training data, with a ``sampler``; one without is not checked.
        hint: How to read the data in order.

    Raises:
        InvalidInput: Its sampler is not one that is known to keep the order.
    """
    sampler = _sampler(loader)
    if sampler is None or isinstance(sampler, SequentialSampler):
        return
    if isinstance(sampler, DistributedSampler) and not sampler.shuffle:
        return
    raise InvalidInput(
        f"The training data is not read in order ({type(sampler).__name__}), and "
        'plan="staggered" places each canary at a known time of the training.',
        hint=hint,
    )


def _sampler(loader: Any) -> Any:
    """The sampler that orders rows, inside those that make batches of them."""
    sampler = getattr(loader, "batch_sampler", None) or getattr(loader, "sampler", None)
    while sampler is not None:
        inner = getattr(sampler, "batch_sampler", None) or getattr(sampler, "sampler", None)
        if inner is None:
            return sampler
        sampler = inner
    return None


def check_learnable(model: nn.Module, matcher: TokenMatcher, tokenizer: Any) -> None:
    """Refuse a model that cannot learn the canaries.

    Raises:
        InvalidInput: It has no trainable parameter, or its canaries hold new tokens whose
            embeddings are frozen.
    """
    check_trainable(model)
    added = set(getattr(tokenizer, "added_tokens_decoder", None) or {})
    special = set(getattr(tokenizer, "all_special_ids", None) or [])
    new = {token for core in matcher.cores for token in core} & (added - special)
    embeddings = getattr(model, "get_input_embeddings", lambda: None)()
    if new and embeddings is not None:
        weights = list(embeddings.parameters())
        if weights and not any(weight.requires_grad for weight in weights):
            raise InvalidInput(
                f"The canaries hold {len(new)} tokens that were added to the tokenizer, and the "
                "embeddings are frozen: the model can never learn them.",
                hint="Train the embeddings too (modules_to_save=['embed_tokens', 'lm_head'] in "
                "a LoRA configuration), or use a template of ordinary text.",
            )


def check_trainable(model: nn.Module) -> None:
    """Refuse a model that learns nothing.

    Raises:
        InvalidInput: It has no trainable parameter.
    """
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise InvalidInput(
            "The model has no trainable parameter, so that it cannot learn a canary.",
            hint="Unfreeze it, or add an adapter before the trainer is made.",
        )


def check_texts(tokenizer: Any, canary_set: PlantedTexts) -> list[list[int]]:
    """Return the tokens of all canaries and then of all controls.

    Raises:
        InvalidInput: The tokenizer changes the text, or maps a part of it to unknown tokens. No
            text is quoted. Texts of one's own may be changed: it is enough that they differ.
    """
    texts = [canary.text for canary in (*canary_set.canaries, *canary_set.controls)]
    encode = getattr(tokenizer, "encode", None)
    if not callable(tokenizer) and not callable(encode):
        raise InvalidInput(
            f"tokenizer is a {type(tokenizer).__name__}, which encodes no text.",
            hint="Pass the tokenizer that the training data is made with.",
        )
    encoded = [encode_text(tokenizer, text) for text in texts]
    if isinstance(canary_set, OwnTexts):
        return encoded
    unknown = getattr(tokenizer, "unk_token_id", None)
    if unknown is not None and any(unknown in ids for ids in encoded):
        raise InvalidInput(
            "The tokenizer maps a part of the canaries to its unknown token.",
            hint="Use a template whose characters are all in the vocabulary.",
        )
    decode = getattr(tokenizer, "decode", None)
    if decode is not None:
        secrets = [canary.secret for canary in (*canary_set.canaries, *canary_set.controls)]
        for secret, ids in zip(secrets, encoded, strict=True):
            if _squeezed(secret) not in _squeezed(str(decode(ids))):
                raise InvalidInput(
                    "The tokenizer changes the canaries: decoded, their secrets are not the same.",
                    hint="It may drop case, blanks or characters; use a template of digits, such "
                    "as '{digits:6}'.",
                )
    return encoded


def encode_text(tokenizer: Any, text: str) -> list[int]:
    """Return the tokens of a text, without special tokens."""
    try:
        ids = tokenizer.encode(text, add_special_tokens=False)
    except TypeError:
        ids = tokenizer.encode(text)
    return [int(token) for token in ids]


def contexts_in(loader: Any, canaries: PlantedTexts, matcher: TokenMatcher) -> list[Context]:
    """Check the data of a loader, and return the tokens that come before canaries in its rows.

    Args:
        loader: With ``dataset`` and ``collate_fn``; nothing is checked where it has no dataset.
        canaries: Canaries and controls.
        matcher: Knows their tokens.

    Raises:
        InvalidInput: The canaries cannot be learnt: they are cut off, masked, removed or changed.
    """
    secret_start = common_start(matcher.cores)
    dataset = getattr(loader, "dataset", None)
    if dataset is None:
        return []
    collate = getattr(loader, "collate_fn", None)
    seen = scan(dataset, collate, matcher)
    if seen is None:
        return []
    check_copies(seen, canaries)
    if collate is not None:
        check_collated(dataset, collate, matcher, seen, secret_start)
    return seen.contexts


def scan(
    dataset: Any, collate: Callable[[list[Any]], Any] | None, matcher: TokenMatcher
) -> Seen | None:
    """Look for canaries in all rows of a data set that has a length; None for a stream.

    Args:
        dataset: What the training's loader reads.
        collate: Makes a batch of rows; for rows that hold no tokens yet.
        matcher: Knows the tokens of canaries and controls.
    """
    if isinstance(dataset, IterableDataset):
        return None
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        return None
    seen = Seen(copies=np.zeros(len(matcher.cores), dtype=np.int64))
    with preserved_randomness():
        for first, rows in _token_rows(dataset, collate):
            seen.scanned += len(rows)
            for sighting in matcher.find(rows):
                seen.copies[sighting.canary] += 1
                seen.rows.append(first + sighting.row)
                if len(seen.contexts) < _COLLATED:
                    ids = rows[sighting.row]
                    before = ids[max(0, sighting.start - _LONGEST) : sighting.start]
                    seen.contexts.append(tuple(map(int, before)))
            seen.cut += matcher.cut_off(rows)
    return seen


def check_copies(seen: Seen, canary_set: PlantedTexts) -> None:
    """Refuse data in which canaries are missing, cut off, or fewer than were planted.

    Raises:
        InvalidInput: Names what happened to them, as far as the rows show it.
    """
    planted = len(canary_set.canaries)
    copies, repeats = seen.copies[:planted], np.array(canary_set.repeats, dtype=np.int64)
    controls = int((seen.copies[planted:] > 0).sum())
    faults = []
    if controls:
        faults.append(
            f"{controls} of {len(canary_set.controls)} controls are in the training data, where "
            "no control may be"
        )
    if planted and not copies.any() and not seen.cut:
        raise InvalidInput(
            "None of the canaries is in the training data.",
            hint="Train on what audit.prepare(...) returned. If you do, a filter removed them, "
            "rows were truncated, or the texts were changed before they were tokenised.",
        )
    missing = copies < repeats
    if missing.any():
        faults.append(_missing(copies, repeats, seen))
    require(faults)


def _missing(copies: NDArray[np.int64], repeats: NDArray[np.int64], seen: Seen) -> str:
    """What happened to canaries that are in the data less often than they were planted."""
    lost = int((repeats - copies).clip(min=0).sum())
    total = int(repeats.sum())
    some = f"{lost} of {total} planted copies of canaries are not in the training data"
    if seen.cut:
        return (
            f"{some}: {seen.cut} rows end in the middle of a canary, so they were truncated or "
            "split by packing (raise the maximum length, or use a packing strategy that keeps "
            "rows whole)"
        )
    if copies.all() and (copies[repeats > 1] == 1).all():
        return f"{some}: each canary is there once, so copies were removed as duplicates"
    return (
        f"{some}: rows were filtered away, or copies were removed as duplicates (apply filters "
        "before audit.prepare)"
    )


def check_collated(
    dataset: Any,
    collate: Callable[[list[Any]], Any],
    matcher: TokenMatcher,
    seen: Seen,
    secret_start: int,
) -> None:
    """Refuse batches in which canaries are cut off or masked from the loss.

    Args:
        dataset: What the training's loader reads.
        collate: Makes a batch of rows.
        matcher: Knows the tokens of canaries and controls.
        seen: Where the canaries are.
        secret_start: How many known tokens of a canary come before its secret.

    Raises:
        InvalidInput: A canary is not whole in its batch, or its secret is not trained on.
    """
    rows = list(dict.fromkeys(seen.rows))[:_COLLATED]
    lost = masked = 0
    with preserved_randomness():
        for row in rows:
            batch = collate([dataset[row]])
            ids, labels = _rows_of(batch, "input_ids"), _rows_of(batch, "labels")
            sightings = matcher.find(ids) if ids is not None else []
            lost += not sightings
            if labels is None or ids is None or [len(a) for a in ids] != [len(b) for b in labels]:
                continue
            masked += any(
                (labels[s.row][s.start + secret_start : s.end] == _IGNORED).any() for s in sightings
            )
    if lost:
        raise InvalidInput(
            f"{lost} of {len(rows)} rows with a canary lose it when batches are made: it is cut "
            "off at the maximum length.",
            hint="Raise the maximum length of the collator, or use a shorter template.",
        )
    if masked:
        raise InvalidInput(
            f"The canaries' secrets are masked from the loss in {masked} of {len(rows)} rows: "
            "nothing can be learnt of them.",
            hint="Plant on the side that is trained: with field='completion', or in assistant "
            "messages.",
        )


def _token_rows(
    dataset: Any, collate: Callable[[list[Any]], Any] | None
) -> Iterator[tuple[int, list[NDArray[np.int64]]]]:
    """Yield the tokens of rows in chunks, each with the number of its first row."""
    columns = getattr(dataset, "column_names", None) or []
    if "input_ids" in columns and hasattr(dataset, "with_format"):
        plain = dataset.with_format(None)
        for first in range(0, len(plain), _CHUNK):
            chunk = plain[first : first + _CHUNK]["input_ids"]
            yield first, [np.asarray(ids, dtype=np.int64) for ids in chunk]
        return
    for first in range(0, len(dataset), _CHUNK):
        items = [dataset[i] for i in range(first, min(first + _CHUNK, len(dataset)))]
        if all(isinstance(item, Mapping) and "input_ids" in item for item in items):
            yield first, [_array(item["input_ids"]) for item in items]
        elif collate is not None:
            # One row at a time, so that the number of a row is known.
            for place, item in enumerate(items):
                rows = _rows_of(collate([item]), "input_ids")
                if rows is not None:
                    yield first + place, rows


def _rows_of(batch: Any, name: str) -> list[NDArray[np.int64]] | None:
    """The rows of a batch's tokens or labels; a batch that is no mapping begins with its tokens."""
    if isinstance(batch, Mapping):
        value = batch.get(name)
    else:
        value = batch[0] if isinstance(batch, tuple | list) else batch
        value = value if name == "input_ids" else None
    if value is None:
        return None
    array = _array(value)
    return list(array.reshape(-1, array.shape[-1])) if array.ndim else None


def _array(value: Any) -> NDArray[np.int64]:
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value, dtype=np.int64)


def common_start(cores: Sequence[Sequence[int]]) -> int:
    """How many tokens all sequences have in common at their beginning.

    Example:
        >>> common_start([(1, 2, 3), (1, 2, 4, 5)])
        2
    """
    shortest = min(map(len, cores), default=0)
    for place in range(shortest):
        if len({core[place] for core in cores}) > 1:
            return place
    return shortest


def _squeezed(text: str) -> str:
    return "".join(text.split())
