"""``remnant score``: attack success from scores of any framework."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remnant.cli.help.command import Command
from remnant.cli.options import declared, out_folder
from remnant.cli.options.arrays import read_npy
from remnant.cli.options.naming import naming
from remnant.cli.output import amount_options, command_page, print_json, print_page
from remnant.errors import InvalidInput, require

if TYPE_CHECKING:
    from remnant.integrations.membership.outcome import MembershipAudit

SUCCESSES = ("auc", "tpr", "precision", "accuracy")
HOLDS = "scores, one number per record"
_OPTIONS = declared.option_names(
    *("seen", "unseen", "control", "limit", "success", "fpr", "confidence")
)


@click.command(cls=Command, short_help="Measure attack success from scores of any framework.")
@declared.path(
    "--seen",
    required=True,
    help="npy file, [records]: scores of training records, higher = more likely seen.",
)
@declared.path("--unseen", required=True, help="npy file, [records]: scores of held-out records.")
@declared.path(
    "--control",
    help="npy file, [records]: scores of records that are known to be memorised, such as records "
    "that were trained on many times. A PASS needs them.",
)
@declared.path(
    "--seen-groups",
    help="npy file, [records]: a label of each training record, where several belong to one "
    "person, document or template. Whole groups are then resampled.",
)
@declared.path("--unseen-groups", help="npy file, [records]: the same of held-out records.")
@click.option(
    "--limit",
    type=float,
    help="Gate: the success must stay at or below this. Exit code 0 is PASS, 1 FAIL, 3 "
    "INCONCLUSIVE.",
)
@declared.choice("--success", SUCCESSES, help="Success that --limit applies to.")
@declared.number("--fpr", 0.1, help="False-positive rate of tpr and precision.")
@declared.number("--confidence", 0.95, help="Confidence of intervals and bounds.")
@declared.number("--seed", 0, help="Seed of the resamples.")
@out_folder.out
@declared.flag("--allow-inconclusive", help="Exit with 0 instead of 3.")
@amount_options
@declared.as_json
def score(
    seen: Path,
    unseen: Path,
    control: Path | None,
    seen_groups: Path | None,
    unseen_groups: Path | None,
    seed: int,
    out: Path | None,
    allow_inconclusive: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Measure how well scores distinguish training records from held-out ones.

    Any framework may compute the scores. Records must come from the same source: nothing checks
    here whether the two sets differ in themselves; remnant audit does. Without --limit the result
    is a finding, and the exit code is 0.

    \b
    Example:
      remnant score --seen seen.npy --unseen unseen.npy --control repeated.npy --limit 0.6
    """
    import numpy as np

    from remnant.integrations.membership.scores import audit_scores
    from remnant.studies.beside.membership import beside
    from remnant.studies.membership.page import TITLE, page

    require(
        declared.too_small(seed=(seed, 0))
        + declared.not_fraction(fpr=given["fpr"], confidence=given["confidence"])
        + declared.not_positive(limit=given["limit"])
    )
    files = {"--seen": seen, "--unseen": unseen}
    files |= {} if control is None else {"--control": control}
    labels = {"--seen-groups": seen_groups, "--unseen-groups": unseen_groups}
    if (seen_groups is None) != (unseen_groups is None):
        raise InvalidInput(
            "--seen-groups and --unseen-groups go together.",
            hint="Where records of one side are independent, give each a label of its own.",
        )
    groups = tuple(
        read_npy(option, path, holds="labels, one per record")
        for option, path in labels.items()
        if path is not None
    )
    folder = out_folder.out_folder(out)
    arrays: dict[str, Any] = {
        option.removeprefix("--"): read_npy(option, path, holds=HOLDS)
        for option, path in files.items()
    }
    with naming(**_OPTIONS):
        ended = audit_scores(
            **arrays, groups=groups or None, rng=np.random.default_rng(seed), **given
        )
    if as_json:
        print_json(ended.result, checks=beside(ended.result))
    else:
        print_page(command_page(TITLE, page(ended.result)))
    if folder is not None:
        settings = {**given, "seed": seed}
        settings |= {
            option.removeprefix("--"): str(path) for option, path in labels.items() if path
        }
        _write_record(folder, ended, files, arrays, settings, as_json)
    if ended.exit_code and not (ended.outcome == "INCONCLUSIVE" and allow_inconclusive):
        sys.exit(ended.exit_code)


def _write_record(
    folder: Path,
    ended: MembershipAudit,
    files: dict[str, Path],
    arrays: dict[str, Any],
    settings: dict[str, Any],
    as_json: bool,
) -> None:
    from remnant.studies.command_record import write_command_record

    report = write_command_record(
        folder,
        question="membership-audit",
        plan={
            "data": {option.removeprefix("--"): str(path) for option, path in files.items()},
            "settings": {name: value for name, value in settings.items() if value is not None},
        },
        result=ended.result,
        arrays={f"{name}_score": scores for name, scores in arrays.items()},
        seeds={"audit": settings["seed"]},
        private=True,
    )
    out_folder.show_written(report, private=True, err=as_json)
