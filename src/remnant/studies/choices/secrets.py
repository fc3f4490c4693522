"""The secrets that a trial's models are measured on: drawn and laid out once for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from remnant.canaries import Canary, Template
from remnant.models import LanguageModel, Vocabulary
from remnant.plans.order import generator
from remnant.plans.plan import SPLIT
from remnant.probes import Asked, PathTree, lay_out
from remnant.search import compile_template
from remnant.search.automaton import Automaton
from remnant.studies.choices.prepared import PreparedVariant
from remnant.studies.exposure.audit import ReadCosts


@dataclass(frozen=True, slots=True, eq=False)
class TrialCosts:
    """Costs of the canaries and the controls of a trial, each with those of the references.

    Attributes:
        canaries, controls: Read in one pass; both have the nodes of this pass.
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
        """Return what a model pays for all of them, read in one pass."""
        counter = Asked(model, self._automaton.prefix)
        canaries, controls, references = np.split(
            self._tree.costs(counter), [self._canaries, self._canaries + self._controls]
        )
        return TrialCosts(
            *(
                ReadCosts(self._automaton, own, references, counter.nodes)
                for own in (canaries, controls)
            )
        )


@lru_cache(maxsize=8)
def compiled(vocabulary: Vocabulary, template: Template) -> Automaton:
    """Return the automaton of a template; one that all trials and variants share is made once."""
    return compile_template(vocabulary.encode, template)


def lay_out_trial(run: PreparedVariant, trial: int, *, references: int) -> TrialSecrets:
    """Lay out the secrets that the models of a trial are measured on.

    Args:
        run: Whose trial it is.
        trial: Its number.
        references: How many secrets a canary is ranked among.
    """
    template, vocabulary = run.study.secret.known, run.planted.vocabulary
    automaton = compiled(vocabulary, template)
    planted = run.planted.sets[trial]
    own = [template.text(canary.secret) for canary in (*planted.canaries, *planted.controls)]
    drawn = [canary.text for canary in references_of(run, trial, references=references)]
    begun = len(automaton.prefix)
    return TrialSecrets(
        automaton,
        lay_out([ids[begun:] for ids in vocabulary.encode_each([*own, *drawn])]),
        len(planted.canaries),
        len(planted.controls),
    )


def references_of(run: PreparedVariant, trial: int, *, references: int) -> list[Canary]:
    """Draw the secrets that a trial's canaries and controls are ranked among.

    Every trial has its own, the same during and after training and in all variants of one seed. If
    all trials had the same, an unlucky draw would move them all, and their spread would not show
    it.

    Guarantees:
        * As many as ``references``, or the whole space without the trial's own secrets.
        * A larger draw begins with the smaller one.
    """
    template, planted = run.study.secret.known, run.planted.sets[trial]
    own = [canary.secret for canary in (*planted.canaries, *planted.controls)]
    return template.sample(
        min(references, template.space - len(own)),
        rng=generator(run.plan.seed, SPLIT, trial),
        exclude=own,
    )
