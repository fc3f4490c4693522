"""A multiple-choice question, and how it is put to a language model."""

from __future__ import annotations

from dataclasses import dataclass

LETTERS = "ABCDEFGHIJ"


@dataclass(frozen=True, slots=True)
class MultipleChoice:
    """A question with one right choice.

    Attributes:
        text: The question.
        choices: The possible answers.
        answer: Index of the right choice.
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
            >>> print(MultipleChoice("Is ice cold?", ("no", "yes"), 1, "ice").prompt)
            Is ice cold?
            A. no
            B. yes
            Answer:
        """
        lines = [f"{letter}. {choice}" for letter, choice in zip(LETTERS, self.choices)]  # noqa: B905
        return "\n".join([self.text, *lines, "Answer:"])
