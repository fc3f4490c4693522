"""The table of questions times tasks, as Markdown: which recipe fills a cell, or why none does.

``python -m remnant.studies.recipe_form.question_table PAGE`` writes it into a page, between the
marks that are there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from remnant.errors import InvalidInput
from remnant.studies.registry import QUESTIONS, RECIPES

OWN = "own"
ROWS = {
    "forgetting": "forgetting, with twins",
    "one-run": "forgetting, from one run",
    "prediction": "which samples will be memorised",
    "features": "a feature of one example",
    "exposure": "exposure and extraction of a secret",
    "choices": "training choices and remedies",
}
"""The questions: what is asked of the arrays, in words."""
COLUMNS = {
    "images": "images, arrays",
    "text": "text",
    "speech": "speech",
    "pairs": "pairs (translation)",
    OWN: "your own network",
}
"""The tasks: what the models are trained on, in words."""
NOT_WRITTEN = "not written"
_CLASSES = f"{NOT_WRITTEN}: PSMI and the logit gap need classes, which these data have not"
_MARKS = "the feature is a mark on an image; of text ask `exposure`"
EMPTY = {
    ("prediction", "speech"): _CLASSES,
    ("prediction", "pairs"): _CLASSES,
    ("features", "text"): _MARKS,
    ("features", "speech"): "the feature is a mark on an image",
    ("features", "pairs"): _MARKS,
    (
        "exposure",
        "images",
    ): "an image has no template whose secrets could be ranked; ask `forgetting`",
    (
        "exposure",
        "speech",
    ): f"`speech-forgetting` ranks among references; search {NOT_WRITTEN}",
    ("exposure", OWN): f"{NOT_WRITTEN}; `remnant.Audit` measures a training of your own",
    ("choices", "images"): "`[[compare]]` in `forgetting`",
    ("choices", "speech"): "`[[compare]]` in `speech-forgetting`",
    ("choices", "pairs"): "`[[compare]]` in `translation-forgetting`",
    ("choices", OWN): NOT_WRITTEN,
}
"""Why no recipe fills a cell, by question and task."""
_BEGIN = "<!-- The code writes this table: make reference -->"
_END = "<!-- End of the table. -->"


def recipes_in(asks: str, task: str) -> list[str]:
    """Return the questions of recipes that fill a cell.

    Args:
        asks: Of ``ROWS``.
        task: Of ``COLUMNS``; of ``own`` the recipes that take ``model.maker``.
    """
    known = {name: QUESTIONS[name] for name in RECIPES if QUESTIONS[name].asks == asks}
    return [name for name, own in known.items() if (own.own if task == OWN else own.task == task)]


def question_table() -> str:
    """Return the table, one row a question and one column a task."""
    lines = [
        f"| question | {' | '.join(COLUMNS.values())} |",
        "|---|" + "---|" * len(COLUMNS),
        *(
            f"| {words} | {' | '.join(_cell(asks, task) for task in COLUMNS)} |"
            for asks, words in ROWS.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """Return a page with the table between its marks.

    Raises:
        InvalidInput: The page has no marks.
    """
    before, begun, rest = page.partition(_BEGIN)
    _, ended, after = rest.partition(_END)
    if not begun or not ended:
        raise InvalidInput(f"The page has no {_BEGIN} with {_END} after it.")
    return f"{before}{_BEGIN}\n{question_table()}{_END}{after}"


def _cell(asks: str, task: str) -> str:
    suffix = " with `model.maker`" if task == OWN else ""
    page = "../reference/recipes.md"
    made = [f"[`{name}`]({page}#{name}){suffix}" for name in recipes_in(asks, task)]
    return ", ".join(made) or EMPTY[asks, task]


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(with_table(target.read_text(encoding="utf-8")), encoding="utf-8")
