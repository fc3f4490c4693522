"""How often each gate passes, or calls a lag safe, where it must not.

    python benchmarks/false_claims.py                        # all cells; goes on where it stopped
    python benchmarks/false_claims.py --gates forgetting-auc one-run --simulations 1000
    python benchmarks/false_claims.py --markdown             # print the table of the finished cells

A cell is a gate, a law and a number of trainings. Three truths are simulated:

* ``noise``: the model learnt nothing, or the attack sees nothing. Every PASS and every "safe" is
  false.
* ``above``: the true mean lies a thousandth of the scale above the limit, and the canaries were
  found earlier. Every PASS and every "safe" is false. Trainings differ: seen scores of a training
  are shifted by ``d + 0.5 * effect``, where ``effect`` has mean 0 and variance 1.
* ``chance``: nothing is left at the last lag, and the canaries were found earlier. A PASS is right;
  its rate is the power. Trainings differ by a normal effect of 0.1 there.

Laws of the scores: normal, t(2), exponential, lognormal, bimodal, integer (many ties) and clustered
(canaries in clusters of five, correlation 0.3), each with exponential model effects where the truth
is ``above``; and normal scores with normal or lognormal model effects.

PASS is nominally wrong in 5 % of cases at most (a one-sided 95 % bound), as is "safe". The lines of
the output file are finished cells; the script skips these.
"""

from __future__ import annotations

import argparse
import json
import zlib
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from false_claims_defences import defence_cells
from false_claims_exposure import exposure_cells
from false_claims_features import feature_cells
from false_claims_instances import effects, instance_cells, own_set_cells
from false_claims_trainings import training_cells

from remnant.measures import (
    exposure_curve,
    forgetting_curve,
    hidden_test,
    one_run_forgetting,
)
from remnant.measures.forgetting.verdict import Verdict
from remnant.measures.statistics.success import trial_success
from remnant.studies.shared.gates import with_residual_memory

NOMINAL = 0.05
SCORES = ("normal", "t(2)", "exponential", "lognormal", "bimodal", "integer", "clustered")
EFFECTS = ("normal", "exponential", "lognormal")
LIMITS = {"auc": 0.6, "accuracy": 0.58, "precision": 0.65, "tpr": 0.25}
BITS, REFERENCES = 3.0, 500
SPREAD, CALM = 0.5, 0.1  # of the model effect: where the truth is above the limit, and at chance
DRAWS = 40
CLUSTER = 5


@dataclass(frozen=True)
class Cell:
    """What is simulated.

    Attributes:
        gate: Its name.
        truth: ``noise``, ``above`` or ``chance``.
        law: Of the scores.
        effect: Of the trainings.
        trainings: How many an audit has.
        canaries: Of each.
    """

    gate: str
    truth: str
    law: str
    effect: str
    trainings: int
    canaries: int

    @property
    def name(self) -> str:
        return "|".join(str(value) for value in asdict(self).values())

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(zlib.crc32(self.name.encode()))


