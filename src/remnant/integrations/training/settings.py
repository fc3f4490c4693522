"""What an audit plants and what it is judged by: its arguments, checked together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from remnant.canaries import (
    CanarySet,
    ImageCanaries,
    OwnImages,
    OwnTexts,
    Template,
    deal_images,
    deal_texts,
    make_canary_set,
)
from remnant.canaries.canary_set import PlantedTexts
from remnant.canaries.dealing import tails
from remnant.errors import InvalidInput, require
from remnant.integrations.training.planting import StaggeredWindows
from remnant.integrations.training.state import own_seed
from remnant.measures.exposure.by_rank import limit_for
from remnant.studies.exposure.verdict import canaries_needed

Canaries = CanarySet | OwnTexts | OwnImages
_REPEATS = (1, 4, 16)
_REFERENCES = 2  # streams of random numbers, beside that of the canaries
_WINDOWS = 5


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class AuditSettings:
    """What an audit plants, and what it is judged by.

    Attributes:
        canaries: Canaries and controls.
        plan: ``"from-start"`` or ``"staggered"``.
        windows: Of a staggered plan: which window each canary is planted in; else None.
        coins: Whether each canary was planted by a fair coin of its own.
        limit, judged, share: The gate; see ``Audit``.
        references: Texts of a template that its canaries are ranked among while the training runs.
    """

    canaries: Canaries
    plan: str
    windows: StaggeredWindows | None
    coins: bool
    limit: float | None
    judged: int | None
    share: float | None
    references: list[str]

    @classmethod
    def checked(
        cls,
        template: str | Template | None,
        canaries: CanarySet | Sequence[str] | ImageCanaries | None,
        *,
        out: Path,
        limit: float | Literal["auto"] | None,
        judged: int | None,
        share: float | None,
        plan: str,
        windows: int,
        coins: bool,
        repeats: Sequence[int] | None,
        per_repeat: int,
        controls: int | Sequence[str],
        references: int,
        seed: int | None,
        every: int | None,
        overhead: float | None,
    ) -> AuditSettings:
        """Draw the canaries, and refuse arguments of ``Audit`` that are not what they should be.

        Raises:
            InvalidInput: All faults at once.
        """
        _check_types(
            {"limit": None if limit == "auto" else limit, "share": share, "overhead": overhead},
            {"judged": judged, "every": every, "references": references},
        )
        seed = own_seed(out) if seed is None else seed
        if repeats is None:
            repeats = (1,) if coins else _REPEATS
        if coins:
            per_repeat, controls = _tossed(canaries, repeats, per_repeat, controls, seed)
        drawn = _canary_set(
            template, canaries, repeats=repeats, per_repeat=per_repeat, controls=controls, seed=seed
        )
        settings = cls(
            canaries=drawn,
            plan=plan,
            windows=None,
            coins=coins,
            limit=_limit_of(drawn, judged) if limit == "auto" else limit,
            judged=judged,
            share=share,
            references=[],
        )
        _check_settings(
            settings, windows=windows, references=references, every=every, overhead=overhead
        )
        staggered = _draw_windows(drawn, windows) if plan == "staggered" else None
        return dataclasses.replace(
            settings, windows=staggered, references=_draw_references(drawn, references)
        )

    def record_plan(self) -> dict[str, Any]:
        """Return the plan of the record: another one is another audit."""
        canaries = self.canaries
        if isinstance(canaries, CanarySet):
            identity = {"template": canaries.template.pattern}
        else:
            kind = "texts" if isinstance(canaries, OwnTexts) else "images"
            identity = {kind: canaries.fingerprint}
        return {
            "kind": self.plan,
            **identity,
            "repeats": list(canaries.repeats),
            "controls": len(canaries.controls),
            "seed": canaries.seed,
            **({} if self.windows is None else {"windows": self.windows.count}),
            **({"coins": True} if self.coins else {}),
        }


def check_every(every: Any) -> None:
    """Refuse a number of steps between two scorings that is none.

    Raises:
        InvalidInput: It is not a whole number of at least 1.
    """
    _check_types({}, {"every": every})
    require([f"every={every} is not at least 1"] if every is not None and every < 1 else [])


def _canary_set(
    template: str | Template | None,
    canaries: CanarySet | Sequence[str] | ImageCanaries | None,
    *,
    repeats: Sequence[int],
    per_repeat: int,
    controls: int | Sequence[str],
    seed: int,
) -> Canaries:
    if (template is None) == (canaries is None):
        raise InvalidInput(
            "Give exactly one of template and canaries.",
            hint='For instance Audit(template="my pin is {digits:6}", out="audit").',
        )
    if isinstance(canaries, CanarySet):
        return canaries
    if not isinstance(repeats, Sequence):
        raise InvalidInput(
            f"repeats={repeats!r} is not a list of numbers.",
            hint="For instance repeats=(1, 4, 16).",
        )
    if isinstance(canaries, ImageCanaries):
        return deal_images(canaries, controls=controls, repeats=repeats, seed=seed)
    if canaries is not None:
        for name, given in (("canaries", canaries), ("controls", controls)):
            counted = name == "controls" and isinstance(given, int)
            if isinstance(given, str | bytes) or not (counted or isinstance(given, Sequence)):
                raise InvalidInput(
                    f"{name} is a {type(given).__name__}, not a list of texts.",
                    hint="Pass a list of texts, or a CanarySet made with "
                    "remnant.canaries.make_canary_set as canaries.",
                )
        return deal_texts(canaries, controls=controls, repeats=repeats, seed=seed)
    if not isinstance(controls, int):
        raise InvalidInput(
            f"controls is a {type(controls).__name__}; with a template it is how many secrets are "
            "never planted.",
            hint="For instance controls=20.",
        )
    made = template if isinstance(template, Template) else Template(str(template))
    if not len(repeats):
        return CanarySet(
            template=made,
            canaries=(),
            repeats=(),
            controls=make_canary_set(made, repeats=[1], controls=controls, seed=seed).controls,
            seed=seed,
        )
    return make_canary_set(
        made, repeats=repeats, per_repeat=per_repeat, controls=controls, seed=seed
    )


def _tossed(
    canaries: CanarySet | Sequence[str] | ImageCanaries | None,
    repeats: Sequence[int],
    per_repeat: int,
    controls: int | Sequence[str],
    seed: int,
) -> tuple[int, int]:
    """Toss a coin for each canary; return how many are planted, and how many are not.

    Which ones are planted is drawn at random where they are dealt, so that the coins are fair and
    independent.
    """
    faults = []
    if not isinstance(repeats, Sequence) or tuple(repeats) != (1,):
        faults.append(
            f"repeats={repeats!r} is not (1,), as coins= needs: epsilon is about one example, and "
            "a canary that is planted several times is several"
        )
    if isinstance(canaries, CanarySet):
        faults.append("coins= needs a template or examples of one's own, not a canary set")
    if not isinstance(controls, int):
        faults.append("coins= decides which examples are controls; controls= is a list")
    require(faults)
    count = per_repeat + int(controls) if canaries is None else len(canaries)  # type: ignore[arg-type]
    held_out = tails(count, seed=seed)
    return count - held_out, held_out


def _draw_windows(canaries: Canaries, count: int) -> StaggeredWindows:
    rng = np.random.default_rng([canaries.seed, _WINDOWS])
    return StaggeredWindows.draw(canaries, count=count, rng=rng)


def _draw_references(canaries: Canaries, references: int) -> list[str]:
    """Texts of a template that its canaries are ranked among while the training runs."""
    if not isinstance(canaries, CanarySet):
        return []
    template = canaries.template
    taken = [canary.secret for canary in (*canaries.canaries, *canaries.controls)]
    rng = np.random.default_rng([canaries.seed, _REFERENCES])
    room = min(references, template.space - len(taken))
    return [canary.text for canary in template.sample(room, rng=rng, exclude=taken)]


def _check_types(numbers: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
    """Refuse settings that are not numbers, before they are compared with any."""
    faults = [
        f"{name}={value!r} is not a {'whole number' if kind is int else 'number'}"
        for settings, kind in ((numbers, int | float), (whole, int))
        for name, value in settings.items()
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind))
    ]
    require(faults)


def _limit_of(canaries: PlantedTexts, judged: int | None) -> float:
    """The limit that chance alone reaches in at most 1 %."""
    if not isinstance(canaries, CanarySet):
        raise InvalidInput(
            "limit='auto' is for canaries of a template.",
            hint="With examples of one's own, pass the largest AUC that is allowed, such as 0.7.",
        )
    return limit_for(max(1, _judged_canaries(canaries, judged)))


def _judged_canaries(canaries: PlantedTexts, judged: int | None) -> int:
    return sum(often <= (math.inf if judged is None else judged) for often in canaries.repeats)


def _check_settings(
    audit: AuditSettings,
    *,
    windows: int,
    references: int,
    every: int | None,
    overhead: float | None,
) -> None:
    faults = []
    if audit.plan not in ("from-start", "staggered"):
        faults.append(f"plan={audit.plan!r} is neither 'from-start' nor 'staggered'")
    if windows < 1:
        faults.append(f"windows={windows} is not at least 1")
    if isinstance(audit.canaries, CanarySet):
        most = math.log2(audit.canaries.template.space)
        if audit.limit is not None and not 0 < audit.limit <= most:
            faults.append(
                f"limit={audit.limit:g} is not above 0 and at most {most:.1f}, the bits that a "
                "secret of this template can have"
            )
    else:
        if audit.limit is not None and not 0.5 < audit.limit < 1:
            faults.append(
                f"limit={audit.limit:g} is not above 0.5 and under 1: with examples of one's own "
                "it is the largest AUC that is allowed"
            )
        if audit.share is not None:
            faults.append("share= is for canaries of a template only")
    for name in ("judged", "share"):
        if getattr(audit, name) is not None and audit.limit is None:
            faults.append(f"{name}= needs limit=")
    least = min(audit.canaries.repeats, default=1)
    if audit.judged is not None and audit.judged < least:
        faults.append(
            f"judged={audit.judged} judges no canary: every canary is planted {least} times or more"
        )
    if audit.share is not None and not 0 < audit.share < 1:
        faults.append(f"share={audit.share:g} is not between 0 and 1")
    elif audit.share is not None:
        many, needed = _judged_canaries(audit.canaries, audit.judged), canaries_needed(audit.share)
        if 0 < many < needed:
            faults.append(
                f"share={audit.share:g} takes {needed} judged canaries for a PASS, and there "
                f"{'is' if many == 1 else 'are'} {many}"
            )
    if overhead is not None and not overhead > 0:
        faults.append(f"overhead={overhead:g} is not above 0")
    if every is not None and every < 1:
        faults.append(f"every={every} is not at least 1")
    if references < 1:
        faults.append(f"references={references} is not at least 1")
    require(faults)
