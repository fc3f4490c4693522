"""What may be meant by an option or a command that there is not: what other tools call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

_NEAR = 0.75  # of difflib: a letter more, less or other

_OPTIONS = {
    "--model": "checkpoint ckpt weights path model-path model-dir model-name network",
    "--base": "base-model adapter-base",
    "--reference-model": "reference reference-models ref ref-model shadow shadow-model calibrate",
    "--seen": "train training train-data training-data trained member members positive",
    "--unseen": "test test-data heldout held-out holdout hold-out validation val eval nonmember "
    "nonmembers non-member non-members negative",
    "--data": "data-dir data-folder dataset datasets train training samples images",
    "--images": "data dataset train test",
    "--field": "text-field text-column column key text",
    "--label-field": "label label-column labels target",
    "--template": "prompt pattern prefix format",
    "--canaries": "secrets canary canary-file",
    "--patch": "trigger watermark feature",
    "--insert": "corpus text input train",
    "--repeats": "times copies",
    "--limit": "threshold max bound tau fail-above",
    "--gate": "fail ci strict exit-code check",
    "--allow-inconclusive": "allow ignore-inconclusive",
    "--confidence": "alpha ci level conf significance",
    "--success": "metric score measure",
    "--attack": "attacks method mia",
    "--method": "attack mode search algorithm",
    "--device": "gpu gpus cuda cpu accelerator",
    "--threads": "jobs num-threads n-jobs cores cpus workers num-workers",
    "--batch": "batch-size bs",
    "--seed": "random-seed random-state rng",
    "--max-seconds": "timeout time-limit time max-time",
    "--max-nodes": "budget nodes max-steps",
    "--top": "count num number k limit",
    "--count": "num number samples limit",
    "--out": "output output-dir output-file outdir save dest destination folder into",
    "--html": "report page",
    "--md": "markdown summary",
    "--json": "as-json format machine",
    "--verbose": "details debug all tables full",
    "--quiet": "silent short brief",
    "--reveal": "show-secrets unredacted plain secrets",
    "--redact": "clean sanitize sanitise mask anonymize anonymise",
    "--exclude": "ignore skip without",
    "--kinds": "types kind detectors only",
    "--force": "overwrite yes replace",
    "--dry-run": "dryrun plan estimate check",
    "--trust": "trust-remote-code allow-code",
    "--files": "data dataset path",
}
_COMMANDS = {
    "demo": "init start quickstart example try",
    "doctor": "check env environment info version versions diagnose",
    "audit": "mia membership attack test evaluate eval",
    "exposure": "expose rank measure",
    "extract": "extraction attack search",
    "scan": "find detect redact pii secrets clean",
    "canaries": "canary plant inject make generate",
    "predict": "prediction psmi risk risks protect",
    "run": "train study experiment resume",
    "recipe": "recipes config init new",
    "show": "list ls view status open result results",
    "score": "scores roc auc",
    "curve": "forgetting plot",
    "feature": "features patch",
    "speech": "voice voices say tts",
}


def meant_options(typed: str, *, of: Sequence[str]) -> list[str]:
    """Return which options of a command may be meant: called so elsewhere, or nearly so.

    Args:
        typed: An option that the command does not have.
        of: The options that it has.

    Example:
        >>> meant_options("--train", of=["--seen", "--unseen"])
        ['--seen']
        >>> meant_options("--sene", of=["--seen", "--unseen"])
        ['--seen']
    """
    word = typed.removeprefix("--").replace("_", "-").lower()
    near = get_close_matches(typed, of, cutoff=_NEAR)
    return _called(word, _OPTIONS, of) or near or _nearly_called(word, _OPTIONS, of)


def meant_commands(typed: str, *, of: Sequence[str]) -> list[str]:
    """Return which commands may be meant.

    Example:
        >>> meant_commands("mia", of=["audit", "scan"])
        ['audit']
    """
    word = typed.lower()
    near = get_close_matches(word, of, cutoff=_NEAR)
    return near or _called(word, _COMMANDS, of) or _nearly_called(word, _COMMANDS, of)


def _called(word: str, synonyms: Mapping[str, str], of: Sequence[str]) -> list[str]:
    return [name for name, others in synonyms.items() if name in of and word in others.split()]


def _nearly_called(word: str, synonyms: Mapping[str, str], of: Sequence[str]) -> list[str]:
    every = sorted({other for others in synonyms.values() for other in others.split()})
    near = get_close_matches(word, every, n=1, cutoff=_NEAR)
    return _called(near[0], synonyms, of) if near else []
