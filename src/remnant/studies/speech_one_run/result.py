"""What a run of a recogniser with utterances planted along the way measured."""

from __future__ import annotations

from dataclasses import dataclass

from remnant.records.typed import Absent
from remnant.studies.one_run.result import OneRunCurves
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.result_parts import Gate, SpeechTask, Tested


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SpeechOneRunResult(QuestionResult):
    """What a run of the question ``speech-one-run`` recorded.

    Attributes:
        one_run: Attack success at every checkpoint. The score of an utterance is minus the cost of
            its transcript given its sound, so that ``effect`` is how many bits planting saved.
        task: How well the recogniser hears utterances that it was not trained on.
    """

    verdict: Gate | Absent
    one_run: OneRunCurves | Absent
    task: SpeechTask | Absent
    scope: Tested | Absent