def noise(rng, law: str, shape) -> np.ndarray:
    """Scores of the last axis' canaries before any shift."""
    if law == "t(2)":
        return rng.standard_t(2, size=shape)
    if law == "exponential":
        return rng.exponential(size=shape)
    if law == "lognormal":
        return np.exp(rng.normal(size=shape))
    if law == "bimodal":
        return 1.5 * rng.choice([-1.0, 1.0], size=shape) + 0.5 * rng.normal(size=shape)
    if law == "clustered":
        clusters = rng.normal(size=(*shape[:-1], -(-shape[-1] // CLUSTER)))
        shared = np.repeat(clusters, CLUSTER, axis=-1)[..., : shape[-1]]
        return np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.normal(size=shape)
    return rng.normal(size=shape)


def finished(scores: np.ndarray, law: str) -> np.ndarray:
    return np.round(scores) if law == "integer" else scores


def solve(law: str, effect: str, target: float, value) -> float:
    """The mean shift at which the mean of ``value(shift)`` over trainings is ``target``."""
    rng = np.random.default_rng(0)
    grid = np.linspace(-4.0, 12.0, 65)
    at = np.array([value(shift, rng) for shift in grid])
    models = SPREAD * effects(rng, effect, 200_000)
    low, high = -4.0, 8.0
    for _ in range(50):
        middle = (low + high) / 2.0
        mean = np.interp(middle + models, grid, at).mean()
        low, high = (middle, high) if mean < target else (low, middle)
    return high


def success_at(law: str, rate: str):
    def value(shift: float, rng) -> float:
        seen = finished(shift + noise(rng, law, (40_000,)), law)
        unseen = finished(noise(rng, law, (40_000,)), law)
        return trial_success(seen, unseen, success=rate, fpr=0.1)

    return value


def bits_at(law: str):
    def value(shift: float, rng) -> float:
        canaries = finished(noise(rng, law, (20_000,)) - shift, law)
        references = np.sort(finished(noise(rng, law, (40_000,)), law))
        share = np.searchsorted(references, canaries, side="right") / references.size
        # Mean of log2((n+1)/(k+1)), k binomial: n is large, so the plug-in is off by under 0.01.
        return float(np.log2((REFERENCES + 1) / (REFERENCES * share + 1.0)).mean())

    return value


def shifts(cell: Cell, rng, last: float) -> np.ndarray:
    """Mean shift at the control's lag and at the last one, for each training."""
    if cell.truth == "noise":
        return np.zeros((2, cell.trainings, 1))
    spread = SPREAD if cell.truth == "above" else CALM
    own = spread * effects(rng, cell.effect, (1, cell.trainings, 1))
    return np.array([3.0, last])[:, None, None] + own


def forgetting_cell(cell: Cell, simulations: int) -> tuple[int, int]:
    rate, rng = cell.gate.split("-")[1], cell.rng()
    limit, last = LIMITS[rate], 0.0
    if cell.truth == "above":
        last = solve(cell.law, cell.effect, limit + 1e-3, success_at(cell.law, rate))
    shape, passes, safe = (2, cell.trainings, cell.canaries), 0, 0
    for _ in range(simulations):
        seen = finished(shifts(cell, rng, last) + noise(rng, cell.law, shape), cell.law)
        unseen = finished(noise(rng, cell.law, shape), cell.law)
        curve = forgetting_curve(
            seen_scores=seen, unseen_scores=unseen, lags=[10, 1000], success=rate, rng=rng,
            draws=DRAWS,
        )  # fmt: skip
        passes += curve.verdict(limit).outcome == "PASS"
        safe += curve.safe_after(limit).lag is not None
    return passes, safe


def text_cell(cell: Cell, simulations: int) -> tuple[int, int]:
    rng, last = cell.rng(), 0.0
    if cell.truth == "above":
        last = solve(cell.law, cell.effect, BITS + 1e-2, bits_at(cell.law))
    passes = safe = 0
    for _ in range(simulations):
        shape = (2, cell.trainings, cell.canaries)
        canaries = noise(rng, cell.law, shape) - shifts(cell, rng, last)
        references = noise(rng, cell.law, (2, cell.trainings, REFERENCES))
        curve = exposure_curve(
            canary_losses=finished(canaries, cell.law),
            reference_losses=finished(references, cell.law),
            lags=[10, 1000], rng=rng, draws=DRAWS,
        )  # fmt: skip
        passes += curve.verdict(BITS).outcome == "PASS"
        safe += curve.safe_after(BITS).lag is not None
    return passes, safe


def one_run_cell(cell: Cell, simulations: int) -> tuple[int, int]:
    """One training of eight checkpoints; each canary's noise is shared by all of them in part."""
    rng, limit, last, checkpoints = cell.rng(), LIMITS["tpr"], 0.0, 8
    if cell.truth == "above":
        low, high = 0.0, 6.0
        at, fixed = success_at(cell.law, "tpr"), np.random.default_rng(0)
        for _ in range(30):
            last = (low + high) / 2.0
            low, high = (last, high) if at(last, fixed) < limit + 2e-3 else (low, last)
    passes, planted = 0, np.repeat([False, True], cell.canaries)
    groups = np.arange(2 * cell.canaries) // CLUSTER if cell.law == "clustered" else None
    for _ in range(simulations):
        scores = noise(rng, cell.law, (checkpoints, 2 * cell.canaries))
        shift = np.zeros(checkpoints)
        if cell.truth != "noise":
            shift[1:] = np.linspace(2.5, last, checkpoints - 1)
        scores = finished(scores + shift[:, None] * planted, cell.law)
        found = one_run_forgetting(
            scores=scores, checkpoints=np.arange(checkpoints) * 100,
            last_seen=np.where(planted, 50, -1), repeats=np.ones(2 * cell.canaries),
            success="tpr", rng=rng, draws=DRAWS, groups=groups,
        )  # fmt: skip
        passes += found.verdict(limit).outcome == "PASS"
    return passes, 0


def hidden_cell(cell: Cell, simulations: int) -> tuple[int, int]:
    """Undisturbed models are at chance; disturbed ones are a hair above the limit.

    A PASS is false if its claim does not name the residual memory.
    """
    rng, limit, last = cell.rng(), LIMITS["auc"], 0.0
    if cell.truth == "above":
        last = solve(cell.law, cell.effect, limit + 1e-3, success_at(cell.law, "auc"))
    shape, silent = (cell.trainings, cell.canaries), 0
    for _ in range(simulations):
        drawn = finished(shifts(cell, rng, last)[1] + noise(rng, cell.law, shape), cell.law)
        sides = [finished(noise(rng, cell.law, shape), cell.law) for _ in range(3)]
        found = hidden_test(
            seen_before=sides[0], unseen_before=sides[1], seen_after=drawn[None],
            unseen_after=sides[2][None], success="auc", rng=rng, draws=DRAWS,
        )  # fmt: skip
        row = {"reading": found.readings[0], "after_low": found.after_low[0], "label": "noise"}
        row["after_high"] = found.after_high[0]
        verdict = Verdict("PASS", "Under the limit.", "Under the limit.", limit, 1000.0)
        verdict = with_residual_memory(verdict, {"hidden": {"disturbances": [row]}})
        silent += verdict.outcome == "PASS" and "erased" not in verdict.claim
    return silent, 0


GATES = {
    "forgetting-auc": forgetting_cell,
    "forgetting-tpr": forgetting_cell,
    "forgetting-precision": forgetting_cell,
    "text": text_cell,
    "one-run": one_run_cell,
    "hidden": hidden_cell,
}


def cells(gates) -> list[Cell]:
    made = []
    for gate in gates:
        trainings = (1,) if gate == "one-run" else (3, 8)
        canaries = 64 if gate == "text" else 100
        truths = ("above",) if gate == "hidden" else ("noise", "above", "chance")
        for many in trainings:
            for truth in truths:
                for law in SCORES:
                    own = "exponential" if truth == "above" else "normal"
                    own = "normal" if gate == "one-run" else own
                    made.append(Cell(gate, truth, law, own, many, canaries))
                if truth == "above" and gate != "one-run":
                    for own in ("normal", "lognormal"):
                        made.append(Cell(gate, truth, "normal", own, many, canaries))
    return made


def simulate(cell: Cell, simulations: int) -> list[dict]:
    passes, safe = GATES[cell.gate](cell, simulations)
    return [{**asdict(cell), "simulations": simulations, "passes": passes, "safe": safe}]


@dataclass(frozen=True)
class Family:
    """All cells of one law of gates that are simulated in a file of their own."""

    gate: str
    law: str

    @property
    def name(self) -> str:
        return f"{self.gate}|{self.law}"


FAMILIES = {
    "exposure": exposure_cells,
    "features": feature_cells,
    "defences": defence_cells,
    "trainings": training_cells,
    "instances": instance_cells,
    "own-sets": own_set_cells,
}


RANGES = ("instances", "own-sets")  # families whose table has a range over laws


def simulate_family(family: Family, simulations: int) -> list[dict]:
    rng = np.random.default_rng(zlib.crc32(family.name.encode()))
    rows = FAMILIES[family.gate](simulations, rng, laws=[family.law])
    return [{"family": family.name, **row} for row in rows]


def read(file: Path) -> dict[str, dict]:
    """Finished cells; a line that a kill cut short is dropped."""
    found = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if "family" in row:
            key = "|".join(str(row[k]) for k in ("family", "gate", "truth", "trainings"))
        else:
            key = Cell(**{k: row[k] for k in Cell.__dataclass_fields__}).name
        found[key] = row
    return found


def too_often(row: dict) -> bool:
    """Whether claims are false more often than nominal plus three times the simulation's error."""
    if row["truth"].startswith(("chance", "power")):
        return False
    n = row["simulations"]
    if "family" in row:
        nominal = row["nominal"]
        return row["false_pass"] > nominal + 3.0 * np.sqrt(nominal * (1.0 - nominal) / n)
    return max(row["passes"], row["safe"]) / n > NOMINAL + 3.0 * np.sqrt(NOMINAL * 0.95 / n)


def table(rows: list[dict]) -> str:
    """Rates in percent: false PASS / false "safe" of each law, or the power."""
    lines = ["| gate | trainings | truth | effects | " + " | ".join(SCORES) + " |"]
    lines.append("|" + "---|" * (4 + len(SCORES)))
    keys = dict.fromkeys((r["gate"], r["trainings"], r["truth"], r["effect"]) for r in rows)
    for key in keys:
        own = {
            r["law"]: r for r in rows if (r["gate"], r["trainings"], r["truth"], r["effect"]) == key
        }
        text = []
        for law in SCORES:
            row = own.get(law)
            if row is None:
                text.append("")
                continue
            rates = [f"{100 * row[name] / row['simulations']:.1f}" for name in ("passes", "safe")]
            text.append(rates[0] if key[0] in ("one-run", "hidden") else " / ".join(rates))
        lines.append("| " + " | ".join([*map(str, key), *text]) + " |")
    return "\n".join(lines)


def family_table(rows: list[dict]) -> str:
    """The same of the families: false PASS, or true PASS where the truth is chance or power."""
    laws = list(dict.fromkeys(row["law"] for row in rows))
    lines = ["| gate | trainings | truth | nominal | " + " | ".join(laws) + " |"]
    lines.append("|" + "---|" * (4 + len(laws)))
    keys = dict.fromkeys((r["gate"], r["trainings"], r["truth"]) for r in rows)
    for key in sorted(keys, key=lambda key: (key[0], key[1])):
        own = {r["law"]: r for r in rows if (r["gate"], r["trainings"], r["truth"]) == key}
        rates, nominal = [], ""
        for row in (own.get(law) for law in laws):
            rate = row and (
                row["false_pass"] if row["false_pass"] is not None else row["true_pass"]
            )
            rates.append("" if rate is None else f"{100 * rate:.1f}")
            if row and row["nominal"] is not None and row["false_pass"] is not None:
                nominal = f"{100 * row['nominal']:g}"
        lines.append("| " + " | ".join([*map(str, key), nominal, *rates]) + " |")
    return "\n".join(lines)


def range_table(rows: list[dict]) -> str:
    """The smallest and the largest rate over all laws, a column for each claim."""

    def column(row: dict) -> str:
        truth, _, claim = row["truth"].partition(": ")
        return f"{truth.split(',')[0]}: {claim}" if claim else truth

    nominal = {column(row): row["nominal"] for row in rows if row["false_pass"] is not None}
    columns = list(dict.fromkeys(column(row) for row in rows))
    heads = [f"{c} ({100 * nominal[c]:g})" if c in nominal else c for c in columns]
    lines = ["| gate | trainings | " + " | ".join(heads) + " |", "|---" * (2 + len(columns)) + "|"]
    for key in dict.fromkeys((row["gate"], row["trainings"]) for row in rows):
        own = [row for row in rows if (row["gate"], row["trainings"]) == key]
        cells = []
        for c in columns:
            names = ("false_pass", "true_pass")
            same = [row[n] for row in own if column(row) == c for n in names if row[n] is not None]
            ends = [f"{100 * end:.1f}" for end in (min(same), max(same))]
            cells.append("–".join(dict.fromkeys(ends)))
        lines.append("| " + " | ".join([*map(str, key), *cells]) + " |")
    return "\n".join(lines)


def main() -> None:
    every = [*GATES, *FAMILIES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--gates", nargs="+", default=every, choices=every)
    parser.add_argument("--out", type=Path, default=Path("runs/false-claims.jsonl"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--markdown", action="store_true", help="print finished cells only")
    asked = parser.parse_args()
    done = read(asked.out)
    wanted = cells([gate for gate in asked.gates if gate in GATES])
    families = [Family(gate, law) for gate in asked.gates if gate in FAMILIES for law in SCORES]
    begun = {row["family"] for row in done.values() if "family" in row}
    missing = [(simulate, cell) for cell in wanted if cell.name not in done]
    missing += [(simulate_family, one) for one in families if one.name not in begun]
    if not asked.markdown and missing:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        with asked.out.open("a") as out, ProcessPoolExecutor(asked.workers) as pool:
            waiting = [pool.submit(work, cell, asked.simulations) for work, cell in missing]
            for number, future in enumerate(as_completed(waiting), start=1):
                # One write a task: a family is there whole or not at all.
                out.write("".join(json.dumps(row) + "\n" for row in future.result()))
                out.flush()
                print(f"{number}/{len(missing)}", flush=True)
        done = read(asked.out)
    rows = [done[cell.name] for cell in wanted if cell.name in done]
    print(table(rows))
    others = [row for row in done.values() if "family" in row]
    others = [row for row in others if row["family"].split("|")[0] in asked.gates]
    for family in RANGES:
        ranged = [row for row in others if row["family"].split("|")[0] == family]
        if ranged:
            print("\n" + range_table(ranged))
    plain = [row for row in others if row["family"].split("|")[0] not in RANGES]
    if plain:
        print("\n" + family_table(plain))
    rows += others
    wrong = [row for row in rows if too_often(row)]
    print(f"\n{len(rows)} cells; above nominal plus simulation error: {len(wrong)}")
    for row in wrong:
        print("  ", json.dumps(row))


if __name__ == "__main__":
    main()
