"""(n, p)-extraction: how many queries leak a secret from a model that samples its answers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.statistics.checks import check_share, real_numbers

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class QueriesToLeak:
    """How many queries leak a secret with a given confidence.

    Attributes:
        queries: The smallest whole number per secret, shape ``(secrets,)``; ``inf`` where it is
            beyond floating point, or the secret cannot come out.
        log2_queries: Its logarithm, in bits; finite for every secret that can come out at all.
        confidence: The probability of a leak within so many queries.
    """

    queries: Floats
    log2_queries: Floats
    confidence: float


def queries_to_leak(*, log_probability: ArrayLike, confidence: float) -> QueriesToLeak:
    """The queries after which a secret has come out with probability ``confidence``.

    Each query draws one answer, and the secret is that answer with probability p_z under the
    decoding that is really used (temperature, top-k and all). Independent queries then need

        n >= log(1 - confidence) / log(1 - p_z).

    Args:
        log_probability: Natural logarithm of p_z for each secret; a number is one secret, ``-inf``
            one that cannot come out.
        confidence: Between 0 and 1.

    Guarantees:
        * ``leak_probability`` of ``queries`` reaches ``confidence`` and that of one fewer does not,
          up to a relative 1e-12 (whole numbers beyond 2**53 are rounded).
        * No loss of digits however small p_z or 1 - p_z is.

    Raises:
        InvalidInput: NaN or positive logarithms, a confidence outside (0, 1).

    Example:
        >>> queries_to_leak(log_probability=np.log([0.5, 1e-9]), confidence=0.75).queries.tolist()
        [2.0, 1386294361.0]
    """
    faults: list[str] = []
    logs = _read_logs(log_probability, faults)
    check_share("confidence", confidence, faults)
    require(faults)
    log_rate = _log_rate(logs)
    wanted = -math.log1p(-confidence)
    with np.errstate(over="ignore", divide="ignore"):
        needed = wanted / np.exp(log_rate)
    # A whole number that came out a few ulps too large is still that number.
    queries = np.maximum(np.ceil(needed * (1.0 - 1e-14)), 1.0)
    in_bits = (math.log(wanted) - log_rate) / math.log(2.0)
    bits = np.where(np.isfinite(queries), np.log2(queries), in_bits)
    return QueriesToLeak(queries=queries, log2_queries=bits, confidence=float(confidence))


def leak_probability(*, log_probability: ArrayLike, queries: ArrayLike) -> Floats:
    """The probability ``1 - (1 - p_z)^n`` that a secret comes out within ``n`` queries.

    Args:
        log_probability: Natural logarithm of p_z, as in ``queries_to_leak``.
        queries: Not negative; broadcasts with ``log_probability``.

    Guarantees:
        * Rises with both; 0 queries leak nothing; one query leaks with p_z.

    Raises:
        InvalidInput: NaN or positive logarithms, NaN or negative queries, shapes that disagree.

    Example:
        >>> leak_probability(log_probability=np.log(0.5), queries=[0, 1, 2]).tolist()
        [0.0, 0.5, 0.75]
    """
    faults: list[str] = []
    logs = _read_logs(log_probability, faults)
    numbers = _read("queries", queries, faults)
    if np.any(numbers < 0.0):
        faults.append(f"queries={numbers.min()} is negative")
    require(faults)
    try:
        logs, numbers = np.broadcast_arrays(logs, numbers)
    except ValueError:
        raise InvalidInput(
            f"log_probability has shape {logs.shape} and queries {numbers.shape}; these disagree."
        ) from None
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        leaked = -np.expm1(-np.exp(np.log(numbers) + _log_rate(logs)))
    # No query, or no chance: nothing comes out, however many of the other there are.
    return np.where((numbers == 0.0) | np.isneginf(logs), 0.0, leaked)


def _log_rate(logs: Floats) -> Floats:
    """log(-log(1 - p)), from log p."""
    rate = np.empty_like(logs)
    rare, often = logs < -37.0, logs > -math.log(2.0)
    between = ~rare & ~often
    rate[rare] = logs[rare]  # -log(1 - p) is p itself, to the last digit
    rate[between] = np.log(-np.log1p(-np.exp(logs[between])))
    with np.errstate(divide="ignore"):
        rate[often] = np.log(-np.log(-np.expm1(logs[often])))
    return rate


def _read_logs(given: ArrayLike, faults: list[str]) -> Floats:
    logs = _read("log_probability", given, faults)
    if np.any(logs > 0.0):
        faults.append(f"log_probability={logs.max()} is the logarithm of more than 1")
    return logs


def _read(name: str, given: ArrayLike, faults: list[str]) -> Floats:
    """The float64 array, with one dimension at least; empty where it is faulty."""
    try:
        array = np.atleast_1d(np.asarray(real_numbers(given), dtype=np.float64))
    except (TypeError, ValueError):
        faults.append(f"{name} is not an array of numbers")
        return np.empty(0)
    if array.size == 0:
        faults.append(f"{name} is empty")
    elif np.isnan(array).any():
        faults.append(f"{name} holds {np.count_nonzero(np.isnan(array))} NaN")
        return np.empty(0)
    return array
