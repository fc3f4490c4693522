"""Multiple-choice questions, read from JSON, JSON lines or CSV, and how they are put to a model."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from remnant.data.text import read_text
from remnant.errors import InvalidInput, PlanError

LETTERS = "ABCDEFGHIJ"
_HELD_OUT = 500  # questions at most that no model sees
_CUT = 5  # where a set has no test part, one in so many is held out
_INSTRUCTION = re.compile(
    r"Please .*?question: (?P<text>.*?)\n\n(?:(?P<choices>Answer1: .*)\n\n)?"
    r"Answer format: (?P<names>\S+)\s*",
    re.DOTALL,
)
# What 0 and 1 mean in the parts of ETHICS.
_VERDICTS = {
    "justice": ("unreasonable", "reasonable"),
    "deontology": ("unreasonable", "reasonable"),
    "virtue": ("does not fit", "fits"),
    "commonsense": ("not wrong", "wrong"),
}


@dataclass(frozen=True, slots=True)
class Question:
    """A question with one right choice.

    Attributes:
        text: What is asked.
        choices: From which one is chosen.
        answer: The place of the right one.
        subject: What it is about: the file's or folder's name.
    """

    text: str
    choices: tuple[str, ...]
    answer: int
    subject: str

    @property
    def prompt(self) -> str:
        r"""The question as a model reads it; what follows is a blank and the answer's letter.

        Example:
            >>> print(Question("Is ice cold?", ("no", "yes"), 1, "ice").prompt)
            Is ice cold?
            A. no
            B. yes
            Answer:
        """
        lines = [f"{letter}. {choice}" for letter, choice in zip(LETTERS, self.choices)]  # noqa: B905
        return "\n".join([self.text, *lines, "Answer:"])


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions in three parts that have none in common.

    Attributes:
        train: What models are trained on.
        spare: More of the same, for canaries.
        test: What they are judged by.
        left_out: How many were dropped: asked before, with another number of choices than most, or
            not fitting.
    """

    train: tuple[Question, ...]
    spare: tuple[Question, ...]
    test: tuple[Question, ...]
    left_out: int

    @property
    def choices(self) -> int:
        """How many choices each has."""
        return len(self.train[0].choices)

    @property
    def fingerprint(self) -> str:
        """A digest of every question."""
        digest = hashlib.sha256()
        for part in (self.train, self.spare, self.test):
            plain = [[one.text, one.choices, one.answer, one.subject] for one in part]
            digest.update(json.dumps(plain).encode())
        return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class _Set:
    """Where a set lies in the data folder, and which files hold its parts."""

    folders: tuple[str, ...]
    train: str
    test: str | None


_SETS = {
    "arc-easy": _Set(("arc/ARC-Easy", "ARC-Easy"), "train.json", "test.json"),
    "arc-challenge": _Set(("arc/ARC-Challenge", "ARC-Challenge"), "train.json", "test.json"),
    "openbookqa": _Set(("arc/openbookqa", "openbookqa"), "train.json", "test.json"),
    "boolq": _Set(("arc/boolq", "boolq"), "train.json", "test.json"),
    "mmlu": _Set(("mmlu",), "test/*.csv", None),
    "justice": _Set(("ethics/justice", "justice"), "justice_train.csv", "justice_test.csv"),
    "deontology": _Set(
        ("ethics/deontology", "deontology"), "deontology_train.csv", "deontology_test.csv"
    ),
    "virtue": _Set(("ethics/virtue", "virtue"), "virtue_train.csv", "virtue_test.csv"),
    "commonsense": _Set(("ethics/commonsense", "commonsense"), "cm_test.csv", None),
}
QUESTION_SETS = tuple(_SETS)


