"""``remnant audit --checkpoints``: how fast a finished training forgot its records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from remnant.cli.options import declared, out_folder
from remnant.cli.options.classifier_options import refuse_unused
from remnant.cli.options.naming import naming
from remnant.cli.output import amount, command_page, json_text, print_page
from remnant.cli.terminal import show
from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.progress import ProgressBar

_NAMES = declared.option_names(
    *("checkpoints", "ledger", "seen", "unseen", "limit", "fpr", "confidence", "success", "out"),
    *("field", "base", "device"),
) | {"folder": "--checkpoints"}
_OF_MODELS = (
    *("control", "group", "label_field", "architecture", "options", "maker", "mean", "std"),
    *("shape", "device_map", "precision"),
)
_ATTACKS = ("loss", "ratio")


def need_one_kind(
    model: Path | None, checkpoints: str | None, ledger: Path | None
) -> tuple[str, Path]:
    """Return the pattern and the ledger, where these are given instead of a model.

    Raises:
        InvalidInput: Neither a model nor checkpoints are given, or both; or one of pattern and
            ledger is missing.
    """
    if model is not None:
        raise InvalidInput(
            "--model is given with --checkpoints or --ledger.",
            hint="Pass a model, or checkpoints with their ledger.",
        )
    if checkpoints is None and ledger is None:
        raise InvalidInput(
            "--model is missing.",
            hint="Pass --model, or --checkpoints and --ledger to see how fast a training forgot.",
        )
    if checkpoints is None or ledger is None:
        missing = "--checkpoints" if checkpoints is None else "--ledger"
        raise InvalidInput(
            f"{missing} is missing: --checkpoints and --ledger belong together.",
            hint="The ledger says which update's batch held which row.",
        )
    return checkpoints, ledger


def audit_checkpoints(
    pattern: str,
    ledger: Path,
    paths: dict[str, Path | None],
    given: dict[str, Any],
    *,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> int:
    """Score records at every checkpoint, print the forgetting curve, and return the exit code.

    Args:
        pattern: Of the folders.
        ledger: The file.
        paths: The options ``seen``, ``unseen``, ``reference_model`` and ``base``.
        given: The other options by name.
        seed, out, as_json: As in ``remnant audit``.

    Raises:
        RemnantError: Anything that the user can fix; errors name options.
    """
    from remnant.integrations.membership.checkpoints import (
        checkpoint_folders,
        read_uses,
        score_checkpoints,
    )
    from remnant.integrations.training.logged_run import ledger_audit, measured_ledger
    from remnant.records.outcomes import EXIT_CODES
    from remnant.studies.beside.training_audit import beside
    from remnant.studies.membership.verdict import void_sentence
    from remnant.studies.shared.result_parts import Gate
    from remnant.studies.training_audit.page import TITLE, page

    refuse_unused("--checkpoints", **{name: given[name] for name in _OF_MODELS})
    _check_attack(given["attack"], has_reference=paths["reference_model"] is not None)
    folder = out_folder.out_folder(out)
    settings = {name: given[name] for name in ("limit", "success", "fpr", "confidence")}
    with ProgressBar() as bar, naming("--ledger", ledger, **_NAMES):
        folders = checkpoint_folders(pattern)
        scored = score_checkpoints(
            folders,
            read_uses(ledger),
            **paths,  # type: ignore[arg-type]
            field=given["field"],
            device=given["device"],
            progress=bar,
        )
        judged = {
            **settings,
            "seed": seed,
            "void": void_sentence(scored.blind),
            "references": scored.references,
        }
        try:
            if folder is None:
                result = measured_ledger(scored.scores, scored.ledger, **judged).result
            else:
                result, report = ledger_audit(scored.scores, scored.ledger, **judged, out=folder)
        except NotEnoughEvidence as fault:
            raise _in_words(fault) from fault
    if as_json:
        click.echo(json_text(result, checks=beside(result), **_facts(scored)))
    else:
        print_page(command_page(TITLE, page(result)))
        if amount() == "verbose":
            show(_left_out(scored))
    if folder is not None:
        out_folder.show_written(report, err=as_json)
    return EXIT_CODES[result.verdict.outcome] if isinstance(result.verdict, Gate) else 0


def _check_attack(attack: str | None, *, has_reference: bool) -> None:
    if attack is not None and attack not in _ATTACKS:
        raise InvalidInput(
            f"--attack {attack} is not for --checkpoints.", hint="Pass loss, or ratio."
        )
    if attack is not None and (attack == "ratio") != has_reference:
        raise InvalidInput(
            "--attack ratio and --reference-model belong together.",
            hint="With a reference model the attack is ratio, without one it is loss.",
        )


def _in_words(fault: NotEnoughEvidence) -> NotEnoughEvidence:
    """The error of a curve that cannot be drawn, about checkpoints instead of scorings."""
    if "one lag" not in fault.message:
        message = fault.message.replace("canaries", "records").replace("canary", "record")
        return NotEnoughEvidence(message, hint=fault.hint)
    return NotEnoughEvidence(
        "There is no curve: all rows were last used between the same two checkpoints, so that all "
        "have the same lag.",
        hint="Pass checkpoints that were saved earlier, between their last uses and the end.",
    )


def _facts(scored: Any) -> dict[str, Any]:
    """What the JSON says beside the result: the attack, and what was left out."""
    return {
        "attack": scored.attack,
        "checkpoints": len(scored.scores),
        "left_out": {
            "not_in_ledger": scored.unused,
            "in_both_files": scored.shared,
            "without_token_to_predict": scored.short,
        },
    }


def _left_out(scored: Any) -> str:
    parts = [
        f"{number} {what}"
        for number, what in (
            (scored.unused, "seen texts that are not in the ledger"),
            (scored.shared, "texts that are in both files"),
            (scored.short, "texts without a token to predict"),
        )
        if number
    ]
    attack = f"Attack: {scored.attack}, at {len(scored.scores)} checkpoints."
    return f"{attack} Left out: {'; '.join(parts)}." if parts else attack
