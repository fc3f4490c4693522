"""The question sets that a recipe can name: published sets or a file, split into parts.

Files are JSON, JSON lines or CSV, laid out as those of the published sets.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from remnant.data.own_files import Origin, OwnFiles, with_origin
from remnant.data.own_questions import QuestionFields, own_questions
from remnant.data.question import LETTERS, MultipleChoice
from remnant.data.text import read_text
from remnant.errors import InvalidInput, PlanError

_HELD_OUT = 500  # questions at most that no model sees
_CUT = 5  # where a set has no test part, one in so many is held out


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions in three parts that have none in common.

    Attributes:
        train: What models are trained on.
        spare: More of the same, for canaries.
        test: What they are judged by.
        left_out: How many were dropped: repeated, with an unusual number of choices, or rejected by
            ``fits``.
        origin: The user's own files that they were read from; None for ``load_questions``.
    """

    train: tuple[MultipleChoice, ...]
    spare: tuple[MultipleChoice, ...]
    test: tuple[MultipleChoice, ...]
    left_out: int
    origin: Origin | None = None

    @property
    def choices(self) -> int:
        """How many choices each has."""
        return len(self.train[0].choices)

    @property
    def fingerprint(self) -> str:
        """A digest of every question, and of the user's own files."""
        digest = hashlib.sha256()
        for part in (self.train, self.spare, self.test):
            plain = [
                [question.text, question.choices, question.answer, question.subject]
                for question in part
            ]
            digest.update(json.dumps(plain).encode())
        return with_origin(digest.hexdigest()[:16], self.origin)


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
    "agnews": _Set(("agnews-subset", "agnews"), "train.csv", "test.csv"),
    "sst2": _Set(("sst2",), "train.tsv", "test.tsv"),
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
    fits: Callable[[MultipleChoice], bool] | None = None,
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
    elif Path(name).suffix in (".json", ".jsonl", ".csv", ".tsv"):
        train, held_out = read_questions(folder / name), None
    else:
        raise PlanError(
            f"questions.name={name!r} is not one of {', '.join(_SETS)}.",
            hint="Or name a .json, .jsonl, .csv or .tsv file of the data folder.",
        )
    return _cut(train, held_out, name, examples=examples, spare=spare, seed=seed, fits=fits)


def load_own_questions(
    files: OwnFiles,
    fields: QuestionFields,
    *,
    examples: int | None = None,
    spare: int = 0,
    seed: int = 0,
    fits: Callable[[MultipleChoice], bool] | None = None,
) -> Questions:
    """Load the user's own questions or labelled texts and cut them into parts.

    Args:
        files, fields: See ``own_questions``.
        examples, spare, seed, fits: As for ``load_questions``.

    Raises:
        InvalidInput: The files are not what they should be.
        PlanError: They hold fewer questions than were asked for.
    """
    train, held_out, origin = own_questions(files, fields)
    made = _cut(
        *(train, held_out, files.path), examples=examples, spare=spare, seed=seed, fits=fits
    )
    return replace(made, origin=origin)


