"""Templates on the command line, with their vocabularies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from remnant.cli.options.models import naming_model
from remnant.cli.options.naming import naming
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.canaries import Template


def read_templates(
    patterns: Sequence[str],
    *,
    words: Path | None,
    model: Path | None,
    option: str,
    base: Path | None = None,
) -> list[Template]:
    """Make templates of patterns; each gets the vocabularies that its holes need.

    Args:
        patterns: With holes; each may be given once.
        words: A text file with the words of ``{words:n}``, one per line.
        model: The folder of the model whose tokens fill ``{tokens:n}``: whole words of a subword
            tokenizer, which stay themselves side by side, or all that can be printed.
        option: What the patterns are called on the command line.
        base: The base of a model that is an adapter.

    Raises:
        InvalidInput: A pattern is faulty or given twice; a vocabulary is missing, cannot be read,
            or is not used.
    """
    from remnant.canaries import Template

    with naming(pattern=option):
        kinds = [_kinds(pattern) for pattern in patterns]
    needed = set().union(*kinds)
    if len(set(patterns)) < len(patterns):
        raise InvalidInput(
            "A template is given twice, and both would have the same canaries.",
            hint="Give it once, and ask for more canaries.",
        )
    if "words" in needed and words is None:
        raise InvalidInput("{words:n} needs words.", hint="Pass --words FILE, one word per line.")
    if "tokens" in needed and model is None:
        raise InvalidInput(
            "{tokens:n} needs a model whose tokens fill it.", hint="Pass --model DIR."
        )
    if words is not None and "words" not in needed:
        raise InvalidInput(
            "--words is given, but no template has a {words:n} hole.", hint="Leave it out."
        )
    vocabularies = {
        "words": _read_words(words) if words is not None and "words" in needed else None,
        "tokens": _read_tokens(model, base) if model is not None and "tokens" in needed else None,
    }
    with naming(pattern=option, words="--words", tokens="--model"):
        return [
            Template(pattern, **{name: vocabularies[name] for name in vocabularies if name in own})
            for pattern, own in zip(patterns, kinds, strict=True)
        ]


def _kinds(pattern: str) -> set[str]:
    from remnant.canaries.holes import Hole, split

    return {part.kind for part in split(pattern) if isinstance(part, Hole)}


def _read_words(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as fault:
        raise InvalidInput(
            f"--words {path} cannot be read: {fault.strerror}.",
            hint="Pass a text file, one word per line.",
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput(
            f"--words {path} is not text in UTF-8.", hint="Save it again in UTF-8."
        ) from None
    words = [line.strip() for line in lines if line.strip()]
    if not words:
        raise InvalidInput(f"--words {path} holds no word.", hint="Write one word per line.")
    again = len(words) - len(set(words))
    if again:
        from remnant.studies.shared.wording import counted

        raise InvalidInput(
            f"--words {path} has {counted(again, 'repeated word')}.",
            hint="Write each word once.",
        )
    return words


def _read_tokens(folder: Path, base: Path | None) -> list[str]:
    from remnant.integrations import load_tokenizer, separate_tokens

    with naming_model("--model", folder):
        tokens = separate_tokens(load_tokenizer(folder, base=base).tokens)
    if not tokens:
        raise InvalidInput(f"--model {folder} has no token that can be printed.")
    return tokens
