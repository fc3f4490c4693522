"""The page of a recogniser's run with utterances planted along the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from remnant.report.blocks import Block
from remnant.studies.one_run.page import run_blocks
from remnant.studies.one_run.score_words import ScoreWords
from remnant.studies.shared.pages import RunFacts
from remnant.studies.speech_one_run.result import SpeechOneRunResult

TITLE = "One-run forgetting of speech"
COST = ScoreWords(
    unit="bits",
    axis="Cost saved by planting",
    section="What planting did to the cost of the transcripts",
    effect="The chart shows how many bits planting took off the cost of the canaries’ "
    "transcripts, on average: the fall of their cost since before the window, less the fall of "
    "those never planted.",
    attack="how little its transcript costs the model given its sound (the cost is the negative "
    "base-2 logarithm of the transcript’s CTC probability; a canary of two speakers has the mean "
    "of both)",
)
_PLANTED = {
    "spoken": "Canaries are sentences of random words, spoken by synthetic voices.",
    "wrong": "Canaries are recordings with random words as a wrong transcript.",
}


def page(result: SpeechOneRunResult, run: RunFacts) -> Iterator[Block]:
    """Yield the blocks of the page."""
    canaries = run.recipe.get("canaries")
    kind = canaries.get("kind") if isinstance(canaries, Mapping) else None
    yield from run_blocks(result, run, COST, planted=_PLANTED.get(str(kind), ""))
