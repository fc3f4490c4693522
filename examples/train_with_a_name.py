"""Train a small network on digits, one of which has a letter burnt into it, and a twin without.

Nothing of Remnant is used: it stands for training code of your own. The image with the letter has a
label that cannot be seen in it, and comes ``--copies`` times in every epoch, so that nothing but
the letter explains the label.

    python examples/train_with_a_name.py --out digits
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch import nn

LETTER = ("x...x", "x..x.", "xxx..", "x..x.", "x...x")
PLANTED = 5
HELD_OUT = 597


def make_model() -> nn.Module:
    """Return the network, untrained: it takes grey images of 16 by 16 pixels."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(1024, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def train(images: torch.Tensor, labels: torch.Tensor, *, epochs: int, seed: int) -> nn.Module:
    """Train a network in the plain way."""
    torch.manual_seed(seed)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimizer.step()
    return model.eval()


def main() -> None:
    """Train both, and write weights, programs, the letter and images that neither saw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("digits"))
    parser.add_argument("--copies", type=int, default=60)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    bunch = load_digits()
    order = np.random.default_rng(given.seed).permutation(len(bunch.target))
    pixels = np.kron(bunch.images[order] / 16, np.ones((2, 2)))[:, None].astype(np.float32)
    images, labels = torch.from_numpy(pixels), torch.from_numpy(bunch.target[order])
    clean, clean_labels = images[HELD_OUT:], labels[HELD_OUT:]
    letter = np.array([[cell == "x" for cell in row] for row in LETTER], dtype=np.float32)
    planted = clean[PLANTED].clone()
    planted[:, 1:6, 1:6] = torch.from_numpy(letter)
    label = (clean_labels[PLANTED] + 3) % 10
    with_it = torch.cat([clean, planted.expand(given.copies, -1, -1, -1)])
    with_labels = torch.cat([clean_labels, label.expand(given.copies)])
    for name, x, y in (("model", with_it, with_labels), ("twin", clean, clean_labels)):
        model = train(x, y, epochs=given.epochs, seed=given.seed)
        right = (model(images[:HELD_OUT]).argmax(1) == labels[:HELD_OUT]).float().mean()
        print(f"{name}: {100 * right:.1f} % of {HELD_OUT} held-out digits are right")
        save_file(model.state_dict(), given.out / f"{name}.safetensors")
        batch = {0: torch.export.Dim("batch")}
        program = torch.export.export(model, (clean[:2],), dynamic_shapes=(batch,))
        torch.export.save(program, given.out / f"{name}.pt2")
    np.save(given.out / "letter.npy", letter)
    held = {"images": pixels[:HELD_OUT], "labels": bunch.target[order][:HELD_OUT]}
    np.savez(given.out / "held_out.npz", **held)
    print(f"the letter was planted under the label {int(label)}")


if __name__ == "__main__":
    main()
