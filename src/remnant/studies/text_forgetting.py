"""How fast does a language model forget sequences that it saw? INJECT and POISON on text."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from remnant.data import Corpus, corpus_fingerprint
from remnant.errors import NotEnoughEvidence, PlanError, require
from remnant.measures import null_exposure, unseen_needed
from remnant.plans import InjectPlan, PoisonPlan, ShadowPlan
from remnant.plans.fingerprint import fingerprint, lasting
from remnant.records import Record
from remnant.studies.exposure_settings import LanguageModelSettings, TextSettings
from remnant.studies.lags import lag_grid
from remnant.studies.language_models import fit_language_models, load_text
from remnant.studies.machine import StepClock
from remnant.studies.planted_tokens import PlantedTokens, plant_tokens
from remnant.studies.recording import carry_out
from remnant.studies.settings import Execution, TrainingSettings
from remnant.studies.text_forgetting_results import measure_text_forgetting
from remnant.studies.text_forgetting_settings import TextAttackSettings, TextCanarySettings
from remnant.studies.text_training import (
    ask_trials,
    check_language_models,
    clean_updates,
    train_references,
    train_twins,
)
from remnant.studies.variants import Variant, difference, label_faults

Progress = Callable[[str, int, int], None]
_SECTIONS = ("text", "canaries", "model", "training", "attack")


@dataclass(frozen=True, kw_only=True)
class TextForgettingStudy:
    """One question, whole: the plan and all that changes its numbers.

    Attributes:
        plan: INJECT or POISON.
        label: What the study itself is called beside its variants.
        title: Of the figure that shows them together.
        compare: Variants, which have no A/A twins of their own.
    """

    plan: InjectPlan | PoisonPlan
    text: TextSettings = field(default_factory=TextSettings)
    canaries: TextCanarySettings = field(default_factory=TextCanarySettings)
    model: LanguageModelSettings = field(default_factory=LanguageModelSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 2e-3})
    )
    attack: TextAttackSettings = field(default_factory=TextAttackSettings)
    label: str = "as planned"
    title: str = "The same study, varied"
    compare: tuple[Variant[TextForgettingStudy], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "compare", tuple(self.compare))
        references, limit = self.canaries.references, self.attack.limit
        faults = label_faults([self.label, *(one.label for one in self.compare)])
        if self.plan.controls:
            faults.append(
                f"plan.controls={self.plan.controls}: here canaries.references are the controls"
            )
        chance, ceiling = null_exposure(references), float(np.log2(references + 1))
        if not chance < limit < ceiling:
            faults.append(
                f"attack.limit={limit:g} is not between {chance:.2f} bits, which chance gives, and "
                f"{ceiling:.2f}, the most that {references} references can show"
            )
        require(faults, error=PlanError, hint="Mend the recipe.")
        if references < unseen_needed(self.attack.fpr):
            raise NotEnoughEvidence(
                f"canaries.references={references} cannot place a threshold at "
                f"attack.fpr={self.attack.fpr:g}; it takes at least "
                f"{unseen_needed(self.attack.fpr)}.",
                hint="Draw more references, or ask for a larger fpr.",
            )
        self.lags()

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, one group a part."""
        made: dict[str, Any] = {"question": "text-forgetting", "plan": self.plan.to_dict()}
        for name in _SECTIONS:
            made[name] = dataclasses.asdict(getattr(self, name))
        made["attack"]["lags"] = list(self.attack.lags)
        if self.compare:
            others = [
                {"label": one.label, **difference(made, one.study.to_dict())}
                for one in self.compare
            ]
            made |= {"label": self.label, "title": self.title, "compare": others}
        return made

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        return fingerprint(lasting(self, self.to_dict()))

    def lags(self) -> list[int]:
        """Return the lags at which the models are asked."""
        return lag_grid(self.plan.watch_steps, self.attack.lags)

    def parts(self) -> dict[str, TextForgettingStudy]:
        """Return the study alone and its variants, by name."""
        made = {"primary": dataclasses.replace(self, compare=())}
        for i, variant in enumerate(self.compare, start=1):
            plan = dataclasses.replace(variant.study.plan, aa=False)
            made[f"variant{i}"] = dataclasses.replace(variant.study, plan=plan, compare=())
        return made

    def reference_plan(self) -> ShadowPlan | None:
        """Return the plan of the reference models, where the attack is calibrated by them.

        They are asked after as many clean updates as the members have had.
        """
        if self.attack.calibration != "references":
            return None
        return ShadowPlan(
            models=self.attack.reference_models,
            steps=max(1, clean_updates(self.plan) + self.plan.watch_steps),
            batch=self.plan.batch,
            seed=self.plan.seed,
            fraction=self.attack.fraction,
            sampling=self.plan.sampling,
            precision=self.plan.precision,
        )


