"""Runs of ``same_numbers.py``: recipes, and every command that measures without one.

The order matters: recipes leave the models and canaries that later commands measure.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from same_numbers_recipes import RECIPES

PLANTED = "runs/exposure-exact/models/planted-1"
TWIN = "runs/exposure-exact/models/twin-1"
CANARIES = "runs/exposure-exact/canaries.jsonl"
TEMPLATE = "--template 'key {digits:3};'"
MAKER = "--maker same_numbers_inputs:make_classifier"


@dataclass(frozen=True)
class Run:
    """Commands that are run in one process, one after the other.

    Attributes:
        name: What it is saved under.
        folder: What it writes to, under FOLDER/work; None if it writes nothing.
        commands: Command lines of ``remnant`` by name; FOLDER/work is the working directory.
        needs: A package without which it is left out.
        only_page: Whether the folder holds what other runs wrote, and only the page is its own.
    """

    name: str
    folder: str | None
    commands: dict[str, str]
    needs: str | None = None
    only_page: bool = False

    @property
    def arguments(self) -> list[list[str]]:
        return [shlex.split(command) for command in self.commands.values()]


def every_run() -> list[Run]:
    found = sorted(Path(str(files("remnant"))).rglob("*.toml"))
    packaged = {path.stem: shlex.quote(str(path)) for path in found}
    together = f"run {' '.join(packaged.values())} --out packaged"
    return [
        *(recipe_run(f"demo-{stem}", f"packaged/{stem}", path) for stem, path in packaged.items()),
        Run("demo-together", "packaged", {"run": together}, only_page=True),
        *(recipe_run(name, f"runs/{name}", f"inputs/{name}.toml") for name in RECIPES),
        *(exposure_run(), extract_run(), hugging_face_run(), scan_run(), feature_run()),
        *(predict_run(), curve_run(), canaries_run(), records_run(), command_records_run()),
        Run("demo", "demo", {"demo": "demo --out demo", "again-json": "demo --out demo --json"}),
    ]


def recipe_run(name: str, folder: str, recipe: str) -> Run:
    return Run(
        name,
        folder,
        {
            "run": f"run {recipe} --data inputs --out {folder}",
            "show": f"show {folder}",
            "show-json": f"show {folder} --json",
            "show-gate": f"show {folder} --gate",
        },
        needs="transformers" if name == "text-prediction" else None,
    )


def with_json(commands: dict[str, str]) -> dict[str, str]:
    """Every command as it is, and with ``--json``."""
    return {
        f"{name}{ending}": command + option
        for name, command in commands.items()
        for ending, option in (("", ""), ("-json", " --json"))
    }


def exposure_run() -> Run:
    asked = f"exposure --model {PLANTED} --canaries {CANARIES}"
    commands = {
        "plain": asked,
        "limit": f"{asked} --limit 8",
        "limit-share": f"{asked} --limit 8 --share 0.5",
        "limit-judged": f"{asked} --limit 8 --judged 40",
        "limit-passes": f"{asked} --limit 9.5 --judged 1",
        "sampled": f"{asked} --method sampled --references 300 --extrapolate",
        "calibrated": f"{asked} --reference-model {TWIN}",
        "reveal": f"{asked} --reveal",
        "twin-limit": f"exposure --model {TWIN} --canaries {CANARIES} --limit 8",
    }
    return Run("exposure-command", None, with_json(commands))


def extract_run() -> Run:
    asked = f"extract --model {PLANTED} {TEMPLATE}"
    decoding = f"--canaries {CANARIES} --temperature 0.5 --top-k 3"
    methods = ("brute-force", "greedy", "beam", "sample", "dijkstra")
    commands = {name: f"{asked} --method {name}" for name in methods}
    commands["certified"] = f"{asked} --top 3 {decoding}"
    commands["reveal"] = f"{asked} --top 3 --reveal"
    return Run("extract-command", None, with_json(commands))


def hugging_face_run() -> Run:
    model = "--model inputs/tiny-llama"
    commands = {
        "extract": f"extract {model} {TEMPLATE} --top 3 --reveal",
        "exposure": f"exposure {model} --canaries {CANARIES} --set 1 --references 200",
    }
    return Run("hugging-face-command", None, with_json(commands), needs="transformers")


def scan_run() -> Run:
    asked = "scan inputs/calls.txt --salt inputs/salt --model runs/calls/models/planted-1"
    twin = "--twin runs/other-calls/models/planted-1"
    sampled = "--method sampled --references 200"
    commands = {
        "text": "scan inputs/mail --salt inputs/salt",
        "model": f"{asked} --extract",
        "twin": f"{asked} {twin}",
        "twin-text": f"{asked} {twin} --twin-text inputs/other-calls.txt {sampled}",
        "calibrated": f"{asked} {sampled} --reference-model runs/calls/models/twin-1",
        "out": "scan inputs/mail --salt inputs/salt --out out/scan/found.json",
    }
    return Run("scan-command", "out/scan", with_json(commands))


def feature_run() -> Run:
    images = "--images inputs/held-out.npz --count 150 --nulls 99 --text K"
    asked = f"feature --model inputs/planted.safetensors {MAKER} {images}"
    beside = "--twin inputs/clean.safetensors --label 3"
    commands = {
        "plain": asked,
        "twin": f"{asked} {beside}",
        "words": f"{asked} --against words --nulls 25 --control shuffled",
        "limit": f"{asked} {beside} --limit 0.5",
        "clean-limit": f"feature --model inputs/clean.safetensors {MAKER} {images} --limit 0.5",
    }
    audit = "out/feature/audit"
    written = {
        "out": f"{asked} {beside} --limit 0.5 --out {audit}",
        "show": f"show {audit}",
        "show-json": f"show {audit} --json",
        "show-gate": f"show {audit} --gate",
    }
    return Run("feature-command", "out/feature", with_json(commands) | written)


def predict_run() -> Run:
    asked = f"predict --model inputs/early.safetensors {MAKER} --data inputs/train.npz"
    hidden = "--hidden inputs/hidden.npy --labels inputs/labels.npy --logits inputs/logits.npy"
    commands = {
        "plain": asked,
        "start": f"{asked} --start inputs/start.safetensors --protect 0.1",
        "memorised": f"{asked} --memorised inputs/wrong.npy",
        "top": f"{asked} --top 30 --by loss",
        "hidden": f"predict {hidden} --top 20",
    }
    written = {
        "csv": f"{asked} --out out/predict/risks.csv",
        "table": f"{asked} --out out/predict/risks.json",
    }
    return Run("predict-command", "out/predict", with_json(commands) | written)


def curve_run() -> Run:
    asked = "curve --seen inputs/seen.npy --unseen inputs/unseen.npy --lags inputs/lags.npy"
    kinds = ("accuracy", "precision", "tpr", "auc")
    commands = with_json({kind: f"{asked} --success {kind}" for kind in kinds})
    commands["out"] = f"{asked} --out out/curve/curve.html"
    return Run("curve-command", "out/curve", commands)


def canaries_run() -> Run:
    made = "'my pin is {digits:6}' 'word {letters:3}-{hex:4}' --seed 5 --repeats 1,3 --per-repeat 2"
    into = "--insert inputs/calls.txt --into out/canaries/planted.txt"
    commands = {
        "plain": f"canaries {made} --out out/canaries/made.jsonl --reveal {into}",
        "plain-json": f"canaries {made} --out out/canaries/again.jsonl --reveal --json",
    }
    return Run("canaries-command", "out/canaries", commands)


def records_run() -> Run:
    commands = {
        "runs": "runs runs",
        "runs-json": "runs runs --json",
        "report": "report runs/forgetting-inject --out out/pages/one.html",
        "report-several": "report packaged --out out/pages/several.html",
    }
    return Run("records-command", "out/pages", commands)


def command_records_run() -> Run:
    """Every command that measures without a recipe, with its record; ``feature`` has one above."""
    model = f"--model {PLANTED} --canaries {CANARIES}"
    scan = "scan inputs/calls.txt --salt inputs/salt --model runs/calls/models/planted-1"
    files = "--seen inputs/seen.jsonl --unseen inputs/unseen.jsonl"
    early = f"predict --model inputs/early.safetensors {MAKER} --data inputs/train.npz"
    curve = "curve --seen inputs/seen.npy --unseen inputs/unseen.npy --lags inputs/lags.npy"
    commands = {
        "exposure-audit": f"exposure {model} --limit 8",
        "extraction": f"extract {model} {TEMPLATE} --method dijkstra --top 3",
        "found-secrets": f"{scan} --extract --twin runs/other-calls/models/planted-1",
        "membership-audit": f"audit --model runs/calls/models/planted-1 {files} --limit 0.6",
        "early-prediction": f"{early} --start inputs/start.safetensors --protect 0.1",
        "attack-curve": f"{curve} --success auc",
    }
    written = {name: f"{line} --out out/records/{name}" for name, line in commands.items()}
    shown = {f"{name}-json": f"show out/records/{name} --json" for name in commands}
    return Run("command-records", "out/records", written | shown)
