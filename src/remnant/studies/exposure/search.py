"""Searches for the likeliest secrets of a model, and how many queries leak them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from remnant.canaries import Template
from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import queries_to_leak
from remnant.models.protocols import SequenceModel, TextScorer
from remnant.probes import decoding_log_probability
from remnant.probes.counted_model import OutOfTime
from remnant.search import Arithmetic, Extraction, MergedTokens, extract
from remnant.search.baselines import beam_search, brute_force, sample_secrets
from remnant.search.dijkstra import batched_dijkstra
from remnant.search.text_beam import text_beam
from remnant.studies.exposure.audit import Progress

SearchMethod = Literal["certified", "brute-force", "greedy", "beam", "sample", "dijkstra"]
_HALF, _NEARLY = 0.5, 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """Settings by which a model's answers are sampled; by default its own probabilities."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None


@dataclass(frozen=True, slots=True)
class Leak:
    """How many independent queries leak a secret.

    Attributes:
        decoding: How answers are sampled.
        log_probability: Natural log of the probability that one query gives the secret; ``-inf``
            where the decoding never does, ``None`` where it is unknown.
        queries_half: Queries after which it has leaked with probability 50 %; ``None`` where
            there is no such number, or it is beyond floating point.
        queries_nearly: The same for 99 %.
        reason: Why one of these is ``None``; else empty.
    """

    decoding: Decoding
    log_probability: float | None
    queries_half: int | None
    queries_nearly: int | None
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class SecretSearch:
    """What a search extraction.

    Attributes:
        candidates: ``(secret, bits)``, cheapest first. Not shown by ``repr``.
        certified: Nothing likelier than the candidates exists.
        method: What was done.
        nodes: Rows passed to the model by the search.
        tolerance: Bits within which two costs count as equal.
        leaks: Of the first candidate, one for each decoding.
        arithmetic: How a model of low precision was held to float64; None for others, and for
            methods that prove nothing.
    """

    candidates: tuple[tuple[str, float], ...] = field(repr=False)
    certified: bool
    method: str
    nodes: int
    tolerance: float
    leaks: tuple[Leak, ...]
    arithmetic: Arithmetic | None = None


def search_secrets(
    model: SequenceModel | TextScorer,
    template: Template,
    *,
    rng: np.random.Generator,
    method: SearchMethod = "certified",
    top: int = 1,
    max_nodes: int | None = None,
    max_seconds: float | None = None,
    memory: int | None = None,
    beam: int = 64,
    queries: int = 1000,
    decodings: Sequence[Decoding] = (Decoding(),),
    progress: Progress | None = None,
) -> SecretSearch:
    """Search a template's space for the secrets to which a model gives the highest probability.

    Args:
        model: Anything with ``encode``, ``start``, ``step`` and ``take``. One that scores whole
            texts only can be searched by ``"greedy"`` and ``"beam"``.
        template: Whose space is searched.
        rng: Draws the samples of ``"sample"``.
        method: ``"certified"`` is ``extract``; of the others, brute force alone proves anything.
        top: How many secrets.
        max_nodes, max_seconds, memory: Budgets of ``"certified"``.
        beam: Width of ``"beam"``, and of the first bound of ``"certified"``.
        queries: Samples of ``"sample"``, drawn at the temperature of the last decoding.
        decodings: For each, the queries until the first candidate comes out are counted.
        progress: See ``extract``.

    Raises:
        InvalidInput: A setting out of range, or a template that the model's tokenizer makes no tree
            of.
        NotEnoughEvidence: Brute force on a space that is too large for it, or ``max_seconds`` ended
            the search before a secret was scored.
    """
    if method not in get_args(SearchMethod):
        raise InvalidInput(f"method={method!r} is not one of {', '.join(get_args(SearchMethod))}.")
    if top < 1 or beam < 1:
        raise InvalidInput(f"top={top} and beam={beam} must both be at least 1.")

    if isinstance(model, TextScorer) and method not in ("greedy", "beam"):
        raise InvalidInput(
            f"method={method!r} needs a model's next tokens, and it scores whole texts only.",
            hint="Use method='beam', which proves nothing.",
        )

    def search() -> Extraction:
        if isinstance(model, TextScorer):
            width = 1 if method == "greedy" else beam
            return text_beam(model, template, width=width, top=top, progress=progress)
        if method == "brute-force":
            return brute_force(model, template, top=top)
        if method in ("greedy", "beam"):
            return beam_search(model, template, width=1 if method == "greedy" else beam, top=top)
        if method == "sample":
            warmth = decodings[-1].temperature if decodings else 1.0
            return sample_secrets(
                model,
                template,
                queries=queries,
                rng=rng,
                temperature=warmth,
                top=top,
                memory=memory,
            )
        if method == "dijkstra":
            return batched_dijkstra(model, template, top=top)
        return extract(
            model,
            template,
            top=top,
            max_nodes=max_nodes,
            max_seconds=max_seconds,
            memory=memory,
            beam=beam,
            progress=progress,
        )

    try:
        extraction = search()
    except MergedTokens as fault:
        raise MergedTokens(
            fault.message, hint="Use holes that the tokenizer keeps apart, such as single digits."
        ) from None
    except OutOfTime:
        raise
    except NotEnoughEvidence as fault:
        if isinstance(model, TextScorer):
            raise
        raise NotEnoughEvidence(
            fault.message, hint="Use method='certified', which proves as much and scores few."
        ) from None
    if not extraction.candidates:
        raise NotEnoughEvidence(
            "A budget ended the search before a secret was scored.",
            hint="Allow more seconds with max_seconds=.",
        )
    first = extraction.candidates[0]
    return SecretSearch(
        candidates=tuple(extraction.candidates),
        certified=extraction.certified,
        method=extraction.method,
        nodes=extraction.nodes,
        tolerance=extraction.tolerance,
        leaks=tuple(
            leak_of(model, template, *first, decoding=decoding, max_seconds=max_seconds)
            for decoding in decodings
        ),
        arithmetic=extraction.arithmetic,
    )