def _cut(
    train: list[MultipleChoice],
    held_out: list[MultipleChoice] | None,
    name: str,
    *,
    examples: int | None,
    spare: int,
    seed: int,
    fits: Callable[[MultipleChoice], bool] | None,
) -> Questions:
    """Leave out what does not fit, and cut the others into parts, at random from ``seed``."""
    kept, later = _alike(train, held_out or [], fits or (lambda _: True))
    total = len(train) + len(held_out or [])
    rng = np.random.default_rng(seed)
    kept = [kept[place] for place in rng.permutation(len(kept))]
    if held_out is None:
        least = min(_HELD_OUT, len(kept) // _CUT)
        later, kept = kept[:least], kept[least:]
        dropped = total - len(later) - len(kept)
    else:
        dropped = total - len(later) - len(kept)
        later = [later[place] for place in rng.permutation(len(later))[:_HELD_OUT]]
    count = len(kept) - spare if examples is None else examples
    if count < 1 or spare < 0 or count + spare > len(kept) or not later:
        raise PlanError(
            f"questions.examples={examples} and {spare} spare ones: {name} has {len(kept)} to "
            f"train on and {len(later)} to judge by.",
            hint="Ask for fewer.",
        )
    return Questions(tuple(kept[:count]), tuple(kept[count : count + spare]), tuple(later), dropped)


def _read_set(
    known: _Set, folder: Path
) -> tuple[list[MultipleChoice], list[MultipleChoice] | None]:
    places = [folder / inner for inner in known.folders] + [folder]
    home = next((place for place in places if any(place.glob(known.train))), None)
    if home is None:
        raise InvalidInput(
            f"{places[0] / known.train} is not there.",
            hint="Point --data at the folder that holds the data set.",
        )
    train = [
        question for file in sorted(home.glob(known.train)) for question in read_questions(file)
    ]
    return train, None if known.test is None else read_questions(home / known.test)


def _alike(
    train: Iterable[MultipleChoice],
    later: Iterable[MultipleChoice],
    fits: Callable[[MultipleChoice], bool],
) -> tuple[list[MultipleChoice], ...]:
    """Keep each question once, if it fits, and those with the commonest number of choices."""
    parts = [list(train), list(later)]
    common = Counter(len(question.choices) for question in parts[0]).most_common(1)[0][0]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    kept: tuple[list[MultipleChoice], ...] = ([], [])
    for given, chosen in zip(parts, kept, strict=True):
        for question in given:
            known = (question.text, question.choices) in seen
            if len(question.choices) == common and not known and fits(question):
                seen.add((question.text, question.choices))
                chosen.append(question)
    return kept


_INSTRUCTION = re.compile(
    r"Please .*?question: (?P<text>.*?)\n\n(?:(?P<choices>Answer1: .*)\n\n)?"
    r"Answer format: (?P<names>\S+)\s*",
    re.DOTALL,
)
# What labels mean, in the parts of ETHICS and in sets of texts to be classified.
_MEANINGS = {
    "justice": ("unreasonable", "reasonable"),
    "deontology": ("unreasonable", "reasonable"),
    "virtue": ("does not fit", "fits"),
    "commonsense": ("not wrong", "wrong"),
    "sst2": ("negative", "positive"),
    "agnews": ("world", "sports", "business", "technology"),
}


def read_questions(path: Path) -> list[MultipleChoice]:
    """Read the questions of a file.

    Records of JSON, JSON lines or a table with a header are one of:

    * ``question``, ``choices`` (a list, or ``text`` and ``label`` as in ARC) and ``answer`` or
      ``answerKey``: a place, a label or the choice itself;
    * ``question``, ``choice0``, ``choice1``, ... and ``answer``, a place;
    * ``label`` (0 or 1) and ``scenario`` or ``input``, perhaps ``excuse``, as in ETHICS; or
      ``text`` that is to be classified, in tables without a header too (AG News, SST-2);
    * ``instruction``, with the choices in it as ``Answer1: ... Answer2: ...``, and ``answer``.

    Raises:
        InvalidInput: The file cannot be read, or a record is none of these.
    """
    text = read_text(path)
    subject = re.sub(r"_?(train|test|dev|val)$", "", path.stem)
    subject = path.parent.name if subject in ("", "cm") else subject
    questions = []
    try:
        records = list(_records(text, path.suffix))
    except (ValueError, csv.Error) as fault:
        raise InvalidInput(f"{path} is damaged: {fault}.") from fault
    for place, record in enumerate(records, start=1):
        try:
            questions.append(_question(record, subject))
        except (KeyError, ValueError, TypeError, IndexError, StopIteration) as fault:
            raise InvalidInput(
                f"{path}: record {place} is no multiple-choice question.",
                hint="It takes question, choices and answer; see read_questions.",
            ) from fault
    if not questions:
        raise InvalidInput(f"{path} holds no questions.")
    return questions


def _records(text: str, ending: str) -> Iterator[Any]:
    if ending == ".csv":
        bare = ("label", "text") if re.match(r"\d+,", text) else None
        yield from csv.DictReader(io.StringIO(text, newline=""), bare, strict=True)
    elif ending == ".tsv":
        for line in filter(str.strip, text.split("\n")):
            said, _, label = line.rpartition("\t")
            yield {"text": said, "label": label}
    elif text.lstrip().startswith("["):
        yield from json.loads(text)
    else:
        yield from (json.loads(line) for line in text.split("\n") if line.strip())


def _question(record: dict[str, Any], subject: str) -> MultipleChoice:
    if "instruction" in record:
        text, choices, answer = _instructed(record)
    elif "label" in record:
        text, choices, answer = _judged(record, subject)
    else:
        text, choices, answer = _plain(record)
    made = MultipleChoice(
        text.strip(), tuple(choice.strip() for choice in choices), answer, subject
    )
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
    text = next(record[name] for name in ("scenario", "input", "text") if name in record)
    parts = re.sub(r"\s*\[SEP\]\s*", "\nTrait: ", text), record.get("excuse") or ""
    known = _MEANINGS.get(subject.removesuffix("-subset"), ("no", "yes"))
    return "\n".join(filter(None, map(str.strip, parts))), known, int(record["label"])


def _instructed(record: dict[str, Any]) -> tuple[str, Sequence[str], int]:
    match = _INSTRUCTION.fullmatch(record["instruction"])
    if match is None:
        raise ValueError("an instruction of another kind")
    names = match["names"].split("/")
    choices = names if match["choices"] is None else _numbered(match["choices"])
    if len(choices) != len(names):
        raise ValueError("as many choices as names")
    return match["text"], choices, names.index(record["answer"])


def _numbered(choices: str) -> list[str]:
    return re.split(r"\s*Answer\d+: ", choices)[1:]
