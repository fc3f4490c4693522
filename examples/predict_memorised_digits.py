"""Which digits will a classifier memorise? Stop early, look once, save what a command line reads.

python examples/predict_memorised_digits.py --out digits
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch import nn

from remnant.integrations import EarlyPrediction

WRONG = 90
STEPS = 2400
BATCH = 64


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    out, steps = given.out, given.steps
    out.mkdir(parents=True, exist_ok=True)

    rng = np.random.default_rng(0)
    bunch = load_digits()
    images, labels = (bunch.images[:, None] / 16).astype(np.float32), bunch.target.copy()
    wrong = np.zeros(len(labels), dtype=bool)
    wrong[rng.choice(len(labels), WRONG, replace=False)] = True
    labels[wrong] = (labels[wrong] + rng.integers(1, 10, WRONG)) % 10
    np.savez(out / "train.npz", images=images, labels=labels)
    np.save(out / "wrong.npy", wrong)

    torch.manual_seed(0)
    model = make_model()
    save_file(model.state_dict(), out / "start.safetensors")
    inputs, targets = torch.from_numpy(images), torch.from_numpy(labels)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    hook = EarlyPrediction(labels, inputs, every=10)
    for step in range(steps):
        rows = torch.from_numpy(rng.choice(len(labels), BATCH, replace=False))
        losses = nn.functional.cross_entropy(model(inputs[rows]), targets[rows], reduction="none")
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        if hook.after(step, losses):  # the losses were there anyway
            save_file(model.state_dict(), out / "early.safetensors")
            found = hook.predict(model, rng=np.random.default_rng(0))
            listed = found.protect()
            print(
                f"step {step} ({(step + 1) * BATCH / len(labels):.1f} epochs): the median loss has "
                f"dropped by {100 * hook.dropped:.1f} %"
            )
            print(
                f"predicted to be memorised: {len(listed)} samples, {int(wrong[listed].sum())} of "
                f"the {WRONG} wrong labels among them; {hook.forward_passes:g} pass over the data"
            )
    save_file(model.state_dict(), out / "late.safetensors")
    with torch.no_grad():
        learnt = (model(inputs).argmax(1) == targets).numpy()[wrong].mean()
    print(f"step {steps - 1}: the model gives {100 * learnt:.0f} % of the wrong labels")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