def leak_of(
    model: SequenceModel | TextScorer,
    template: Template,
    secret: str,
    bits: float,
    *,
    decoding: Decoding,
    max_seconds: float | None = None,
) -> Leak:
    """Compute how many queries leak a secret, if each query continues the prefix.

    Args:
        model: The model that is queried.
        template: Gives the prefix of a query, and the end that has to follow the secret.
        secret: The secret.
        bits: Its cost; the default decoding needs nothing else.
        decoding: How answers are sampled.
        max_seconds: Time limit for reading the prefix; ``reason`` says if it was exceeded.

    Raises:
        InvalidInput: A setting of the decoding out of range.
    """
    if decoding == Decoding():
        chance = -bits * math.log(2.0)
    elif isinstance(model, TextScorer):
        reason = "the server gives no probabilities of other tokens"
        return Leak(decoding, None, None, None, reason)
    else:
        try:
            chance = _decoded(model, template, secret, decoding, max_seconds)
        except OutOfTime:
            return Leak(decoding, None, None, None, "the time limit ended before it was computed")
        except _Joined as fault:
            return Leak(decoding, None, None, None, fault.message)
    chance = min(chance, 0.0)  # rounding may leave a certain token at 1 + 1e-7
    half, nearly = (
        queries_to_leak(log_probability=chance, confidence=share).queries.item()
        for share in (_HALF, _NEARLY)
    )
    reason = ""
    if math.isinf(chance):
        reason = "this decoding never gives it"
    elif math.isinf(nearly):
        reason = "the number is beyond floating point"
    return Leak(decoding, chance, _whole(half), _whole(nearly), reason)


class _Joined(InvalidInput):
    """The tokenizer joins the prefix and the secret."""


def _decoded(
    model: SequenceModel,
    template: Template,
    secret: str,
    decoding: Decoding,
    max_seconds: float | None,
) -> float:
    prefix, rest = template.prefix, secret + template.suffix
    if not _apart(model, prefix, rest):
        # Most tokenizers join a blank with the word after it, so the query ends before the blank.
        bare = prefix.rstrip(" ")
        prefix, rest = bare, prefix[len(bare) :] + rest
        if not _apart(model, prefix, rest):
            raise _Joined("the tokenizer joins the end of the prefix with the secret")
    return decoding_log_probability(
        model,
        prefix=prefix,
        continuation=rest,
        temperature=decoding.temperature,
        top_k=decoding.top_k,
        top_p=decoding.top_p,
        max_seconds=max_seconds,
    )


def _apart(model: SequenceModel, prefix: str, rest: str) -> bool:
    before = list(model.encode(prefix))
    return list(model.encode(prefix + rest))[: len(before)] == before


def _whole(number: float) -> int | None:
    return int(number) if math.isfinite(number) else None
