"""Bounds on what a folder's files make this machine compute: patterns, templates, tokenizers."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from remnant.errors import InvalidInput

SECONDS = 10.0
_TOKENIZER_SECONDS = 30.0
_MEMORY = 8 << 30
_PANIC = 3  # the exit code of the process below
# Fields of an adapter's configuration that peft reads as regular expressions.
_PATTERNS = (
    *("target_modules", "exclude_modules", "feedforward_modules", "layers_pattern"),
    *("rank_pattern", "alpha_pattern", "modules_to_save", "target_parameters"),
)
_REPEATED_GROUP = re.compile(r"\)(?:[*+]|\{\d*,\d*\})")
_MOST_GROWTH = 16.0
_PROBES = ("a", "A", "0", " ", "_", ".", "-", "\n", "é", "中", "'", "aA0 ")
_ENCODE = """
import sys
sys.path[:] = sys.argv[3:]
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
except (ImportError, ValueError, OSError):
    pass
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
for text in sys.stdin.buffer.read().decode().split("\\0"):
    try:
        tokenizer.encode(text)
    except Exception:
        pass
    except BaseException:  # a panic of the library
        sys.exit(3)
"""


@contextmanager
def time_bound(seconds: float) -> Iterator[None]:
    """Raise in Python code, or in a regular expression, that computes for too long.

    Only the main thread of a system with interval timers can be interrupted; elsewhere there is no
    bound. Bounds do not nest.

    Raises:
        TimeoutError: The time is up.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def check_patterns(file: Path, fields: Mapping[str, Any], names: Iterable[str]) -> None:
    """Match an adapter's patterns with the names of all modules, before peft does.

    Raises:
        InvalidInput: That takes too long.
    """
    known = list(names)
    for field in _PATTERNS:
        given = fields.get(field)
        several = given if isinstance(given, list | dict) else [given]
        for pattern in (each for each in several if isinstance(each, str)):
            try:
                with time_bound(SECONDS):
                    whole, ending = re.compile(pattern), re.compile(rf"(.*\.)?({pattern})$")
                    for name in known:
                        whole.fullmatch(name)
                        ending.match(name)
            except TimeoutError:
                raise InvalidInput(
                    f"{file}: a pattern in {field} takes longer than {SECONDS:g} seconds to match "
                    "the names of the modules.",
                    hint="List the names of the modules instead.",
                ) from None
            except (re.error, RecursionError, OverflowError):  # peft says so
                continue


def check_rules(file: Path, rules: Mapping[str, Any]) -> None:
    """Try the rules of a ``tokenizer.json`` in a process of their own, if they may not end.

    Those are patterns with a repeated group, sequences in sequences, and replacements that make a
    text many times as long. The library can be neither interrupted nor kept from aborting.

    Raises:
        InvalidInput: They take too long for a few short texts, or the library panics or aborts.
    """
    patterns, growth, nested = [], 1.0, False
    for rule in _objects({name: value for name, value in rules.items() if name != "model"}):
        pattern = rule.get("pattern")
        if isinstance(pattern, dict):
            pattern = pattern.get("Regex") or pattern.get("String")
        if isinstance(pattern, str):
            patterns += [pattern] if _REPEATED_GROUP.search(pattern) else []
            content = rule.get("content")
            longer = len(content) / max(1, len(pattern)) if isinstance(content, str) else 1.0
            growth *= max(1.0, longer)
        inner = [each for value in rule.values() if isinstance(value, list) for each in value]
        sequence = rule.get("type") == "Sequence"
        nested |= sequence and any(
            isinstance(each, dict) and each.get("type") == "Sequence" for each in inner
        )
    if not (patterns or nested or growth > _MOST_GROWTH):
        return
    letters = sorted({letter for pattern in patterns for letter in pattern if letter.isprintable()})
    probes = [probe * 200 + "\x01" for probe in (*_PROBES, *letters[:64])]
    try:
        ended = subprocess.run(
            [sys.executable, "-c", _ENCODE, str(file), str(_MEMORY), *sys.path],
            input="\0".join(probes).encode(),
            capture_output=True,
            timeout=_TOKENIZER_SECONDS,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        why = f"take longer than {_TOKENIZER_SECONDS:g} seconds for a short text"
    else:
        if ended >= 0 and ended != _PANIC:
            return
        why = "make the library fail on a short text"
    raise InvalidInput(
        f"{file} is damaged: its rules {why}.",
        hint="Write it again with tokenizer.save_pretrained(folder).",
    )


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """All objects in JSON data, which is not nested deeply."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from _objects(inner)
