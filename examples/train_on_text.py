"""Trains a character LSTM on text files: a plain loop, set by its seed.

python examples/train_on_text.py mail/ --out FOLDER

Files are read as `remnant scan` reads them, line ends and all: what it finds in these files is what
the model was trained on. FOLDER is what `--model` and `--twin` take.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import torch

from remnant.canaries.natural.files import files_of
from remnant.canaries.natural.reading import encoding_of
from remnant.cli.options.naming import naming
from remnant.errors import InvalidInput, RemnantError, require
from remnant.models import Vocabulary, check_model_folder, lstm, save_language_model

LN2 = math.log(2)
ASCII = "".join(map(chr, range(1, 128)))  # so that it can be asked about the text of others


def read_texts(paths: list[Path], *, exclude: list[str], latin_1: bool) -> tuple[str, str]:
    """All files as one text, and what is to be told of them; what is no text is left out."""
    texts, left_out = [], 0
    for path, named in files_of(paths, exclude=exclude).items():
        try:
            texts.append(path.read_bytes().decode(encoding_of(path, latin_1=latin_1)))
        except InvalidInput:
            if named:
                raise
            left_out += 1
    text = "\n".join(texts)
    told = f"{len(texts)} file{'s' * (len(texts) != 1)}, {len(text)} characters"
    if left_out:
        told += f"; {left_out} file{' is' if left_out == 1 else 's are'} no text"
    return text, told


def windows(ids: torch.Tensor, *, length: int, start: int = 0) -> torch.Tensor:
    """Windows of `length` inputs and the token after each; a shorter rest is left out."""
    return ids[start:].unfold(0, length + 1, length)


def bits(net: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
    """What the network pays for a character of these windows, on average."""
    logits = net(rows[:, :-1])
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()) / LN2


def train(
    net: torch.nn.Module, ids: torch.Tensor, judged: torch.Tensor | None, given: argparse.Namespace
) -> None:
    """Train for some epochs, each with the text cut at other places and in another order."""
    generator = torch.Generator().manual_seed(given.seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=given.lr)
    for epoch in range(1, given.epochs + 1):
        latest = min(given.window, len(ids) - given.window)
        start = int(torch.randint(latest, (1,), generator=generator))
        cut = windows(ids, length=given.window, start=start)
        paid = 0.0
        for rows in torch.randperm(len(cut), generator=generator).split(given.batch):
            optimizer.zero_grad()
            loss = bits(net, cut[rows].to(given.device))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            paid += loss.item() * len(rows) / len(cut)
        told = f"epoch {epoch:3d}  {paid:.3f} bits a character"
        if judged is not None:
            with torch.no_grad():
                costs = [bits(net, rows.to(given.device)) * len(rows) for rows in judged.split(256)]
            told += f", {float(sum(costs)) / len(judged):.3f} of the validation text"
        print(told, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Read, train and write; a fault of the user's is one sentence and exit code 2."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="text files, and folders of them")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    parser.add_argument("--overwrite", action="store_true", help="a model that is there already")
    parser.add_argument("--exclude", action="append", default=[], help="leave such names out")
    parser.add_argument("--latin-1", action="store_true", help="where a file is not in UTF-8")
    parser.add_argument("--validation", type=Path, help="text to judge by, a file or folder")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the text (10)")
    parser.add_argument("--units", type=int, default=200, help="of each layer (200)")
    parser.add_argument("--layers", type=int, default=1, help="of the LSTM (1)")
    parser.add_argument("--window", type=int, default=128, help="characters of a window (128)")
    parser.add_argument("--batch", type=int, default=32, help="windows an update (32)")
    parser.add_argument("--lr", type=float, default=6e-3, help="learning rate of Adam (0.006)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    parser.add_argument("--seed", type=int, default=0, help="draws weights and order (0)")
    given = parser.parse_args(arguments)
    try:
        with naming(latin_1="--latin-1"):
            run(given)
    except RemnantError as fault:
        print(f"train_on_text: {fault}", file=sys.stderr)
        raise SystemExit(2) from None


def run(given: argparse.Namespace) -> None:
    """Check everything before the first update, and write after the last."""
    sizes = ("epochs", "units", "layers", "window", "batch")
    faults = [f"--{n} {getattr(given, n)} is less than 1" for n in sizes if getattr(given, n) < 1]
    faults += [f"--lr {given.lr:g} is not between 0 and 1"] * (not 0 < given.lr <= 1)
    faults += [f"--seed {given.seed} is less than 0"] * (given.seed < 0)
    require(faults)
    check_model_folder(given.out)
    if given.out.exists() and any(given.out.iterdir()) and not given.overwrite:
        raise InvalidInput(
            f"--out {given.out} holds a model already.",
            hint="Choose another folder, or replace it with --overwrite.",
        )
    text, told = read_texts(given.files, exclude=given.exclude, latin_1=given.latin_1)
    vocabulary = Vocabulary.of_characters(text + ASCII)
    ids = encoded(vocabulary, text, "The text", given.window)
    judged = None
    if given.validation is not None:
        other, _ = read_texts([given.validation], exclude=[], latin_1=given.latin_1)
        others = encoded(vocabulary, other, f"--validation {given.validation}", given.window)
        judged = windows(others, length=given.window)
    torch.manual_seed(given.seed)
    options = {"units": given.units, "layers": given.layers}
    try:
        net = lstm(vocabulary.size, **options).to(given.device)
    except (RuntimeError, AssertionError):
        raise InvalidInput(f"--device {given.device} is not there.", hint="Pass cpu.") from None
    print(f"{told}; {sum(one.numel() for one in net.parameters())} weights", flush=True)
    train(net, ids, judged, given)
    save_language_model(
        given.out,
        architecture="lstm",
        options=options,
        state=net.state_dict(),
        vocabulary=vocabulary,
    )
    print(f"wrote {given.out}")


def encoded(vocabulary: Vocabulary, text: str, name: str, window: int) -> torch.Tensor:
    """The tokens of a text that has one window or more."""
    if len(text) <= window:
        raise InvalidInput(
            f"{name} has {len(text)} characters, and a window of --window {window} takes one more.",
            hint="Give a longer text or a shorter window.",
        )
    return torch.from_numpy(vocabulary.encode_array(text))


if __name__ == "__main__":
    main()