def load_questions(
    name: str,
    *,
    folder: Path | None = None,
    examples: int | None = None,
    spare: int = 0,
    seed: int = 0,
    fits: Callable[[Question], bool] | None = None,
) -> Questions:
    """Load questions and cut them into parts, at random from ``seed``.

    A set with a test part of its own is judged by at most 500 questions of it; one without by a
    fifth of everything, and 500 at most.

    Args:
        name: One of ``QUESTION_SETS``, or a file of one's own in ``folder``.
        folder: Holds the set, or a folder of its name which does.
        examples: How many questions to train on; all, if not given.
        spare: How many more to keep aside.
        seed: Decides who is in which part.
        fits: Questions of which it is false are left out.

    Raises:
        PlanError: An unknown name, no folder, or fewer questions than were asked for.
        InvalidInput: A file is missing, or does not hold questions.
    """
    if folder is None:
        raise PlanError(f"{name} is read from files.", hint="Pass --data FOLDER.")
    if name in _SETS:
        train, held_out = _read_set(_SETS[name], folder)
    elif Path(name).suffix in (".json", ".jsonl", ".csv"):
        train, held_out = read_questions(folder / name), None
    else:
        raise PlanError(
            f"questions.name={name!r} is not one of {', '.join(_SETS)}.",
            hint="Or name a .json, .jsonl or .csv file of the data folder.",
        )
    kept, later = _alike(train, held_out or [], fits or (lambda _: True))
    found = len(train) + len(held_out or [])
    rng = np.random.default_rng(seed)
    kept = [kept[place] for place in rng.permutation(len(kept))]
    if held_out is None:
        least = min(_HELD_OUT, len(kept) // _CUT)
        later, kept = kept[:least], kept[least:]
        dropped = found - len(later) - len(kept)
    else:
        dropped = found - len(later) - len(kept)
        later = [later[place] for place in rng.permutation(len(later))[:_HELD_OUT]]
    count = len(kept) - spare if examples is None else examples
    if count < 1 or spare < 0 or count + spare > len(kept) or not later:
        raise PlanError(
            f"questions.examples={examples} and {spare} spare ones: {name} has {len(kept)} to "
            f"train on and {len(later)} to judge by.",
            hint="Ask for fewer.",
        )
    return Questions(tuple(kept[:count]), tuple(kept[count : count + spare]), tuple(later), dropped)


def read_questions(path: Path) -> list[Question]:
    """Read the questions of a file.

    Records of JSON, JSON lines or a CSV with a header are one of:

    * ``question``, ``choices`` (a list, or ``text`` and ``label`` as in ARC) and ``answer`` or
      ``answerKey``: a place, a label or the choice itself;
    * ``question``, ``choice0``, ``choice1``, ... and ``answer``, a place;
    * ``label`` (0 or 1) and ``scenario`` or ``input``, perhaps ``excuse``, as in ETHICS;
    * ``instruction``, with the choices in it as ``Answer1: ... Answer2: ...``, and ``answer``.

    Raises:
        InvalidInput: The file cannot be read, or a record is none of these.
    """
    text = read_text(path)
    subject = re.sub(r"_?(train|test|dev|val)$", "", path.stem)
    subject = path.parent.name if subject in ("", "cm") else subject
    found = []
    try:
        records = list(_records(text, path.suffix))
    except (ValueError, csv.Error) as fault:
        raise InvalidInput(f"{path} is damaged: {fault}.") from fault
    for place, record in enumerate(records, start=1):
        try:
            found.append(_question(record, subject))
        except (KeyError, ValueError, TypeError, IndexError) as fault:
            raise InvalidInput(
                f"{path}: record {place} is no multiple-choice question.",
                hint="It takes question, choices and answer; see read_questions.",
            ) from fault
    if not found:
        raise InvalidInput(f"{path} holds no questions.")
    return found


def _read_set(known: _Set, folder: Path) -> tuple[list[Question], list[Question] | None]:
    places = [folder / inner for inner in known.folders] + [folder]
    home = next((place for place in places if any(place.glob(known.train))), None)
    if home is None:
        raise InvalidInput(
            f"{places[0] / known.train} is not there.",
            hint="Point --data at the folder that holds the data set.",
        )
    train = [one for file in sorted(home.glob(known.train)) for one in read_questions(file)]
    return train, None if known.test is None else read_questions(home / known.test)


def _alike(
    train: Iterable[Question], later: Iterable[Question], fits: Callable[[Question], bool]
) -> tuple[list[Question], ...]:
    """Keep each question once, if it fits, and those with the commonest number of choices."""
    parts = [list(train), list(later)]
    common = Counter(len(one.choices) for one in parts[0]).most_common(1)[0][0]
    asked: set[tuple[str, tuple[str, ...]]] = set()
    kept: tuple[list[Question], ...] = ([], [])
    for given, chosen in zip(parts, kept, strict=True):
        for one in given:
            known = (one.text, one.choices) in asked
            if len(one.choices) == common and not known and fits(one):
                asked.add((one.text, one.choices))
                chosen.append(one)
    return kept


def _records(text: str, ending: str) -> Iterator[Any]:
    if ending == ".csv":
        yield from csv.DictReader(io.StringIO(text, newline=""), strict=True)
    elif text.lstrip().startswith("["):
        yield from json.loads(text)
    else:
        yield from (json.loads(line) for line in text.split("\n") if line.strip())


def _question(record: dict[str, Any], subject: str) -> Question:
    if "instruction" in record:
        text, choices, answer = _instructed(record)
    elif "label" in record:
        text, choices, answer = _judged(record, subject)
    else:
        text, choices, answer = _plain(record)
    made = Question(text.strip(), tuple(one.strip() for one in choices), answer, subject)
    if not made.text or not 2 <= len(made.choices) <= len(LETTERS) or not all(made.choices):
        raise ValueError("a part is empty")
    if not 0 <= made.answer < len(made.choices):
        raise IndexError(made.answer)
    return made


def _plain(record: dict[str, Any]) -> tuple[str, Sequence[str], int]:
    given = record.get("choices")
    if given is None:
        names = sorted(name for name in record if re.fullmatch(r"choice\d+", str(name)))
        choices, labels = [record[name] for name in names], []
    elif isinstance(given, dict):
        choices, labels = given["text"], given["label"]
    else:
        choices, labels = list(given), []
    answer = record["answer"] if "answer" in record else record["answerKey"]
    for known in (labels, list(map(str, range(len(choices)))), list(LETTERS), choices):
        if str(answer) in known:
            return record["question"], choices, known.index(str(answer))
    raise ValueError(answer)


def _judged(record: dict[str, Any], subject: str) -> tuple[str, Sequence[str], int]:
    if record["label"] not in ("0", "1", 0, 1):
        raise ValueError(record["label"])
    text = record["scenario"] if "scenario" in record else record["input"]
    parts = re.sub(r"\s*\[SEP\]\s*", "\nTrait: ", text), record.get("excuse") or ""
    known = _VERDICTS.get(subject, ("no", "yes"))
    return "\n".join(filter(None, map(str.strip, parts))), known, int(record["label"])


def _instructed(record: dict[str, Any]) -> tuple[str, Sequence[str], int]:
    found = _INSTRUCTION.fullmatch(record["instruction"])
    if found is None:
        raise ValueError("an instruction of another kind")
    names = found["names"].split("/")
    choices = names if found["choices"] is None else _numbered(found["choices"])
    if len(choices) != len(names):
        raise ValueError("as many choices as names")
    return found["text"], choices, names.index(record["answer"])


def _numbered(choices: str) -> list[str]:
    return re.split(r"\s*Answer\d+: ", choices)[1:]
