"""What a measurement will cost, announced on standard error before it starts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from remnant.cli.terminal import show
from remnant.errors import RemnantError

if TYPE_CHECKING:
    from remnant.studies.exposure.cost_estimate import SearchCost

LEAST_SECONDS = 30.0
"""What may take less is not announced."""


def announce(
    what: str,
    costs: Callable[[], Iterable[SearchCost]],
    *,
    exact: bool = True,
    max_seconds: float | None = None,
    cheaper: Callable[[float], str] | None = None,
) -> None:
    """Print what a measurement may cost on this machine, and what would be cheaper.

    Nothing is printed where it takes under ``LEAST_SECONDS``, and where a fault keeps the cost from
    being estimated: the measurement itself reports it.

    Args:
        what: What is done, in words.
        costs: Times a few steps of the model, and returns one cost for each ranking or search.
        exact: Whether the tree may be walked; otherwise references are sampled only.
        max_seconds: Time budget of each walk.
        cheaper: The sentence on the cheaper alternative, given the seconds of sampling alone.
    """
    if float("inf") == LEAST_SECONDS or (max_seconds is not None and max_seconds < LEAST_SECONDS):
        return
    try:
        each = list(costs())
    except RemnantError:
        return
    most = sum(
        min(cost.exact_seconds, max_seconds + cost.sampled_seconds)
        if max_seconds is not None
        else cost.exact_seconds
        for cost in each
    )
    sampled = sum(cost.sampled_seconds for cost in each)
    seconds = most if exact else sampled
    if not each or seconds < LEAST_SECONDS:
        return
    nodes = sum(cost.reference_nodes + (cost.nodes if exact else 0) for cost in each)
    memory = _resident() + max(cost.memory for cost in each)
    line = (
        f"{what}: up to {_about(nodes)} nodes, {duration(seconds)} and {memory / 1e9:.1f} GB on "
        f"this machine ({_threads()})."
    )
    alternative = "" if cheaper is None or not exact else f" {cheaper(sampled)}"
    show(line + alternative, err=True)


def announce_passes(texts: int, tokens: int, models: int, seconds: float) -> None:
    """Print what it costs to score texts; nothing where it takes under ``LEAST_SECONDS``.

    Args:
        texts, tokens: How many there are.
        models: How many read them.
        seconds: That it may take.
    """
    if seconds < LEAST_SECONDS:
        return
    from remnant.studies.shared.wording import counted

    show(
        f"Scoring {counted(texts, 'record')}, {_about(tokens)} tokens, with "
        f"{counted(models, 'model')}: {duration(seconds)} and {_resident() / 1e9:.1f} GB on this "
        f"machine ({_threads()}). Fewer records take less: 500 of each show an AUC to within "
        "0.036.",
        err=True,
    )


def announce_images(ask: Callable[[Any], Any], batch: Any, images: int, cheaper: str) -> None:
    """Print what it costs to ask a model about images; nothing under ``LEAST_SECONDS``.

    Args:
        ask: The model.
        batch: Images of one batch, on which it is timed.
        images: How many it is going to answer for.
        cheaper: The sentence on the cheaper alternative.
    """
    announce_repeated(
        f"Asking about {_about(images)} images",
        lambda: ask(batch),
        times=images / len(batch),
        cheaper=cheaper,
    )


def announce_repeated(what: str, part: Callable[[], Any], *, times: float, cheaper: str) -> None:
    """Time a part of a measurement and print what all of it costs; nothing under ``LEAST_SECONDS``.

    Args:
        what: What is done, in words.
        part: Does a part of it.
        times: How many such parts there are.
        cheaper: The sentence on the cheaper alternative.
    """
    if float("inf") == LEAST_SECONDS:
        return
    try:
        part()
        begun = perf_counter()
        part()
        seconds = (perf_counter() - begun) * times
    except (RemnantError, RuntimeError):
        return  # the measurement itself reports it
    if seconds >= LEAST_SECONDS:
        show(
            f"{what}: {duration(seconds)} and {_resident() / 1e9:.1f} GB on this machine "
            f"({_threads()}). {cheaper}",
            err=True,
        )


def duration(seconds: float) -> str:
    """Return a time in words, rounded up.

    Example:
        >>> duration(41), duration(400), duration(9000)
        ('about 41 s', 'about 7 minutes', 'about 2.5 hours')
    """
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"about {-(-round(seconds) // 60)} minutes"
    return f"about {seconds / 3600:.1f} hours"


def sampled_is_cheaper(seconds: float) -> str:
    """Return the sentence on ``--method sampled``."""
    return f"`--method sampled` takes {duration(seconds)}."


def _about(number: int) -> str:
    from remnant.studies.shared.wording import about

    return about(number)


def _resident() -> int:
    """The largest memory of this process so far, in bytes; 0 where it is not known."""
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def _threads() -> str:
    from remnant.studies.shared.wording import counted

    torch: Any = sys.modules["torch"]
    return counted(int(torch.get_num_threads()), "thread")
