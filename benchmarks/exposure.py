"""Exact rank and certified extraction: how long, how many nodes, how much memory.

    python benchmarks/exposure.py --device cuda --digits 9
    python benchmarks/exposure.py --device cpu --digits 6
    python benchmarks/exposure.py --device cuda --hugging-face DIR
    python benchmarks/exposure.py --architecture llama-135m --digits 4 --memory 1024
    python benchmarks/exposure.py --architecture llama-135m --walk --digits 6 --max-nodes 4000
    python benchmarks/exposure.py --architecture llama-8b --walk --device cuda --precision bfloat16

A 2x200 character LSTM is trained on Python's standard library with one canary planted in it. Every
figure is of this one run: times are the least of three walks after one to warm up, and the naive
cost is measured on full sequences, nothing shared and nothing pruned. ``--architecture`` measures
canaries in a network of random weights, and the peak memory of the process; ``llama-135m`` has the
shape of SmolLM2-135M. With ``--walk`` it walks the tree, nothing pruned, in turns with a copy of
all keys and values for each row and without; ``--hugging-face DIR --walk`` takes a real model.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from exposure_walk import SHAPES, compare_walks, peak, random_network, wrapped

from remnant import Population, Template, exact_exposure, extract
from remnant.canaries import make_canary_set
from remnant.data import plant, standard_library_text, windows
from remnant.models import LanguageModel, Vocabulary, lstm
from remnant.plans import InsertPlan
from remnant.probes import Asked, lay_out, text_costs
from remnant.search import compile_template
from remnant.studies import ExposureAudit, measure_exposure
from remnant.studies.exposure.audit import ReadCosts, measure_costs

WINDOW = 64


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="cpu")
    options.add_argument("--digits", type=int, default=6)
    options.add_argument("--steps", type=int, default=300)
    options.add_argument("--hugging-face", help="also time this model folder")
    options.add_argument("--architecture", choices=tuple(SHAPES), help="time random weights")
    options.add_argument("--method", default="exact", help="with --architecture")
    options.add_argument("--memory", type=int, help="with --architecture: budget in MiB")
    options.add_argument("--references", type=int, default=10_000, help="with --architecture")
    options.add_argument(
        "--walk", action="store_true", help="compare walks, with and without copies"
    )
    options.add_argument("--max-nodes", type=int, help="with --walk")
    options.add_argument("--rounds", type=int, default=3, help="with --walk")
    options.add_argument("--prefix-tokens", type=int, default=26, help="with --walk")
    options.add_argument("--precision", default="float32", help="with --architecture")
    options.add_argument("--only-new", action="store_true", help="with --walk: without copies only")
    chosen = options.parse_args()
    device = chosen.device
    name = torch.cuda.get_device_name() if device == "cuda" else platform.processor()
    print(f"torch {torch.__version__}, {device} {name}, {torch.get_num_threads()} threads")
    if chosen.walk:
        compare_walks(chosen, device)
        return
    if chosen.hugging_face:
        hugging_face(chosen.hugging_face, device)
        return
    if chosen.architecture:
        random_weights(chosen, device)
        return
    template = Template(f"the random number is {{digits:{chosen.digits}}}")
    canary, (early, found, late) = train(template, device, chosen.steps)
    print(f"space {template.space:,}\n")
    rank_rows(template, canary, (early, found, late), device)
    naive(template, late, device)
    references(template, canary, late, device)
    extraction(template, canary, late)


def train(template: Template, device: str, steps: int) -> tuple[str, list[LanguageModel]]:
    """Return the canary and the model before, while and after the canary is memorised."""
    corpus = standard_library_text(characters=2_000_000)
    vocabulary = Vocabulary.of_characters(corpus.train + template.prefix + "0123456789")
    clean = windows(np.array(vocabulary.encode(corpus.train)), length=WINDOW)
    drawn = make_canary_set(template, repeats=[len(clean) // 60], controls=4000, seed=1)
    plan = InsertPlan(repeats=drawn.repeats, steps=steps, twin=False, batch=64)
    ids = np.array(vocabulary.encode(drawn.canaries[0].text))
    planted = [plant(clean[at], ids, at=1) for at in plan.places(examples=len(clean), trial=0)]
    store = np.concatenate([clean, np.stack(planted)])
    texts = [one.text for one in (*drawn.canaries, *drawn.controls)]
    models, cheaper = [], []

    def keep(population: Population) -> np.ndarray:
        module = lstm(vocabulary.size)
        module.load_state_dict(population.state_dict(0))
        models.append(LanguageModel(module, vocabulary, device=device))
        bits = text_costs(models[-1], prefix=template.prefix, texts=texts).bits
        cheaper.append(int((bits[1:] <= bits[0]).sum()))
        return bits[:1]

    population = Population(lambda: lstm(vocabulary.size), seeds=plan.seeds, device=device)
    population.fit(
        store[:, :-1],
        store[:, 1:],
        plan.schedule(examples=len(clean)),
        optimizer="adam",
        lr=3e-3,
        probes={"kept": keep},
        probe_steps=range(steps // 5, steps + 1, max(steps // 100, 1)),
    )
    early = next((at for at, many in enumerate(cheaper) if many < 1500), 0)
    found = next((at for at, many in enumerate(cheaper) if many <= 1), len(models) - 1)
    return drawn.canaries[0].secret, [models[max(early - 1, 0)], models[found], models[-1]]


def timed(job: Callable[[], Any], device: str, times: int = 3) -> tuple[float, Any]:
    """Return the least time of several, after one to warm up, and the last result."""
    job()
    taken = []
    for _ in range(times):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        result = job()
        if device == "cuda":
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return min(taken), result


def rank_rows(
    template: Template, canary: str, models: tuple[LanguageModel, ...], device: str
) -> None:
    early, found, late = models
    rng = np.random.default_rng(0)
    drawn = [one.secret for one in template.sample(20_000, rng=rng)]
    texts = [template.text(secret) for secret in drawn]
    order = np.argsort(text_costs(early, prefix=template.prefix, texts=texts).bits)
    rows = [
        ("costliest of 20 000 controls", early, drawn[order[-1]]),
        ("median of 20 000 controls", early, drawn[order[len(order) // 2]]),
        ("cheapest of 20 000 controls", early, drawn[order[0]]),
        ("canary, first at about 12 bits", found, canary),
        ("canary, at the end of training", late, canary),
    ]
    print(f"{'exact rank of':40} {'seconds':>8} {'nodes':>12} {'bits':>7} {'rank':>13}  memory")
    for label, model, secret in rows:
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        seconds, (one,) = timed(
            lambda model=model, secret=secret: exact_exposure(model, template, secrets=[secret]),
            device,
        )
        print(
            f"{label:40} {seconds:8.3f} {one.nodes:12,} {one.bits:7.2f} "
            f"{one.rank_low:,}-{one.rank_high:,}  {peak(device)}"
        )
    for memory in (1 << 28, 1 << 30):
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        label, model, secret = rows[1]
        start = time.perf_counter()
        exact_exposure(model, template, secrets=[secret], memory=memory)
        seconds = time.perf_counter() - start
        print(f"{label + f', {memory >> 20} MiB':40} {seconds:8.3f} {'':34}  {peak(device)}")
    exact = early.in_float64()
    seconds, (one,) = timed(
        lambda: exact_exposure(exact, template, secrets=[rows[1][2]]), device, times=1
    )
    print(
        f"{'median, all in float64':40} {seconds:8.3f} {one.nodes:12,} {one.bits:7.2f} "
        f"{one.rank_low:,}-{one.rank_high:,}"
    )


def naive(template: Template, model: LanguageModel, device: str) -> None:
    """Score full sequences, prefix and all, and scale to the whole space."""
    many = 200_000 if device == "cuda" else 2_000
    drawn = template.sample(min(many, template.space), rng=np.random.default_rng(1))
    ids = torch.tensor([model.encode(one.text) for one in drawn], device=device)
    module = model._module

    def score() -> None:
        with torch.no_grad():
            for some in ids.split(20_000):
                logits = module(some[:, :-1]).log_softmax(-1)
                logits.gather(2, some[:, 1:, None]).sum()

    seconds, _ = timed(score, device)
    whole = seconds / len(ids) * template.space
    costly = max(
        template.sample(2_000, rng=np.random.default_rng(2)),
        key=lambda one: sum(map(ord, one.secret)),
    )
    ours, _ = timed(
        lambda: exact_exposure(model, template, secrets=[costly.secret]), device, times=1
    )
    print(
        f"\nevery full sequence, nothing pruned: {whole:.1f} s (from {len(ids):,} of them); "
        f"exact rank of a control in the same model {ours:.2f} s: {whole / ours:.0f}x"
    )


def references(template: Template, canary: str, model: LanguageModel, device: str) -> None:
    """Rank a canary among 20 000 references: drawn and read anew, or laid out once before."""
    many = min(20_000, template.space - 1)

    def anew() -> ExposureAudit:
        return measure_exposure(
            model,
            template,
            secrets=[canary],
            rng=np.random.default_rng(3),
            method="sampled",
            references=many,
        )

    drawn = template.sample(many, rng=np.random.default_rng(3), exclude=[canary])
    automaton = compile_template(model.encode, template)
    texts = [template.text(canary), *(one.text for one in drawn)]
    tree = lay_out([model.encode(text)[len(automaton.prefix) :] for text in texts])

    def laid_out() -> ExposureAudit:
        asked = Asked(model, automaton.prefix)
        found = tree.costs(asked)
        costs = ReadCosts(automaton, found[:1], found[1:], asked.nodes)
        return measure_costs(model, template, costs, secrets=[canary], method="sampled")

    (slow, one), (fast, other) = timed(anew, device), timed(laid_out, device)
    print(
        f"\n{many:,} references: {slow:.3f} s drawn anew, {fast:.3f} s laid out before "
        f"({slow / fast:.1f}x), {other.nodes:,} nodes, "
        f"{one.bits[0]:.2f} and {other.bits[0]:.2f} bits"
    )


def extraction(template: Template, canary: str, model: LanguageModel) -> None:
    start = time.perf_counter()
    found = extract(model, template, top=3)
    seconds = time.perf_counter() - start
    hit = found.candidates[0][0] == canary
    print(
        f"\nextraction: {'the canary' if hit else 'NOT the canary'}, certified={found.certified}, "
        f"{found.nodes:,} nodes, {seconds:.2f} s, "
        f"bits {[round(bits, 2) for _, bits in found.candidates]}"
    )


def hugging_face(folder: str, device: str) -> None:
    from remnant.integrations import load_sequence_model

    model = load_sequence_model(folder, device=device)
    template = Template(f"My PIN is {{digits:{6 if device == 'cuda' else 4}}}")
    secrets = [one.secret for one in template.sample(3, rng=np.random.default_rng(0))]
    start = time.perf_counter()
    found = exact_exposure(model, template, secrets=secrets)
    seconds = time.perf_counter() - start
    print(
        f"exact rank of {len(secrets)} secrets of {template.space:,}: {seconds:.1f} s, "
        f"{found.nodes:,} nodes, {found.nodes / seconds:.0f} nodes/s, bits {found.bits.round(2)}, "
        f"{peak(device)}"
    )
    start = time.perf_counter()
    best = extract(model, template, top=3)
    seconds = time.perf_counter() - start
    print(
        f"extraction: certified={best.certified}, {best.nodes:,} nodes, {seconds:.1f} s, "
        f"{best.nodes / seconds:.0f} nodes/s"
    )


def random_weights(chosen: argparse.Namespace, device: str) -> None:
    """Measure 12 canaries and controls in a network of random weights."""
    from remnant.studies.exposure.canary_sets import measure_canaries

    network = random_network(chosen.architecture, device, chosen.precision)
    model = wrapped(network)
    template = Template(f"The PIN of the account is {{digits:{chosen.digits}}}")
    canary_set = make_canary_set(template, repeats=[1] * 4, controls=8, seed=1)
    print(f"{sum(p.numel() for p in network.parameters()):,} weights, {peak(device)} so far")
    start = time.perf_counter()
    found = measure_canaries(
        model,
        canary_set,
        rng=np.random.default_rng(0),
        method=chosen.method,
        references=chosen.references,
        memory=None if chosen.memory is None else chosen.memory << 20,
    )
    seconds = time.perf_counter() - start
    print(
        f"{found.method} exposure of {len(found.each)} secrets of {template.space:,}: "
        f"{seconds:.1f} s, {found.nodes:,} nodes, {found.nodes / seconds:.0f} nodes/s, "
        f"{peak(device)}\nbits {[round(each.found.bits, 4) for each in found.each]}"
    )


if __name__ == "__main__":
    main()
