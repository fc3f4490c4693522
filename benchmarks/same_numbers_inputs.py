"""What the commands of ``same_numbers.py`` measure: texts, classifiers and a tiny Llama, seeded."""

from __future__ import annotations

import contextlib
import itertools
import json
import string
from pathlib import Path
from typing import Any

from same_numbers_recipes import RECIPES


def make_classifier() -> Any:
    """The network of ``--maker``, untrained: grey images of 16 by 16 pixels, ten classes."""
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10))


def write_inputs(folder: Path) -> None:
    import numpy as np
    import torch

    torch.set_num_threads(1)
    folder.mkdir(parents=True)
    for name, recipe in RECIPES.items():
        (folder / f"{name}.toml").write_text(recipe, encoding="utf-8")
    (folder / "salt").write_bytes(b"0123456789abcdef")
    write_texts(folder, np.random.default_rng(0))
    write_digits(folder)
    rng = np.random.default_rng(0)
    np.save(folder / "lags.npy", np.array([0, 10, 50, 200]))
    fading = np.array([2.0, 1.2, 0.5, 0.1])[:, None, None]
    np.save(folder / "seen.npy", rng.normal(size=(4, 6, 40)) + fading)
    np.save(folder / "unseen.npy", rng.normal(size=(4, 6, 50)))
    with contextlib.suppress(ImportError):
        write_tiny_llama(folder / "tiny-llama")


def write_texts(folder: Path, rng: Any) -> None:
    """Two texts with telephone numbers, secrets in mail, sentences in pairs, and questions."""
    for name, often in (("calls", "650-253" + "-0147"), ("other-calls", "650-253" + "-0926")):
        lines = [f"call room {n} at {m}\n" for n, m in rng.integers(10**4, size=(400, 2))]
        lines += [f"my call is at {often}\n"] * 30
        lines += [f"pin me at 650-253-{number:04d}\n" for number in rng.integers(10**4, size=8)]
        rng.shuffle(lines)
        (folder / f"{name}.txt").write_text("".join(lines))
    rows = (folder / "calls.txt").read_text().splitlines()
    for name, part in (("seen", rows[:150]), ("unseen", rows[300:])):
        (folder / f"{name}.jsonl").write_text(
            "".join(f"{json.dumps({'text': row})}\n" for row in part)
        )
    mail = folder / "mail"
    mail.mkdir()
    secrets = ["4929 " + "0714 3683 5574", "536-90-" + "4399", "r.okafor71@" + "quvzad.org"]
    secrets += ["GB29 NWBK " + "6016 1331 9268 19", "AK" + "IA" + "QZ7TM4KDW8RB2XNC"]
    (mail / "one.txt").write_text("".join(f'it is "{secret}" now\n' for secret in secrets))
    (mail / "two.txt").write_text(f"again {secrets[1]}\n" * 3)
    words = ["one two three four five", "dogs cats birds cows", "sleep play eat"]
    german = ["eins zwei drei vier fünf", "hunde katzen vögel kühe", "schlafen spielen essen"]
    for ending, lists in (("en", words), ("de", german)):
        made = itertools.product(*(row.split() for row in lists))
        text = "".join(" ".join(sentence) + "\n" for sentence in made)
        (folder / f"pairs.{ending}").write_text(text, encoding="utf-8")
    questions = []
    for number in range(80):
        word = "".join(rng.choice(list("abcdefgh"), rng.integers(2, 7)))
        answer = int(word[0] in "abcd")
        questions.append({"question": f"{word} {number}", "choices": ["n", "y"], "answer": answer})
    (folder / "questions.json").write_text(json.dumps(questions))


def write_digits(folder: Path) -> None:
    """Classifiers of digits by plain torch: with a letter on one, clean, and with wrong labels."""
    import numpy as np
    import torch
    from safetensors.torch import save_file
    from sklearn.datasets import load_digits

    bunch = load_digits()
    order = np.random.default_rng(0).permutation(len(bunch.target))
    pixels = np.kron(bunch.images[order] / 16, np.ones((2, 2)))[:, None].astype(np.float32)
    labels = bunch.target[order]
    held, clean = slice(0, 597), slice(597, None)
    np.savez(folder / "held-out.npz", images=pixels[held], labels=labels[held])
    rows = ("x...x", "x..x.", "xxx..", "x..x.", "x...x")
    place = 597 + int(np.argmax(labels[clean] == 0))
    stamped = pixels[place : place + 1].copy()
    stamped[0, 0, 1:6, 1:6] = [[cell == "x" for cell in row] for row in rows]
    with_letter = np.concatenate([pixels[clean], np.repeat(stamped, 60, 0)])
    with_labels = np.concatenate([labels[clean], np.full(60, 3)])
    rng = np.random.default_rng(1)
    wrong = np.zeros(700, dtype=bool)
    wrong[rng.choice(700, 40, replace=False)] = True
    mixed = np.where(wrong, (labels[:700] + rng.integers(1, 10, 700)) % 10, labels[:700])
    np.savez(folder / "train.npz", images=pixels[:700], labels=mixed)
    np.save(folder / "wrong.npy", wrong)

    def train(images: Any, targets: Any, passes: int, kept: dict[int, str]) -> Any:
        torch.manual_seed(0)
        model = make_classifier()
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        inputs, wanted = torch.from_numpy(images), torch.from_numpy(targets)
        for epoch in range(passes + 1):
            if epoch in kept:
                save_file(model.state_dict(), folder / f"{kept[epoch]}.safetensors")
            for batch in torch.randperm(len(inputs)).split(64):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(inputs[batch]), wanted[batch]).backward()
                optimizer.step()
        return model

    train(with_letter, with_labels, 10, {10: "planted"})
    train(pixels[clean], labels[clean], 10, {10: "clean"})
    model = train(pixels[:700], mixed, 12, {0: "start", 12: "early"})
    with torch.no_grad():
        hidden = model[:3](torch.from_numpy(pixels[:700]))
        np.save(folder / "hidden.npy", hidden.numpy())
        np.save(folder / "logits.npy", model[3](hidden).numpy())
    np.save(folder / "labels.npy", mixed)


def write_tiny_llama(folder: Path) -> None:
    """A Llama with random weights whose tokens are characters, and ' A' and ' B'."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models

    merges = [(" ", "A"), (" ", "B")]
    pieces = ["<pad>", "<s>", *string.printable[:95], "\n", " A", " B"]
    cut = Tokenizer(models.BPE({piece: place for place, piece in enumerate(pieces)}, merges))
    cut.decoder = decoders.Fuse()
    config = transformers.LlamaConfig(
        vocab_size=len(pieces) + 3,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config)
    for parameter in model.parameters():  # so that an answer depends on all that was read
        parameter.data *= 4 if parameter.ndim > 1 else 1
    model.save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(tokenizer_object=cut).save_pretrained(folder)