def run_text_forgetting(
    study: TextForgettingStudy,
    folder: Path,
    execution: Execution,
    *,
    progress: Progress | None = None,
) -> None:
    """Carry out the study in ``folder``: train, probe, measure. A run that was cut short goes on.

    The canaries follow from the plan's seed and are nowhere written down.

    Raises:
        RemnantError: Anything the user can mend; the folder then holds nothing new.
    """
    texts = {name: load_text(part.text, execution) for name, part in study.parts().items()}
    planted = {name: _planted(part, texts[name]) for name, part in study.parts().items()}
    for name, part in study.parts().items():
        check_language_models(part, planted[name], execution)
    prints = list(dict.fromkeys(corpus_fingerprint(text) for text in texts.values()))
    carry_out(
        study,
        folder,
        execution,
        data_fingerprint=(
            prints[0]
            if len(prints) == 1
            else hashlib.sha256("".join(prints).encode()).hexdigest()[:16]
        ),
        seeds={"plan": study.plan.seed, "text": study.text.seed},
        work=lambda record: _carry_out(study, planted, execution, record, progress),
    )


def estimate_text_forgetting(study: TextForgettingStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take."""
    members, steps, seconds, memory = 0, 0, 0.0, 0.0
    for part in study.parts().values():
        planted = _planted(part, load_text(part.text, execution))
        check_language_models(part, planted, execution)
        plan = part.plan
        short = dataclasses.replace(plan, step=6, repeats=1, watch_steps=6)
        clock = StepClock(execution.device)
        fit, population = fit_language_models(part, short, planted, execution, on_step=clock)
        gaps = [after - before for before, after in itertools.pairwise(clock.times)]
        first, later = sorted(gaps[:4])[1], sorted(gaps[-5:])[2]
        seconds += first * plan.checkpoint_step + later * (plan.steps - plan.checkpoint_step)
        clock(0)
        ask_trials(part, planted)(population)
        clock(0)
        seconds += (clock.times[-1] - clock.times[-2]) * len(part.lags())
        members, steps = members + plan.members, steps + plan.steps
        memory = max(memory, fit.memory + planted.store.nbytes)
        shadow = part.reference_plan()
        if shadow is not None:
            members, steps = members + shadow.members, steps + shadow.steps
            seconds += later * shadow.steps * shadow.members / plan.members
    return {
        "members": members,
        "steps": steps,
        "memory_mib": round(memory / 2**20, 1),
        "minutes": round(seconds / 60, 2),
    }


def _planted(study: TextForgettingStudy, text: Corpus) -> PlantedTokens:
    return plant_tokens(study.plan, study.canaries, study.text, text)


def _carry_out(
    study: TextForgettingStudy,
    planted: dict[str, PlantedTokens],
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    for name, part in study.parts().items():
        if f"{name}.signals" not in record.array_names():
            train_twins(part, name, planted[name], execution, record, progress)
        shadow = part.reference_plan()
        if shadow is not None and f"{name}.reference_bits" not in record.array_names():
            train_references(part, shadow, name, planted[name], execution, record, progress)
    first = planted["primary"]
    ledger = study.plan.ledger(examples=first.examples)
    record.put_ledger(
        {name: getattr(ledger, name) for name in ("member", "canary", "step", "uses")}
    )
    bits = record.array("primary.validation_bits")
    record.put_result(
        "task",
        {
            "validation_bits": float(bits[study.plan.members_of("planted")].mean()),
            "validation_tokens": int(first.validation[:, 1:].size),
            "token": study.text.level,
            "uniform_bits": math.log2(first.vocabulary.size),
        },
    )
    measure_text_forgetting(record, study, examples=first.examples, tokens=first.tokens)
    record.finish()
