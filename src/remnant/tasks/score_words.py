"""What the score of each kind of model is, in words: by it the attack sorts canaries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreWords:
    """What a score is, in the words of a page.

    Attributes:
        unit: Of the score and of what planting did to it, such as ``nats``.
        axis: What the chart of the effect shows, without the unit.
        section: Title of the section about the effect.
        effect: What the chart of the effect shows, as a sentence.
        attack: What the attack scores a canary by; it follows "It scores each canary by".
    """

    unit: str
    axis: str
    section: str
    effect: str
    attack: str


LOG_ODDS = ScoreWords(
    unit="nats",
    axis="Effect on the log-odds",
    section="What planting did to the model’s confidence",
    effect="The chart shows how much planting raised the model’s confidence in the canaries, on "
    "average: the rise in their log-odds since before the window, less the rise of those never "
    "planted.",
    attack="the model’s log-odds for it, that is, how sure the model is of its label",
)


def _cost(attack: str, *, things: str, whose: str) -> ScoreWords:
    """The words of a score that is minus a cost in bits."""
    return ScoreWords(
        unit="bits",
        axis="Cost saved by planting",
        section=f"What planting did to the cost of the {things}",
        effect=f"The chart shows how many bits planting took off the cost of the {whose}, on "
        "average: the fall of their cost since before the window, less the fall of those never "
        "planted.",
        attack=attack,
    )


SEQUENCE_COST = _cost(
    "how little it costs the model given the text before it (the cost is the negative base-2 "
    "logarithm of the sequence’s probability)",
    things="sequences",
    whose="canaries",
)
TRANSCRIPT_COST = _cost(
    "how little its transcript costs the model given its sound (the cost is the negative base-2 "
    "logarithm of the transcript’s CTC probability; a canary of two speakers has the mean of both)",
    things="transcripts",
    whose="canaries’ transcripts",
)
TARGET_COST = _cost(
    "how little its target costs the model given its source (the cost is the negative base-2 "
    "logarithm of the target’s probability)",
    things="targets",
    whose="canaries’ targets",
)
