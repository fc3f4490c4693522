"""The secrets that a trial's models are asked about: drawn and laid out once, read by each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from remnant.canaries import Canary
from remnant.models import LanguageModel
from remnant.plans.order import generator
from remnant.plans.plan import SPLIT
from remnant.probes import Asked, PathTree, lay_out
from remnant.search import compile_template
from remnant.search.automaton import Automaton
from remnant.studies.exposure_audit import ReadCosts

if TYPE_CHECKING:
    from remnant.studies.exposure_training_population import Run


@dataclass(frozen=True, slots=True, eq=False)
class TrialCosts:
    """What a model pays for the canaries and the controls of its trial, and for the references.

    Attributes:
        canaries, controls: Read in one pass, whose nodes both tell.
    """

    canaries: ReadCosts
    controls: ReadCosts


@dataclass(frozen=True, slots=True, eq=False)
class TrialSecrets:
    """Canaries, controls and references of one trial, laid out for any of its models."""

    _automaton: Automaton
    _tree: PathTree
    _canaries: int
    _controls: int

    def costs(self, model: LanguageModel) -> TrialCosts:
        """Ask a model about all of them, in one pass."""
        asked = Asked(model, self._automaton.prefix)
        found = self._tree.costs(asked)
        canaries, controls, references = np.split(
            found, [self._canaries, self._canaries + self._controls]
        )
        return TrialCosts(
            *(
                ReadCosts(self._automaton, own, references, asked.nodes)
                for own in (canaries, controls)
            )
        )


def lay_out_trial(run: Run, trial: int, *, references: int) -> TrialSecrets:
    """Lay out what the models of a trial are asked about.

    Args:
        run: Whose trial it is.
        trial: Its number.
        references: How many secrets a canary is ranked among.
    """
    template, vocabulary = run.study.secret.known, run.planted.vocabulary
    automaton = compile_template(vocabulary.encode, template)
    planted = run.planted.sets[trial]
    own = [template.text(one.secret) for one in (*planted.canaries, *planted.controls)]
    drawn = [one.text for one in references_of(run, trial, references=references)]
    begun = len(automaton.prefix)
    return TrialSecrets(
        automaton,
        lay_out([ids[begun:] for ids in vocabulary.encode_each([*own, *drawn])]),
        len(planted.canaries),
        len(planted.controls),
    )


def references_of(run: Run, trial: int, *, references: int) -> list[Canary]:
    """Draw the secrets that a trial's canaries and controls are ranked among.

    Every trial has its own, the same at all looks, after training and in all variants of one seed.
    Had all trials the same, an unlucky draw would move them all, and their spread would not show
    it.

    Guarantees:
        * As many as are asked for, or all of the space but the trial's own secrets.
        * More of them begin with fewer of them.
    """
    template, planted = run.study.secret.known, run.planted.sets[trial]
    own = [one.secret for one in (*planted.canaries, *planted.controls)]
    return template.sample(
        min(references, template.space - len(own)),
        rng=generator(run.plan.seed, SPLIT, trial),
        exclude=own,
    )
