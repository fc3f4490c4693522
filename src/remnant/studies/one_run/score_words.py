"""How the page of a run speaks of the score by which the attack sorts canaries."""

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
