"""Templates as they are given on the command line, with their vocabularies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from remnant.cli.counts import counted
from remnant.cli.models import naming_model
from remnant.cli.naming import naming
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.canaries import Template


def read_templates(
    patterns: Sequence[str], *, words: Path | None, model: Path | None, option: str
) -> list[Template]:
    """Make templates of patterns; each gets the vocabularies that its holes ask for.

    Args:
        patterns: With holes; each may be given once.
        words: A text file with the words of ``{words:n}``, one a line.
        model: The folder of the model whose tokens fill ``{tokens:n}``: whole words of a subword
            tokenizer, which stay themselves side by side, or all that can be printed.
        option: What the patterns are called on the command line.

    Raises:
        InvalidInput: A pattern is faulty or given twice; a vocabulary is missing, cannot be read,
            or is not used.
    """
    from remnant.canaries import Template

    with naming(pattern=option):
        kinds = [_kinds(pattern) for pattern in patterns]
    asked = set().union(*kinds)
    if len(set(patterns)) < len(patterns):
        raise InvalidInput(
            "A template is given twice, and would have the same canaries both times.",
            hint="Give it once, and ask for more canaries.",
        )
    if "words" in asked and words is None:
        raise InvalidInput("{words:n} needs words.", hint="Pass --words FILE, one word a line.")
    if "tokens" in asked and model is None:
        raise InvalidInput(
            "{tokens:n} needs a model whose tokens fill it.", hint="Pass --model DIR."
        )
    if words is not None and "words" not in asked:
        raise InvalidInput(
            "--words is given, and no template has a {words:n} hole.", hint="Leave it out."
        )
    vocabularies = {
        "words": _read_words(words) if words is not None and "words" in asked else None,
        "tokens": _read_tokens(model) if model is not None and "tokens" in asked else None,
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
            hint="Pass a text file, one word a line.",
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput(
            f"--words {path} is not text in UTF-8.", hint="Save it again in UTF-8."
        ) from None
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise InvalidInput(f"--words {path} holds no word.", hint="Write one word a line.")
    again = len(found) - len(set(found))
    if again:
        raise InvalidInput(
            f"--words {path} has {counted(again, 'line')} with a word that came before.",
            hint="Write each word once.",
        )
    return found


def _read_tokens(folder: Path) -> list[str]:
    from remnant.integrations import load_tokenizer, separate_tokens

    with naming_model("--model", folder):
        found = separate_tokens(load_tokenizer(folder).tokens)
    if not found:
        raise InvalidInput(f"--model {folder} has no token that can be printed.")
    return found
