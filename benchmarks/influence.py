"""Self-influence against the routines in use, in one run.

    python benchmarks/influence.py
    python benchmarks/influence.py --only mlp --repeats 9
    python benchmarks/influence.py --threads 1
    python benchmarks/influence.py --device cuda

The sides take turns on the same examples and checkpoints; fastest and median times of each are
printed, and ratios of both. ``alone`` is Captum's default, one example a batch; ``sample-wise`` its
path for dense and convolutional layers; ``vmap`` is ``torch.func.vmap(grad)`` in batches; ``plain``
is one forward and one backward pass of the same batches, which gives no example's gradient: the
floor. Captum's default takes so long that it is timed on fewer examples and counted up. On a GPU
there is no Captum; TF32 is off for every side. With one thread the processor's time is counted, so
that other work on the machine matters less. Last comes how far scores are apart, at the median
example and at most. A ReLU whose input is 0 to float32's last digit is on for one side and off for
another: the most is then 1e-3, of one example in thousands.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from remnant import self_influence

RATE = 0.1


def cnn() -> tuple[nn.Module, tuple[int, ...]]:
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(2048, 10)),
    ), (3, 32, 32)


def mlp() -> tuple[nn.Module, tuple[int, ...]]:
    return nn.Sequential(
        *(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU()),
        *(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)),
    ), (784,)


def deep() -> tuple[nn.Module, tuple[int, ...]]:
    """Wide convolutions on few places, where products of all pairs are the cheaper way."""
    return nn.Sequential(
        *(nn.Conv2d(64, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU()),
        *(nn.Conv2d(128, 256, 3, padding=1), nn.BatchNorm2d(256), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)),
    ), (64, 8, 8)


MODELS = {"cnn": cnn, "mlp": mlp, "deep": deep}


class Sides:
    """The same question put to each side; each returns the scores, but for the floor."""

    def __init__(self, name: str, args: argparse.Namespace) -> None:
        torch.manual_seed(0)
        self.model, shape = MODELS[name]()
        self.model.to(args.device).eval()
        self.inputs = torch.randn(args.examples, *shape, device=args.device)
        self.labels = torch.randint(10, (args.examples,), device=args.device)
        self.states = [
            {
                key: one + 0.02 * torch.randn_like(one) if one.is_floating_point() else one.clone()
                for key, one in self.model.state_dict().items()
            }
            for _ in range(args.checkpoints)
        ]
        self.batch, self.few = args.batch, min(args.examples, args.few)

    def ours(self) -> np.ndarray:
        states = [(state, RATE) for state in self.states]
        return self_influence(
            self.model, self.inputs, self.labels, checkpoints=states, batch=self.batch
        )

    def plain(self) -> None:
        for state in self.states:
            self.model.load_state_dict(state)
            for x, y in self.batches():
                self.model.zero_grad()
                functional.cross_entropy(self.model(x), y, reduction="sum").backward()

    def vmapped(self) -> np.ndarray:
        def loss(weights, x, y):
            return functional.cross_entropy(
                functional_call(self.model, weights, (x[None],)), y[None]
            )

        each = vmap(grad(loss), in_dims=(None, 0, 0))
        found = torch.zeros(len(self.inputs), dtype=torch.float64, device=self.inputs.device)
        for state in self.states:
            self.model.load_state_dict(state)
            weights = {name: one.detach() for name, one in self.model.named_parameters()}
            parts = [
                sum(g.flatten(1).square().sum(1) for g in each(weights, x, y).values())
                for x, y in self.batches()
            ]
            found += RATE * torch.cat(parts)
        return found.cpu().numpy()

    def captum(self, few: int | None = None, *, sample_wise: bool) -> np.ndarray:
        from captum.influence import TracInCP

        def load(model, place):
            model.load_state_dict(self.states[place])
            return RATE

        how = TracInCP(
            self.model,
            torch.utils.data.TensorDataset(self.inputs[:few], self.labels[:few]),
            checkpoints=list(range(len(self.states))),
            checkpoints_load_func=load,
            loss_fn=nn.CrossEntropyLoss(reduction="sum" if sample_wise else "none"),
            batch_size=self.batch if sample_wise else 1,
            sample_wise_grads_per_batch=sample_wise,
        )
        return how.self_influence(outer_loop_by_checkpoints=True).numpy()

    def batches(self):
        return zip(self.inputs.split(self.batch), self.labels.split(self.batch), strict=True)

    def all(self, device: str) -> dict:
        sides = {"ours": self.ours, "plain": self.plain, "vmap": self.vmapped}
        if device == "cpu":
            sides["alone"] = lambda: self.captum(self.few, sample_wise=False)
            if not any(isinstance(one, nn.BatchNorm2d) for one in self.model):
                sides["sample-wise"] = lambda: self.captum(sample_wise=True)
        return sides


def clock(side, args: argparse.Namespace) -> tuple[float, np.ndarray | None]:
    now = time.process_time if args.threads == 1 else time.perf_counter
    if args.device == "cuda":
        torch.cuda.synchronize()
    started = now()
    made = side()
    if args.device == "cuda":
        torch.cuda.synchronize()
    return now() - started, made


def compare(name: str, args: argparse.Namespace) -> None:
    sides = Sides(name, args)
    took: dict[str, list[float]] = {}
    made: dict[str, np.ndarray | None] = {}
    for turn in range(args.repeats + 1):
        for side, run in sides.all(args.device).items():
            seconds, made[side] = clock(run, args)
            if turn:  # the first one warms up
                took.setdefault(side, []).append(
                    seconds * (args.examples / sides.few if side == "alone" else 1)
                )
    print(f"{name}: {args.examples} examples, {args.checkpoints} checkpoints, batch {args.batch}")
    ours = made["ours"]
    for side, seconds in took.items():
        fastest, middle = min(seconds), float(np.median(seconds))
        theirs = made[side]
        apart = ""
        if theirs is not None:
            off = np.abs(ours[: len(theirs)] / theirs - 1)
            apart = f"{np.median(off):.0e} {off.max():.0e}"
        print(
            f"  {side:12s} {fastest:8.3f} s {middle:8.3f} s   by ours "
            f"{fastest / min(took['ours']):6.2f} {middle / np.median(took['ours']):6.2f}   {apart}",
            flush=True,
        )
    if args.device == "cuda":
        for side in ("plain", "ours", "vmap"):
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            sides.all("cuda")[side]()
            grown = (torch.cuda.max_memory_allocated() - before) / 2**20
            print(f"  {side:12s} peak {grown:.0f} MiB", flush=True)


def main() -> None:
    """Print one table a model: fastest, median, both by ours, and how far scores are apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--checkpoints", type=int, default=3)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--few", type=int, default=200, help="examples of Captum's default")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, help="of torch; by default its own choice")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for name in args.only:
        compare(name, args)


if __name__ == "__main__":
    main()
