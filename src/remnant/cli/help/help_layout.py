"""The order of use: commands by what they are for, and the options of each by group.

Options that a command has and that are not named here stand under Advanced.
"""

from __future__ import annotations

ADVANCED = "Advanced"
GROUPS = ("Model", "Records", "Compute", "Gate", "Output")
COMMANDS = {
    "Start": ("demo", "doctor"),
    "Your model": ("audit", "exposure", "extract"),
    "Your text": ("scan", "canaries"),
    "Your training": ("predict",),
    "Studies": ("run", "recipe"),
    "Results": ("show",),
    "For researchers": ("score", "curve", "feature", "speech"),
}
OPTIONS = {
    "demo": {
        "Compute": "threads",
        "Gate": "gate allow-inconclusive",
        "Output": "out json verbose quiet",
    },
    "doctor": {"Output": "json"},
    "audit": {
        "Model": "model reference-model",
        "Records": "seen unseen field",
        "Compute": "device",
        "Gate": "limit success",
        "Output": "out json verbose quiet",
    },
    "exposure": {
        "Model": "model",
        "Records": "canaries",
        "Compute": "method device",
        "Gate": "limit judged",
        "Output": "out reveal json verbose quiet",
    },
    "extract": {
        "Model": "model",
        "Records": "template top canaries",
        "Compute": "method max-seconds device",
        "Output": "out reveal json verbose quiet",
    },
    "scan": {
        "Model": "model extract",
        "Records": "kinds field",
        "Compute": "device",
        "Gate": "gate",
        "Output": "out redact reveal json verbose quiet",
    },
    "canaries": {
        "Records": "repeats per-repeat controls insert into field",
        "Compute": "seed",
        "Output": "out force reveal json",
    },
    "predict": {
        "Model": "model architecture start",
        "Records": "data by protect top",
        "Compute": "device",
        "Output": "out json verbose quiet",
    },
    "run": {
        "Records": "data scale trust",
        "Compute": "dry-run device threads",
        "Gate": "gate allow-inconclusive",
        "Output": "out json verbose quiet",
    },
    "show": {
        "Gate": "gate allow-inconclusive",
        "Output": "list html md out force json verbose quiet",
    },
    "score": {
        "Records": "seen unseen control",
        "Gate": "limit success fpr confidence",
        "Output": "out json verbose quiet",
    },
    "curve": {
        "Records": "seen unseen lags",
        "Gate": "success fpr",
        "Output": "out json verbose quiet",
    },
    "feature": {
        "Model": "model twin",
        "Records": "patch text-file text images",
        "Compute": "device",
        "Gate": "limit",
        "Output": "out json verbose quiet",
    },
    "list": {"Output": "json"},
    "copy": {"Output": "force"},
    "new": {"Records": "files", "Output": "out force"},
    "make": {"Records": "voices", "Compute": "seed", "Output": "json"},
    "runs": {"Output": "json"},
    "report": {"Output": "out force"},
}


def option_groups(command: str) -> dict[str, tuple[str, ...]]:
    """Return the options of a command before Advanced, by group.

    Example:
        >>> option_groups("new")
        {'Records': ('--files',), 'Output': ('--out', '--force')}
    """
    groups = OPTIONS.get(command, {})
    return {
        group: tuple(f"--{name}" for name in groups[group].split())
        for group in GROUPS
        if group in groups
    }
